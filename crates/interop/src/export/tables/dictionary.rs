//! The texts that a table's columns hold, each once.
//!
//! A scan's dictionaries hold all texts of the trace. A file of Arrow holds a dictionary for each column, whole before the
//! first rows. So each table is surveyed before it is written, and its keys are renumbered: dictionaries then hold what is
//! used and nothing else, in an order that does not depend on the rows'.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, StringArray};
use arrow_schema::ArrowError;
use tracesmith_format::Meaning;
use tracesmith_trace::Trace;
use tracesmith_trace::tables::StoredColumn as Column;

use super::TableFile;
use crate::error::Error;
use crate::export::ExportOptions;

/// The texts of one column.
pub(super) struct Dictionary {
    texts: ArrayRef,
    /// The key here of each key of a scan.
    keys: Vec<i32>,
}

impl Dictionary {
    /// The same rows with these texts.
    pub(super) fn renumbered(&self, column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        let old = column.as_dictionary::<Int32Type>().keys();
        let keys = old.unary(|key| self.keys.get(key as usize).copied().unwrap_or(0));
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(
            keys,
            Arc::clone(&self.texts),
        )?))
    }

    /// Texts by their keys in a scan, in this order.
    fn of(texts: &StringArray, order: impl Iterator<Item = usize>) -> Self {
        let order: Vec<usize> = order.filter(|key| *key < texts.len()).collect();
        let mut keys = vec![0; texts.len()];
        for (key, place) in order.iter().zip(0..) {
            keys[*key] = place;
        }
        Dictionary {
            texts: Arc::new(StringArray::from_iter_values(
                order.iter().map(|key| texts.value(*key)),
            )),
            keys,
        }
    }
}

/// Whether a column's values are texts.
pub(super) fn is_text(column: &Column) -> bool {
    matches!(column.spec.meaning, Meaning::String | Meaning::Code)
}

/// The dictionaries of a table's columns; `None` for a column that has none.
pub(super) fn survey(
    trace: &Arc<Trace>,
    options: &ExportOptions,
    table: &TableFile,
) -> Result<Vec<Option<Dictionary>>, Error> {
    let of_texts = || table.columns.iter().filter(|column| is_text(column));
    let mut found: Vec<(Option<StringArray>, Vec<bool>)> = vec![Default::default(); of_texts().count()];
    let scan = table.scan(options, of_texts().map(|column| column.name.clone()));
    for batch in trace.table(table.name)?.scan(&scan)? {
        for ((texts, used), column) in found.iter_mut().zip(batch?.columns()) {
            let column = column.as_dictionary::<Int32Type>();
            // All batches of a trace share their dictionaries.
            let texts = texts.get_or_insert_with(|| column.values().as_string().clone());
            used.resize(texts.len(), false);
            let keys = column.keys();
            match keys.nulls() {
                None => keys.values().iter().for_each(|key| used[*key as usize] = true),
                Some(_) => keys.iter().flatten().for_each(|key| used[key as usize] = true),
            }
        }
    }
    let mut found = found.into_iter();
    let dictionary = |column: &Column| {
        let (texts, used) = found.next().unwrap_or_default();
        let texts = texts.unwrap_or_else(|| StringArray::from_iter_values([] as [&str; 0]));
        let is_used = |key: &usize| used.get(*key).copied().unwrap_or(false);
        match column.spec.codes {
            // All names of a code, then the numbers in use that have none.
            Some(codes) => {
                let named = codes.values.iter().map(|(number, ..)| usize::from(*number));
                let is_named = |key: &usize| {
                    codes
                        .values
                        .iter()
                        .any(|(number, ..)| usize::from(*number) == *key)
                };
                let unnamed = (0..used.len()).filter(|key| is_used(key) && !is_named(key));
                Dictionary::of(&texts, named.chain(unnamed))
            }
            None => Dictionary::of(&texts, (0..used.len()).filter(is_used)),
        }
    };
    let mut dictionary = dictionary;
    Ok(table
        .columns
        .iter()
        .map(|column| is_text(column).then(|| dictionary(column)))
        .collect())
}
