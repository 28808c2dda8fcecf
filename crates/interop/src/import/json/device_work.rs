//! What devices did: kernels, copies, sets, and waits.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{
    FlowShape, HealthCause, Kernel, KernelShape, MemoryCopy, MemorySet, Place, SetShape, SyncKind, SyncShape,
    Synchronization,
};
use tracesmith_format::{
    Bytes, ContextId, CorrelationId, DeviceId, GraphId, GraphNodeId, StreamId, Timestamp,
};

use crate::error::Error;
use crate::import::json::event::{Event, number_or_none, three};
use crate::import::json::number::{signed, unquoted, unsigned};
use crate::import::json::reading::Reading;
use crate::import::json::text::text_of;

/// Launches whose parameters wait for their kernel.
const WAITING_LAUNCHES: usize = 1 << 16;

/// What the arguments of device work say.
#[derive(Clone, Copy, Debug, Default)]
struct Work<'e> {
    correlation: CorrelationId,
    external: Option<u64>,
    device: Option<u64>,
    /// Whether the arguments state that there is no device, as those of a wait on the host do.
    on_no_device: bool,
    /// The pid of the process, in our own files of several processes.
    process: Option<i64>,
    context: u64,
    stream: Option<u64>,
    bytes: u64,
    value: u64,
    graph: u64,
    graph_node: u64,
    launch: LaunchParameters,
    registers: u64,
    priority: i64,
    queued: &'e [u8],
    event: u64,
    event_record: u64,
    event_stream: u64,
    kind: &'e [u8],
    is_collective: bool,
}

/// How a kernel was launched.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LaunchParameters {
    pub(super) grid: Option<[u32; 3]>,
    pub(super) block: Option<[u32; 3]>,
    pub(super) shared: u64,
}

/// Parameters that calls bring for kernels which do not have them, as in files of ROCm.
#[derive(Debug, Default)]
pub(super) struct Launches {
    waiting: FxHashMap<CorrelationId, LaunchParameters>,
    order: VecDeque<CorrelationId>,
}

impl Launches {
    pub(super) fn add(&mut self, correlation: CorrelationId, parameters: LaunchParameters) {
        // What is forgotten here is still with the call, in the rest of its arguments.
        if self.order.len() >= WAITING_LAUNCHES
            && let Some(oldest) = self.order.pop_front()
        {
            self.waiting.remove(&oldest);
        }
        self.order.push_back(correlation);
        self.waiting.insert(correlation, parameters);
    }

    fn take(&mut self, correlation: CorrelationId) -> LaunchParameters {
        self.waiting.remove(&correlation).unwrap_or_default()
    }
}

