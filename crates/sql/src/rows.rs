//! The rows that a cursor goes through: a scan as it is read, or rows put in order.

use std::sync::Arc;

use arrow_array::{Array, RecordBatch, StringArray};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tracesmith_trace::tables::Batches;

use crate::cell::{Cell, Column};
use crate::error::Error;

/// Rows of one batch.
pub(crate) struct Part {
    /// Which trace they are of.
    pub(crate) trace: usize,
    /// Columns by their positions in the table.
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: usize,
}

impl Part {
    /// `positions` are those of the batch's columns in a table with `width` columns.
    pub(crate) fn new(trace: usize, batch: &RecordBatch, positions: &[usize], width: usize) -> Self {
        let mut columns = vec![Column::Unused; width];
        for (position, array) in positions.iter().zip(batch.columns()) {
            columns[*position] = Column::of(array);
        }
        Part {
            trace,
            columns,
            rows: batch.num_rows(),
        }
    }
}

/// Rows in the order that a cursor visits them.
pub(crate) enum Rows {
    /// As they are read.
    Stream(Stream),
    /// In another order, or some of them.
    Listed(Listed),
    /// All rows of parts, one after the other.
    Whole {
        parts: Arc<Vec<Part>>,
        part: usize,
        row: usize,
    },
}

pub(crate) struct Stream {
    pub(crate) scans: std::vec::IntoIter<(usize, Batches)>,
    pub(crate) current: Option<(usize, Batches)>,
    pub(crate) part: Option<Part>,
    pub(crate) row: usize,
    pub(crate) positions: Arc<[usize]>,
    pub(crate) width: usize,
}

pub(crate) struct Listed {
    pub(crate) parts: Arc<Vec<Part>>,
    pub(crate) order: Order,
    pub(crate) at: usize,
}

/// Part and row.
pub(crate) type Place = (u32, u32);

pub(crate) enum Order {
    Sorted(Vec<Place>),
    /// Rows of an index: a range of its places.
    Indexed(Arc<Index>, std::ops::Range<usize>),
}

impl Stream {
    /// Goes on to a part that has a row, if the current one is at its end.
    fn settle(&mut self) -> Result<(), Error> {
        while self.part.as_ref().is_none_or(|part| self.row >= part.rows) {
            if self.current.is_none() {
                self.current = self.scans.next();
            }
            let Some((trace, batches)) = &mut self.current else {
                self.part = None;
                return Ok(());
            };
            match batches.next() {
                Some(batch) => {
                    self.part = Some(Part::new(*trace, &batch?, &self.positions, self.width));
                    self.row = 0;
                }
                None => self.current = None,
            }
        }
        Ok(())
    }
}

impl Rows {
    pub(crate) fn stream(
        scans: Vec<(usize, Batches)>,
        positions: Arc<[usize]>,
        width: usize,
    ) -> Result<Self, Error> {
        let mut stream = Stream {
            scans: scans.into_iter(),
            current: None,
            part: None,
            row: 0,
            positions,
            width,
        };
        stream.settle()?;
        Ok(Rows::Stream(stream))
    }

    pub(crate) fn listed(parts: Arc<Vec<Part>>, order: Order) -> Self {
        Rows::Listed(Listed { parts, order, at: 0 })
    }

