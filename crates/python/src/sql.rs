//! SQL over open traces.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use tracesmith_sql::{Error, Limits};

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
            database.prepare(&sql)?.into_rows()
        });
        if ran.is_err() {
            (self.stop)();
        }
        let rows = ran?.map_err(|error| of_query(&error))?;
        let (schema, batches) = rows.into_batches();
        let batches = batches
            .collect::<Result<_, _>>()
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
