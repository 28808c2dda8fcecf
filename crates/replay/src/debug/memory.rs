//! Memory at several moments, read in chunks. Everything that looks at contents works on this, with a GPU and without.

use std::ops::Range;

use crate::error::Error;

/// Memory is read in chunks of this size.
pub(super) const CHUNK: u64 = 4 << 20;

/// A moment at which memory can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The current position.
    Now,
    /// Before the last call that has run.
    Before,
    /// The start of the window, as recorded.
    Begin,
    /// The end of the window, as recorded.
    End,
}

impl Moment {
    /// The moment with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Now, Self::Before, Self::Begin, Self::End];
        all.into_iter().find(|moment| moment.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Now => "now",
            Self::Before => "before",
            Self::Begin => "begin",
            Self::End => "end",
        }
    }
}

/// Something that has memory to look at.
pub trait Memory {
    /// The contents of a range at a moment.
    ///
    /// # Errors
    ///
    /// If they are not known, or if the driver reports an error.
    fn contents(&mut self, moment: Moment, range: Range<u64>) -> Result<Vec<u8>, Error>;
}

/// Parts of a range that start at multiples of `CHUNK` from its start.
pub(super) fn chunks(range: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
    let end = range.end;
    (range.start..end)
        .step_by(CHUNK as usize)
        .map(move |start| start..start.saturating_add(CHUNK).min(end))
}

/// Reads a range in chunks. All but the last contain whole elements of any type.
pub(super) fn each_chunk(
    memory: &mut impl Memory,
    moment: Moment,
    range: &Range<u64>,
    mut take: impl FnMut(&[u8]),
) -> Result<(), Error> {
    for chunk in chunks(range) {
        take(&memory.contents(moment, chunk)?);
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Memory from address 0 on, the same at all moments.
    pub(in crate::debug) struct Bytes(pub(in crate::debug) Vec<u8>);

    impl Memory for Bytes {
        fn contents(&mut self, _: Moment, range: Range<u64>) -> Result<Vec<u8>, Error> {
            Ok(self.0[range.start as usize..range.end as usize].to_vec())
        }
    }

    #[test]
    fn chunks_cover_a_range_without_gaps() {
        let range = 5..5 + 2 * CHUNK + 3;
        let all: Vec<Range<u64>> = chunks(&range).collect();
        assert_eq!(
            all,
            [5..5 + CHUNK, 5 + CHUNK..5 + 2 * CHUNK, 5 + 2 * CHUNK..range.end]
        );
        assert_eq!(chunks(&(7..7)).count(), 0);
    }
}
