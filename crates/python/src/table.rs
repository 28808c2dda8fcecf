//! Tables of a trace: which rows and columns to read, and their rows.

use std::num::NonZeroUsize;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCapsule, PyFloat, PyInt, PyString};
use tracesmith_trace::tables::{self, Condition, Scalar, Scan};

use crate::error::{UsageError, trace_error};
use crate::job;
use crate::stream::{Batches, capsule, for_python, schema_capsule, signed_times};
use crate::texts::Tidy;

/// Rows of a trace that are read when they are needed.
#[pyclass(frozen, module = "tracesmith._native")]
pub(crate) struct Table {
    table: tables::Table,
    scan: Scan,
}

impl Table {
    pub(crate) fn of(trace: &Arc<tracesmith_trace::Trace>, name: &str) -> PyResult<Self> {
        Ok(Table {
            table: trace.table(name).map_err(|error| trace_error(&error))?,
            scan: Scan::default(),
        })
    }

    fn with(&self, change: impl FnOnce(&mut Scan)) -> Self {
        let mut scan = self.scan.clone();
        change(&mut scan);
        Table {
            table: self.table.clone(),
            scan,
        }
    }

    fn is_whole(&self) -> bool {
        self.scan.filters.is_empty() && self.scan.from.is_none() && self.scan.to.is_none()
    }
}

#[pymethods]
impl Table {
    /// The name of the table.
    #[getter]
    fn name(&self) -> &'static str {
        self.table.info().name
    }

    /// What a row is.
    #[getter]
    fn doc(&self) -> &'static str {
        self.table.info().doc
    }

    /// The columns: name, type, unit and description.
    #[getter]
    fn columns(&self) -> Vec<(String, &'static str, Option<&'static str>, &'static str)> {
        let info = self.table.info();
        let all = info.columns.iter();
        let facts =
            |column: &tables::ColumnInfo| (column.name.clone(), column.kind.name(), column.unit, column.doc);
        match &self.scan.columns {
            None => all.map(facts).collect(),
            Some(names) => names
                .iter()
                .filter_map(|name| info.position(name))
                .map(|position| facts(&info.columns[position]))
                .collect(),
        }
    }

    /// The same table with these columns only.
    fn select(&self, columns: Vec<String>) -> PyResult<Self> {
        let info = self.table.info();
        if let Some(missing) = columns.iter().find(|name| info.position(name).is_none()) {
            let known: Vec<&str> = info.columns.iter().map(|column| column.name.as_str()).collect();
            return Err(UsageError::new_err(format!(
                "the table {} has no column {missing}; it has {}",
                info.name,
                known.join(", ")
            )));
        }
        Ok(self.with(|scan| scan.columns = Some(columns)))
    }

    /// The same table with the rows that reach into a time range, in nanoseconds of the trace's clock.
    fn between(&self, from: Option<u64>, to: Option<u64>) -> Self {
        self.with(|scan| {
            scan.from = from.max(scan.from);
            scan.to = match (to, scan.to) {
                (Some(new), Some(old)) => Some(new.min(old)),
                (new, old) => new.or(old),
            };
        })
    }

    /// The same table with the rows whose column meets a condition.
    fn filter(&self, column: String, condition: &str, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let info = self.table.info();
        if info.position(&column).is_none() {
            return Err(UsageError::new_err(format!(
                "the table {} has no column {column}",
                info.name
            )));
        }
        let one = || scalar(value);
        let condition = match condition {
            "is" => Condition::Is(one()?),
            "one_of" => Condition::OneOf(
                value
                    .try_iter()?
                    .map(|value| scalar(&value?))
                    .collect::<PyResult<_>>()?,
            ),
            "at_least" => Condition::AtLeast(one()?),
            "above" => Condition::Above(one()?),
            "at_most" => Condition::AtMost(one()?),
            "below" => Condition::Below(one()?),
            "like" => Condition::Like(value.extract()?),
            other => return Err(UsageError::new_err(format!("unknown condition {other}"))),
        };
        Ok(self.with(|scan| {
            scan.filters.push(tables::Filter { column, condition });
        }))
    }

    /// Reads the rows. `progress` is called with the bytes read so far.
    #[pyo3(signature = (progress=None))]
    fn read(&self, py: Python<'_>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<Batches> {
        let (table, mut scan) = (self.table.clone(), self.scan.clone());
        let read = job::run(py, progress, move |job| {
            (scan.progress, scan.cancel) = (Some(job.progress()), job.cancel.clone());
            let schema = table
                .scan(&Scan {
                    from: Some(u64::MAX),
                    ..scan.clone()
                })?
                .schema();
            Ok((schema, table.read(&scan)?))
        })?;
        let (schema, batches) = read.map_err(|error| trace_error(&error))?;
        Ok(Batches::new(&schema, batches))
    }

    /// Reads the first rows, and few blocks after them: one block at first, then twice as many each time.
    fn head(&self, py: Python<'_>, count: usize) -> PyResult<Batches> {
        let (table, mut scan) = (self.table.clone(), self.scan.clone());
        let read = job::run(py, None, move |job| {
            scan.cancel = job.cancel.clone();
            scan.first_blocks = Some(NonZeroUsize::MIN);
            let mut batches = table.scan(&scan)?;
            let schema = batches.schema();
            let (mut taken, mut left) = (Vec::new(), count);
            while left > 0 {
                let Some(batch) = batches.next() else {
                    break;
                };
                let batch = batch?;
                let rows = batch.num_rows().min(left);
                left -= rows;
                taken.push(batch.slice(0, rows));
            }
            Ok((schema, taken))
        })?;
        let (schema, batches) = read.map_err(|error: tracesmith_trace::Error| trace_error(&error))?;
        Ok(Batches::new(&schema, batches))
    }

    /// The rows as a stream of Arrow's C interface, read block by block while they are consumed.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer may ask for other types and must accept those it gets.
        let _ = requested_schema;
        let (table, scan) = (self.table.clone(), self.scan.clone());
        let batches = job::run(py, None, move |_| table.scan(&scan))?;
        let batches = batches.map_err(|error| trace_error(&error))?;
        let schema = for_python(&batches.schema());
        let texts = Tidy::default();
        capsule(
            py,
            Scanned {
                schema,
                batches,
                texts,
            },
        )
    }

    /// The schema, as Arrow's C interface has it.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let scan = Scan {
            from: Some(u64::MAX),
            ..self.scan.clone()
        };
        let batches = self.table.scan(&scan).map_err(|error| trace_error(&error))?;
        schema_capsule(py, &for_python(&batches.schema()))
    }

    /// The number of rows. A whole table knows it; else rows are counted.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        if let Some(rows) = self.table.row_limit().filter(|_| self.is_whole()) {
            return Ok(rows as usize);
        }
        let (table, scan) = (self.table.clone(), self.scan.clone());
        let scan = Scan {
            columns: Some(Vec::new()),
            ..scan
        };
        let count = job::run(py, None, move |job| {
            let scan = Scan {
                cancel: job.cancel.clone(),
                ..scan
            };
            let batches = table.scan(&scan)?;
            batches
                .map(|batch| Ok(batch?.num_rows()))
                .sum::<Result<usize, _>>()
        })?;
        count.map_err(|error: tracesmith_trace::Error| trace_error(&error))
    }
}

