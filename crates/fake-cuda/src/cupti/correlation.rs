//! Numbers that join a call with the work it asked for, and the external ids that a client pushes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use super::activity;
use super::code::CuptiCode;
use super::record::{ExternalCorrelation, kind};
use super::subscriber::{self, Domain};
use crate::kept::{Kept, KeptKey};

thread_local! {
    /// For each external kind a stack of ids.
    static PUSHED: Kept<BTreeMap<u32, Vec<u64>>> = const { Kept::new(BTreeMap::new()) };
}

/// Whether a call gets a number although it is not recorded: someone wants its callback, or a record of the work that it
/// asks for. Seen on an H200 with CUPTI 13.0: with kernels alone turned on, launches count from 1 and nothing else counts.
pub(crate) fn is_numbered(domain: Domain, cbid: u32) -> bool {
    subscriber::is_wanted(domain, cbid)
        || (domain == Domain::Driver && kinds_of_call(cbid).iter().any(|&kind| activity::is_enabled(kind)))
}

/// The kinds of records, besides its own, that a driver call can lead to.
fn kinds_of_call(cbid: u32) -> &'static [u32] {
    match cbid {
        307 | 477 | 652 => &[kind::CONCURRENT_KERNEL, kind::KERNEL],
        514 => &[
            kind::CONCURRENT_KERNEL,
            kind::KERNEL,
            kind::MEMCPY,
            kind::MEMSET,
            kind::GRAPH_TRACE,
        ],
        276..=281 | 305 | 306 | 318 | 319 => &[kind::MEMCPY, kind::MEMCPY2],
        216 | 218 | 220 | 249..=251 => &[kind::MEMSET],
        17 | 121 | 126 | 295 => &[kind::SYNCHRONIZATION],
        119 | 587 => &[kind::CUDA_EVENT],
        38 | 39 | 243..=245 | 294 | 371 | 552 | 553 => &[kind::MEMORY2],
        598 | 600 | 611 => &[kind::MEMORY2, kind::MEMORY_POOL],
        124 | 367 => &[kind::STREAM],
        _ => &[],
    }
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
