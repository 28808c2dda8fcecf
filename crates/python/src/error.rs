//! Errors of Rust as exceptions of Python, with the sentences that the command prints.

use std::error::Error;

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyFileNotFoundError, PyIsADirectoryError, PyPermissionError};
use pyo3::prelude::*;
use pyo3::types::PyType;

create_exception!(
    tracesmith._native,
    NativeError,
    PyException,
    "A file that cannot be read, or a result that cannot be computed. The package raises it as `TraceError`."
);
create_exception!(
    tracesmith._native,
    UsageError,
    PyException,
    "An argument that does not fit the trace. The package raises it as `ValueError`."
);

/// An error and its causes in one line, as the command prints them.
pub(crate) fn sentence(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        let next = source.to_string();
        if !text.ends_with(&next) {
            text = format!("{text}: {next}");
        }
        cause = source.source();
    }
    text
}

/// `TraceError` of the package, for methods that programs call directly.
pub(crate) fn package_error(message: String) -> PyErr {
    Python::attach(|py| {
        let class = py
            .import("tracesmith._errors")
            .and_then(|module| module.getattr("TraceError"))
            .and_then(|class| Ok(class.cast_into::<PyType>()?));
        match class {
            Ok(class) => PyErr::from_type(class, message),
            Err(_) => NativeError::new_err(message),
        }
    })
}

/// The exception for an error of a trace.
pub(crate) fn trace_error(error: &tracesmith_trace::Error) -> PyErr {
    use tracesmith_trace::Error as E;
    match error {
        E::NoSuchStep { .. }
        | E::NotInTrace { .. }
        | E::SelectionTooNarrow { .. }
        | E::NotByStream { .. }
        | E::NoSuchRow { .. }
        | E::EmptyRange { .. }
        | E::NoSuchTable { .. }
        | E::NoSuchColumn { .. }
        | E::Regex { .. }
        | E::Glob { .. }
        | E::NothingToMerge => UsageError::new_err(sentence(error)),
        other => NativeError::new_err(sentence(other)),
    }
}

/// The exception for an error of opening a file. What the operating system says keeps its own type.
pub(crate) fn open_error(error: &(dyn Error + 'static), path: &str) -> PyErr {
    let message = format!("reading trace {path}: {}", sentence(error));
    let mut cause = Some(error);
    while let Some(source) = cause {
        if let Some(io) = source.downcast_ref::<std::io::Error>() {
            return match io.kind() {
                std::io::ErrorKind::NotFound => PyFileNotFoundError::new_err(message),
                std::io::ErrorKind::PermissionDenied => PyPermissionError::new_err(message),
                std::io::ErrorKind::IsADirectory => PyIsADirectoryError::new_err(message),
                _ => NativeError::new_err(message),
            };
        }
        cause = source.source();
    }
    NativeError::new_err(message)
}
