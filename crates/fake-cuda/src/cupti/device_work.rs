//! Records of what devices do: kernels, copies, sets, graphs. A record is begun when the work is asked for and finished
//! when it has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::activity::{self, Open};
use super::names;
use super::record::{GraphTrace, Kernel, Memcpy, MemcpyPeer, Memset, kind};
use crate::clock;
use crate::driver::work::GraphPlace;
use crate::engine::context::Context;
use crate::engine::memory::MemoryKind;
use crate::engine::operation::{Copy, Launch, Operation, Set};
use crate::engine::stream::{Stream, StreamRole};

/// A record that is begun.
pub(crate) enum Begun {
    Kernel(Open<Kernel>),
    Memcpy(Open<Memcpy>),
    MemcpyPeer(Open<MemcpyPeer>),
    Memset(Open<Memset>),
}

impl Begun {
    pub(crate) fn finish(self, start: u64, end: u64) {
        match self {
            Self::Kernel(open) => open.finish(start, end),
            Self::Memcpy(open) => open.finish(start, end),
            Self::MemcpyPeer(open) => open.finish(start, end),
            Self::Memset(open) => open.finish(start, end),
        }
    }
}

/// Where work runs and who asked for it.
struct Place<'a> {
    context: &'a Arc<Context>,
    stream: &'a Arc<Stream>,
    graph: GraphPlace,
    correlation_id: u32,
}

/// The channel that all work of a stream goes through: 0 for the default stream, then one each.
fn channel_of(stream: &Stream) -> u32 {
    match stream.role {
        StreamRole::Legacy => 0,
        StreamRole::Blocking | StreamRole::NonBlocking => stream.id - 12,
    }
}

/// `CUpti_ChannelType`: compute 1, copy 2.
const COMPUTE: u32 = 1;
const COPY: u32 = 2;

/// Begins the record of an operation, if its kind is wanted. `queued` is 0 unless latencies are wanted.
pub(crate) fn begin(
    context: &Arc<Context>,
    stream: &Arc<Stream>,
    operation: &Operation,
    graph: GraphPlace,
    correlation_id: u32,
    queued: u64,
) -> Option<Begun> {
    let place = Place {
        context,
        stream,
        graph,
        correlation_id,
    };
    match operation {
        Operation::Kernel(launch) => {
            let kind = activity::kernel_kind()?;
            Some(Begun::Kernel(Open::begin(
                kernel(&place, launch, kind, queued),
                kind,
            )))
        }
        Operation::Copy(copy) => match copy.peers {
            Some(peers) if activity::is_enabled(kind::MEMCPY2) || activity::is_enabled(kind::MEMCPY) => {
                let record = memcpy_peer(&place, copy, peers);
                Some(Begun::MemcpyPeer(Open::begin(record, kind::MEMCPY2)))
            }
            None if activity::is_enabled(kind::MEMCPY) => {
                Some(Begun::Memcpy(Open::begin(memcpy(&place, copy), kind::MEMCPY)))
            }
            _ => None,
        },
        Operation::Set(set) if activity::is_enabled(kind::MEMSET) => {
            Some(Begun::Memset(Open::begin(memset(&place, set), kind::MEMSET)))
        }
        Operation::Set(_) | Operation::Host(_) | Operation::Empty => None,
    }
}

/// Begins the record of a whole graph.
pub(crate) fn begin_graph(
    context: &Arc<Context>,
    stream: &Arc<Stream>,
    graph_id: u32,
    correlation_id: u32,
) -> Open<GraphTrace> {
    let record = GraphTrace {
        kind: kind::GRAPH_TRACE,
        correlation_id,
        device_id: context.device.ordinal,
        graph_id,
        context_id: context.id,
        stream_id: stream.id,
        end_device_id: context.device.ordinal,
        end_context_id: context.id,
        ..GraphTrace::default()
    };
    Open::begin(record, kind::GRAPH_TRACE)
}

