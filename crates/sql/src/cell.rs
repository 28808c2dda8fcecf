//! Values of Arrow arrays, as SQLite takes them.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, DictionaryArray, PrimitiveArray, StringArray};
use arrow_schema::DataType;

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
