//! Live sessions: events that a Python program emits itself, recorded as rows of a trace.
//!
//! Each thread has a buffer (`buffer`). A thread of the recorder (`recorder`) writes the file (`file`) and never needs
//! the GIL. A forked child gets a recorder and a file of its own, and the files of all processes become one at the end
//! ([`parts`]).

mod buffer;
mod clock;
mod columns;
mod file;
mod names;
mod parts;
mod recorder;
mod row;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use tempfile::TempDir;
use tracesmith_format::tables::*;
use tracesmith_format::{StringId, Timestamp};

use crate::error::{NativeError, UsageError, package_error};
use crate::job;
use buffer::ThreadBuffer;
use columns::NoRows;
use parts::{Claimed, Role, claim, claim_part};
use recorder::{Limits, Recorder, WhenFull};
use row::{PROCESS, Recorded, Row};

/// How many forks lie between the first process of the program and this one.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// A session can be used in children of children, this deep.
const GENERATIONS: usize = 16;

/// A forked child calls this before anything else.
#[pyfunction]
pub(crate) fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The time on the clock of sessions, in nanoseconds.
#[pyfunction]
pub(crate) fn monotonic_ns() -> u64 {
    clock::now()
}

/// Records events of this program.
#[pyclass(frozen, module = "tracesmith._native")]
pub(crate) struct Session {
    path: PathBuf,
    limits: Limits,
    with_counters: bool,
    /// The generation of the process that made this object.
    home: usize,
    /// The recorder of each generation since then. A child never touches its parent's: threads that are not there may have
    /// held its locks at the fork.
    recorders: [OnceLock<Result<Started, String>>; GENERATIONS],
    /// The folder of a session without a path.
    folder: Mutex<Option<TempDir>>,
}

/// A recorder, and the file that it writes.
struct Started {
    recorder: Arc<Recorder>,
    lock: File,
    /// Whether the file was completed and merged.
    is_merged: Mutex<bool>,
}

#[pymethods]
impl Session {
    /// Starts a session. `join`: another process began it. `overwrite`: a file that exists is replaced.
    #[new]
    #[allow(clippy::too_many_arguments, reason = "called only by the package")]
    fn new(
        py: Python<'_>,
        path: Option<PathBuf>,
        max_bytes: usize,
        counters: bool,
        wait: bool,
        join: bool,
        overwrite: bool,
    ) -> PyResult<Self> {
        let limits = Limits {
            bytes: max_bytes,
            when_full: if wait { WhenFull::Wait } else { WhenFull::Drop },
        };
        let (path, folder) = match path {
            Some(path) => (path, None),
            None => {
                let folder = tempfile::Builder::new().prefix("tracesmith-session-").tempdir()?;
                (folder.path().join("session.sbt"), Some(folder))
            }
        };
        let claimed = py.detach(|| {
            if join {
                claim_part(&path)
            } else {
                claim(&path, overwrite)
            }
        });
        let claimed = claimed.map_err(|error| os_error(&error, &path))?;
        let session = Session {
            limits,
            with_counters: counters,
            home: FORKS.load(Ordering::Relaxed),
            recorders: std::array::from_fn(|_| OnceLock::new()),
            folder: Mutex::new(folder),
            path,
        };
        let started = py
            .detach(|| session.start(claimed))
            .map_err(NativeError::new_err)?;
        let _ = session.recorders[0].set(Ok(started));
        Ok(session)
    }

    /// The file of the session.
    #[getter]
    fn path(&self) -> &Path {
        &self.path
    }

    /// The file that this process writes.
    #[getter]
    fn own_path(&self) -> PyResult<PathBuf> {
        Ok(self.started()?.recorder.path().to_owned())
    }

    /// Whether this process has a file yet.
    #[getter]
    fn has_started(&self) -> bool {
        self.slot().is_some_and(|slot| slot.get().is_some())
    }

    /// Whether this process has stopped recording.
    #[getter]
    fn is_stopped(&self) -> PyResult<bool> {
        Ok(self.started()?.recorder.is_stopped())
    }

    /// Records a moment.
    #[pyo3(signature = (name, /))]
    fn mark(&self, py: Python<'_>, name: &Bound<'_, PyString>) -> PyResult<bool> {
        let recorder = &self.started()?.recorder;
        let now = Timestamp(clock::now());
        let text = name.to_str()?;
        let buffer = recorder.buffer();
        let Some(name) = recorder.name(&buffer, text) else {
            recorder.drop_event(&buffer);
            return Ok(false);
        };
        Ok(push(
            py,
            recorder,
            &buffer,
            marker(&buffer, name, now, now, MarkerKind::INSTANT, 0),
        ))
    }

