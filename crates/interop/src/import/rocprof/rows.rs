//! What both kinds of rocprofv3 file hold, as rows of the model.
//!
//! HIP knows no contexts: each device gets one, so that equal queue numbers of two devices stay apart. A stream of HIP
//! is a stream, and the hardware queue that it ran in is the place's channel; files of versions that do not name streams
//! have their queues as streams.

use tracesmith_format::tables::*;
use tracesmith_format::{
    Address, Bytes, ClockId, ContextId, CorrelationId, DeviceId, HostId, ProcessId, StreamId, StringId,
    ThreadId, Timestamp,
};

use crate::error::Error;
use crate::import::Builder;

/// Writes rows of one trace.
pub(super) struct Rows {
    pub(super) clock: ClockId,
    pub(super) host: HostId,
}

/// What every record says.
#[derive(Clone, Copy, Default)]
pub(super) struct Common {
    pub(super) process: ProcessId,
    pub(super) thread: u64,
    /// Joins calls and work.
    pub(super) correlation: u64,
    /// The program's own number; 0 is none.
    pub(super) external: u64,
    pub(super) start: u64,
    pub(super) end: u64,
}

/// Where device work ran.
#[derive(Clone, Copy, Default)]
pub(super) struct Queue {
    pub(super) device: DeviceId,
    pub(super) queue: u64,
    pub(super) stream: Option<u64>,
}

/// What was launched.
#[derive(Clone, Copy, Default)]
pub(super) struct Dispatch {
    pub(super) number: u64,
    pub(super) name: StringId,
    pub(super) demangled: StringId,
    /// In work items.
    pub(super) grid: [u64; 3],
    pub(super) workgroup: [u64; 3],
    /// Local data share of a workgroup, the kernel's own and all of it.
    pub(super) shared_static: u64,
    pub(super) shared: u64,
    /// Scratch memory of a work item.
    pub(super) scratch: u64,
    /// Vector registers of a work item.
    pub(super) registers: u64,
}

/// What was copied.
#[derive(Clone, Copy, Default)]
pub(super) struct Copied {
    pub(super) bytes: u64,
    pub(super) direction: CopyDirection,
    /// None for the host.
    pub(super) source: DeviceId,
    pub(super) destination: DeviceId,
}

/// What was done with memory.
#[derive(Clone, Copy)]
pub(super) struct Allocated<'a> {
    pub(super) operation: MemoryOperation,
    pub(super) memory: MemoryKind,
    pub(super) address: u64,
    pub(super) bytes: u64,
    pub(super) category: &'a str,
}

impl Rows {
    pub(super) fn new(host: HostId, builder: &mut Builder<'_, '_>) -> Result<Self, Error> {
        Ok(Rows {
            clock: builder.clock(ClockKind::MONOTONIC, "rocprofiler-sdk")?,
            host,
        })
    }

    pub(super) fn kernel(
        &self,
        common: &Common,
        queue: &Queue,
        dispatch: &Dispatch,
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        let (start, end) = interval(common, builder);
        let place = place(common, queue, builder);
        let blocks = |axis: usize| narrow(dispatch.grid[axis].div_ceil(dispatch.workgroup[axis].max(1)));
        let row = Kernel {
            start,
            end,
            correlation: CorrelationId(common.correlation),
            grid_id: dispatch.number as i64,
            place,
            shape: KernelShape {
                name: dispatch.name,
                demangled: dispatch.demangled,
                grid_x: blocks(0),
                grid_y: blocks(1),
                grid_z: blocks(2),
                block_x: narrow(dispatch.workgroup[0]),
                block_y: narrow(dispatch.workgroup[1]),
                block_z: narrow(dispatch.workgroup[2]),
                static_shared: Bytes(dispatch.shared_static),
                dynamic_shared: Bytes(dispatch.shared.saturating_sub(dispatch.shared_static)),
                shared_executed: Bytes(dispatch.shared),
                local_per_thread: Bytes(dispatch.scratch),
                registers: u16::try_from(dispatch.registers).unwrap_or(u16::MAX),
                ..KernelShape::default()
            },
            ..Kernel::default()
        };
        builder.push(self.clock, &row)?;
        self.external(common, builder)
    }

    pub(super) fn copy(
        &self,
        common: &Common,
        stream: Option<u64>,
        copied: &Copied,
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        let (start, end) = interval(common, builder);
        let device = if copied.destination.is_some() {
            copied.destination
        } else {
            copied.source
        };
        let queue = Queue {
            device,
            queue: 0,
            stream,
        };
        let place = place(common, &queue, builder);
        let peer = copied.source.is_some() && copied.source != device;
        let direction = match copied.direction {
            CopyDirection::DEVICE_TO_DEVICE if peer => CopyDirection::PEER,
            direction => direction,
        };
        let row = MemoryCopy {
            start,
            end,
            bytes: Bytes(copied.bytes),
            correlation: CorrelationId(common.correlation),
            place,
            shape: CopyShape {
                direction,
                source_device: if peer { copied.source } else { DeviceId::NONE },
                ..CopyShape::default()
            },
            ..MemoryCopy::default()
        };
        builder.push(self.clock, &row)?;
        self.external(common, builder)
    }

    pub(super) fn api_call(
        &self,
        common: &Common,
        domain: &str,
        name: &str,
        function: u32,
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        let (start, end) = interval(common, builder);
        let row = ApiCall {
            start,
            end,
            correlation: CorrelationId(common.correlation),
            caller: caller(common, builder),
            shape: ApiShape {
                name: builder.string(name)?,
                domain: api_domain(domain),
                function,
                result: 0,
            },
            ..ApiCall::default()
        };
        builder.push(self.clock, &row)?;
        self.external(common, builder)
    }

