//! The result of a query as Arrow batches. The types of its columns are known only when all of its rows are.
//!
//! SQLite gives each value a type, not each column. A column gets the narrowest type that holds all of its values exactly:
//! integers, floats, texts or bytes. Values are kept in memory, column by column, until all have been seen.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use rustc_hash::FxHashMap;

use rusqlite::types::{Type, ValueRef};

/// Rows that become Arrow arrays at once.
const BATCH_ROWS: usize = 1 << 16;
/// Integers up to this one are exact as floats.
const EXACT: i64 = 1 << 53;

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RowCell<'a> {
    /// None.
    Null,
    /// An integer.
    Integer(i64),
    /// A float.
    Real(f64),
    /// A text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
}

impl<'a> From<ValueRef<'a>> for RowCell<'a> {
    fn from(value: ValueRef<'a>) -> Self {
        match value {
            ValueRef::Null => RowCell::Null,
            ValueRef::Integer(number) => RowCell::Integer(number),
            ValueRef::Real(number) => RowCell::Real(number),
            // SQLite does not check that texts are UTF-8.
            ValueRef::Text(text) => std::str::from_utf8(text).map_or(RowCell::Bytes(text), RowCell::Text),
            ValueRef::Blob(bytes) => RowCell::Bytes(bytes),
        }
    }
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// Integers of 64 bits.
    Integer,
    /// Floats of 64 bits.
    Real,
    /// Texts.
    Text,
    /// Bytes.
    Bytes,
}

impl RowKind {
    /// The type of a column without values, from the type that it has in its table.
    pub(crate) fn of(declared: Option<Type>) -> Self {
        match declared {
            Some(Type::Integer) => RowKind::Integer,
            Some(Type::Real) => RowKind::Real,
            Some(Type::Blob) => RowKind::Bytes,
            Some(Type::Text | Type::Null) | None => RowKind::Text,
        }
    }
}

/// Rows whose columns get their types from their values.
#[derive(Debug)]
pub struct RowTable {
    columns: Vec<Column>,
    rows: usize,
}

impl RowTable {
    /// Starts with no rows. A column has its declared type if no row has a value. A name that comes twice gets a
    /// number: readers find columns by their names.
    pub(crate) fn new(columns: impl IntoIterator<Item = (String, RowKind)>) -> Self {
        let columns: Vec<(String, RowKind)> = columns.into_iter().collect();
        let mut taken: BTreeSet<String> = columns.iter().map(|(name, _)| name.clone()).collect();
        let mut used = BTreeSet::new();
        let column = |(name, declared): (String, RowKind)| {
            let name = if used.insert(name.clone()) {
                name
            } else {
                let numbered = (2..).map(|number| format!("{name}_{number}"));
                numbered
                    .into_iter()
                    .find(|name| taken.insert(name.clone()))
                    .unwrap_or(name)
            };
            Column {
                name,
                declared,
                values: Values::Nulls(0),
            }
        };
        RowTable {
            columns: columns.into_iter().map(column).collect(),
            rows: 0,
        }
    }

    /// Adds a row: a value for each column.
    pub(crate) fn push<'a>(&mut self, cells: impl IntoIterator<Item = RowCell<'a>>) {
        let mut cells = cells.into_iter();
        for column in &mut self.columns {
            column.values.push(cells.next().unwrap_or(RowCell::Null));
        }
        self.rows += 1;
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// All rows as Arrow batches. A column has the narrowest type that holds its values.
    pub fn into_batches(mut self) -> (SchemaRef, impl Iterator<Item = Result<RecordBatch, ArrowError>>) {
        let schema = self.settle();
        let of_batches = Arc::clone(&schema);
        let batches = self.ranges().map(move |rows| self.batch(&of_batches, rows));
        (schema, batches)
    }

    /// Decides the types of all columns.
    fn settle(&mut self) -> SchemaRef {
        for column in &mut self.columns {
            column.values = std::mem::replace(&mut column.values, Values::Nulls(0)).settled();
        }
        let field =
            |column: &Column| Field::new(&column.name, data_type(column.values.kind(column.declared)), true);
        Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()))
    }

    fn ranges(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let rows = self.rows;
        let starts = (0..rows).step_by(BATCH_ROWS);
        starts.map(move |start| start..(start + BATCH_ROWS).min(rows))
    }

    fn batch(&self, schema: &SchemaRef, rows: Range<usize>) -> Result<RecordBatch, ArrowError> {
        let array = |column: &Column| column.values.array(column.declared, rows.clone());
        RecordBatch::try_new(Arc::clone(schema), self.columns.iter().map(array).collect())
    }
}

