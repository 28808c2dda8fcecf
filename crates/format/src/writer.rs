//! Writing a trace as a stream.
//!
//! Rows are collected by table and leave as a block when enough have come together, or on [`Writer::flush`]. What rows
//! refer to is always written before them, so that every prefix of the file can be read. The sink needs nothing but
//! [`io::Write`]; where it can seek, [`Writer::seal`] also completes the header.

use std::collections::BTreeMap;
use std::io::{self, Seek, SeekFrom, Write};

use crate::block::{BlockHeader, BlockKind, CODEC_COLUMNS, MAX_BLOCK_BYTES, MAX_BLOCK_ROWS};
use crate::codec::BlockEncoder;
use crate::dictionary::Dictionaries;
use crate::error::Error;
use crate::for_each_table;
use crate::header::{FILE_HEADER_BYTES, FileHeader};
use crate::ids::{ClockId, FrameId, StackId, StringId};
use crate::reader::Block;
use crate::schema;
use crate::table::{Columns, Table};
use crate::tables::*;

/// A block is written when its byte strings reach this size, whatever its rows.
const BLOB_BYTES_PER_BLOCK: usize = 8 << 20;

/// How a trace is written.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// A number that tells this trace from all others; random, chosen by the caller.
    pub id: [u8; 16],
    /// zstd's level. 1 while capturing.
    pub level: i32,
    /// Rows of a block. Fewer make reading a short time range cheaper, more compress better.
    pub rows_per_block: u32,
}

impl Default for WriterOptions {
    fn default() -> Self {
        WriterOptions {
            id: [0; 16],
            level: 1,
            rows_per_block: 1 << 16,
        }
    }
}

/// Writes one trace.
pub struct Writer<W: Write> {
    sink: W,
    options: WriterOptions,
    header: FileHeader,
    written: u64,
    encoder: BlockEncoder,
    block: Vec<u8>,
    index: Index,
    /// Blocks written so far, which the index leaves itself out of.
    sequence: u32,
    rows_before: BTreeMap<BlockKind, u64>,
    dictionaries: Dictionaries,
    pending: Pending,
}

impl<W: Write> Writer<W> {
    /// Starts a trace: writes the header and the schema.
    pub fn new(sink: W, options: WriterOptions) -> Result<Self, Error> {
        let mut writer = Self::without_schema(sink, options)?;
        let schema = schema::columns(&mut writer.dictionaries)?;
        writer.write_dictionaries()?;
        writer.write_block::<SchemaColumn>(ClockId::NONE, &schema)?;
        Ok(writer)
    }

    /// Starts a trace that will hold blocks of another one, its schema included: see [`Writer::copy_block`].
    pub fn without_schema(sink: W, mut options: WriterOptions) -> Result<Self, Error> {
        options.rows_per_block = options.rows_per_block.clamp(1, MAX_BLOCK_ROWS / 2);
        let header = FileHeader::unfinished(options.id);
        let mut writer = Writer {
            sink,
            header,
            written: 0,
            encoder: BlockEncoder::new(options.level),
            options,
            block: Vec::new(),
            index: Index::default(),
            sequence: 0,
            rows_before: BTreeMap::new(),
            dictionaries: Dictionaries::new(),
            pending: Pending::default(),
        };
        writer.write(&header.to_bytes())?;
        Ok(writer)
    }

    /// Takes over a block of another file as it is, ids included. Only blocks of one file may be copied into a trace, in
    /// their order; rows and strings of one's own go on behind them.
    pub fn copy_block(&mut self, block: &Block, payload: &[u8]) -> Result<(), Error> {
        let header = BlockHeader {
            sequence: self.sequence,
            ..block.header
        };
        let next = header.base.saturating_add(u64::from(header.rows));
        self.rows_before.insert(header.kind, next);
        self.dictionaries
            .skip(header.kind, u32::try_from(next).unwrap_or(u32::MAX));
        self.note_block(&header);
        self.write(&header.to_bytes())?;
        self.write(payload)
    }

