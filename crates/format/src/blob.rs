//! Columns of byte strings: dictionary texts, device code.

use crate::codec::{BlockDecoder, BlockEncoder};
use crate::error::Problem;

/// A byte string of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Blob(pub Vec<u8>);

/// A column of byte strings, kept in one piece.
#[derive(Clone, Debug, Default)]
pub struct Blobs {
    lengths: Vec<u64>,
    /// Where each string ends in `bytes`.
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl Blobs {
    /// The bytes of a row.
    pub fn get(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.bytes[start..self.ends[row]]
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The byte strings row by row.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|row| self.get(row))
    }

    /// Bytes of all rows together.
    pub fn total_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Adds a row.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.lengths.push(bytes.len() as u64);
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn clear(&mut self) {
        self.lengths.clear();
        self.ends.clear();
        self.bytes.clear();
    }

    pub(crate) fn encode(&self, id: u16, encoder: &mut BlockEncoder) {
        encoder.blob_column(id, &self.lengths, &self.bytes);
    }

    pub(crate) fn decode(id: u16, decoder: &mut BlockDecoder<'_>) -> Result<Self, Problem> {
        let (lengths, bytes) = decoder.blobs(id)?;
        let mut end = 0;
        let ends = lengths
            .iter()
            .map(|length| {
                end += *length as usize;
                end
            })
            .collect();
        Ok(Blobs { lengths, ends, bytes })
    }
}