/// A column whose type is not decided yet.
#[derive(Debug)]
struct Column {
    name: String,
    /// The type if no value decides it.
    declared: RowKind,
    values: Values,
}

#[derive(Debug)]
enum Values {
    /// This many rows, without a value.
    Nulls(usize),
    Integers(Vec<Option<i64>>),
    Reals(Vec<Option<f64>>),
    /// Both: floats if these hold all of the integers exactly, and else texts.
    Numbers(Vec<Option<Number>>),
    /// Each distinct text once.
    Texts(Interned),
    Bytes(Vec<Option<Vec<u8>>>),
}

#[derive(Clone, Copy, Debug)]
enum Number {
    Integer(i64),
    Real(f64),
}

impl Number {
    fn cell(self) -> RowCell<'static> {
        match self {
            Self::Integer(number) => RowCell::Integer(number),
            Self::Real(number) => RowCell::Real(number),
        }
    }

    fn exact(self) -> Option<f64> {
        match self {
            Self::Integer(number) => (-EXACT..=EXACT).contains(&number).then_some(number as f64),
            Self::Real(number) => Some(number),
        }
    }
}

/// Texts, each stored once.
#[derive(Debug, Default)]
struct Interned {
    rows: Vec<Option<u32>>,
    texts: Vec<Arc<str>>,
    known: FxHashMap<Arc<str>, u32>,
}

impl Interned {
    fn push(&mut self, text: Option<&str>) {
        let key = text.map(|text| match self.known.get(text) {
            Some(key) => *key,
            None => {
                let key = self.texts.len() as u32;
                let text: Arc<str> = text.into();
                self.texts.push(Arc::clone(&text));
                self.known.insert(text, key);
                key
            }
        });
        self.rows.push(key);
    }
}

impl Values {
    fn push(&mut self, cell: RowCell<'_>) {
        match (&mut *self, cell) {
            (Self::Nulls(rows), RowCell::Null) => *rows += 1,
            (Self::Nulls(rows), _) => {
                *self = Self::of_nulls(*rows, cell);
                self.push(cell);
            }
            (Self::Integers(values), RowCell::Null) => values.push(None),
            (Self::Reals(values), RowCell::Null) => values.push(None),
            (Self::Numbers(values), RowCell::Null) => values.push(None),
            (Self::Texts(values), RowCell::Null) => values.push(None),
            (Self::Bytes(values), RowCell::Null) => values.push(None),
            (Self::Integers(values), RowCell::Integer(number)) => values.push(Some(number)),
            (Self::Reals(values), RowCell::Real(number)) => values.push(Some(number)),
            (Self::Texts(values), RowCell::Text(text)) => values.push(Some(text)),
            (Self::Texts(values), cell) => values.push(written(cell).as_deref()),
            (Self::Bytes(values), RowCell::Bytes(bytes)) => values.push(Some(bytes.to_vec())),
            (Self::Numbers(values), RowCell::Integer(number)) => values.push(Some(Number::Integer(number))),
            (Self::Numbers(values), RowCell::Real(number)) => values.push(Some(Number::Real(number))),
            (Self::Integers(values), RowCell::Real(_)) => {
                let numbers = values.iter().map(|value| value.map(Number::Integer));
                *self = Self::Numbers(numbers.collect());
                self.push(cell);
            }
            (Self::Reals(values), RowCell::Integer(_)) => {
                let numbers = values.iter().map(|value| value.map(Number::Real));
                *self = Self::Numbers(numbers.collect());
                self.push(cell);
            }
            (_, cell) => {
                *self = Self::Texts(self.texts());
                self.push(cell);
            }
        }
    }

