//! A track while it is written: its lanes, and the items that wait for theirs.

use super::item::{Form, TrackKey};
use super::lane::Lane;
use super::layout::Layout;
use super::live_memory::LiveMemory;

/// A track and what is still to be written of it.
pub(super) struct TrackState {
    pub(super) key: TrackKey,
    pub(super) layout: Layout,
    pub(super) lanes: Vec<Lane>,
    /// Items to be written, by start once they are sorted.
    pub(super) queue: Vec<Entry>,
    /// How many of them have been.
    pub(super) written: usize,
    /// For every lane the items of the current step.
    pub(super) step: Vec<Vec<(u16, u32)>>,
    /// Items that are earlier than their file.
    pub(super) late: u64,
    /// Live memory while no lane counts it.
    pub(super) live: LiveMemory,
}

/// An item of a piece, with what its place depends on: looking that up where the item lies took most of the time here.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) item: u32,
    pub(super) piece: u16,
    pub(super) form: Form,
}

impl TrackState {
    pub(super) fn new(key: TrackKey) -> Self {
        TrackState {
            key,
            layout: Layout::new(&key),
            lanes: Vec::new(),
            queue: Vec::new(),
            written: 0,
            step: Vec::new(),
            late: 0,
            live: LiveMemory::default(),
        }
    }

    /// Finds lanes for what starts before a time.
    pub(super) fn place(&mut self, base: u64, until: u64) {
        while let Some(entry) = self.queue.get(self.written)
            && (entry.start < until || until == u64::MAX)
        {
            self.written += 1;
            // Only a row whose time lies outside of what its block claims can be earlier than the file.
            if entry.start < base {
                self.late += 1;
                continue;
            }
            let lane = self.layout.place(entry.form, entry.start, entry.end);
            if self.step.len() <= lane {
                self.step.resize_with(lane + 1, Vec::new);
            }
            self.step[lane].push((entry.piece, entry.item));
        }
    }
}