    /// `parts` must not be empty ones.
    pub(crate) fn whole(parts: Arc<Vec<Part>>) -> Self {
        Rows::Whole {
            parts,
            part: 0,
            row: 0,
        }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Result<(), Error> {
        match self {
            Rows::Stream(stream) => {
                stream.row += 1;
                match &stream.part {
                    Some(part) if stream.row < part.rows => Ok(()),
                    _ => stream.settle(),
                }
            }
            Rows::Listed(listed) => {
                listed.at += 1;
                Ok(())
            }
            Rows::Whole { parts, part, row } => {
                *row += 1;
                if parts.get(*part).is_some_and(|current| *row >= current.rows) {
                    (*part, *row) = (*part + 1, 0);
                }
                Ok(())
            }
        }
    }

    #[inline]
    pub(crate) fn is_at_end(&self) -> bool {
        match self {
            Rows::Stream(stream) => stream.part.is_none(),
            Rows::Listed(listed) => listed.place().is_none(),
            Rows::Whole { parts, part, .. } => *part >= parts.len(),
        }
    }

    /// The part and the row that the cursor is at.
    #[inline]
    pub(crate) fn current(&self) -> Option<(&Part, usize)> {
        match self {
            Rows::Stream(stream) => stream.part.as_ref().map(|part| (part, stream.row)),
            Rows::Listed(listed) => {
                let (part, row) = listed.place()?;
                Some((&listed.parts[part as usize], row as usize))
            }
            Rows::Whole { parts, part, row } => parts.get(*part).map(|part| (part, *row)),
        }
    }
}

impl Listed {
    #[inline]
    fn place(&self) -> Option<Place> {
        match &self.order {
            Order::Sorted(places) => places.get(self.at).copied(),
            Order::Indexed(index, range) => {
                let at = range.start + self.at;
                (at < range.end).then(|| index.place(at))
            }
        }
    }
}

/// All rows of some parts, in the order of a column. Texts are ranked once for each dictionary, so no row compares them.
pub(crate) fn sorted(parts: &[Part], column: usize, is_descending: bool) -> Vec<Place> {
    let is_text = parts
        .iter()
        .all(|part| matches!(part.columns[column], Column::Text(..)));
    if is_text {
        sorted_texts(parts, column, is_descending)
    } else {
        let keys = |at: usize, row: usize| number_key(parts[at].columns[column].cell(row));
        let of_part = |(at, part): (usize, &Part)| -> Vec<(u128, Place)> {
            (0..part.rows)
                .map(|row| (keys(at, row), (at as u32, row as u32)))
                .collect()
        };
        let mut keyed: Vec<(u128, Place)> = parts.par_iter().enumerate().flat_map_iter(of_part).collect();
        // Rows that are equal stay in the order of the file.
        if is_descending {
            keyed.par_sort_by(|one, other| other.0.cmp(&one.0));
        } else {
            keyed.par_sort_by_key(|(key, _)| *key);
        }
        keyed.into_iter().map(|(_, place)| place).collect()
    }
}

/// The same for texts: their ranks are few and small, so rows are counted into place.
fn sorted_texts(parts: &[Part], column: usize, is_descending: bool) -> Vec<Place> {
    let mut ranks = TextRanks::default();
    for part in parts {
        if let Column::Text(array, texts) = &part.columns[column] {
            ranks.add(array.values().as_ref(), texts);
        }
    }
    let most = ranks.settle();
    let keys_of = |part: &Part| -> Vec<u32> {
        let Column::Text(array, _) = &part.columns[column] else {
            return vec![0; part.rows];
        };
        let ranks = ranks.of(array.values().as_ref());
        // A row without a text comes first.
        let rank = |row| array.key(row).map_or(0, |key| ranks[key] + 1);
        let rank = |row| {
            if is_descending {
                most + 1 - rank(row)
            } else {
                rank(row)
            }
        };
        (0..part.rows).map(rank).collect()
    };
    let keys: Vec<Vec<u32>> = parts.par_iter().map(keys_of).collect();
    let mut starts = vec![0_usize; most as usize + 3];
    for key in keys.iter().flatten() {
        starts[*key as usize + 1] += 1;
    }
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let mut places = vec![(0, 0); keys.iter().map(Vec::len).sum()];
    for (part, keys) in keys.iter().zip(0..).map(|(keys, part)| (part, keys)) {
        for (row, key) in (0..).zip(keys) {
            let next = &mut starts[*key as usize];
            places[*next] = (part, row);
            *next += 1;
        }
    }
    places
}

/// Rows in an order, put into parts of their own: SQLite then reads memory from front to back. Only for one trace.
pub(crate) fn in_order(parts: &[Part], places: &[Place]) -> Vec<Part> {
    /// Rows of a part.
    const CHUNK: usize = 1 << 17;
    places
        .par_chunks(CHUNK)
        .map(|places| {
            let width = parts.first().map_or(0, |part| part.columns.len());
            Part {
                trace: parts.first().map_or(0, |part| part.trace),
                columns: (0..width)
                    .map(|column| Column::gather(parts, column, places))
                    .collect(),
                rows: places.len(),
            }
        })
        .collect()
}

/// A number that sorts as the cell does.
fn number_key(cell: Cell<'_>) -> u128 {
    match cell {
        Cell::Integer(number) => (1 << 100) + (i128::from(number) - i128::from(i64::MIN)) as u128,
        Cell::Real(number) => {
            let bits = number.to_bits() as i64;
            // The usual way to sort floats by their bits.
            let bits = bits ^ (((bits >> 63) as u64) >> 1) as i64;
            (1 << 100) + (i128::from(bits) - i128::from(i64::MIN)) as u128
        }
        Cell::Null | Cell::Text(_) => 0,
    }
}

/// The places of texts in the order of all dictionaries together.
#[derive(Default)]
struct TextRanks {
    /// By the addresses of their arrays.
    dictionaries: Vec<(usize, StringArray, Vec<u32>)>,
}

impl TextRanks {
    fn address(values: &dyn Array) -> usize {
        std::ptr::from_ref(values).cast::<()>().addr()
    }