    pub(super) fn marker(
        &self,
        common: &Common,
        name: &str,
        operation: &str,
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        let (start, end) = interval(common, builder);
        let kind = match operation {
            "roctxRangeStartA" | "roctxRangeStop" | "roctxProcessRangeA" => MarkerKind::FREE_RANGE,
            _ if common.start == common.end => MarkerKind::INSTANT,
            _ if end == Timestamp::NONE => MarkerKind::OPEN_NESTED_RANGE,
            _ => MarkerKind::NESTED_RANGE,
        };
        let row = Marker {
            start,
            end,
            range: common.correlation,
            caller: caller(common, builder),
            shape: MarkerShape {
                name: builder.string(name)?,
                domain: builder.string("roctx")?,
                kind,
                ..MarkerShape::default()
            },
            ..Marker::default()
        };
        builder.push(self.clock, &row)
    }

    pub(super) fn allocation(
        &self,
        common: &Common,
        device: DeviceId,
        allocated: &Allocated<'_>,
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        let (time, _) = interval(common, builder);
        let row = Allocation {
            time,
            address: Address(allocated.address),
            bytes: Bytes(allocated.bytes),
            correlation: CorrelationId(common.correlation),
            place: Place {
                process: common.process,
                device,
                context: ContextId(device.0),
                ..Place::default()
            },
            shape: AllocationShape {
                operation: allocated.operation,
                memory: allocated.memory,
                thread: ThreadId(common.thread),
                category: builder.string(allocated.category)?,
                ..AllocationShape::default()
            },
            ..Allocation::default()
        };
        builder.push(self.clock, &row)
    }

    /// What a hardware counter counted during one dispatch.
    pub(super) fn counter(
        &self,
        common: &Common,
        device: DeviceId,
        name: &str,
        instance: u32,
        value: f64,
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        if common.start == 0 {
            builder.skip("counter values without a time", 1);
            return Ok(());
        }
        let row = Counter {
            time: Timestamp(common.start),
            value,
            track: CounterTrack {
                name: builder.string(name)?,
                process: common.process,
                device,
                instance,
                kind: CounterKind::DELTA,
                ..CounterTrack::default()
            },
        };
        builder.push(self.clock, &row)
    }

    /// Ties work to the number that the program itself gave it.
    fn external(&self, common: &Common, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
        if common.external == 0 {
            return Ok(());
        }
        let row = Flow {
            time: Timestamp(common.start),
            flow: common.external,
            correlation: CorrelationId(common.correlation),
            shape: FlowShape {
                kind: FlowKind::EXTERNAL,
                phase: FlowPhase::END,
                process: common.process,
                thread: ThreadId(common.thread),
                ..FlowShape::default()
            },
        };
        builder.push(self.clock, &row)
    }
}

/// Start and end; what is not known or runs backwards is counted and left without.
fn interval(common: &Common, builder: &mut Builder<'_, '_>) -> (Timestamp, Timestamp) {
    if common.start == 0 {
        builder.doubt(HealthCause::ZERO_TIME, "records without a start", 1);
    }
    if common.end < common.start {
        builder.doubt(HealthCause::OTHER, "records that end before they start", 1);
        return (Timestamp(common.start), Timestamp::NONE);
    }
    (Timestamp(common.start), Timestamp(common.end))
}

fn place(common: &Common, queue: &Queue, builder: &mut Builder<'_, '_>) -> Place {
    let place = Place {
        process: common.process,
        device: queue.device,
        context: ContextId(queue.device.0),
        stream: StreamId(queue.stream.unwrap_or(queue.queue)),
        channel: narrow(queue.queue),
        channel_kind: if queue.queue == 0 {
            ChannelKind::UNKNOWN
        } else {
            ChannelKind::COMPUTE
        },
    };
    builder.seen_at(&place);
    place
}

fn caller(common: &Common, builder: &mut Builder<'_, '_>) -> Caller {
    let thread = ThreadId(common.thread);
    builder.thread_mut(common.process, thread);
    Caller {
        process: common.process,
        thread,
    }
}

fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn api_domain(name: &str) -> ApiDomain {
    match name {
        name if name.starts_with("HIP") => ApiDomain::HIP,
        name if name.starts_with("HSA") => ApiDomain::HSA,
        _ => ApiDomain::UNKNOWN,
    }
}

/// The direction that rocprofv3 calls so, with or without its prefix.
pub(super) fn direction(name: &str) -> CopyDirection {
    match name.trim_start_matches("MEMORY_COPY_") {
        "HOST_TO_DEVICE" => CopyDirection::HOST_TO_DEVICE,
        "DEVICE_TO_HOST" => CopyDirection::DEVICE_TO_HOST,
        "DEVICE_TO_DEVICE" => CopyDirection::DEVICE_TO_DEVICE,
        "HOST_TO_HOST" => CopyDirection::HOST_TO_HOST,
        _ => CopyDirection::UNKNOWN,
    }
}

/// The operation that rocprofv3 calls so, with or without its prefix.
pub(super) fn memory_operation(name: &str) -> MemoryOperation {
    let name = name.trim_start_matches("MEMORY_ALLOCATION_");
    match name.trim_start_matches("SCRATCH_MEMORY_") {
        "ALLOCATE" | "ALLOC" => MemoryOperation::ALLOCATE,
        "FREE" => MemoryOperation::FREE,
        "VMEM_ALLOCATE" => MemoryOperation::CREATE,
        "VMEM_FREE" => MemoryOperation::RELEASE,
        "ASYNC_RECLAIM" => MemoryOperation::POOL_TRIM,
        _ => MemoryOperation::UNKNOWN,
    }
}
