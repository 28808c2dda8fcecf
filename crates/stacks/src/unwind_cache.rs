//! Complete unwinds that a thread has made before.
//!
//! The result of an unwind depends on the initial registers and on the stack words that it reads: return addresses,
//! and saved base pointers that later rules use. So these words identify an unwind. If a new one starts with the same
//! stack pointer, the cached words are compared with the current ones. If all are equal, the result is the same.
//!
//! This needs a few independent reads. A normal unwind looks up a rule per frame, and each lookup depends on the
//! previous frame. In a PyTorch training loop, rules are seldom in the CPU caches, and most of an unwind waits for
//! them.
//!
//! The cache first tries the unwind that followed the previous one before, because loops repeat. Then it tries those
//! with the same stack pointer. A wrong guess costs little, because the first words already differ.

use crate::budget::Budget;
use crate::interned::StackHash;
use crate::walk::Registers;

/// Limits for cached words (12 bytes each with their offsets) and unwinds. A thread that needs more clears its cache.
const MOST_WORDS: usize = 1 << 16;
const MOST_WALKS: usize = 1 << 12;
/// Limit for the words of all threads, and for the overhead per unwind in words: 4.5 MiB, and twice that just after
/// tables grew. If the limit is reached, a thread caches no more.
static OF_ALL: Budget = Budget::of(3 << 17);
const WALK_COST: usize = size_of::<CachedUnwind>().div_ceil(12);

/// Maximum number of frames of a cached unwind.
const MOST_FRAMES: usize = 512;
const SETS: usize = 1 << SET_BITS;
const SET_BITS: u32 = 8;
const WAYS: usize = 4;
const HASHES: usize = 1 << 10;
/// Words that are compared before the result is checked.
const AT_ONCE: usize = 8;

/// The index that means no unwind.
const NONE: u32 = u32::MAX;

/// The unwinds of one thread.
pub(crate) struct UnwindCache {
    walks: Vec<CachedUnwind>,
    /// The offsets of all words from the initial stack pointer.
    places: Vec<u32>,
    words: Vec<u64>,
    /// Unwinds by initial stack pointer, newest first.
    sets: Box<[[u32; WAYS]]>,
    /// The newest unwind by hash.
    by_hash: Box<[u32]>,
    /// The previous unwind.
    last: u32,
}

#[derive(Clone, Copy)]
struct CachedUnwind {
    start: Registers,
    base: FirstBase,
    /// The index of its first word: first the words of its frames, then others.
    first: u32,
    frames: u32,
    others: u32,
    hash: StackHash,
    /// The unwind that followed it.
    next: u32,
}

/// Whether an unwind depends on the initial base pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstBase {
    Unused,
    Used,
}

/// The output of an unwind.
pub(crate) struct FrameBuffer<'a> {
    pub(crate) frames: &'a mut [u64],
    /// The stack pointer in each frame, as far as there is space.
    pub(crate) places: &'a mut [u64],
    pub(crate) depth: usize,
}

/// The words that the current unwind has read.
pub(crate) struct Reads {
    frames: Vec<(u64, u64)>,
    others: Vec<(u64, u64)>,
    base: FirstBase,
    /// Whether these are all words that the unwind depends on.
    is_all: bool,
}

impl UnwindCache {
    pub(crate) fn new() -> Self {
        Self {
            walks: Vec::new(),
            places: Vec::new(),
            words: Vec::new(),
            sets: vec![[NONE; WAYS]; SETS].into_boxed_slice(),
            by_hash: vec![NONE; HASHES].into_boxed_slice(),
            last: NONE,
        }
    }

    /// Removes all unwinds, because addresses may have another meaning now.
    pub(crate) fn clear(&mut self) {
        OF_ALL.release(self.cost());
        (self.walks, self.places, self.words) = Default::default();
        self.sets.fill([NONE; WAYS]);
        self.by_hash.fill(NONE);
        self.last = NONE;
    }

    /// Finds the unwind that starts here. Returns the hash of its frames.
    ///
    /// # Safety
    ///
    /// `start` is on the stack of all these unwinds, and all memory above it can be read.
    #[inline]
    pub(crate) unsafe fn find(
        &mut self,
        start: &Registers,
        output: &mut FrameBuffer<'_>,
    ) -> Option<StackHash> {
        let guess = self.walks.get(self.last as usize).map_or(NONE, |walk| walk.next);
        let others = self.sets[set_of(start.stack)];
        for number in std::iter::once(guess).chain(others) {
            let Some(walk) = self.walks.get(number as usize) else {
                continue;
            };
            // SAFETY: the caller guarantees this for the stack.
            if unsafe { self.is_there(walk, start, output) } {
                let hash = walk.hash;
                self.follows(number);
                return Some(hash);
            }
        }
        None
    }

    /// Whether the words of an unwind are on the stack. Writes its frames to `output` on the way.
    ///
    /// # Safety
    ///
    /// As for [`find`](Self::find).
    #[inline]
    unsafe fn is_there(&self, walk: &CachedUnwind, start: &Registers, output: &mut FrameBuffer<'_>) -> bool {
        let same_start = walk.start.stack == start.stack
            && walk.start.instruction == start.instruction
            && (walk.base == FirstBase::Unused || walk.start.base == start.base);
        let (first, frames) = (walk.first as usize, walk.frames as usize);
        let all = first..first + frames + walk.others as usize;
        let (Some(places), Some(words)) = (self.places.get(all.clone()), self.words.get(all)) else {
            return false;
        };
        if !same_start || output.frames.len() < frames {
            return false;
        }
        for (places, words) in places.chunks(AT_ONCE).zip(words.chunks(AT_ONCE)) {
            let differ = places.iter().zip(words).fold(0, |differ, (place, known)| {
                let address = start.stack + u64::from(*place);
                // SAFETY: an unwind with this initial stack pointer read there, between it and the end of the stack.
                differ | *known ^ unsafe { std::ptr::read_volatile(address as *const u64) }
            });
            if differ != 0 {
                return false;
            }
        }
        output.frames[..frames].copy_from_slice(&words[..frames]);
        for (output, place) in output.places.iter_mut().zip(&places[..frames]) {
            // A return address is right below its caller's frame.
            *output = start.stack + u64::from(*place) + 8;
        }
        output.depth = frames;
        true
    }