impl Reading<'_, '_, '_> {
    /// Reads the arguments of device work; what has no column is left in the rest.
    #[inline]
    fn work<'e>(&mut self, event: &Event<'e>) -> Work<'e> {
        let mut work = Work::default();
        self.rest.clear();
        for (key, value) in event.arguments() {
            match key {
                // 0 is that of a row without such a number: one that really is 0 stays in the rest.
                b"External id" | b"external id" if value != b"0" => work.external = unsigned(value),
                b"correlation" => work.correlation = CorrelationId(number_or_none(value)),
                b"device" => {
                    work.device = unsigned(value);
                    work.on_no_device = value == b"-1";
                }
                b"process" if signed(value).is_some() => work.process = signed(value),
                b"context" => work.context = number_or_none(value),
                b"stream" => work.stream = Some(number_or_none(value)),
                b"bytes" => work.bytes = unsigned(value).unwrap_or(0),
                b"value" => work.value = unsigned(value).unwrap_or(0),
                b"queued" => work.queued = value,
                b"registers per thread" => work.registers = number_or_none(value),
                b"shared memory" => work.launch.shared = number_or_none(value),
                b"grid" if value.first() == Some(&b'[') => work.launch.grid = Some(three(value)),
                b"block" if value.first() == Some(&b'[') => work.launch.block = Some(three(value)),
                b"graph id" | b"graph" => work.graph = number_or_none(value),
                b"graph node id" | b"graph node" => work.graph_node = number_or_none(value),
                b"priority" => work.priority = signed(value).unwrap_or(0),
                b"wait_on_stream" if unsigned(value).is_some_and(|stream| stream > 0) => {
                    work.event_stream = number_or_none(value);
                }
                b"wait_on_cuda_event_id" => work.event = number_or_none(value),
                b"wait_on_cuda_event_record_corr_id" => work.event_record = number_or_none(value),
                b"cuda_sync_kind" => work.kind = unquoted(value),
                // They follow from the shape and the device, where the file describes that.
                b"blocks per SM" | b"warps per SM" | b"est. achieved occupancy %"
                    if self.has_device_properties => {}
                b"blocks per SM" => {
                    self.keeps_occupancy = true;
                    self.rest.add(key, value);
                }
                b"memory bandwidth (GB/s)" => {}
                b"Collective name" => {
                    // Our own files have collectives as events of their own.
                    work.is_collective = !self.is_own;
                    self.rest.add(key, value);
                }
                _ => self.rest.add(key, value),
            }
        }
        work
    }

    /// Where device work ran. Without arguments that say so, the tracks of the file do.
    #[inline]
    fn place(&mut self, event: &Event<'_>, work: &Work<'_>) -> Place {
        if self.tracks.has_several_launchers() && work.process.is_none() {
            self.counts.doubt(
                HealthCause::OTHER,
                "device work in a file of several launching processes, given to the one that called last",
            );
        }
        let device = work.device.unwrap_or_else(|| unsigned(event.pid()).unwrap_or(0));
        let stream = work.stream.unwrap_or_else(|| stream_of_track(event.tid()));
        let process = match work.process {
            Some(pid) => self.tracks.numbered(self.builder, pid),
            None => self.tracks.main(self.builder),
        };
        let place = Place {
            process,
            device: if work.on_no_device {
                DeviceId::NONE
            } else {
                self.tracks.device(self.builder, device)
            },
            context: ContextId(u32::try_from(work.context).unwrap_or(u32::MAX)),
            stream: StreamId(stream),
            ..Place::default()
        };
        self.tracks.seen_at(self.builder, device, &place);
        place
    }

    #[inline]
    fn external_of(&mut self, time: Timestamp, work: &Work<'_>, place: &Place) -> Result<(), Error> {
        let shape = FlowShape {
            process: place.process,
            device: place.device,
            stream: place.stream,
            ..FlowShape::default()
        };
        self.external(time, work.correlation, work.external, shape)
    }

    pub(super) fn kernel(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let work = self.work(event);
        let (start, end) = self.span(event);
        let place = self.place(event, &work);
        let mut launch = work.launch;
        if launch.grid.is_none() || launch.shared == 0 {
            let called_with = self.launches.take(work.correlation);
            launch.grid = launch.grid.or(called_with.grid);
            launch.block = launch.block.or(called_with.block);
            launch.shared = launch.shared.max(called_with.shared);
        }
        let stack = match event.argument(b"call_stack") {
            Some(list) => self.stacks.of_list(self.builder, list)?,
            None => self.stack(event)?,
        };
        let [grid_x, grid_y, grid_z] = launch.grid.unwrap_or_default();
        let [block_x, block_y, block_z] = launch.block.unwrap_or_default();
        let queued = match work.queued {
            b"" | b"0" => Timestamp::NONE,
            text => self.times.moment(text).unwrap_or_default(),
        };
        let row = Kernel {
            start,
            end,
            queued,
            correlation: work.correlation,
            graph_node: GraphNodeId(work.graph_node),
            stack,
            place,
            shape: KernelShape {
                name: self.name(event)?,
                grid_x,
                grid_y,
                grid_z,
                block_x,
                block_y,
                block_z,
                registers: u16::try_from(work.registers).unwrap_or(u16::MAX),
                dynamic_shared: Bytes(launch.shared),
                graph: GraphId(work.graph),
                priority: i32::try_from(work.priority).unwrap_or(0),
                ..KernelShape::default()
            },
            ..Kernel::default()
        };
        self.push(&row)?;
        if let Some(external) = work
            .external
            .filter(|_| work.is_collective || self.collectives.are_awaited())
        {
            self.device_collective(event, external, &row)?;
        } else if work.is_collective {
            self.device_collective(event, 0, &row)?;
        }
        self.external_of(start, &work, &place)
    }

    pub(super) fn copy(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let work = self.work(event);
        let (start, end) = self.span(event);
        let place = self.place(event, &work);
        let (shape, is_said) = self.copy_names.copy(event.raw_name(), event.argument(b"kind"));
        if !is_said {
            self.rest.add_text(b"name", event.raw_name());
        }
        self.push(&MemoryCopy {
            start,
            end,
            bytes: Bytes(work.bytes),
            correlation: work.correlation,
            graph_node: GraphNodeId(work.graph_node),
            place,
            shape: tracesmith_format::tables::CopyShape {
                graph: GraphId(work.graph),
                ..shape
            },
            ..MemoryCopy::default()
        })?;
        self.external_of(start, &work, &place)
    }

    pub(super) fn set(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let work = self.work(event);
        let (start, end) = self.span(event);
        let place = self.place(event, &work);
        let (memory, is_said) = self.copy_names.set(event.raw_name());
        if !is_said {
            self.rest.add_text(b"name", event.raw_name());
        }
        self.push(&MemorySet {
            start,
            end,
            bytes: Bytes(work.bytes),
            value: work.value as u32,
            correlation: work.correlation,
            graph_node: GraphNodeId(work.graph_node),
            place,
            shape: SetShape {
                memory,
                graph: GraphId(work.graph),
                ..SetShape::default()
            },
            ..MemorySet::default()
        })?;
        self.external_of(start, &work, &place)
    }

    pub(super) fn sync(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let work = self.work(event);
        let (start, end) = self.span(event);
        let place = self.place(event, &work);
        let said = if work.kind.is_empty() {
            event.raw_name()
        } else {
            work.kind
        };
        let kind = match said {
            b"Event Sync" => SyncKind::EVENT_WAIT,
            b"Stream Wait Event" => SyncKind::STREAM_WAIT_EVENT,
            b"Stream Sync" => SyncKind::STREAM_WAIT,
            b"Context Sync" => SyncKind::CONTEXT_WAIT,
            b"Device Sync" => SyncKind::DEVICE_WAIT,
            b"Event Record" => SyncKind::EVENT_RECORD,
            other => {
                self.counts.skip(&format!("kind of wait {}", text_of(other)), 1);
                SyncKind::UNKNOWN
            }
        };
        self.push(&Synchronization {
            start,
            end,
            correlation: work.correlation,
            event: work.event,
            event_record: work.event_record,
            event_stream: StreamId(work.event_stream),
            place,
            shape: SyncShape { kind, result: 0 },
            ..Synchronization::default()
        })?;
        self.external_of(start, &work, &place)
    }
}

/// The stream of a track that is called `stream 7`, or by its number.
fn stream_of_track(tid: &[u8]) -> u64 {
    if let Some(number) = signed(tid) {
        return u64::try_from(number).unwrap_or(0);
    }
    let text = unquoted(tid);
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    unsigned(&text[text.len() - digits..]).unwrap_or(0)
}
