//! Reading a trace: its blocks, and the rows of a block.
//!
//! A reader opens whatever is left of a file. With an intact index it touches nothing but the header, the end and what
//! it is asked for; without one it finds the blocks by scanning their headers. What is damaged is listed in
//! [`Reader::damage`], and reading a damaged block is an error that leaves all others readable.

use crate::block::{BLOCK_HEADER_BYTES, BlockHeader, BlockKind, CODEC_COLUMNS};
use crate::codec::{BlockDecoder, Scratch};
use crate::error::{Damage, Error, Problem};
use crate::header::{FILE_HEADER_BYTES, FileHeader, MAGIC};
use crate::scan::{self, damage, read_header};
use crate::source::Source;
use crate::table::{Columns, Projection, Table};
use crate::tables::{Index, IndexEntry};

/// A block of a file: where it is and what its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Where its header starts.
    pub offset: u64,
    /// Its header.
    pub header: BlockHeader,
}

impl Block {
    /// Whether rows of this block can lie within `from..to`. Rows without a time lie nowhere.
    pub fn overlaps(&self, from: u64, to: u64) -> bool {
        self.header.last_time != 0 && self.header.first_time < to && self.header.last_time >= from
    }
}

/// How the blocks were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockLookup {
    /// By the index.
    Index,
    /// By scanning the file: it is not finished, or damaged.
    Scan,
}

/// An open trace file.
pub struct Reader<S> {
    source: S,
    header: Option<FileHeader>,
    blocks: Vec<Block>,
    damage: Vec<Damage>,
    found: BlockLookup,
}

impl<S: Source> Reader<S> {
    /// Opens a trace.
    pub fn open(source: S) -> Result<Self, Error> {
        Self::open_after(source, &[])
    }

    /// Opens a trace that may have grown since `earlier` blocks were found in it. Without an index only what follows
    /// them is scanned. They are checked when they are read, as always.
    pub fn open_after(source: S, earlier: &[Block]) -> Result<Self, Error> {
        let header = read_file_header(&source)?;
        let mut reader = match read_index(&source, header.as_ref())? {
            Indexed::Whole(blocks) => Reader {
                source,
                header,
                blocks,
                damage: Vec::new(),
                found: BlockLookup::Index,
            },
            Indexed::Absent => Self::scan_from(source, header, earlier)?,
            Indexed::Broken(damage) => {
                let mut reader = Self::scan_from(source, header, earlier)?;
                if !reader.damage.iter().any(|other| other.offset == damage.offset) {
                    reader.damage.push(damage);
                }
                reader
            }
        };
        reader.note_file_damage();
        Ok(reader)
    }

    /// Opens a trace by looking at every block header, whatever the index says.
    pub fn scan(source: S) -> Result<Self, Error> {
        let header = read_file_header(&source)?;
        let mut reader = Self::scan_from(source, header, &[])?;
        reader.note_file_damage();
        Ok(reader)
    }

    fn scan_from(source: S, header: Option<FileHeader>, earlier: &[Block]) -> Result<Self, Error> {
        let found = scan::scan(&source, earlier)?;
        Ok(Reader {
            source,
            header,
            blocks: found.blocks,
            damage: found.damage,
            found: BlockLookup::Scan,
        })
    }

    /// What the file's header has to say of the file as a whole.
    fn note_file_damage(&mut self) {
        let length = self.source.length();
        match self.header.map(|header| header.file_length) {
            None => {
                self.damage
                    .insert(0, damage(0, FILE_HEADER_BYTES as u64, None, Problem::FileHeader));
            }
            Some(0) => {}
            Some(finished) if finished > length => {
                self.damage
                    .push(damage(length, finished - length, None, Problem::Shortened));
            }
            Some(finished) if finished < length && self.found == BlockLookup::Index => {
                self.damage
                    .push(damage(finished, length - finished, None, Problem::Trailing));
            }
            Some(_) => {}
        }
    }

    /// The file's header, unless it is damaged.
    pub fn header(&self) -> Option<&FileHeader> {
        self.header.as_ref()
    }

    /// All whole blocks in file order, the index and the end marker left out.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The blocks before the first damage that was found while opening.
    pub fn intact_blocks(&self) -> &[Block] {
        let end = self.damage.iter().map(|damage| damage.offset).min();
        let is_intact = |block: &Block| end.is_none_or(|end| block.offset < end);
        &self.blocks[..self.blocks.partition_point(is_intact)]
    }

