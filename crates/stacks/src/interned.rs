//! Stacks that a thread has taken before: a launch that comes again from the same place costs a hash and a number.

/// Stacks kept apart before the table is begun anew. The numbers go on, so nothing is mixed up: a stack that comes again
/// afterwards is told once more.
const ROOM: usize = 1 << 14;

/// The stacks of one thread, by what they hash to.
pub struct Interned {
    slots: Box<[Slot]>,
    used: usize,
    next: u32,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    /// 0 is free.
    hash: u128,
    number: u32,
}

/// Whether a stack is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It has this number.
    Before(u32),
    /// It got this number, and must be told.
    First(u32),
}

impl Default for Interned {
    fn default() -> Self {
        Self {
            slots: vec![Slot::default(); ROOM * 2].into_boxed_slice(),
            used: 0,
            next: 1,
        }
    }
}

impl Interned {
    /// The number of a stack, given as words that tell it from all others.
    #[inline]
    pub fn find(&mut self, words: &[u64]) -> Seen {
        let hash = hash(words).max(1);
        let mask = self.slots.len() - 1;
        let mut at = (hash >> 64) as usize & mask;
        loop {
            let slot = &self.slots[at];
            if slot.hash == hash {
                return Seen::Before(slot.number);
            }
            if slot.hash == 0 {
                return self.add(at, hash);
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn add(&mut self, at: usize, hash: u128) -> Seen {
        let number = self.next;
        self.next = self.next.wrapping_add(1).max(1);
        if self.used == ROOM {
            self.slots.fill(Slot::default());
            self.used = 0;
            return Seen::First(number);
        }
        self.slots[at] = Slot { hash, number };
        self.used += 1;
        Seen::First(number)
    }
}

/// Two sums of the words, each multiplied by a number of its own: 128 bits, so that two of a million stacks are the same
/// by chance once in 10^26 programs. Nobody chooses addresses to make it otherwise: they would only fool themselves.
#[inline]
fn hash(words: &[u64]) -> u128 {
    const FIRST: u64 = 0x9e37_79b9_7f4a_7c15;
    const SECOND: u64 = 0xc2b2_ae3d_27d4_eb4f;
    let mut low = FIRST ^ words.len() as u64;
    let mut high = SECOND;
    for &word in words {
        let product = u128::from(low ^ word) * u128::from(FIRST);
        low = (product as u64) ^ (product >> 64) as u64;
        high = (high ^ word).wrapping_mul(SECOND).rotate_left(29);
    }
    u128::from(low) | u128::from(high ^ high >> 32) << 64
}

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

    #[test]
    fn a_stack_is_new_once() {
        let mut stacks = Interned::default();
        assert_eq!(stacks.find(&[1, 2, 3]), Seen::First(1));
        assert_eq!(stacks.find(&[1, 2]), Seen::First(2));
        assert_eq!(stacks.find(&[3, 2, 1]), Seen::First(3));
        assert_eq!(stacks.find(&[]), Seen::First(4));
        assert_eq!(stacks.find(&[1, 2, 3]), Seen::Before(1));
        assert_eq!(stacks.find(&[1, 2, 0]), Seen::First(5));
        assert_eq!(stacks.find(&[]), Seen::Before(4));
    }

    #[test]
    fn more_stacks_than_there_is_room_for_keep_their_own_numbers() {
        let mut stacks = Interned::default();
        let mut numbers = std::collections::BTreeSet::new();
        for stack in 0..3 * ROOM as u64 {
            let Seen::First(number) = stacks.find(&[7, stack]) else {
                panic!("{stack} was taken for another");
            };
            assert!(numbers.insert(number));
        }
        assert_eq!(
            stacks.find(&[7, 3 * ROOM as u64 - 1]),
            Seen::Before(3 * ROOM as u32)
        );
    }
}
