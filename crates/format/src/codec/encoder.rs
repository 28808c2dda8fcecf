//! Columns to payload.

use rustc_hash::FxHashMap;
use zstd::bulk::Compressor;

use crate::block::BlockKind;
use crate::codec::{Compression, Layout, Transform, packed, planes};
use crate::column_value::{ColumnType, ColumnValue};
use crate::varint::{self, zigzag};

/// Of so many blocks of a table one is measured, once there are many.
const MEASURED_BLOCKS: u32 = 16;

/// Whether layouts are measured in a table's nth block. A program's beginning is unlike the rest of it, so they are
/// measured again soon after the first.
fn is_measured(nth: u32) -> bool {
    nth == 0 || nth.is_power_of_two() || nth.is_multiple_of(MEASURED_BLOCKS)
}

/// Collects the columns of one block; reused from block to block so that its buffers are taken once.
pub struct BlockEncoder {
    zstd: Compressor<'static>,
    /// The table that the block is of, and whether layouts are measured for it.
    kind: BlockKind,
    measures: bool,
    /// Blocks of each table so far.
    blocks: FxHashMap<BlockKind, u32>,
    /// The layout that was smaller when it was last measured.
    choices: FxHashMap<(BlockKind, u16), Layout>,
    columns: u64,
    directory: Vec<u8>,
    data: Vec<u8>,
    blob_bytes: u64,
    lanes: Vec<u64>,
    packed: Vec<u8>,
    planes: Vec<u8>,
    compressed: Vec<u8>,
}

/// What the directory says of a column.
struct Entry {
    id: u16,
    group: u16,
    column_type: ColumnType,
    transform: Transform,
    reference: u16,
    rows: usize,
}

impl BlockEncoder {
    /// An encoder that compresses with this zstd level.
    pub fn new(level: i32) -> Self {
        BlockEncoder {
            zstd: Compressor::new(level).expect("zstd takes any level and clamps it"),
            kind: BlockKind::END,
            measures: true,
            blocks: FxHashMap::default(),
            choices: FxHashMap::default(),
            columns: 0,
            directory: Vec::new(),
            data: Vec::new(),
            blob_bytes: 0,
            lanes: Vec::new(),
            packed: Vec::new(),
            planes: Vec::new(),
            compressed: Vec::new(),
        }
    }

    /// Starts a block of a table.
    pub(crate) fn begin_block(&mut self, kind: BlockKind) {
        let blocks = self.blocks.entry(kind).or_default();
        (self.kind, self.measures) = (kind, is_measured(*blocks));
        *blocks = blocks.wrapping_add(1);
    }

    /// Adds a column. `group` is the index column it belongs to, or 0.
    pub fn column<T: ColumnValue>(&mut self, id: u16, group: u16, values: &[T], transform: Transform) {
        let entry = Entry {
            id,
            group,
            column_type: T::TYPE,
            transform,
            reference: 0,
            rows: values.len(),
        };
        if self.begin(&entry, values) {
            return;
        }
        let mut before = 0u64;
        match transform {
            Transform::Plain => {}
            Transform::After => unreachable!("column_after writes those"),
            Transform::Delta => {
                for lane in &mut self.lanes {
                    let step = lane.wrapping_sub(before);
                    before = *lane;
                    *lane = zigzag(step as i64);
                }
            }
            Transform::Xor => {
                for lane in &mut self.lanes {
                    (*lane, before) = (*lane ^ before, *lane);
                }
            }
        }
        self.lay_out(&entry);
    }

    /// Adds a column whose values lie near those of `reference_values`, the column with the id `reference`.
    pub fn column_after<T: ColumnValue, R: ColumnValue>(
        &mut self,
        id: u16,
        values: &[T],
        reference: u16,
        reference_values: &[R],
    ) {
        let entry = Entry {
            id,
            group: 0,
            column_type: T::TYPE,
            transform: Transform::After,
            reference,
            rows: values.len(),
        };
        if self.begin(&entry, values) {
            return;
        }
        for (lane, other) in self.lanes.iter_mut().zip(reference_values) {
            *lane = zigzag(lane.wrapping_sub(other.to_word()) as i64);
        }
        self.lay_out(&entry);
    }

    /// Adds the column of row numbers into a group's values.
    pub(crate) fn index_column(&mut self, id: u16, index: &[u32]) {
        let entry = Entry {
            id,
            group: 0,
            column_type: ColumnType::Index,
            transform: Transform::Plain,
            reference: 0,
            rows: index.len(),
        };
        if !self.begin(&entry, index) {
            self.lay_out(&entry);
        }
    }

