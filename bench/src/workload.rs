//! Rows as a training job makes them: 200 kernels over 8 streams, with jitter in every time.
//!
//! A step is 40 layers, each two dozen kernels in a fixed order on a stream of its own, then 140 others (loss, optimiser). In one launch of 30
//! something else runs, grids follow a batch size that changes every few steps, durations scatter by a few percent around a
//! mean of their own, gaps are a few hundred nanoseconds with a rare long one, and records arrive in the order in which
//! kernels *end*, as from CUPTI. API calls are launches for the most part, with copies, event records, waits and queries
//! between them, and a second thread that calls now and then.

use tracesmith_format::tables::{
    ApiCall, ApiDomain, ApiShape, Caller, ChannelKind, Kernel, KernelShape, Place,
};
use tracesmith_format::{
    Bytes, ContextId, CorrelationId, DeviceId, ProcessId, StreamId, StringId, ThreadId, Timestamp,
};

/// Kernel names in the workload.
pub const NAMES: usize = 200;
/// Streams in the workload.
pub const STREAMS: usize = 8;
/// Kernels of a layer.
const LAYER: usize = 24;
/// Layers of a step.
const LAYERS: usize = 40;
/// Launches of one step.
const STEP: usize = LAYER * LAYERS + 140;

/// A small generator of random numbers (xorshift64*), so that the same seed gives the same trace everywhere.
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    /// Starts from a seed.
    pub fn new(seed: u64) -> Self {
        Random(seed.max(1))
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.number() % limit
    }

    /// A number around 0 with this spread: the sum of four uniform ones.
    pub fn around(&mut self, spread: u64) -> i64 {
        let sum: u64 = (0..4).map(|_| self.below(spread + 1)).sum();
        sum as i64 - 2 * spread as i64
    }
}

/// Names as a compiler mangles them, of realistic lengths.
pub fn kernel_names() -> Vec<String> {
    (0..NAMES)
        .map(|i| {
            let filler =
                "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEE";
            format!("{}{i:03}EEviT0_T1_", &filler[..30 + i % 60])
        })
        .collect()
}

/// An endless launch sequence: API calls and the kernels that they launch.
pub struct Training {
    random: Random,
    order: Vec<(usize, usize)>,
    launched: u64,
    host_time: u64,
    stream_free: [u64; STREAMS],
    waiting: Vec<Kernel>,
    names: Vec<StringId>,
    latency: bool,
}

impl Training {
    /// A job whose kernels have these names.
    pub fn new(seed: u64, names: &[StringId]) -> Self {
        let random = Random::new(seed);
        let layer_kernel = |at: usize| (at % LAYER + LAYER * (at / LAYER % 2), at / LAYER % STREAMS);
        let other_kernel = |at: usize| (2 * LAYER + at, 0);
        let order = (0..LAYER * LAYERS)
            .map(layer_kernel)
            .chain((0..140).map(other_kernel))
            .collect();
        Training {
            random,
            order,
            launched: 0,
            host_time: 1_700_000_000_000_000_000,
            stream_free: [0; STREAMS],
            waiting: Vec::new(),
            names: names.to_vec(),
            latency: false,
        }
    }

    /// The same job recorded with latency timestamps: kernels know when they were queued and submitted.
    pub fn with_latency(mut self) -> Self {
        self.latency = true;
        self
    }

