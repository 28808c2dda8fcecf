//! How a table's columns become the payload of one block, and back.
//!
//! Each column goes through three steps, and its entry in the payload's directory says which were taken:
//!
//! 1. a [`Transform`] makes the numbers small: differences to the row before, or to another column;
//! 2. a [`Layout`] writes them: one constant, bit-packed frames, or byte planes;
//! 3. zstd, where it helps.
//!
//! The writer measures both layouts of every column from time to time and keeps to the smaller one, so that a column
//! that is noise costs its entropy and a column that repeats costs next to nothing. A column of zeros is left out.

mod decoder;
mod encoder;
pub(crate) mod packed;
pub(crate) mod planes;

pub use decoder::BlockDecoder;
pub(crate) use decoder::Scratch;
pub use encoder::BlockEncoder;

/// What is done to a column's numbers before they are laid out. The number is stored in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Transform {
    /// As they are.
    Plain = 0,
    /// Folded difference to the row before; before the first row stands 0.
    Delta = 1,
    /// Folded difference to the same row of another column, which is named in the directory.
    After = 2,
    /// Exclusive or with the row before; before the first row stands 0. For measured values.
    Xor = 3,
}

impl Transform {
    fn from_number(number: u8) -> Option<Self> {
        [Self::Plain, Self::Delta, Self::After, Self::Xor]
            .into_iter()
            .find(|t| *t as u8 == number)
    }
}

/// How a column's numbers are written. The number is stored in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Layout {
    /// One varint that stands for every row, before the transform is undone.
    Constant = 0,
    /// Frames of bit-packed numbers.
    Packed = 1,
    /// Byte planes.
    Planes = 2,
    /// Packed lengths, then the bytes of all rows one after the other.
    Blob = 3,
}

impl Layout {
    fn from_number(number: u8) -> Option<Self> {
        [Self::Constant, Self::Packed, Self::Planes, Self::Blob]
            .into_iter()
            .find(|l| *l as u8 == number)
    }
}

/// How a column's bytes are compressed. The number is stored in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Compression {
    /// Not at all.
    None = 0,
    /// One zstd frame.
    Zstd = 1,
}

impl Compression {
    fn from_number(number: u8) -> Option<Self> {
        [Self::None, Self::Zstd].into_iter().find(|c| *c as u8 == number)
    }
}

#[cfg(test)]
mod tests;
