//! What devices did: kernels, copies, sets, synchronisations and graph launches.

use tracesmith_format::tables::*;
use tracesmith_format::{Address, Bytes, ContextId, GraphId, GraphNodeId};

use super::codes::{self, Codes, Mover};
use super::session::{NO_NUMBER, PlaceKey, Session};
use crate::error::Error;
use crate::import::Builder;
use crate::import::sqlite::{Column, Query, Record};

/// Columns that all device work has.
pub(super) struct Work {
    pub(super) start: Column,
    end: Column,
    process: Column,
    device: Column,
    context: Column,
    green_context: Column,
    stream: Column,
    pub(super) correlation: Column,
}

impl Work {
    pub(super) fn of(query: &mut Query<'_>) -> Self {
        Work {
            start: query.column("start"),
            end: query.column("end"),
            process: query.column("globalPid"),
            device: query.column("deviceId"),
            context: query.column("contextId"),
            green_context: query.column("greenContextId"),
            stream: query.column("streamId"),
            correlation: query.column("correlationId"),
        }
    }

    pub(super) fn place(
        &self,
        row: &Record<'_>,
        session: &mut Session<'_>,
        builder: &mut Builder<'_, '_>,
    ) -> Result<Place, Error> {
        if row.integer(self.green_context).unwrap_or(0) != 0 {
            builder.skip("numbers of green contexts", 1);
        }
        session.place(
            PlaceKey {
                process: row.integer(self.process),
                device: row.integer(self.device),
                context: row.integer(self.context),
                stream: row.integer(self.stream),
            },
            builder,
        )
    }
}

pub(super) fn kernels(session: &mut Session<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let db = session.db;
    let Some(mut query) = db.query("CUPTI_ACTIVITY_KIND_KERNEL") else {
        return Ok(());
    };
    let work = Work::of(&mut query);
    let mangled = query.column("mangledName");
    let demangled = query.column("demangledName");
    let short = query.column("shortName");
    let grid = ["gridX", "gridY", "gridZ"].map(|name| query.column(name));
    let block = ["blockX", "blockY", "blockZ"].map(|name| query.column(name));
    let cluster = ["clusterX", "clusterY", "clusterZ"].map(|name| query.column(name));
    let registers = query.column("registersPerThread");
    let static_shared = query.column("staticSharedMemory");
    let dynamic_shared = query.column("dynamicSharedMemory");
    let shared_executed = query.column("sharedMemoryExecuted");
    let shared_config = query.column("sharedMemoryLimitConfig");
    let shared_percentage = query.column("sharedMemoryRequestedPercentage");
    let local_per_thread = query.column("localMemoryPerThread");
    let local_total = query.column("localMemoryTotal");
    let launch = query.column("launchType");
    let cache = query.column("cacheConfig");
    let grid_id = query.column("gridId");
    let graph_node = query.column("graphNodeId");
    let graph = query.column("graphId");
    let cluster_policy = query.column("clusterSchedulingPolicy");
    let max_cluster = query.column("maxPotentialClusterSize");
    let max_clusters = query.column("maxActiveClusters");
    db.read(&query, builder, |row, builder| {
        let (start, end) = session.span(row.integer(work.start), row.integer(work.end));
        let place = work.place(row, session, builder)?;
        let mut numbers =
            |columns: [Column; 3]| columns.map(|column| session.number::<u32>(row.integer(column)));
        let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (numbers(grid), numbers(block));
        let [cluster_x, cluster_y, cluster_z] = numbers(cluster);
        let shape = KernelShape {
            name: session.name(row.integer(mangled).or(row.integer(short)), builder)?,
            demangled: session.name(row.integer(demangled), builder)?,
            grid_x,
            grid_y,
            grid_z,
            block_x,
            block_y,
            block_z,
            cluster_x,
            cluster_y,
            cluster_z,
            cluster_policy: session.number(row.integer(cluster_policy)),
            max_cluster_size: session.number(row.integer(max_cluster)),
            max_active_clusters: session.number(row.integer(max_clusters)),
            registers: session.number(row.integer(registers)),
            static_shared: Bytes(session.number(row.integer(static_shared))),
            dynamic_shared: Bytes(session.number(row.integer(dynamic_shared))),
            shared_executed: Bytes(session.number(row.integer(shared_executed))),
            shared_config: session.number(row.integer(shared_config)),
            shared_carveout: row
                .integer(shared_percentage)
                .and_then(|percent| u8::try_from(percent).ok())
                .unwrap_or(u8::MAX),
            local_per_thread: Bytes(session.number(row.integer(local_per_thread))),
            local_total: Bytes(session.number(row.integer(local_total))),
            cache_executed: session.number(row.integer(cache)),
            launch: match row.integer(launch) {
                Some(2) => LaunchKind::COOPERATIVE,
                Some(3) => LaunchKind::COOPERATIVE_MULTI_DEVICE,
                _ => LaunchKind::REGULAR,
            },
            graph: GraphId(session.number(row.integer(graph))),
            ..KernelShape::default()
        };
        builder.push(
            session.clock,
            &Kernel {
                start,
                end,
                correlation: session.correlation(row.integer(work.correlation)),
                grid_id: row.integer(grid_id).unwrap_or(0),
                graph_node: graph_node_of(row.integer(graph_node)),
                place,
                shape,
                ..Kernel::default()
            },
        )
    })
}

