//! Recording with another tool's profiler: it runs the program, and what it wrote is imported.
//!
//! A profiler is an entry of plain facts and two functions; everything else is the same for all of them. A further one
//! is a constant here and a flag of `profile`.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use anyhow::{Context, anyhow, bail};
use tracesmith_collect::{Destination, Existing};
use tracesmith_trace::import::{IMPORTERS, ImportOptions, Input, import};
use tracesmith_trace::units;

use crate::args::OutArgs;
use crate::commands::out_file::{Schema, write_trace};
use crate::exit::Exit;
use crate::output::{Hinted, Output};

/// A profiler of somebody else.
pub(crate) struct Profiler {
    /// The program that is looked for on PATH.
    program: &'static str,
    /// What to do when it is not there.
    hint: &'static str,
    /// What reads its output.
    importer: &'static str,
    /// Its arguments for a recording into files whose names begin with the path. The program to run follows them.
    start: fn(base: &Path) -> Vec<OsString>,
    /// Makes of what it wrote what can be imported.
    finish: fn(&Profiler, base: &Path) -> anyhow::Result<Vec<PathBuf>>,
    /// Endings of what it leaves, for those who want to keep it.
    kept: &'static [&'static str],
}

/// NVIDIA Nsight Systems.
pub(crate) const NSYS: Profiler = Profiler {
    program: "nsys",
    hint: "install NVIDIA Nsight Systems and put its folder on PATH, or record without --nsys",
    importer: "nsys",
    start: |base| {
        let mut arguments: Vec<OsString> = [
            "profile",
            "--force-overwrite=true",
            "--trace=cuda,nvtx,osrt",
            "--sample=none",
            "--cpuctxsw=none",
            "--cuda-graph-trace=node",
        ]
        .map(OsString::from)
        .to_vec();
        arguments.push(option("--output=", base));
        arguments
    },
    finish: |nsys, base| {
        let report = ["nsys-rep", "qdrep"]
            .map(|ending| base.with_extension(ending))
            .into_iter()
            .find(|path| path.exists())
            .context("nsys wrote no report")?;
        let database = base.with_extension("sqlite");
        // The program's output is its own: what nsys says of an export goes nowhere unless it fails.
        let export = Command::new(nsys.program)
            .args(["export", "--type=sqlite", "--force-overwrite=true"])
            .arg(option("--output=", &database))
            .arg(&report)
            .output()
            .context("starting nsys export")?;
        if !export.status.success() || !database.exists() {
            let words = String::from_utf8_lossy(&export.stderr);
            bail!(
                "nsys export failed: {}",
                words.lines().last().unwrap_or("it said nothing")
            );
        }
        Ok(vec![database])
    },
    kept: &["nsys-rep", "qdrep", "sqlite"],
};

/// What is wanted of a profiler.
pub(crate) struct Recording<'a> {
    /// Which one.
    pub(crate) profiler: &'a Profiler,
    /// Further arguments for it, as a shell would split them.
    pub(crate) arguments: &'a str,
    /// The program and its arguments.
    pub(crate) command: &'a [OsString],
    /// Where the trace goes.
    pub(crate) destination: &'a Destination,
    /// Whether its own files stay.
    pub(crate) files: Files,
}

/// What becomes of a profiler's own files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Files {
    Remove,
    /// Beside the trace, under its name.
    Keep,
}

/// Records a program, and imports what came of it.
pub(crate) fn run(recording: &Recording<'_>, output: &mut Output) -> anyhow::Result<Exit> {
    let profiler = recording.profiler;
    if !is_on_path(profiler.program) {
        let error = anyhow!("there is no {} on PATH", profiler.program);
        return Err(Hinted::error(&error, profiler.hint));
    }
    let out = &recording.destination.path;
    if recording.destination.existing == Existing::Refuse && out.exists() {
        bail!("{} exists; replace it with --force", out.display());
    }
    let further = words(recording.arguments).context("reading the profiler's arguments")?;
    // Beside the trace: what is kept is renamed into its place, and the disk is one that has room for traces.
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = tempfile::Builder::new()
        .prefix(".tracesmith-")
        .tempdir_in(parent.unwrap_or(Path::new(".")))
        .context("making a temporary folder")?;
    let base = folder.path().join("recording");
    let status = Command::new(profiler.program)
        .args((profiler.start)(&base))
        .args(further)
        .args(recording.command)
        .status()
        .with_context(|| format!("starting {}", profiler.program))?;
    let exit = exit_of(status);
    let imported = finish(recording, &base, output);
    match imported {
        Ok(()) => Ok(exit),
        Err(error) if exit == Exit::Code(0) => Err(error),
        Err(error) => {
            output.error(&error);
            Ok(exit)
        }
    }
}

/// Imports what was written, and keeps it when asked to.
fn finish(recording: &Recording<'_>, base: &Path, output: &mut Output) -> anyhow::Result<()> {
    let profiler = recording.profiler;
    let files = (profiler.finish)(profiler, base)?;
    let format = IMPORTERS
        .iter()
        .find(|importer| importer.name == profiler.importer);
    if format.is_none() {
        bail!(
            "this tracesmith was built without what reads {}",
            profiler.importer
        );
    }
    let inputs = files
        .iter()
        .map(|path| Input::open(path))
        .collect::<Result<Vec<_>, _>>()
        .with_context(|| format!("reading what {} wrote", profiler.program))?;
    let out = OutArgs {
        out: recording.destination.path.clone(),
        force: recording.destination.existing == Existing::Replace,
    };
    let options = ImportOptions {
        format,
        ..ImportOptions::default()
    };
    let (report, bytes) = write_trace(&out, &[], Schema::Own, |writer| {
        Ok(import(inputs, &options, writer)?)
    })?;
    if recording.files == Files::Keep {
        keep(profiler, base, &out.out)?;
    }
    let path = out.out.display();
    output.note(&format!("wrote {path} ({})", units::bytes(bytes)));
    let rows = units::count(report.rows);
    output.note(&format!("{rows} rows of events from {}", profiler.program));
    if report.cut || report.skipped > 0 {
        output.warning("not everything could be imported; 'tracesmith info' lists it by kind");
    }
    output.note(&format!("next: tracesmith view {path} --stats"));
    Ok(())
}

fn keep(profiler: &Profiler, base: &Path, out: &Path) -> anyhow::Result<()> {
    for ending in profiler.kept {
        let file = base.with_extension(ending);
        if file.exists() {
            let kept = out.with_extension(ending);
            fs::rename(&file, &kept).with_context(|| format!("writing {}", kept.display()))?;
        }
    }
    Ok(())
}

fn option(name: &str, value: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push(value);
    option
}

fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(u8::try_from(code & 0xff).unwrap_or(u8::MAX)),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Done,
    }
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| is_program(&folder.join(program)))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// Splits arguments as a shell does: at spaces, with quotes and backslashes.
fn words(text: &str) -> anyhow::Result<Vec<OsString>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next() {
                        Some(end) if end == character => break,
                        Some('\\') if character == '"' => word.extend(characters.next()),
                        Some(inner) => word.push(inner),
                        None => bail!("a quote is not closed: {text}"),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(characters.next()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words.iter().map(|word| OsStr::new(word).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_split_as_by_a_shell() {
        let split = |text| -> Vec<String> {
            let words = words(text).unwrap();
            words
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect()
        };
        assert_eq!(
            split("  --a  b\t'c d' \"e \\\"f\" g\\ h ''"),
            ["--a", "b", "c d", "e \"f", "g h", ""]
        );
        assert!(split("").is_empty());
        assert!(words("'open").is_err());
    }
}
