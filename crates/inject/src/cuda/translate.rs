//! CUPTI's records as they travel.

use tracesmith_cuda::cupti::{
    ApiDomain, Cupti,
    activity::{self, Activity as Record},
};
use tracesmith_wire::record;

use super::{calls, kinds::plain_name};
use crate::{
    clock,
    replay_capture::ReplayCapture,
    sink::{ActivityRing, Sink},
    stacks::Stacks,
};

/// Codes of the format for synchronisations, allocations and interfaces.
pub(super) mod code {
    pub(in crate::cuda) const EVENT_SYNC: u8 = 1;
    pub(in crate::cuda) const STREAM_WAIT: u8 = 2;
    pub(in crate::cuda) const STREAM_SYNC: u8 = 3;
    pub(in crate::cuda) const CONTEXT_SYNC: u8 = 4;
    pub(in crate::cuda) const EVENT_RECORD: u8 = 6;
    pub(super) const ALLOCATE: u8 = 1;
    pub(super) const FREE: u8 = 2;
    pub(super) const POOL_CREATE: u8 = 3;
    pub(super) const POOL_DESTROY: u8 = 4;
    pub(super) const POOL_TRIM: u8 = 5;
    pub(in crate::cuda) const CUDA_DRIVER: u8 = 1;
    pub(in crate::cuda) const CUDA_RUNTIME: u8 = 2;
    pub(super) const LEGACY_DEFAULT: u8 = 1;
    pub(super) const BLOCKING: u8 = 3;
    pub(super) const NON_BLOCKING: u8 = 4;
}

/// `CUPTI_SYNCHRONIZATION_INVALID_VALUE`.
pub(super) const NONE: u32 = u32::MAX;

/// Where records go.
pub(super) struct Translator<'s> {
    pub(super) cupti: &'s Cupti,
    pub(super) sink: &'s Sink,
    pub(super) activity: &'s mut ActivityRing,
    pub(super) stacks: &'s Stacks,
    pub(super) replay_capture: &'s ReplayCapture,
}

