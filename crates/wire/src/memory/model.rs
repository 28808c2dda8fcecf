//! The memory under loom: every word is watched.
//!
//! A word exists twice, as a cell whose plain accesses loom checks for races
//! and as an atomic; [`Access`] says which of the two a ring uses.
#![allow(unsafe_code, reason = "loom's cells are reached by pointer, as std's are")]

use loom::cell::UnsafeCell;

use super::Access;
use crate::{
    config::Capacity,
    layout::Header,
    sync::{AtomicU64, Ordering},
};

/// Header and data area.
pub(crate) struct Region {
    header: Header,
    words: Box<[Word]>,
}

#[derive(Default)]
struct Word {
    plain: UnsafeCell<u64>,
    contended: AtomicU64,
}

// SAFETY: loom itself reports plain accesses that race.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    pub(crate) fn on_heap(capacity: Capacity) -> Self {
        let words = (0..capacity.bytes() / 8).map(|_| Word::default()).collect();
        Self {
            header: Header::default(),
            words,
        }
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    pub(crate) fn data(&self, access: Access) -> Data<'_> {
        Data {
            words: &self.words,
            access,
        }
    }
}

/// The data area.
#[derive(Clone, Copy)]
pub(crate) struct Data<'r> {
    words: &'r [Word],
    access: Access,
}

impl Data<'_> {
    pub(crate) fn write_frame(self, position: u64, header: u64, payload: &[u8]) {
        self.store(position, header);
        for (index, chunk) in payload.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.store(position + 8 + index as u64 * 8, u64::from_ne_bytes(word));
        }
    }

    pub(crate) fn expect(self, _position: u64) {}

    pub(crate) fn load_word(self, position: u64) -> u64 {
        let word = self.word(position);
        match self.access {
            // SAFETY: loom reports a concurrent write.
            Access::Apart => word.plain.with(|value| unsafe { *value }),
            Access::Contended => word.contended.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn copy_out(self, position: u64, out: &mut [u8]) {
        for (index, word) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            *word = self.load_word(position + index as u64 * 8).to_ne_bytes();
        }
    }

    fn store(self, position: u64, value: u64) {
        let word = self.word(position);
        match self.access {
            // SAFETY: loom reports a concurrent access.
            Access::Apart => word.plain.with_mut(|at| unsafe { *at = value }),
            Access::Contended => word.contended.store(value, Ordering::Relaxed),
        }
    }

    fn word(&self, position: u64) -> &Word {
        &self.words[(position / 8) as usize % self.words.len()]
    }
}
