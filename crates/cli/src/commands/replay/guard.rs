//! Runs a replay in a child process and monitors it.
//!
//! A kernel that accesses invalid memory makes the context unusable, and a kernel that never ends blocks the waiting
//! thread. So the replay runs in a child process, which writes its progress to a file. If it fails or makes no
//! progress, a second child runs the calls one by one to find the failing call.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use rustix::process::{Signal, set_parent_process_death_signal};
use serde_json::{Value, json};
use tracesmith_replay::{Command as RecordedCommand, Error, Recording, Replay, Watch};

use super::{aslr, session};
use crate::args::{Format, ReplayArgs};
use crate::exit::Exit;
use crate::output::Output;

/// The path of the progress file. Set only in the child.
const NOTES: &str = "TRACESMITH_REPLAY_NOTES";

/// Set in the child that runs calls one by one.
const SEARCH: &str = "TRACESMITH_REPLAY_SEARCH";

/// The exit code of the child if GPU work failed.
const FAULT: u8 = 3;

/// How often the progress file is written and read.
const INTERVAL: Duration = Duration::from_millis(20);

/// The role of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Monitors the others.
    Guard,
    /// Runs the replay.
    Runner,
    /// Finds the failing call.
    Searcher,
}

pub(super) fn role() -> Role {
    if std::env::var_os(NOTES).is_none() {
        return Role::Guard;
    }
    // The child must not outlive the guard.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    if std::env::var_os(SEARCH).is_some() {
        Role::Searcher
    } else {
        Role::Runner
    }
}

/// Writes the progress of a replay to the file, from a separate thread.
pub(super) fn write_progress(watch: &Watch) {
    let Some(file) = std::env::var_os(NOTES).map(PathBuf::from) else {
        return;
    };
    let watch = watch.clone();
    thread::spawn(move || {
        let mut last = None;
        loop {
            let pulse = watch.pulse();
            if last != Some(pulse) {
                let note =
                    json!({ "beats": pulse.beats, "call": pulse.call, "is_working": pulse.is_working });
                write_note(&file, &note);
                last = Some(pulse);
            }
            thread::sleep(INTERVAL);
        }
    });
}

/// Writes atomically. If no progress arrives, the guard stops the child.
fn write_note(file: &Path, note: &Value) {
    let fresh = file.with_extension("new");
    if fs::write(&fresh, note.to_string()).is_ok() {
        let _ = fs::rename(&fresh, file);
    }
}

/// Handles an error of the replay. GPU faults are left to the guard.
pub(super) fn report_fault(error: Error, replay: &Replay<'_>) -> anyhow::Result<Exit> {
    let Some(file) = std::env::var_os(NOTES)
        .map(PathBuf::from)
        .filter(|_| error.is_fault())
    else {
        return Err(error.into());
    };
    let words = replay.words(&error);
    let text = if words.is_empty() {
        error.to_string()
    } else {
        format!("{error}: {words}")
    };
    let fault = json!({ "error": text, "call": replay.watch().pulse().call });
    write_note(&file.with_extension("fault"), &fault);
    Ok(Exit::Code(FAULT))
}

/// How a child ended.
enum End {
    /// It exited.
    Exit(Exit),
    /// GPU work failed.
    Fault { error: String, call: u64 },
    /// It made no progress and was killed. Contains the last call.
    Stuck { call: u64 },
}

/// Runs this command in a child process and monitors it.
pub(super) fn guard(args: &ReplayArgs, output: &mut Output) -> anyhow::Result<Exit> {
    aslr::fix_addresses();
    let limit = (args.timeout > 0).then(|| Duration::from_secs(args.timeout.into()));
    let first = watched(Role::Runner, limit)?;
    let End::Exit(exit) = first else {
        output.remark("running the calls one by one to find the failing call");
        let found = watched(Role::Searcher, limit)?;
        return Err(report(args, &first, &found, output)?);
    };
    Ok(exit)
}

