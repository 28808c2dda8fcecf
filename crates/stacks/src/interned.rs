//! Stacks that a thread has captured before. A repeated stack costs only a hash lookup.

use crate::budget::Budget;

/// Initial and maximum number of slots. A table grows when it is half full. If it cannot grow, it is cleared. A
/// repeated stack then gets a new ID and is sent again.
const FIRST_SLOTS: usize = 1 << 10;
const MOST_SLOTS: usize = 1 << 15;

/// Additional slots of all threads together: 4 MiB.
const MOST_OF_ALL: usize = 1 << 17;
static OF_ALL: Budget = Budget::of(MOST_OF_ALL);

/// The stacks of one thread, by hash.
pub struct Interned {
    slots: Box<[Slot]>,
    used: usize,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    /// 0 means free.
    hash: u128,
    number: u32,
}

/// Whether a stack is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The stack has this ID.
    Before(u32),
    /// The stack is new, has this ID, and must be sent.
    First(u32),
}

impl Default for Interned {
    fn default() -> Self {
        Self {
            slots: vec![Slot::default(); FIRST_SLOTS].into_boxed_slice(),
            used: 0,
        }
    }
}

impl Interned {
    /// The ID of a stack with this hash. `fresh` returns the ID of a new stack.
    #[inline]
    pub fn find(&mut self, hash: StackHash, fresh: impl FnOnce() -> u32) -> Seen {
        let hash = hash.bits().max(1);
        let mask = self.slots.len() - 1;
        let mut at = (hash >> 64) as usize & mask;
        loop {
            let slot = &self.slots[at];
            if slot.hash == hash {
                return Seen::Before(slot.number);
            }
            if slot.hash == 0 {
                return self.add(at, hash, fresh());
            }
            at = (at + 1) & mask;
        }
    }

    /// Removes all stacks.
    pub fn clear(&mut self) {
        self.slots.fill(Slot::default());
        self.used = 0;
    }

    #[cold]
    fn add(&mut self, at: usize, hash: u128, number: u32) -> Seen {
        self.slots[at] = Slot { hash, number };
        self.used += 1;
        if self.used * 2 > self.slots.len() {
            self.make_room();
        }
        Seen::First(number)
    }

    fn make_room(&mut self) {
        // Doubling needs as many slots again.
        let more = self.slots.len();
        if more >= MOST_SLOTS || !OF_ALL.take(more) {
            self.clear();
            return;
        }
        let larger = vec![Slot::default(); self.slots.len() * 2].into_boxed_slice();
        let mask = larger.len() - 1;
        for slot in std::mem::replace(&mut self.slots, larger) {
            if slot.hash == 0 {
                continue;
            }
            let mut at = (slot.hash >> 64) as usize & mask;
            while self.slots[at].hash != 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = slot;
        }
    }
}

impl Drop for Interned {
    fn drop(&mut self) {
        OF_ALL.release(self.slots.len() - FIRST_SLOTS);
    }
}

/// A 128-bit hash: two sums of words, each multiplied by different constants. Among a million stacks, a collision
/// occurs once in 10^26 programs. Nobody gains from a constructed collision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackHash {
    low: u64,
    high: u64,
}

impl StackHash {
    /// The hash of these words.
    #[inline]
    pub fn of(words: &[u64]) -> Self {
        Self {
            low: FIRST[0],
            high: SECOND[0],
        }
        .and(words)
    }

    /// Extends the hash by these words. Each sum consists of four independent sums.
    #[inline]
    #[must_use]
    pub fn and(self, words: &[u64]) -> Self {
        let start = |lane: usize| Self {
            low: FIRST[lane],
            high: SECOND[lane],
        };
        let mut lanes = [self, start(1), start(2), start(3)];
        let (fours, rest) = words.as_chunks::<4>();
        for four in fours {
            for (lane, word) in lanes.iter_mut().zip(four) {
                *lane = lane.mix(*word, *word);
            }
        }
        for (lane, word) in lanes.iter_mut().zip(rest) {
            *lane = lane.mix(*word, *word);
        }
        let [first, others @ ..] = lanes;
        let all = others
            .iter()
            .fold(first, |sum, lane| sum.mix(lane.low, lane.high));
        // Include the length, so that zero words count.
        all.mix(words.len() as u64, words.len() as u64)
    }

