//! Records of memory being taken and given back, and of the pool behind stream-ordered allocations.

use std::collections::BTreeMap;
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

/// What is known of each device's pool.
static POOLS: Mutex<BTreeMap<u32, Pool>> = Mutex::new(BTreeMap::new());

#[derive(Default)]
struct Pool {
    used: u64,
    /// Whether it has given back what it does not need.
    is_trimmed: bool,
}

/// `CUpti_ActivityMemoryPoolOperationType`.
const POOL_CREATED: u32 = 1;
const POOL_TRIMMED: u32 = 3;
/// What the real driver starts a pool with.
const POOL_BYTES: u64 = 32 << 20;

/// Notes that memory is taken from the pool of a device, which comes into being with the first allocation.
pub(crate) fn take_from_pool(allocation: &Allocation) {
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_new = !pools.contains_key(&allocation.device);
    let pool = pools.entry(allocation.device).or_default();
    pool.used += allocation.size;
    pool.is_trimmed = false;
    drop(pools);
    if is_new {
        record_pool(POOL_CREATED, allocation.device, POOL_BYTES, allocation.size);
    }
}

pub(crate) fn give_to_pool(allocation: &Allocation) {
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pool) = pools.get_mut(&allocation.device) {
        pool.used = pool.used.saturating_sub(allocation.size);
    }
}

/// A pool gives back what it does not need when the program waits for the device.
pub(crate) fn record_trimmed_pools() {
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut trimmed = Vec::new();
    for (&device, pool) in pools.iter_mut() {
        if pool.used == 0 && !pool.is_trimmed {
            pool.is_trimmed = true;
            trimmed.push(device);
        }
    }
    drop(pools);
    for device in trimmed {
        record_pool(POOL_TRIMMED, device, 0, 0);
    }
}

fn record_pool(operation: u32, device_id: u32, size: u64, utilized: u64) {
    if !activity::is_enabled(kind::MEMORY_POOL) {
        return;
    }
    let record = MemoryPoolRecord {
        kind: kind::MEMORY_POOL,
        operation,
        pool_type: 1,
        correlation_id: call::correlation_id(),
        process_id: std::process::id(),
        device_id,
        address: (DEFAULT_POOL + device_id as usize) as u64,
        size,
        timestamp: clock::now(),
        utilized,
        ..MemoryPoolRecord::default()
    };
    activity::emit(&record, kind::MEMORY_POOL);
}
