//! Traces at the public API. One program for all files of this folder, so that it is linked once.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

mod analysis_assumed;
mod analysis_causes;
mod analysis_diff;
mod analysis_findings;
mod analysis_host;
mod analysis_hta;
mod analysis_links;
mod analysis_ownership;
mod analysis_paths;
mod analysis_steps;
mod analysis_timeline;
mod analysis_waits;
mod counters;
mod forward;
mod grid;
mod grid_cases;
#[path = "support/made.rs"]
mod made;
mod model;
mod overview;
mod predicted;
mod selections;
mod tables;
