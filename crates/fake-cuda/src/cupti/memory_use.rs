//! Records of memory being taken and given back, and of the pool behind stream-ordered allocations.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use super::activity;
use super::record::{MemoryPoolRecord, MemoryRecord, kind};
use crate::call;
use crate::clock;
use crate::driver::device::DEFAULT_POOL;
use crate::engine::memory::Allocation;

/// `CUpti_ActivityMemoryOperationType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Allocated = 1,
    Released = 2,
}

/// A stream is given for stream-ordered calls.
pub(crate) fn record(change: Change, allocation: &Allocation, stream_id: Option<u32>) {
    if !activity::is_enabled(kind::MEMORY2) {
        return;
    }
    let mut record = MemoryRecord {
        kind: kind::MEMORY2,
        operation: change as u32,
        memory_kind: allocation.kind as u32,
        correlation_id: call::correlation_id(),
        address: allocation.base,
        bytes: allocation.size,
        timestamp: clock::now(),
        process_id: std::process::id(),
        device_id: allocation.device,
        context_id: allocation.context_id,
        stream_id: stream_id.unwrap_or(u32::MAX),
        is_async: u32::from(stream_id.is_some()),
        ..MemoryRecord::default()
    };
    if stream_id.is_some() {
        record.pool_type = 1;
        record.pool_address = (DEFAULT_POOL + allocation.device as usize) as u64;
        record.pool_process_or_size = allocation.size;
    }
    activity::emit(&record, kind::MEMORY2);
}

/// The pool of a device comes into being with the first allocation from it.
pub(crate) fn record_pool_if_new(allocation: &Allocation) {
    static KNOWN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
    let is_new = KNOWN
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(allocation.device);
    if !is_new || !activity::is_enabled(kind::MEMORY_POOL) {
        return;
    }
    let record = MemoryPoolRecord {
        kind: kind::MEMORY_POOL,
        operation: 1,
        pool_type: 1,
        correlation_id: call::correlation_id(),
        process_id: std::process::id(),
        device_id: allocation.device,
        address: (DEFAULT_POOL + allocation.device as usize) as u64,
        size: allocation.size,
        timestamp: clock::now(),
        utilized: allocation.size,
        ..MemoryPoolRecord::default()
    };
    activity::emit(&record, kind::MEMORY_POOL);
}
