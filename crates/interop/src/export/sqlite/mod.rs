//! A SQLite database with the tables of an nsys export, so that scripts made for those run on any trace.
//!
//! Everything goes through prepared statements in one transaction on a file that nobody else sees yet, so there is no
//! journal: an export that fails leaves nothing worth keeping. Rows are written as blocks are read; only the numbers of
//! the texts, threads and stacks that were used are kept to the end.

mod device;
mod host;
mod insert;
mod names;
mod nvtx;
mod schema;
mod target;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use rusqlite::{Connection, ErrorCode};
use tracesmith_format::tables::ClockKind;
use tracesmith_format::{ClockId, ImageId, StringId, Timestamp};
use tracesmith_trace::Trace;

use crate::error::Error;
use crate::export::{ExportOptions, ExportReport, Exporter, Way};
use crate::import::nsys::session::TIME_SHIFT;
use insert::Insert;
use names::{Names, UsedStacks};

pub(super) const EXPORTER: Exporter = Exporter {
    name: "sqlite",
    aliases: &["nsys-sqlite"],
    title: "SQLite database with the tables of an nsys export",
    extension: "sqlite",
    way: Way::File(write),
};

/// A moment that every clock of the time of day has behind it or before it by less than 2^63 nanoseconds.
const PROBE: u64 = 2_000_000_000_000_000_000;

/// Nanoseconds.
const LATER: i128 = 1_000;

/// The state of an export.
struct Export<'t> {
    trace: &'t Trace,
    options: &'t ExportOptions,
    connection: &'t Connection,
    /// The session's start on the trace's timeline.
    base: i64,
    names: Names<'t>,
    cuda_stacks: UsedStacks,
    os_stacks: UsedStacks,
    host_stacks: UsedStacks,
    /// Paths of images, once they are wanted.
    images: Option<BTreeMap<ImageId, StringId>>,
    report: ExportReport,
}

fn write(trace: &Trace, options: &ExportOptions, path: &Path) -> Result<ExportReport, Error> {
    let failed = |error: rusqlite::Error| failure(&error, path);
    let connection = Connection::open(path).map_err(failed)?;
    let report = fill(trace, options, &connection).map_err(failed)?;
    connection.close().map_err(|(_, error)| failed(error))?;
    Ok(report)
}

fn fill(trace: &Trace, options: &ExportOptions, connection: &Connection) -> rusqlite::Result<ExportReport> {
    connection.execute_batch(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; BEGIN",
    )?;
    let mut export = Export {
        trace,
        options,
        connection,
        base: base_of(trace),
        names: Names::new(trace),
        cuda_stacks: UsedStacks::default(),
        os_stacks: UsedStacks::default(),
        host_stacks: UsedStacks::default(),
        images: None,
        report: ExportReport::default(),
    };
    export.kernels()?;
    export.copies()?;
    export.sets()?;
    export.synchronizations()?;
    export.graph_launches()?;
    export.allocations()?;
    export.api_calls()?;
    export.markers()?;
    export.host_calls()?;
    export.counters()?;
    export.collectives()?;
    export.flows()?;
    export.chains()?;
    export.target()?;
    export.strings()?;
    // Without these a join of kernels and calls takes a walk over all calls for each kernel.
    connection.execute_batch(
        "CREATE INDEX tracesmith_kernel_correlation ON CUPTI_ACTIVITY_KIND_KERNEL (correlationId, globalPid);
         CREATE INDEX tracesmith_kernel_start ON CUPTI_ACTIVITY_KIND_KERNEL (start);
         CREATE INDEX tracesmith_call_correlation ON CUPTI_ACTIVITY_KIND_RUNTIME (correlationId, globalTid);
         CREATE INDEX tracesmith_call_start ON CUPTI_ACTIVITY_KIND_RUNTIME (start);
         CREATE INDEX tracesmith_nvtx_start ON NVTX_EVENTS (start);
         COMMIT",
    )?;
    Ok(export.report)
}

