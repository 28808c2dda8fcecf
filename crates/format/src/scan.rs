//! Finding the blocks of a file without its index: because it was cut off, is still being written, or is damaged.
//!
//! Only headers are read, so a scan costs one small read for each block. Behind a damaged header the next block is
//! found by its sync bytes and accepted by its checksum.

use memchr::memmem;

use crate::block::{BLOCK_HEADER_BYTES, BlockHeader, BlockKind, SYNC};
use crate::error::{Damage, Error, Problem};
use crate::reader::{Block, end_of};
use crate::source::Source;

/// How much is searched at a time for the next sync bytes: little at first, since damage is mostly short, and twice as much
/// each time until this.
const LARGEST_WINDOW: usize = 1 << 20;
const FIRST_WINDOW: usize = 1 << 12;

/// What a scan found.
pub(crate) struct Scan {
    /// All whole blocks but the index and the end marker.
    pub(crate) blocks: Vec<Block>,
    /// Everything between them.
    pub(crate) damage: Vec<Damage>,
}

/// Scans a file from the end of the blocks that are known.
pub(crate) fn scan(source: &impl Source, known: &[Block]) -> Result<Scan, Error> {
    let mut found = Scan {
        blocks: known.to_vec(),
        damage: Vec::new(),
    };
    let length = source.length();
    let mut offset = end_of(known);
    let mut finished = false;
    while offset < length {
        let left = length - offset;
        if left < BLOCK_HEADER_BYTES as u64 {
            found.damage.push(damage(offset, left, None, Problem::Cut));
            break;
        }
        match read_header(source, offset)? {
            Ok(header) if header.total_length() > left => {
                found
                    .damage
                    .push(damage(offset, left, Some(&header), Problem::Cut));
                break;
            }
            Ok(header) => {
                match header.kind {
                    BlockKind::INDEX => {}
                    BlockKind::END => finished = true,
                    _ => found.blocks.push(Block { offset, header }),
                }
                offset += header.total_length();
            }
            Err(problem) => {
                let next = next_block(source, offset + 1)?.unwrap_or(length);
                found.damage.push(damage(offset, next - offset, None, problem));
                offset = next;
            }
        }
    }
    if !finished {
        found.damage.push(damage(length, 0, None, Problem::Unfinished));
    }
    Ok(found)
}

/// The header at an offset with at least a header's bytes behind it.
pub(crate) fn read_header(source: &impl Source, offset: u64) -> Result<Result<BlockHeader, Problem>, Error> {
    let mut buffer = Vec::new();
    let bytes = source
        .read(offset, BLOCK_HEADER_BYTES, &mut buffer)
        .map_err(|source| Error::Read { source })?
        .first_chunk()
        .expect("a source gives as many bytes as were asked for");
    Ok(BlockHeader::from_bytes(bytes))
}

/// The next offset with a valid header, at or behind `from`.
fn next_block(source: &impl Source, from: u64) -> Result<Option<u64>, Error> {
    let length = source.length();
    let finder = memmem::Finder::new(&SYNC);
    let mut window_start = from;
    let mut window_size = FIRST_WINDOW;
    let mut buffer = Vec::new();
    while window_start + (BLOCK_HEADER_BYTES as u64) <= length {
        let size = (window_size as u64).min(length - window_start) as usize;
        let window = source
            .read(window_start, size, &mut buffer)
            .map_err(|source| Error::Read { source })?;
        for at in finder.find_iter(window) {
            match window
                .get(at..at + BLOCK_HEADER_BYTES)
                .and_then(|bytes| bytes.first_chunk())
            {
                Some(bytes) if BlockHeader::from_bytes(bytes).is_ok() => {
                    return Ok(Some(window_start + at as u64));
                }
                _ => {}
            }
        }
        // Windows overlap by a header, so that none is missed at a seam.
        window_start += (size - BLOCK_HEADER_BYTES + 1) as u64;
        window_size = LARGEST_WINDOW.min(window_size * 2);
    }
    Ok(None)
}

pub(crate) fn damage(offset: u64, length: u64, header: Option<&BlockHeader>, problem: Problem) -> Damage {
    Damage {
        offset,
        length,
        rows: header.map_or(0, |header| header.rows),
        kind: header.map(|header| header.kind),
        sequence: header.map(|header| header.sequence),
        problem,
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::header::FILE_HEADER_BYTES;
    use crate::source::Memory;

    /// Counts the bytes that are read.
    struct Counting(Memory<Vec<u8>>, AtomicU64);

    impl Source for Counting {
        fn length(&self) -> u64 {
            self.0.length()
        }

        fn read<'a>(&'a self, offset: u64, length: usize, buffer: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
            self.1.fetch_add(length as u64, Ordering::Relaxed);
            self.0.read(offset, length, buffer)
        }
    }

    fn empty_block() -> BlockHeader {
        BlockHeader {
            kind: BlockKind(999),
            codec: 0,
            payload_length: 0,
            unpacked_length: 0,
            first_time: 0,
            last_time: 0,
            base: 0,
            rows: 0,
            clock: Default::default(),
            sequence: 0,
            payload_crc: 0,
        }
    }

    #[test]
    fn many_damaged_places_do_not_make_a_scan_read_the_file_over_and_over() {
        let mut file = vec![0; FILE_HEADER_BYTES];
        for _ in 0..2000 {
            file.extend_from_slice(&[7; 64]);
            file.extend_from_slice(&empty_block().to_bytes());
        }
        let length = file.len() as u64;
        let source = Counting(Memory(file), AtomicU64::new(0));
        let found = scan(&source, &[]).unwrap();
        assert_eq!(found.blocks.len(), 2000);
        assert!(source.1.into_inner() < 50 * length);
    }

    #[test]
    fn a_block_is_found_behind_damage_of_any_length() {
        for length in [1, 63, 4000, 4033, 4096, 12_000, 300_000, 3_000_000] {
            let mut file = vec![0; FILE_HEADER_BYTES];
            file.extend(std::iter::repeat_n(7, length));
            file.extend_from_slice(&empty_block().to_bytes());
            let found = scan(&Memory(file), &[]).unwrap();
            assert_eq!(found.blocks.len(), 1, "{length}");
            assert_eq!(found.damage[0].length, length as u64);
        }
    }
}