pub(super) fn copies(session: &mut Session<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let db = session.db;
    let Some(mut query) = db.query("CUPTI_ACTIVITY_KIND_MEMCPY") else {
        return Ok(());
    };
    let directions = Codes::load(db, "ENUM_CUDA_MEMCPY_OPER", codes::COPIES, builder)?;
    let memory = Codes::load(db, "ENUM_CUDA_MEM_KIND", codes::MEMORY, builder)?;
    let work = Work::of(&mut query);
    let bytes = query.column("bytes");
    let kind = query.column("copyKind");
    let (source_kind, destination_kind) = (query.column("srcKind"), query.column("dstKind"));
    let (source_device, source_context) = (query.column("srcDeviceId"), query.column("srcContextId"));
    let (destination_device, destination_context) =
        (query.column("dstDeviceId"), query.column("dstContextId"));
    let graph_node = query.column("graphNodeId");
    let address = query.column("virtualAddress");
    let count = query.column("copyCount");
    let cause = query.column("migrationCause");
    let graph = query.column("graphId");
    db.read(&query, builder, |row, builder| {
        let (start, end) = session.span(row.integer(work.start), row.integer(work.end));
        let place = work.place(row, session, builder)?;
        let process = row.integer(work.process);
        let (direction, mover) = directions
            .get(row.integer(kind))
            .unwrap_or((CopyDirection::UNKNOWN, Mover::Program));
        let (source_memory, destination_memory) = match mover {
            Mover::UnifiedMemory => (MemoryKind::MANAGED, MemoryKind::MANAGED),
            Mover::Program => {
                let of = |column| memory.get(row.integer(column)).unwrap_or(MemoryKind::UNKNOWN);
                (of(source_kind), of(destination_kind))
            }
        };
        if row.integer(cause).is_some() {
            builder.skip("causes of copies by unified memory", 1);
        }
        let shape = CopyShape {
            direction,
            source_memory,
            destination_memory,
            source_device: session.device(process, row.integer(source_device), builder)?,
            source_context: ContextId(session.number(row.integer(source_context))),
            destination_device: session.device(process, row.integer(destination_device), builder)?,
            destination_context: ContextId(session.number(row.integer(destination_context))),
            graph: GraphId(session.number(row.integer(graph))),
            ..CopyShape::default()
        };
        builder.push(
            session.clock,
            &MemoryCopy {
                start,
                end,
                bytes: Bytes(session.number(row.integer(bytes))),
                correlation: session.correlation(row.integer(work.correlation)),
                graph_node: graph_node_of(row.integer(graph_node)),
                source: address_of(row.integer(address)),
                copies: session.number::<u64>(row.integer(count).filter(|count| *count > 1)),
                place,
                shape,
                ..MemoryCopy::default()
            },
        )
    })
}

pub(super) fn sets(session: &mut Session<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let db = session.db;
    let Some(mut query) = db.query("CUPTI_ACTIVITY_KIND_MEMSET") else {
        return Ok(());
    };
    let memory = Codes::load(db, "ENUM_CUDA_MEM_KIND", codes::MEMORY, builder)?;
    let work = Work::of(&mut query);
    let (value, bytes) = (query.column("value"), query.column("bytes"));
    let (graph_node, kind) = (query.column("graphNodeId"), query.column("memKind"));
    let graph = query.column("graphId");
    db.read(&query, builder, |row, builder| {
        let (start, end) = session.span(row.integer(work.start), row.integer(work.end));
        let place = work.place(row, session, builder)?;
        builder.push(
            session.clock,
            &MemorySet {
                start,
                end,
                bytes: Bytes(session.number(row.integer(bytes))),
                value: session.number(row.integer(value)),
                correlation: session.correlation(row.integer(work.correlation)),
                graph_node: graph_node_of(row.integer(graph_node)),
                place,
                shape: SetShape {
                    memory: memory.get(row.integer(kind)).unwrap_or(MemoryKind::UNKNOWN),
                    graph: GraphId(session.number(row.integer(graph))),
                    ..SetShape::default()
                },
                ..MemorySet::default()
            },
        )
    })
}

