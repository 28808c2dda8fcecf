//! Which items share a lane.
//!
//! Perfetto takes the end of a slice for the end of whatever began last on the same track, so nothing on a lane may cross
//! anything else there. Items come in the order of their start, and each gets the first lane where it fits.

use super::item::{Form, TrackKey};

/// Whether items of a track may lie within each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nesting {
    /// As calls on a thread do.
    Allowed,
    /// Work of a stream runs side by side: what overlaps gets a lane of its own.
    None,
}

/// Finds lanes for the items of one track.
pub(super) struct Layout {
    nesting: Nesting,
    lanes: Vec<Taken>,
}

/// What a lane holds so far.
#[derive(Default)]
struct Taken {
    /// When the latest item started: times on a lane never go back.
    last: u64,
    /// The ends of what is open, the outermost first.
    open: Vec<u64>,
}

impl Layout {
    pub(super) fn new(key: &TrackKey) -> Self {
        let nesting = match key {
            TrackKey::Stream(..) => Nesting::None,
            _ => Nesting::Allowed,
        };
        Layout {
            nesting,
            lanes: Vec::new(),
        }
    }

    /// Lanes so far.
    pub(super) fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// Forgets everything: a new file begins.
    pub(super) fn clear(&mut self) {
        self.lanes.clear();
    }

    /// The lane for an item. Items come in the order of their start; one that is late gets a lane where it is not.
    pub(super) fn place(&mut self, form: Form, start: u64, end: u64) -> usize {
        let lasts = matches!(form, Form::Slice | Form::Stage | Form::KernelStage);
        for (at, lane) in self.lanes.iter_mut().enumerate() {
            if lane.last > start {
                continue;
            }
            while lane.open.pop_if(|end| *end <= start).is_some() {}
            let fits = match (lane.open.last(), self.nesting) {
                _ if !lasts => true,
                (None, _) => true,
                (Some(outer), Nesting::Allowed) => end <= *outer,
                (Some(_), Nesting::None) => false,
            };
            if fits {
                lane.last = start;
                if lasts {
                    lane.open.push(end);
                }
                return at;
            }
        }
        let open = if lasts { vec![end] } else { Vec::new() };
        self.lanes.push(Taken { last: start, open });
        self.lanes.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use tracesmith_format::{ProcessId, ThreadId};

    use super::*;
    use crate::export::perfetto::item::{OPEN, StreamKey, StreamRole};

    fn lanes(key: TrackKey, slices: &[(u64, u64)]) -> Vec<usize> {
        let mut layout = Layout::new(&key);
        slices
            .iter()
            .map(|(start, end)| layout.place(Form::Slice, *start, *end))
            .collect()
    }

    #[test]
    fn what_crosses_on_a_thread_gets_a_lane_and_what_nests_does_not() {
        let key = TrackKey::Thread(ProcessId(1), ThreadId(1));
        let slices = [
            (0, 100),
            (10, 50),
            (20, 60),
            (50, 50),
            (60, 100),
            (100, 110),
            (100, OPEN),
            (120, 130),
        ];
        assert_eq!(lanes(key, &slices), [0, 0, 1, 0, 0, 0, 1, 0]);
    }

    #[test]
    fn what_overlaps_in_a_stream_gets_a_lane() {
        let stream = StreamKey {
            device: tracesmith_format::DeviceId(1),
            process: ProcessId(1),
            context: tracesmith_format::ContextId(1),
            stream: tracesmith_format::StreamId(7),
        };
        let slices = [(0, 10), (2, 5), (10, 20), (10, 10), (15, 30), (20, 25)];
        assert_eq!(
            lanes(TrackKey::Stream(stream, StreamRole::Work), &slices),
            [0, 1, 0, 1, 1, 0]
        );
    }
}
