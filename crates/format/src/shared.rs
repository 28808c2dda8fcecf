//! Columns that change together, stored once for each distinct combination.
//!
//! A training step launches the same few hundred kernels with the same grids over and over. Their two dozen launch
//! parameters are therefore one value: [`Shared`] keeps each distinct one once and a small number per row. It does so in
//! memory as in the file, which makes filters cheap too: a filter on streams looks at the distinct places of a block, not
//! at its rows.

use hashbrown::HashTable;

use crate::codec::{BlockDecoder, BlockEncoder};
use crate::error::Problem;
use crate::lane::Value;
use crate::table::{ColumnSpec, IdMap, Projection};

/// A set of columns that are shared by rows with equal values. The `group!` macro implements it.
pub trait Group: Copy + Default + PartialEq + Eq + Send + Sync + 'static {
    /// A hash of all members. Each is multiplied by a constant of its own and the products are added: unlike a hash that
    /// feeds one member into the next, the processor does these side by side (11 ns instead of 40 for a kernel's 30).
    fn hash(&self) -> u64;
    /// Adds the member columns, numbered from `base + 1`, for the distinct values.
    fn encode(values: &[Self], base: u16, encoder: &mut BlockEncoder);
    /// Reads the member columns that are wanted, each with `distinct` rows.
    fn decode(
        distinct: usize,
        base: u16,
        decoder: &mut BlockDecoder<'_>,
        wanted: &Projection,
    ) -> Result<Vec<Self>, Problem>;
    /// Describes the member columns.
    fn specs(base: u16, name: &'static str, out: &mut Vec<ColumnSpec>);
    /// Calls `f` with every member's value.
    fn visit(&self, base: u16, f: &mut dyn FnMut(u16, Value));
    /// This value with all ids of the trace replaced.
    fn remap(self, map: &mut dyn IdMap) -> Self;
}

/// A column of values that are stored once each.
#[derive(Clone, Debug)]
pub struct Shared<G> {
    /// The distinct values, in the order in which they first appeared.
    pub values: Vec<G>,
    /// For each row, which of them it has.
    pub index: Vec<u32>,
    /// Finds a value's place by its hash. Only filled while rows are pushed.
    lookup: HashTable<u32>,
    /// For each value, the one that came after it last time. Programs repeat themselves: a guess that is right saves
    /// the hash and the look-up.
    followers: Vec<u32>,
}

impl<G> Default for Shared<G> {
    fn default() -> Self {
        Shared {
            values: Vec::new(),
            index: Vec::new(),
            lookup: HashTable::new(),
            followers: Vec::new(),
        }
    }
}

impl<G: Group> Shared<G> {
    /// The value of a row.
    #[inline]
    pub fn get(&self, row: usize) -> &G {
        &self.values[self.index[row] as usize]
    }

    /// The values row by row.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &G> {
        self.index.iter().map(|value| &self.values[*value as usize])
    }

    pub(crate) fn push(&mut self, value: &G) {
        let last = self.index.last().copied();
        if let Some(last) = last {
            let guess = self.followers.get(last as usize).copied().unwrap_or(last);
            if self.values[guess as usize] == *value {
                self.index.push(guess);
                return;
            }
        }
        let index = self.find_or_add(value);
        if let Some(last) = last {
            self.followers.resize(self.values.len(), index);
            self.followers[last as usize] = index;
        }
        self.index.push(index);
    }

    fn find_or_add(&mut self, value: &G) -> u32 {
        let values = &mut self.values;
        if self.lookup.len() != values.len() {
            self.lookup.clear();
            for (value, index) in values.iter().zip(0..) {
                self.lookup
                    .insert_unique(value.hash(), index, |index| values[*index as usize].hash());
            }
        }
        let hash = value.hash();
        if let Some(index) = self.lookup.find(hash, |index| values[*index as usize] == *value) {
            return *index;
        }
        let index = values.len() as u32;
        values.push(*value);
        self.lookup
            .insert_unique(hash, index, |index| values[*index as usize].hash());
        index
    }

    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.index.clear();
        self.lookup.clear();
        self.followers.clear();
    }

    pub(crate) fn encode(&self, base: u16, encoder: &mut BlockEncoder) {
        encoder.index_column(base, &self.index);
        G::encode(&self.values, base, encoder);
    }

    pub(crate) fn decode(
        base: u16,
        decoder: &mut BlockDecoder<'_>,
        wanted: &Projection,
    ) -> Result<Self, Problem> {
        if !wanted.has_group(base) {
            return Ok(Self::default());
        }
        let (index, distinct) = decoder.index(base)?;
        let values = G::decode(distinct, base, decoder, wanted)?;
        Ok(Shared {
            values,
            index,
            lookup: HashTable::new(),
            followers: Vec::new(),
        })
    }

    pub(crate) fn remap(&mut self, map: &mut dyn IdMap) {
        self.lookup.clear();
        self.followers.clear();
        for value in &mut self.values {
            *value = value.remap(map);
        }
    }
}
