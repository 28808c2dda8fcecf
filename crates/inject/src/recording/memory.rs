//! The memory that a window reaches, and its contents.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use tracesmith_cuda::driver::MemoryPlace;
use tracesmith_wire::record::{Buffer, Piece};

use super::{PIECE_BYTES, State};

/// Numbers of the format's kinds of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Host = 2,
    Device = 3,
    Managed = 5,
}

/// Numbers of the format's moments.
const BEGIN: u8 = 0;
const END: u8 = 1;

/// Addresses below are never given out.
const LOWEST: u64 = 1 << 16;
/// Nor are those above.
const HIGHEST: u64 = 1 << 57;

/// Words that were asked for and are no address, as many as are kept in mind.
const MISSES: usize = 1 << 16;

/// An allocation of the program's.
#[derive(Clone, Copy, Debug)]
struct Allocation {
    bytes: u64,
    kind: Kind,
    context: u32,
}

/// What the program has, and what of it is reached.
#[derive(Default)]
pub(super) struct Memory {
    live: BTreeMap<u64, Allocation>,
    reached: BTreeSet<u64>,
    misses: HashSet<u64>,
    staging: Vec<u8>,
}

impl Memory {
    /// A window begins, in which nothing is reached yet.
    pub(super) fn begin(&mut self) {
        self.reached.clear();
        self.misses.clear();
    }

    pub(super) fn took(&mut self, address: u64, bytes: u64, kind: Kind, context: u32) {
        self.misses.clear();
        self.live.insert(address, Allocation { bytes, kind, context });
    }

    /// Memory that is taken within the window is reached, and has no content of
    /// before.
    pub(super) fn reach_fresh(&mut self, address: u64) {
        self.reached.insert(address);
    }

    /// Whether it was known.
    pub(super) fn gave_back(&mut self, address: u64) -> bool {
        self.reached.remove(&address);
        self.live.remove(&address).is_some()
    }

    /// The allocation that an address lies in.
    fn find(&self, address: u64) -> Option<(u64, Allocation)> {
        let (base, allocation) = self.live.range(..=address).next_back()?;
        (address - base < allocation.bytes).then_some((*base, *allocation))
    }

    /// Whether an address lies in memory that is reached.
    pub(super) fn is_reached(&self, address: u64) -> bool {
        self.find(address)
            .is_some_and(|(base, _)| self.reached.contains(&base))
    }
}

impl State {
    /// A word that may be an address: the memory there is reached, and what that
    /// memory points to. Says whether it is one.
    pub(super) fn reach(&mut self, word: u64, context: u32) -> bool {
        let Some(base) = self.locate(word, context) else {
            return false;
        };
        if self.memory.reached.insert(base) {
            // All that was begun before is over before anything is read.
            if !self.peek.synchronize() {
                self.break_off("the driver would not wait for the program's work");
            }
            let mut waiting = vec![base];
            while let Some(base) = waiting.pop() {
                waiting.extend(self.read_buffer(base, BEGIN));
            }
        }
        true
    }

    /// The allocation that a word points into, if it does.
    fn locate(&mut self, word: u64, context: u32) -> Option<u64> {
        if !(LOWEST..HIGHEST).contains(&word) {
            return None;
        }
        if let Some((base, _)) = self.memory.find(word) {
            return Some(base);
        }
        if self.memory.misses.contains(&word) {
            return None;
        }
        // Memory that was taken before anyone watched.
        let Some(extent) = self.peek.extent(word) else {
            if self.memory.misses.len() < MISSES {
                self.memory.misses.insert(word);
            }
            return None;
        };
        let kind = match extent.place {
            MemoryPlace::Device => Kind::Device,
            MemoryPlace::Host => Kind::Host,
            MemoryPlace::Managed => Kind::Managed,
        };
        self.memory.live.insert(
            extent.address,
            Allocation {
                bytes: extent.bytes,
                kind,
                context,
            },
        );
        Some(extent.address)
    }

    /// Tells a buffer's content; gives back what it points to that was not
    /// reached before.
    fn read_buffer(&mut self, base: u64, moment: u8) -> Vec<u64> {
        let mut found = Vec::new();
        let Some(allocation) = self.memory.live.get(&base).copied() else {
            return found;
        };
        self.tell(
            &Buffer {
                address: base,
                bytes: allocation.bytes,
                context: allocation.context,
                moment,
                memory: allocation.kind as u8,
                reserved: [0; 2],
            },
            &[],
        );
        let mut staging = std::mem::take(&mut self.memory.staging);
        staging.resize(PIECE_BYTES, 0);
        let mut at = 0;
        while at < allocation.bytes {
            let length = (allocation.bytes - at).min(PIECE_BYTES as u64) as usize;
            let piece = &mut staging[..length];
            if !self.read_piece(base + at, piece, allocation.kind) {
                self.break_off("memory of the program could not be read");
                break;
            }
            if moment == BEGIN {
                self.find_addresses(piece, &mut found);
            }
            let record = Piece {
                address: base + at,
                command: 0,
                moment: u32::from(moment),
                reserved: 0,
            };
            self.tell(&record, &[&staging[..length]]);
            at += length as u64;
        }
        self.memory.staging = staging;
        found
    }

    fn read_piece(&self, address: u64, to: &mut [u8], kind: Kind) -> bool {
        if kind == Kind::Device {
            return self.peek.read(address, to);
        }
        // SAFETY: memory that the program has and the host can read; what other threads do to it meanwhile is theirs.
        unsafe { std::ptr::copy_nonoverlapping(address as *const u8, to.as_mut_ptr(), to.len()) };
        true
    }

    /// Words of a buffer that point to memory which was not reached before. Only
    /// what is known is looked for: asking the driver for each word would take
    /// for ever.
    fn find_addresses(&mut self, bytes: &[u8], found: &mut Vec<u64>) {
        let (Some((lowest, _)), Some((highest, last))) = (
            self.memory.live.first_key_value(),
            self.memory.live.last_key_value(),
        ) else {
            return;
        };
        let possible = *lowest..*highest + last.bytes;
        for word in bytes.as_chunks::<8>().0 {
            let word = u64::from_le_bytes(*word);
            if possible.contains(&word)
                && let Some((base, _)) = self.memory.find(word)
                && self.memory.reached.insert(base)
            {
                found.push(base);
            }
        }
    }

    /// Tells what all memory that is reached holds at the end.
    pub(super) fn read_end(&mut self) {
        if !self.peek.synchronize() {
            self.break_off("the driver would not wait for the program's work");
        }
        for base in std::mem::take(&mut self.memory.reached) {
            self.read_buffer(base, END);
        }
    }
}