    #[inline]
    fn mix(self, low: u64, high: u64) -> Self {
        let product = u128::from(self.low ^ low) * u128::from(FIRST[0]);
        Self {
            low: (product as u64) ^ (product >> 64) as u64,
            high: (self.high ^ high).wrapping_mul(SECOND[0]).rotate_left(29),
        }
    }

    /// A slot in a table with this size, a power of two.
    pub(crate) fn slot(self, slots: usize) -> usize {
        self.high as usize & (slots - 1)
    }

    fn bits(self) -> u128 {
        u128::from(self.low) | u128::from(self.high ^ self.high >> 32) << 64
    }
}

/// Odd constants without a pattern: digits of the golden ratio, of square roots of two, three and five, and primes of
/// xxHash.
const FIRST: [u64; 4] = [
    0x9e37_79b9_7f4a_7c15,
    0x6a09_e667_f3bc_c909,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
];
const SECOND: [u64; 4] = [
    0xc2b2_ae3d_27d4_eb4f,
    0x1656_67b1_9e37_79f9,
    0x85eb_ca77_c2b2_ae63,
    0x27d4_eb2f_1656_67c5,
];

impl std::fmt::Debug for Interned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interned")
            .field("used", &self.used)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers stacks as they come.
    struct Numbered {
        stacks: Interned,
        next: u32,
    }

    impl Numbered {
        fn new() -> Self {
            Self {
                stacks: Interned::default(),
                next: 0,
            }
        }

        fn find(&mut self, words: &[u64]) -> Seen {
            self.stacks.find(StackHash::of(words), || {
                self.next += 1;
                self.next
            })
        }
    }

    #[test]
    fn a_stack_is_new_once() {
        let mut stacks = Numbered::new();
        assert_eq!(stacks.find(&[1, 2, 3]), Seen::First(1));
        assert_eq!(stacks.find(&[1, 2]), Seen::First(2));
        assert_eq!(stacks.find(&[3, 2, 1]), Seen::First(3));
        assert_eq!(stacks.find(&[]), Seen::First(4));
        assert_eq!(stacks.find(&[1, 2, 3]), Seen::Before(1));
        assert_eq!(stacks.find(&[1, 2, 0]), Seen::First(5));
        assert_eq!(stacks.find(&[]), Seen::Before(4));
    }

    #[test]
    fn words_in_two_parts_are_other_words() {
        let all = [1, 2, 3, 4, 5, 6, 7];
        let hashes: Vec<StackHash> = (0..=all.len())
            .map(|at| StackHash::of(&all[..at]).and(&all[at..]))
            .collect();
        for (number, hash) in hashes.iter().enumerate() {
            assert!(!hashes[..number].contains(hash), "{number}");
        }
        assert_eq!(hashes[3], StackHash::of(&all[..3]).and(&all[3..]));
    }

    #[test]
    fn a_table_that_grows_forgets_nothing() {
        let mut stacks = Numbered::new();
        let all = MOST_SLOTS as u64 / 2 - 1;
        for stack in 0..all {
            assert_eq!(stacks.find(&[7, stack]), Seen::First(stack as u32 + 1));
        }
        for stack in 0..all {
            assert_eq!(stacks.find(&[7, stack]), Seen::Before(stack as u32 + 1));
        }
    }

    #[test]
    fn all_tables_together_are_bounded() {
        let mut tables: Vec<Numbered> = (0..8).map(|_| Numbered::new()).collect();
        for table in &mut tables {
            for stack in 0..MOST_SLOTS as u64 {
                table.find(&[7, stack]);
            }
        }
        // Other tests of this program may hold some too.
        let own: usize = tables
            .iter()
            .map(|table| table.stacks.slots.len() - FIRST_SLOTS)
            .sum();
        assert!((MOST_OF_ALL / 2..=MOST_OF_ALL).contains(&own), "{own}");
        for table in &mut tables {
            assert!(matches!(table.find(&[8]), Seen::First(_)));
            assert!(matches!(table.find(&[8]), Seen::Before(_)));
        }
    }

    #[test]
    fn more_stacks_than_there_is_room_for_keep_their_own_numbers() {
        let mut stacks = Numbered::new();
        for stack in 0..3 * MOST_SLOTS as u64 {
            assert_eq!(stacks.find(&[7, stack]), Seen::First(stack as u32 + 1));
        }
    }
}