    /// The number of a string, which is stored if it is new.
    pub fn string(&mut self, text: &str) -> Result<StringId, Error> {
        self.dictionaries.string(text)
    }

    /// The number of a frame, which is stored if it is new.
    pub fn frame(&mut self, frame: Frame) -> Result<FrameId, Error> {
        self.dictionaries.frame(frame)
    }

    /// The number of a stack, which is stored if it is new.
    pub fn stack(&mut self, stack: Stack) -> Result<StackId, Error> {
        self.dictionaries.stack(stack)
    }

    /// The number of a whole stack, its frames given from the outermost inwards.
    pub fn stack_of(&mut self, frames: impl IntoIterator<Item = FrameId>) -> Result<StackId, Error> {
        let mut parent = StackId::NONE;
        for frame in frames {
            parent = self.stack(Stack {
                parent,
                frame,
                ..Stack::default()
            })?;
        }
        Ok(parent)
    }

    /// States a fact about the recording.
    pub fn metadata(&mut self, key: &str, value: &str) -> Result<(), Error> {
        let row = Metadata {
            key: self.string(key)?,
            value: self.string(value)?,
        };
        self.define(&row)
    }

    /// Adds a row that has no times of its own: a device, a process, a state of health.
    pub fn define<T: Writable>(&mut self, row: &T) -> Result<(), Error> {
        self.push(ClockId::NONE, row)
    }

    /// Adds a row whose times are of `clock`.
    #[inline]
    pub fn push<T: Writable>(&mut self, clock: ClockId, row: &T) -> Result<(), Error> {
        let blob_bytes = T::Columns::blob_bytes(row);
        if blob_bytes as u64 > MAX_BLOCK_BYTES / 2 {
            return Err(Error::RowTooLarge {
                size: blob_bytes as u64,
                limit: MAX_BLOCK_BYTES / 2,
            });
        }
        let rows_per_block = self.options.rows_per_block as usize;
        let pending = T::pending(&mut self.pending).of(clock);
        pending.blob_bytes += blob_bytes;
        pending.columns.push(row);
        if pending.columns.len() >= rows_per_block || pending.blob_bytes >= BLOB_BYTES_PER_BLOCK {
            self.write_pending::<T>(clock)?;
        }
        Ok(())
    }

    /// Writes rows that are columns already as a block of their own, behind what is pending of their table.
    pub fn push_columns<T: Writable>(&mut self, clock: ClockId, columns: &T::Columns) -> Result<(), Error> {
        self.write_pending::<T>(clock)?;
        self.write_dictionaries()?;
        self.write_block::<T>(clock, columns)
    }

