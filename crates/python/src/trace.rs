//! An open trace.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tracesmith_trace::tables::catalog;
use tracesmith_trace::{HostLink, TimeArg, merge, time_range};

use crate::error::{NativeError, UsageError, open_error, sentence, trace_error};
use crate::job;
use crate::table::Table;

/// A trace file of any format.
#[pyclass(frozen, module = "tracesmith._native")]
pub(crate) struct Trace {
    pub(crate) trace: Arc<tracesmith_trace::Trace>,
    /// Whether every block was read once.
    is_checked: AtomicBool,
}

impl From<tracesmith_trace::Trace> for Trace {
    fn from(trace: tracesmith_trace::Trace) -> Self {
        Trace {
            trace: Arc::new(trace),
            is_checked: AtomicBool::new(false),
        }
    }
}

#[pymethods]
impl Trace {
    /// Opens a file.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let shown = path.display().to_string();
        let trace = job::run(py, None, move |_| tracesmith_interop::open(&path))?;
        let trace = trace.map_err(|error| open_error(&error, &shown))?;
        Ok(trace.into())
    }

    /// Opens a file that is in memory.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: Vec<u8>) -> PyResult<Self> {
        let trace = job::run(py, None, move |_| tracesmith_interop::open_bytes(bytes))?;
        let trace = trace.map_err(|error| open_error(&error, "from memory"))?;
        Ok(trace.into())
    }

    /// Opens several files as one trace, such as the ranks of a job.
    #[staticmethod]
    fn open_merged(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Self> {
        let trace = job::run(py, None, move |_| merged(&paths))??;
        Ok(trace.into())
    }

    /// The table or view of this name.
    fn table(&self, name: &str) -> PyResult<Table> {
        Table::of(&self.trace, name)
    }

    /// The first and last moment of the trace.
    #[getter]
    fn span(&self) -> Option<(u64, u64)> {
        self.trace.span().map(|(first, last)| (first.0, last.0))
    }

    /// The size of the file, or of what it was converted to.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.trace.file_bytes()
    }

    /// The rows of each stored table that has some.
    #[getter]
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let rows = PyDict::new(py);
        for info in catalog() {
            let table = self.trace.table(info.name).map_err(|error| trace_error(&error))?;
            if let Some(count) = table.row_limit().filter(|count| *count > 0) {
                rows.set_item(info.name, count)?;
            }
        }
        Ok(rows)
    }

    /// What was lost or is doubtful, as JSON.
    fn health(&self) -> PyResult<String> {
        let health = self.trace.health();
        let mut answer = json(&health)?;
        answer["good"] = serde_json::Value::Bool(health.is_good());
        answer["checked"] = serde_json::Value::Bool(self.is_checked.load(Ordering::Acquire));
        Ok(answer.to_string())
    }

    /// Reads every block once, so that its damage is in `health`. `progress` is called with the bytes read so far.
    #[pyo3(signature = (progress=None))]
    fn verify(&self, py: Python<'_>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let trace = Arc::clone(&self.trace);
        let verified = job::run(py, progress, move |job| {
            trace.verify(&job.progress(), &job.cancel)
        })?;
        verified.map_err(|error| trace_error(&error))?;
        self.is_checked.store(true, Ordering::Release);
        Ok(())
    }

    /// Two times of this trace, as users write them, in nanoseconds of its clock.
    fn time_range(&self, start: Option<&str>, end: Option<&str>) -> PyResult<(Option<u64>, Option<u64>)> {
        let time = |text: Option<&str>| -> PyResult<Option<TimeArg>> {
            text.map(|text| text.parse().map_err(UsageError::new_err))
                .transpose()
        };
        let range =
            time_range(time(start)?, time(end)?, self.trace.span()).map_err(|error| trace_error(&error))?;
        Ok((range.from.map(|time| time.0), range.to.map(|time| time.0)))
    }
}

/// A report as a JSON value.
pub(crate) fn json(report: &impl serde::Serialize) -> PyResult<serde_json::Value> {
    serde_json::to_value(report).map_err(|error| NativeError::new_err(sentence(&error)))
}

/// Merges files into a temporary one, which goes away when the trace is closed.
fn merged(paths: &[PathBuf]) -> PyResult<tracesmith_trace::Trace> {
    let traces = paths
        .iter()
        .map(|path| {
            tracesmith_interop::open(path).map_err(|error| open_error(&error, &path.display().to_string()))
        })
        .collect::<PyResult<Vec<_>>>()?;
    let failed =
        |error: &dyn std::error::Error| NativeError::new_err(format!("merging traces: {}", sentence(error)));
    let folder = tempfile::tempdir().map_err(|error| failed(&error))?;
    let path = folder.path().join("merged.sbt");
    let file = std::fs::File::create(&path).map_err(|error| failed(&error))?;
    let mut writer = tracesmith_format::Writer::new(std::io::BufWriter::new(file), Default::default())
        .map_err(|error| failed(&error))?;
    merge(&traces, HostLink::Utc, &mut writer, &mut |_| {}).map_err(|error| trace_error(&error))?;
    writer.finish().map_err(|error| failed(&error))?;
    // The file stays readable through its open handle after the folder is removed.
    tracesmith_trace::Trace::open(&path).map_err(|error| failed(&error))
}
