//! `tracesmith profile --nsys`, `--xctrace`, `--mctracer`: runs the program with another profiler and imports the
//! result.
//!
//! A [`Recorder`] describes one profiler. Everything else is shared. The profiler starts the program and handles
//! signals itself. While it runs, Ctrl-C goes to it, and TraceSmith waits for its files.

mod mctracer;
mod nsys;
mod words;
mod xctrace;

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use anyhow::{Context, anyhow, bail};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;
use tracesmith_collect::Existing;
use tracesmith_interop::import::{IMPORTERS, ImportOptions, Input, import, importer_of};
use tracesmith_trace::units;

use self::mctracer::Mctracer;
use self::nsys::Nsys;
use self::xctrace::Xctrace;
use super::capture;
use crate::args::{OutArgs, ProfileArgs};
use crate::commands::out_file::{Schema, write_trace};
use crate::exit::Exit;
use crate::output::{Hinted, Output};

/// Another profiler. Its files have a common base path and different extensions.
trait Recorder {
    /// The program to find on PATH.
    fn program(&self) -> &'static str;
    /// What to do if it is missing.
    fn hint(&self) -> &'static str;
    /// The format of its files, if the contents do not show it.
    fn importer(&self) -> &'static str;
    /// Checks whether the program can record.
    fn check(&self, _program: &Path) -> anyhow::Result<()> {
        Ok(())
    }
    /// The command that records. The program to record follows.
    fn record(&self, program: &Path, base: &Path) -> anyhow::Result<Command>;
    /// Whether the recording ended as requested, although the profiler failed with this code. The program's exit code is not
    /// known then.
    fn is_end(&self, _code: i32) -> bool {
        false
    }
    /// Converts a recording to files that can be imported.
    fn export(&self, program: &Path, base: &Path) -> anyhow::Result<Vec<PathBuf>>;
    /// Extensions of its files, for users who want to keep them.
    fn endings(&self) -> &'static [&'static str];
}

/// A finished recording.
pub(crate) struct Recorded {
    pub(crate) exit: Exit,
    /// The trace, if there is one.
    pub(crate) trace: Option<PathBuf>,
}

/// Records with another profiler, if one was requested.
pub(crate) fn run(args: &ProfileArgs, output: &mut Output) -> anyhow::Result<Option<Recorded>> {
    let recorder: &dyn Recorder = if args.nsys {
        &Nsys {
            arguments: args.nsys_args.as_deref().unwrap_or_default(),
        }
    } else if args.xctrace {
        &Xctrace {
            template: &args.xctrace_template,
            duration: args.capture.duration.map(|duration| duration.0),
        }
    } else if args.mctracer {
        &Mctracer
    } else {
        return Ok(None);
    };
    record(recorder, args, output).map(Some)
}

fn record(recorder: &dyn Recorder, args: &ProfileArgs, output: &mut Output) -> anyhow::Result<Recorded> {
    let program = find(recorder)?;
    let out = destination(args)?;
    // Work next to the output: files are renamed into place, and the disk has space for traces.
    let parent = out.out.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = tempfile::Builder::new()
        .prefix(".tracesmith-")
        .tempdir_in(parent.unwrap_or(Path::new(".")))
        .context("creating a temporary folder")?;
    let base = folder.path().join("recording");
    let mut command = recorder.record(&program, &base)?;
    let status = run_to_end(command.args(&args.command))
        .with_context(|| format!("starting {}", recorder.program()))?;
    let exit = match status.code() {
        Some(code) if recorder.is_end(code) => Exit::Code(0),
        _ => exit_of(status),
    };
    let imported = recorder.export(&program, &base).and_then(|files| {
        import_files(&files, recorder, &out, output)?;
        if args.keep_trace {
            keep(recorder, &base, &out.out)?;
        }
        Ok(())
    });
    match imported {
        Ok(()) => Ok(Recorded {
            exit,
            trace: Some(out.out),
        }),
        Err(error) if exit == Exit::Code(0) => Err(error),
        // A failure of the program matters more than a failed import.
        Err(error) => {
            output.error(&error);
            Ok(Recorded { exit, trace: None })
        }
    }
}

/// Finds the profiler's program and checks it.
fn find(recorder: &dyn Recorder) -> anyhow::Result<PathBuf> {
    let name = recorder.program();
    let path = env::var_os("PATH").unwrap_or_default();
    let program = env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|path| is_program(path))
        .ok_or_else(|| anyhow!("{name} is not on PATH"));
    program
        .and_then(|program| recorder.check(&program).map(|()| program))
        .map_err(|error| Hinted::error(&error, recorder.hint()))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

fn destination(args: &ProfileArgs) -> anyhow::Result<OutArgs> {
    let program = args.command.first().cloned().unwrap_or_default();
    let destination = capture::destination(&args.capture, &program)?;
    if destination.existing == Existing::Refuse && destination.path.exists() {
        bail!("{} exists; replace it with --force", destination.path.display());
    }
    Ok(OutArgs {
        out: destination.path,
        force: destination.existing == Existing::Replace,
    })
}

/// Runs a profiler until it ends. Ctrl-C reaches both processes. It ends the recording, and TraceSmith continues.
fn run_to_end(command: &mut Command) -> anyhow::Result<ExitStatus> {
    let interrupt = SigSet::from(Signal::SIGINT);
    interrupt.thread_block().context("blocking a signal")?;
    let status = command.status();
    // Remove a pending signal. Sending one first ensures that there is one to remove.
    kill(Pid::this(), Signal::SIGINT).context("sending a signal")?;
    interrupt.wait().context("waiting for a signal")?;
    interrupt.thread_unblock().context("unblocking a signal")?;
    Ok(status?)
}

/// Imports the profiler's files into the requested trace.
fn import_files(
    files: &[PathBuf],
    recorder: &dyn Recorder,
    out: &OutArgs,
    output: &mut Output,
) -> anyhow::Result<()> {
    let mut inputs = Vec::new();
    let mut format = None;
    for path in files {
        let input =
            Input::open(path).with_context(|| format!("reading the output of {}", recorder.program()))?;
        if importer_of(&input).is_none() {
            let name = recorder.importer();
            let expected = IMPORTERS.iter().find(|importer| importer.name == name);
            let expected = expected
                .with_context(|| format!("this tracesmith was built without the importer for {name}"))?;
            format = Some(expected);
        }
        inputs.push(input);
    }
    let options = ImportOptions {
        format,
        ..ImportOptions::default()
    };
    let (report, bytes) = write_trace(out, &[], Schema::Own, |writer| {
        Ok(import(inputs, &options, writer)?)
    })?;
    let path = out.out.display();
    output.note(&format!("wrote {path} ({})", units::bytes(bytes)));
    output.note(&format!(
        "{} rows of events from {}",
        units::count(report.rows),
        recorder.program()
    ));
    if report.cut || report.skipped > 0 {
        output.warning("not everything could be imported; 'tracesmith info' lists it by kind");
    }
    output.note(&format!("next: tracesmith view {path} --stats"));
    Ok(())
}

fn keep(recorder: &dyn Recorder, base: &Path, out: &Path) -> anyhow::Result<()> {
    for ending in recorder.endings() {
        let file = base.with_extension(ending);
        if file.exists() {
            let kept = out.with_extension(ending);
            fs::rename(&file, &kept).with_context(|| format!("writing {}", kept.display()))?;
        }
    }
    Ok(())
}

fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(u8::try_from(code & 0xff).unwrap_or(u8::MAX)),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Done,
    }
}