    /// Writes all pending rows, so that a reader of the file sees everything so far.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.write_dictionaries()?;
        self.write_all_pending()?;
        self.sink.flush().map_err(|source| Error::Write {
            written: self.written,
            source,
        })
    }

    /// Writes all pending rows, the index and the end marker. The header of a file that cannot seek keeps its zeros;
    /// readers find the index from the end.
    pub fn finish(mut self) -> Result<W, Error> {
        self.write_end()?;
        Ok(self.sink)
    }

    /// Bytes written so far.
    pub fn bytes_written(&self) -> u64 {
        self.written
    }

    /// The output. Write nothing to it: the trace would be damaged.
    pub fn sink_mut(&mut self) -> &mut W {
        &mut self.sink
    }

    fn write_end(&mut self) -> Result<(), Error> {
        self.flush()?;
        let index_offset = self.written;
        let index = std::mem::take(&mut self.index);
        let mut piece = Index::default();
        for row in 0..index.len() {
            piece.push(&index.row(row));
            if piece.len() == MAX_BLOCK_ROWS as usize || row + 1 == index.len() {
                self.write_block::<IndexEntry>(ClockId::NONE, &piece)?;
                piece.clear();
            }
        }
        let end = BlockHeader {
            kind: BlockKind::END,
            codec: CODEC_COLUMNS,
            payload_length: 0,
            unpacked_length: 0,
            first_time: 0,
            last_time: 0,
            base: index_offset,
            rows: 0,
            clock: ClockId::NONE,
            sequence: self.sequence,
            payload_crc: 0,
        };
        self.write(&end.to_bytes())?;
        self.header.index_offset = index_offset;
        self.header.file_length = self.written;
        self.sink.flush().map_err(|source| Error::Write {
            written: self.written,
            source,
        })
    }

    fn write_pending<T: Writable>(&mut self, clock: ClockId) -> Result<(), Error> {
        self.write_dictionaries()?;
        let pending = T::pending(&mut self.pending).of(clock);
        let mut columns = std::mem::take(&mut pending.columns);
        pending.blob_bytes = 0;
        let result = self.write_block::<T>(clock, &columns);
        columns.clear();
        T::pending(&mut self.pending).of(clock).columns = columns;
        result
    }

    /// New strings before the frames that name them, new frames before the stacks that hold them.
    fn write_dictionaries(&mut self) -> Result<(), Error> {
        let texts = std::mem::take(&mut self.dictionaries.new_texts);
        self.write_in_pieces::<Text>(texts)?;
        let frames = std::mem::take(&mut self.dictionaries.new_frames);
        self.write_in_pieces::<Frame>(frames)?;
        let stacks = std::mem::take(&mut self.dictionaries.new_stacks);
        self.write_in_pieces::<Stack>(stacks)
    }

    /// Dictionaries can have grown beyond one block between two flushes.
    fn write_in_pieces<T: Table>(&mut self, columns: T::Columns) -> Result<(), Error> {
        let mut piece = T::Columns::default();
        let mut blob_bytes = 0;
        if columns.len() <= self.options.rows_per_block as usize && T::KIND != BlockKind::STRINGS {
            return self.write_block::<T>(ClockId::NONE, &columns);
        }
        for row in 0..columns.len() {
            let row = columns.row(row);
            blob_bytes += T::Columns::blob_bytes(&row);
            piece.push(&row);
            if piece.len() >= self.options.rows_per_block as usize || blob_bytes >= BLOB_BYTES_PER_BLOCK {
                self.write_block::<T>(ClockId::NONE, &piece)?;
                piece.clear();
                blob_bytes = 0;
            }
        }
        self.write_block::<T>(ClockId::NONE, &piece)
    }

    fn write_block<T: Table>(&mut self, clock: ClockId, columns: &T::Columns) -> Result<(), Error> {
        if columns.is_empty() {
            return Ok(());
        }
        let mut block = std::mem::take(&mut self.block);
        block.clear();
        block.resize(crate::block::BLOCK_HEADER_BYTES, 0);
        self.encoder.begin_block(T::KIND);
        columns.encode(&mut self.encoder);
        let blob_bytes = self.encoder.finish(&mut block);
        let unpacked = blob_bytes + schema::row_width::<T>() * columns.len() as u64;
        let payload = &block[crate::block::BLOCK_HEADER_BYTES..];
        let (first_time, last_time) = columns.span();
        let rows_before = self.rows_before.entry(T::KIND).or_default();
        let header = BlockHeader {
            kind: T::KIND,
            codec: CODEC_COLUMNS,
            payload_length: u32::try_from(payload.len()).unwrap_or(u32::MAX),
            unpacked_length: u32::try_from(unpacked).unwrap_or(u32::MAX),
            first_time,
            last_time,
            base: *rows_before,
            rows: u32::try_from(columns.len()).unwrap_or(u32::MAX),
            clock,
            sequence: self.sequence,
            payload_crc: crc32c::crc32c(payload),
        };
        if header.check_limits().is_err() {
            return Err(Error::RowTooLarge {
                size: unpacked,
                limit: MAX_BLOCK_BYTES,
            });
        }
        *rows_before += columns.len() as u64;
        block[..crate::block::BLOCK_HEADER_BYTES].copy_from_slice(&header.to_bytes());
        self.note_block(&header);
        let result = self.write(&block);
        self.block = block;
        result
    }

    /// Counts a block that starts here and enters it into the index.
    fn note_block(&mut self, header: &BlockHeader) {
        self.sequence = self.sequence.wrapping_add(1);
        if header.kind == BlockKind::METADATA && self.header.metadata_offset == 0 {
            self.header.metadata_offset = self.written;
        }
        self.index.push(&IndexEntry {
            offset: self.written,
            kind: header.kind.0,
            payload_length: header.payload_length,
            unpacked_length: header.unpacked_length,
            first_time: header.first_time,
            last_time: header.last_time,
            base: header.base,
            rows: header.rows,
            clock: header.clock,
            sequence: header.sequence,
            payload_crc: header.payload_crc,
            codec: header.codec,
        });
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.sink.write_all(bytes).map_err(|source| Error::Write {
            written: self.written,
            source,
        })?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}

