//! Memory taken and given back, and the pools that it came from.

use tracesmith_format::tables::*;
use tracesmith_format::{Bytes, StringId};

use super::codes::{self, Codes};
use super::device::{Work, address_of};
use super::session::Session;
use crate::error::Error;
use crate::import::Builder;
use crate::import::sqlite::{Column, Query, Record};

pub(super) fn allocations(session: &mut Session<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let db = session.db;
    let Some(mut query) = db.query("CUDA_GPU_MEMORY_USAGE_EVENTS") else {
        return Ok(());
    };
    let memory = Codes::load(db, "ENUM_CUDA_MEM_KIND", codes::MEMORY, builder)?;
    let operations = Codes::load(
        db,
        "ENUM_CUDA_DEV_MEM_EVENT_OPER",
        codes::MEMORY_OPERATIONS,
        builder,
    )?;
    let work = Work::of(&mut query);
    let (address, code, bytes) = (query.column("address"), query.column("pc"), query.column("bytes"));
    let (kind, operation, name) = (
        query.column("memKind"),
        query.column("memoryOperationType"),
        query.column("name"),
    );
    let pool = Pool::of(&mut query, "localMemoryPoolAddress");
    db.read(&query, builder, |row, builder| {
        let place = work.place(row, session, builder)?;
        let name = match row.text(name) {
            Some(name) => builder.string(&name)?,
            None => StringId::NONE,
        };
        let mut allocation = Allocation {
            time: session.time(row.integer(work.start)),
            address: address_of(row.integer(address)),
            bytes: Bytes(session.number(row.integer(bytes))),
            correlation: session.correlation(row.integer(work.correlation)),
            code_address: address_of(row.integer(code)),
            place,
            shape: AllocationShape {
                operation: operations
                    .get(row.integer(operation))
                    .unwrap_or(MemoryOperation::UNKNOWN),
                memory: memory.get(row.integer(kind)).unwrap_or(MemoryKind::UNKNOWN),
                name,
                ..AllocationShape::default()
            },
            ..Allocation::default()
        };
        pool.add_to(&mut allocation, row, session);
        builder.push(session.clock, &allocation)
    })
}

pub(super) fn pools(session: &mut Session<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let db = session.db;
    let Some(mut query) = db.query("CUDA_GPU_MEMORY_POOL_EVENTS") else {
        return Ok(());
    };
    let operations = Codes::load(db, "ENUM_CUDA_MEMPOOL_OPER", codes::POOL_OPERATIONS, builder)?;
    let work = Work::of(&mut query);
    let (operation, kind) = (query.column("operationType"), query.column("poolType"));
    let pool = Pool::of(&mut query, "address");
    db.read(&query, builder, |row, builder| {
        let mut allocation = Allocation {
            time: session.time(row.integer(work.start)),
            correlation: session.correlation(row.integer(work.correlation)),
            place: work.place(row, session, builder)?,
            shape: AllocationShape {
                operation: operations
                    .get(row.integer(operation))
                    .unwrap_or(MemoryOperation::UNKNOWN),
                memory: MemoryKind::DEVICE,
                pool_kind: session.number(row.integer(kind)),
                ..AllocationShape::default()
            },
            ..Allocation::default()
        };
        pool.add_to(&mut allocation, row, session);
        builder.push(session.clock, &allocation)
    })
}

/// Columns of the pool that memory came from.
struct Pool {
    address: Column,
    threshold: Column,
    size: Column,
    used: Column,
}

impl Pool {
    fn of(query: &mut Query<'_>, address: &str) -> Self {
        Pool {
            address: query.column(address),
            threshold: query.column("localMemoryPoolReleaseThreshold"),
            size: query.column("localMemoryPoolSize"),
            used: query.column("localMemoryPoolUtilizedSize"),
        }
    }

    fn add_to(&self, allocation: &mut Allocation, row: &Record<'_>, session: &mut Session<'_>) {
        allocation.pool = address_of(row.integer(self.address));
        allocation.pool_size = Bytes(session.number(row.integer(self.size)));
        allocation.pool_used = Bytes(session.number(row.integer(self.used)));
        // A pool that keeps everything says so by the largest number, which is -1 here.
        allocation.shape.pool_threshold = Bytes(row.integer(self.threshold).unwrap_or(0) as u64);
    }
}
