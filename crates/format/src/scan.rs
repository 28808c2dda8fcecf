//! Finding the blocks of a file without its index: because it was cut off, is still being written, or is damaged.
//!
//! Only headers are read, so a scan costs one small read for each block. Behind a damaged header the next block is
//! found by its sync bytes and accepted by its checksum.

use memchr::memmem;

use crate::block::{BLOCK_HEADER_BYTES, BlockHeader, BlockKind, SYNC};
use crate::error::{Damage, Error, Problem};
use crate::header::FILE_HEADER_BYTES;
use crate::reader::Block;
use crate::source::Source;

/// How much is searched at a time for the next sync bytes.
const WINDOW: usize = 1 << 20;

/// What a scan found.
pub(crate) struct Scan {
    /// All whole blocks but the index and the end marker.
    pub(crate) blocks: Vec<Block>,
    /// Everything between them.
    pub(crate) damage: Vec<Damage>,
}

pub(crate) fn scan(source: &impl Source) -> Result<Scan, Error> {
    let mut found = Scan {
        blocks: Vec::new(),
        damage: Vec::new(),
    };
    let length = source.length();
    let mut offset = FILE_HEADER_BYTES as u64;
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
    let mut buffer = Vec::new();
    while window_start + (BLOCK_HEADER_BYTES as u64) <= length {
        let size = WINDOW.min((length - window_start) as usize);
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
