//! Traces as a program wants them: opened lazily, typed, with names resolved and times on one line. `tracesmith-interop`
//! opens files of other tools.
//!
//! This crate is pure: no GPU, no unsafe code, no printing. It reads what `tracesmith-format` stores and gives it to the
//! command line and whatever else shows traces.
//!
//! ```
//! use tracesmith_format::{ClockId, Timestamp, Writer, WriterOptions};
//! use tracesmith_format::tables::{Kernel, KernelShape};
//! use tracesmith_trace::{Query, Trace};
//!
//! let mut writer = Writer::new(Vec::new(), WriterOptions::default())?;
//! let name = writer.string("saxpy")?;
//! let shape = KernelShape { name, ..KernelShape::default() };
//! writer.push(ClockId(1), &Kernel { start: Timestamp(10), end: Timestamp(25), shape, ..Kernel::default() })?;
//!
//! let trace = Trace::from_bytes(writer.finish()?)?;
//! assert_eq!(trace.kernels.rows(), 1);
//! let event = trace.events(&Query::default()).next().unwrap();
//! assert_eq!((trace.event_name(&event), event.duration()), ("saxpy", 15));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod analysis;
mod error;
mod event_stacks;
pub mod grid;
mod model;
mod name_pattern;
pub mod overview;
mod query;
pub mod reconstruct;
mod repair;
mod rewrite;
mod selection;
pub mod tables;
mod time_arg;
pub mod units;
mod wanted;

pub use error::Error;
pub use event_stacks::{EventStack, EventStacks, SourceFrame, SourceStack};
pub use model::clocks::{ClockMap, ClockTime};
pub use model::event::{Event, EventColumns, EventKind, EventName};
pub use model::health::{HealthItem, HealthReport};
pub use model::native::AnySource;
pub use model::stacks::{FrameView, StackNode, StackView};
pub use model::strings::Strings;
pub use model::table::TableView;
pub use model::trace::Trace;
pub use name_pattern::NamePattern;
pub use query::{Found, Progress, ProgressFn, Query, QueryRun, SortKey};
pub use repair::{RepairReport, repair};
pub use rewrite::{
    FrameToName, HostLink, HostPlacement, LeftOutReason, NameFn, NamedFunction, RecordingLeftOut,
    RewriteReport, TimeRange, cut, merge, symbolize,
};
pub use selection::{Selected, Selection, WorkPlace};
pub use time_arg::{TimeArg, time_range};
pub use wanted::Wanted;
