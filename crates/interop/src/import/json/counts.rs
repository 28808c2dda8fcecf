//! Counts of what has no place, by its name, kept cheap for things that every event has.

use rustc_hash::FxHashMap;
use tracesmith_format::tables::HealthCause;

use crate::import::Builder;

/// Names that are counted apart; a file that has more of them gets one sum for the rest.
const NAMES: usize = 256;

/// Counts by name.
#[derive(Debug, Default)]
pub(super) struct Counts {
    skipped: FxHashMap<Box<str>, u64>,
    doubts: FxHashMap<(u8, &'static str), u64>,
    /// Places of Python functions in the profiler's own list, which nearly every such event states.
    pub(super) python_indices: u64,
}

impl Counts {
    /// Counts something that has no place in the model.
    pub(super) fn skip(&mut self, what: &str, count: u64) {
        if let Some(known) = self.skipped.get_mut(what) {
            *known += count;
            return;
        }
        let what = if self.skipped.len() < NAMES {
            what
        } else {
            "other things"
        };
        *self.skipped.entry(what.into()).or_default() += count;
    }

    /// Counts something doubtful.
    pub(super) fn doubt(&mut self, cause: HealthCause, what: &'static str) {
        *self.doubts.entry((cause.0, what)).or_default() += 1;
    }

    /// Hands the counts over, sorted by name.
    pub(super) fn finish(&mut self, builder: &mut Builder<'_, '_>) {
        builder.skip("\"Ev Idx\" of Python functions", self.python_indices);
        let mut skipped: Vec<_> = self.skipped.drain().collect();
        skipped.sort_unstable();
        for (what, count) in skipped {
            builder.skip(&what, count);
        }
        let mut doubts: Vec<_> = self.doubts.drain().collect();
        doubts.sort_unstable();
        for ((cause, what), count) in doubts {
            builder.doubt(HealthCause(cause), what, count);
        }
    }
}
