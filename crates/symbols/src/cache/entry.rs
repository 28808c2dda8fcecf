//! What the cache keeps of one file: rows of functions in compressed blocks, with an index.
//!
//! ```text
//! magic 8 | version 4 | header length 4 | CRC32C of the header 4 | header | blocks
//! ```
//!
//! The header names the file by its build ID and states from which files the rows were read. A lookup reads the header
//! and one block. Each has a checksum, and whatever does not fit makes the lookup fail: then the file itself is read.
//!
//! Numbers in the header and in blocks are LEB128, texts have their length before them.

use std::{collections::BTreeMap, fs::File, ops::Range, os::unix::fs::FileExt};

use crate::{
    module::{Extent, Function},
    names::demangled,
};

const MAGIC: [u8; 8] = *b"TSsymbol";
/// Of this layout, and of how names are made from symbols.
const VERSION: u32 = 1;
const PREFIX: usize = 20;

/// Rows of a block: a lookup unpacks one. With 64, the entry of libLLVM 19 is 23 % larger, and 2036 addresses that are spread
/// over it take 10 to 30 % longer (example `cache_timing`).
const BLOCK_ROWS: usize = 512;
/// A block ends earlier when it has so many bytes.
const BLOCK_BYTES: usize = 256 << 10;
/// Larger ones are damaged. One row more than a full block fits, with a name of the maximum length.
const MAX_BLOCK: usize = 4 << 20;
const MAX_HEADER: usize = 16 << 20;
/// Longer texts are left out.
const MAX_TEXT: usize = 1 << 20;
const MAX_FUNCTIONS: u64 = 1024;
const LEVEL: i32 = 1;

/// Which file an entry is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) build_id: String,
    /// The files from which it is read: see [`Sources::key`](crate::Sources).
    pub(crate) key: Vec<u8>,
}

/// What the rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The whole symbol table. An address without a row has no function.
    Table = 1,
    /// Addresses that were resolved before. Nothing is known of others.
    Resolved = 2,
}

/// Some addresses, and their functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) start: u64,
    /// 0 means up to the next row.
    pub(crate) size: u64,
    pub(crate) functions: Vec<Function>,
}

/// Where bytes are read.
pub(crate) trait Bytes {
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Option<()>;
}

impl Bytes for File {
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Option<()> {
        // What cannot be read is as good as damaged.
        self.read_exact_at(bytes, offset).ok()
    }
}

impl Bytes for &[u8] {
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Option<()> {
        let start = usize::try_from(offset).ok()?;
        bytes.copy_from_slice(self.get(start..start.checked_add(bytes.len())?)?);
        Some(())
    }
}

/// An entry, opened for lookups.
#[derive(Debug)]
pub(crate) struct Entry<B> {
    bytes: B,
    form: Form,
    extent: Extent,
    code: Vec<Range<u64>>,
    blocks: Vec<Block>,
    /// Blocks that were unpacked. None is one that is damaged.
    unpacked: BTreeMap<usize, Option<Vec<Row>>>,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    first: u64,
    offset: u64,
    packed: usize,
    raw: usize,
    checksum: u32,
}

impl<B: Bytes> Entry<B> {
    /// Opens an entry. None if it is not whole, or about another file.
    pub(crate) fn open(bytes: B, identity: &Identity) -> Option<Self> {
        let mut prefix = [0; PREFIX];
        bytes.read(0, &mut prefix)?;
        let word = |at: usize| prefix.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
        let length = usize::try_from(word(12)?).ok()?;
        if prefix[..8] != MAGIC || word(8)? != VERSION || length > MAX_HEADER {
            return None;
        }
        let mut header = vec![0; length];
        bytes.read(PREFIX as u64, &mut header)?;
        if crc32c::crc32c(&header) != word(16)? {
            return None;
        }
        let mut reader = Reader(&header);
        if reader.text()? != identity.build_id || reader.slice()? != identity.key {
            return None;
        }
        let form = match reader.number()? {
            1 => Form::Table,
            2 => Form::Resolved,
            _ => return None,
        };
        let extent = match reader.number()? {
            0 => Extent::Lines,
            1 => Extent::Functions,
            2 => Extent::Exports,
            _ => return None,
        };
        let code = reader.list(|reader| {
            let start = reader.number()?;
            Some(start..start.checked_add(reader.number()?)?)
        })?;
        let mut offset = (PREFIX + length) as u64;
        let blocks = reader.list(|reader| {
            let block = Block {
                first: reader.number()?,
                offset,
                packed: reader.size(MAX_BLOCK)?,
                raw: reader.size(MAX_BLOCK)?,
                checksum: u32::try_from(reader.number()?).ok()?,
            };
            offset = offset.checked_add(block.packed as u64)?;
            Some(block)
        })?;
        let is_sorted = blocks.is_sorted_by(|block, next| block.first < next.first);
        (is_sorted && reader.0.is_empty()).then_some(Self {
            bytes,
            form,
            extent,
            code,
            blocks,
            unpacked: BTreeMap::new(),
        })
    }

