//! SQL over open traces.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use tracesmith_interop::export::{RowCell, RowKind, RowTable};
use tracesmith_sql::{Error, Limits, Type, ValueRef};

use crate::error::{NativeError, UsageError, sentence, trace_error};
use crate::job;
use crate::stream::Batches;
use crate::trace::Trace;

/// Traces that can be queried.
#[pyclass(frozen, module = "tracesmith._native")]
pub(crate) struct Database {
    /// One query runs at a time: SQLite's connection is not for several threads.
    database: Arc<Mutex<tracesmith_sql::Database>>,
    stop: Arc<dyn Fn() + Send + Sync>,
}

#[pymethods]
impl Database {
    /// Opens traces under their names.
    #[new]
    fn new(traces: Vec<(String, Py<Trace>)>) -> PyResult<Self> {
        let traces = traces
            .into_iter()
            .map(|(name, trace)| (name, Arc::clone(&trace.get().trace)));
        let database = tracesmith_sql::Database::new(traces.collect(), Limits::default())
            .map_err(|error| of_query(&error))?;
        Ok(Database {
            stop: Arc::new(database.interrupter()),
            database: Arc::new(Mutex::new(database)),
        })
    }

    /// The rows of a query.
    fn query(&self, py: Python<'_>, sql: String, seconds: Option<f64>) -> PyResult<Batches> {
        let limit = match seconds {
            None => None,
            Some(seconds) => Some(
                Duration::try_from_secs_f64(seconds)
                    .map_err(|_| UsageError::new_err(format!("{seconds} is not a number of seconds")))?,
            ),
        };
        let database = Arc::clone(&self.database);
        let ran = job::run(py, None, move |_| {
            let mut database = database.lock().unwrap_or_else(PoisonError::into_inner);
            database.set_time_limit(limit);
            let mut statement = database.prepare(&sql)?;
            let names = statement.columns.iter().cloned();
            let kinds = statement.declared.iter().map(|declared| kind_of(*declared));
            let mut rows = RowTable::new(names.zip(kinds));
            statement.for_each(|row| {
                rows.push(row.iter().map(|value| cell_of(*value)));
                true
            })?;
            Ok(rows)
        });
        if ran.is_err() {
            (self.stop)();
        }
        let rows = ran?.map_err(|error| of_query(&error))?;
        let (schema, batches) = rows
            .into_batches()
            .map_err(|error| NativeError::new_err(sentence(&error)))?;
        Ok(Batches::new(&schema, batches))
    }
}

fn of_query(error: &Error) -> PyErr {
    match error {
        Error::Query { .. } | Error::NotAllowed => UsageError::new_err(sentence(error)),
        Error::Trace(error) => trace_error(error),
        other => NativeError::new_err(sentence(other)),
    }
}

/// The type of a column without values.
fn kind_of(declared: Option<Type>) -> RowKind {
    match declared {
        Some(Type::Integer) => RowKind::Integer,
        Some(Type::Real) => RowKind::Real,
        Some(Type::Blob) => RowKind::Bytes,
        Some(Type::Text | Type::Null) | None => RowKind::Text,
    }
}

fn cell_of(value: ValueRef<'_>) -> RowCell<'_> {
    match value {
        ValueRef::Null => RowCell::Null,
        ValueRef::Integer(number) => RowCell::Integer(number),
        ValueRef::Real(number) => RowCell::Real(number),
        // SQLite does not check that texts are UTF-8.
        ValueRef::Text(text) => std::str::from_utf8(text).map_or(RowCell::Bytes(text), RowCell::Text),
        ValueRef::Blob(bytes) => RowCell::Bytes(bytes),
    }
}
