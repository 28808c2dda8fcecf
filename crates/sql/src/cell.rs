//! Values of Arrow arrays, as SQLite takes them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float64Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, BooleanArray, DictionaryArray, PrimitiveArray, StringArray};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::DataType;

use crate::rows::{Part, Place};

/// A column with its type looked up once.
#[derive(Clone)]
pub(crate) enum Column {
    U8(PrimitiveArray<UInt8Type>),
    U16(PrimitiveArray<UInt16Type>),
    U32(PrimitiveArray<UInt32Type>),
    U64(PrimitiveArray<UInt64Type>),
    I32(PrimitiveArray<Int32Type>),
    I64(PrimitiveArray<Int64Type>),
    F64(PrimitiveArray<Float64Type>),
    Bool(BooleanArray),
    Text(DictionaryArray<Int32Type>, StringArray),
    /// A column that the query does not use.
    Unused,
}

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    Null,
    /// SQLite's integers have 64 bits with a sign: larger ones wrap around, as addresses may.
    Integer(i64),
    Real(f64),
    Text(&'a str),
}

impl Column {
    pub(crate) fn of(array: &ArrayRef) -> Self {
        match array.data_type() {
            DataType::UInt8 => Self::U8(array.as_primitive().clone()),
            DataType::UInt16 => Self::U16(array.as_primitive().clone()),
            DataType::UInt32 => Self::U32(array.as_primitive().clone()),
            DataType::UInt64 => Self::U64(array.as_primitive().clone()),
            DataType::Int32 => Self::I32(array.as_primitive().clone()),
            DataType::Int64 => Self::I64(array.as_primitive().clone()),
            DataType::Float64 => Self::F64(array.as_primitive().clone()),
            DataType::Boolean => Self::Bool(array.as_boolean().clone()),
            DataType::Dictionary(..) => {
                let array = array.as_dictionary::<Int32Type>();
                Self::Text(array.clone(), array.values().as_string().clone())
            }
            _ => Self::Unused,
        }
    }

    /// The values of some rows of several parts, in their order.
    pub(crate) fn gather(parts: &[Part], column: usize, places: &[Place]) -> Self {
        fn numbers<P: ArrowPrimitiveType>(
            parts: &[Part],
            places: &[Place],
            of: impl Fn(&Part) -> Option<&PrimitiveArray<P>>,
        ) -> PrimitiveArray<P> {
            let arrays: Vec<Option<&PrimitiveArray<P>>> = parts.iter().map(of).collect();
            let has_nulls = arrays.iter().flatten().any(|array| array.null_count() > 0);
            let values = places.iter().map(|(part, row)| match arrays[*part as usize] {
                Some(array) => array.value(*row as usize),
                None => P::Native::default(),
            });
            let values = ScalarBuffer::from_iter(values);
            let nulls = has_nulls.then(|| {
                NullBuffer::from_iter(places.iter().map(|(part, row)| {
                    arrays[*part as usize].is_some_and(|array| array.is_valid(*row as usize))
                }))
            });
            PrimitiveArray::new(values, nulls)
        }
        macro_rules! of {
            ($kind:ident) => {
                Self::$kind(numbers(parts, places, |part| match &part.columns[column] {
                    Self::$kind(array) => Some(array),
                    _ => None,
                }))
            };
        }
        match parts.first().map(|part| &part.columns[column]) {
            Some(Self::U8(_)) => of!(U8),
            Some(Self::U16(_)) => of!(U16),
            Some(Self::U32(_)) => of!(U32),
            Some(Self::U64(_)) => of!(U64),
            Some(Self::I32(_)) => of!(I32),
            Some(Self::I64(_)) => of!(I64),
            Some(Self::F64(_)) => of!(F64),
            Some(Self::Bool(_)) => {
                let value = |(part, row): &Place| match &parts[*part as usize].columns[column] {
                    Self::Bool(array) => array.is_valid(*row as usize).then(|| array.value(*row as usize)),
                    _ => None,
                };
                Self::Bool(places.iter().map(value).collect())
            }
            Some(Self::Text(first, texts)) => {
                let keys = numbers(parts, places, |part| match &part.columns[column] {
                    Self::Text(array, _) => Some(array.keys()),
                    _ => None,
                });
                // All batches of one trace share the dictionary.
                let array = DictionaryArray::try_new(keys, Arc::clone(first.values()));
                array.map_or(Self::Unused, |array| Self::Text(array, texts.clone()))
            }
            Some(Self::Unused) | None => Self::Unused,
        }
    }

    /// Whether all parts have the same dictionary, if they have texts.
    pub(crate) fn is_shared(parts: &[Part], column: usize) -> bool {
        let dictionary = |part: &Part| match &part.columns[column] {
            Self::Text(array, _) => Some(Arc::clone(array.values())),
            _ => None,
        };
        let first = parts.first().and_then(dictionary);
        first.is_none_or(|first| {
            let mut others = parts.iter().filter_map(dictionary);
            others.all(|other| Arc::ptr_eq(&other, &first))
        })
    }

    #[inline]
    pub(crate) fn cell(&self, row: usize) -> Cell<'_> {
        fn whole<T>(is_valid: bool, value: T, make: impl Fn(T) -> i64) -> Cell<'static> {
            if is_valid {
                Cell::Integer(make(value))
            } else {
                Cell::Null
            }
        }
        match self {
            Self::U8(array) => whole(array.is_valid(row), array.value(row), i64::from),
            Self::U16(array) => whole(array.is_valid(row), array.value(row), i64::from),
            Self::U32(array) => whole(array.is_valid(row), array.value(row), i64::from),
            Self::U64(array) => whole(array.is_valid(row), array.value(row), |value| value as i64),
            Self::I32(array) => whole(array.is_valid(row), array.value(row), i64::from),
            Self::I64(array) => whole(array.is_valid(row), array.value(row), |value| value),
            Self::F64(array) if array.is_valid(row) => Cell::Real(array.value(row)),
            Self::Bool(array) => whole(array.is_valid(row), array.value(row), i64::from),
            Self::Text(array, texts) => match array.key(row) {
                Some(key) => Cell::Text(texts.value(key)),
                None => Cell::Null,
            },
            Self::F64(_) | Self::Unused => Cell::Null,
        }
    }
}
