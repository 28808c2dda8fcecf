//! Answers about a trace: one subject a file, a report struct each.

mod copies;
mod distribution;
mod forward;
mod idle;
mod kernels;
mod launches;
mod short_name;
mod source_line;
mod steps;
mod summary;
mod totals;
mod utilization;

pub use copies::{CopiesReport, CopyRow};
pub use distribution::{Distribution, mean_and_deviation};
pub use forward::{Forward, ForwardReport};
pub use idle::{CauseTotal, DeviceIdle, IdleCause, IdleReport, LongGap};
pub use kernels::{KernelKey, KernelRow, KernelsReport};
pub use launches::{LaunchBound, LaunchesReport, Queue, QueuePoint, ShortKernels};
pub use short_name::short_name;
pub use source_line::source_line;
pub use steps::{StepDevice, StepRow, StepsReport};
pub use summary::{Analysis, SummaryReport};
pub use totals::{NameTotal, Total, TotalsReport};
pub use utilization::{Breakdown, DeviceUtilization, StreamUtilization, UtilizationReport, device_name};
