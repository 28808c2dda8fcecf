//! The atomics of the ring, from one place.
//!
//! Under `--cfg loom` they are loom's, so that `tests/loom.rs` explores the
//! very code that ships. Everywhere else they are the processor's, laid out as
//! `docs/reference/wire.md` says: two processes of different builds share them.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc,
    atomic::{AtomicU32, AtomicU64, Ordering, fence},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Arc,
    atomic::{AtomicU32, AtomicU64, Ordering, fence},
};
