//! Nested spans of threads, such as operators and ranges: which one a thread was in at a time.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use tracesmith_format::{ProcessId, StringId, ThreadId};

use super::calls::HostThread;

/// Start, end and name.
type Span = (u64, u64, StringId);

/// The spans of each thread, as they were read.
#[derive(Debug, Default)]
pub(crate) struct HostSpans(FxHashMap<(ProcessId, ThreadId), Vec<Span>>);

impl HostSpans {
    /// Adds a span. One without a start or with its end before its start is left out.
    pub(crate) fn push(&mut self, thread: (ProcessId, ThreadId), span: Span) {
        if span.0 != 0 && span.1 >= span.0 {
            self.0.entry(thread).or_default().push(span);
        }
    }

    /// At each time the span that started last.
    pub(crate) fn innermost(self, threads: &[HostThread]) -> NestedSpans {
        self.changes(threads, innermost)
    }

    /// At each time the span that is in no other.
    pub(crate) fn outermost(self, threads: &[HostThread]) -> NestedSpans {
        self.changes(threads, outermost)
    }

    fn changes(mut self, threads: &[HostThread], changes: fn(Vec<Span>) -> Vec<Change>) -> NestedSpans {
        let of_thread = |thread: &HostThread| {
            let mut spans = self
                .0
                .remove(&(thread.process, thread.thread))
                .unwrap_or_default();
            spans.sort_unstable_by_key(|(start, end, name)| (*start, Reverse(*end), *name));
            changes(spans)
        };
        NestedSpans(threads.iter().map(of_thread).collect())
    }
}

/// From this time on, a thread is in the span of this name, or in none.
type Change = (u64, StringId);

/// For each thread of the calls, the span that it was in at each time.
#[derive(Debug, Default)]
pub(crate) struct NestedSpans(Vec<Vec<Change>>);

impl NestedSpans {
    /// The names of the spans that a thread was in from one time to another, each with its time.
    pub(crate) fn within(&self, thread: usize, from: u64, to: u64, take: &mut dyn FnMut(StringId, u64)) {
        let changes = &self.0[thread];
        let mut at = changes
            .partition_point(|(time, _)| *time <= from)
            .saturating_sub(1);
        while let Some((start, name)) = changes.get(at)
            && *start < to
        {
            let end = changes.get(at + 1).map_or(to, |(next, _)| (*next).min(to));
            let start = (*start).max(from);
            if name.is_some() && end > start {
                take(*name, end - start);
            }
            at += 1;
        }
    }
}

impl NestedSpans {
    /// The span that a thread was in at a time.
    pub(crate) fn at(&self, thread: usize, time: u64) -> Option<StringId> {
        let changes = &self.0[thread];
        let next = changes.partition_point(|(start, _)| *start <= time);
        let (_, name) = changes.get(next.checked_sub(1)?)?;
        name.is_some().then_some(*name)
    }
}

fn outermost(spans: Vec<Span>) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut until = 0;
    for (start, end, name) in spans {
        if start >= until {
            close(&mut changes, until, start);
            changes.push((start, name));
            until = end;
        } else if end > until {
            // Spans that overlap without being nested: each moment counts for the one that started first.
            changes.push((until, name));
            until = end;
        }
    }
    close(&mut changes, until, u64::MAX);
    changes
}

/// Ends the last span if the next one starts later.
fn close(changes: &mut Vec<Change>, until: u64, next: u64) {
    if !changes.is_empty() && until < next {
        changes.push((until, StringId::NONE));
    }
}

fn innermost(spans: Vec<Span>) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    let mut push = |time: u64, name: StringId| match changes.last_mut() {
        Some(last) if last.0 >= time => last.1 = name,
        _ => changes.push((time, name)),
    };
    let mut open: Vec<(u64, StringId)> = Vec::new();
    let leave = |open: &mut Vec<(u64, StringId)>, time: u64, push: &mut dyn FnMut(u64, StringId)| {
        while let Some((end, _)) = open.last().copied().filter(|(end, _)| *end <= time) {
            // One further down that is over too is removed when it becomes the last.
            while open.last().is_some_and(|(other, _)| *other <= end) {
                open.pop();
            }
            push(end, open.last().map_or(StringId::NONE, |(_, name)| *name));
        }
    };
    for (start, end, name) in spans {
        leave(&mut open, start, &mut push);
        open.push((end, name));
        push(start, name);
    }
    leave(&mut open, u64::MAX, &mut push);
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(changes: Vec<Change>, from: u64, to: u64) -> Vec<(u32, u64)> {
        let mut found = Vec::new();
        NestedSpans(vec![changes]).within(0, from, to, &mut |name, nanos| found.push((name.0, nanos)));
        found
    }

    fn nested() -> Vec<Span> {
        // 1 holds 2, which holds 3; then 4 alone.
        vec![
            (10, 100, StringId(1)),
            (20, 60, StringId(2)),
            (30, 40, StringId(3)),
            (120, 130, StringId(4)),
        ]
    }

    #[test]
    fn the_innermost_span_counts() {
        let changes = innermost(nested());
        assert_eq!(
            found(changes.clone(), 0, 200),
            [(1, 10), (2, 10), (3, 10), (2, 20), (1, 40), (4, 10)]
        );
        assert_eq!(found(changes.clone(), 35, 50), [(3, 5), (2, 10)]);
        assert_eq!(found(changes.clone(), 100, 120), []);
        let spans = NestedSpans(vec![changes]);
        let at = |time| spans.at(0, time).map(|name| name.0);
        assert_eq!(
            [5, 35, 40, 99, 100, 120, 130].map(at),
            [None, Some(3), Some(2), Some(1), None, Some(4), None]
        );
    }

    #[test]
    fn the_outermost_span_counts() {
        let changes = outermost(nested());
        assert_eq!(found(changes.clone(), 0, 200), [(1, 90), (4, 10)]);
        assert_eq!(found(changes, 90, 125), [(1, 10), (4, 5)]);
    }

    #[test]
    fn spans_that_touch_or_are_empty_are_no_problem() {
        let spans = vec![
            (10, 20, StringId(1)),
            (20, 20, StringId(2)),
            (20, 30, StringId(3)),
        ];
        assert_eq!(found(innermost(spans.clone()), 0, 50), [(1, 10), (3, 10)]);
        assert_eq!(found(outermost(spans), 0, 50), [(1, 10), (3, 10)]);
    }

    proptest! {
        /// Also of spans that are not nested.
        #[test]
        fn each_moment_in_a_span_counts_once(
            spans in prop::collection::vec((1u64..100, 0u64..60, 1u32..5), 0..20),
            from in 0u64..120,
            length in 0u64..80,
        ) {
            let mut spans: Vec<Span> = spans.into_iter().map(|(start, length, name)| (start, start + length, StringId(name))).collect();
            spans.sort_unstable_by_key(|(start, end, name)| (*start, Reverse(*end), *name));
            let covered = (from..from + length)
                .filter(|time| spans.iter().any(|(start, end, _)| start <= time && time < end))
                .count() as u64;
            for changes in [innermost(spans.clone()), outermost(spans.clone())] {
                let total: u64 = found(changes, from, from + length).iter().map(|(_, nanos)| nanos).sum();
                prop_assert_eq!(total, covered);
            }
        }
    }
}