pub(super) fn synchronizations(
    session: &mut Session<'_>,
    builder: &mut Builder<'_, '_>,
) -> Result<(), Error> {
    let db = session.db;
    let Some(mut query) = db.query("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION") else {
        return Ok(());
    };
    let kinds = Codes::load(db, "ENUM_CUPTI_SYNC_TYPE", codes::SYNCS, builder)?;
    let work = Work::of(&mut query);
    let (kind, event, record) = (
        query.column("syncType"),
        query.column("eventId"),
        query.column("eventSyncId"),
    );
    db.read(&query, builder, |row, builder| {
        let (start, end) = session.span(row.integer(work.start), row.integer(work.end));
        let place = work.place(row, session, builder)?;
        builder.push(
            session.clock,
            &Synchronization {
                start,
                end,
                correlation: session.correlation(row.integer(work.correlation)),
                event: session.number(row.integer(event).filter(|event| *event != NO_NUMBER)),
                event_record: session.number(row.integer(record)),
                place,
                shape: SyncShape {
                    kind: kinds.get(row.integer(kind)).unwrap_or(SyncKind::UNKNOWN),
                    ..SyncShape::default()
                },
                ..Synchronization::default()
            },
        )
    })
}

/// Event records. Older exports say of them only where, not when.
pub(super) fn event_records(session: &mut Session<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let db = session.db;
    let Some(mut query) = db.query("CUPTI_ACTIVITY_KIND_CUDA_EVENT") else {
        return Ok(());
    };
    let work = Work::of(&mut query);
    let (time, event, record) = (
        query.column("timestamp"),
        query.column("eventId"),
        query.column("eventSyncId"),
    );
    db.read(&query, builder, |row, builder| {
        let time = session.optional_time(row.integer(time));
        let place = work.place(row, session, builder)?;
        builder.push(
            session.clock,
            &Synchronization {
                start: time,
                end: time,
                correlation: session.correlation(row.integer(work.correlation)),
                event: session.number(row.integer(event)),
                event_record: session.number(row.integer(record)),
                device_time: time,
                place,
                shape: SyncShape {
                    kind: SyncKind::EVENT_RECORD,
                    ..SyncShape::default()
                },
                ..Synchronization::default()
            },
        )
    })
}

pub(super) fn graph_launches(session: &mut Session<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let db = session.db;
    let Some(mut query) = db.query("CUPTI_ACTIVITY_KIND_GRAPH_TRACE") else {
        return Ok(());
    };
    let work = Work::of(&mut query);
    let (graph, executable) = (query.column("graphId"), query.column("graphExecId"));
    let (end_device, end_context) = (query.column("endDeviceId"), query.column("endContextId"));
    db.read(&query, builder, |row, builder| {
        let (start, end) = session.span(row.integer(work.start), row.integer(work.end));
        let place = work.place(row, session, builder)?;
        let process = row.integer(work.process);
        let launch = GraphLaunch {
            start,
            end,
            correlation: session.correlation(row.integer(work.correlation)),
            place,
            shape: GraphShape {
                graph: GraphId(session.number(row.integer(graph))),
                executable: GraphId(session.number(row.integer(executable))),
                end_device: session.device(process, row.integer(end_device), builder)?,
                end_context: ContextId(session.number(row.integer(end_context))),
                ..GraphShape::default()
            },
            ..GraphLaunch::default()
        };
        builder.push(session.clock, &launch)
    })
}

/// An address: SQLite has no unsigned numbers, so upper ones are negative.
pub(super) fn address_of(value: Option<i64>) -> Address {
    Address(value.unwrap_or(0) as u64)
}

fn graph_node_of(value: Option<i64>) -> GraphNodeId {
    GraphNodeId(value.unwrap_or(0) as u64)
}
