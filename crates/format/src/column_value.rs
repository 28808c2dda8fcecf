//! The numbers that a column can hold, and what they mean.
//!
//! All codecs work on 64-bit words. [`ColumnValue`] converts a type to a word and back. Signed numbers are folded
//! (zigzag), so that small negative ones stay small. [`Meaning`] is stored in the file's schema block. It tells a reader
//! that a 32-bit number is, for example, a string's ID, so that a program that does not know the table can still show it.

use crate::buffer::ColumnValues;
use crate::ids::Codes;
use crate::varint::{unzigzag, zigzag};

/// How a column's values are represented. The number is stored in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ColumnType {
    /// 8-bit unsigned.
    U8 = 1,
    /// 16-bit unsigned.
    U16 = 2,
    /// 32-bit unsigned.
    U32 = 3,
    /// 64-bit unsigned.
    U64 = 4,
    /// 32-bit signed, folded.
    I32 = 5,
    /// 64-bit signed, folded.
    I64 = 6,
    /// IEEE 754 double, by its bits.
    F64 = 7,
    /// 0 or 1.
    Bool = 8,
    /// A byte string of any length.
    Blob = 9,
    /// Row number in a shared group's values.
    Index = 10,
}

impl ColumnType {
    /// The type with this number in a file.
    pub fn from_number(number: u8) -> Option<Self> {
        use ColumnType::*;
        [U8, U16, U32, U64, I32, I64, F64, Bool, Blob, Index]
            .into_iter()
            .find(|t| *t as u8 == number)
    }

    /// Whether a column of this type can be read as one of type `wanted`: unsigned as unsigned, signed as
    /// signed, the width checked value by value. This lets a later version widen a column.
    pub(crate) fn reads_as(self, wanted: Self) -> bool {
        self.class() == wanted.class()
    }

    fn class(self) -> u8 {
        use ColumnType::*;
        match self {
            U8 | U16 | U32 | U64 | Bool => 0,
            I32 | I64 => 1,
            F64 => 2,
            Blob => 3,
            Index => 4,
        }
    }

    /// Bytes of one value without any encoding; blobs count their bytes apart.
    pub fn width_bytes(self) -> u64 {
        use ColumnType::*;
        match self {
            U8 | Bool => 1,
            U16 => 2,
            U32 | I32 | Index => 4,
            U64 | I64 | F64 => 8,
            Blob => 0,
        }
    }
}

/// What a column's numbers stand for. The number is stored in the file's schema block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "each variant is named after the thing it refers to")]
pub enum Meaning {
    Number = 0,
    Time = 1,
    String = 2,
    Stack = 3,
    Frame = 4,
    Image = 5,
    Host = 6,
    Process = 7,
    Thread = 8,
    Device = 9,
    Context = 10,
    Stream = 11,
    Clock = 12,
    Correlation = 13,
    Graph = 14,
    GraphNode = 15,
    Module = 16,
    Address = 17,
    Bytes = 18,
    Code = 19,
    Kind = 20,
    /// A number that counts from 0, stored one higher; 0 is none.
    Ordinal = 21,
}

/// One value of any column, for programs that walk rows without knowing their table.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Nothing, or not known.
    Missing,
    /// A whole number, or an id whose [`Meaning`] says of what.
    Number(u64),
    /// A whole number that may be negative.
    Signed(i64),
    /// A measured value.
    Float(f64),
    /// Yes or no.
    Flag(bool),
    /// One of a few named values; `None` when this version has no name for it.
    Code(Option<&'static str>, u64),
    /// Bytes; only their number is carried here.
    Blob(usize),
}

/// A value that fits a 64-bit word.
pub trait ColumnValue: Copy + Default + PartialEq + Send + Sync + 'static {
    /// How the column says it is stored.
    const TYPE: ColumnType;
    /// What it stands for.
    const MEANING: Meaning;
    /// The named values, when it is a code.
    const CODES: Option<&'static Codes> = None;
    /// The largest word that is a value of this type.
    const MAX: u64;

    /// This value as a word.
    fn to_word(self) -> u64;
    /// The value of a word that is at most [`ColumnValue::MAX`].
    fn from_word(word: u64) -> Self;
    /// This value for showing.
    fn value(self) -> Value;
    /// A column of such values, in the same memory.
    fn into_buffer(values: Vec<Self>) -> ColumnValues;
}

macro_rules! number {
    ($type:ty, $column:ident, $max:expr, $to:expr, $from:expr, $value:expr) => {
        impl ColumnValue for $type {
            const TYPE: ColumnType = ColumnType::$column;
            const MEANING: Meaning = Meaning::Number;
            const MAX: u64 = $max;

            #[inline]
            fn to_word(self) -> u64 {
                $to(self)
            }

            #[inline]
            fn from_word(word: u64) -> Self {
                $from(word)
            }

            fn value(self) -> Value {
                $value(self)
            }

            fn into_buffer(values: Vec<Self>) -> ColumnValues {
                ColumnValues::$column(values)
            }
        }
    };
}

number!(u8, U8, u8::MAX as u64, u64::from, |l| l as u8, |v| Value::Number(
    u64::from(v)
));
number!(u16, U16, u16::MAX as u64, u64::from, |l| l as u16, |v| {
    Value::Number(u64::from(v))
});
number!(u32, U32, u32::MAX as u64, u64::from, |l| l as u32, |v| {
    Value::Number(u64::from(v))
});
number!(u64, U64, u64::MAX, |v| v, |l| l, Value::Number);
number!(
    i32,
    I32,
    u32::MAX as u64,
    |v| zigzag(i64::from(v)),
    |l| unzigzag(l) as i32,
    |v| Value::Signed(i64::from(v))
);
number!(i64, I64, u64::MAX, zigzag, unzigzag, Value::Signed);
number!(f64, F64, u64::MAX, f64::to_bits, f64::from_bits, Value::Float);
number!(bool, Bool, 1, u64::from, |l| l != 0, Value::Flag);

/// A newtype over a number that is a word of its own.
macro_rules! column_value_newtype {
    ($name:ident, $inner:ty, $meaning:ident, $value:expr $(, codes: $codes:expr)?) => {
        impl $crate::column_value::ColumnValue for $name {
            const TYPE: $crate::column_value::ColumnType = <$inner as $crate::column_value::ColumnValue>::TYPE;
            const MEANING: $crate::column_value::Meaning = $crate::column_value::Meaning::$meaning;
            $(const CODES: Option<&'static $crate::ids::Codes> = Some($codes);)?
            const MAX: u64 = <$inner as $crate::column_value::ColumnValue>::MAX;

            #[inline]
            fn to_word(self) -> u64 {
                self.0.to_word()
            }

            #[inline]
            fn from_word(word: u64) -> Self {
                Self(<$inner as $crate::column_value::ColumnValue>::from_word(word))
            }

            fn value(self) -> $crate::column_value::Value {
                $value(self)
            }

            fn into_buffer(values: Vec<Self>) -> $crate::buffer::ColumnValues {
                // Collecting into the same layout reuses the memory.
                let inner: Vec<$inner> = values.into_iter().map(|value| value.0).collect();
                <$inner as $crate::column_value::ColumnValue>::into_buffer(inner)
            }
        }
    };
}
pub(crate) use column_value_newtype;