impl<W: Write + Seek> Writer<W> {
    /// Like [`Writer::finish`], and completes the header. The sink must stand at the start when the writer is made.
    pub fn seal(mut self) -> Result<W, Error> {
        self.write_end()?;
        let written = self.written;
        let header = self.header.to_bytes();
        let mut rewrite = || -> io::Result<()> {
            self.sink.seek(SeekFrom::Start(0))?;
            self.sink.write_all(&header[..FILE_HEADER_BYTES])?;
            self.sink.seek(SeekFrom::End(0))?;
            self.sink.flush()
        };
        rewrite().map_err(|source| Error::Write { written, source })?;
        Ok(self.sink)
    }
}

/// A table that a writer collects rows of.
pub trait Writable: Table {
    #[doc(hidden)]
    fn pending(pending: &mut Pending) -> &mut PendingTable<Self>;
}

/// Rows of one table that are not written yet, apart by clock.
#[doc(hidden)]
pub struct PendingTable<T: Table> {
    by_clock: Vec<PendingRows<T>>,
}

struct PendingRows<T: Table> {
    clock: ClockId,
    columns: T::Columns,
    blob_bytes: usize,
}

impl<T: Table> Default for PendingTable<T> {
    fn default() -> Self {
        PendingTable { by_clock: Vec::new() }
    }
}

impl<T: Table> PendingTable<T> {
    /// A trace has a handful of clocks: looking through them beats hashing.
    #[inline]
    fn of(&mut self, clock: ClockId) -> &mut PendingRows<T> {
        let at = self
            .by_clock
            .iter()
            .position(|rows| rows.clock == clock)
            .unwrap_or_else(|| {
                self.by_clock.push(PendingRows {
                    clock,
                    columns: T::Columns::default(),
                    blob_bytes: 0,
                });
                self.by_clock.len() - 1
            });
        &mut self.by_clock[at]
    }
}

macro_rules! pending {
    ($($field:ident: $row:ident,)*) => {
        /// Rows of all tables that are not written yet.
        #[doc(hidden)]
        #[derive(Default)]
        pub struct Pending {
            $($field: PendingTable<$row>,)*
        }

        $(impl Writable for $row {
            fn pending(pending: &mut Pending) -> &mut PendingTable<Self> {
                &mut pending.$field
            }
        })*

        impl<W: Write> Writer<W> {
            /// What events refer to comes before them, table by table.
            fn write_all_pending(&mut self) -> Result<(), Error> {
                $(
                    let clocks: Vec<_> = self.pending.$field.by_clock.iter().map(|rows| rows.clock).collect();
                    for clock in clocks {
                        self.write_pending::<$row>(clock)?;
                    }
                )*
                Ok(())
            }
        }
    };
}
for_each_table!(pending);
