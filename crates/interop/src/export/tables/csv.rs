//! Tables as CSV (RFC 4180, lines end in a line feed): a head of column names, then a line for each row.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float64Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray, RecordBatch, StringArray};
use arrow_schema::DataType;
use memchr::{memchr, memchr3};
use tracesmith_trace::Trace;

use super::table;
use crate::error::Error;
use crate::export::json_text::push_format;
use crate::export::{ExportOptions, ExportReport, Exporter, Out, Way};

pub(in crate::export) const EXPORTER: Exporter = Exporter {
    name: "csv",
    aliases: &[],
    title: "a folder of CSV files, or one table with --table",
    extension: "csv",
    way: Way::Tables(write),
};

fn write(
    trace: &Arc<Trace>,
    options: &ExportOptions,
    name: &str,
    out: &mut Out<'_>,
) -> Result<ExportReport, Error> {
    let table = table(EXPORTER.name, name)?;
    let head: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    out.put(format!("{}\n", head.join(",")).as_bytes())?;
    table.for_each_batch(trace, options, |batch| write_batch(batch, out))
}

/// A column with its type looked up once.
enum Cells<'b> {
    U8(Whole<'b, UInt8Type>),
    U16(Whole<'b, UInt16Type>),
    U32(Whole<'b, UInt32Type>),
    U64(Whole<'b, UInt64Type>),
    I32(Whole<'b, Int32Type>),
    I64(Whole<'b, Int64Type>),
    F64(&'b PrimitiveArray<Float64Type>),
    Flags(&'b BooleanArray),
    Texts(&'b PrimitiveArray<Int32Type>, &'b StringArray),
    /// No row has a value.
    Nulls,
}

impl<'b> Cells<'b> {
    fn of(array: &'b ArrayRef) -> Result<Self, Error> {
        if array.null_count() == array.len() {
            return Ok(Self::Nulls);
        }
        Ok(match array.data_type() {
            DataType::UInt8 => Self::U8(Whole::new(array)),
            DataType::UInt16 => Self::U16(Whole::new(array)),
            DataType::UInt32 => Self::U32(Whole::new(array)),
            DataType::UInt64 => Self::U64(Whole::new(array)),
            DataType::Int32 => Self::I32(Whole::new(array)),
            DataType::Int64 => Self::I64(Whole::new(array)),
            DataType::Float64 => Self::F64(array.as_primitive()),
            DataType::Boolean => Self::Flags(array.as_boolean()),
            DataType::Dictionary(..) => {
                let array = array.as_dictionary::<Int32Type>();
                Self::Texts(array.keys(), array.values().as_string())
            }
            other => {
                return Err(Error::Export {
                    format: EXPORTER.name,
                    problem: format!("a column of {other}"),
                });
            }
        })
    }

    #[inline]
    fn push(&mut self, out: &mut Vec<u8>, row: usize) {
        match self {
            Self::U8(whole) => whole.push(out, row),
            Self::U16(whole) => whole.push(out, row),
            Self::U32(whole) => whole.push(out, row),
            Self::U64(whole) => whole.push(out, row),
            Self::I32(whole) => whole.push(out, row),
            Self::I64(whole) => whole.push(out, row),
            Self::F64(array) if array.is_valid(row) => push_format(out, format_args!("{}", array.value(row))),
            Self::Flags(array) if array.is_valid(row) => {
                out.extend_from_slice(if array.value(row) { b"true" } else { b"false" });
            }
            Self::Texts(keys, texts) if keys.is_valid(row) => {
                push_quoted(out, texts.value(keys.value(row) as usize));
            }
            Self::F64(_) | Self::Flags(_) | Self::Texts(..) | Self::Nulls => {}
        }
    }
}

/// Whole numbers. Most columns have the same number in many rows after each other: its digits are kept.
struct Whole<'b, P: ArrowPrimitiveType> {
    array: &'b PrimitiveArray<P>,
    last: P::Native,
    digits: Vec<u8>,
}

impl<'b, P: ArrowPrimitiveType> Whole<'b, P>
where
    P::Native: itoa::Integer + PartialEq,
{
    fn new(array: &'b ArrayRef) -> Self {
        Whole {
            array: array.as_primitive(),
            last: P::Native::default(),
            digits: b"0".to_vec(),
        }
    }

    #[inline]
    fn push(&mut self, out: &mut Vec<u8>, row: usize) {
        if self.array.is_null(row) {
            return;
        }
        let value = self.array.value(row);
        if value != self.last {
            self.last = value;
            self.digits.clear();
            self.digits
                .extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        }
        out.extend_from_slice(&self.digits);
    }
}

fn write_batch(batch: &RecordBatch, out: &mut Out<'_>) -> Result<(), Error> {
    let mut columns: Vec<Cells<'_>> = batch.columns().iter().map(Cells::of).collect::<Result<_, _>>()?;
    for row in 0..batch.num_rows() {
        let line = out.buffer();
        for (at, column) in columns.iter_mut().enumerate() {
            if at > 0 {
                line.push(b',');
            }
            column.push(line, row);
        }
        line.push(b'\n');
        out.settle()?;
    }
    Ok(())
}

/// A text as one field: in quotes when it holds what ends a field.
fn push_quoted(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    if memchr3(b',', b'"', b'\n', bytes).is_none() && memchr(b'\r', bytes).is_none() {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    for part in text.split_inclusive('"') {
        out.extend_from_slice(part.as_bytes());
        if part.ends_with('"') {
            out.push(b'"');
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_a_field_is_quoted() {
        let quoted = |text| {
            let mut out = Vec::new();
            push_quoted(&mut out, text);
            String::from_utf8(out).unwrap_or_default()
        };
        assert_eq!(
            [
                quoted("plain text"),
                quoted("f(int, \"a\")"),
                quoted("\""),
                quoted("a\nb"),
                quoted("")
            ],
            ["plain text", "\"f(int, \"\"a\"\")\"", "\"\"\"\"", "\"a\nb\"", ""]
        );
    }
}