    /// What was found to be unreadable while opening.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// How the blocks were found.
    pub fn found(&self) -> BlockLookup {
        self.found
    }

    /// The bytes underneath.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Something to read blocks with; make one for each thread and use it for many blocks.
    pub fn decoder(&self) -> Decoder<'_, S> {
        Decoder {
            source: &self.source,
            bytes: Vec::new(),
            scratch: Scratch::new(),
        }
    }
}

/// Reads blocks of one file.
pub struct Decoder<'r, S> {
    source: &'r S,
    bytes: Vec<u8>,
    scratch: Scratch,
}

impl<S: Source> Decoder<'_, S> {
    /// The wanted columns of a block of table `T`; columns that are not wanted stay empty.
    ///
    /// # Panics
    /// When the block is of another table's kind.
    pub fn read<T: Table>(&mut self, block: &Block, wanted: &Projection) -> Result<T::Columns, Error> {
        assert_eq!(block.header.kind, T::KIND, "the caller picks blocks by kind");
        let header = &block.header;
        let payload = checked_payload(self.source, block, &mut self.bytes)?;
        let columns = if header.codec == CODEC_COLUMNS {
            BlockDecoder::new(header, payload, &mut self.scratch)
                .and_then(|mut decoder| T::Columns::decode(&mut decoder, wanted))
        } else {
            Err(Problem::UnknownCodec { codec: header.codec })
        };
        columns.map_err(|problem| {
            Error::from(damage(block.offset, header.total_length(), Some(header), problem))
        })
    }

    /// The columns of any block by their ids, with the bytes that each takes. Headers and the directory of columns take
    /// the rest of the block.
    pub fn column_bytes(&mut self, block: &Block) -> Result<Vec<(u16, u64)>, Error> {
        let header = &block.header;
        let payload = checked_payload(self.source, block, &mut self.bytes)?;
        if header.codec != CODEC_COLUMNS {
            return Ok(Vec::new());
        }
        BlockDecoder::new(header, payload, &mut self.scratch)
            .map(|decoder| decoder.column_bytes().collect())
            .map_err(|problem| {
                Error::from(damage(block.offset, header.total_length(), Some(header), problem))
            })
    }

    /// The payload of any block, checked but not decoded.
    pub fn payload(&mut self, block: &Block) -> Result<&[u8], Error> {
        checked_payload(self.source, block, &mut self.bytes)
    }
}

fn checked_payload<'a>(
    source: &'a impl Source,
    block: &Block,
    buffer: &'a mut Vec<u8>,
) -> Result<&'a [u8], Error> {
    let header = &block.header;
    let total = header.total_length();
    let bytes = source
        .read(block.offset, total as usize, buffer)
        .map_err(|source| Error::Read { source })?;
    let (stored_header, payload) = bytes
        .split_first_chunk::<BLOCK_HEADER_BYTES>()
        .expect("a source gives as many bytes as asked for");
    let problem = match BlockHeader::from_bytes(stored_header) {
        Err(problem) => problem,
        Ok(stored) if stored != *header => Problem::Index,
        Ok(_) if crc32c::crc32c(payload) != header.payload_crc => Problem::Checksum,
        Ok(_) => return Ok(payload),
    };
    Err(damage(block.offset, total, Some(header), problem).into())
}

/// `None` when the header is damaged but the file is a trace all the same: a valid block follows.
fn read_file_header(source: &impl Source) -> Result<Option<FileHeader>, Error> {
    let length = source.length();
    let mut buffer = Vec::new();
    let start = length.min(FILE_HEADER_BYTES as u64) as usize;
    let bytes = source
        .read(0, start, &mut buffer)
        .map_err(|source| Error::Read { source })?;
    let Some(bytes) = bytes.first_chunk::<FILE_HEADER_BYTES>() else {
        let magic = &MAGIC[..bytes.len().min(MAGIC.len())];
        return Err(match bytes {
            [] => Error::Empty,
            _ if bytes.starts_with(magic) => Error::CutHeader { length },
            _ => Error::NotATrace,
        });
    };
    if let Some(header) = FileHeader::from_bytes(bytes)? {
        return Ok(Some(header));
    }
    let first_block = FILE_HEADER_BYTES as u64;
    let has_block = length >= first_block + BLOCK_HEADER_BYTES as u64
        && !matches!(read_header(source, first_block)?, Err(Problem::BlockHeader));
    if has_block {
        Ok(None)
    } else {
        Err(Error::NotATrace)
    }
}

