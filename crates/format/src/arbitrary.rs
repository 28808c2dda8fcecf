//! Rows of any content, for the tests of this crate and of those above it, and for the seeds of `fuzz/`.

use crate::blob::Blob;
use crate::column_value::ColumnValue;

/// Something that can be made from random numbers.
pub trait Arbitrary: Sized {
    /// Makes one.
    fn arbitrary(next: &mut dyn FnMut() -> u64) -> Self;
}

impl<T: ColumnValue> Arbitrary for T {
    fn arbitrary(next: &mut dyn FnMut() -> u64) -> Self {
        T::from_word(next() & T::MAX)
    }
}

impl Arbitrary for Blob {
    fn arbitrary(next: &mut dyn FnMut() -> u64) -> Self {
        let length = next() % 40;
        Blob((0..length).map(|_| next() as u8).collect())
    }
}

/// Random numbers in one of a few moods, so that columns get runs, small steps, extremes and noise.
pub fn numbers(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed | 1;
    let mut previous = seed;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        previous = match state % 7 {
            0 => 0,
            1 => u64::MAX,
            2 => state.rotate_left(29),
            3 => previous.wrapping_add(state % 1000),
            4 => state % 10,
            5 => 1 << 63,
            _ => previous,
        };
        previous
    }
}
