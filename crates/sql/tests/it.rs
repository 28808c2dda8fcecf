//! Queries over traces. One program for all files of this folder, so that it is linked once.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

mod doc;
mod queries;
