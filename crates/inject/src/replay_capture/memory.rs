//! The memory that a window reaches, and its contents.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    time::{Duration, Instant},
};

use tracesmith_cuda::driver::MemoryPlace;
use tracesmith_wire::record::{Buffer, Piece};
use xxhash_rust::xxh3::Xxh3;

use super::{
    PIECE_BYTES, Since, State, foreign::Foreign, regions::Regions, textures::Textures, variables::Variables,
};

/// Numbers of the format's kinds of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Host = 2,
    Device = 3,
    Managed = 5,
}

impl Kind {
    /// Whether the program can change it without a call.
    fn is_on_host(self) -> bool {
        self != Self::Device
    }
}

/// Numbers of the format's moments.
pub(super) const BEGIN: u8 = 0;
pub(super) const END: u8 = 1;
const CALL: u32 = 2;

/// Addresses below are never given out.
const LOWEST: u64 = 1 << 16;
/// Nor are those above.
const HIGHEST: u64 = 1 << 57;

/// Words that turned out not to be addresses: how many are remembered.
const MISSES: usize = 1 << 16;

/// How memory stands to what lies right beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Neighbours {
    /// It is an allocation of its own.
    Apart,
    /// It was mapped, and what begins in it may reach into the next.
    Joined,
}

/// An allocation of the program's.
#[derive(Clone, Copy, Debug)]
struct Allocation {
    bytes: u64,
    kind: Kind,
    context: u32,
    neighbours: Neighbours,
}

/// What the program has, and what of it is reached.
#[derive(Default)]
pub(super) struct Memory {
    live: BTreeMap<u64, Allocation>,
    reached: BTreeSet<u64>,
    misses: HashSet<u64>,
    /// Where memory may lie that was taken before anyone watched; empty when all
    /// was seen.
    unseen: Regions,
    staging: Vec<u8>,
    pub(super) variables: Variables,
    pub(super) textures: Textures,
    pub(super) foreign: Foreign,
    /// What memory of the host held when it was told last.
    sent_hashes: HashMap<u64, u128>,
    /// Memory of the host that other memory points to: any kernel may use it.
    pointed_to: BTreeSet<u64>,
    /// Whether work that was begun may still write memory of the host.
    is_host_written: bool,
    /// What was read for the capture, and how long the program stood still for
    /// it.
    pub(super) read_bytes: u64,
    pub(super) read_time: Duration,
}

/// What a word points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reached {
    Nothing,
    Device,
    /// Memory that begins there, and that the host can change by itself.
    Host(u64),
}

impl Memory {
    /// A window begins, in which nothing is reached yet.
    pub(super) fn begin(&mut self, since: Since) {
        if since == Since::Late {
            self.unseen = Regions::of_this_process();
        }
        self.reached.clear();
        self.misses.clear();
        self.sent_hashes.clear();
        self.pointed_to.clear();
        self.textures.begin();
    }

    pub(super) fn took(
        &mut self,
        address: u64,
        bytes: u64,
        kind: Kind,
        context: u32,
        neighbours: Neighbours,
    ) {
        self.misses.clear();
        let allocation = Allocation {
            bytes,
            kind,
            context,
            neighbours,
        };
        self.live.insert(address, allocation);
    }

    /// Memory that is taken within the window is reached, and has no content of
    /// before.
    pub(super) fn reach_fresh(&mut self, address: u64) {
        self.reached.insert(address);
    }

    /// Whether it was known.
    pub(super) fn on_free(&mut self, address: u64) -> bool {
        self.reached.remove(&address);
        self.pointed_to.remove(&address);
        self.sent_hashes.remove(&address);
        self.live.remove(&address).is_some()
    }

    /// Work is begun that may write memory of the host.
    pub(super) fn host_is_written(&mut self) {
        self.is_host_written = true;
    }

    /// Bytes of all that is known.
    pub(super) fn bytes(&self) -> u64 {
        self.live.values().map(|allocation| allocation.bytes).sum()
    }

    /// The allocation that an address lies in.
    fn find(&self, address: u64) -> Option<(u64, Allocation)> {
        let (base, allocation) = self.live.range(..=address).next_back()?;
        (address - base < allocation.bytes).then_some((*base, *allocation))
    }

    /// What lies right beside mapped memory and belongs to it.
    fn joined(&self, base: u64) -> impl Iterator<Item = u64> + use<> {
        let own = self
            .live
            .get(&base)
            .filter(|own| own.neighbours == Neighbours::Joined);
        let before = own.and_then(|_| {
            let (address, before) = self.live.range(..base).next_back()?;
            (before.neighbours == Neighbours::Joined && address + before.bytes == base).then_some(*address)
        });
        let behind = own.and_then(|own| {
            let address = base + own.bytes;
            let behind = self.live.get(&address)?;
            (behind.neighbours == Neighbours::Joined).then_some(address)
        });
        before.into_iter().chain(behind)
    }
}