    /// Adds a column of byte strings: their lengths, and all their bytes in one piece.
    pub(crate) fn blob_column(&mut self, id: u16, lengths: &[u64], bytes: &[u8]) {
        let entry = Entry {
            id,
            group: 0,
            column_type: ColumnType::Blob,
            transform: Transform::Plain,
            reference: 0,
            rows: lengths.len(),
        };
        if bytes.is_empty() {
            return;
        }
        self.packed.clear();
        packed::encode(lengths, &mut self.packed);
        self.packed.extend_from_slice(bytes);
        self.blob_bytes += bytes.len() as u64;
        compress(&mut self.zstd, &self.packed, &mut self.compressed);
        let (raw, compressed) = (
            std::mem::take(&mut self.packed),
            std::mem::take(&mut self.compressed),
        );
        if compressed.len() < raw.len() {
            self.add(&entry, Layout::Blob, Compression::Zstd, raw.len(), &compressed);
        } else {
            self.add(&entry, Layout::Blob, Compression::None, raw.len(), &raw);
        }
        (self.packed, self.compressed) = (raw, compressed);
    }

    /// Writes the payload to `out`, gives back the bytes of its byte strings, and is ready for the next block.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> u64 {
        varint::put(out, self.columns);
        out.extend_from_slice(&self.directory);
        out.extend_from_slice(&self.data);
        self.columns = 0;
        self.directory.clear();
        self.data.clear();
        std::mem::take(&mut self.blob_bytes)
    }

    /// Loads the lanes. True when the column is done already: nothing but one value.
    fn begin<T: ColumnValue>(&mut self, entry: &Entry, values: &[T]) -> bool {
        let Some(first) = values.first().map(|v| v.to_word()) else {
            return true;
        };
        if values.iter().all(|value| value.to_word() == first) {
            if first != 0 {
                self.packed.clear();
                varint::put(&mut self.packed, first);
                let value = std::mem::take(&mut self.packed);
                let entry = Entry {
                    transform: Transform::Plain,
                    ..*entry
                };
                self.add(&entry, Layout::Constant, Compression::None, value.len(), &value);
                self.packed = value;
            }
            return true;
        }
        self.lanes.clear();
        self.lanes.extend(values.iter().map(|value| value.to_word()));
        false
    }

    fn add_constant(&mut self, entry: &Entry, value: u64) {
        let mut bytes = Vec::with_capacity(10);
        varint::put(&mut bytes, value);
        self.add(entry, Layout::Constant, Compression::None, bytes.len(), &bytes);
    }

    /// Writes the transformed lanes in whichever layout is smallest: measured in the first block of a table and in every
    /// sixteenth, and kept to in between.
    fn lay_out(&mut self, entry: &Entry) {
        let first = self.lanes[0];
        if self.lanes.iter().all(|lane| *lane == first) {
            return self.add_constant(entry, first);
        }
        let lanes = std::mem::take(&mut self.lanes);
        let mut packed = std::mem::take(&mut self.packed);
        let mut compressed = std::mem::take(&mut self.compressed);
        let kept = self
            .choices
            .get(&(self.kind, entry.id))
            .copied()
            .filter(|_| !self.measures);
        packed.clear();
        compressed.clear();
        if kept != Some(Layout::Packed) {
            self.compress_planes(&lanes, &mut compressed);
        }
        // Planes that hardly compress are the sign that the column has changed.
        if kept != Some(Layout::Planes) || compressed.len() > self.planes.len() / 2 {
            packed::encode(&lanes, &mut packed);
        }
        // Packed frames are cheaper to decode: planes must be worth it.
        let worth_it = compressed.len() < packed.len() - packed.len() / 16;
        let choice = if packed.is_empty() || (!compressed.is_empty() && worth_it) {
            let raw_length = self.planes.len();
            self.add(entry, Layout::Planes, Compression::Zstd, raw_length, &compressed);
            Layout::Planes
        } else {
            self.add(entry, Layout::Packed, Compression::None, packed.len(), &packed);
            Layout::Packed
        };
        self.choices.insert((self.kind, entry.id), choice);
        (self.lanes, self.packed, self.compressed) = (lanes, packed, compressed);
    }

    fn compress_planes(&mut self, lanes: &[u64], compressed: &mut Vec<u8>) {
        let any = lanes.iter().fold(0, |any, lane| any | lane);
        let bytes = (64 - any.leading_zeros()).div_ceil(8);
        self.planes.clear();
        planes::encode(lanes, bytes, &mut self.planes);
        compress(&mut self.zstd, &self.planes, compressed);
    }

    fn add(
        &mut self,
        entry: &Entry,
        layout: Layout,
        compression: Compression,
        raw_length: usize,
        bytes: &[u8],
    ) {
        let out = &mut self.directory;
        varint::put(out, u64::from(entry.id));
        varint::put(out, u64::from(entry.group));
        out.extend_from_slice(&[
            entry.column_type as u8,
            entry.transform as u8,
            layout as u8,
            compression as u8,
        ]);
        if entry.transform == Transform::After {
            varint::put(out, u64::from(entry.reference));
        }
        varint::put(out, entry.rows as u64);
        varint::put(out, raw_length as u64);
        varint::put(out, bytes.len() as u64);
        self.data.extend_from_slice(bytes);
        self.columns += 1;
    }
}

fn compress(zstd: &mut Compressor<'static>, bytes: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.reserve(zstd::zstd_safe::compress_bound(bytes.len()));
    zstd.compress_to_buffer(bytes, out)
        .expect("the buffer is as large as zstd's own bound");
}
