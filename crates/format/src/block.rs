//! Block headers: what stands before every piece of a trace.
//!
//! ```text
//!  0  4  sync, "SBTB"            24  8  last time          52  4  CRC32C of the payload
//!  4  2  kind                    32  8  base               56  4  reserved, 0
//!  6  1  codec                   40  4  rows               60  4  CRC32C of bytes 0..60
//!  7  1  flags, 0                44  4  clock
//!  8  4  payload length          48  4  sequence
//! 12  4  unpacked length
//! 16  8  first time
//! ```
//!
//! Lengths are 32-bit on purpose: no block unpacks to more than [`MAX_BLOCK_BYTES`], so that a reader's memory is
//! bounded whatever a file claims. The sync bytes and the header's own checksum let a reader find the next
//! block behind a damaged one.

use std::fmt;

use crate::error::Problem;
use crate::ids::ClockId;

/// Length of a block header.
pub const BLOCK_HEADER_BYTES: usize = 64;
/// The most bytes that one block may unpack to.
pub const MAX_BLOCK_BYTES: u64 = 64 << 20;
/// The most rows that one block may hold.
pub const MAX_BLOCK_ROWS: u32 = 1 << 18;

/// The four bytes that open a block.
pub(crate) const SYNC: [u8; 4] = *b"SBTB";
/// The only codec so far: columns, each of which says how it is compressed.
pub(crate) const CODEC_COLUMNS: u8 = 0;

/// What a block holds. Numbers are never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockKind(pub u16);

impl serde::Serialize for BlockKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

macro_rules! kinds {
    ($($(#[$meta:meta])* $constant:ident = $number:literal $name:literal,)*) => {
        impl BlockKind {
            $($(#[$meta])* pub const $constant: Self = Self($number);)*

            /// All kinds that this version knows.
            pub const ALL: &'static [Self] = &[$(Self($number)),*];

            /// The kind's name, if this version knows it.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// Facts about the recording, as pairs of key and value.
    METADATA = 1 "metadata",
    /// Names and types of all columns.
    SCHEMA = 2 "schema",
    /// A piece of the string dictionary.
    STRINGS = 3 "strings",
    /// Machines.
    HOSTS = 4 "hosts",
    /// Processes.
    PROCESSES = 5 "processes",
    /// Threads.
    THREADS = 6 "threads",
    /// GPUs.
    DEVICES = 7 "devices",
    /// Contexts.
    CONTEXTS = 8 "contexts",
    /// Streams.
    STREAMS = 9 "streams",
    /// Programs and libraries mapped into processes.
    IMAGES = 10 "images",
    /// A piece of the frame dictionary.
    FRAMES = 11 "frames",
    /// A piece of the stack tree.
    STACKS = 12 "stacks",
    /// What frames turned out to be: function, file, line.
    SYMBOLS = 13 "symbols",
    /// Clocks.
    CLOCKS = 14 "clocks",
    /// Simultaneous readings of two clocks.
    CLOCK_PAIRS = 15 "clock_pairs",
    /// What was lost, cut or doubtful.
    HEALTH = 16 "health",
    /// Device code that was loaded.
    MODULES = 17 "modules",
    /// Calls of a recorded window.
    COMMANDS = 18 "commands",
    /// Memory that a recorded window can reach.
    BUFFERS = 19 "buffers",
    /// Pieces of the contents of memory.
    PIECES = 20 "pieces",
    /// Bytes of those pieces.
    CONTENTS = 21 "contents",
    /// What nodes of graphs wait for.
    GRAPH_EDGES = 22 "graph_edges",
    /// Kernels.
    KERNELS = 32 "kernels",
    /// Copies.
    COPIES = 33 "copies",
    /// Sets.
    SETS = 34 "sets",
    /// Synchronisations, event records and waits.
    SYNCS = 35 "syncs",
    /// Calls of the runtime or driver interface.
    API_CALLS = 36 "api_calls",
    /// Memory taken and given back.
    ALLOCATIONS = 37 "allocations",
    /// Samples of counters.
    COUNTERS = 38 "counters",
    /// Ranges and instants that the program marked.
    MARKERS = 39 "markers",
    /// Arrows between events.
    FLOWS = 40 "flows",
    /// Function calls and other work on the host.
    HOST_CALLS = 41 "host_calls",
    /// Graph launches seen as a whole.
    GRAPH_LAUNCHES = 42 "graph_launches",
    /// Collective and point-to-point communication.
    COLLECTIVES = 43 "collectives",
    /// Where every block is.
    INDEX = 65534 "index",
    /// The last block of a finished file.
    END = 65535 "end",
}

impl BlockKind {
    /// Whether blocks of this kind hold events with times, rather than what events refer to.
    pub fn is_events(self) -> bool {
        (32..1024).contains(&self.0)
    }
}

impl fmt::Display for BlockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => f.pad(&format!("kind_{}", self.0)),
        }
    }
}

impl fmt::Debug for BlockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlockKind({} {self})", self.0)
    }
}

/// A block's header, read or about to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// What the block holds.
    pub kind: BlockKind,
    /// How the payload is laid out.
    pub codec: u8,
    /// Bytes of payload behind the header.
    pub payload_length: u32,
    /// Bytes that the payload's values take without any encoding.
    pub unpacked_length: u32,
    /// Earliest time in the block; 0 when it has none.
    pub first_time: u64,
    /// Latest time in the block; 0 when it has none.
    pub last_time: u64,
    /// Rows of the same kind in all blocks before this one; for a dictionary piece one less than its first id.
    /// For the end marker the offset of the index.
    pub base: u64,
    /// Rows in the block.
    pub rows: u32,
    /// The clock of its times.
    pub clock: ClockId,
    /// The block's place in the file, counted from 0.
    pub sequence: u32,
    /// Checksum of the payload.
    pub payload_crc: u32,
}

