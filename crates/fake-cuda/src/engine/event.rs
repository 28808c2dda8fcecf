//! Events: a mark in a stream that others wait for.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::ticket::Ticket;

pub(crate) struct Event {
    /// The number in records.
    pub(crate) id: u32,
    pub(crate) context_id: u32,
    pub(crate) timing: Timing,
    recorded: Mutex<Recorded>,
}

/// Whether the time of an event can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    On,
    Off,
}

/// The last record of an event.
#[derive(Clone, Default)]
pub(crate) struct Recorded {
    /// None: never recorded, which counts as done.
    pub(crate) ticket: Option<Ticket>,
    /// Tells one record of an event from the next; 0 before the first.
    pub(crate) sync_id: u64,
}

impl Event {
    pub(crate) fn new(context_id: u32, timing: Timing) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            context_id,
            timing,
            recorded: Mutex::new(Recorded::default()),
        }
    }

    pub(crate) fn recorded(&self) -> Recorded {
        self.recorded
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// A number for the next record of an event.
    pub(crate) fn next_sync_id() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    /// Remembers where it was recorded.
    pub(crate) fn record(&self, ticket: Ticket, sync_id: u64) {
        *self.recorded.lock().unwrap_or_else(PoisonError::into_inner) = Recorded {
            ticket: Some(ticket),
            sync_id,
        };
    }
}
