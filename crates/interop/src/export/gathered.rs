//! Events by the row of a timeline that they belong to: a thread, or a stream.
//!
//! For formats that list a row's events one behind the other, where a trace holds them by table and time.

use std::ops::ControlFlow;

use tracesmith_format::{DeviceId, ProcessId, StreamId, ThreadId};
use tracesmith_trace::{Event, Found, Trace};

use crate::export::spill::Spill;
use crate::export::{ExportOptions, ExportReport};

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

    /// It as words, in the same order.
    pub(super) fn words(self) -> [u64; TRACK_WORDS] {
        match self {
            Track::Thread(process, thread) => [u64::from(process.0), 0, thread.0],
            Track::Stream(process, device, stream) => {
                [1 << 32 | u64::from(process.0), u64::from(device.0), stream.0]
            }
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

/// All events that `make` makes a row of, behind their track (see [`Track::words`]), their start, what is left of time
/// behind their end and how many came before: in the order of their start, and of those that start together the longest
/// comes first. Others are counted as left out.
pub(super) fn spilled<const N: usize>(
    trace: &Trace,
    options: &ExportOptions,
    mut make: impl FnMut(&Found<'_>, [u64; PLACE_WORDS]) -> Option<[u64; N]>,
) -> (Spill<N>, ExportReport) {
    let mut spill = Spill::default();
    let mut report = ExportReport::default();
    trace.for_each_event(
        options.query().with_progress(options.progress.as_ref()),
        |found| {
            let event = &found.event;
            if !options.wants_stream(event.stream) {
                return ControlFlow::Continue(());
            }
            if !event.start.is_some() {
                report.without_time += 1;
                return ControlFlow::Continue(());
            }
            let [owner, device, row] = Track::of(event).words();
            // An event whose end is not known takes no time.
            let end = event.end.0.max(event.start.0);
            let place = [owner, device, row, event.start.0, !end, report.events];
            if let Some(words) = make(found, place) {
                report.events += 1;
                spill.push(words);
            } else {
                report.left_out += 1;
            }
            ControlFlow::Continue(())
        },
    );
    (spill, report)
}

/// The words of a row before those of what it says.
pub(super) const PLACE_WORDS: usize = TRACK_WORDS + 3;
pub(super) const TRACK_WORDS: usize = 3;

/// The track that a row is of.
pub(super) fn track_of<const N: usize>(row: &[u64; N]) -> Track {
    let [first, device, last, ..] = row[..] else {
        unreachable!("rows have places")
    };
    let process = ProcessId(first as u32);
    match first >> 32 {
        0 => Track::Thread(process, ThreadId(last)),
        _ => Track::Stream(process, DeviceId(device as u32), StreamId(last)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_track_is_its_words() {
        let tracks = [
            Track::Thread(ProcessId(0), ThreadId(0)),
            Track::Thread(ProcessId(0), ThreadId(u64::MAX)),
            Track::Thread(ProcessId(u32::MAX), ThreadId(1)),
            Track::Stream(ProcessId(0), DeviceId(0), StreamId(0)),
            Track::Stream(ProcessId(7), DeviceId(0), StreamId(u64::MAX)),
            Track::Stream(ProcessId(7), DeviceId(u32::MAX), StreamId(1)),
        ];
        let words = tracks.map(Track::words);
        assert!(words.is_sorted() && tracks.is_sorted());
        assert_eq!(words.map(|words| track_of(&words)), tracks);
    }
}
