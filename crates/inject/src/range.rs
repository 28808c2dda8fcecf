//! When to record within a window: always, or while the program is within a
//! range, or within some of them.

use tracesmith_wire::control::{CaptureRange, Settings, Steps};

/// The name of an NVTX range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MarkerName {
    /// Its text.
    pub(crate) name: Vec<u8>,
    /// Its domain. Without one, ranges of any domain match.
    pub(crate) domain: Option<Vec<u8>>,
}

/// A range began or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RangeEdge {
    /// It began.
    Begin,
    /// It ended.
    End,
}

/// Counts ranges and decides whether to record.
#[derive(Debug)]
pub(crate) struct Range {
    wanted: CaptureRange,
    steps: Option<Steps>,
    begun: u64,
    ended: u64,
}

impl Range {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            wanted: settings.range.clone(),
            steps: settings.steps,
            begun: 0,
            ended: 0,
        }
    }

    /// Whether recording begins with the window.
    pub(crate) fn starts_open(&self) -> bool {
        self.wanted == CaptureRange::Everything
    }

    /// Whether the collector, or the program itself, says when ranges begin and end.
    pub(crate) fn takes_orders(&self) -> bool {
        self.wanted == CaptureRange::Order
    }

    /// The NVTX range to look for, if an NVTX range opens the recording.
    pub(crate) fn marker(&self) -> Option<MarkerName> {
        match &self.wanted {
            CaptureRange::Marker { name, domain } => Some(MarkerName {
                name: name.clone().into_bytes(),
                domain: domain.clone().map(String::into_bytes),
            }),
            CaptureRange::Everything
            | CaptureRange::ProfilerApi
            | CaptureRange::Launch { .. }
            | CaptureRange::Order => None,
        }
    }

    /// Counts an edge, and returns whether to record from now on. With steps,
    /// recording continues between the ranges, from the first selected one to the
    /// last.
    ///
    /// Ordered ranges do not nest: the next edge makes up for one that was missed.
    pub(crate) fn count_edge(&mut self, edge: RangeEdge) -> bool {
        match edge {
            RangeEdge::Begin if self.takes_orders() && self.begun > self.ended => {}
            RangeEdge::Begin => self.begun += 1,
            // A range that was open before the window is not counted.
            RangeEdge::End => self.ended = (self.ended + 1).min(self.begun),
        }
        match self.steps {
            None => self.begun > self.ended,
            Some(steps) => self.begun > steps.first && self.ended < steps.last,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(steps: Option<Steps>) -> Range {
        range_of(CaptureRange::ProfilerApi, steps)
    }

    fn range_of(wanted: CaptureRange, steps: Option<Steps>) -> Range {
        Range {
            wanted,
            steps,
            begun: 0,
            ended: 0,
        }
    }

    #[test]
    fn a_range_is_recorded_while_it_is_open() {
        let mut range = range(None);
        assert!(!range.count_edge(RangeEdge::End), "its beginning was not seen");
        assert!(range.count_edge(RangeEdge::Begin));
        assert!(range.count_edge(RangeEdge::Begin), "nested");
        assert!(range.count_edge(RangeEdge::End));
        assert!(!range.count_edge(RangeEdge::End));
        assert!(range.count_edge(RangeEdge::Begin), "and again");
    }

    #[test]
    fn an_ordered_range_ends_although_the_end_of_an_earlier_one_was_missed() {
        let mut range = range_of(CaptureRange::Order, None);
        assert!(range.count_edge(RangeEdge::Begin));
        // Its end is missed.
        assert!(range.count_edge(RangeEdge::Begin));
        assert!(!range.count_edge(RangeEdge::End));
        assert!(!range.count_edge(RangeEdge::End), "its beginning was missed");
        assert!(range.count_edge(RangeEdge::Begin));
    }

    #[test]
    fn steps_are_recorded_from_the_first_to_the_last() {
        let mut range = range(Some(Steps { first: 1, last: 3 }));
        let mut recorded = Vec::new();
        for _ in 0..5 {
            recorded.push(range.count_edge(RangeEdge::Begin));
            recorded.push(range.count_edge(RangeEdge::End));
        }
        assert_eq!(
            recorded,
            [false, false, true, true, true, false, false, false, false, false]
        );
    }
}