    /// The next launch: the call, and its kernel with the times it will have.
    fn launch(&mut self) -> (ApiCall, Kernel) {
        let random = &mut self.random;
        let (mut name, stream) = self.order[(self.launched as usize) % STEP];
        if random.below(30) == 0 {
            name = random.below(NAMES as u64) as usize;
        }
        self.launched += 1;
        let correlation = CorrelationId(self.launched * 3 + random.below(2));
        let gap = if random.below(400) == 0 {
            random.below(3_000_000)
        } else {
            300 + random.below(900)
        };
        self.host_time += gap;
        let call_start = self.host_time;
        self.host_time += (3_500 + random.around(400)) as u64;
        let other = if random.below(6) == 0 {
            1 + random.below(11)
        } else {
            0
        };
        let call = ApiCall {
            start: Timestamp(call_start),
            end: Timestamp(self.host_time),
            correlation,
            caller: Caller {
                process: ProcessId(1),
                thread: ThreadId(if random.below(12) == 0 { 4712 } else { 4711 }),
            },
            shape: ApiShape {
                name: self.names[other as usize],
                domain: ApiDomain::CUDA_RUNTIME,
                function: 211 + other as u32,
                result: if other == 7 && random.below(3) == 0 {
                    600
                } else {
                    0
                },
            },
            ..ApiCall::default()
        };

        let start = (self.host_time + 1_500 + random.below(1_000)).max(self.stream_free[stream] + 700);
        let mean = 2_000 + (name as u64 * 7919) % 30_000;
        let duration = (mean as i64 + random.around(mean / 60)) as u64;
        let end = start + duration;
        self.stream_free[stream] = end;
        let batch = if random.below(20) == 0 {
            1 + random.below(4) as u32
        } else {
            4
        };
        let kernel = Kernel {
            start: Timestamp(start),
            end: Timestamp(end),
            completed: Timestamp(end),
            correlation,
            grid_id: self.launched as i64,
            queued: if self.latency {
                Timestamp(call_start + 900 + random.below(300))
            } else {
                Timestamp::NONE
            },
            submitted: if self.latency {
                Timestamp(call_start + 2_100 + random.below(700))
            } else {
                Timestamp::NONE
            },
            place: Place {
                process: ProcessId(1),
                device: DeviceId(1),
                context: ContextId(1),
                stream: StreamId(7 + stream as u64),
                channel: 10 + stream as u32,
                channel_kind: ChannelKind::COMPUTE,
            },
            shape: KernelShape {
                name: self.names[name],
                grid_x: (name as u32 * 37 % 400 + 1) * batch,
                grid_y: 1 + name as u32 % 3,
                grid_z: 1,
                block_x: [64, 128, 256, 512][name % 4],
                block_y: 1,
                block_z: 1,
                registers: 16 + (name * 8 % 200) as u16,
                static_shared: Bytes((name as u64 % 5) * 1024),
                dynamic_shared: Bytes(if name % 7 == 0 { 98_304 } else { 0 }),
                shared_executed: Bytes(102_400),
                shared_config: 3,
                shared_carveout: 255,
                local_total: Bytes(52_428_800),
                cache_executed: 1,
                max_cluster_size: 8,
                ..KernelShape::default()
            },
            ..Kernel::default()
        };
        (call, kernel)
    }

    /// The next `count` API calls.
    pub fn api_calls(&mut self, count: usize) -> Vec<ApiCall> {
        (0..count).map(|_| self.launch().0).collect()
    }

    /// The next `count` launches as a trace has them: two calls each, by time, and their kernels in the order in which they
    /// end. The calls are of the functions that launch, ask and wait; every thousandth launch the host waits.
    pub fn launches(&mut self, count: usize, functions: [StringId; 3]) -> (Vec<ApiCall>, Vec<Kernel>) {
        let [launch, ask, wait] = functions;
        let mut calls = Vec::with_capacity(2 * count);
        let mut kernels = Vec::with_capacity(count);
        for _ in 0..count {
            let (mut call, kernel) = self.launch();
            call.shape.name = launch;
            let mut other = call.clone();
            let start = self.host_time + 20;
            let waits = self.launched.is_multiple_of(1_000);
            let until = self.stream_free.iter().copied().max().unwrap_or(start);
            self.host_time = if waits {
                until.max(start) + 2_000
            } else {
                start + 150
            };
            (other.start, other.end) = (Timestamp(start), Timestamp(self.host_time));
            other.correlation = CorrelationId(call.correlation.0 + 1);
            other.shape.name = if waits { wait } else { ask };
            calls.extend([call, other]);
            kernels.push(kernel);
        }
        kernels.sort_by_key(|kernel| kernel.end);
        (calls, kernels)
    }

    /// The next `count` kernels in the order in which they end.
    pub fn kernels(&mut self, count: usize) -> Vec<Kernel> {
        let mut kernels = Vec::with_capacity(count);
        while kernels.len() < count {
            while self.waiting.len() < 64 {
                let kernel = self.launch().1;
                self.waiting.push(kernel);
            }
            let first = (0..self.waiting.len())
                .min_by_key(|i| self.waiting[*i].end)
                .unwrap_or_default();
            kernels.push(self.waiting.remove(first));
        }
        kernels
    }
}
