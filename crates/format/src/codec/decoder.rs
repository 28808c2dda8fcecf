//! Payload to columns. Nothing in a payload is trusted: every length, row number and value is checked before use, and
//! memory is taken only for what the block's checked row count allows.

use std::rc::Rc;

use zstd::bulk::Decompressor;

use crate::block::BlockHeader;
use crate::codec::{Compression, Layout, Transform, packed, planes};
use crate::column_value::{ColumnType, ColumnValue};
use crate::error::Problem;
use crate::varint::{self, unzigzag};

/// Columns that one block may have. Tables have a few dozen; the rest is room for later versions.
const MAX_COLUMNS: u64 = 1024;
/// Columns of one block that others may be stored relative to: their lanes are kept while it is read. Tables have two.
const MAX_REFERENCES: usize = 16;

/// Buffers and zstd state that are kept from block to block.
pub(crate) struct Scratch {
    zstd: Decompressor<'static>,
    bytes: Vec<u8>,
    lanes: Vec<u64>,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        let zstd = Decompressor::new().expect("zstd's decoder needs nothing but memory");
        Scratch {
            zstd,
            bytes: Vec::new(),
            lanes: Vec::new(),
        }
    }
}

/// Reads the columns of one block.
pub struct BlockDecoder<'a> {
    rows: usize,
    /// What the header says the block unpacks to: byte strings may not take more.
    unpacked_length: usize,
    entries: Vec<Entry<'a>>,
    scratch: &'a mut Scratch,
    /// Lanes of columns that others are stored relative to.
    references: Vec<(u16, Rc<Vec<u64>>)>,
}

#[derive(Clone, Copy)]
struct Entry<'a> {
    id: u16,
    group: u16,
    column_type: ColumnType,
    transform: Transform,
    reference: u16,
    layout: Layout,
    compression: Compression,
    rows: usize,
    raw_length: usize,
    bytes: &'a [u8],
}

impl<'a> BlockDecoder<'a> {
    pub(crate) fn new(
        header: &BlockHeader,
        payload: &'a [u8],
        scratch: &'a mut Scratch,
    ) -> Result<Self, Problem> {
        let entries = directory(payload).ok_or(Problem::Directory)?;
        Ok(BlockDecoder {
            rows: header.rows as usize,
            unpacked_length: header.unpacked_length as usize,
            entries,
            scratch,
            references: Vec::new(),
        })
    }

