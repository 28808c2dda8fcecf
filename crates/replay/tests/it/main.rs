//! Each refusal, each verdict and each mode of a replay.
//!
//! Recordings are built in memory ([`support::window`]) and run in process through the crate's public API, against the
//! driver that is made for tests. What goes through the command is tested in `crates/cli/tests/replay*.rs`.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(unreachable_pub, reason = "nobody uses a test from outside")]

mod code;
mod corpus;
mod determinism;
mod extraction;
mod faults;
mod graphs;
mod memory;
mod offline;
mod orders;
mod parts;
mod refusals;
mod replaced;
mod support;
mod verdicts;
