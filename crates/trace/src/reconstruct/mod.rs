//! What the devices and the host did, rebuilt from the rows of a trace: one subject a file.
//!
//! [`Activity`] is the base that everything else stands on: device work and calls in compact columns, joined and put in
//! order. It holds every piece of work of the trace, so its columns are as narrow as they can be.

mod activity;
mod calls;
mod class;
mod data_quality;
mod dependencies;
mod execution_graph;
mod graph_edges;
mod graphs;
mod intern;
mod joins;
mod ops;
mod order;
mod overheads;
mod predicted;
mod ranges;
mod simulation;
mod spans;
mod states;
mod steps;
mod syncs;
mod timeline;
mod timing;
mod turns;
mod unseen_edges;
mod unseen_waits;

pub use activity::{Activity, StreamIndex, StreamKey, Window};
pub use calls::{Call, CallId, Calls, HostThread};
pub use class::{CallClass, OpClass};
pub use data_quality::DataQuality;
pub use dependencies::{Dependencies, Edge, EdgeWhy, HostWait};
pub use execution_graph::{ExecutionGraph, Link, LinkKind, Node};
pub use graphs::{GraphWork, Graphs};
pub use ops::{Op, OpId, OpKind, OpTable, Ops};
pub use overheads::{Overhead, OverheadKind, Overheads};
pub use predicted::{Predicted, ThreadMoves, ThreadNodes};
pub use ranges::RangePaths;
pub use simulation::{Change, Simulated, Unchanged, Watch};
pub use states::{Interval, State, StateLine, StateTotals, States, Subject};
pub use steps::{Step, StepPart, StepSource, Steps};
pub use syncs::SyncRecord;
pub use timeline::{ClassSet, DeviceTimeline, Gap, Load, Span, StreamTimeline, Timeline};
pub use timing::Timing;

pub(crate) use activity::name_of;
pub(crate) use intern::Interner;
pub(crate) use joins::outermost;
pub(crate) use ops::{first_rows, times_on};
pub(crate) use order::sort_nearly_sorted;
pub(crate) use predicted::scaled;
pub(crate) use ranges::{for_each_marker, without_sequence};
pub(crate) use simulation::StreamLimit;
pub(crate) use spans::{HostSpans, NestedSpans};
pub(crate) use unseen_waits::launches_into_full_queues;
