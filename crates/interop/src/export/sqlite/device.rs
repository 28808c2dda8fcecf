//! Tables of what devices did.

use tracesmith_format::Columns;
use tracesmith_format::tables::{CopyDirection, LaunchKind, MemoryKind, MemoryOperation, SyncKind};

use super::insert::{Cell, Insert, unless_empty, unless_zero};
use super::names::NO_NUMBER;
use super::{Export, schema};

impl Export<'_> {
    pub(super) fn kernels(&mut self) -> rusqlite::Result<()> {
        let mut table = Insert::always(self.connection, schema::KERNELS)?;
        for (block, rows) in self.trace.kernels.stream() {
            self.options.note(block);
            for row in 0..rows.len() {
                let clock = block.header.clock;
                let (start, end) = (
                    self.moment(clock, rows.start[row]),
                    self.moment(clock, rows.end[row]),
                );
                let (place, shape) = (rows.place.get(row), rows.shape.get(row));
                if !self.options.wants(start, end, place) {
                    continue;
                }
                let Some((start, end)) = self.span(start, end) else {
                    continue;
                };
                let (device, context, stream, process) = self.names.place(place);
                let [demangled, short, mangled] = self.names.kernel(shape);
                let carveout = (shape.shared_carveout != u8::MAX).then_some(u32::from(shape.shared_carveout));
                table.row(&[
                    start.into(),
                    end.into(),
                    device.into(),
                    context.into(),
                    Cell::Null,
                    stream.into(),
                    rows.correlation[row].0.into(),
                    process.into(),
                    demangled.into(),
                    short.into(),
                    mangled.into(),
                    launch_type(shape.launch).into(),
                    u32::from(shape.cache_executed).into(),
                    u32::from(shape.registers).into(),
                    shape.grid_x.into(),
                    shape.grid_y.into(),
                    shape.grid_z.into(),
                    shape.block_x.into(),
                    shape.block_y.into(),
                    shape.block_z.into(),
                    shape.static_shared.0.into(),
                    shape.dynamic_shared.0.into(),
                    shape.local_per_thread.0.into(),
                    shape.local_total.0.into(),
                    rows.grid_id[row].into(),
                    shape.shared_executed.0.into(),
                    unless_zero(rows.graph_node[row].0),
                    u32::from(shape.shared_config).into(),
                    Cell::Null,
                    Cell::Null,
                    Cell::Null,
                    unless_zero(shape.graph.0),
                    shape.cluster_x.into(),
                    shape.cluster_y.into(),
                    shape.cluster_z.into(),
                    u32::from(shape.cluster_policy).into(),
                    shape.max_cluster_size.into(),
                    shape.max_active_clusters.into(),
                    carveout.into(),
                    "[]".into(),
                ])?;
            }
        }
        Ok(())
    }

    pub(super) fn copies(&mut self) -> rusqlite::Result<()> {
        let mut table = Insert::always(self.connection, schema::COPIES)?;
        for (block, rows) in self.trace.copies.stream() {
            self.options.note(block);
            for row in 0..rows.len() {
                let clock = block.header.clock;
                let (start, end) = (
                    self.moment(clock, rows.start[row]),
                    self.moment(clock, rows.end[row]),
                );
                let (place, shape) = (rows.place.get(row), rows.shape.get(row));
                if !self.options.wants(start, end, place) {
                    continue;
                }
                let Some((start, end)) = self.span(start, end) else {
                    continue;
                };
                let (device, context, stream, process) = self.names.place(place);
                let by_itself = (shape.source_memory, shape.destination_memory)
                    == (MemoryKind::MANAGED, MemoryKind::MANAGED);
                table.row(&[
                    start.into(),
                    end.into(),
                    device.into(),
                    context.into(),
                    Cell::Null,
                    stream.into(),
                    rows.correlation[row].0.into(),
                    process.into(),
                    rows.bytes[row].0.into(),
                    copy_kind(shape.direction, by_itself.then_some(MemoryKind::MANAGED)).into(),
                    Cell::Null,
                    memory_kind(shape.source_memory).into(),
                    memory_kind(shape.destination_memory).into(),
                    self.names.other_device(shape.source_device).into(),
                    unless_zero(shape.source_context.0.into()),
                    self.names.other_device(shape.destination_device).into(),
                    unless_zero(shape.destination_context.0.into()),
                    Cell::Null,
                    unless_zero(rows.graph_node[row].0),
                    unless_zero(rows.source[row].0),
                    rows.copies[row].max(1).into(),
                ])?;
            }
        }
        Ok(())
    }

    pub(super) fn sets(&mut self) -> rusqlite::Result<()> {
        let mut table = Insert::always(self.connection, schema::SETS)?;
        for (block, rows) in self.trace.sets.stream() {
            self.options.note(block);
            for row in 0..rows.len() {
                let clock = block.header.clock;
                let (start, end) = (
                    self.moment(clock, rows.start[row]),
                    self.moment(clock, rows.end[row]),
                );
                let (place, shape) = (rows.place.get(row), rows.shape.get(row));
                if !self.options.wants(start, end, place) {
                    continue;
                }
                let Some((start, end)) = self.span(start, end) else {
                    continue;
                };
                let (device, context, stream, process) = self.names.place(place);
                table.row(&[
                    start.into(),
                    end.into(),
                    device.into(),
                    context.into(),
                    Cell::Null,
                    stream.into(),
                    rows.correlation[row].0.into(),
                    process.into(),
                    rows.value[row].into(),
                    rows.bytes[row].0.into(),
                    unless_zero(rows.graph_node[row].0),
                    memory_kind(shape.memory).into(),
                ])?;
            }
        }
        Ok(())
    }

    /// Waits into one table, event records into another.
    pub(super) fn synchronizations(&mut self) -> rusqlite::Result<()> {
        let mut table = Insert::always(self.connection, schema::SYNCS)?;
        let mut records = self.insert(schema::EVENT_RECORDS);
        for (block, rows) in self.trace.syncs.stream() {
            self.options.note(block);
            for row in 0..rows.len() {
                let clock = block.header.clock;
                let (start, end) = (
                    self.moment(clock, rows.start[row]),
                    self.moment(clock, rows.end[row]),
                );
                let (place, kind) = (rows.place.get(row), rows.shape.get(row).kind);
                if !self.options.wants(start, end, place) {
                    continue;
                }
                let (device, context, stream, process) = self.names.place(place);
                let (correlation, event) = (rows.correlation[row].0, rows.event[row]);
                if kind == SyncKind::EVENT_RECORD {
                    // This table may go without a time.
                    self.report.events += 1;
                    let device_time = self.moment(clock, rows.device_time[row]);
                    records.row(&[
                        self.nanos_if_known(device_time).into(),
                        device.into(),
                        context.into(),
                        Cell::Null,
                        stream.into(),
                        correlation.into(),
                        process.into(),
                        event.into(),
                        rows.event_record[row].into(),
                    ])?;
                    continue;
                }
                let Some((start, end)) = self.span(start, end) else {
                    continue;
                };
                let of_no_stream =
                    stream == 0 && !matches!(kind, SyncKind::STREAM_WAIT | SyncKind::STREAM_WAIT_EVENT);
                table.row(&[
                    start.into(),
                    end.into(),
                    device.into(),
                    context.into(),
                    Cell::Null,
                    if of_no_stream {
                        NO_NUMBER.into()
                    } else {
                        stream.into()
                    },
                    correlation.into(),
                    process.into(),
                    Cell::Null,
                    sync_type(kind).into(),
                    if event == 0 {
                        NO_NUMBER.into()
                    } else {
                        event.into()
                    },
                    rows.event_record[row].into(),
                ])?;
            }
        }
        Ok(())
    }

    pub(super) fn graph_launches(&mut self) -> rusqlite::Result<()> {
        let mut table = self.insert(schema::GRAPH_LAUNCHES);
        for (block, rows) in self.trace.graph_launches.stream() {
            self.options.note(block);
            for row in 0..rows.len() {
                let clock = block.header.clock;
                let (start, end) = (
                    self.moment(clock, rows.start[row]),
                    self.moment(clock, rows.end[row]),
                );
                let (place, shape) = (rows.place.get(row), rows.shape.get(row));
                if !self.options.wants(start, end, place) {
                    continue;
                }
                let Some((start, end)) = self.span(start, end) else {
                    continue;
                };
                let (device, context, stream, process) = self.names.place(place);
                table.row(&[
                    start.into(),
                    end.into(),
                    device.into(),
                    context.into(),
                    Cell::Null,
                    stream.into(),
                    rows.correlation[row].0.into(),
                    process.into(),
                    shape.graph.0.into(),
                    shape.executable.0.into(),
                ])?;
            }
        }
        Ok(())
    }

    /// Allocations and pools as nsys has them; reservations, mappings and page locks into a table of our own.
    pub(super) fn allocations(&mut self) -> rusqlite::Result<()> {
        let mut table = self.insert(schema::ALLOCATIONS);
        let mut pools = self.insert(schema::POOLS);
        let mut others = self.insert(schema::OTHER_MEMORY);
        for (block, rows) in self.trace.allocations.stream() {
            self.options.note(block);
            for row in 0..rows.len() {
                let time = self.moment(block.header.clock, rows.time[row]);
                let (place, shape) = (rows.place.get(row), rows.shape.get(row));
                if !self.options.wants(time, time, place) {
                    continue;
                }
                let Some(time) = self.instant(time) else {
                    continue;
                };
                let (device, context, _, process) = self.names.place(place);
                let correlation = unless_zero(rows.correlation[row].0);
                let pool = [
                    shape.pool_threshold.0.into(),
                    rows.pool_size[row].0.into(),
                    rows.pool_used[row].0.into(),
                ];
                let operation = shape.operation;
                if operation == MemoryOperation::ALLOCATE || operation == MemoryOperation::FREE {
                    let [threshold, size, used] = match rows.pool[row].is_some() {
                        true => pool,
                        false => [Cell::Null; 3],
                    };
                    table.row(&[
                        time.into(),
                        process.into(),
                        device.into(),
                        context.into(),
                        rows.address[row].0.into(),
                        rows.code_address[row].0.into(),
                        rows.bytes[row].0.into(),
                        memory_kind(shape.memory).unwrap_or(7).into(),
                        i64::from(operation == MemoryOperation::FREE).into(),
                        unless_empty(self.trace.string(shape.name)),
                        correlation,
                        unless_zero(rows.pool[row].0),
                        threshold,
                        size,
                        used,
                    ])?;
                } else if let Some(number) = pool_operation(operation) {
                    let [threshold, size, used] = pool;
                    pools.row(&[
                        time.into(),
                        process.into(),
                        device.into(),
                        rows.pool[row].0.into(),
                        number.into(),
                        u32::from(shape.pool_kind).into(),
                        correlation,
                        threshold,
                        size,
                        used,
                    ])?;
                } else {
                    others.row(&[
                        time.into(),
                        process.into(),
                        device.into(),
                        context.into(),
                        rows.address[row].0.into(),
                        rows.bytes[row].0.into(),
                        operation.name().unwrap_or("unknown").into(),
                        shape.memory.name().unwrap_or("unknown").into(),
                        correlation,
                    ])?;
                }
            }
        }
        Ok(())
    }
}

