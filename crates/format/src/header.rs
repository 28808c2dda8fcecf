//! The file header: the first 64 bytes.
//!
//! ```text
//!  0  8  magic, 89 53 42 54 0D 0A 1A 0A     32  8  length of the finished file
//!  8  2  major version                      40 16  id of the trace
//! 10  2  minor version                      56  4  reserved, 0
//! 12  4  flags, 0                           60  4  CRC32C of bytes 0..60
//! 16  8  offset of the first metadata block
//! 24  8  offset of the index
//! ```
//!
//! The two offsets and the length are 0 until the file is finished, and stay 0 when it was written to a pipe. The magic is
//! built like PNG's: a transfer that changes line ends or drops the top bit breaks it visibly.

use crate::block::{u32_at, u64_at};
use crate::error::Error;

/// Length of the file header.
pub const FILE_HEADER_BYTES: usize = 64;
/// The first eight bytes of a trace.
pub const MAGIC: [u8; 8] = *b"\x89SBT\r\n\x1a\n";
/// The major version that this crate writes, and the newest that it reads.
pub const MAJOR_VERSION: u16 = 1;
/// The minor version that this crate writes.
pub const MINOR_VERSION: u16 = 0;

/// The header of a trace file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// Readers refuse a newer one.
    pub major: u16,
    /// Readers accept a newer one and skip what they do not know.
    pub minor: u16,
    /// Where the first metadata block is, or 0.
    pub metadata_offset: u64,
    /// Where the index is, or 0.
    pub index_offset: u64,
    /// How long the finished file is, or 0.
    pub file_length: u64,
    /// A number that tells this trace from all others.
    pub id: [u8; 16],
}

impl FileHeader {
    /// The header of a file that is being written.
    pub fn unfinished(id: [u8; 16]) -> Self {
        FileHeader {
            major: MAJOR_VERSION,
            minor: MINOR_VERSION,
            metadata_offset: 0,
            index_offset: 0,
            file_length: 0,
            id,
        }
    }

    /// The header's bytes.
    pub fn to_bytes(&self) -> [u8; FILE_HEADER_BYTES] {
        let mut out = [0; FILE_HEADER_BYTES];
        out[0..8].copy_from_slice(&MAGIC);
        out[8..10].copy_from_slice(&self.major.to_le_bytes());
        out[10..12].copy_from_slice(&self.minor.to_le_bytes());
        out[16..24].copy_from_slice(&self.metadata_offset.to_le_bytes());
        out[24..32].copy_from_slice(&self.index_offset.to_le_bytes());
        out[32..40].copy_from_slice(&self.file_length.to_le_bytes());
        out[40..56].copy_from_slice(&self.id);
        let crc = crc32c::crc32c(&out[..60]);
        out[60..64].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Reads a header. `Ok(None)` when the magic or the checksum is wrong: the caller decides by what follows
    /// whether this is a damaged trace or no trace at all.
    pub fn from_bytes(bytes: &[u8; FILE_HEADER_BYTES]) -> Result<Option<Self>, Error> {
        if bytes[..8] != MAGIC || u32_at(bytes, 60) != crc32c::crc32c(&bytes[..60]) {
            return Ok(None);
        }
        let header = FileHeader {
            major: u16::from_le_bytes([bytes[8], bytes[9]]),
            minor: u16::from_le_bytes([bytes[10], bytes[11]]),
            metadata_offset: u64_at(bytes, 16),
            index_offset: u64_at(bytes, 24),
            file_length: u64_at(bytes, 32),
            id: bytes[40..56].try_into().expect("a slice of sixteen bytes"),
        };
        if header.major > MAJOR_VERSION {
            return Err(Error::NewerVersion {
                major: header.major,
                minor: header.minor,
                supported: MAJOR_VERSION,
            });
        }
        Ok(Some(header))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_a_round_trip_and_notices_any_flipped_bit() {
        let header = FileHeader {
            metadata_offset: 64,
            index_offset: u64::MAX,
            file_length: 1 << 63,
            ..FileHeader::unfinished(*b"0123456789abcdef")
        };
        let bytes = header.to_bytes();
        assert_eq!(FileHeader::from_bytes(&bytes).unwrap(), Some(header));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FileHeader::from_bytes(&flipped).unwrap(), None);
        }
    }

    #[test]
    fn a_newer_major_version_is_refused_and_a_newer_minor_one_read() {
        let newer = FileHeader {
            major: 2,
            ..FileHeader::unfinished([0; 16])
        };
        assert!(matches!(
            FileHeader::from_bytes(&newer.to_bytes()),
            Err(Error::NewerVersion { major: 2, .. })
        ));
        let newer = FileHeader {
            minor: 9,
            ..FileHeader::unfinished([0; 16])
        };
        assert_eq!(FileHeader::from_bytes(&newer.to_bytes()).unwrap(), Some(newer));
    }
}
