//! `tracesmith import`.

use std::path::Path;

use anyhow::Context;
use serde_json::json;
use tracesmith_interop::import::{ImportOptions, Input, TimeUnit, import, importer_of, unknown_format};
use tracesmith_trace::units;

use crate::args::{Format, ImportArgs, TimeUnitArg};
use crate::commands::out_file::{Schema, is_stdout, write_trace};
use crate::output::Output;

pub(crate) fn run(args: &ImportArgs, output: &mut Output) -> anyhow::Result<()> {
    let mut inputs = Vec::new();
    for path in &args.files {
        let input = open(path).with_context(|| format!("reading {}", path.display()))?;
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
    let (report, bytes) = write_trace(&args.out, &paths, Schema::Own, |writer| {
        Ok(import(inputs, &options, writer)?)
    })?;
    if report.cut {
        output.warning("a file is cut off; what was left of it is in the trace");
    }
    if report.skipped > 0 {
        output.warning(&format!(
            "{} entries have no place in a trace; 'tracesmith info' lists them by kind",
            units::count(report.skipped)
        ));
    }
    if is_stdout(&args.out) {
        return Ok(());
    }
    if output.format == Format::Table {
        output.line(&format!(
            "wrote {} rows of events from {} ({})",
            units::count(report.rows),
            report.formats.join(", "),
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

fn open(path: &Path) -> anyhow::Result<Input> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin(), &mut bytes)?;
        return Ok(Input::from_bytes("standard input", bytes)?);
    }
    Ok(Input::open(path)?)
}
