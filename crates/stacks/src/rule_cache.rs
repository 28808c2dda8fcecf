//! The unwind rules that a thread has computed.
//!
//! An unwind needs one rule per frame, and computing a rule costs more than the rest. The cache is 4-way
//! set-associative, and a set is one cache line. If it were direct-mapped, one in seven of the 600 return addresses
//! of a PyTorch training loop would conflict with another.

use crate::rules::{Frame, Rule};

/// A launch-bound program has some hundred return addresses, and a large framework some thousand.
const SETS: usize = 1 << SET_BITS;
const SET_BITS: u32 = 10;
const WAYS: usize = 4;

pub(crate) struct UnwindRuleCache {
    sets: Box<[Set]>,
}

/// Newest first. No code is at address 0.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Set([(u64, Packed); WAYS]);

const _: () = assert!(size_of::<Set>() == 64);

impl UnwindRuleCache {
    pub(crate) fn new() -> Self {
        Self {
            sets: vec![Set::EMPTY; SETS].into_boxed_slice(),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.sets.fill(Set::EMPTY);
    }

    #[inline]
    pub(crate) fn get(&self, address: u64) -> Option<Rule> {
        let ways = &self.sets[set_of(address)].0;
        let (_, rule) = ways.iter().find(|(kept, _)| *kept == address)?;
        Some(rule.unpacked())
    }

    /// Stores a rule in place of the oldest one in its set. A rule that does not fit into eight bytes is computed
    /// each time.
    pub(crate) fn put(&mut self, address: u64, rule: Rule) {
        if let Some(packed) = Packed::of(rule) {
            let ways = &mut self.sets[set_of(address)].0;
            ways.rotate_right(1);
            ways[0] = (address, packed);
        }
    }
}

/// Return addresses differ mostly in their low bits. The multiplier spreads them.
#[inline]
fn set_of(address: u64) -> usize {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SET_BITS)) as usize % SETS
}

impl Set {
    const EMPTY: Self = Self([(0, Packed(0)); WAYS]);
}

/// A rule in eight bytes: the offset of the base pointer in the upper half, then the offset of the frame, and three
/// bits for its base.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Packed(u64);

const KIND_BITS: u32 = 3;

impl Packed {
    fn of(rule: Rule) -> Option<Self> {
        let (kind, offset) = match rule.frame {
            Frame::Unknown => (0, 0),
            Frame::FromStack(offset) => (1, offset),
            Frame::FromBase(offset) => (2, offset),
            Frame::AtBase(offset) => (3, offset),
            Frame::Signal => (4, 0),
            Frame::Outermost => (5, 0),
        };
        let frame = offset << KIND_BITS;
        if frame >> KIND_BITS != offset {
            return None;
        }
        let low = frame.cast_unsigned() | kind;
        Some(Self(
            u64::from(rule.base_offset.cast_unsigned()) << 32 | u64::from(low),
        ))
    }

    #[inline]
    fn unpacked(self) -> Rule {
        let low = self.0 as u32;
        let offset = low.cast_signed() >> KIND_BITS;
        let frame = match low & ((1 << KIND_BITS) - 1) {
            1 => Frame::FromStack(offset),
            2 => Frame::FromBase(offset),
            3 => Frame::AtBase(offset),
            4 => Frame::Signal,
            5 => Frame::Outermost,
            _ => Frame::Unknown,
        };
        Rule {
            frame,
            base_offset: ((self.0 >> 32) as u32).cast_signed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rule(offset: i32) -> Rule {
        Rule {
            frame: Frame::FromStack(offset),
            base_offset: -16,
        }
    }

    #[test]
    fn four_addresses_of_one_place_are_kept_and_a_fifth_drives_out_the_oldest() {
        let mut kept = UnwindRuleCache::new();
        let home = set_of(0x40_1000);
        let beside: Vec<u64> = (0x40_1000..)
            .filter(|address| set_of(*address) == home)
            .take(5)
            .collect();
        for (offset, address) in beside[..4].iter().enumerate() {
            kept.put(*address, rule(offset as i32));
        }
        for (offset, address) in beside[..4].iter().enumerate() {
            assert_eq!(kept.get(*address), Some(rule(offset as i32)));
        }
        kept.put(beside[4], rule(4));
        assert_eq!(kept.get(beside[0]), None);
        assert_eq!(kept.get(beside[1]), Some(rule(1)));
        assert_eq!(kept.get(beside[4]), Some(rule(4)));
        kept.clear();
        assert_eq!(kept.get(beside[4]), None);
    }

    /// More than a training loop has.
    #[test]
    fn a_thousand_return_addresses_stay() {
        let mut kept = UnwindRuleCache::new();
        let addresses: Vec<u64> = (0..1000u64)
            .map(|n| 0x7f00_0000_0000 + n * 0x1d3 * (n % 7 + 1))
            .collect();
        for address in &addresses {
            kept.put(*address, rule(8));
        }
        let gone = addresses
            .iter()
            .filter(|address| kept.get(**address).is_none())
            .count();
        assert!(gone < 20, "{gone} of 1000 were driven out");
    }

    #[test]
    fn an_offset_too_large_is_not_kept() {
        let mut kept = UnwindRuleCache::new();
        kept.put(5, rule(1 << 29));
        assert_eq!(kept.get(5), None);
    }

    proptest! {
        #[test]
        fn any_rule_survives(kind in 0..6u32, offset in -(1 << 28)..(1 << 28), base_offset in any::<i32>()) {
            let frame = match kind {
                0 => Frame::Unknown,
                1 => Frame::FromStack(offset),
                2 => Frame::FromBase(offset),
                3 => Frame::AtBase(offset),
                4 => Frame::Signal,
                _ => Frame::Outermost,
            };
            let rule = Rule { frame, base_offset };
            prop_assert_eq!(Packed::of(rule).unwrap().unpacked(), rule);
        }
    }
}