fn watched(role: Role, limit: Option<Duration>) -> anyhow::Result<End> {
    let folder = tempfile::tempdir().context("creating a temporary folder")?;
    let file = folder.path().join("notes");
    let program = std::env::current_exe().context("finding this program")?;
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1)).env(NOTES, &file);
    if role == Role::Searcher {
        command
            .env(SEARCH, "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
    }
    let mut child = command.spawn().context("starting the replay")?;
    let (mut last, mut since) = (Value::Null, Instant::now());
    loop {
        if let Some(status) = child.try_wait().context("waiting for the replay")? {
            if status.code() == Some(i32::from(FAULT)) {
                let fault = note(&file.with_extension("fault"));
                return Ok(End::Fault {
                    error: fault["error"].as_str().unwrap_or("the GPU failed").to_owned(),
                    call: fault["call"].as_u64().unwrap_or(0),
                });
            }
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            let code = code.ok_or_else(|| anyhow!("the replay was killed: {status}"))?;
            return Ok(End::Exit(Exit::Code(code)));
        }
        let now = note(&file);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        let is_stuck = last["is_working"] == true && limit.is_some_and(|limit| since.elapsed() > limit);
        if is_stuck {
            end(&mut child);
            let call = last["call"].as_u64().unwrap_or(0);
            return Ok(End::Stuck { call });
        }
        thread::sleep(INTERVAL / 4);
    }
}

/// Empty if there is no file yet.
fn note(file: &Path) -> Value {
    let text = fs::read(file).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn end(child: &mut Child) {
    // It may have exited meanwhile.
    let _ = child.kill();
    let _ = child.wait();
}

/// Reports the failing call.
fn report(args: &ReplayArgs, first: &End, found: &End, output: &mut Output) -> anyhow::Result<anyhow::Error> {
    let (call, how) = match (found, first) {
        (End::Fault { error, call }, _) => (*call, format!("fails: {}", short(error))),
        (End::Stuck { call }, _) => (*call, format!("does not finish within {} s", args.timeout)),
        (_, End::Fault { error, .. }) => {
            return Ok(anyhow!("{error} (not if the calls run one by one)"));
        }
        (_, End::Stuck { call }) => {
            return Ok(anyhow!(
                "the GPU makes no progress after #{call} for {} s (it does if the calls run one by one)",
                args.timeout
            ));
        }
        (_, End::Exit(_)) => return Ok(anyhow!("the replay failed")),
    };
    let recording = Recording::open(&args.file).with_context(|| args.file.display().to_string())?;
    let mut commands = recording.commands.iter();
    let Some(command) = commands.find(|command| command.number == call) else {
        return Ok(anyhow!("#{call} {how}"));
    };
    let parameters = parameters(&recording, command);
    if output.format == Format::Json {
        let failed = json!({
            "verdict": "failed", "command": call, "name": command.name(), "error": how,
            "grid": command.grid, "block": command.block, "parameters": parameters,
        });
        match args.step {
            true => session::failure_line(&failed, output)?,
            false => output.json(&failed)?,
        }
    }
    let mut text = format!("#{call} {} {how}", super::plan::what(command));
    for line in parameters {
        text.push_str("\n  ");
        text.push_str(&line);
    }
    Ok(anyhow!(text))
}

/// Removes the name of the call, which is printed already.
fn short(error: &str) -> &str {
    match error.split_once(": ") {
        Some((call, rest)) if call.starts_with('#') => rest,
        _ => error,
    }
}

/// The words of a launch's parameters, and the buffers that they point to.
fn parameters(recording: &Recording, command: &RecordedCommand) -> Vec<String> {
    let words = command.parameters.chunks(8).enumerate();
    words
        .map(|(index, bytes)| {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            let word = u64::from_le_bytes(whole);
            let width = 2 * bytes.len();
            let mut line = format!("parameters + {:#04x}: 0x{word:0width$x}", index * 8);
            if let Some(buffer) = recording.buffer(word) {
                let offset = word - buffer.address;
                line += &format!(
                    ", offset {offset} in the {} bytes at {:#x}",
                    buffer.bytes, buffer.address
                );
            }
            line
        })
        .collect()
}
