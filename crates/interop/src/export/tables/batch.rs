//! Batches of a scan, as files of Arrow and Parquet describe them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use tracesmith_format::ColumnType;
use tracesmith_trace::Trace;
use tracesmith_trace::tables::StoredColumn as Column;

use super::TableFile;
use super::dictionary::{Dictionary, is_text};
use crate::error::Error;
use crate::export::timeline;

/// What a table's batches look like in a file.
pub(super) struct Form {
    format: &'static str,
    pub(super) schema: SchemaRef,
    /// For each column, what its keys become. Without any, texts are those of the whole trace.
    dictionaries: Vec<Option<Dictionary>>,
}

impl Form {
    pub(super) fn new(
        format: &'static str,
        trace: &Trace,
        table: &TableFile,
        dictionaries: Vec<Option<Dictionary>>,
    ) -> Self {
        let field = |column: &Column| {
            let facts = HashMap::from([("doc".to_owned(), column.spec.doc.to_owned())]);
            Field::new(&column.name, data_type(column), true).with_metadata(facts)
        };
        let fields: Vec<Field> = table.columns.iter().map(field).collect();
        let facts: HashMap<String, String> = facts(trace, table).into_iter().collect();
        Form {
            format,
            schema: Arc::new(Schema::new_with_metadata(fields, facts)),
            dictionaries,
        }
    }

    /// A batch of a scan in this form.
    pub(super) fn batch(&self, scanned: &RecordBatch) -> Result<RecordBatch, Error> {
        let column = |(at, column): (usize, &ArrayRef)| -> Result<ArrayRef, ArrowError> {
            match self.dictionaries.get(at) {
                Some(Some(dictionary)) => dictionary.renumbered(column),
                _ => Ok(Arc::clone(column)),
            }
        };
        let columns: Result<Vec<ArrayRef>, ArrowError> =
            scanned.columns().iter().enumerate().map(column).collect();
        columns
            .and_then(|columns| RecordBatch::try_new(Arc::clone(&self.schema), columns))
            .map_err(|error| refused(self.format, &error))
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
    if is_text(column) {
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