    /// Records a value of a counter.
    #[pyo3(signature = (name, value, unit=None))]
    fn counter(
        &self,
        py: Python<'_>,
        name: &Bound<'_, PyString>,
        value: f64,
        unit: Option<&Bound<'_, PyString>>,
    ) -> PyResult<bool> {
        let recorder = &self.started()?.recorder;
        let buffer = recorder.buffer();
        if !self.with_counters {
            buffer.lock().counters_off += 1;
            return Ok(false);
        }
        let now = Timestamp(clock::now());
        let unit = match unit {
            Some(unit) => recorder.name(&buffer, unit.to_str()?),
            None => Some(StringId::NONE),
        };
        let (Some(name), Some(unit)) = (recorder.name(&buffer, name.to_str()?), unit) else {
            recorder.drop_event(&buffer);
            return Ok(false);
        };
        let track = CounterTrack {
            name,
            unit,
            process: PROCESS,
            ..CounterTrack::default()
        };
        let row = Row::Counter(Counter {
            time: now,
            value,
            track,
        });
        Ok(push(py, recorder, &buffer, row))
    }

    /// Begins a range of the calling thread.
    fn enter(&self, name: &Bound<'_, PyString>) -> PyResult<u64> {
        let recorder = &self.started()?.recorder;
        let text = name.to_str()?;
        let buffer = recorder.buffer();
        let Some(name) = recorder.name(&buffer, text) else {
            recorder.drop_event(&buffer);
            return Ok(0);
        };
        let range = buffer.lock().enter(name, Timestamp(clock::now()));
        Ok(range)
    }

    /// Ends a range of the calling thread.
    fn leave(&self, py: Python<'_>, range: u64) -> PyResult<bool> {
        let now = Timestamp(clock::now());
        let recorder = &self.started()?.recorder;
        let buffer = recorder.buffer();
        let Some((name, start)) = buffer.lock().leave(range) else {
            return Ok(false);
        };
        let row = marker(&buffer, name, start, now, MarkerKind::NESTED_RANGE, range);
        Ok(push(py, recorder, &buffer, row))
    }

    /// A range as a context.
    fn range(slf: Py<Self>, name: Py<PyString>) -> SessionRange {
        SessionRange {
            session: slf,
            name,
            entered: Mutex::new(Vec::new()),
        }
    }

    /// Adds rows of a table, given by columns. Returns how many were taken.
    fn push(&self, py: Python<'_>, table: &str, columns: &Bound<'_, PyDict>) -> PyResult<usize> {
        match table {
            "markers" => self.push_rows::<Marker>(py, table, columns),
            "counters" => self.push_rows::<Counter>(py, table, columns),
            "flows" => self.push_rows::<Flow>(py, table, columns),
            "kernels" => self.push_rows::<Kernel>(py, table, columns),
            "copies" => self.push_rows::<MemoryCopy>(py, table, columns),
            "sets" => self.push_rows::<MemorySet>(py, table, columns),
            "syncs" => self.push_rows::<Synchronization>(py, table, columns),
            "allocations" => self.push_rows::<Allocation>(py, table, columns),
            "api_calls" => self.push_rows::<ApiCall>(py, table, columns),
            "host_calls" => self.push_rows::<HostCall>(py, table, columns),
            "collectives" => self.push_rows::<Collective>(py, table, columns),
            other => Err(UsageError::new_err(format!(
                "events cannot be emitted into the table {other}; there are markers, counters, flows, kernels, copies, \
                 sets, syncs, allocations, api_calls, host_calls and collectives"
            ))),
        }
    }

    /// States a fact about the recording.
    fn metadata(&self, key: String, value: String) -> PyResult<bool> {
        Ok(self.started()?.recorder.metadata(key, value))
    }

    /// Writes everything so far into the file.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let recorder = Arc::clone(&self.started()?.recorder);
        job::run(py, None, move |_| recorder.flush())?.map_err(|error| self.write_error(&error))
    }

    /// Completes the file of this process, and merges the parts of other processes that have ended.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let started = self.started()?;
        py.detach(|| started.stop(&self.path))
            .map_err(|error| self.write_error(&error))
    }

    /// Events emitted and dropped, counters that were turned off, and when the session started and stopped.
    fn statistics(&self) -> PyResult<(u64, u64, u64, u64, Option<u64>)> {
        let of = self.started()?.recorder.statistics();
        Ok((of.emitted, of.dropped, of.counters_off, of.started, of.stopped))
    }
}

impl Session {
    fn slot(&self) -> Option<&OnceLock<Result<Started, String>>> {
        self.recorders.get(FORKS.load(Ordering::Relaxed) - self.home)
    }