    fn add(&mut self, values: &dyn Array, texts: &StringArray) {
        let address = Self::address(values);
        if self.dictionaries.iter().all(|(known, ..)| *known != address) {
            self.dictionaries.push((address, texts.clone(), Vec::new()));
        }
    }

    /// Ranks all texts. Says which rank is the greatest.
    fn settle(&mut self) -> u32 {
        let mut texts: Vec<(usize, usize)> = Vec::new();
        for (at, (_, values, ranks)) in self.dictionaries.iter_mut().enumerate() {
            ranks.resize(values.len(), 0);
            texts.extend((0..values.len()).map(|text| (at, text)));
        }
        let dictionaries = &self.dictionaries;
        let text = |(at, text): &(usize, usize)| dictionaries[*at].1.value(*text);
        texts.par_sort_by(|one, other| text(one).as_bytes().cmp(text(other).as_bytes()));
        let mut ranked = Vec::with_capacity(texts.len());
        let mut rank = 0;
        for (number, place) in texts.iter().enumerate() {
            if number > 0 && text(place) != text(&texts[number - 1]) {
                rank += 1;
            }
            ranked.push((*place, rank));
        }
        for ((at, text), rank) in ranked {
            self.dictionaries[at].2[text] = rank;
        }
        rank
    }

    fn of(&self, values: &dyn Array) -> &[u32] {
        let address = Self::address(values);
        let found = self.dictionaries.iter().find(|(known, ..)| *known == address);
        found.map_or(&[], |(_, _, ranks)| ranks)
    }
}

/// Rows by the value of a column, for joins: each value is looked up, not searched for.
pub(crate) struct Index {
    /// In the order of their values.
    numbers: Vec<(i64, Place)>,
    places: Vec<Place>,
    /// Where the rows of a text are in `places`.
    texts: FxHashMap<String, (usize, usize)>,
}

impl Index {
    pub(crate) fn new(parts: &[Part], column: usize) -> Self {
        let is_text = |part: &Part| matches!(part.columns[column], Column::Text(..));
        if parts.iter().any(is_text) {
            return Self::of_texts(parts, column);
        }
        let number = |at: usize, row: usize| match parts[at].columns[column].cell(row) {
            Cell::Integer(number) => Some((number, (at as u32, row as u32))),
            Cell::Null | Cell::Real(_) | Cell::Text(_) => None,
        };
        let of_part = |(at, part): (usize, &Part)| -> Vec<(i64, Place)> {
            (0..part.rows).filter_map(|row| number(at, row)).collect()
        };
        let mut numbers: Vec<(i64, Place)> = parts.par_iter().enumerate().flat_map_iter(of_part).collect();
        // Most columns that are joined on grow with time.
        numbers.par_sort();
        Index {
            numbers,
            places: Vec::new(),
            texts: FxHashMap::default(),
        }
    }

    fn of_texts(parts: &[Part], column: usize) -> Self {
        let places = sorted(parts, column, false);
        let cell = |(part, row): Place| parts[part as usize].columns[column].cell(row as usize);
        let mut texts = FxHashMap::default();
        let mut start = 0;
        while start < places.len() {
            let first = cell(places[start]);
            let same = places[start..].iter().take_while(|place| cell(**place) == first);
            let end = start + same.count().max(1);
            if let Cell::Text(text) = first {
                texts.insert(text.to_owned(), (start, end));
            }
            start = end;
        }
        Index {
            numbers: Vec::new(),
            places,
            texts,
        }
    }

    /// Where the rows with a value are.
    pub(crate) fn find(&self, cell: Cell<'_>) -> std::ops::Range<usize> {
        match cell {
            Cell::Integer(wanted) => {
                let start = self.numbers.partition_point(|(number, _)| *number < wanted);
                let same = self.numbers[start..]
                    .iter()
                    .take_while(|(number, _)| *number == wanted);
                start..start + same.count()
            }
            Cell::Text(text) => self.texts.get(text).map_or(0..0, |(start, end)| *start..*end),
            Cell::Null | Cell::Real(_) => 0..0,
        }
    }

    #[inline]
    fn place(&self, at: usize) -> Place {
        match self.numbers.get(at) {
            Some((_, place)) => *place,
            None => self.places[at],
        }
    }
}
