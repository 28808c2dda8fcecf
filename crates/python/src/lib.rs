//! `tracesmith._native`: what the Python package needs of Rust.
//!
//! Users never see this module. `python/tracesmith` is the interface: typed, documented, in plain Python. This module opens
//! traces, hands their tables over as Arrow streams without a copy, runs SQL and analyses, records events of the
//! program (`session`), arms the process and marks ranges.
//!
//! Every call that reads a trace releases the GIL, reports progress, and ends on Ctrl-C (`job`).

mod analysis;
mod arm;
mod column;
mod error;
mod export;
mod job;
mod nvtx;
mod position;
mod replacement;
mod session;
mod sql;
mod stream;
mod table;
mod texts;
mod trace;

#[pyo3::pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::analysis::{Analysis, diff};
    #[pymodule_export]
    use super::arm::{arm, capture_range};
    #[pymodule_export]
    use super::error::{NativeError, UsageError};
    #[pymodule_export]
    use super::export::{copy, export};
    #[pymodule_export]
    use super::nvtx::{Range, mark, range_end};
    #[pymodule_export]
    use super::position::locate;
    #[pymodule_export]
    use super::session::{Session, SessionRange, forked, monotonic_ns};
    #[pymodule_export]
    use super::sql::Database;
    #[pymodule_export]
    use super::stream::Batches;
    #[pymodule_export]
    use super::table::{Table, catalog};
    #[pymodule_export]
    use super::trace::Trace;

    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