    /// What this process records with. In a forked child, the first call starts it.
    #[inline]
    fn started(&self) -> PyResult<&Started> {
        let slot = self.slot().ok_or_else(|| {
            package_error(format!(
                "a session cannot be used after {GENERATIONS} forks in a row"
            ))
        })?;
        let started = slot.get_or_init(|| {
            let claimed = claim_part(&self.path);
            self.start(claimed.map_err(|error| format!("cannot create a part: {error}"))?)
        });
        started.as_ref().map_err(|error| self.write_error(error))
    }

    fn start(&self, claimed: Claimed) -> Result<Started, String> {
        let Claimed {
            path,
            lock,
            file,
            role,
        } = claimed;
        let started = Recorder::start(&path, file, self.limits);
        if started.is_err() && role == Role::Part {
            // An empty part says nothing.
            let _ = std::fs::remove_file(&path);
        }
        let recorder = started
            .map_err(|error| format!("writing {}: {}", path.display(), crate::error::sentence(&error)))?;
        Ok(Started {
            recorder,
            lock,
            is_merged: Mutex::new(false),
        })
    }

    fn write_error(&self, message: &str) -> PyErr {
        package_error(format!("recording session {}: {message}", self.path.display()))
    }

    fn push_rows<R: Recorded>(
        &self,
        py: Python<'_>,
        table: &str,
        columns: &Bound<'_, PyDict>,
    ) -> PyResult<usize> {
        let recorder = &self.started()?.recorder;
        let buffer = recorder.buffer();
        let now = Timestamp(clock::now());
        let intern = |text: &str| recorder.name(&buffer, text);
        let rows = match columns::rows::<R>(table, columns, now, buffer.thread, &intern) {
            Ok(rows) => rows,
            Err(NoRows::Wrong(error)) => return Err(error),
            Err(NoRows::Full(count)) => {
                (0..count).for_each(|_| recorder.drop_event(&buffer));
                return Ok(0);
            }
        };
        let taken = rows.into_iter().filter_map(|row| {
            if matches!(row, Row::Counter(_)) && !self.with_counters {
                buffer.lock().counters_off += 1;
                return None;
            }
            push(py, recorder, &buffer, row).then_some(())
        });
        Ok(taken.count())
    }
}

impl Started {
    fn stop(&self, path: &Path) -> Result<(), String> {
        self.recorder.stop()?;
        let mut is_merged = self.is_merged.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_merged {
            return Ok(());
        }
        *is_merged = true;
        // Children may hold the same open file: closing it here would leave the lock to them.
        let _ = self.lock.unlock();
        parts::merge_ended(path)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let here = FORKS.load(Ordering::Relaxed) - self.home;
        for (generation, slot) in self.recorders.iter_mut().enumerate() {
            match slot.take() {
                // Nobody is left who could get the error; a program that wants it calls `stop`.
                Some(Ok(started)) if generation == here => drop(started.stop(&self.path)),
                // The parent's: its threads are not here, and its locks may be held for ever.
                Some(started) => std::mem::forget(started),
                None => {}
            }
        }
        let folder = self
            .folder
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(folder) = folder
            && here > 0
        {
            // The parent still uses it.
            let _ = folder.keep();
        }
    }
}

/// A range of a session: `with` enters and leaves it.
#[pyclass(frozen, module = "tracesmith._native")]
pub(crate) struct SessionRange {
    session: Py<Session>,
    name: Py<PyString>,
    /// The same object may be entered again before it is left.
    entered: Mutex<Vec<u64>>,
}

#[pymethods]
impl SessionRange {
    fn __enter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        let this = slf.get();
        let range = this.session.get().enter(this.name.bind(py))?;
        this.entered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(range);
        Ok(slf)
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        let range = self.entered.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(range) = range {
            self.session.get().leave(py, range)?;
        }
        Ok(())
    }
}

fn marker(
    buffer: &ThreadBuffer,
    name: StringId,
    start: Timestamp,
    end: Timestamp,
    kind: MarkerKind,
    range: u64,
) -> Row {
    Row::Marker(Marker {
        start,
        end,
        range,
        caller: Caller {
            process: PROCESS,
            thread: buffer.thread,
        },
        shape: MarkerShape {
            name,
            kind,
            ..MarkerShape::default()
        },
        ..Marker::default()
    })
}

#[inline]
fn push(py: Python<'_>, recorder: &Recorder, buffer: &ThreadBuffer, row: Row) -> bool {
    let (is_taken, must_wait) = recorder.push(buffer, row);
    if must_wait {
        py.detach(|| recorder.wait());
    }
    is_taken
}

/// The exception of the operating system's error. Its number decides the class, as Python's own files have it.
fn os_error(error: &io::Error, path: &Path) -> PyErr {
    match error.raw_os_error() {
        Some(number) => {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or_default().to_owned();
            PyOSError::new_err((number, text, path.display().to_string()))
        }
        None => PyErr::from(io::Error::new(
            error.kind(),
            format!("{}: {error}", path.display()),
        )),
    }
}
