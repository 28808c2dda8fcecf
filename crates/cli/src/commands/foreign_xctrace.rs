//! `tracesmith profile --xctrace` and `--mctracer`: another vendor's recorder runs the program, and we import the result.
//!
//! The recorder starts the program and has its own ways with signals: while it runs, Ctrl-C is its own, and we wait for
//! what it leaves behind.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, anyhow, bail};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;
use tracesmith_collect::Existing;
use tracesmith_trace::import::{
    IMPORTERS, ImportOptions, Importer, Input, import, importer_of, xctrace_tables,
};
use tracesmith_trace::units;

use super::capture;
use crate::args::{OutArgs, ProfileArgs};
use crate::commands::out_file::{Schema, write_trace};
use crate::exit::Exit;
use crate::output::{Hinted, Output};

/// Records with Instruments.
pub(crate) fn run_xctrace(args: &ProfileArgs, output: &mut Output) -> anyhow::Result<Exit> {
    let out = destination(args)?;
    let xcrun = tool("xcrun").ok_or_else(|| no_xctrace("there is no xcrun here"))?;
    let found = Command::new(&xcrun).args(["--find", "xctrace"]).output();
    if !found.is_ok_and(|found| found.status.success()) {
        return Err(no_xctrace("xcrun does not find xctrace"));
    }
    let folder = folder()?;
    let recording = folder.path().join("recording.trace");
    let mut record = Command::new(&xcrun);
    record
        .args(["xctrace", "record", "--template", &args.xctrace_template])
        .arg("--output")
        .arg(&recording)
        .args(["--launch", "--"])
        .args(&args.command);
    let status = run(&mut record, "xctrace record")?;
    if !recording.exists() {
        bail!("xctrace left no recording ({status})");
    }
    output.note("exporting the tables of the recording");
    let exported = folder.path().join("tables.xml");
    let result = Command::new(&xcrun)
        .args(["xctrace", "export", "--input"])
        .arg(&recording)
        .args(["--xpath", &tables_xpath(), "--output"])
        .arg(&exported)
        .stdin(Stdio::null())
        .output()
        .context("starting xctrace export")?;
    if !result.status.success() || !exported.exists() {
        let words = String::from_utf8_lossy(&result.stderr);
        bail!("xctrace export failed ({}): {}", result.status, words.trim());
    }
    import_files(&[exported], None, &out, output)?;
    Ok(exit_of(status))
}

/// Records with MetaX's tracer.
pub(crate) fn run_mctracer(args: &ProfileArgs, output: &mut Output) -> anyhow::Result<Exit> {
    let out = destination(args)?;
    let mctracer = tool("mcTracer").ok_or_else(|| {
        Hinted::error(
            &anyhow!("there is no mcTracer here"),
            "mcTracer comes with MetaX's MACA toolkit, in /opt/maca/bin; put that folder into PATH",
        )
    })?;
    let folder = folder()?;
    let mut record = Command::new(mctracer);
    record
        .args(["--mctx", "--odname"])
        .arg(folder.path())
        .args(["--name", "trace"])
        .args(&args.command);
    let status = run(&mut record, "mcTracer")?;
    let files = json_files(folder.path())?;
    if files.is_empty() {
        bail!("mcTracer left no trace ({status})");
    }
    let named = ["mctracer", "chrome"]
        .iter()
        .find_map(|name| IMPORTERS.iter().find(|importer| importer.name == *name));
    import_files(&files, named, &out, output)?;
    Ok(exit_of(status))
}

fn destination(args: &ProfileArgs) -> anyhow::Result<OutArgs> {
    let program = args.command.first().cloned().unwrap_or_default();
    let destination = capture::destination(&args.capture, &program)?;
    if destination.path.exists() && destination.existing == Existing::Refuse {
        bail!("{} exists; replace it with --force", destination.path.display());
    }
    Ok(OutArgs {
        out: destination.path,
        force: destination.existing == Existing::Replace,
    })
}

fn no_xctrace(problem: &str) -> anyhow::Error {
    Hinted::error(
        &anyhow!("{problem}"),
        "xctrace comes with Xcode, on macOS; recordings made elsewhere can be read with 'tracesmith import'",
    )
}

/// A program in one of the folders of PATH.
fn tool(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

fn folder() -> anyhow::Result<tempfile::TempDir> {
    tempfile::tempdir().context("making a temporary folder")
}

/// Runs a recorder to its end. Ctrl-C reaches it as it reaches us; it ends the recording, and we go on.
fn run(command: &mut Command, what: &str) -> anyhow::Result<ExitStatus> {
    let interrupt = SigSet::from(Signal::SIGINT);
    interrupt.thread_block().context("blocking a signal")?;
    let status = command.status();
    // One that came meanwhile is taken back; sending one makes sure that there is something to take.
    kill(Pid::this(), Signal::SIGINT).context("sending a signal")?;
    interrupt.wait().context("waiting for a signal")?;
    interrupt.thread_unblock().context("unblocking a signal")?;
    status.with_context(|| format!("starting {what}"))
}

/// All tables that are read, in one export: numbers of values then hold for all of them.
fn tables_xpath() -> String {
    let schemas: Vec<String> = xctrace_tables()
        .map(|name| format!("@schema=\"{name}\""))
        .collect();
    format!(
        "/trace-toc/run[@number=\"1\"]/data/table[{}]",
        schemas.join(" or ")
    )
}

fn json_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).context("looking for the trace")? {
        let path = entry.context("looking for the trace")?.path();
        if path.is_dir() {
            files.extend(json_files(&path)?);
        } else if path.extension() == Some(OsStr::new("json")) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Imports files into the trace that was asked for. What the content does not tell is of the format that is expected.
fn import_files(
    files: &[PathBuf],
    expected: Option<&'static Importer>,
    out: &OutArgs,
    output: &mut Output,
) -> anyhow::Result<()> {
    let mut inputs = Vec::new();
    let mut format = None;
    for path in files {
        let input = Input::open(path).with_context(|| format!("reading {}", path.display()))?;
        if importer_of(&input).is_none() {
            format =
                Some(expected.ok_or_else(|| anyhow!("the recorder's file is of no format that is known"))?);
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
    output.note(&format!("wrote {} ({})", out.out.display(), units::bytes(bytes)));
    output.note(&format!(
        "{} rows of events from {}",
        units::count(report.rows),
        report.formats.join(", ")
    ));
    if report.cut {
        output.warning("not whole: a file is cut off");
    }
    if report.skipped > 0 {
        output.warning(&format!(
            "{} entries have no place in a trace; 'tracesmith info' lists them by kind",
            units::count(report.skipped)
        ));
    }
    Ok(())
}

fn exit_of(status: ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(u8::try_from(code & 0xff).unwrap_or(u8::MAX)),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Done,
    }
}