    /// Rows in the block.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The ids of the columns that are present, in file order.
    pub fn column_ids(&self) -> impl Iterator<Item = u16> + '_ {
        self.entries.iter().map(|entry| entry.id)
    }

    /// The bytes that each column takes in the file.
    pub(crate) fn column_bytes(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.entries
            .iter()
            .map(|entry| (entry.id, entry.bytes.len() as u64))
    }

    /// One value for each row; zeros when the block does not have the column.
    pub fn column<T: ColumnValue>(&mut self, id: u16) -> Result<Vec<T>, Problem> {
        self.column_of(id, 0, self.rows)
    }

    /// The members of a group have a row for each distinct value.
    pub(crate) fn column_of<T: ColumnValue>(
        &mut self,
        id: u16,
        group: u16,
        rows: usize,
    ) -> Result<Vec<T>, Problem> {
        let Some(entry) = self.entry(id) else {
            return Ok(vec![T::from_word(0); rows]);
        };
        if !entry.column_type.reads_as(T::TYPE) {
            return Err(broken(id, "it is of another type"));
        }
        if entry.rows != rows || entry.group != group {
            return Err(broken(id, "it has another number of rows than its table"));
        }
        if entry.layout == Layout::Constant && entry.transform == Transform::Plain {
            let value = self.constant(&entry)?;
            return if value > T::MAX {
                Err(too_wide(id))
            } else {
                Ok(vec![T::from_word(value); rows])
            };
        }
        if self
            .entries
            .iter()
            .any(|e| e.transform == Transform::After && e.reference == id)
        {
            return values(id, &self.reference(id, rows, 0)?);
        }
        let mut lanes = std::mem::take(&mut self.scratch.lanes);
        let result = self
            .lanes(&entry, 0, &mut lanes)
            .and_then(|()| values(id, &lanes));
        self.scratch.lanes = lanes;
        result
    }

    /// Row numbers into a group's values, and how many values there are.
    pub(crate) fn index(&mut self, id: u16) -> Result<(Vec<u32>, usize), Problem> {
        let Some(entry) = self.entry(id) else {
            return Ok((vec![0; self.rows], 1));
        };
        if entry.column_type != ColumnType::Index || entry.rows != self.rows {
            return Err(broken(id, "it is not the index of a group"));
        }
        let mut lanes = std::mem::take(&mut self.scratch.lanes);
        let result = self.lanes(&entry, 0, &mut lanes).and_then(|()| {
            let distinct = lanes.iter().max().map_or(0, |max| max.saturating_add(1));
            if distinct > self.rows as u64 {
                return Err(broken(id, "it points behind the group's values"));
            }
            Ok((lanes.iter().map(|lane| *lane as u32).collect(), distinct as usize))
        });
        self.scratch.lanes = lanes;
        result
    }

    /// Lengths of the byte strings of a column, and all their bytes.
    pub(crate) fn blobs(&mut self, id: u16) -> Result<(Vec<u64>, Vec<u8>), Problem> {
        let Some(entry) = self.entry(id) else {
            return Ok((vec![0; self.rows], Vec::new()));
        };
        if entry.layout != Layout::Blob || entry.column_type != ColumnType::Blob || entry.rows != self.rows {
            return Err(broken(id, "it does not hold byte strings"));
        }
        let raw = unpacked_bytes(
            &entry,
            self.unpacked_length + packed_limit(entry.rows),
            self.scratch,
        )?;
        let mut rest = raw;
        let mut lengths = Vec::with_capacity(entry.rows);
        packed::decode(&mut rest, entry.rows, &mut lengths).ok_or(broken(id, "its lengths are cut off"))?;
        let total = lengths
            .iter()
            .try_fold(0u64, |sum, length| sum.checked_add(*length));
        if total != Some(rest.len() as u64) {
            return Err(broken(id, "its lengths do not add up to its bytes"));
        }
        Ok((lengths, rest.to_vec()))
    }

    fn entry(&self, id: u16) -> Option<Entry<'a>> {
        self.entries.iter().find(|entry| entry.id == id).copied()
    }

    fn constant(&self, entry: &Entry<'a>) -> Result<u64, Problem> {
        let mut bytes = entry.bytes;
        match (entry.compression, varint::take(&mut bytes)) {
            (Compression::None, Some(value)) if bytes.is_empty() => Ok(value),
            _ => Err(broken(entry.id, "its constant is malformed")),
        }
    }

    /// The column's values as lanes. `depth` counts columns stored relative to columns stored relative to…
    fn lanes(&mut self, entry: &Entry<'a>, depth: u8, out: &mut Vec<u64>) -> Result<(), Problem> {
        out.clear();
        let cut = broken(entry.id, "its bytes are cut off or too many");
        match entry.layout {
            Layout::Constant => out.resize(entry.rows, self.constant(entry)?),
            Layout::Packed => {
                let mut bytes = unpacked_bytes(entry, packed_limit(entry.rows), self.scratch)?;
                out.reserve(entry.rows);
                packed::decode(&mut bytes, entry.rows, out)
                    .filter(|()| bytes.is_empty())
                    .ok_or(cut)?;
            }
            Layout::Planes => {
                let bytes = unpacked_bytes(entry, entry.rows * 8, self.scratch)?;
                planes::decode(bytes, entry.rows, out).ok_or(cut)?;
            }
            Layout::Blob => return Err(broken(entry.id, "it holds byte strings")),
        }
        match entry.transform {
            Transform::Plain => {}
            Transform::Delta => {
                let mut value = 0u64;
                for lane in out {
                    value = value.wrapping_add(unzigzag(*lane) as u64);
                    *lane = value;
                }
            }
            Transform::Xor => {
                let mut value = 0u64;
                for lane in out {
                    value ^= *lane;
                    *lane = value;
                }
            }
            Transform::After => {
                // A column that is left out is all zeros.
                if self.entry(entry.reference).is_none() {
                    out.iter_mut().for_each(|lane| *lane = unzigzag(*lane) as u64);
                    return Ok(());
                }
                let reference = self.reference(entry.reference, entry.rows, depth + 1)?;
                for (lane, other) in out.iter_mut().zip(reference.iter()) {
                    *lane = other.wrapping_add(unzigzag(*lane) as u64);
                }
            }
        }
        Ok(())
    }

    /// The lanes of a column that others refer to, decoded once.
    fn reference(&mut self, id: u16, rows: usize, depth: u8) -> Result<Rc<Vec<u64>>, Problem> {
        let entry = self.entry(id).filter(|entry| entry.rows == rows);
        let entry = entry.ok_or(broken(id, "it has another number of rows than what refers to it"))?;
        if let Some((_, lanes)) = self.references.iter().find(|(other, _)| *other == id) {
            return Ok(Rc::clone(lanes));
        }
        // Writers chain at most start → end → completed. The limit also ends a chain that bites its tail.
        if depth > 4 {
            return Err(broken(id, "columns refer to each other in a circle"));
        }
        let mut lanes = Vec::new();
        self.lanes(&entry, depth, &mut lanes)?;
        let lanes = Rc::new(lanes);
        self.references.push((id, Rc::clone(&lanes)));
        Ok(lanes)
    }
}

