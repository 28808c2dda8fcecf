//! Ranges within ranges and operators within operators: each level has a row of its own, or the inner ones could not be seen.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::{RowKey, ThreadRole};

/// Whether ranges and operators within others have rows of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nesting {
    /// A thread has one row for all of them.
    #[default]
    Together,
    /// A thread has a row for each level.
    ByDepth,
}

/// Levels that have rows of their own. Deeper ones are in the last.
const MOST_DEPTH: usize = 32;

/// Spans whose level a picture keeps. Where ranges only nest, there are none.
const MOST_KEPT: usize = 1 << 20;

/// When the last span of each level of a thread ends. A span is in the first level that is free when it starts.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenSpans {
    ends: Vec<u64>,
    /// Spans whose level is known, the next one last.
    known: Vec<KeptLevel>,
}

/// A span whose level does not follow from the spans that are open with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KeptLevel {
    start: u64,
    end: u64,
    depth: u8,
}

impl KeptLevel {
    /// The order in which spans come.
    fn order(&self) -> (u64, Reverse<u64>) {
        (self.start, Reverse(self.end))
    }
}

/// The level of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpanLevel {
    pub(super) depth: u8,
    /// Whether it follows from the spans that are open at any later moment of this one. It does unless a span of a lower
    /// level ends earlier: ranges that overlap and do not nest.
    pub(super) follows: bool,
}

impl OpenSpans {
    /// The level of the next span. Spans come in the order of their start, and of equal ones the longest first.
    pub(super) fn level(&mut self, start: u64, end: u64) -> SpanLevel {
        let order = (start, Reverse(end));
        while self.known.last().is_some_and(|kept| kept.order() < order) {
            self.known.pop();
        }
        let depth = match self.known.pop_if(|kept| kept.order() == order) {
            Some(kept) => usize::from(kept.depth),
            None => {
                let free = self.ends.iter().position(|until| *until <= start);
                free.unwrap_or(self.ends.len()).min(MOST_DEPTH - 1)
            }
        };
        if depth >= self.ends.len() {
            self.ends.resize(depth + 1, 0);
        }
        self.ends[depth] = self.ends[depth].max(end);
        SpanLevel {
            depth: depth as u8,
            follows: self.ends[..depth].iter().all(|until| *until >= end),
        }
    }
}

/// Levels that a reader who begins in the midst of a trace cannot work out. With them, a span has the same level wherever
/// the reader begins, if that is where a cell of the picture does.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptLevels {
    rows: FxHashMap<RowKey, Vec<KeptLevel>>,
    count: usize,
}

impl KeptLevels {
    /// Keeps the level of a span of a row, where the row is that of the whole thread. Spans come in their order.
    pub(super) fn keep(&mut self, key: RowKey, (start, end): (u64, u64), depth: u8) {
        if self.count < MOST_KEPT {
            self.count += 1;
            let row = self.rows.entry(key).or_default();
            row.push(KeptLevel { start, end, depth });
        }
    }

    /// Those of spans that are open at a moment.
    pub(super) fn open_at(&self, moment: u64) -> Self {
        let of_row = |(key, kept): (&RowKey, &Vec<KeptLevel>)| {
            let earlier = &kept[..kept.partition_point(|span| span.start < moment)];
            let open: Vec<KeptLevel> = earlier
                .iter()
                .filter(|span| span.end >= moment)
                .copied()
                .collect();
            (!open.is_empty()).then_some((*key, open))
        };
        let rows: FxHashMap<_, _> = self.rows.iter().filter_map(of_row).collect();
        let count = rows.values().map(Vec::len).sum();
        KeptLevels { rows, count }
    }

    /// What a thread has open before its first span is read.
    pub(super) fn open_spans(&self, key: RowKey) -> OpenSpans {
        let known = self.rows.get(&key).into_iter().flatten().rev();
        OpenSpans {
            ends: Vec::new(),
            known: known.copied().collect(),
        }
    }
}

