//! Numbers that join a call with the work it asked for, and the external ids that a client pushes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use super::code::CuptiCode;
use super::record::{ExternalCorrelation, kind};
use super::subscriber::{self, Domain};
use super::{activity, filters};

thread_local! {
    /// For each external kind a stack of ids.
    static PUSHED: RefCell<BTreeMap<u32, Vec<u64>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Whether calls are numbered: only when someone looks at calls.
pub(crate) fn is_on() -> bool {
    filters::is_any_recorded(Domain::Driver)
        || filters::is_any_recorded(Domain::Runtime)
        || subscriber::is_any_wanted(Domain::Driver)
        || subscriber::is_any_wanted(Domain::Runtime)
}

pub(crate) fn next() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

pub(crate) fn push_external(external_kind: u32, id: u64) {
    PUSHED.with_borrow_mut(|pushed| pushed.entry(external_kind).or_default().push(id));
}

pub(crate) fn pop_external(external_kind: u32) -> Result<u64, CuptiCode> {
    PUSHED
        .with_borrow_mut(|pushed| pushed.get_mut(&external_kind).and_then(Vec::pop))
        .ok_or(CuptiCode::QUEUE_EMPTY)
}

/// Writes which external ids were on top when a call was made.
pub(crate) fn emit_external(correlation_id: u32) {
    if correlation_id == 0 || !activity::is_enabled(kind::EXTERNAL_CORRELATION) {
        return;
    }
    let tops: Vec<(u32, u64)> = PUSHED.with_borrow(|pushed| {
        let tops = pushed
            .iter()
            .filter_map(|(&kind, ids)| Some((kind, *ids.last()?)));
        tops.collect()
    });
    for (external_kind, external_id) in tops {
        let record = ExternalCorrelation {
            kind: kind::EXTERNAL_CORRELATION,
            external_kind,
            external_id,
            correlation_id,
            reserved: 0,
        };
        activity::emit(&record, kind::EXTERNAL_CORRELATION);
    }
}