fn directory(payload: &[u8]) -> Option<Vec<Entry<'_>>> {
    let mut rest = payload;
    let count = varint::take(&mut rest).filter(|count| *count <= MAX_COLUMNS)?;
    let mut entries = Vec::with_capacity(count as usize);
    let mut lengths = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let id = u16::try_from(varint::take(&mut rest)?).ok()?;
        let group = u16::try_from(varint::take(&mut rest)?).ok()?;
        let (&[column_type, transform, layout, compression], after) = rest.split_first_chunk::<4>()?;
        rest = after;
        let transform = Transform::from_number(transform)?;
        let reference = match transform {
            Transform::After => u16::try_from(varint::take(&mut rest)?).ok()?,
            _ => 0,
        };
        entries.push(Entry {
            id,
            group,
            column_type: ColumnType::from_number(column_type)?,
            transform,
            reference,
            layout: Layout::from_number(layout)?,
            compression: Compression::from_number(compression)?,
            rows: u32::try_from(varint::take(&mut rest)?).ok()? as usize,
            raw_length: u32::try_from(varint::take(&mut rest)?).ok()? as usize,
            bytes: &[],
        });
        lengths.push(usize::try_from(varint::take(&mut rest)?).ok()?);
    }
    let mut references: Vec<_> = entries.iter().map(|entry| entry.reference).collect();
    references.sort_unstable();
    references.dedup();
    // Columns that refer to none count as one: they say 0.
    if references.len() > MAX_REFERENCES + 1 {
        return None;
    }
    for (entry, length) in entries.iter_mut().zip(lengths) {
        (entry.bytes, rest) = rest.split_at_checked(length)?;
    }
    rest.is_empty().then_some(entries)
}

/// The column's bytes before compression, at most `limit` of them.
fn unpacked_bytes<'s>(
    entry: &Entry<'s>,
    limit: usize,
    scratch: &'s mut Scratch,
) -> Result<&'s [u8], Problem> {
    if entry.raw_length > limit {
        return Err(broken(
            entry.id,
            "it claims to unpack to more bytes than its rows can take",
        ));
    }
    match entry.compression {
        Compression::None if entry.bytes.len() == entry.raw_length => Ok(entry.bytes),
        Compression::None => Err(broken(entry.id, "its lengths disagree")),
        Compression::Zstd => {
            scratch.bytes.clear();
            scratch.bytes.reserve(entry.raw_length);
            match scratch.zstd.decompress_to_buffer(entry.bytes, &mut scratch.bytes) {
                Ok(length) if length == entry.raw_length => Ok(&scratch.bytes),
                _ => Err(broken(entry.id, "zstd cannot unpack it to the length it states")),
            }
        }
    }
}

/// Packed frames are never longer than this, even if every value were an exception.
fn packed_limit(rows: usize) -> usize {
    rows * 19 + 2
}

fn values<T: ColumnValue>(id: u16, lanes: &[u64]) -> Result<Vec<T>, Problem> {
    if T::MAX != u64::MAX && lanes.iter().fold(0, |any, lane| any | lane) > T::MAX {
        // The fold can only overstate within the same bit width; all maxima are of the form 2^n - 1.
        return Err(too_wide(id));
    }
    Ok(lanes.iter().map(|lane| T::from_word(*lane)).collect())
}

fn too_wide(id: u16) -> Problem {
    broken(id, "a value does not fit its type")
}

fn broken(column: u16, why: &'static str) -> Problem {
    Problem::Column { column, why }
}
