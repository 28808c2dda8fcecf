//! `tracesmith import`.

use std::path::Path;

use anyhow::{Context, anyhow, bail};
use serde_json::json;
use tracesmith_format::MAGIC;
use tracesmith_interop::Error;
use tracesmith_interop::import::{ImportOptions, Input, TimeUnit, import_each, importer_of, unknown_format};
use tracesmith_trace::units;

use crate::args::{Format, ImportArgs, TimeUnitArg};
use crate::commands::out_file::{Schema, is_stdout, write_trace};
use crate::output::Output;

pub(crate) fn run(args: &ImportArgs, output: &mut Output) -> anyhow::Result<()> {
    let mut inputs = Vec::new();
    for path in &args.files {
        let input = open(path).with_context(|| format!("reading {}", path.display()))?;
        if input.head().starts_with(&MAGIC) {
            bail!(
                "{} is already a TraceSmith trace; all commands can read it",
                path.display()
            );
        }
        if args.importer.is_none() && importer_of(&input).is_none() {
            let error = anyhow::Error::new(unknown_format(&input));
            return Err(error.context(format!("reading {}", path.display())));
        }
        inputs.push(input);
    }
    let options = ImportOptions {
        format: args.importer,
        binary: args.binary.clone(),
        time_unit: args.time_unit.map(|unit| match unit {
            TimeUnitArg::Ns => TimeUnit::Nanoseconds,
            TimeUnitArg::Us => TimeUnit::Microseconds,
        }),
    };
    let paths: Vec<&Path> = args.files.iter().map(|path| path.as_path()).collect();
    // Report an input error as such, and not as an error of writing the trace.
    let (mut file, mut bad_input) = (String::new(), None);
    let written = write_trace(&args.out, &paths, Schema::Own, |writer| {
        let mut reading = |input: &Input| input.name().clone_into(&mut file);
        import_each(inputs, &options, writer, &mut reading).map_err(|error| {
            let message = error.to_string();
            if is_of_input(&error) {
                bad_input = Some(error);
            }
            anyhow!(message)
        })
    });
    if let Some(error) = bad_input {
        return Err(anyhow::Error::new(error).context(format!("reading {file}")));
    }
    let (report, bytes) = written?;
    if report.cut {
        output.warning("a file is truncated; the trace contains the part that could be read");
    }
    if report.skipped > 0 {
        output.warning(&format!(
            "{} not be imported; 'tracesmith info' lists them by kind",
            units::counted(report.skipped, "entry could", "entries could")
        ));
    }
    if is_stdout(&args.out) {
        return Ok(());
    }
    if output.format == Format::Table {
        output.line(&format!(
            "wrote {} rows of events from {} ({})",
            units::count(report.rows),
            files_by_format(&report.formats),
            units::bytes(bytes)
        ))?;
        return Ok(());
    }
    output.facts(&[
        ("formats", json!(report.formats)),
        ("rows", json!(report.rows)),
        ("skipped", json!(report.skipped)),
        ("cut", json!(report.cut)),
        ("bytes", json!(bytes)),
    ])?;
    Ok(())
}

/// The formats of the files, with the number of files if there are several.
fn files_by_format(formats: &[&str]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for format in formats {
        match counts.iter_mut().find(|(known, _)| known == format) {
            Some((_, count)) => *count += 1,
            None => counts.push((format, 1)),
        }
    }
    let words = counts.into_iter().map(|(format, count)| match count {
        1 => format.to_owned(),
        count => format!("{count} {format} files"),
    });
    words.collect::<Vec<String>>().join(", ")
}

/// Whether reading failed, and not writing.
fn is_of_input(error: &Error) -> bool {
    matches!(
        error,
        Error::Open { .. } | Error::Read { .. } | Error::Foreign { .. } | Error::UnknownFormat { .. }
    )
}

fn open(path: &Path) -> anyhow::Result<Input> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin(), &mut bytes)?;
        return Ok(Input::from_bytes("standard input", bytes)?);
    }
    Ok(Input::open(path)?)
}
