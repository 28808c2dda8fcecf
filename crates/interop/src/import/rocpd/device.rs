//! Kernels with their counters, copies, and memory.

use tracesmith_format::tables::*;
use tracesmith_format::{Address, Bytes, DeviceId};

use super::run::{Agent, AgentKind, EventColumns, Run};
use crate::error::Error;
use crate::import::Builder;

pub(super) fn kernels(run: &mut Run<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let Some(mut query) = run.query("rocpd_kernel_dispatch") else {
        return Ok(());
    };
    let event = EventColumns::of(&mut query, run);
    let (start, end) = (query.column("start"), query.column("end"));
    let (agent, symbol, dispatch) = (
        query.column("agent_id"),
        query.column("kernel_id"),
        query.column("dispatch_id"),
    );
    let (queue, stream) = (query.column("queue_id"), query.column("stream_id"));
    let (private, group) = (
        query.column("private_segment_size"),
        query.column("group_segment_size"),
    );
    let block = ["workgroup_size_x", "workgroup_size_y", "workgroup_size_z"].map(|name| query.column(name));
    let grid = ["grid_size_x", "grid_size_y", "grid_size_z"].map(|name| query.column(name));
    run.db().read(&query, builder, |row, builder| {
        let (start, end) = run.span(row.integer(start), row.integer(end));
        let device = agent_of(run, row.integer(agent)).device;
        let process = event.process(row, run);
        let place = run.place(process, device, row.integer(queue), row.integer(stream), builder);
        let [block_x, block_y, block_z] = block.map(|column| run.doubts.number::<u32>(row.integer(column)));
        let [items_x, items_y, items_z] = grid.map(|column| run.doubts.number::<u32>(row.integer(column)));
        let symbol = row
            .integer(symbol)
            .and_then(|symbol| run.kernels.get(&symbol).copied())
            .unwrap_or_default();
        let shared = run.doubts.number::<u64>(row.integer(group));
        let kernel = Kernel {
            start,
            end,
            correlation: event.correlation(row, run),
            grid_id: row.integer(dispatch).unwrap_or(0),
            place,
            shape: KernelShape {
                name: symbol.name,
                demangled: symbol.demangled,
                // Grids are counted in work items there, in blocks here.
                grid_x: items_x.div_ceil(block_x.max(1)),
                grid_y: items_y.div_ceil(block_y.max(1)),
                grid_z: items_z.div_ceil(block_z.max(1)),
                block_x,
                block_y,
                block_z,
                registers: symbol.registers,
                static_shared: Bytes(symbol.shared.min(shared)),
                dynamic_shared: Bytes(shared.saturating_sub(symbol.shared)),
                local_per_thread: run.bytes(row.integer(private)),
                ..KernelShape::default()
            },
            ..Kernel::default()
        };
        builder.push(event.clock(row, run), &kernel)
    })
}

/// Counters of kernels, each at its kernel's end.
pub(super) fn counters(run: &mut Run<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let Some(mut query) = run.query("rocpd_pmc_event") else {
        return Ok(());
    };
    query.look_up(run.query("rocpd_kernel_dispatch"), "event_id", "event_id");
    let (counter, value) = (query.column("pmc_id"), query.column("value"));
    let (node, time) = (query.other_column("nid"), query.other_column("end"));
    run.db().read(&query, builder, |row, builder| {
        let track = row
            .integer(counter)
            .and_then(|counter| run.counters.get(&counter).copied());
        let (Some(track), Some(value)) = (track, row.number(value)) else {
            builder.skip("values of counters that are not described", 1);
            return Ok(());
        };
        let time = run.time(row.integer(time));
        builder.push(run.clock(row.integer(node)), &Counter { time, value, track })
    })
}

