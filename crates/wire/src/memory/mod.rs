//! The memory under a ring: a header and a data area that two sides share.
//!
//! Two forms with one interface. `native` is what ships: a mapping of a
//! memfd, or plain heap for a ring within one process (and for Miri). `model`
//! takes its place under loom and reports any two accesses that race.
//!
//! Neither hands out a reference into the data area: bytes are copied in and
//! copied out. That is what makes the crate sound with a hostile other side:
//! whatever it writes, we parse only what we have copied to memory of our own.
//! It also lets a record wrap around the end of the data area, so there are no
//! padding records, no second mapping, and the same protocol everywhere.

#[cfg(not(loom))]
pub(crate) mod memfd;
#[cfg(loom)]
mod model;
#[cfg(not(loom))]
mod native;

#[cfg(loom)]
pub(crate) use model::{Data, Region};
#[cfg(not(loom))]
pub(crate) use native::{Data, Region};

/// How the data area may be touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The positions keep the two sides apart: plain copies.
    Apart,
    /// The consumer may read what the producer is overwriting: every word is a
    /// relaxed atomic, and the consumer finds out afterwards what was torn.
    Contended,
}
