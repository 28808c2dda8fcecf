//! Record batches for readers of Arrow, through its C stream interface.
//!
//! Columns are handed over as they are. Only times change their type: they are stored unsigned, and a difference of unsigned
//! numbers wraps in every DataFrame library, so Python gets them as `int64`.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, Int64Array, PrimitiveArray, RecordBatch, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::column::{self, Column};
use crate::error::{NativeError, UsageError, sentence};
use crate::texts::tidied;

/// Rows that were read: an Arrow stream that can be taken more than once.
#[pyclass(frozen, module = "tracesmith._native")]
pub(crate) struct Batches {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Batches {
    pub(crate) fn new(schema: &SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Batches {
            schema: for_python(schema),
            batches: tidied(&batches).iter().map(signed_times).collect(),
        }
    }
}

#[pymethods]
impl Batches {
    /// The rows as a stream of Arrow's C interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer may ask for other types and must accept those it gets.
        let _ = requested_schema;
        let batches: VecDeque<RecordBatch> = self.batches.iter().cloned().collect();
        capsule(
            py,
            Read {
                schema: Arc::clone(&self.schema),
                batches,
            },
        )
    }

    /// The schema, as Arrow's C interface has it.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect()
    }

    /// The bytes that the rows take in memory.
    #[getter]
    fn nbytes(&self) -> usize {
        self.batches.iter().map(RecordBatch::get_array_memory_size).sum()
    }

    /// A column as `(type, data, unknown)`. Numbers: numpy's name of their type, their bytes, and a byte for each row that
    /// is 1 where the value is unknown, or `None` if all are known. Texts: `("object", list, None)`.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Column<'py>> {
        let position = self
            .schema
            .index_of(name)
            .map_err(|_| UsageError::new_err(format!("there is no column {name}")))?;
        let arrays: Vec<&ArrayRef> = self.batches.iter().map(|batch| batch.column(position)).collect();
        column::of(py, self.schema.field(position).data_type(), &arrays)
    }

    /// The rows as dictionaries.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, pyo3::types::PyDict>>> {
        let mut rows = Vec::new();
        for batch in &self.batches {
            column::push_dicts(py, batch, &mut rows)?;
        }
        Ok(rows)
    }
}

struct Read {
    schema: SchemaRef,
    batches: VecDeque<RecordBatch>,
}

impl Iterator for Read {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batches.pop_front().map(Ok)
    }
}

impl RecordBatchReader for Read {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// A stream as the capsule that consumers expect. Dropping the capsule releases the stream.
pub(crate) fn capsule<'py>(
    py: Python<'py>,
    reader: impl RecordBatchReader + Send + 'static,
) -> PyResult<Bound<'py, PyCapsule>> {
    let stream = FFI_ArrowArrayStream::new(Box::new(reader));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

pub(crate) fn schema_capsule<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).map_err(|error| NativeError::new_err(sentence(&error)))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

fn is_time(field: &Field) -> bool {
    field.data_type() == &DataType::UInt64 && field.metadata().get("unit").is_some_and(|unit| unit == "ns")
}

/// The schema with signed times.
pub(crate) fn for_python(schema: &SchemaRef) -> SchemaRef {
    let field = |field: &Arc<Field>| match is_time(field) {
        true => Arc::new(field.as_ref().clone().with_data_type(DataType::Int64)),
        false => Arc::clone(field),
    };
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}

/// A batch with signed times. The values are not copied.
pub(crate) fn signed_times(batch: &RecordBatch) -> RecordBatch {
    let schema = for_python(batch.schema_ref());
    let column = |(field, array): (&Arc<Field>, &ArrayRef)| match is_time(field) {
        true => signed(array.as_primitive::<UInt64Type>()),
        false => Arc::clone(array),
    };
    let columns = batch
        .schema_ref()
        .fields()
        .iter()
        .zip(batch.columns())
        .map(column)
        .collect();
    RecordBatch::try_new_with_options(
        schema,
        columns,
        &arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows())),
    )
    .expect("only the type of some columns changed, with the schema")
}

fn signed(times: &PrimitiveArray<UInt64Type>) -> ArrayRef {
    const LAST: u64 = i64::MAX as u64;
    if times.values().iter().any(|time| *time > LAST) {
        // Only a damaged file has a time after the year 2262: it is no time.
        let known = |time: Option<u64>| time.and_then(|time| i64::try_from(time).ok());
        return Arc::new(Int64Array::from_iter(times.iter().map(known)));
    }
    let values = times.values().inner().clone();
    Arc::new(Int64Array::new(values.into(), times.nulls().cloned()))
}
