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
pub enum Found {
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
    found: Found,
}

impl<S: Source> Reader<S> {
    /// Opens a trace.
    pub fn open(source: S) -> Result<Self, Error> {
        let header = read_file_header(&source)?;
        if let Some((blocks, mut damage)) = read_index(&source, header.as_ref())? {
            if header.is_none() {
                damage.insert(0, header_damage());
            }
            return Ok(Reader {
                source,
                header,
                blocks,
                damage,
                found: Found::Index,
            });
        }
        Self::scan_from(source, header)
    }

    /// Opens a trace by looking at every block header, whatever the index says.
    pub fn scan(source: S) -> Result<Self, Error> {
        let header = read_file_header(&source)?;
        Self::scan_from(source, header)
    }

    fn scan_from(source: S, header: Option<FileHeader>) -> Result<Self, Error> {
        let found = scan::scan(&source)?;
        let mut damage = found.damage;
        match header {
            None => damage.insert(0, header_damage()),
            Some(header) if header.file_length > source.length() => {
                let missing = header.file_length - source.length();
                damage.push(scan::damage(source.length(), missing, None, Problem::Shortened));
            }
            Some(_) => {}
        }
        Ok(Reader {
            source,
            header,
            blocks: found.blocks,
            damage,
            found: Found::Scan,
        })
    }

    /// The file's header, unless it is damaged.
    pub fn header(&self) -> Option<&FileHeader> {
        self.header.as_ref()
    }

    /// All whole blocks in file order, the index and the end marker left out.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// What was found to be unreadable while opening.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// How the blocks were found.
    pub fn found(&self) -> Found {
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

fn header_damage() -> Damage {
    damage(0, FILE_HEADER_BYTES as u64, None, Problem::FileHeader)
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

/// The blocks as the index lists them; `None` when there is no index or it cannot be trusted.
#[allow(clippy::type_complexity, reason = "one private use")]
fn read_index(
    source: &impl Source,
    header: Option<&FileHeader>,
) -> Result<Option<(Vec<Block>, Vec<Damage>)>, Error> {
    let length = source.length();
    let end = match header {
        Some(header) if header.file_length != 0 => header.file_length,
        _ => length,
    };
    let Some(end_offset) = end.checked_sub(BLOCK_HEADER_BYTES as u64) else {
        return Ok(None);
    };
    if end > length || end_offset < FILE_HEADER_BYTES as u64 {
        return Ok(None);
    }
    let Ok(marker) = read_header(source, end_offset)? else {
        return Ok(None);
    };
    let index_offset = marker.base;
    let index_fits = index_offset
        .checked_add(BLOCK_HEADER_BYTES as u64)
        .is_some_and(|i| i <= end_offset);
    if marker.kind != BlockKind::END || !index_fits {
        return Ok(None);
    }
    let mut decoder = Decoder {
        source,
        bytes: Vec::new(),
        scratch: Scratch::new(),
    };
    let mut blocks = Vec::new();
    let mut next_index = index_offset;
    while next_index != end_offset {
        if end_offset - next_index < BLOCK_HEADER_BYTES as u64 {
            return Ok(None);
        }
        let Ok(header) = read_header(source, next_index)? else {
            return Ok(None);
        };
        let block = Block {
            offset: next_index,
            header,
        };
        next_index += header.total_length();
        if header.kind != BlockKind::INDEX || next_index > end_offset {
            return Ok(None);
        }
        match decoder.read::<IndexEntry>(&block, &Projection::all()) {
            Ok(index) if add_indexed_blocks(&index, &mut blocks) => {}
            Ok(_) | Err(Error::Damaged { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    let blocks_end = blocks.last().map_or(FILE_HEADER_BYTES as u64, |last| {
        last.offset + last.header.total_length()
    });
    if blocks_end != index_offset {
        return Ok(None);
    }
    let mut damaged = Vec::new();
    if length > end {
        damaged.push(damage(end, length - end, None, Problem::Trailing));
    }
    Ok(Some((blocks, damaged)))
}

/// False when the entries do not go on where the blocks before them end.
fn add_indexed_blocks(index: &Index, blocks: &mut Vec<Block>) -> bool {
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
        let next = blocks.last().map_or(FILE_HEADER_BYTES as u64, |last| {
            last.offset + last.header.total_length()
        });
        if header.check_limits().is_err() || index.offset[row] != next {
            return false;
        }
        blocks.push(Block { offset: next, header });
    }
    true
}
