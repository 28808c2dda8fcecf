//! Slices that have begun: each track is a stack of them.

use std::collections::BTreeMap;

use tracesmith_format::tables::Caller;
use tracesmith_format::{ClockId, StackId, Timestamp};

use super::annotation::Arguments;
use super::sequence::Text;
use super::tracks::Owner;

/// An event that lasts, or a moment.
#[derive(Clone, Debug)]
pub(super) struct Slice {
    pub(super) owner: Owner,
    pub(super) track_name: Text,
    pub(super) clock: ClockId,
    pub(super) start: Timestamp,
    pub(super) name: Text,
    pub(super) categories: Vec<Text>,
    pub(super) arguments: Arguments,
    pub(super) stack: StackId,
}

impl Slice {
    /// Whether one of its categories is this.
    pub(super) fn is(&self, category: &str) -> bool {
        self.categories.iter().any(|known| &**known == category)
    }

    /// Who did it.
    pub(super) fn caller(&self) -> Caller {
        let (process, thread) = self.owner.caller();
        Caller { process, thread }
    }
}

/// Where slices are stacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stacked {
    /// On a track.
    Track(u64),
    /// On the thread of a sequence.
    Sequence(u32, u64),
    /// By the number of an asynchronous event of old traces.
    Asynchronous(u64),
}

/// All slices that have begun and not ended.
#[derive(Default)]
pub(super) struct Slices {
    open: BTreeMap<Stacked, Vec<Slice>>,
}

impl Slices {
    /// Something begins.
    pub(super) fn begin(&mut self, place: Stacked, slice: Slice) {
        self.open.entry(place).or_default().push(slice);
    }

    /// The latest that has begun ends.
    pub(super) fn end(&mut self, place: Stacked) -> Option<Slice> {
        let stack = self.open.get_mut(&place)?;
        let slice = stack.pop();
        if stack.is_empty() {
            self.open.remove(&place);
        }
        slice
    }

    /// Everything that is left, the outermost of each track first.
    pub(super) fn take_all(&mut self) -> Vec<Slice> {
        std::mem::take(&mut self.open).into_values().flatten().collect()
    }
}
