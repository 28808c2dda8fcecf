//! Views: tables that are computed from others. A new view is a file here and a line in [`VIEWS`].

mod collective_ops;
mod gpu_ops;
mod idle_gaps;
mod launches;
mod memory;
mod states;
mod steps;

use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray, StringArray};
use rustc_hash::FxHashMap;

use super::array;
use super::catalog::{ColumnInfo, ColumnKind, TableInfo, TableKind};
use crate::error::Error;
use crate::model::trace::Trace;

/// All views.
pub(super) static VIEWS: &[View] = &[
    gpu_ops::VIEW,
    launches::VIEW,
    steps::VIEW,
    idle_gaps::VIEW,
    states::VIEW,
    collective_ops::VIEW,
    memory::VIEW,
];

/// A table that is computed.
pub(super) struct View {
    pub(super) name: &'static str,
    doc: &'static str,
    /// Name, type, unit and description.
    columns: &'static [(&'static str, ColumnKind, Option<&'static str>, &'static str)],
    /// Its columns, in that order.
    make: fn(&Trace) -> Result<Vec<ArrayRef>, Error>,
}

/// The rows of a view.
pub(crate) struct ViewColumns {
    pub(super) arrays: Vec<Option<ArrayRef>>,
    pub(super) rows: usize,
}

impl View {
    pub(super) fn info(&self) -> TableInfo {
        let column =
            |(name, kind, unit, doc): &(&str, ColumnKind, Option<&'static str>, &'static str)| ColumnInfo {
                name: (*name).to_owned(),
                kind: *kind,
                unit: *unit,
                doc,
            };
        TableInfo {
            name: self.name,
            kind: TableKind::View,
            doc: self.doc,
            columns: self.columns.iter().map(column).collect(),
        }
    }

    /// The view's columns, computed once for each trace.
    pub(super) fn columns_of(&self, trace: &Trace) -> Result<Arc<ViewColumns>, Error> {
        if let Some(known) = trace.views.lock().get(self.name) {
            return Ok(Arc::clone(known));
        }
        // Not under the lock: a view may look at another one, and takes long.
        let arrays = (self.make)(trace)?;
        let rows = arrays.first().map_or(0, |array| array.len());
        let columns = Arc::new(ViewColumns {
            arrays: arrays.into_iter().map(Some).collect(),
            rows,
        });
        let mut views = trace.views.lock();
        Ok(Arc::clone(views.entry(self.name).or_insert(columns)))
    }
}

/// Views that were computed.
#[derive(Default)]
pub(crate) struct KnownViews(std::sync::Mutex<FxHashMap<&'static str, Arc<ViewColumns>>>);

impl KnownViews {
    fn lock(&self) -> std::sync::MutexGuard<'_, FxHashMap<&'static str, Arc<ViewColumns>>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn numbers<P: ArrowPrimitiveType>(values: impl Iterator<Item = P::Native>) -> ArrayRef {
    Arc::new(PrimitiveArray::<P>::from_iter_values(values))
}

fn u64s(values: impl Iterator<Item = u64>) -> ArrayRef {
    numbers::<UInt64Type>(values)
}

fn u32s(values: impl Iterator<Item = u32>) -> ArrayRef {
    numbers::<UInt32Type>(values)
}

fn i64s(values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(PrimitiveArray::<Int64Type>::from_iter(values))
}

fn some_u64s(values: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    Arc::new(PrimitiveArray::<UInt64Type>::from_iter(values))
}

fn some_u32s(values: impl Iterator<Item = Option<u32>>) -> ArrayRef {
    Arc::new(PrimitiveArray::<UInt32Type>::from_iter(values))
}

/// An id, of which 0 is none.
fn ids(values: impl Iterator<Item = u32>) -> ArrayRef {
    some_u32s(values.map(|id| (id != 0).then_some(id)))
}

fn flags(values: impl Iterator<Item = bool>) -> ArrayRef {
    Arc::new(BooleanArray::from_iter(values.map(Some)))
}

/// Texts, each stored once.
#[derive(Default)]
struct TextColumn {
    keys: Vec<u32>,
    texts: Vec<String>,
    known: FxHashMap<String, u32>,
}

impl TextColumn {
    /// The key of a text.
    fn key(&mut self, text: &str) -> u32 {
        if let Some(key) = self.known.get(text) {
            return *key;
        }
        let key = self.texts.len() as u32;
        self.texts.push(text.to_owned());
        self.known.insert(text.to_owned(), key);
        key
    }

    fn push(&mut self, text: &str) {
        let key = self.key(text);
        self.keys.push(key);
    }

    fn finish(self) -> Result<ArrayRef, Error> {
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(self.texts));
        array::dictionary(self.keys, texts, false).map_err(refused)
    }

    /// The same if the first text stands for none.
    fn finish_optional(self) -> Result<ArrayRef, Error> {
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(self.texts));
        array::dictionary(self.keys, texts, true).map_err(refused)
    }
}

/// An array that Arrow does not accept.
fn refused(error: arrow_schema::ArrowError) -> Error {
    Error::Arrow(error.to_string())
}