impl State {
    /// A word that may be an address: the memory there is reached, and what that
    /// memory points to.
    pub(super) fn mark_reachable(&mut self, word: u64, context: u32) -> Reached {
        if self.memory.variables.holds(word) {
            self.reach_variable(word);
            return Reached::Device;
        }
        let Some(base) = self.locate(word, context) else {
            return Reached::Nothing;
        };
        if self.memory.reached.insert(base) {
            let began = Instant::now();
            // All that was begun before is over before anything is read.
            self.synchronize();
            self.read_all(vec![base]);
            self.memory.read_time += began.elapsed();
        }
        match self.memory.live.get(&base) {
            Some(allocation) if allocation.kind.is_on_host() => Reached::Host(base),
            _ => Reached::Device,
        }
    }

    /// Tells what buffers hold that are reached for the first time, and what they
    /// point to.
    pub(super) fn read_all(&mut self, mut waiting: Vec<u64>) {
        while let Some(base) = waiting.pop() {
            waiting.extend(self.read_buffer(base, BEGIN));
            for beside in self.memory.joined(base).collect::<Vec<_>>() {
                if self.memory.reached.insert(beside) {
                    waiting.push(beside);
                }
            }
        }
    }

    /// All work of the program is over when this returns.
    pub(super) fn synchronize(&mut self) {
        if self.stalled.reader().is_some() {
            // It was, before the kernel was held back.
            return;
        }
        if !self.driver.synchronize() {
            self.mark_incomplete("the driver would not wait for the program's work");
        }
        self.memory.is_host_written = false;
    }

    /// Memory of the host that a kernel may use whatever it is told.
    pub(super) fn pointed_to(&self) -> Vec<u64> {
        self.memory.pointed_to.iter().copied().collect()
    }

    /// All memory of the host that is reached.
    pub(super) fn reached_host(&self) -> Vec<u64> {
        let memory = &self.memory;
        let on_host = |base: &&u64| {
            memory
                .live
                .get(base)
                .is_some_and(|allocation| allocation.kind.is_on_host())
        };
        memory.reached.iter().filter(on_host).copied().collect()
    }

    /// Memory of the device that is reached: where it begins, and how much.
    pub(super) fn reached_device(&self) -> Vec<(u64, u64)> {
        let memory = &self.memory;
        let extent = |base: &u64| {
            let allocation = memory.live.get(base)?;
            (!allocation.kind.is_on_host()).then_some((*base, allocation.bytes))
        };
        memory.reached.iter().filter_map(extent).collect()
    }

    /// Tells what memory of the host holds where the program has changed it since
    /// it was told last: a call is going to use it.
    pub(super) fn send_changes(&mut self, bases: &[u64], command: u64) {
        if bases.is_empty() {
            return;
        }
        self.await_host();
        for base in bases {
            let Some(allocation) = self.memory.live.get(base).copied() else {
                continue;
            };
            // SAFETY: memory that the program has and the host can read; what other threads do to it meanwhile is theirs.
            let bytes = unsafe { std::slice::from_raw_parts(*base as *const u8, allocation.bytes as usize) };
            let mut hasher = Xxh3::new();
            hasher.update(bytes);
            let hash = hasher.digest128();
            if self.memory.sent_hashes.insert(*base, hash) == Some(hash) {
                continue;
            }
            self.send_bytes(bytes, *base, command);
        }
    }

    /// Work that may write memory of the host is over when this returns.
    pub(super) fn await_host(&mut self) {
        if self.memory.is_host_written {
            self.synchronize();
        }
    }

    /// A call brings these bytes from the host: a kernel may follow addresses among them, also to memory that nothing
    /// else refers to.
    pub(super) fn reach_brought(&mut self, bytes: &[u8], context: u32) {
        let mut found = Vec::new();
        self.find_addresses(bytes, context, &mut found);
        if found.is_empty() {
            return;
        }
        let began = Instant::now();
        self.synchronize();
        self.read_all(found);
        self.memory.read_time += began.elapsed();
    }

