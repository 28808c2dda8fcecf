//! SQL over open traces.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt};
use tracesmith_sql::{Error, Limits, Parameters, Value};

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

    /// The rows of a query. `params` are a list of values, or a dictionary of them.
    #[pyo3(signature = (sql, params, seconds))]
    fn query(
        &self,
        py: Python<'_>,
        sql: String,
        params: Option<&Bound<'_, PyAny>>,
        seconds: Option<f64>,
    ) -> PyResult<Batches> {
        let parameters = params.map(parameters_of).transpose()?;
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
            if let Some(parameters) = parameters {
                statement.bind(parameters)?;
            }
            statement.into_rows()
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

fn parameters_of(params: &Bound<'_, PyAny>) -> PyResult<Parameters> {
    if let Ok(named) = params.cast::<PyDict>() {
        let named = named
            .iter()
            .map(|(name, value)| Ok((name.extract()?, value_of(&value)?)));
        return Ok(Parameters::Named(named.collect::<PyResult<_>>()?));
    }
    let values = params.try_iter()?.map(|value| value_of(&value?));
    Ok(Parameters::Positional(values.collect::<PyResult<_>>()?))
}

/// A value as SQLite takes it. Integers of 64 bits without a sign wrap around, as those of tables do.
fn value_of(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(value) = value.extract::<bool>() {
        return Ok(Value::Integer(i64::from(value)));
    }
    if let Ok(text) = value.extract::<String>() {
        return Ok(Value::Text(text));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Value::Blob(bytes.as_bytes().to_vec()));
    }
    if let Ok(number) = value.extract::<i64>() {
        return Ok(Value::Integer(number));
    }
    if let Ok(number) = value.extract::<u64>() {
        return Ok(Value::Integer(number.cast_signed()));
    }
    // An integer that is too large must not lose digits.
    if value.cast::<PyInt>().is_err()
        && let Ok(number) = value.extract::<f64>()
    {
        if number.is_nan() {
            // SQLite makes it null, which equals nothing.
            return Err(PyValueError::new_err(
                "a parameter is nan, which SQL does not have; pass None for null",
            ));
        }
        return Ok(Value::Real(number));
    }
    Err(PyTypeError::new_err(format!(
        "a parameter is None, a bool, an integer of 64 bits, a float, a str or bytes, not {}",
        value.repr()?
    )))
}

fn of_query(error: &Error) -> PyErr {
    match error {
        Error::Query { .. } | Error::NotAllowed => UsageError::new_err(sentence(error)),
        Error::Trace(error) => trace_error(error),
        other => NativeError::new_err(sentence(other)),
    }
}
