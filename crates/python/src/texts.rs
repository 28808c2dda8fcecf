//! Dictionaries of texts, as Python's libraries expect them: each text once, and in rows that were read only those in use.
//!
//! All batches of a trace share one dictionary, which holds all texts of the trace. Some texts are there twice, because two long
//! names can have the same short name. pandas refuses such a dictionary, and shows every category, also unused ones.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int32Array, RecordBatch, RecordBatchOptions, StringArray,
};
use rustc_hash::FxHashMap;

/// Gives every column of texts a dictionary in which each text is once. The batches are all of one scan.
pub(crate) fn tidied(batches: &[RecordBatch]) -> Vec<RecordBatch> {
    let Some(first) = batches.first() else {
        return Vec::new();
    };
    let mut columns: Vec<Vec<ArrayRef>> = Vec::new();
    for position in 0..first.num_columns() {
        let arrays: Vec<&ArrayRef> = batches.iter().map(|batch| batch.column(position)).collect();
        columns.push(match first.column(position).as_dictionary_opt::<Int32Type>() {
            Some(_) => renumbered(&arrays),
            None => arrays.into_iter().cloned().collect(),
        });
    }
    let arrays = |at: usize| columns.iter().map(|column| Arc::clone(&column[at])).collect();
    let batches = batches.iter().enumerate();
    batches
        .map(|(at, batch)| with_columns(batch, arrays(at)))
        .collect()
}

/// The batch with other columns of the same types and lengths.
fn with_columns(batch: &RecordBatch, columns: Vec<ArrayRef>) -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(batch.schema(), columns, &options)
        .expect("columns have the types and lengths that they had")
}

/// The same for batches that come one by one: their dictionaries keep all texts, because later rows may need them.
#[derive(Default)]
pub(crate) struct Tidy {
    /// For each column the last dictionary, the new number of each of its texts, and the dictionary of different texts.
    columns: Vec<Option<(ArrayRef, Vec<i32>, ArrayRef)>>,
}

impl Tidy {
    /// The next batch.
    pub(crate) fn batch(&mut self, batch: &RecordBatch) -> RecordBatch {
        self.columns.resize_with(batch.num_columns(), || None);
        let columns = self.columns.iter_mut().zip(batch.columns());
        let columns = columns.map(|(known, array)| match array.as_dictionary_opt::<Int32Type>() {
            Some(texts) => Self::column(known, texts),
            None => Arc::clone(array),
        });
        with_columns(batch, columns.collect())
    }

    fn column(
        known: &mut Option<(ArrayRef, Vec<i32>, ArrayRef)>,
        array: &DictionaryArray<Int32Type>,
    ) -> ArrayRef {
        let old = array.values();
        let is_known = known.as_ref().is_some_and(|(of, ..)| Arc::ptr_eq(of, old));
        if !is_known {
            let mut texts = Texts::default();
            let all = old.as_string::<i32>();
            let numbers = (0..all.len()).map(|key| texts.number(all.value(key))).collect();
            *known = Some((Arc::clone(old), numbers, texts.array()));
        }
        let (_, numbers, texts) = known.as_ref().expect("it was made above");
        let keys = array
            .keys()
            .iter()
            .map(|key| key.map(|key| numbers[key as usize]));
        dictionary(Int32Array::from_iter(keys), texts)
    }
}

fn dictionary(keys: Int32Array, texts: &ArrayRef) -> ArrayRef {
    let array = DictionaryArray::<Int32Type>::try_new(keys, Arc::clone(texts));
    Arc::new(array.expect("every key was given a text"))
}

/// The same rows, with one dictionary of different texts.
fn renumbered(arrays: &[&ArrayRef]) -> Vec<ArrayRef> {
    let mut texts = Texts::default();
    let mut renumbering: Option<(ArrayRef, Vec<i32>)> = None;
    let mut keys = Vec::with_capacity(arrays.len());
    for array in arrays {
        let array = array.as_dictionary::<Int32Type>();
        let values = array.values();
        let mut known = match renumbering.take().filter(|(of, _)| Arc::ptr_eq(of, values)) {
            Some((_, known)) => known,
            None => vec![-1; values.len()],
        };
        let old = values.as_string::<i32>();
        let new = array.keys().iter().map(|key| {
            let key = key? as usize;
            if known[key] < 0 {
                known[key] = texts.number(old.value(key));
            }
            Some(known[key])
        });
        keys.push(Int32Array::from_iter(new));
        renumbering = Some((Arc::clone(values), known));
    }
    let texts = texts.array();
    keys.into_iter().map(|keys| dictionary(keys, &texts)).collect()
}

/// Different texts, in the order in which they came.
#[derive(Default)]
struct Texts {
    list: Vec<Arc<str>>,
    numbers: FxHashMap<Arc<str>, i32>,
}

impl Texts {
    fn array(&self) -> ArrayRef {
        Arc::new(StringArray::from_iter_values(
            self.list.iter().map(|text| &**text),
        ))
    }

    fn number(&mut self, text: &str) -> i32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.list.len() as i32;
        let text: Arc<str> = text.into();
        self.list.push(Arc::clone(&text));
        self.numbers.insert(text, number);
        number
    }
}
