//! Columns that change together, stored once for each distinct combination.
//!
//! A training step launches the same few hundred kernels with the same grids over and over. Their two dozen launch
//! parameters are therefore one value: [`Shared`] keeps each distinct one once and a small number per row. It does so in
//! memory as in the file, which makes filters cheap too: a filter on streams looks at the distinct places of a block, not
//! at its rows.

use std::collections::HashMap;
use std::hash::Hash;

use rustc_hash::FxBuildHasher;

use crate::codec::{BlockDecoder, BlockEncoder};
use crate::error::Problem;
use crate::lane::Value;
use crate::table::{ColumnSpec, IdMap, Projection};

/// A set of columns that are shared by rows with equal values. The `group!` macro implements it.
pub trait Group: Copy + Default + PartialEq + Eq + Hash + Send + Sync + 'static {
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
    /// Only filled while rows are pushed.
    lookup: HashMap<G, u32, FxBuildHasher>,
}

impl<G> Default for Shared<G> {
    fn default() -> Self {
        Shared {
            values: Vec::new(),
            index: Vec::new(),
            lookup: HashMap::default(),
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

    pub(crate) fn push(&mut self, value: G) {
        // Rows in a row are often alike: on one stream, from one thread.
        if let Some(&last) = self.index.last()
            && self.values[last as usize] == value
        {
            self.index.push(last);
            return;
        }
        if self.lookup.len() != self.values.len() {
            self.lookup = self
                .values
                .iter()
                .zip(0..)
                .map(|(value, index)| (*value, index))
                .collect();
        }
        let next = self.values.len() as u32;
        let index = *self.lookup.entry(value).or_insert(next);
        if index == next {
            self.values.push(value);
        }
        self.index.push(index);
    }

    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.index.clear();
        self.lookup.clear();
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
            lookup: HashMap::default(),
        })
    }

    pub(crate) fn remap(&mut self, map: &mut dyn IdMap) {
        self.lookup.clear();
        for value in &mut self.values {
            *value = value.remap(map);
        }
    }
}
