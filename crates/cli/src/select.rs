//! What options of several commands select: time ranges, steps, GPUs, processes, ranks and single rows.

use std::str::FromStr;
use std::sync::Arc;

use anyhow::bail;
use tracesmith_format::Timestamp;
use tracesmith_trace::analysis::Analysis;
use tracesmith_trace::{EventKind, Found, Selection, TimeArg, TimeRange, Trace, Wanted, time_range};

use crate::args::{SelectArgs, TimeRangeArgs};

/// The selected time range, or that of the selected step. Steps are those of the selected processes.
pub(crate) fn range_of(
    stretch: &TimeRangeArgs,
    selection: &Selection,
    trace: &Arc<Trace>,
) -> anyhow::Result<TimeRange> {
    let Some(step) = stretch.step else {
        return Ok(time_range(stretch.from, stretch.to, trace.span())?);
    };
    let window = Analysis::selected_step(trace, step, selection)?.activity.window;
    Ok(TimeRange {
        from: window.from.map(Timestamp),
        to: window.to.map(Timestamp),
    })
}

/// The selected processes, GPUs and streams. Each must be in the trace.
pub(crate) fn selection(args: &SelectArgs, trace: &Trace) -> anyhow::Result<Selection> {
    let wanted = Wanted {
        processes: args.process.clone(),
        ranks: args.rank.clone(),
        devices: args.device.clone(),
        streams: args.stream.clone(),
    };
    Ok(wanted.in_trace(trace)?)
}

/// A row of a table, as findings name it: `kernels:9094` is row 9094 of `kernels`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowRef {
    pub(crate) kind: EventKind,
    pub(crate) row: u64,
}

impl FromStr for RowRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            let tables: Vec<&str> = EventKind::ALL
                .iter()
                .filter_map(|kind| kind.table().name())
                .collect();
            format!(
                "'{text}' is not a table and a row, such as kernels:9094; tables with rows: {}",
                tables.join(", ")
            )
        };
        let (table, row) = text.split_once(':').ok_or_else(wrong)?;
        let kind = EventKind::ALL.iter().copied();
        let kind = kind
            .into_iter()
            .find(|kind| kind.table().name() == Some(table) || kind.name() == table);
        Ok(RowRef {
            kind: kind.ok_or_else(wrong)?,
            row: row.parse().map_err(|_| wrong())?,
        })
    }
}

impl RowRef {
    /// Calls `found` with the event of this row.
    pub(crate) fn find<R>(self, trace: &Trace, found: impl FnOnce(&Found<'_>) -> R) -> anyhow::Result<R> {
        Ok(trace.with_row(self.kind, self.row, found)?)
    }
}

/// A moment: a time, or the start of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Moment {
    Time(TimeArg),
    Row(RowRef),
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.contains(':') {
            true => text.parse().map(Moment::Row),
            false => text.parse().map(Moment::Time),
        }
    }
}

impl Moment {
    /// From when to when it lasts: a time has no length.
    pub(crate) fn resolve(self, trace: &Trace) -> anyhow::Result<(Timestamp, Timestamp)> {
        match self {
            Moment::Time(time) => {
                let time = time.resolve(trace.span());
                Ok((time, time))
            }
            Moment::Row(row) => {
                let times = row.find(trace, |found| (found.event.start, found.event.end))?;
                if !times.0.is_some() {
                    bail!("this row has no time");
                }
                Ok((times.0, times.1.max(times.0)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_moments_are_read() {
        let row = RowRef {
            kind: EventKind::Kernel,
            row: 9094,
        };
        assert_eq!("kernels:9094".parse(), Ok(row));
        assert_eq!("kernel:9094".parse(), Ok(row));
        assert_eq!("kernels:9094".parse(), Ok(Moment::Row(row)));
        assert_eq!(
            "api_calls:7".parse::<RowRef>().map(|row| row.kind),
            Ok(EventKind::ApiCall)
        );
        assert_eq!("2s".parse(), Ok(Moment::Time(TimeArg::Offset(2_000_000_000))));
        for wrong in [
            "kernels",
            "kernels:",
            "kernels:x",
            "nothing:3",
            ":3",
            "kernels:-1",
        ] {
            assert!(wrong.parse::<RowRef>().is_err(), "{wrong}");
        }
    }
}
