//! Memory contents, found by their hash.
//!
//! A recording can be larger than main memory, so only the location of each piece is kept. Pieces are in the file in
//! the order in which they are needed. The last block that was read usually contains the next piece, too.

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{Content, Contents, Module, Modules};
use tracesmith_format::{Blobs, Block, Projection, Reader, Source, Table};

use crate::error::Error;

/// The source of a recording's bytes.
pub(crate) type Input = Box<dyn Source>;

/// The hash of a piece.
pub(crate) type Hash = u128;

/// The location of a row: the block, and the row in it.
#[derive(Clone, Copy)]
struct RowLocation {
    block: u32,
    row: u32,
}

/// The contents of a file.
pub(crate) struct Store {
    reader: Reader<Input>,
    pieces: FxHashMap<Hash, RowLocation>,
    code: FxHashMap<Hash, Vec<(u64, RowLocation)>>,
    last: Option<(u32, Blobs)>,
}

impl Store {
    pub(crate) fn new(reader: Reader<Input>) -> Result<Self, Error> {
        let mut store = Self {
            pieces: FxHashMap::default(),
            code: FxHashMap::default(),
            last: None,
            reader,
        };
        let hashes = Projection::of::<Content>(&["hash_high", "hash_low"])?;
        store.each_block::<Content>(&hashes, |store, block, contents: Contents| {
            for row in 0..contents.hash_high.len() {
                let hash = join(contents.hash_high[row], contents.hash_low[row]);
                let row = row as u32;
                store.pieces.insert(hash, RowLocation { block, row });
            }
        })?;
        store.each_block::<Module>(&Projection::all(), |store, block, modules: Modules| {
            for row in 0..modules.hash_high.len() {
                let bytes = modules.code.get(row).len() as u64;
                if bytes > 0 {
                    let hash = join(modules.hash_high[row], modules.hash_low[row]);
                    let row = row as u32;
                    let parts = store.code.entry(hash).or_default();
                    parts.push((bytes, RowLocation { block, row }));
                }
            }
        })?;
        Ok(store)
    }

    pub(crate) fn reader(&self) -> &Reader<Input> {
        &self.reader
    }

    fn each_block<T: Table>(
        &mut self,
        wanted: &Projection,
        mut take: impl FnMut(&mut Self, u32, T::Columns),
    ) -> Result<(), Error> {
        for index in 0..self.reader.blocks().len() {
            let block = self.reader.blocks()[index];
            if block.header.kind == T::KIND {
                let columns = self.reader.decoder().read::<T>(&block, wanted)?;
                take(self, index as u32, columns);
            }
        }
        Ok(())
    }

    /// The bytes of a piece.
    pub(crate) fn piece(&mut self, hash: Hash) -> Result<&[u8], Error> {
        let place = *self
            .pieces
            .get(&hash)
            .ok_or_else(|| Error::Missing(format!("the memory contents {hash:032x}")))?;
        self.blob::<Content>(place, |columns| columns.data)
    }

    /// The module with this hash.
    pub(crate) fn code(&mut self, hash: Hash) -> Result<Vec<u8>, Error> {
        let parts = self
            .code
            .get(&hash)
            .cloned()
            .ok_or_else(|| Error::Missing(format!("the module {hash:032x}")))?;
        let mut code = Vec::with_capacity(parts.iter().map(|(bytes, _)| *bytes as usize).sum());
        for (_, place) in parts {
            code.extend_from_slice(self.blob::<Module>(place, |columns| columns.code)?);
        }
        Ok(code)
    }

    /// Number and total size of all modules.
    pub(crate) fn code_size(&self) -> (usize, u64) {
        let parts = self.code.values().flatten();
        (self.code.len(), parts.map(|(bytes, _)| bytes).sum())
    }

    /// The hashes of all modules.
    pub(crate) fn all_code(&self) -> Vec<Hash> {
        let mut all: Vec<Hash> = self.code.keys().copied().collect();
        all.sort_unstable();
        all
    }

    fn blob<T: Table>(
        &mut self,
        place: RowLocation,
        column: impl FnOnce(T::Columns) -> Blobs,
    ) -> Result<&[u8], Error> {
        if self.last.as_ref().is_none_or(|(block, _)| *block != place.block) {
            let block: Block = self.reader.blocks()[place.block as usize];
            let columns = self.reader.decoder().read::<T>(&block, &Projection::all())?;
            self.last = Some((place.block, column(columns)));
        }
        let blobs = &self.last.as_ref().expect("it was just read").1;
        Ok(blobs.get(place.row as usize))
    }
}

/// A hash from two halves.
pub(crate) fn join(high: u64, low: u64) -> Hash {
    u128::from(high) << 64 | u128::from(low)
}
