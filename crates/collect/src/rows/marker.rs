//! NVTX ranges: the start and the end become one row.
//!
//! Push/pop ranges nest within their thread and domain. Both ends arrive in order, in the thread's own ring.
//! Start/end ranges can use two threads, and their rings are read one after the other. So an end can arrive before
//! its start, and is stored until then.

use rustc_hash::FxHashMap;
use tracesmith_format::{
    StringId, Timestamp,
    tables::{HealthCause, Marker, MarkerKind, MarkerShape, PayloadKind},
};
use tracesmith_wire::record as wire;

use super::{Definitions, HOST_CLOCK, ProcessRows, RecordOutcome, TraceRows, definitions::readable};
use crate::health::Notice;

/// Limit for open ranges in a process. A program that never ends its ranges must not fill the collector's memory.
const MAX_OPEN: usize = 1 << 18;

/// Ranges of a process without an end so far.
#[derive(Debug, Default)]
pub(super) struct OpenMarkers {
    nested: FxHashMap<Nest, Nested>,
    free: FxHashMap<u64, Begun>,
    /// Ends that came before their starts, by range.
    early_ends: FxHashMap<u64, u64>,
    open: usize,
    /// Ends without a recorded start.
    ends_alone: u64,
    /// Ranges that were dropped because too many were open.
    refused: u64,
    categories: FxHashMap<(u32, u32), StringId>,
}

/// A thread and a domain, in which ranges nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Nest {
    thread: u32,
    domain: u32,
}

/// Open ranges of one thread and domain.
#[derive(Debug, Default)]
struct Nested {
    begun: Vec<Begun>,
    /// Dropped inner ranges. Their ends arrive first.
    refused: u64,
}

/// The start of a range.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Begun {
    time: u64,
    range: u64,
    payload: u64,
    thread: u32,
    detail: StringId,
    shape: MarkerShape,
}

impl OpenMarkers {
    fn push(&mut self, nest: Nest, begun: Begun) {
        if self.open >= MAX_OPEN {
            self.refused += 1;
            if let Some(nested) = self.nested.get_mut(&nest) {
                nested.refused += 1;
            }
            return;
        }
        self.open += 1;
        self.nested.entry(nest).or_default().begun.push(begun);
    }

    fn pop(&mut self, nest: Nest) -> Option<Begun> {
        let Some(nested) = self.nested.get_mut(&nest) else {
            self.ends_alone += 1;
            return None;
        };
        if nested.refused > 0 {
            nested.refused -= 1;
            return None;
        }
        let begun = nested.begun.pop();
        match begun {
            Some(_) => self.open -= 1,
            None => self.ends_alone += 1,
        }
        begun
    }

    /// Starts a start/end range. Returns its end if it has already arrived.
    fn start(&mut self, begun: Begun) -> Option<u64> {
        if let Some(end) = self.early_ends.remove(&begun.range) {
            self.open -= 1;
            return Some(end);
        }
        if self.open >= MAX_OPEN {
            self.refused += 1;
            return None;
        }
        if self.free.insert(begun.range, begun).is_none() {
            self.open += 1;
        }
        None
    }

    /// Ends a start/end range. Returns its start if it has already arrived.
    fn end(&mut self, range: u64, time: u64) -> Option<Begun> {
        let begun = self.free.remove(&range);
        match begun {
            Some(_) => self.open -= 1,
            None if self.open >= MAX_OPEN => self.ends_alone += 1,
            None => {
                if self.early_ends.insert(range, time).is_none() {
                    self.open += 1;
                }
            }
        }
        begun
    }

    /// All open ranges, in an order that does not depend on hashing.
    fn take_open(&mut self) -> Vec<(Begun, MarkerKind)> {
        let mut nested: Vec<_> = std::mem::take(&mut self.nested).into_iter().collect();
        nested.sort_unstable_by_key(|(nest, _)| *nest);
        let nested = nested.into_iter().flat_map(|(_, nested)| nested.begun);
        let mut free: Vec<_> = std::mem::take(&mut self.free).into_values().collect();
        free.sort_unstable_by_key(|begun| begun.range);
        let open = nested.map(|begun| (begun, MarkerKind::OPEN_NESTED_RANGE));
        open.chain(free.into_iter().map(|begun| (begun, MarkerKind::OPEN_FREE_RANGE)))
            .collect()
    }
}

impl ProcessRows {
    #[inline]
    pub(super) fn marker(
        &mut self,
        record: &wire::Marker,
        text: &[u8],
        definitions: Definitions,
        trace: &mut TraceRows,
    ) -> RecordOutcome {
        self.saw(record.time);
        let nest = Nest {
            thread: record.thread,
            domain: record.domain,
        };
        match record.phase {
            wire::POP => {
                if let Some(begun) = self.markers.pop(nest) {
                    self.push_marker(begun, record.time, MarkerKind::NESTED_RANGE, trace);
                }
                RecordOutcome::Done
            }
            wire::END => {
                if let Some(begun) = self.markers.end(record.range, record.time) {
                    self.push_marker(begun, record.time, MarkerKind::FREE_RANGE, trace);
                }
                RecordOutcome::Done
            }
            wire::MARK | wire::PUSH | wire::START => {
                let Some(begun) = self.begun(record, text, definitions, trace) else {
                    return RecordOutcome::NeedsDefinitions;
                };
                match record.phase {
                    wire::MARK => self.push_marker(begun, record.time, MarkerKind::INSTANT, trace),
                    wire::PUSH => self.markers.push(nest, begun),
                    _ => {
                        if let Some(end) = self.markers.start(begun) {
                            self.push_marker(begun, end, MarkerKind::FREE_RANGE, trace);
                        }
                    }
                }
                RecordOutcome::Done
            }
            _ => {
                self.count_unknown();
                RecordOutcome::Done
            }
        }
    }

