//! The texts that a table's columns hold, each once.
//!
//! A file of Arrow holds one dictionary for each column, and it must be whole before the first rows: so each table is
//! surveyed before it is written. Dictionaries hold what is used and nothing else, in an order that does not depend
//! on the rows'.

use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray};
use rustc_hash::{FxHashMap, FxHashSet};
use tracesmith_format::{Codes, Meaning, StringId, Value};
use tracesmith_trace::Trace;

use super::{Pass, TableFile};
use crate::error::Error;
use crate::export::ExportOptions;
use tracesmith_trace::tables::StoredColumn as Column;

/// Bytes of texts that Arrow can count.
pub(super) const MAX_BYTES: usize = i32::MAX as usize;

/// The texts of one column.
pub(super) struct Dictionary {
    /// The texts.
    pub(super) texts: ArrayRef,
    keys: FxHashMap<u64, i32>,
}

impl Dictionary {
    /// Where a value's text is; `None` for a value that stands for nothing.
    pub(super) fn key(&self, value: &Value) -> Option<i32> {
        match value {
            Value::Number(number) | Value::Code(_, number) => self.keys.get(number).copied(),
            _ => None,
        }
    }

    /// All strings in use, in the order of their ids.
    fn of_strings(trace: &Trace, used: FxHashSet<u64>) -> Option<Self> {
        let mut ids: Vec<u64> = used.into_iter().collect();
        ids.sort_unstable();
        let texts = || ids.iter().map(|id| trace.string(StringId(*id as u32)));
        if texts().map(str::len).sum::<usize>() > MAX_BYTES {
            return None;
        }
        Some(Dictionary {
            texts: Arc::new(StringArray::from_iter_values(texts())),
            keys: ids.iter().copied().zip(0..).collect(),
        })
    }

    /// All names of a code, then the numbers in use that have none.
    fn of_codes(codes: Option<&'static Codes>, used: FxHashSet<u64>) -> Self {
        let named = codes.map_or(&[][..], |codes| codes.values);
        let is_named = |number: &u64| named.iter().any(|(named, ..)| u64::from(*named) == *number);
        let mut unnamed: Vec<u64> = used.into_iter().filter(|number| !is_named(number)).collect();
        unnamed.sort_unstable();
        let numbers = named
            .iter()
            .map(|(number, ..)| u64::from(*number))
            .chain(unnamed.iter().copied());
        let texts = named
            .iter()
            .map(|(_, name, _)| (*name).to_owned())
            .chain(unnamed.iter().map(u64::to_string));
        Dictionary {
            texts: Arc::new(StringArray::from_iter_values(texts)),
            keys: numbers.zip(0..).collect(),
        }
    }
}

/// Whether a column's values are texts.
pub(super) fn is_text(column: &Column) -> bool {
    matches!(column.spec.meaning, Meaning::String | Meaning::Code)
}

/// The dictionaries of a table's columns; `None` for a column that has none.
pub(super) fn survey(
    format: &'static str,
    trace: &Trace,
    options: &ExportOptions,
    table: &TableFile,
) -> Result<Vec<Option<Dictionary>>, Error> {
    let mut used: Vec<FxHashSet<u64>> = vec![FxHashSet::default(); table.columns.len()];
    table.for_each_part(trace, options, Pass::Survey, |part| {
        part.for_each_column(&table.columns, &mut |at, column, values| {
            if is_text(column) {
                values.for_each_value(|value| {
                    if let Value::Number(number) | Value::Code(_, number) = value {
                        used[at].insert(number);
                    }
                });
            }
        });
        Ok(())
    })?;
    let dictionary = |(column, used): (&Column, FxHashSet<u64>)| match column.spec.meaning {
        Meaning::String => Dictionary::of_strings(trace, used)
            .map(Some)
            .ok_or(Error::Export {
                format,
                problem: format!("the texts of {}.{} are more than 2 GiB", table.name, column.name),
            }),
        Meaning::Code => Ok(Some(Dictionary::of_codes(column.spec.codes, used))),
        _ => Ok(None),
    };
    table.columns.iter().zip(used).map(dictionary).collect()
}
