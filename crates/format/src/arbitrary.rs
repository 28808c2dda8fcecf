//! Rows of any content, for property tests.

use crate::blob::Blob;
use crate::lane::Lane;

/// Something that can be made from random numbers.
pub(crate) trait Arbitrary: Sized {
    fn arbitrary(next: &mut dyn FnMut() -> u64) -> Self;
}

impl<T: Lane> Arbitrary for T {
    fn arbitrary(next: &mut dyn FnMut() -> u64) -> Self {
        T::from_lane(next() & T::MAX)
    }
}

impl Arbitrary for Blob {
    fn arbitrary(next: &mut dyn FnMut() -> u64) -> Self {
        let length = next() % 40;
        Blob((0..length).map(|_| next() as u8).collect())
    }
}
