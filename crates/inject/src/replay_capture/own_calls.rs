//! Driver calls that replay capture makes itself. Their records are not the program's.
//!
//! Such a call has the correlation of the runtime call that it is made in (H200, CUPTI 13.0). So a `cudaMemcpyAsync` of
//! the program and the copy that reads memory just before it have the same correlation, and only the time of a record
//! shows whose it is.

use std::collections::BTreeMap;

/// The calls of one window.
#[derive(Debug, Default)]
pub(super) struct OwnCalls(BTreeMap<u32, Vec<Span>>);

/// From the beginning of the first call that one callback makes to the end of its last one, on CUPTI's clock.
#[derive(Debug)]
struct Span {
    /// Which callback it is.
    callback: u64,
    start: u64,
    /// The largest number while a call is in progress.
    end: u64,
    creates_stream: bool,
}

impl OwnCalls {
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// A call begins.
    pub(super) fn begin(&mut self, correlation: u32, callback: u64, time: u64, creates_stream: bool) {
        let spans = self.0.entry(correlation).or_default();
        match spans.last_mut().filter(|span| span.callback == callback) {
            Some(span) => {
                span.end = u64::MAX;
                span.creates_stream |= creates_stream;
            }
            None => spans.push(Span {
                callback,
                start: time,
                end: u64::MAX,
                creates_stream,
            }),
        }
    }

    /// It ends.
    pub(super) fn end(&mut self, correlation: u32, callback: u64, time: u64) {
        let span = self.0.get_mut(&correlation).and_then(|spans| spans.last_mut());
        if let Some(span) = span.filter(|span| span.callback == callback) {
            span.end = time;
        }
    }

    /// Whether a record with this correlation and these times is of such a call. The capture waits for its own work, and
    /// reads memory before the program's call does its work: so the middle of a record is in the span of an own call only if
    /// it is of that call. CUPTI may have no times for a record; then the correlation decides.
    pub(super) fn holds(&self, correlation: u32, start: u64, end: u64) -> bool {
        let middle = start + end.saturating_sub(start) / 2;
        let has_times = start != 0 && end != 0;
        let spans = self.0.get(&correlation);
        spans.is_some_and(|spans| {
            !has_times || spans.iter().any(|span| (span.start..=span.end).contains(&middle))
        })
    }

    /// Whether one of the calls with this correlation created a stream.
    pub(super) fn created_stream(&self, correlation: u32) -> bool {
        let spans = self.0.get(&correlation);
        spans.is_some_and(|spans| spans.iter().any(|span| span.creates_stream))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_the_program_with_the_same_correlation_is_not_ours() {
        let mut calls = OwnCalls::default();
        // Two calls before the program's copy, and one after it.
        for (callback, start, end) in [(1, 100, 110), (1, 120, 150), (2, 300, 310)] {
            calls.begin(7, callback, start, false);
            calls.end(7, callback, end);
        }
        assert!(calls.holds(7, 105, 108));
        assert!(calls.holds(7, 111, 119), "a copy that the second call waits for");
        assert!(calls.holds(7, 302, 306));
        assert!(!calls.holds(7, 160, 240), "the program's");
        assert!(!calls.holds(8, 105, 108), "another call");
        assert!(calls.holds(7, 0, 0) && !calls.holds(8, 0, 0), "no times");
        calls.clear();
        assert!(!calls.holds(7, 105, 108));
    }

    #[test]
    fn a_record_that_arrives_before_its_call_ends_is_ours() {
        let mut calls = OwnCalls::default();
        calls.begin(7, 1, 100, false);
        assert!(calls.holds(7, 105, 108));
        assert!(!calls.holds(7, 90, 95));
    }

    #[test]
    fn only_calls_that_create_streams_have_streams() {
        let mut calls = OwnCalls::default();
        calls.begin(7, 1, 100, false);
        calls.end(7, 1, 110);
        assert!(!calls.created_stream(7), "the program created it");
        calls.begin(7, 1, 120, true);
        assert!(calls.created_stream(7));
    }
}