/// What the end of the file says of its index.
enum Indexed {
    /// All blocks are known.
    Whole(Vec<Block>),
    /// There is no end marker: the file was never finished, or is cut.
    Absent,
    /// The end marker points at an index that cannot be read.
    Broken(Damage),
}

fn read_index(source: &impl Source, header: Option<&FileHeader>) -> Result<Indexed, Error> {
    const HEADER: u64 = BLOCK_HEADER_BYTES as u64;
    let end = match header {
        Some(header) if header.file_length != 0 => header.file_length,
        _ => source.length(),
    };
    if end > source.length() || end < FILE_HEADER_BYTES as u64 + HEADER {
        return Ok(Indexed::Absent);
    }
    let end_offset = end - HEADER;
    let start = match read_header(source, end_offset)? {
        Ok(marker) if marker.kind == BlockKind::END && marker.base <= end_offset => marker.base,
        _ => return Ok(Indexed::Absent),
    };
    let broken = |problem| {
        let kind = Some(BlockKind::INDEX);
        Ok(Indexed::Broken(Damage {
            kind,
            ..damage(start, end_offset - start, None, problem)
        }))
    };

    let mut decoder = Decoder {
        source,
        bytes: Vec::new(),
        scratch: Scratch::new(),
    };
    let mut blocks = Vec::new();
    let mut next = start;
    while next != end_offset {
        if end_offset - next < HEADER {
            return broken(Problem::Index);
        }
        let block = match read_header(source, next)? {
            Ok(header) => Block { offset: next, header },
            Err(problem) => return broken(problem),
        };
        next += block.header.total_length();
        if block.header.kind != BlockKind::INDEX || next > end_offset {
            return broken(Problem::Index);
        }
        match decoder.read::<IndexEntry>(&block, &Projection::all()) {
            Ok(index) if add_indexed_blocks(&index, start, &mut blocks) => {}
            Ok(_) => return broken(Problem::Index),
            Err(Error::Damaged { damage }) => return broken(damage.problem),
            Err(error) => return Err(error),
        }
    }
    if end_of(&blocks) == start {
        Ok(Indexed::Whole(blocks))
    } else {
        broken(Problem::Index)
    }
}

/// Where the block behind these starts.
pub(crate) fn end_of(blocks: &[Block]) -> u64 {
    blocks.last().map_or(FILE_HEADER_BYTES as u64, |last| {
        last.offset + last.header.total_length()
    })
}

/// False when the entries do not go on where the blocks before them end, or pass `end`: a few hundred bytes of index can
/// describe a quarter of a million blocks, and a file cannot hold more of them than it has bytes for.
fn add_indexed_blocks(index: &Index, end: u64, blocks: &mut Vec<Block>) -> bool {
    for row in 0..index.len() {
        let header = BlockHeader {
            kind: BlockKind(index.kind[row]),
            codec: index.codec[row],
            payload_length: index.payload_length[row],
            unpacked_length: index.unpacked_length[row],
            first_time: index.first_time[row],
            last_time: index.last_time[row],
            base: index.base[row],
            rows: index.rows[row],
            clock: index.clock[row],
            sequence: index.sequence[row],
            payload_crc: index.payload_crc[row],
        };
        let next = end_of(blocks);
        let passes_end = next.saturating_add(header.total_length()) > end;
        if header.check_limits().is_err() || index.offset[row] != next || passes_end {
            return false;
        }
        blocks.push(Block { offset: next, header });
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_describes_no_more_blocks_than_its_file_has_bytes_for() {
        let mut index = Index::default();
        for block in 0..1000 {
            index.push(&IndexEntry {
                offset: 64 + 64 * block,
                ..IndexEntry::default()
            });
        }
        let mut blocks = Vec::new();
        assert!(!add_indexed_blocks(&index, 64 + 64 * 10, &mut blocks));
        assert_eq!(blocks.len(), 10);
    }
}
