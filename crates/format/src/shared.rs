//! Columns that change together, stored once for each distinct combination.
//!
//! A training step launches the same few hundred kernels with the same grids over and over. Their two dozen launch
//! parameters are therefore one value: [`Shared`] keeps each distinct one once and a small number per row. It does so in
//! memory as in the file, which makes filters cheap too: a filter on streams looks at the distinct places of a block, not
//! at its rows.

use std::sync::Arc;

use hashbrown::HashTable;

use crate::buffer::ColumnBuffer;
use crate::codec::{BlockDecoder, BlockEncoder};
use crate::column_value::Value;
use crate::error::Problem;
use crate::table::{ColumnSpec, ColumnView, IdMap, Projection};

/// A set of columns that are shared by rows with equal values. The `group!` macro implements it.
pub trait Group: Copy + Default + PartialEq + Eq + Send + Sync + 'static {
    /// A hash of all members. Each is multiplied by a constant of its own and the products are added: unlike a hash that
    /// feeds one member into the next, the processor does these side by side.
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
    /// Calls `f` with every member's id and its column, of which `index` tells the value of each row.
    fn visit_columns(values: &[Self], index: &[u32], base: u16, f: &mut dyn FnMut(u16, ColumnView<'_>));
    /// Hands on every wanted member's column, of which `index` has the value of each row.
    fn into_buffers(
        values: &[Self],
        index: &Arc<Vec<u32>>,
        base: u16,
        wanted: &Projection,
        f: &mut dyn FnMut(u16, ColumnBuffer),
    );
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
    /// Where values of a hash were found last.
    recent: Vec<u32>,
    guesses: Guesses,
}

/// Slots for values that were found last.
const RECENT: usize = 1 << 10;

/// Which value comes next. Programs repeat themselves, stream by stream: what followed on the same stream last time is
/// tried first, and a right guess saves the hash and the look-up. Works like a branch predictor: a small table,
/// in which a collision costs a wrong guess and nothing else.
#[derive(Clone, Debug, Default)]
struct Guesses {
    /// The latest value in each context.
    latest: Vec<u32>,
    /// What came after a value in a context, at a slot made of the two.
    followers: Vec<u32>,
}

impl Guesses {
    const SLOTS: usize = 1 << 13;

    #[inline]
    fn slot(&mut self, context: u32) -> usize {
        if self.followers.is_empty() {
            self.followers.resize(Self::SLOTS, 0);
        }
        if self.latest.len() <= context as usize {
            self.latest.resize(context as usize + 1, 0);
        }
        let latest = self.latest[context as usize];
        (latest.wrapping_mul(0x9e37_79b1) ^ context.wrapping_mul(0x85eb_ca77)) as usize % Self::SLOTS
    }

    fn clear(&mut self) {
        self.latest.clear();
        self.followers.clear();
    }
}

impl<G> Default for Shared<G> {
    fn default() -> Self {
        Shared {
            values: Vec::new(),
            index: Vec::new(),
            lookup: HashTable::new(),
            recent: Vec::new(),
            guesses: Guesses::default(),
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

    /// Adds a row. `context` is what the order of values depends on: the row's value in the group before, if there is one.
    #[inline]
    pub(crate) fn push(&mut self, value: &G, context: Option<u32>) -> u32 {
        let index = match context {
            Some(context) => self.guess_or_find(value, context),
            None => self.find_or_add(value),
        };
        self.index.push(index);
        index
    }

    fn guess_or_find(&mut self, value: &G, context: u32) -> u32 {
        let slot = self.guesses.slot(context);
        let guess = self.guesses.followers[slot];
        let index = match self.values.get(guess as usize) {
            Some(guessed) if guessed == value => guess,
            _ => {
                let index = self.find_or_add(value);
                self.guesses.followers[slot] = index;
                index
            }
        };
        self.guesses.latest[context as usize] = index;
        index
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
        // Most values were there a moment ago: a glance at one slot saves the search.
        if self.recent.is_empty() {
            self.recent.resize(RECENT, 0);
        }
        let recent = &mut self.recent[(hash >> 32) as usize % RECENT];
        if values.get(*recent as usize).is_some_and(|known| known == value) {
            return *recent;
        }
        let found = self
            .lookup
            .find(hash, |index| values[*index as usize] == *value)
            .copied();
        let index = found.unwrap_or_else(|| {
            let index = values.len() as u32;
            values.push(*value);
            self.lookup
                .insert_unique(hash, index, |index| values[*index as usize].hash());
            index
        });
        *recent = index;
        index
    }

    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.index.clear();
        self.lookup.clear();
        self.recent.clear();
        self.guesses.clear();
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
            recent: Vec::new(),
            guesses: Guesses::default(),
        })
    }

    pub(crate) fn into_buffers(self, base: u16, wanted: &Projection, f: &mut dyn FnMut(u16, ColumnBuffer)) {
        if wanted.has_group(base) {
            G::into_buffers(&self.values, &Arc::new(self.index), base, wanted, f);
        }
    }

    pub(crate) fn remap(&mut self, map: &mut dyn IdMap) {
        self.lookup.clear();
        self.recent.clear();
        self.guesses.clear();
        for value in &mut self.values {
            *value = value.remap(map);
        }
    }
}