    /// Rows without a value, before the first one that has one.
    fn of_nulls(rows: usize, first: RowCell<'_>) -> Self {
        match first {
            RowCell::Null => Self::Nulls(rows),
            RowCell::Integer(_) => Self::Integers(vec![None; rows]),
            RowCell::Real(_) => Self::Reals(vec![None; rows]),
            RowCell::Bytes(_) => Self::Bytes(vec![None; rows]),
            RowCell::Text(_) => Self::Texts(Interned {
                rows: vec![None; rows],
                ..Interned::default()
            }),
        }
    }

    /// The same values as texts.
    fn texts(&self) -> Interned {
        let mut texts = Interned::default();
        let mut push = |cell: RowCell<'_>| texts.push(written(cell).as_deref());
        match self {
            Self::Nulls(rows) => (0..*rows).for_each(|_| push(RowCell::Null)),
            Self::Integers(values) => values
                .iter()
                .for_each(|value| push(value.map_or(RowCell::Null, RowCell::Integer))),
            Self::Reals(values) => values
                .iter()
                .for_each(|value| push(value.map_or(RowCell::Null, RowCell::Real))),
            Self::Numbers(values) => values
                .iter()
                .for_each(|value| push(value.map_or(RowCell::Null, Number::cell))),
            Self::Bytes(values) => values
                .iter()
                .for_each(|value| push(value.as_deref().map_or(RowCell::Null, RowCell::Bytes))),
            Self::Texts(_) => {}
        }
        texts
    }

    /// The same values, as they are written.
    fn settled(self) -> Self {
        let Self::Numbers(values) = &self else {
            return self;
        };
        let exact = |value: &Option<Number>| value.is_none_or(|number| number.exact().is_some());
        if values.iter().all(exact) {
            let reals = values.iter().map(|value| value.and_then(Number::exact));
            Self::Reals(reals.collect())
        } else {
            Self::Texts(self.texts())
        }
    }

    fn kind(&self, declared: RowKind) -> RowKind {
        match self {
            Self::Nulls(_) => declared,
            Self::Integers(_) => RowKind::Integer,
            Self::Reals(_) | Self::Numbers(_) => RowKind::Real,
            Self::Texts(_) => RowKind::Text,
            Self::Bytes(_) => RowKind::Bytes,
        }
    }

    fn array(&self, declared: RowKind, rows: std::ops::Range<usize>) -> ArrayRef {
        match self {
            Self::Nulls(_) => arrow_array::new_null_array(&data_type(declared), rows.len()),
            Self::Integers(values) => Arc::new(Int64Array::from(values[rows].to_vec())),
            Self::Reals(values) => Arc::new(Float64Array::from(values[rows].to_vec())),
            Self::Numbers(values) => {
                let reals = values[rows].iter().map(|value| value.and_then(Number::exact));
                Arc::new(Float64Array::from_iter(reals))
            }
            Self::Bytes(values) => {
                Arc::new(BinaryArray::from_iter(values[rows].iter().map(Option::as_deref)))
            }
            Self::Texts(values) => {
                let text = |key: &Option<u32>| key.map(|key| &*values.texts[key as usize]);
                Arc::new(StringArray::from_iter(values.rows[rows].iter().map(text)))
            }
        }
    }
}

/// A value as a text. Bytes are written as SQL writes them.
fn written(cell: RowCell<'_>) -> Option<String> {
    Some(match cell {
        RowCell::Null => return None,
        RowCell::Integer(number) => number.to_string(),
        // With a point, so that 1.0 is not taken for an integer.
        RowCell::Real(number) => format!("{number:?}"),
        RowCell::Text(text) => text.to_owned(),
        RowCell::Bytes(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            format!("X'{digits}'")
        }
    })
}

