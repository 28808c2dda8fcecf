//! The tables of a trace: one catalog, one way to read them.
//!
//! A [`Table`] is a stored table or a view. [`Table::scan`] returns its rows as Arrow record batches, one for each block:
//! only the columns, the blocks and the rows that a [`Scan`] selects are read, on all cores. Times are on the trace's
//! timeline and texts are dictionaries, which all batches of a trace share.
//!
//! ```
//! # use tracesmith_format::{ClockId, Timestamp, Writer, WriterOptions};
//! # use tracesmith_format::tables::{Kernel, KernelShape};
//! use std::sync::Arc;
//! use tracesmith_trace::Trace;
//! use tracesmith_trace::tables::{Condition, Scan};
//!
//! # let mut writer = Writer::new(Vec::new(), WriterOptions::default())?;
//! # let shape = KernelShape { name: writer.string("saxpy")?, ..KernelShape::default() };
//! # writer.push(ClockId(1), &Kernel { start: Timestamp(10), end: Timestamp(25), shape, ..Kernel::default() })?;
//! let trace = Arc::new(Trace::from_bytes(writer.finish()?)?);
//! let scan = Scan::columns(["name", "duration"]).with("name", Condition::Is("saxpy".into()));
//! for batch in trace.table("kernels")?.scan(&scan)? {
//!     assert_eq!(batch?.num_rows(), 1);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod array;
mod catalog;
mod derived;
mod filter;
mod scan;
mod stored;
mod views;

pub(crate) use array::Texts;
pub use array::is_optional;
pub use catalog::{ColumnInfo, ColumnKind, StoredColumn, TableInfo, TableKind, catalog, columns_of, has_ids};
pub use filter::{Condition, Filter, Scalar};
pub use scan::{Batches, Cancel, Scan, Table};
pub(crate) use views::KnownViews;