struct Scanned {
    schema: SchemaRef,
    batches: tables::Batches,
    texts: Tidy,
}

impl Iterator for Scanned {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batches.next()?;
        Some(match batch {
            Ok(batch) => Ok(signed_times(&self.texts.batch(&batch))),
            Err(error) => Err(ArrowError::ExternalError(Box::new(error))),
        })
    }
}

impl RecordBatchReader for Scanned {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// All tables and views: name, kind, description, and the columns of each.
#[pyfunction]
#[allow(clippy::type_complexity, reason = "a plain list for Python")]
pub(crate) fn catalog() -> Vec<(
    &'static str,
    &'static str,
    &'static str,
    Vec<(String, &'static str, Option<&'static str>, &'static str)>,
)> {
    let column =
        |column: &tables::ColumnInfo| (column.name.clone(), column.kind.name(), column.unit, column.doc);
    let table = |info: &tables::TableInfo| {
        let kind = match info.kind {
            tables::TableKind::Stored => "table",
            tables::TableKind::View => "view",
        };
        (
            info.name,
            kind,
            info.doc,
            info.columns.iter().map(column).collect(),
        )
    };
    tables::catalog().iter().map(table).collect()
}

fn scalar(value: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    if let Some(scalar) = plain(value)? {
        return Ok(scalar);
    }
    // Numbers of numpy and others.
    for conversion in ["item", "__index__", "__float__"] {
        if let Ok(converted) = value.call_method0(conversion)
            && let Some(scalar) = plain(&converted)?
        {
            return Ok(scalar);
        }
    }
    Err(UsageError::new_err(format!(
        "cannot compare a column with {}",
        value.repr()?
    )))
}

/// A value of one of Python's own types.
fn plain(value: &Bound<'_, PyAny>) -> PyResult<Option<Scalar>> {
    if value.is_instance_of::<PyBool>() {
        return Ok(Some(Scalar::Flag(value.extract()?)));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(Some(match value.extract::<u64>() {
            Ok(number) => Scalar::Unsigned(number),
            Err(_) => Scalar::Integer(value.extract()?),
        }));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Some(Scalar::Float(value.extract()?)));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(Some(Scalar::Text(value.extract()?)));
    }
    Ok(None)
}