fn data_type(kind: RowKind) -> DataType {
    match kind {
        RowKind::Integer => DataType::Int64,
        RowKind::Real => DataType::Float64,
        RowKind::Text => DataType::Utf8,
        RowKind::Bytes => DataType::Binary,
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int64Type};
    use arrow_array::{Array, RecordBatch};
    use arrow_schema::DataType;

    use super::*;

    /// The batch of some columns, each given by its rows.
    fn batch_of(columns: &[(&str, RowKind, &[RowCell<'_>])]) -> RecordBatch {
        let head = columns.iter().map(|(name, kind, _)| ((*name).to_owned(), *kind));
        let mut rows = RowTable::new(head);
        for row in 0..columns[0].2.len() {
            rows.push(columns.iter().map(|(.., cells)| cells[row]));
        }
        let (schema, batches) = rows.into_batches();
        let batches: Vec<RecordBatch> = batches.map(Result::unwrap).collect();
        match &batches[..] {
            [] => RecordBatch::new_empty(schema),
            [batch] => batch.clone(),
            _ => panic!("{} batches", batches.len()),
        }
    }

    #[test]
    fn a_column_is_as_wide_as_its_values_need() {
        use RowCell::{Bytes, Integer, Null, Real, Text};
        const LARGE: i64 = (1 << 53) + 1;
        let batch = batch_of(&[
            (
                "integers",
                RowKind::Text,
                &[Null, Integer(i64::MIN), Integer(i64::MAX)],
            ),
            ("floats", RowKind::Text, &[Integer(1), Null, Real(0.5)]),
            ("exact", RowKind::Text, &[Integer(LARGE), Real(0.5), Null]),
            ("exact", RowKind::Text, &[Real(1.0), Integer(LARGE), Null]),
            ("texts", RowKind::Text, &[Integer(7), Real(2.0), Text("x")]),
            ("bytes", RowKind::Text, &[Bytes(b"\xff"), Null, Bytes(b"")]),
            (
                "mixed",
                RowKind::Text,
                &[Bytes(b"\x01\xff"), Integer(3), Text("y")],
            ),
            ("empty", RowKind::Real, &[Null, Null, Null]),
        ]);
        let kinds: Vec<(&str, DataType)> = batch
            .schema_ref()
            .fields()
            .iter()
            .map(|field| (field.name().as_str(), field.data_type().clone()))
            .collect();
        assert_eq!(
            kinds.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            [
                "integers", "floats", "exact", "exact_2", "texts", "bytes", "mixed", "empty"
            ]
        );
        use DataType::{Binary, Float64, Int64, Utf8};
        assert_eq!(
            kinds.into_iter().map(|(_, kind)| kind).collect::<Vec<_>>(),
            [Int64, Float64, Utf8, Utf8, Utf8, Binary, Utf8, Float64]
        );
        let texts = |at: usize| -> Vec<Option<&str>> { batch.column(at).as_string::<i32>().iter().collect() };
        let integers: Vec<Option<i64>> = batch.column(0).as_primitive::<Int64Type>().iter().collect();
        assert_eq!(integers, [None, Some(i64::MIN), Some(i64::MAX)]);
        let floats: Vec<Option<f64>> = batch.column(1).as_primitive::<Float64Type>().iter().collect();
        assert_eq!(floats, [Some(1.0), None, Some(0.5)]);
        assert_eq!(texts(2), [Some("9007199254740993"), Some("0.5"), None]);
        assert_eq!(texts(3), [Some("1.0"), Some("9007199254740993"), None]);
        assert_eq!(texts(4), [Some("7"), Some("2.0"), Some("x")]);
        let bytes: Vec<Option<&[u8]>> = batch.column(5).as_binary::<i32>().iter().collect();
        assert_eq!(bytes, [Some(&b"\xff"[..]), None, Some(&b""[..])]);
        assert_eq!(texts(6), [Some("X'01FF'"), Some("3"), Some("y")]);
        assert_eq!(batch.column(7).null_count(), 3);
    }

    #[test]
    fn no_rows_have_the_declared_types() {
        let batch = batch_of(&[("a", RowKind::Integer, &[]), ("b", RowKind::Text, &[])]);
        assert_eq!(batch.num_rows(), 0);
        assert_eq!(batch.schema().field(0).data_type(), &DataType::Int64);
        assert_eq!(batch.schema().field(1).data_type(), &DataType::Utf8);
    }
}