impl Translator<'_> {
    /// Sends one record on.
    pub(super) fn record(&mut self, record: &Record<'_>) {
        let own = self.replay_capture;
        let is_own = match record {
            Record::Copy(copy, _) => own.is_own(copy.correlation(), copy.start(), copy.end()),
            Record::Synchronization(sync, _) => own.is_own(sync.correlation(), sync.start(), sync.end()),
            Record::Memory(memory, _) => own.is_own(memory.correlation(), memory.time(), memory.time()),
            Record::Stream(stream) => own.is_own_stream(stream.correlation()),
            _ => false,
        };
        if is_own {
            return;
        }
        let is_after_window = match record {
            Record::Kernel(kernel, ..) => calls::is_after_window(kernel.correlation(), kernel.start()),
            Record::Copy(copy, _) => calls::is_after_window(copy.correlation(), copy.start()),
            Record::PeerCopy(copy) => calls::is_after_window(copy.correlation(), copy.start()),
            Record::Set(set) => calls::is_after_window(set.correlation(), set.start()),
            _ => false,
        };
        if is_after_window {
            return;
        }
        match record {
            Record::Kernel(kernel, from_13_0, from_13_1) => {
                let launched = from_13_0.is_some_and(|kernel| kernel.device_launched() != 0);
                let priority = from_13_1.map_or(0, activity::KernelFrom13_1::priority);
                self.kernel(*kernel, launched, priority);
            }
            Record::Driver(call) => self.api(*call, ApiDomain::Driver),
            Record::Runtime(call) => self.api(*call, ApiDomain::Runtime),
            Record::Copy(copy, from_12_8) => self.copy(*copy, from_12_8.map_or(0, |copy| copy.copies())),
            Record::PeerCopy(copy) => self.peer_copy(*copy),
            Record::Set(set) => self.set(*set),
            Record::Synchronization(sync, from_12_8) => self.synchronization(*sync, *from_12_8),
            Record::Event(event, from_12_8) => self.event(*event, *from_12_8),
            Record::Memory(memory, from_12_6) => self.memory(*memory, *from_12_6),
            Record::Pool(pool) => self.pool(*pool),
            Record::Context(context, from_12_4) => self.context(*context, *from_12_4),
            Record::Stream(stream) => self.stream(*stream),
            Record::Device(device) => self.device(*device),
            Record::Overhead(overhead, from_12_3) => self.overhead(*overhead, *from_12_3),
            Record::GraphTrace(graph) => self.graph(*graph),
            Record::Jit(jit) => self.jit(*jit),
            Record::Other(_) => self.activity.losses.unknown += 1,
        }
    }

    fn check_times(&mut self, start: u64, end: u64) {
        if start == 0 || end == 0 {
            self.activity.losses.zero_time += 1;
        }
    }

    fn name_at(&mut self, address: usize) -> u32 {
        // SAFETY: CUPTI's record was just handed over, and its name is alive
        // until the module is unloaded, which waits for this callback.
        match unsafe { activity::text(address) } {
            Some(text) => self.activity.text_at(address, text, self.sink),
            None => 0,
        }
    }

    fn kernel(&mut self, kernel: activity::Kernel<'_>, device_launched: bool, priority: i32) {
        self.check_times(kernel.start(), kernel.end());
        let name = self.name_at(kernel.name_address());
        let carveout = match kernel.carveout_requested() {
            0 => u8::MAX,
            _ => kernel.carveout(),
        };
        self.activity.push(&record::Kernel {
            start: kernel.start(),
            end: kernel.end(),
            completed: kernel.completed(),
            queued: kernel.queued(),
            submitted: kernel.submitted(),
            grid_id: kernel.grid_id(),
            graph_node: kernel.graph_node(),
            local_total: kernel.local_total(),
            correlation: u64::from(kernel.correlation()),
            device: kernel.device(),
            context: kernel.context(),
            stream: kernel.stream(),
            name,
            graph: kernel.graph(),
            grid: [kernel.grid_x(), kernel.grid_y(), kernel.grid_z()],
            block: [kernel.block_x(), kernel.block_y(), kernel.block_z()],
            cluster: [kernel.cluster_x(), kernel.cluster_y(), kernel.cluster_z()],
            static_shared: kernel.static_shared(),
            dynamic_shared: kernel.dynamic_shared(),
            shared_executed: kernel.shared_executed(),
            local_per_thread: kernel.local_per_thread(),
            max_active_clusters: kernel.max_active_clusters(),
            max_cluster_size: kernel.max_cluster_size(),
            channel: kernel.channel(),
            priority,
            registers: kernel.registers(),
            channel_kind: kernel.channel_kind() as u8,
            launch: kernel.launch(),
            shared_config: kernel.shared_config(),
            shared_carveout: carveout,
            cache_requested: kernel.cache_config() & 0xf,
            cache_executed: kernel.cache_config() >> 4,
            cluster_policy: kernel.cluster_policy() as u8,
            device_launched: u8::from(device_launched),
            reserved: [0; 2],
            stack: self.stacks.of_work(kernel.correlation(), kernel.graph_node()),
        });
    }

    fn api(&mut self, call: activity::Api<'_>, domain: ApiDomain) {
        let name = match self.cupti.function_name(domain, call.function()) {
            Some(name) => {
                self.activity
                    .text_at(name.as_ptr() as usize, plain_name(name).as_bytes(), self.sink)
            }
            None => 0,
        };
        self.activity.push(&record::ApiCall {
            start: call.start(),
            end: call.end(),
            correlation: u64::from(call.correlation()),
            thread: call.thread(),
            name,
            result: call.result(),
            stack: self.stacks.of_call(call.correlation()),
            // Below 2000 in all versions.
            function: u16::try_from(call.function()).unwrap_or(u16::MAX),
            clock: record::DEVICE_CLOCK,
            domain: match domain {
                ApiDomain::Driver => code::CUDA_DRIVER,
                ApiDomain::Runtime => code::CUDA_RUNTIME,
            },
            reserved: [0; 4],
        });
    }

    fn copy(&mut self, copy: activity::Copy<'_>, copies: u64) {
        self.check_times(copy.start(), copy.end());
        self.activity.push(&record::MemoryCopy {
            start: copy.start(),
            end: copy.end(),
            bytes: copy.bytes(),
            graph_node: copy.graph_node(),
            copies,
            correlation: u64::from(copy.correlation()),
            runtime_correlation: u64::from(copy.runtime_correlation()),
            device: copy.device(),
            context: copy.context(),
            stream: copy.stream(),
            graph: copy.graph(),
            channel: copy.channel(),
            channel_kind: copy.channel_kind() as u8,
            direction: copy.direction(),
            source_memory: copy.source_memory(),
            destination_memory: copy.destination_memory(),
            asynchronous: copy.flags() & 1,
            device_launched: copy.device_launched() & 1,
            stack: self.stacks.of_work(copy.correlation(), copy.graph_node()),
            ..record::MemoryCopy::default()
        });
    }

    fn peer_copy(&mut self, copy: activity::PeerCopy<'_>) {
        self.check_times(copy.start(), copy.end());
        self.activity.push(&record::MemoryCopy {
            start: copy.start(),
            end: copy.end(),
            bytes: copy.bytes(),
            graph_node: copy.graph_node(),
            correlation: u64::from(copy.correlation()),
            device: copy.device(),
            context: copy.context(),
            stream: copy.stream(),
            graph: copy.graph(),
            source_device: copy.source_device(),
            source_context: copy.source_context(),
            destination_device: copy.destination_device(),
            destination_context: copy.destination_context(),
            channel: copy.channel(),
            channel_kind: copy.channel_kind() as u8,
            direction: copy.direction(),
            source_memory: copy.source_memory(),
            destination_memory: copy.destination_memory(),
            asynchronous: copy.flags() & 1,
            peer: 1,
            stack: self.stacks.of_work(copy.correlation(), copy.graph_node()),
            ..record::MemoryCopy::default()
        });
    }

    fn set(&mut self, set: activity::Set<'_>) {
        self.check_times(set.start(), set.end());
        self.activity.push(&record::MemorySet {
            start: set.start(),
            end: set.end(),
            bytes: set.bytes(),
            graph_node: set.graph_node(),
            value: set.value(),
            correlation: u64::from(set.correlation()),
            device: set.device(),
            context: set.context(),
            stream: set.stream(),
            graph: set.graph(),
            channel: set.channel(),
            channel_kind: set.channel_kind() as u8,
            memory: set.memory() as u8,
            asynchronous: (set.flags() & 1) as u8,
            device_launched: set.device_launched() & 1,
            stack: self.stacks.of_work(set.correlation(), set.graph_node()),
        });
    }

    fn synchronization(
        &mut self,
        sync: activity::Synchronization<'_>,
        from_12_8: Option<activity::SynchronizationFrom12_8<'_>>,
    ) {
        self.activity.push(&record::Synchronization {
            start: sync.start(),
            end: sync.end(),
            event_record: from_12_8.map_or(0, |sync| sync.event_record()),
            correlation: u64::from(sync.correlation()),
            event: some(sync.event()),
            context: sync.context(),
            stream: sync.stream(),
            result: from_12_8.map_or(0, |sync| sync.result()),
            // The first codes of the format are CUPTI's.
            kind: u8::try_from(sync.sync_kind()).unwrap_or(0),
            device: NONE,
            stack: self.stacks.of_call(sync.correlation()),
            ..record::Synchronization::default()
        });
    }

    fn event(&mut self, event: activity::Event<'_>, from_12_8: Option<activity::EventFrom12_8<'_>>) {
        let device_time = from_12_8.map_or(0, |event| event.device_time());
        self.activity.push(&record::Synchronization {
            // The call has times of its own; this is when it took effect.
            start: device_time,
            end: device_time,
            device_time,
            event_record: from_12_8.map_or(0, |event| event.event_record()),
            correlation: u64::from(event.correlation()),
            event: event.event(),
            context: event.context(),
            stream: event.stream(),
            kind: code::EVENT_RECORD,
            device: from_12_8.map_or(NONE, |event| event.device()),
            ..record::Synchronization::default()
        });
    }

    fn memory(&mut self, memory: activity::Memory<'_>, from_12_6: Option<activity::MemoryFrom12_6<'_>>) {
        let name = self.name_at(memory.name_address());
        let source = from_12_6.map_or(0, |memory| self.name_at(memory.source_address()));
        let asynchronous = memory.asynchronous() != 0;
        let pooled = memory.pool_kind() != 0;
        self.activity.push(&record::Allocation {
            time: memory.time(),
            address: memory.address(),
            bytes: memory.bytes(),
            pool: if pooled { memory.pool() } else { 0 },
            pool_size: if pooled { memory.pool_size() } else { 0 },
            pool_used: if pooled { memory.pool_used() } else { 0 },
            pool_threshold: if pooled { memory.pool_threshold() } else { 0 },
            code_address: memory.code_address(),
            correlation: u64::from(memory.correlation()),
            device: memory.device(),
            context: memory.context(),
            stream: if asynchronous { memory.stream() } else { NONE },
            name,
            source,
            thread: 0,
            operation: match memory.operation() {
                1 => code::ALLOCATE,
                2 => code::FREE,
                _ => 0,
            },
            memory: memory.memory() as u8,
            asynchronous: u8::from(asynchronous),
            pool_kind: memory.pool_kind() as u8,
            stack: self.stacks.of_call(memory.correlation()),
        });
    }

    fn pool(&mut self, pool: activity::Pool<'_>) {
        self.activity.push(&record::Pool {
            time: pool.time(),
            pool: pool.pool(),
            size: pool.size(),
            used: pool.used(),
            threshold: pool.threshold(),
            min_bytes_to_keep: pool.min_bytes_to_keep(),
            correlation: u64::from(pool.correlation()),
            device: pool.device(),
            operation: match pool.operation() {
                1 => code::POOL_CREATE,
                2 => code::POOL_DESTROY,
                3 => code::POOL_TRIM,
                _ => 0,
            },
            pool_kind: pool.pool_kind() as u8,
            reserved: [0; 2],
        });
    }

    fn context(&mut self, context: activity::Context<'_>, from_12_4: Option<activity::ContextFrom12_4<'_>>) {
        let green = from_12_4.filter(|context| context.green() != 0);
        self.sink.define(&record::Context {
            time: clock::now(),
            context: context.context(),
            device: context.device(),
            default_stream: u32::from(context.default_stream()),
            parent: green.map_or(0, |context| context.parent()),
            multiprocessors: green.map_or(0, |context| u32::from(context.multiprocessors())),
            destroyed: 0,
        });
    }

    fn stream(&mut self, stream: activity::Stream<'_>) {
        self.sink.define(&record::Stream {
            time: clock::now(),
            context: stream.context(),
            stream: stream.stream(),
            priority: stream.priority(),
            kind: match stream.flag() {
                1 => code::BLOCKING,
                2 => code::NON_BLOCKING,
                3 => code::LEGACY_DEFAULT,
                _ => 0,
            },
            destroyed: 0,
            reserved: [0; 2],
        });
    }

    fn device(&mut self, device: activity::Device<'_>) {
        let mut uuid = [0; 16];
        uuid[..8].copy_from_slice(&device.uuid_high().to_ne_bytes());
        uuid[8..].copy_from_slice(&device.uuid_low().to_ne_bytes());
        // SAFETY: the record was just handed over; CUPTI keeps device names.
        let name = unsafe { activity::text(device.name_address()) }.unwrap_or_default();
        let record = record::Device {
            uuid,
            memory: device.memory(),
            memory_bandwidth: device.memory_bandwidth().saturating_mul(1000),
            device: device.device(),
            capability: [device.capability_major(), device.capability_minor()],
            multiprocessors: device.multiprocessors(),
            warp_size: device.warp_size(),
            warps_per_multiprocessor: device.warps(),
            blocks_per_multiprocessor: device.blocks(),
            registers_per_multiprocessor: device.registers(),
            shared_per_multiprocessor: device.shared(),
            shared_per_block: device.shared_per_block(),
            cache: device.cache(),
            clock_khz: device.clock(),
            copy_engines: device.copy_engines(),
            reserved: 0,
        };
        self.sink.define_with(&record, name);
    }

    fn overhead(
        &mut self,
        overhead: activity::Overhead<'_>,
        from_12_3: Option<activity::OverheadFrom12_3<'_>>,
    ) {
        // `CUPTI_ACTIVITY_OBJECT_THREAD`.
        let of_thread = overhead.object_kind() == 2;
        let name = self
            .activity
            .text(overhead_name(overhead.overhead()).as_bytes(), self.sink);
        self.activity.push(&record::Overhead {
            start: overhead.start(),
            end: overhead.end(),
            correlation: from_12_3.map_or(0, |overhead| u64::from(overhead.correlation())),
            thread: if of_thread { overhead.thread() } else { 0 },
            name,
        });
    }

    fn graph(&mut self, graph: activity::GraphTrace<'_>) {
        self.check_times(graph.start(), graph.end());
        self.activity.push(&record::GraphLaunch {
            start: graph.start(),
            end: graph.end(),
            correlation: u64::from(graph.correlation()),
            device: graph.device(),
            context: graph.context(),
            stream: graph.stream(),
            graph: graph.graph(),
            end_device: graph.end_device(),
            end_context: graph.end_context(),
            stack: self.stacks.of_call(graph.correlation()),
            reserved: 0,
        });
    }

    fn jit(&mut self, jit: activity::Jit<'_>) {
        let name = self
            .activity
            .text(compile_name(jit.entry(), jit.operation()).as_bytes(), self.sink);
        self.activity.push(&record::Compile {
            start: jit.start(),
            end: jit.end(),
            bytes: jit.bytes(),
            correlation: u64::from(jit.correlation()),
            thread: jit.thread(),
            device: jit.device(),
            name,
            reserved: 0,
        });
    }
}

fn some(value: u32) -> u32 {
    if value == NONE { 0 } else { value }
}

/// Names of `CUpti_ActivityOverheadKind`.
fn overhead_name(number: u32) -> &'static str {
    match (number & 0xffff, number >> 16) {
        (1, _) => "driver compiler",
        (_, 1) => "CUPTI buffer flush",
        (_, 2) => "CUPTI instrumentation",
        (_, 3) => "CUPTI resource",
        (_, 4) => "module loading by the runtime",
        (_, 5) => "lazy function loading",
        (_, 6) => "command buffer full",
        (_, 7) => "CUPTI buffer request",
        (_, 8) => "unified memory set-up",
        _ => "other",
    }
}

/// Names of `CUpti_ActivityJitEntryType` and `CUpti_ActivityJitOperationType`.
fn compile_name(entry: u32, operation: u32) -> &'static str {
    match (entry, operation) {
        (1, 1) => "cubin of PTX from the cache",
        (1, 2) => "cubin of PTX into the cache",
        (1, 3) => "PTX to cubin",
        (2, 1) => "PTX of NVVM IR from the cache",
        (2, 2) => "PTX of NVVM IR into the cache",
        (2, 3) => "NVVM IR to PTX",
        _ => "compilation",
    }
}