fn launch_type(launch: LaunchKind) -> i64 {
    match launch {
        LaunchKind::COOPERATIVE => 2,
        LaunchKind::COOPERATIVE_MULTI_DEVICE => 3,
        _ => 1,
    }
}

/// The numbers are ours, but for what unified memory does by itself.
fn copy_kind(direction: CopyDirection, unified: Option<MemoryKind>) -> i64 {
    match (unified, direction) {
        (Some(_), CopyDirection::HOST_TO_DEVICE) => 11,
        (Some(_), CopyDirection::DEVICE_TO_HOST) => 12,
        (Some(_), CopyDirection::DEVICE_TO_DEVICE) => 13,
        _ => i64::from(direction.0),
    }
}

/// The numbers are ours, counted from 0; `None` when it is not known.
fn memory_kind(kind: MemoryKind) -> Option<i64> {
    (kind != MemoryKind::UNKNOWN).then(|| i64::from(kind.0) - 1)
}

/// The numbers are ours; a wait for a device is one for its context there.
fn sync_type(kind: SyncKind) -> i64 {
    match kind {
        SyncKind::DEVICE_WAIT => i64::from(SyncKind::CONTEXT_WAIT.0),
        kind => i64::from(kind.0),
    }
}

fn pool_operation(operation: MemoryOperation) -> Option<i64> {
    match operation {
        MemoryOperation::POOL_CREATE => Some(1),
        MemoryOperation::POOL_DESTROY => Some(2),
        MemoryOperation::POOL_TRIM => Some(3),
        _ => None,
    }
}