    /// Stores an unwind.
    #[cold]
    pub(crate) fn keep(&mut self, start: Registers, reads: &Reads, hash: StackHash) {
        // No stack has more than 4 GiB.
        let within = |(address, _): &(u64, u64)| u32::try_from(address - start.stack).is_ok();
        if !reads.is_all || !reads.all().all(within) {
            self.last = NONE;
            return;
        }
        let number = match self.by_hash[hash.slot(HASHES)] {
            // It was neither the guess nor among the newest in its set.
            known if self.is_of(known, &start, reads) => Some(known),
            _ => self.add(start, reads, hash),
        };
        let Some(number) = number else {
            self.last = NONE;
            return;
        };
        let set = &mut self.sets[set_of(start.stack)];
        set.rotate_right(1);
        set[0] = number;
        self.by_hash[hash.slot(HASHES)] = number;
        self.follows(number);
    }

    fn add(&mut self, start: Registers, reads: &Reads, hash: StackHash) -> Option<u32> {
        let (frames, others) = (reads.frames.len(), reads.others.len());
        if self.words.len() + frames + others > MOST_WORDS || self.walks.len() >= MOST_WALKS {
            self.clear();
        }
        if !OF_ALL.take(frames + others + WALK_COST) {
            return None;
        }
        let walk = CachedUnwind {
            start,
            base: reads.base,
            first: self.words.len() as u32,
            frames: frames as u32,
            others: others as u32,
            hash,
            next: NONE,
        };
        for (address, word) in reads.all() {
            self.places.push((address - start.stack) as u32);
            self.words.push(*word);
        }
        self.walks.push(walk);
        Some(self.walks.len() as u32 - 1)
    }

    /// Whether an unwind started here and read these words.
    fn is_of(&self, number: u32, start: &Registers, reads: &Reads) -> bool {
        let Some(walk) = self.walks.get(number as usize) else {
            return false;
        };
        let first = walk.first as usize;
        let mut known = self.places.iter().zip(&self.words).skip(first);
        walk.start == *start
            && (walk.base, walk.frames as usize, walk.others as usize)
                == (reads.base, reads.frames.len(), reads.others.len())
            && reads.all().all(|(address, word)| {
                known.next().is_some_and(|(place, known)| {
                    *known == *word && start.stack + u64::from(*place) == *address
                })
            })
    }

    /// The cost of this cache in the shared budget.
    fn cost(&self) -> usize {
        self.words.len() + self.walks.len() * WALK_COST
    }

    /// Notes that this unwind followed the previous one.
    #[inline]
    fn follows(&mut self, number: u32) {
        if let Some(last) = self.walks.get_mut(self.last as usize) {
            last.next = number;
        }
        self.last = number;
    }
}

impl Drop for UnwindCache {
    fn drop(&mut self) {
        OF_ALL.release(self.cost());
    }
}

/// Stack pointers are multiples of 16.
#[inline]
fn set_of(stack: u64) -> usize {
    (stack.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SET_BITS)) as usize % SETS
}

impl FrameBuffer<'_> {
    /// Adds a frame. `None` if there is no space.
    #[inline]
    pub(crate) fn add(&mut self, caller: &Registers) -> Option<()> {
        *self.frames.get_mut(self.depth)? = caller.instruction;
        if let Some(place) = self.places.get_mut(self.depth) {
            *place = caller.stack;
        }
        self.depth += 1;
        Some(())
    }
}

impl Reads {
    pub(crate) fn new() -> Self {
        Self {
            frames: Vec::with_capacity(MOST_FRAMES),
            others: Vec::with_capacity(MOST_FRAMES),
            base: FirstBase::Unused,
            is_all: true,
        }
    }

    /// Starts an unwind.
    pub(crate) fn begin(&mut self) {
        self.frames.clear();
        self.others.clear();
        self.base = FirstBase::Unused;
        self.is_all = true;
    }

    /// Notes a return address.
    #[inline]
    pub(crate) fn frame(&mut self, address: u64, word: u64) {
        if self.frames.len() < MOST_FRAMES {
            self.frames.push((address, word));
        } else {
            self.is_all = false;
        }
    }

    /// Notes another word that the unwind depends on.
    #[inline]
    pub(crate) fn other(&mut self, address: u64, word: u64) {
        if self.others.len() < MOST_FRAMES {
            self.others.push((address, word));
        } else {
            self.is_all = false;
        }
    }

    /// Notes that the unwind depends on the initial base pointer.
    pub(crate) fn first_base(&mut self) {
        self.base = FirstBase::Used;
    }

    fn all(&self) -> impl Iterator<Item = &(u64, u64)> {
        self.frames.iter().chain(&self.others)
    }

    /// Notes that the unwind depends on something that cannot be compared.
    pub(crate) fn something_else(&mut self) {
        self.is_all = false;
    }
}

#[cfg(test)]
mod tests;
