//! Answers about a trace: one subject a file, a report struct each.

mod totals;

pub use totals::{NameTotal, Total, TotalsReport};