/// The open spans of all threads.
#[derive(Debug, Default)]
pub(super) struct OpenRows {
    rows: FxHashMap<RowKey, OpenSpans>,
    known: KeptLevels,
}

impl OpenRows {
    /// Of a reader who begins at a moment.
    pub(super) fn begin(kept: &KeptLevels, moment: u64) -> Self {
        OpenRows {
            rows: FxHashMap::default(),
            known: kept.open_at(moment),
        }
    }

    /// The key of the row that the next span is in.
    pub(super) fn key(&mut self, key: RowKey, start: u64, end: u64) -> RowKey {
        if !key.nests() {
            return key;
        }
        let open = self.rows.entry(key);
        let open = open.or_insert_with(|| self.known.open_spans(key));
        key.at_depth(open.level(start, end).depth)
    }
}

impl RowKey {
    /// Whether events of this row can be within each other.
    pub(super) fn nests(self) -> bool {
        matches!(
            self,
            Self::Thread {
                role: ThreadRole::Markers | ThreadRole::Host,
                ..
            }
        )
    }

    /// The row of the same thread at another level.
    pub(super) fn at_depth(self, depth: u8) -> Self {
        match self {
            Self::Thread {
                process,
                thread,
                role,
                ..
            } => Self::Thread {
                process,
                thread,
                role,
                depth,
            },
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depths(open: &mut OpenSpans, spans: &[(u64, u64)]) -> Vec<u8> {
        let levels = spans.iter().map(|(start, end)| open.level(*start, *end).depth);
        levels.collect()
    }

    #[test]
    fn levels_follow_from_what_is_open() {
        let spans = [
            (0, 100),
            (0, 40),
            (10, 20),
            (20, 20),
            (30, 40),
            (40, 90),
            (95, 120),
            (110, 115),
            (130, 140),
        ];
        let mut open = OpenSpans::default();
        assert_eq!(depths(&mut open, &spans), [0, 1, 2, 2, 2, 1, 1, 0, 0]);
        let mut deep = OpenSpans::default();
        let last = (0..100).map(|at| deep.level(at, 1_000 - at).depth).last();
        assert_eq!((last, deep.ends.len()), (Some(31), 32));
    }

    #[test]
    fn ranges_that_overlap_take_the_levels_that_are_free() {
        let mut open = OpenSpans::default();
        let spans: Vec<(u64, u64)> = (0..1_000).map(|at| (at * 10, at * 10 + 15)).collect();
        let expected: Vec<u8> = (0..1_000).map(|at| (at % 2) as u8).collect();
        assert_eq!(depths(&mut open, &spans), expected);
        assert_eq!(open.ends.len(), 2);
    }

    #[test]
    fn levels_are_the_same_wherever_a_reader_begins() {
        // Lengths that nest, overlap, are equal and are none.
        let mut spans: Vec<(u64, u64)> = (0..600_u64)
            .map(|at| {
                let start = at * 7 % 1_999;
                (start, start + [0, 3, 40, 41, 200, 11, 90][at as usize % 7])
            })
            .collect();
        spans.sort_by_key(|(start, end)| (*start, Reverse(*end)));
        let key = RowKey::Thread {
            process: tracesmith_format::ProcessId(1),
            thread: tracesmith_format::ThreadId(1),
            role: ThreadRole::Markers,
            depth: 0,
        };
        let (mut open, mut kept) = (OpenSpans::default(), KeptLevels::default());
        let mut whole = Vec::new();
        for (start, end) in &spans {
            let level = open.level(*start, *end);
            if !level.follows {
                kept.keep(key, (*start, *end), level.depth);
            }
            whole.push(level.depth);
        }
        assert!(kept.count > 0 && kept.count < spans.len());
        for moment in 0..2_200 {
            let mut rows = OpenRows::begin(&kept, moment);
            for ((start, end), depth) in spans.iter().zip(&whole) {
                if *end >= moment {
                    assert_eq!(rows.key(key, *start, *end), key.at_depth(*depth), "from {moment}");
                }
            }
        }
    }
}
