//! Long work beside the interpreter.
//!
//! Work runs on a thread of its own, and the calling thread waits without the GIL. It wakes up a few times a second to let
//! Python handle signals, and to report progress. After Ctrl-C the call ends at once: a scan stops with its next block,
//! and an analysis that cannot be stopped ends in the background and its result is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tracesmith_trace::tables::Cancel;
use tracesmith_trace::{Progress, ProgressFn};

/// How long the calling thread waits before it looks for signals.
const TURN: Duration = Duration::from_millis(50);

/// What work gets from its caller.
#[derive(Clone, Default)]
pub(crate) struct Job {
    /// Set when the caller does not wait any longer.
    pub(crate) cancel: Cancel,
    bytes: Arc<AtomicU64>,
}

impl Job {
    /// A function that counts what was read.
    pub(crate) fn progress(&self) -> ProgressFn {
        let bytes = Arc::clone(&self.bytes);
        Arc::new(move |progress| {
            if let Progress::Read(read) = progress {
                bytes.fetch_add(read, Ordering::Relaxed);
            }
        })
    }
}

/// Runs work and waits for it. `progress` is called with the bytes read so far.
pub(crate) fn run<T, E, F>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: F,
) -> PyResult<Result<T, E>>
where
    T: Send + 'static,
    E: Send + 'static,
    F: FnOnce(&Job) -> Result<T, E> + Send + 'static,
{
    let job = Job::default();
    let (done, result) = channel();
    let of_thread = job.clone();
    let thread = std::thread::Builder::new().name("tracesmith".to_owned());
    thread.spawn(move || {
        // Nobody waits for the result after Ctrl-C.
        let _ = done.send(work(&of_thread));
    })?;
    let result = std::sync::Mutex::new(result);
    loop {
        let waited = py.detach(|| {
            let result = result.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            result.recv_timeout(TURN)
        });
        let ended = match waited {
            Ok(result) => Some(Ok(result)),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(PyRuntimeError::new_err(
                "TraceSmith failed; this is a bug: the message is above",
            ))),
        };
        let told = match (progress, &ended) {
            (Some(progress), None) => progress.call1((job.bytes.load(Ordering::Relaxed),)).map(drop),
            _ => Ok(()),
        };
        if let Err(stopped) = py.check_signals().and(told) {
            job.cancel.cancel();
            return Err(stopped);
        }
        if let Some(ended) = ended {
            return ended;
        }
    }
}
