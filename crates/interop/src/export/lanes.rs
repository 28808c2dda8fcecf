//! Lanes: rows of a track on which events do not get into each other's way.
//!
//! Readers of trace-event JSON draw the events of one thread as a stack of boxes and drop an event that begins inside
//! another and ends behind it. Events come here in the order of their start; each gets the first lane where it fits. What is
//! kept is the ends of the events that are still running, so that memory follows how many run at once.

use std::cmp::Reverse;

/// Lanes of one track; with more at once, the rest is left without one.
pub(super) const MAX_LANES: usize = 64;

/// What events of one lane may be to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overlap {
    /// One may lie inside another, as calls do.
    Nested,
    /// None at all: device work beside other device work is not part of it.
    Apart,
}

/// The lanes of one track.
#[derive(Debug)]
pub(super) struct Lanes {
    overlap: Overlap,
    /// For each lane, the ends of what runs, the innermost last.
    running: Vec<Vec<u64>>,
}

impl Lanes {
    pub(super) fn new(overlap: Overlap) -> Self {
        Lanes {
            overlap,
            running: Vec::new(),
        }
    }

    /// The lane of an event that does not start before the one that came last; none when there are too many.
    pub(super) fn place(&mut self, start: u64, end: u64) -> Option<usize> {
        for (lane, running) in self.running.iter_mut().enumerate() {
            while running.last().is_some_and(|last| *last <= start) {
                running.pop();
            }
            let fits = match running.last() {
                None => true,
                Some(last) => self.overlap == Overlap::Nested && *last >= end,
            };
            if fits {
                running.push(end);
                return Some(lane);
            }
        }
        if self.running.len() == MAX_LANES {
            return None;
        }
        self.running.push(vec![end]);
        Some(self.running.len() - 1)
    }
}

/// The order in which events must come: by start, and of several that start together the longest first, as it may hold
/// the others.
pub(super) fn order(start: u64, end: u64) -> (u64, Reverse<u64>) {
    (start, Reverse(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lanes(overlap: Overlap, events: &[(u64, u64)]) -> Vec<Option<usize>> {
        let mut lanes = Lanes::new(overlap);
        events
            .iter()
            .map(|(start, end)| lanes.place(*start, *end))
            .collect()
    }

    #[test]
    fn calls_nest_and_kernels_do_not() {
        let events = [(0, 10), (0, 4), (4, 10), (5, 12), (10, 11), (12, 12)];
        let nested = lanes(Overlap::Nested, &events);
        assert_eq!(
            nested,
            [Some(0), Some(0), Some(0), Some(1), Some(0), Some(0)],
            "only what crosses an end moves away"
        );
        let apart = lanes(Overlap::Apart, &events);
        assert_eq!(apart, [Some(0), Some(1), Some(1), Some(2), Some(0), Some(0)]);
    }

    #[test]
    fn more_at_once_than_lanes_are_left_without_one() {
        let events: Vec<(u64, u64)> = (0..100).map(|at| (at, 1_000 + at)).collect();
        let placed = lanes(Overlap::Nested, &events);
        assert_eq!(placed.iter().flatten().count(), MAX_LANES);
    }

    proptest! {
        #[test]
        fn no_two_events_of_a_lane_cross(mut events in prop::collection::vec((0_u64..50, 0_u64..20), 0..200)) {
            for event in &mut events {
                event.1 += event.0;
            }
            events.sort_by_key(|(start, end)| order(*start, *end));
            for overlap in [Overlap::Nested, Overlap::Apart] {
                let placed = lanes(overlap, &events);
                for (at, a) in events.iter().enumerate() {
                    for (later, b) in events.iter().enumerate().skip(at + 1) {
                        if placed[at].is_none() || placed[at] != placed[later] || b.0 >= a.1 {
                            continue;
                        }
                        prop_assert!(overlap == Overlap::Nested && b.1 <= a.1, "{a:?} {b:?}");
                    }
                }
            }
        }
    }
}
