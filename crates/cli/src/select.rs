//! What options of several commands select: time ranges, steps, GPUs, processes, ranks and single rows.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, bail};
use tracesmith_format::{DeviceId, ProcessId, StreamId, Timestamp};
use tracesmith_trace::analysis::Analysis;
use tracesmith_trace::{EventKind, Found, Selection, TimeRange, Trace};

use crate::args::{SelectArgs, TimeRangeArgs};
use crate::time_arg::{TimeArg, time_range};

/// The selected time range, or that of the selected step. Steps are those of the selected processes.
pub(crate) fn range_of(
    stretch: &TimeRangeArgs,
    selection: &Selection,
    trace: &Arc<Trace>,
) -> anyhow::Result<TimeRange> {
    let Some(step) = stretch.step else {
        return time_range(stretch.from, stretch.to, trace.span());
    };
    let window = Analysis::selected_step(trace, step, selection)?.activity.window;
    Ok(TimeRange {
        from: window.from.map(Timestamp),
        to: window.to.map(Timestamp),
    })
}

/// The selected processes, GPUs and streams. Each must be in the trace.
pub(crate) fn selection(args: &SelectArgs, trace: &Trace) -> anyhow::Result<Selection> {
    Ok(Selection {
        processes: processes(&args.process, &args.rank, trace)?,
        devices: devices(&args.device, trace)?,
        streams: streams(&args.stream, trace)?,
    })
}

/// The streams that a user names. `None` if none is named.
fn streams(wanted: &[u64], trace: &Trace) -> anyhow::Result<Option<Vec<StreamId>>> {
    if wanted.is_empty() {
        return Ok(None);
    }
    let mut known: BTreeSet<u64> = trace.streams.iter().map(|stream| stream.stream.0).collect();
    if !wanted.iter().all(|stream| known.contains(stream)) {
        // Not every trace describes its streams.
        known.extend(trace.work_places()?.iter().map(|place| place.stream.0));
    }
    if let Some(missing) = wanted.iter().find(|stream| !known.contains(stream)) {
        let known = known.iter().map(ToString::to_string);
        bail!(
            "the trace has no stream {missing}; {}",
            there_are("stream", known)
        );
    }
    Ok(Some(wanted.iter().copied().map(StreamId).collect()))
}

/// The GPUs that a user names: the driver's index, `HOST:INDEX` or `#ID`. `None` if none is named.
fn devices(wanted: &[String], trace: &Trace) -> anyhow::Result<Option<Vec<DeviceId>>> {
    if wanted.is_empty() {
        return Ok(None);
    }
    let mut ids = Vec::new();
    for text in wanted {
        let before = ids.len();
        if let Some(id) = text.strip_prefix('#') {
            let id = id.parse();
            let id = DeviceId(id.with_context(|| format!("reading the device id {text}"))?);
            if trace.device(id).is_none() {
                let known = trace.devices.iter().map(|device| format!("#{}", device.id.0));
                bail!("the trace has no GPU {text}; {}", there_are("GPU", known));
            }
            ids.push(id);
            continue;
        }
        let (host, ordinal) = match text.rsplit_once(':') {
            Some((host, ordinal)) => (Some(host), ordinal),
            None => (None, text.as_str()),
        };
        let ordinal: u32 = ordinal
            .parse()
            .with_context(|| format!("reading the GPU number {text}"))?;
        let is_on_host = |device: &&tracesmith_format::tables::Device| {
            host.is_none_or(|name| {
                let host = trace.host(device.host);
                host.is_some_and(|host| trace.string(host.name) == name)
            })
        };
        let devices = trace.devices.iter().filter(|device| device.ordinal == ordinal);
        ids.extend(devices.filter(is_on_host).map(|device| device.id));
        if ids.len() == before {
            let known = trace.devices.iter().map(|device| device.ordinal.to_string());
            bail!("the trace has no GPU {text}; {}", there_are("GPU", known));
        }
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(Some(ids))
}

/// The processes that a user names, by PID, `#ID` or rank. `None` if none is named: all are selected.
fn processes(wanted: &[String], ranks: &[u32], trace: &Trace) -> anyhow::Result<Option<Vec<ProcessId>>> {
    if wanted.is_empty() && ranks.is_empty() {
        return Ok(None);
    }
    let mut ids = Vec::new();
    for text in wanted {
        if let Some(id) = text.strip_prefix('#') {
            let id = id.parse();
            let id = ProcessId(id.with_context(|| format!("reading the process id {text}"))?);
            if trace.process(id).is_none() {
                let known = trace.processes.iter().map(|process| format!("#{}", process.id.0));
                bail!("the trace has no process {text}; {}", there_are("process", known));
            }
            ids.push(id);
            continue;
        }
        let pid: u32 = text.parse().with_context(|| format!("reading the pid {text}"))?;
        let processes = trace.processes.iter().filter(|process| process.pid == pid);
        let before = ids.len();
        ids.extend(processes.map(|process| process.id));
        if ids.len() == before {
            let known = trace.processes.iter().map(|process| process.pid.to_string());
            bail!("the trace has no process {text}; {}", there_are("process", known));
        }
    }
    for rank in ranks {
        let processes = trace.processes.iter();
        let before = ids.len();
        ids.extend(
            processes
                .filter(|process| process.rank.get() == Some(*rank))
                .map(|process| process.id),
        );
        if ids.len() == before {
            let known = trace.processes.iter().filter_map(|process| process.rank.get());
            let known = known.map(|rank| rank.to_string());
            bail!("the trace has no rank {rank}; {}", there_are("rank", known));
        }
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(Some(ids))
}

/// Lists what can be selected instead.
fn there_are(what: &str, known: impl Iterator<Item = String>) -> String {
    const SHOWN: usize = 10;
    let mut known: Vec<String> = known.collect();
    known.sort_by_key(|text| (text.len(), text.clone()));
    known.dedup();
    match known.len() {
        0 => format!("it has no {what} with a number"),
        1..=SHOWN => format!("it has {what} {}", known.join(", ")),
        count => format!("it has {count}, from {what} {} to {}", known[0], known[count - 1]),
    }
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

    #[test]
    fn what_can_be_selected_is_listed() {
        let list = |numbers: &[u32]| there_are("rank", numbers.iter().map(ToString::to_string));
        assert_eq!(list(&[]), "it has no rank with a number");
        assert_eq!(list(&[3, 0, 3]), "it has rank 0, 3");
        let many: Vec<u32> = (0..64).collect();
        assert_eq!(list(&many), "it has 64, from rank 0 to 63");
    }
}
