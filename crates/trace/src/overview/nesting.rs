//! Ranges within ranges and operators within operators: each level has a row of its own, or the inner ones could not be seen.

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

/// The spans of a thread that are open, the outermost first: when each ends.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenSpans(Vec<u64>);

impl OpenSpans {
    /// The level of the next span. Spans come in the order of their start, and of equal ones the longest first.
    pub(super) fn depth(&mut self, start: u64, end: u64) -> u8 {
        while self.0.last().is_some_and(|until| *until <= start) {
            self.0.pop();
        }
        self.0.push(end);
        (self.0.len().min(MOST_DEPTH) - 1) as u8
    }
}

/// The open spans of all threads.
#[derive(Debug, Default)]
pub(super) struct OpenRows(FxHashMap<RowKey, OpenSpans>);

impl OpenRows {
    /// The key of the row that the next span is in.
    pub(super) fn key(&mut self, key: RowKey, start: u64, end: u64) -> RowKey {
        match key.nests() {
            true => key.at_depth(self.0.entry(key).or_default().depth(start, end)),
            false => key,
        }
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

    #[test]
    fn levels_follow_from_what_is_open() {
        let mut open = OpenSpans::default();
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
        let depths: Vec<u8> = spans
            .iter()
            .map(|(start, end)| open.depth(*start, *end))
            .collect();
        assert_eq!(depths, [0, 1, 2, 2, 2, 1, 1, 2, 0]);
        let mut deep = OpenSpans::default();
        let last = (0..100).map(|at| deep.depth(at, 1_000 - at)).last();
        assert_eq!(last, Some(31));
    }
}
