//! Tables as files: all that a trace holds, a file for each table.
//!
//! What a table's file holds follows from the format's own description of its columns, so that a table or column that is
//! added there comes along by itself. A writer sees a table as [`Part`]s, one for each block, whose columns it visits; it
//! never knows the table's type.

pub(super) mod arrow;
#[cfg(feature = "parquet")]
mod batch;
mod column;
pub(super) mod csv;
#[cfg(feature = "parquet")]
mod dictionary;
pub(super) mod parquet;
mod part;
mod rows;

use std::any::Any;
use std::fs::{self, File};
use std::path::Path;

use tracesmith_format::tables::*;
use tracesmith_format::{BlockKind, ClockId, Columns, Table, for_each_table};
use tracesmith_trace::Trace;

use crate::error::Error;
use crate::export::{ExportOptions, ExportReport, Exporter, Out, TableFn};
use part::Part;
pub use rows::{ParquetRows, RowCell, RowKind};
use tracesmith_trace::tables::{StoredColumn as Column, columns_of};

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
    walk: WalkFn,
}

type PartFn<'f> = &'f mut dyn FnMut(&Part<'_>) -> Result<(), Error>;
type WalkFn = fn(&Trace, &ExportOptions, Pass, PartFn<'_>) -> Result<(), Error>;

/// Which walk over a table it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// A look at what is there, before anything is written.
    #[cfg_attr(
        not(feature = "parquet"),
        allow(dead_code, reason = "a CSV is written at once")
    )]
    Survey,
    /// The one that writes.
    Write,
}

impl TableFile {
    fn of<T: Table>() -> Self {
        TableFile {
            name: T::KIND.name().expect("every table of ours has a name"),
            doc: T::DOC,
            columns: columns_of::<T>(),
            walk: walk::<T>,
        }
    }

    /// Calls `f` with the wanted rows, part by part.
    fn for_each_part(
        &self,
        trace: &Trace,
        options: &ExportOptions,
        pass: Pass,
        mut f: impl FnMut(&Part<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        (self.walk)(trace, options, pass, &mut f)
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
    trace: &Trace,
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

/// The wanted rows of a table, block by block.
fn walk<T: Table>(trace: &Trace, options: &ExportOptions, pass: Pass, f: PartFn<'_>) -> Result<(), Error> {
    if let Some(rows) = current_rows::<T>(trace) {
        let mut columns = T::Columns::default();
        rows.iter().for_each(|row| columns.push(row));
        return f(&Part::whole::<T>(trace, ClockId::NONE, 0, &columns));
    }
    for (block, columns) in trace.view::<T>().stream() {
        let header = &block.header;
        if pass == Pass::Write {
            options.note(block);
        }
        let part = Part::whole::<T>(trace, header.clock, header.base, &columns);
        f(&if T::KIND.is_events() {
            part.wanted::<T>(options, &columns)
        } else {
            part
        })?;
    }
    Ok(())
}

/// The rows of a table in which a later row replaces an earlier one of the same thing.
fn current_rows<T: Table>(trace: &Trace) -> Option<Vec<T>> {
    let facts;
    let rows: &dyn Any = match T::KIND {
        BlockKind::METADATA => {
            facts = trace.latest_rows(|fact: &Metadata| fact.key);
            &facts
        }
        BlockKind::HOSTS => &trace.hosts,
        BlockKind::PROCESSES => &trace.processes,
        BlockKind::THREADS => &trace.threads,
        BlockKind::DEVICES => &trace.devices,
        BlockKind::CONTEXTS => &trace.contexts,
        BlockKind::STREAMS => &trace.streams,
        BlockKind::CLOCKS => &trace.clocks,
        _ => return None,
    };
    rows.downcast_ref::<Vec<T>>().cloned()
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
}
