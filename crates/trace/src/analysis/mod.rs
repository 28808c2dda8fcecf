//! Analyses of a trace. Each has a file with a report struct, and a line in the [list](ANALYZERS).

mod cache;
mod copies;
mod cpu_ahead;
mod critical_path;
mod diff;
mod distribution;
mod findings;
mod forward;
mod host_activity;
mod host_places;
mod idle;
mod kernels;
mod launches;
mod memory;
mod registry;
mod short_name;
mod significance;
mod similar;
mod slack;
mod source_line;
mod steps;
mod summary;
mod totals;
mod unmatched;
mod utilization;
mod what_if;

pub(crate) use cache::KnownParts;
pub use copies::{CopiesReport, CopyRow, Peak};
pub use critical_path::{CriticalPathReport, PathAndHost, PathPart, PathTotal, Segment, Segments, SlackRow};
pub use diff::{
    Compared, CopyDiff, DiffKey, DiffReport, DiffUnit, Fate, IdleDiff, KernelDiff, MemoryDiff, RunDiff,
};
pub use distribution::{Distribution, mean_and_deviation};
pub use findings::{Evidence, Finding, FindingsReport};
pub use forward::{Forward, ForwardReport};
pub use host_activity::{HostActivityReport, HostRow, HostTime};
pub use idle::{CauseTotal, DeviceIdle, IdleCause, IdleReport, LongGap, StreamIdle, main_cause};
pub use kernels::{KernelKey, KernelRow, KernelsReport};
pub use launches::{LaunchBound, LaunchesReport, Queue, QueuePoint, ShortKernels};
pub use memory::{BadFree, Churn, Holder, MemoryPoint, MemoryPool, MemoryReport};
pub use registry::{ANALYZERS, AnalysisOptions, Analyzer, Answer, Need, Rows};
pub use short_name::{short_name, with_one_spelling, without_parameters};
pub use significance::p_value;
pub use slack::{OpSlack, SlackReport};
pub use source_line::source_line;
pub use steps::{StepDevice, StepRow, StepsReport};
pub use summary::{Analysis, SummaryReport, Swept};
pub use totals::{NameTotal, Total, TotalsReport};
pub use unmatched::{PatternTarget, UnmatchedPattern};
pub use utilization::{
    Breakdown, DeviceUtilization, LoadPoint, StreamUtilization, UtilizationReport, device_name,
};
pub use what_if::{
    HostWaits, MedianStep, PredictedPath, PredictedStep, Scale, StreamCount, WhatIf, WhatIfReport,
};