fn kernel(place: &Place<'_>, launch: &Launch, kind: u32, queued: u64) -> Kernel {
    static NEXT_GRID: AtomicU64 = AtomicU64::new(1);
    Kernel {
        kind,
        registers_per_thread: launch.function.registers(),
        device_id: place.context.device.ordinal,
        context_id: place.context.id,
        stream_id: place.stream.id,
        grid: launch.grid,
        block: launch.block,
        dynamic_shared_memory: launch.shared_bytes,
        correlation_id: place.correlation_id,
        grid_id: NEXT_GRID.fetch_add(1, Ordering::Relaxed),
        name: names::kept(&launch.function.name),
        queued,
        submitted: if queued == 0 { 0 } else { clock::now() },
        shared_memory_executed: 32_768,
        graph_node_id: place.graph.node_id,
        graph_id: place.graph.graph_id,
        channel_id: channel_of(place.stream),
        channel_type: COMPUTE,
        priority: place.stream.priority,
        source_graph_id: place.graph.graph_id,
        source_graph_node_id: place.graph.node_id,
        ..Kernel::default()
    }
}

fn memcpy(place: &Place<'_>, copy: &Copy) -> Memcpy {
    Memcpy {
        kind: kind::MEMCPY,
        copy_kind: copy_kind(copy),
        source_kind: copy.source_kind as u8,
        destination_kind: copy.destination_kind as u8,
        flags: u8::from(copy.is_async),
        bytes: copy.size,
        device_id: place.context.device.ordinal,
        context_id: place.context.id,
        stream_id: place.stream.id,
        correlation_id: place.correlation_id,
        graph_node_id: place.graph.node_id,
        graph_id: place.graph.graph_id,
        channel_id: channel_of(place.stream),
        channel_type: COPY,
        copy_count: 1,
        source_graph_id: place.graph.graph_id,
        source_graph_node_id: place.graph.node_id,
        ..Memcpy::default()
    }
}

fn memcpy_peer(place: &Place<'_>, copy: &Copy, (source, destination): (u32, u32)) -> MemcpyPeer {
    let device_of = |id: u32| Context::by_id(id).map_or(0, |context| context.device.ordinal);
    MemcpyPeer {
        kind: kind::MEMCPY2,
        copy_kind: 10,
        source_kind: copy.source_kind as u8,
        destination_kind: copy.destination_kind as u8,
        flags: u8::from(copy.is_async),
        bytes: copy.size,
        device_id: place.context.device.ordinal,
        context_id: place.context.id,
        stream_id: place.stream.id,
        source_device_id: device_of(source),
        source_context_id: source,
        destination_device_id: device_of(destination),
        destination_context_id: destination,
        correlation_id: place.correlation_id,
        graph_node_id: place.graph.node_id,
        graph_id: place.graph.graph_id,
        channel_id: channel_of(place.stream),
        channel_type: COPY,
        ..MemcpyPeer::default()
    }
}

fn memset(place: &Place<'_>, set: &Set) -> Memset {
    Memset {
        kind: kind::MEMSET,
        value: set.value,
        bytes: set.size * set.rows,
        device_id: place.context.device.ordinal,
        context_id: place.context.id,
        stream_id: place.stream.id,
        correlation_id: place.correlation_id,
        flags: u16::from(set.is_async),
        memory_kind: set.kind as u16,
        graph_node_id: place.graph.node_id,
        graph_id: place.graph.graph_id,
        channel_id: channel_of(place.stream),
        channel_type: COMPUTE,
        source_graph_id: place.graph.graph_id,
        source_graph_node_id: place.graph.node_id,
        ..Memset::default()
    }
}

/// `CUpti_ActivityMemcpyKind`.
fn copy_kind(copy: &Copy) -> u8 {
    let is_host = |kind: MemoryKind| matches!(kind, MemoryKind::Pageable | MemoryKind::Pinned);
    match (is_host(copy.source_kind), is_host(copy.destination_kind)) {
        (true, false) => 1,
        (false, true) => 2,
        (false, false) => 8,
        (true, true) => 9,
    }
}
