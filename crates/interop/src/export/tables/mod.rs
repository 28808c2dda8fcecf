//! Tables as files: all that a trace holds, a file for each table.
//!
//! What a table's file holds follows from the format's own description of its columns, so that a table or column that is
//! added there comes along by itself. Rows are those of a scan ([`tracesmith_trace::tables`]), batch by batch.

pub(super) mod arrow;
#[cfg(feature = "parquet")]
mod batch;
pub(super) mod csv;
#[cfg(feature = "parquet")]
mod dictionary;
pub(super) mod parquet;
mod rows;

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use tracesmith_format::tables::*;
use tracesmith_format::{BlockKind, Table, for_each_table};
use tracesmith_trace::Trace;
use tracesmith_trace::tables::{Condition, Scalar, Scan, StoredColumn as Column, columns_of};

use crate::error::Error;
use crate::export::{ExportOptions, ExportReport, Exporter, Out, TableFn};
pub use rows::{can_write_parquet, write_parquet};

/// One table as a file of its own.
struct TableFile {
    /// Its name, as in the format.
    name: &'static str,
    /// What a row is, in words.
    #[cfg_attr(
        not(feature = "parquet"),
        allow(dead_code, reason = "a CSV has no place for it")
    )]
    doc: &'static str,
    /// Its columns.
    columns: Vec<Column>,
    kind: BlockKind,
    /// The column with the start of its rows, if they are events.
    start: Option<&'static str>,
}

impl TableFile {
    fn of<T: Table>() -> Self {
        TableFile {
            name: T::KIND.name().expect("every table of ours has a name"),
            doc: T::DOC,
            columns: columns_of::<T>(),
            kind: T::KIND,
            start: T::TIMES.first().copied().filter(|_| T::KIND.is_events()),
        }
    }

    /// The wanted rows, with some columns.
    fn scan(&self, options: &ExportOptions, columns: impl Iterator<Item = String>) -> Scan {
        let mut scan = Scan::columns(columns);
        if !self.kind.is_events() {
            return scan;
        }
        scan = scan.between(
            options.range.from.map(|time| time.0),
            options.range.to.map(|time| time.0),
        );
        let has_streams = self
            .columns
            .iter()
            .any(|column| column.spec.name == "place.stream");
        if let Some(streams) = options.streams.as_ref().filter(|_| has_streams) {
            let streams = streams.iter().map(|stream| Scalar::Unsigned(stream.0)).collect();
            scan = scan.with("stream", Condition::OneOf(streams));
        }
        scan
    }

    /// Calls `f` with the wanted rows, batch by batch, and reports how many there are.
    fn for_each_batch(
        &self,
        trace: &Arc<Trace>,
        options: &ExportOptions,
        mut f: impl FnMut(&RecordBatch) -> Result<(), Error>,
    ) -> Result<ExportReport, Error> {
        let mut report = ExportReport {
            without_time: self.without_time(trace, options)?,
            ..ExportReport::default()
        };
        let columns = self.columns.iter().map(|column| column.name.clone());
        let scan = Scan {
            progress: options.progress.clone(),
            ..self.scan(options, columns)
        };
        for batch in trace.table(self.name)?.scan(&scan)? {
            let batch = batch?;
            report.events += batch.num_rows() as u64;
            f(&batch)?;
        }
        Ok(report)
    }

    /// Rows without a time, if only some time is wanted. They are left out.
    fn without_time(&self, trace: &Arc<Trace>, options: &ExportOptions) -> Result<u64, Error> {
        let Some(start) = self.start.filter(|_| !options.range.is_all()) else {
            return Ok(0);
        };
        let mut count = 0;
        for batch in trace.table(self.name)?.scan(&Scan::columns([start]))? {
            count += batch?.column(0).null_count() as u64;
        }
        Ok(count)
    }
}

/// All tables that have a file: those that rows are pushed to, and the dictionaries of code. Strings are resolved.
fn tables() -> Vec<TableFile> {
    macro_rules! list {
        ($($field:ident: $row:ident,)*) => {
            vec![$(TableFile::of::<$row>(),)* TableFile::of::<Frame>(), TableFile::of::<Stack>()]
        };
    }
    for_each_table!(list)
}

/// The names of all tables that have a file.
pub fn table_names() -> Vec<&'static str> {
    tables().into_iter().map(|table| table.name).collect()
}

/// The table with this name.
fn table(format: &'static str, name: &str) -> Result<TableFile, Error> {
    tables()
        .into_iter()
        .find(|table| table.name == name)
        .ok_or_else(|| Error::Export {
            format,
            problem: format!(
                "there is no table {name}; the tables are {}",
                table_names().join(", ")
            ),
        })
}

/// Writes all tables into a new folder. Rows of events that this version knows no table for are counted as left out.
pub fn write_folder(
    exporter: &Exporter,
    write: TableFn,
    trace: &Arc<Trace>,
    options: &ExportOptions,
    folder: &Path,
) -> Result<ExportReport, Error> {
    let failed = |source| Error::Write { written: 0, source };
    fs::create_dir_all(folder).map_err(failed)?;
    let unknown = trace
        .blocks()
        .iter()
        .filter(|block| block.header.kind.is_events() && block.header.kind.name().is_none());
    let mut report = ExportReport {
        left_out: unknown.map(|block| u64::from(block.header.rows)).sum(),
        ..ExportReport::default()
    };
    for name in table_names() {
        let mut file = File::create(folder.join(format!("{name}.{}", exporter.extension))).map_err(failed)?;
        let mut out = Out::new(&mut file);
        let part = write(trace, options, name, &mut out)?;
        out.finish()?;
        report.without_time += part.without_time;
        // What events refer to is no event; asked for alone, its rows are what was written.
        let kind = BlockKind::ALL.iter().find(|kind| kind.name() == Some(name));
        if kind.is_some_and(|kind| kind.is_events()) {
            report.events += part.events;
        }
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_of_the_format_has_a_file_but_those_of_the_file_itself() {
        let mut names = table_names();
        names.extend(["schema", "strings", "index"]);
        names.sort_unstable();
        let mut expected: Vec<_> = tracesmith_format::schema::tables()
            .into_iter()
            .filter_map(|(kind, _)| kind.name())
            .collect();
        expected.sort_unstable();
        assert_eq!(names, expected);
    }
    #[test]
    fn names_are_short_and_unlike() {
        let all = tables();
        let names = |table: &str| -> Vec<&str> {
            let found = all.iter().filter(|file| file.name == table);
            found
                .flat_map(|file| file.columns.iter().map(|column| column.name.as_str()))
                .collect()
        };
        let kernels = names("kernels");
        for name in [
            "start",
            "end",
            "name",
            "demangled",
            "grid_x",
            "device",
            "process",
            "stream",
        ] {
            assert!(kernels.contains(&name), "{name}");
        }
        assert!(names("modules").contains(&"code_bytes"));
        assert_eq!(names("frames")[0], "id");
        assert!(names("collectives").contains(&"communicator_name"));
        for table in &all {
            let mut names: Vec<_> = table.columns.iter().map(|column| &column.name).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{}", table.name);
        }
    }
}