impl BlockHeader {
    /// The header's bytes.
    pub fn to_bytes(&self) -> [u8; BLOCK_HEADER_BYTES] {
        let mut out = [0; BLOCK_HEADER_BYTES];
        out[0..4].copy_from_slice(&SYNC);
        out[4..6].copy_from_slice(&self.kind.0.to_le_bytes());
        out[6] = self.codec;
        out[8..12].copy_from_slice(&self.payload_length.to_le_bytes());
        out[12..16].copy_from_slice(&self.unpacked_length.to_le_bytes());
        out[16..24].copy_from_slice(&self.first_time.to_le_bytes());
        out[24..32].copy_from_slice(&self.last_time.to_le_bytes());
        out[32..40].copy_from_slice(&self.base.to_le_bytes());
        out[40..44].copy_from_slice(&self.rows.to_le_bytes());
        out[44..48].copy_from_slice(&self.clock.0.to_le_bytes());
        out[48..52].copy_from_slice(&self.sequence.to_le_bytes());
        out[52..56].copy_from_slice(&self.payload_crc.to_le_bytes());
        let crc = crc32c::crc32c(&out[..60]);
        out[60..64].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Reads a header and checks it against its checksum and the format's limits.
    pub fn from_bytes(bytes: &[u8; BLOCK_HEADER_BYTES]) -> Result<Self, Problem> {
        let crc = crc32c::crc32c(&bytes[..60]);
        if bytes[..4] != SYNC || u32_at(bytes, 60) != crc {
            return Err(Problem::BlockHeader);
        }
        let header = BlockHeader {
            kind: BlockKind(u16::from_le_bytes([bytes[4], bytes[5]])),
            codec: bytes[6],
            payload_length: u32_at(bytes, 8),
            unpacked_length: u32_at(bytes, 12),
            first_time: u64_at(bytes, 16),
            last_time: u64_at(bytes, 24),
            base: u64_at(bytes, 32),
            rows: u32_at(bytes, 40),
            clock: ClockId(u32_at(bytes, 44)),
            sequence: u32_at(bytes, 48),
            payload_crc: u32_at(bytes, 52),
        };
        header.check_limits()?;
        Ok(header)
    }

    /// Bytes of header and payload together.
    pub fn total_length(&self) -> u64 {
        BLOCK_HEADER_BYTES as u64 + u64::from(self.payload_length)
    }

    pub(crate) fn check_limits(&self) -> Result<(), Problem> {
        for length in [self.payload_length, self.unpacked_length] {
            if u64::from(length) > MAX_BLOCK_BYTES {
                return Err(Problem::TooLarge {
                    what: "bytes",
                    claimed: u64::from(length),
                    limit: MAX_BLOCK_BYTES,
                });
            }
        }
        if self.rows > MAX_BLOCK_ROWS && self.kind != BlockKind::END {
            return Err(Problem::TooLarge {
                what: "rows",
                claimed: u64::from(self.rows),
                limit: u64::from(MAX_BLOCK_ROWS),
            });
        }
        Ok(())
    }
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("a slice of four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("a slice of eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> BlockHeader {
        BlockHeader {
            kind: BlockKind::KERNELS,
            codec: 0,
            payload_length: 1000,
            unpacked_length: 20000,
            first_time: 1,
            last_time: u64::MAX,
            base: 1 << 40,
            rows: 100,
            clock: ClockId(3),
            sequence: 7,
            payload_crc: 0xdead_beef,
        }
    }

    #[test]
    fn a_header_survives_a_round_trip() {
        assert_eq!(BlockHeader::from_bytes(&sample().to_bytes()), Ok(sample()));
    }

    #[test]
    fn any_flipped_bit_is_noticed() {
        let bytes = sample().to_bytes();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(BlockHeader::from_bytes(&flipped), Err(Problem::BlockHeader));
        }
    }

    #[test]
    fn a_block_of_a_terabyte_is_refused() {
        let header = BlockHeader {
            unpacked_length: u32::MAX,
            ..sample()
        };
        assert!(matches!(
            BlockHeader::from_bytes(&header.to_bytes()),
            Err(Problem::TooLarge { .. })
        ));
        let header = BlockHeader {
            rows: MAX_BLOCK_ROWS + 1,
            ..sample()
        };
        assert!(matches!(
            BlockHeader::from_bytes(&header.to_bytes()),
            Err(Problem::TooLarge { .. })
        ));
    }

    #[test]
    fn kinds_have_one_number_and_one_name_each() {
        let mut names: Vec<_> = BlockKind::ALL.iter().map(|k| k.name().unwrap()).collect();
        let mut numbers: Vec<_> = BlockKind::ALL.iter().map(|k| k.0).collect();
        names.sort_unstable();
        names.dedup();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(
            (names.len(), numbers.len()),
            (BlockKind::ALL.len(), BlockKind::ALL.len())
        );
    }
}
