//! Tables as batches of Arrow: one for each block.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Float64Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, BooleanArray, DictionaryArray, PrimitiveArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use tracesmith_format::{ColumnType, Value};
use tracesmith_trace::Trace;

use super::dictionary::{Dictionary, survey};
use super::part::{Part, PartColumn};
use super::{Pass, TableFile};
use crate::error::Error;
use crate::export::ExportOptions;
use crate::export::timeline;
use tracesmith_trace::tables::StoredColumn as Column;

/// A table on its way into batches.
pub(super) struct Batches<'t> {
    table: &'t TableFile,
    format: &'static str,
    dictionaries: Vec<Option<Dictionary>>,
    /// What the batches look like.
    pub(super) schema: SchemaRef,
}

impl<'t> Batches<'t> {
    /// Looks at the whole table for its dictionaries.
    pub(super) fn new(
        format: &'static str,
        trace: &Trace,
        options: &ExportOptions,
        table: &'t TableFile,
    ) -> Result<Self, Error> {
        let dictionaries = survey(format, trace, options, table)?;
        let fields: Vec<Field> = table
            .columns
            .iter()
            .map(|column| {
                let facts = HashMap::from([("doc".to_owned(), column.spec.doc.to_owned())]);
                Field::new(&column.name, data_type(column), true).with_metadata(facts)
            })
            .collect();
        let facts: HashMap<String, String> = facts(trace, table).into_iter().collect();
        Ok(Batches {
            table,
            format,
            dictionaries,
            schema: Arc::new(Schema::new_with_metadata(fields, facts)),
        })
    }

    /// Calls `f` with every batch that has rows.
    pub(super) fn for_each(
        &self,
        trace: &Trace,
        options: &ExportOptions,
        mut f: impl FnMut(&Part<'_>, RecordBatch) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.table.for_each_part(trace, options, Pass::Write, |part| {
            let batch = self.batch(part).map_err(|error| refused(self.format, &error))?;
            f(part, batch)
        })
    }

    fn batch(&self, part: &Part<'_>) -> Result<RecordBatch, ArrowError> {
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.table.columns.len());
        let mut failed = None;
        part.for_each_column(&self.table.columns, &mut |at, column, values| match array(
            column,
            self.dictionaries[at].as_ref(),
            &values,
            part.len(),
        ) {
            Ok(array) => arrays.push(array),
            Err(error) => failed = Some(error),
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(part.len()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
    }
}

/// What Arrow or Parquet would not take.
pub(super) fn refused(format: &'static str, error: &dyn std::error::Error) -> Error {
    Error::Export {
        format,
        problem: error.to_string(),
    }
}

/// Facts that a table's file carries: what it is, and what its times count.
pub(super) fn facts(trace: &Trace, table: &TableFile) -> Vec<(String, String)> {
    let mut facts = vec![
        ("tracesmith.table".to_owned(), table.name.to_owned()),
        ("tracesmith.doc".to_owned(), table.doc.to_owned()),
        ("tracesmith.time_unit".to_owned(), "ns".to_owned()),
        ("tracesmith.clock".to_owned(), timeline::clock_name(trace)),
    ];
    if let Some(epoch) = timeline::epoch_nanos(trace) {
        facts.push(("tracesmith.epoch_ns".to_owned(), epoch.to_string()));
    }
    facts
}

fn data_type(column: &Column) -> DataType {
    if super::dictionary::is_text(column) {
        return DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    }
    match column.spec.column_type {
        ColumnType::U8 => DataType::UInt8,
        ColumnType::U16 => DataType::UInt16,
        ColumnType::U32 | ColumnType::Index => DataType::UInt32,
        ColumnType::U64 | ColumnType::Blob => DataType::UInt64,
        ColumnType::I32 => DataType::Int32,
        ColumnType::I64 => DataType::Int64,
        ColumnType::F64 => DataType::Float64,
        ColumnType::Bool => DataType::Boolean,
    }
}

fn array(
    column: &Column,
    dictionary: Option<&Dictionary>,
    values: &PartColumn<'_>,
    rows: usize,
) -> Result<ArrayRef, ArrowError> {
    if let Some(dictionary) = dictionary {
        let keys = primitive::<Int32Type>(values, rows, |value| dictionary.key(&value));
        return Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(
            keys,
            Arc::clone(&dictionary.texts),
        )?));
    }
    let number = |value| match value {
        Value::Number(number) => Some(number),
        _ => None,
    };
    let signed = |value| match value {
        Value::Signed(number) => Some(number),
        _ => None,
    };
    Ok(match column.spec.column_type {
        ColumnType::U8 => Arc::new(primitive::<UInt8Type>(values, rows, |v| {
            number(v).map(|n| n as u8)
        })),
        ColumnType::U16 => Arc::new(primitive::<UInt16Type>(values, rows, |v| {
            number(v).map(|n| n as u16)
        })),
        ColumnType::U32 | ColumnType::Index => Arc::new(primitive::<UInt32Type>(values, rows, |v| {
            number(v).map(|n| n as u32)
        })),
        ColumnType::U64 | ColumnType::Blob => Arc::new(primitive::<UInt64Type>(values, rows, number)),
        ColumnType::I32 => Arc::new(primitive::<Int32Type>(values, rows, |v| {
            signed(v).map(|n| n as i32)
        })),
        ColumnType::I64 => Arc::new(primitive::<Int64Type>(values, rows, signed)),
        ColumnType::F64 => Arc::new(primitive::<Float64Type>(values, rows, |value| match value {
            Value::Float(number) => Some(number),
            _ => None,
        })),
        ColumnType::Bool => {
            let mut flags = Vec::with_capacity(rows);
            values.map(|value| value == Value::Flag(true), |flag| flags.push(flag));
            Arc::new(BooleanArray::from(flags))
        }
    })
}

fn primitive<P: ArrowPrimitiveType>(
    values: &PartColumn<'_>,
    rows: usize,
    make: impl Fn(Value) -> Option<P::Native>,
) -> PrimitiveArray<P> {
    let mut numbers = Vec::with_capacity(rows);
    let mut is_there = Vec::with_capacity(rows);
    values.map(make, |number| {
        is_there.push(number.is_some());
        numbers.push(number.unwrap_or_default());
    });
    let nulls = is_there.contains(&false).then(|| NullBuffer::from(is_there));
    PrimitiveArray::new(ScalarBuffer::from(numbers), nulls)
}