pub(super) fn copies(run: &mut Run<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let Some(mut query) = run.query("rocpd_memory_copy") else {
        return Ok(());
    };
    let event = EventColumns::of(&mut query, run);
    let (start, end, size) = (query.column("start"), query.column("end"), query.column("size"));
    let (source, destination) = (query.column("src_agent_id"), query.column("dst_agent_id"));
    let (source_address, destination_address) = (query.column("src_address"), query.column("dst_address"));
    let (queue, stream) = (query.column("queue_id"), query.column("stream_id"));
    run.db().read(&query, builder, |row, builder| {
        let (start, end) = run.span(row.integer(start), row.integer(end));
        let (from, to) = (
            agent_of(run, row.integer(source)),
            agent_of(run, row.integer(destination)),
        );
        let direction = match (from.kind, to.kind) {
            (AgentKind::Cpu, AgentKind::Cpu) => CopyDirection::HOST_TO_HOST,
            (AgentKind::Cpu, AgentKind::Gpu) => CopyDirection::HOST_TO_DEVICE,
            (AgentKind::Gpu, AgentKind::Cpu) => CopyDirection::DEVICE_TO_HOST,
            _ if from.device == to.device => CopyDirection::DEVICE_TO_DEVICE,
            _ => CopyDirection::PEER,
        };
        let device = match to.kind {
            AgentKind::Gpu => to.device,
            AgentKind::Cpu => from.device,
        };
        let process = event.process(row, run);
        let place = run.place(process, device, row.integer(queue), row.integer(stream), builder);
        let memory = |agent: Agent| match agent.kind {
            AgentKind::Gpu => MemoryKind::DEVICE,
            AgentKind::Cpu => MemoryKind::UNKNOWN,
        };
        let copy = MemoryCopy {
            start,
            end,
            bytes: run.bytes(row.integer(size)),
            correlation: event.correlation(row, run),
            source: Address(row.integer(source_address).unwrap_or(0) as u64),
            destination: Address(row.integer(destination_address).unwrap_or(0) as u64),
            place,
            shape: CopyShape {
                direction,
                source_memory: memory(from),
                destination_memory: memory(to),
                source_device: other_than(from.device, device),
                destination_device: other_than(to.device, device),
                ..CopyShape::default()
            },
            ..MemoryCopy::default()
        };
        builder.push(event.clock(row, run), &copy)
    })
}

/// Memory, at the moment when it was asked for; the call that did so is among the calls.
pub(super) fn allocations(run: &mut Run<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let Some(mut query) = run.query("rocpd_memory_allocate") else {
        return Ok(());
    };
    let event = EventColumns::of(&mut query, run);
    let (start, size, address) = (
        query.column("start"),
        query.column("size"),
        query.column("address"),
    );
    let (kind, level, agent) = (
        query.column("type"),
        query.column("level"),
        query.column("agent_id"),
    );
    let (queue, stream) = (query.column("queue_id"), query.column("stream_id"));
    run.db().read(&query, builder, |row, builder| {
        let (kind, level) = (
            row.text(kind).unwrap_or_default(),
            row.text(level).unwrap_or_default(),
        );
        let device = agent_of(run, row.integer(agent)).device;
        let caller = event.caller(row, run);
        let place = run.place(
            caller.process,
            device,
            row.integer(queue),
            row.integer(stream),
            builder,
        );
        let allocation = Allocation {
            time: run.time(row.integer(start)),
            address: Address(row.integer(address).unwrap_or(0) as u64),
            bytes: run.bytes(row.integer(size)),
            correlation: event.correlation(row, run),
            place,
            shape: AllocationShape {
                operation: match (&*kind, &*level) {
                    ("ALLOC", "VIRTUAL") => MemoryOperation::RESERVE,
                    ("FREE", "VIRTUAL") => MemoryOperation::UNRESERVE,
                    ("ALLOC" | "REALLOC", _) => MemoryOperation::ALLOCATE,
                    ("FREE" | "RECLAIM", _) => MemoryOperation::FREE,
                    _ => MemoryOperation::UNKNOWN,
                },
                memory: match device {
                    DeviceId::NONE => MemoryKind::UNKNOWN,
                    _ => MemoryKind::DEVICE,
                },
                thread: caller.thread,
                category: builder.string(&level.to_ascii_lowercase())?,
                ..AllocationShape::default()
            },
            ..Allocation::default()
        };
        builder.push(event.clock(row, run), &allocation)
    })
}

/// An agent by its number in the tables; the host for none.
fn agent_of(run: &Run<'_>, agent: Option<i64>) -> Agent {
    let agent = agent.and_then(|agent| run.agents.get(&agent).copied());
    agent.unwrap_or(Agent {
        kind: AgentKind::Cpu,
        device: DeviceId::NONE,
    })
}

/// A device, unless it is where the work ran anyway.
fn other_than(device: DeviceId, place: DeviceId) -> DeviceId {
    if device == place { DeviceId::NONE } else { device }
}
