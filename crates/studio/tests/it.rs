//! The server, asked as a browser asks it, and as others would. One program for all files of this folder.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

mod answers;
mod changes;
mod files;
mod limits;
mod live;
mod notes;
mod pictures;
mod predictions;
mod recorder;
mod replay;
mod security;
#[cfg(feature = "sqlite")]
mod sql;
mod support;