    /// Tells bytes that a call brings from the host to an address.
    pub(super) fn send_bytes(&mut self, bytes: &[u8], address: u64, command: u64) {
        for (index, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
            let record = Piece {
                address: address + (index * PIECE_BYTES) as u64,
                command,
                moment: CALL,
                reserved: 0,
            };
            self.send(&record, &[piece]);
        }
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
        let Some(extent) = self.driver.extent(word) else {
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
        let allocation = Allocation {
            bytes: extent.bytes,
            kind,
            context,
            neighbours: Neighbours::Apart,
        };
        self.memory.live.insert(extent.address, allocation);
        Some(extent.address)
    }

    /// Tells a buffer's content; gives back what it points to that was not
    /// reached before.
    fn read_buffer(&mut self, base: u64, moment: u8) -> Vec<u64> {
        let mut found = Vec::new();
        let Some(allocation) = self.memory.live.get(&base).copied() else {
            return found;
        };
        let buffer = Buffer {
            address: base,
            bytes: allocation.bytes,
            context: allocation.context,
            moment,
            memory: allocation.kind as u8,
            ..Buffer::default()
        };
        self.send(&buffer, &[]);
        let mut hasher = Xxh3::new();
        let mut staging = std::mem::take(&mut self.memory.staging);
        staging.resize(PIECE_BYTES, 0);
        let mut at = 0;
        while at < allocation.bytes {
            let length = (allocation.bytes - at).min(PIECE_BYTES as u64) as usize;
            let piece = &mut staging[..length];
            if !self.read_piece(base + at, piece, allocation.kind) {
                self.mark_incomplete("memory of the program could not be read");
                break;
            }
            if moment == BEGIN {
                self.find_addresses(piece, allocation.context, &mut found);
            }
            if allocation.kind.is_on_host() {
                hasher.update(piece);
            }
            self.send_piece(base + at, moment, &staging[..length]);
            self.memory.read_bytes += length as u64;
            at += length as u64;
        }
        if allocation.kind.is_on_host() {
            self.memory.sent_hashes.insert(base, hasher.digest128());
        }
        self.memory.staging = staging;
        found
    }

    pub(super) fn send_piece(&mut self, address: u64, moment: u8, bytes: &[u8]) {
        let record = Piece {
            address,
            command: 0,
            moment: u32::from(moment),
            reserved: 0,
        };
        self.send(&record, &[bytes]);
    }

    fn read_piece(&self, address: u64, to: &mut [u8], kind: Kind) -> bool {
        if kind == Kind::Device {
            return self.read_device(address, to);
        }
        // SAFETY: memory that the program has and the host can read; what other threads do to it meanwhile is theirs.
        unsafe { std::ptr::copy_nonoverlapping(address as *const u8, to.as_mut_ptr(), to.len()) };
        true
    }

    /// Reads memory of the device, also while a kernel is held back.
    pub(super) fn read_device(&self, address: u64, to: &mut [u8]) -> bool {
        match self.stalled.reader() {
            Some(stall) => stall.read(address, to),
            None => self.driver.read(address, to),
        }
    }

    /// Words of a buffer that point to memory which was not reached before. Only
    /// what is known is looked for: asking the driver for each word would take
    /// for ever. Of a program that ran before anyone watched it is asked for those
    /// that lie where it may have memory.
    pub(super) fn find_addresses(&mut self, bytes: &[u8], context: u32, found: &mut Vec<u64>) {
        let memory = &self.memory;
        let live = match (memory.live.first_key_value(), memory.live.last_key_value()) {
            (Some((lowest, _)), Some((highest, last))) => Some(*lowest..*highest + last.bytes),
            _ => None,
        };
        let spans = [live, memory.unseen.span(), memory.variables.span()];
        let possible = spans.into_iter().flatten().reduce(|one, other| {
            let start = u64::min(one.start, other.start);
            start..u64::max(one.end, other.end)
        });
        let Some(possible) = possible else { return };
        for word in bytes.as_chunks::<8>().0 {
            let word = u64::from_le_bytes(*word);
            if !possible.contains(&word) {
                continue;
            }
            if self.memory.variables.holds(word) {
                self.reach_variable(word);
                continue;
            }
            let mut place = self.memory.find(word);
            if place.is_none() && self.memory.unseen.contains(word) {
                let _ = self.locate(word, context);
                place = self.memory.find(word);
            }
            let Some((base, allocation)) = place else {
                continue;
            };
            if allocation.kind.is_on_host() {
                self.memory.pointed_to.insert(base);
            }
            if self.memory.reached.insert(base) {
                found.push(base);
            }
        }
    }

    /// Tells what all memory that is reached holds at the end.
    pub(super) fn read_end(&mut self) {
        let began = Instant::now();
        self.synchronize();
        for base in std::mem::take(&mut self.memory.reached) {
            self.read_buffer(base, END);
        }
        self.read_variables_at_end();
        self.read_arrays_at_end();
        self.memory.read_time += began.elapsed();
    }
}
