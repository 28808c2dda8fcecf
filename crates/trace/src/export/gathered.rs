//! Events by the row of a timeline that they belong to: a thread, or a stream.
//!
//! For formats that list a row's events one behind the other. They are gathered in memory, since a trace holds them by
//! table and time.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use tracesmith_format::{DeviceId, ProcessId, StreamId, ThreadId};

use crate::export::{ExportOptions, ExportReport};
use crate::model::event::Event;
use crate::model::trace::Trace;
use crate::query::Found;

/// A row of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Track {
    /// What a thread did.
    Thread(ProcessId, ThreadId),
    /// What ran on a stream.
    Stream(ProcessId, DeviceId, StreamId),
}

impl Track {
    /// Where an event belongs.
    pub(super) fn of(event: &Event) -> Self {
        match event.stream {
            Some(stream) => Track::Stream(event.process, event.device, stream),
            None => Track::Thread(event.process, event.thread),
        }
    }

    /// The process it belongs to.
    pub(super) fn process(self) -> ProcessId {
        match self {
            Track::Thread(process, _) | Track::Stream(process, ..) => process,
        }
    }

    /// Its name, for people.
    pub(super) fn name(self, trace: &Trace) -> String {
        match self {
            Track::Thread(process, thread) => {
                let known = trace
                    .threads
                    .iter()
                    .find(|known| known.process == process && known.thread == thread);
                match known.map(|known| trace.string(known.name)) {
                    None | Some("") => format!("thread {}", thread.0),
                    Some(name) => format!("{name} (thread {})", thread.0),
                }
            }
            Track::Stream(_, device, stream) => match trace.device(device) {
                Some(device) => format!("GPU {} stream {}", device.ordinal, stream.0),
                None => format!("stream {}", stream.0),
            },
        }
    }
}

/// A process's name and number, for people.
pub(super) fn process_name(trace: &Trace, process: ProcessId) -> String {
    match trace.process(process) {
        Some(process) => format!("{} (pid {})", trace.string(process.name), process.pid)
            .trim_start()
            .to_owned(),
        None => format!("process {}", process.0),
    }
}

/// A stretch of a row, and what is said of it. An event whose end is not known takes no time.
pub(super) struct Stretch<T> {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) what: T,
}

/// All events that `make` makes something of, by their rows and in the order of their start; of those that start together
/// the longest comes first. Others are counted as left out.
pub(super) fn tracks<T>(
    trace: &Trace,
    options: &ExportOptions,
    mut make: impl FnMut(&Found<'_>) -> Option<T>,
) -> (BTreeMap<Track, Vec<Stretch<T>>>, ExportReport) {
    let mut tracks: BTreeMap<Track, Vec<Stretch<T>>> = BTreeMap::new();
    let mut report = ExportReport::default();
    trace.for_each_event(&options.query(), |found| {
        let event = &found.event;
        if !options.wants_stream(event.stream) {
            return ControlFlow::Continue(());
        }
        if !event.start.is_some() {
            report.without_time += 1;
        } else if let Some(what) = make(found) {
            report.events += 1;
            tracks.entry(Track::of(event)).or_default().push(Stretch {
                start: event.start.0,
                end: event.end.0.max(event.start.0),
                what,
            });
        } else {
            report.left_out += 1;
        }
        ControlFlow::Continue(())
    });
    for stretches in tracks.values_mut() {
        stretches.sort_by_key(|stretch| (stretch.start, Reverse(stretch.end)));
    }
    (tracks, report)
}

/// Spreads stretches over as few lanes as it takes for those of a lane to nest: each is within the one before, or
/// behind its end. Gives the lane of each.
pub(super) fn lanes<T>(stretches: &[Stretch<T>]) -> Vec<Vec<&Stretch<T>>> {
    let mut lanes: Vec<(Vec<&Stretch<T>>, Vec<u64>)> = Vec::new();
    for stretch in stretches {
        let fits = |open: &mut Vec<u64>| {
            while open.last().is_some_and(|end| *end <= stretch.start) {
                open.pop();
            }
            open.last().is_none_or(|end| *end >= stretch.end)
        };
        let at = lanes.iter_mut().position(|(_, open)| fits(open));
        let at = at.unwrap_or_else(|| {
            lanes.push((Vec::new(), Vec::new()));
            lanes.len() - 1
        });
        lanes[at].0.push(stretch);
        lanes[at].1.push(stretch.end);
    }
    lanes.into_iter().map(|(lane, _)| lane).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_without_nesting_gets_a_lane_of_its_own() {
        let stretch = |(start, end)| Stretch { start, end, what: () };
        let all = [(0, 10), (1, 5), (1, 1), (4, 8), (10, 12), (11, 20), (11, 12)].map(stretch);
        let spans: Vec<Vec<(u64, u64)>> = lanes(&all)
            .iter()
            .map(|lane| lane.iter().map(|stretch| (stretch.start, stretch.end)).collect())
            .collect();
        assert_eq!(
            spans,
            [
                vec![(0, 10), (1, 5), (1, 1), (10, 12), (11, 12)],
                vec![(4, 8), (11, 20)]
            ]
        );
    }
}
