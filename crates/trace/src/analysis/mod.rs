//! Answers about a trace: one subject a file, a report struct each.

mod forward;
mod totals;

pub use forward::{Forward, ForwardReport};
pub use totals::{NameTotal, Total, TotalsReport};