impl<'t> Export<'t> {
    /// A time of a block on the trace's timeline.
    fn moment(&self, clock: ClockId, time: Timestamp) -> Timestamp {
        self.trace.clock_map.convert(clock, time).time
    }

    /// A moment on the trace's timeline as nanoseconds since the session's start.
    fn nanos(&self, moment: Timestamp) -> i64 {
        (i128::from(moment.0) - i128::from(self.base)).clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// The same; `None` when it is not known.
    fn nanos_if_known(&self, moment: Timestamp) -> Option<i64> {
        moment.is_some().then(|| self.nanos(moment))
    }

    /// Start and end of something that needs both; `None` when one is missing, which is counted.
    fn span(&mut self, start: Timestamp, end: Timestamp) -> Option<(i64, i64)> {
        if start.is_some() && end.is_some() {
            self.report.events += 1;
            return Some((self.nanos(start), self.nanos(end)));
        }
        self.report.without_time += 1;
        None
    }

    /// A moment of something that needs one.
    fn instant(&mut self, time: Timestamp) -> Option<i64> {
        if time.is_some() {
            self.report.events += 1;
            return Some(self.nanos(time));
        }
        self.report.without_time += 1;
        None
    }

    /// A table that appears with its first row.
    fn insert(&self, table: schema::Table) -> Insert<'t> {
        Insert::new(self.connection, table)
    }
}

/// Where times are counted from. A trace on a recording's own clock keeps its times; others have clocks that count from
/// the machine's start, and are counted from their first event, as nsys counts from the session's start.
fn base_of(trace: &Trace) -> i64 {
    let reference = trace.clock_map.reference();
    let own = trace
        .clocks
        .iter()
        .any(|clock| clock.id == reference && clock.kind == ClockKind::RECORDING);
    if own {
        return trace
            .metadata
            .get(TIME_SHIFT)
            .and_then(|shift| shift.parse().ok())
            .unwrap_or(0);
    }
    trace
        .span()
        .map_or(0, |(first, _)| i64::try_from(first.0).unwrap_or(0))
}

/// The time of day at the session's start, where a clock of the trace knows it.
fn epoch_of(trace: &Trace, base: i64) -> Option<i64> {
    let clock = trace
        .clocks
        .iter()
        .find(|clock| clock.kind == ClockKind::REALTIME && trace.clock_map.is_linked(clock.id))?;
    let on_timeline = |time: i128| -> Option<i128> {
        let time = Timestamp(u64::try_from(time).ok()?);
        Some(i128::from(trace.clock_map.convert(clock.id, time).time.0))
    };
    // A conversion does not go down to 0, which means unknown: the moment that is looked for lies a little later.
    let moment = i128::from(base) + LATER;
    // Each step leaves as much of the distance as the slopes differ: a millionth, or more where two readings that lie close
    // together give the slope.
    let mut epoch = i128::from(PROBE);
    for _ in 0..16 {
        let step = moment - on_timeline(epoch)?;
        epoch += step;
        if step == 0 {
            break;
        }
    }
    i64::try_from(epoch - LATER).ok() // a time of day beyond the year 2262 is none
}

fn failure(error: &rusqlite::Error, path: &Path) -> Error {
    let code = match error {
        rusqlite::Error::SqliteFailure(failure, _) => Some(failure.code),
        _ => None,
    };
    match code {
        Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => Error::Write {
            written: std::fs::metadata(path).map_or(0, |metadata| metadata.len()),
            source: match code {
                Some(ErrorCode::DiskFull) => io::ErrorKind::StorageFull.into(),
                _ => io::Error::other(error.to_string()),
            },
        },
        _ => Error::Export {
            format: EXPORTER.name,
            problem: error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named_as_such() {
        let full =
            rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL), None);
        let error = failure(&full, Path::new("/nowhere"));
        assert!(
            matches!(&error, Error::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull),
            "{error:?}"
        );
    }
}