    fn begun(
        &mut self,
        record: &wire::Marker,
        text: &[u8],
        definitions: Definitions,
        trace: &mut TraceRows,
    ) -> Option<Begun> {
        let domain = self.string(record.domain, definitions)?;
        let name = match record.name {
            0 => trace.file.string(&readable(text)),
            registered => self.string(registered, definitions)?,
        };
        let detail = if record.flags & wire::TEXT_CUT != 0 {
            trace.file.string("text cut")
        } else {
            StringId::NONE
        };
        let category = (record.domain, record.category);
        Some(Begun {
            time: record.time,
            range: record.range,
            payload: record.payload,
            thread: record.thread,
            detail,
            shape: MarkerShape {
                name,
                domain,
                category: record.category,
                category_name: self
                    .markers
                    .categories
                    .get(&category)
                    .copied()
                    .unwrap_or_default(),
                color: record.color,
                payload_kind: PayloadKind(record.payload_kind),
                ..MarkerShape::default()
            },
        })
    }

    fn push_marker(&mut self, begun: Begun, end: u64, kind: MarkerKind, trace: &mut TraceRows) {
        let row = Marker {
            start: Timestamp(begun.time),
            end: Timestamp(end),
            range: begun.range,
            payload: begun.payload,
            detail: begun.detail,
            caller: self.caller(begun.thread, trace),
            shape: MarkerShape { kind, ..begun.shape },
            ..Marker::default()
        };
        trace.counts.markers += 1;
        trace.push(HOST_CLOCK, &row);
    }

    pub(super) fn category(&mut self, record: &wire::Category, name: &[u8], trace: &mut TraceRows) {
        let name = trace.file.string(&readable(name));
        self.markers
            .categories
            .insert((record.domain, record.category), name);
    }

    /// Writes ranges without an end. They end at the last known time of the process.
    pub(super) fn end_markers(&mut self, last_time: u64, trace: &mut TraceRows) {
        for (begun, kind) in self.markers.take_open() {
            self.push_marker(begun, last_time.max(begun.time), kind, trace);
        }
        let alone = self.markers.ends_alone + self.markers.early_ends.len() as u64;
        for (count, words) in [
            (alone, "ends of ranges that started before recording began"),
            (
                self.markers.refused,
                "ranges were dropped: too many were open at once",
            ),
        ] {
            if count > 0 {
                trace.note(Notice::new(HealthCause::OTHER, self.id, words).with_count(count));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn begun(time: u64, range: u64) -> Begun {
        Begun {
            time,
            range,
            payload: 0,
            thread: 1,
            detail: StringId::NONE,
            shape: MarkerShape::default(),
        }
    }

    /// What a thread does with its ranges: true pushes, false pops.
    fn steps() -> impl Strategy<Value = Vec<(u32, u32, bool)>> {
        prop::collection::vec((0..3u32, 0..2u32, any::<bool>()), 0..200)
    }

    proptest! {
        #[test]
        fn every_pop_ends_the_innermost_range_of_its_thread_and_domain(steps in steps()) {
            let mut open = OpenMarkers::default();
            let mut expected: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
            let mut alone = 0;
            for (time, (thread, domain, pushes)) in steps.into_iter().enumerate() {
                let (time, nest) = (time as u64, Nest { thread, domain });
                let stack = expected.entry((thread, domain)).or_default();
                if pushes {
                    stack.push(time);
                    open.push(nest, begun(time, 0));
                } else {
                    let popped = stack.pop();
                    alone += u64::from(popped.is_none());
                    prop_assert_eq!(open.pop(nest).map(|begun| begun.time), popped);
                }
            }
            prop_assert_eq!(open.ends_alone, alone);
            let left: usize = expected.values().map(Vec::len).sum();
            prop_assert_eq!(open.open, left);
            prop_assert_eq!(open.take_open().len(), left);
        }

        #[test]
        fn free_ranges_find_their_ends_in_any_order(
            order in Just((0..40u64).flat_map(|n| [(n, true), (n, false)]).collect::<Vec<_>>()).prop_shuffle(),
            known in 0..40u64,
        ) {
            let mut open = OpenMarkers::default();
            let mut pairs = 0;
            for (range, is_start) in order {
                let paired = if is_start {
                    open.start(begun(range, range)) == Some(range + 1000)
                } else if range < known {
                    open.end(range, range + 1000).is_some_and(|begun| begun.time == range)
                } else {
                    false
                };
                pairs += u64::from(paired);
            }
            prop_assert_eq!(pairs, known);
            prop_assert_eq!(open.free.len() as u64, 40 - known);
            prop_assert!(open.early_ends.is_empty());
            prop_assert_eq!(open.open as u64, 40 - known);
        }
    }

    #[test]
    fn too_many_open_ranges_are_counted_and_do_not_shift_the_others() {
        let mut open = OpenMarkers::default();
        let nest = Nest { thread: 1, domain: 0 };
        for time in 0..MAX_OPEN as u64 + 10 {
            open.push(nest, begun(time, 0));
        }
        assert_eq!(open.refused, 10);
        for _ in 0..10 {
            assert_eq!(open.pop(nest), None);
        }
        assert_eq!(open.pop(nest).unwrap().time, MAX_OPEN as u64 - 1);
    }
}
