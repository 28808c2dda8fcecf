//! The rows of a query as a Parquet file.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use tracesmith_interop::export::{Out, can_write_parquet, write_parquet};
use tracesmith_sql::Statement;
use tracesmith_trace::units;

use crate::args::OutArgs;
use crate::commands::out_file::{Target, is_stdout, write_out};
use crate::output::Output;

pub(super) fn write(
    statement: Statement<'_>,
    out: &OutArgs,
    inputs: &[&Path],
    output: &mut Output,
) -> anyhow::Result<()> {
    // Before the query runs: a build without Parquet fails at once.
    can_write_parquet()?;
    let rows = statement.into_rows()?;
    let count = rows.rows() as u64;
    let bytes = write_out(out, inputs, |target| {
        let mut sink: Box<dyn Write> = match target {
            Target::File(file) => Box::new(file),
            Target::Stream(stream) => stream,
        };
        let mut out = Out::new(&mut sink);
        let (schema, batches) = rows.into_batches();
        write_parquet(&schema, batches, &mut out).context("writing rows")?;
        Ok(out.finish()?)
    })?;
    if !is_stdout(out) {
        output.line(&format!(
            "wrote {} rows to {} ({})",
            units::count(count),
            out.out.display(),
            units::bytes(bytes)
        ))?;
    }
    Ok(())
}