    pub(crate) fn extent(&self) -> Extent {
        self.extent
    }

    /// The functions at an address, as [`Module::functions`](crate::Module::functions) has them. None if the entry does
    /// not say.
    pub(crate) fn functions(&mut self, address: u64) -> Option<Vec<Function>> {
        if !self.code.is_empty() && !self.code.iter().any(|code| code.contains(&address)) {
            return Some(Vec::new());
        }
        let form = self.form;
        let row = match self.row(address) {
            Found::Row(row) => row,
            Found::Nothing if form == Form::Table => return Some(Vec::new()),
            Found::Nothing | Found::Damaged => return None,
        };
        let mut functions = row.functions.clone();
        if form == Form::Table {
            for function in &mut functions {
                function.name = demangled(&function.name);
            }
        }
        functions.retain(|function| !function.name.is_empty());
        Some(functions)
    }

    /// The rows of an entry of resolved addresses that are not damaged.
    pub(crate) fn into_rows(mut self) -> Vec<Row> {
        let mut rows = Vec::new();
        for at in 0..self.blocks.len() {
            if self.form == Form::Resolved
                && let Some(block) = self.unpacked.remove(&at).unwrap_or_else(|| self.unpack(at))
            {
                rows.extend(block);
            }
        }
        rows
    }

    fn row(&mut self, address: u64) -> Found<'_> {
        let behind = self.blocks.partition_point(|block| block.first <= address);
        let Some(at) = behind.checked_sub(1) else {
            return Found::Nothing;
        };
        if !self.unpacked.contains_key(&at) {
            let rows = self.unpack(at);
            self.unpacked.insert(at, rows);
        }
        let Some(Some(rows)) = self.unpacked.get(&at) else {
            return Found::Damaged;
        };
        let behind = rows.partition_point(|row| row.start <= address);
        let row = behind.checked_sub(1).and_then(|at| rows.get(at));
        match row {
            Some(row) if row.size == 0 || address - row.start < row.size => Found::Row(row),
            _ => Found::Nothing,
        }
    }

    fn unpack(&self, at: usize) -> Option<Vec<Row>> {
        let block = *self.blocks.get(at)?;
        let mut packed = vec![0; block.packed];
        self.bytes.read(block.offset, &mut packed)?;
        if crc32c::crc32c(&packed) != block.checksum {
            return None;
        }
        let raw = zstd::bulk::decompress(&packed, block.raw).ok()?; // its checksum is right and it is none of ours
        if raw.len() != block.raw {
            return None;
        }
        let end = self.blocks.get(at + 1).map_or(u64::MAX, |next| next.first);
        let mut reader = Reader(&raw);
        let mut rows: Vec<Row> = Vec::new();
        while !reader.0.is_empty() {
            let before = rows.last().map(|row| row.start);
            let distance = reader.number()?;
            let start = match before {
                None => distance,
                Some(before) => before.checked_add(distance).filter(|start| *start > before)?,
            };
            let size = reader.number()?;
            let count = reader.number().filter(|count| *count <= MAX_FUNCTIONS)?;
            let functions = (0..count).map(|_| reader.function()).collect::<Option<_>>()?;
            rows.push(Row {
                start,
                size,
                functions,
            });
        }
        let is_first = rows.first().is_some_and(|row| row.start == block.first);
        let is_last = rows.last().is_some_and(|row| row.start < end || end == u64::MAX);
        (is_first && is_last).then_some(rows)
    }
}

enum Found<'r> {
    Row(&'r Row),
    Nothing,
    Damaged,
}

/// The bytes of an entry. Rows are sorted by their starts, which differ. None if one of them is too large to be kept.
pub(crate) fn encode(
    identity: &Identity,
    form: Form,
    extent: Extent,
    code: &[Range<u64>],
    rows: impl Iterator<Item = Row>,
) -> Option<Vec<u8>> {
    let mut blocks = Writer::default();
    let mut index = Writer::default();
    let mut count = 0;
    let mut block = Writer::default();
    let mut in_block: Option<(u64, u64, usize)> = None; // first, last, rows
    let mut finish = |block: &mut Writer, first: u64| -> Option<()> {
        let raw = std::mem::take(&mut block.0);
        let packed = zstd::bulk::compress(&raw, LEVEL).ok()?; // out of memory
        if raw.len() > MAX_BLOCK || packed.len() > MAX_BLOCK {
            return None;
        }
        index.number(first);
        index.number(packed.len() as u64);
        index.number(raw.len() as u64);
        index.number(u64::from(crc32c::crc32c(&packed)));
        blocks.0.extend_from_slice(&packed);
        count += 1;
        Some(())
    };
    for row in rows {
        if let Some((first, _, held)) = in_block
            && (held == BLOCK_ROWS || block.0.len() >= BLOCK_BYTES)
        {
            finish(&mut block, first)?;
            in_block = None;
        }
        block.number(in_block.map_or(row.start, |(_, last, _)| row.start - last));
        block.row(&row)?;
        in_block = Some(in_block.map_or((row.start, row.start, 1), |(first, _, held)| {
            (first, row.start, held + 1)
        }));
    }
    if let Some((first, ..)) = in_block {
        finish(&mut block, first)?;
    }
    let mut header = Writer::default();
    header.slice(identity.build_id.as_bytes());
    header.slice(&identity.key);
    header.number(form as u64);
    header.number(match extent {
        Extent::Lines => 0,
        Extent::Functions => 1,
        Extent::Exports => 2,
    });
    header.number(code.len() as u64);
    for range in code {
        header.number(range.start);
        header.number(range.end.saturating_sub(range.start));
    }
    header.number(count);
    header.0.extend_from_slice(&index.0);
    let length = u32::try_from(header.0.len())
        .ok()
        .filter(|length| *length as usize <= MAX_HEADER)?;
    let mut entry = MAGIC.to_vec();
    for word in [VERSION, length, crc32c::crc32c(&header.0)] {
        entry.extend_from_slice(&word.to_le_bytes());
    }
    entry.extend_from_slice(&header.0);
    entry.extend_from_slice(&blocks.0);
    Some(entry)
}

struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7f);
            // The last one has room for one bit.
            if shift == 63 && bits > 1 {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn size(&mut self, limit: usize) -> Option<usize> {
        let size = usize::try_from(self.number()?).ok()?;
        (size <= limit).then_some(size)
    }

    fn slice(&mut self) -> Option<&'b [u8]> {
        let length = self.size(MAX_TEXT)?;
        let (slice, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(slice)
    }

    fn text(&mut self) -> Option<&'b str> {
        std::str::from_utf8(self.slice()?).ok() // not ours
    }

    fn function(&mut self) -> Option<Function> {
        Some(Function {
            name: self.text()?.to_owned(),
            file: self.text()?.to_owned(),
            line: u32::try_from(self.number()?).ok()?,
            column: u32::try_from(self.number()?).ok()?,
        })
    }

    /// As many as stated. Each takes a byte at least, so that a damaged count takes no memory.
    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.size(self.0.len())?;
        (0..count).map(|_| read(self)).collect()
    }
}

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn slice(&mut self, slice: &[u8]) {
        self.number(slice.len() as u64);
        self.0.extend_from_slice(slice);
    }

    /// All of a row but its start.
    fn row(&mut self, row: &Row) -> Option<()> {
        self.number(row.size);
        self.number(row.functions.len() as u64);
        for function in &row.functions {
            if function.name.len().max(function.file.len()) > MAX_TEXT {
                return None;
            }
            self.slice(function.name.as_bytes());
            self.slice(function.file.as_bytes());
            self.number(u64::from(function.line));
            self.number(u64::from(function.column));
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn function() -> impl Strategy<Value = Function> {
        (".{0,20}", ".{0,20}", any::<u32>(), any::<u32>()).prop_map(|(name, file, line, column)| Function {
            name,
            file,
            line,
            column,
        })
    }

    /// Up to some blocks of rows.
    fn rows() -> impl Strategy<Value = Vec<Row>> {
        let row = (any::<u64>(), prop::collection::vec(function(), 0..3));
        let rows = prop::collection::btree_map(any::<u64>(), row, 0..3 * BLOCK_ROWS);
        rows.prop_map(|rows: BTreeMap<u64, _>| {
            let rows = rows.into_iter().map(|(start, (size, functions))| Row {
                start,
                size,
                functions,
            });
            rows.collect()
        })
    }

    fn identity() -> impl Strategy<Value = Identity> {
        ("[0-9a-f]{4,40}", prop::collection::vec(any::<u8>(), 0..100))
            .prop_map(|(build_id, key)| Identity { build_id, key })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn rows_that_are_encoded_are_read_again(
            identity in identity(),
            rows in rows(),
            code in prop::collection::vec((0..u64::MAX / 2, 0..u64::MAX / 2), 0..4),
        ) {
            let code: Vec<_> = code.into_iter().map(|(start, size)| start..start + size).collect();
            let encoded = encode(&identity, Form::Resolved, Extent::Lines, &code, rows.iter().cloned());
            let encoded = encoded.expect("no text is too long");
            let entry = Entry::open(encoded.as_slice(), &identity).expect("it is whole");
            prop_assert_eq!(entry.extent(), Extent::Lines);
            prop_assert_eq!(&entry.code, &code);
            prop_assert_eq!(entry.into_rows(), rows);
            let other = Identity { key: [identity.key.as_slice(), &[0]].concat(), ..identity };
            prop_assert!(Entry::open(encoded.as_slice(), &other).is_none());
        }

        #[test]
        fn numbers_that_are_written_are_read_again(number in any::<u64>(), shift in 0..u64::BITS) {
            let mut writer = Writer::default();
            writer.number(number >> shift);
            let mut reader = Reader(&writer.0);
            prop_assert_eq!(reader.number(), Some(number >> shift));
            prop_assert!(reader.0.is_empty());
        }
    }
}
