//! Writes `fixtures/synthetic-v1.sbt`: every table of the format, with rows chosen to be looked at.
//!
//! `cargo run -p tracesmith-trace --example make_fixtures`
//!
//! The rows are made up, and the file says so. It is what tests of the commands run on, and what every later version
//! must still be able to read.

#![allow(clippy::unwrap_used, reason = "a tool for developers may stop on any error")]

use std::fs::File;
use std::path::Path;

use tracesmith_format::tables::*;
use tracesmith_format::*;

const GPU_CLOCK: ClockId = ClockId(2);
const HOST_CLOCK: ClockId = ClockId(1);
/// When the first step starts, on the host's clock.
const START: u64 = 5_000_000_000;
/// The device's clock is ahead by this much, and gains one nanosecond in a thousand.
const GPU_AHEAD: u64 = 1_000_000_000_000;

fn main() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/synthetic-v1.sbt");
    let options = WriterOptions {
        id: *b"synthetic v1 sbt",
        rows_per_block: 32,
        ..WriterOptions::default()
    };
    let mut fixture = Fixture {
        writer: Writer::new(File::create(&path).unwrap(), options).unwrap(),
    };
    fixture.origin();
    for rank in 0..2 {
        for step in 0..3 {
            fixture.step(rank, step);
        }
    }
    fixture.rest();
    fixture.writer.seal().unwrap();
}

struct Fixture {
    writer: Writer<File>,
}

/// A host time on the device's clock.
fn on_gpu(host_time: u64) -> Timestamp {
    let since_start = host_time - START;
    Timestamp(GPU_AHEAD + host_time + since_start / 1000)
}

impl Fixture {
    fn text(&mut self, text: &str) -> StringId {
        self.writer.string(text).unwrap()
    }

    fn origin(&mut self) {
        for (key, value) in [
            ("recorder", "make_fixtures (made up, not recorded)"),
            ("created", "1763172360000000000"),
            ("command", "python train.py --steps 3"),
            ("env.CUDA_VISIBLE_DEVICES", "0,1"),
        ] {
            self.writer.metadata(key, value).unwrap();
        }
        let host = Host {
            id: HostId(1),
            name: self.text("example"),
            os: self.text("Linux 6.8"),
            cpu: self.text("Example CPU"),
            cpus: 16,
            memory: Bytes(128 << 30),
            boot_id: self.text("boot-1"),
            ..Host::default()
        };
        self.writer.define(&host).unwrap();
        let clocks = [
            (1, ClockKind::MONOTONIC, "host monotonic"),
            (2, ClockKind::DEVICE, "gpu"),
        ];
        for (id, kind, name) in clocks {
            let name = self.text(name);
            self.writer
                .define(&Clock {
                    id: ClockId(id),
                    kind,
                    host: HostId(1),
                    name,
                    ..Clock::default()
                })
                .unwrap();
        }
        for time in [START, START + 1_000_000_000] {
            let pair = ClockPair {
                first: HOST_CLOCK,
                second: GPU_CLOCK,
                first_time: Timestamp(time),
                second_time: on_gpu(time),
                uncertainty: 120,
            };
            self.writer.define(&pair).unwrap();
        }
        for rank in 0..2u32 {
            self.rank(rank);
        }
    }

    fn rank(&mut self, rank: u32) {
        let device = Device {
            id: DeviceId(rank + 1),
            host: HostId(1),
            ordinal: rank,
            uuid: self.text(&format!("GPU-0000000{rank}")),
            name: self.text("Example GPU"),
            vendor: self.text("Example"),
            architecture: self.text("Hopper"),
            capability_major: 9,
            memory: Bytes(141 << 30),
            multiprocessors: 132,
            warp_size: 32,
            driver: self.text("580.65"),
            pci: self.text(&format!("0000:{rank:02x}:00.0")),
            numa_node: Ordinal::new(0),
            ..Device::default()
        };
        self.writer.define(&device).unwrap();
        let process = Process {
            id: ProcessId(rank + 1),
            host: HostId(1),
            pid: 4_000 + rank,
            parent_pid: 3_999,
            name: self.text("python"),
            command: self.text("python train.py --steps 3"),
            started: Timestamp(START - 2_000_000_000),
            rank: Ordinal::new(rank),
            local_rank: Ordinal::new(rank),
            world_size: 2,
            end: ProcessEnd::EXITED,
            ..Process::default()
        };
        self.writer.define(&process).unwrap();
        let place = Place {
            process: process.id,
            device: device.id,
            context: ContextId(1),
            ..Place::default()
        };
        let name = self.text("main");
        let thread = ThreadId(u64::from(process.pid));
        self.writer
            .define(&Thread {
                process: process.id,
                thread,
                name,
            })
            .unwrap();
        let context = Context {
            process: place.process,
            context: place.context,
            device: place.device,
            default_stream: StreamId(7),
            ..Context::default()
        };
        self.writer.define(&context).unwrap();
        for (stream, kind, name) in [
            (7, StreamKind::LEGACY_DEFAULT, "default"),
            (13, StreamKind::NON_BLOCKING, "communication"),
        ] {
            let stream = Stream {
                process: place.process,
                context: place.context,
                stream: StreamId(stream),
                device: place.device,
                kind,
                name: self.text(name),
                ..Stream::default()
            };
            self.writer.define(&stream).unwrap();
        }
    }

    /// One training step of one rank: data to the device, kernels, a collective, an optimiser, a wait.
    fn step(&mut self, rank: u32, step: u64) {
        let begin = START + step * 2_000_000 + u64::from(rank) * 40_000;
        let place = Place {
            process: ProcessId(rank + 1),
            device: DeviceId(rank + 1),
            context: ContextId(1),
            stream: StreamId(7),
            channel: 4,
            channel_kind: ChannelKind::COMPUTE,
        };
        let caller = Caller {
            process: place.process,
            thread: ThreadId(u64::from(4_000 + rank)),
        };
        let correlation = |n: u64| CorrelationId(step * 100 + n);
        let stack = self.stack(step);

        let shape = MarkerShape {
            name: self.text(&format!("step {step}")),
            domain: self.text("train"),
            kind: MarkerKind::NESTED_RANGE,
            payload_kind: PayloadKind::U64,
            ..MarkerShape::default()
        };
        let marker = Marker {
            start: Timestamp(begin),
            end: Timestamp(begin + 1_900_000),
            range: step + 1,
            payload: step,
            caller,
            shape,
            ..Marker::default()
        };
        self.writer.push(HOST_CLOCK, &marker).unwrap();

        let copy = MemoryCopy {
            start: on_gpu(begin + 20_000),
            end: on_gpu(begin + 60_000),
            bytes: Bytes(1 << 20),
            correlation: correlation(1),
            stack,
            place: Place {
                channel: 9,
                channel_kind: ChannelKind::COPY,
                ..place
            },
            shape: CopyShape {
                direction: CopyDirection::HOST_TO_DEVICE,
                source_memory: MemoryKind::PINNED,
                destination_memory: MemoryKind::DEVICE,
                asynchronous: true,
                ..CopyShape::default()
            },
            ..MemoryCopy::default()
        };
        self.writer.push(GPU_CLOCK, &copy).unwrap();
        self.call(
            begin + 8_000,
            6_000,
            "cudaMemcpyAsync",
            41,
            correlation(1),
            caller,
            stack,
        );

        let set = MemorySet {
            start: on_gpu(begin + 62_000),
            end: on_gpu(begin + 63_500),
            bytes: Bytes(4096),
            correlation: correlation(2),
            place,
            shape: SetShape {
                memory: MemoryKind::DEVICE,
                asynchronous: true,
                ..SetShape::default()
            },
            ..MemorySet::default()
        };
        self.writer.push(GPU_CLOCK, &set).unwrap();
        self.call(
            begin + 15_000,
            3_000,
            "cudaMemsetAsync",
            51,
            correlation(2),
            caller,
            stack,
        );

        let names = [
            "_Z16layer_norm_kernelPKfPf",
            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute",
            "flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>, false, true>",
            "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
        ];
        for (n, name) in names.into_iter().cycle().take(12).enumerate() {
            let n = n as u64;
            let start = begin + 70_000 + n * 90_000;
            let kernel = Kernel {
                start: on_gpu(start),
                end: on_gpu(start + 20_000 + 15_000 * (n % 4) + 17 * step),
                correlation: correlation(10 + n),
                grid_id: (step * 12 + n) as i64,
                stack,
                place,
                shape: KernelShape {
                    name: self.text(name),
                    demangled: if n.is_multiple_of(4) {
                        self.text("layer_norm_kernel(float const*, float*)")
                    } else {
                        StringId::NONE
                    },
                    grid_x: 64 << (n % 3),
                    grid_y: 1 + (n % 2) as u32,
                    grid_z: 1,
                    block_x: 128,
                    block_y: 1,
                    block_z: 1,
                    cluster_x: if n % 4 == 1 { 2 } else { 0 },
                    cluster_y: u32::from(n % 4 == 1),
                    cluster_z: u32::from(n % 4 == 1),
                    registers: 40 + 32 * (n % 4) as u16,
                    dynamic_shared: Bytes(if n % 4 == 1 { 200 << 10 } else { 0 }),
                    ..KernelShape::default()
                },
                ..Kernel::default()
            };
            self.writer.push(GPU_CLOCK, &kernel).unwrap();
            let call_start = begin + 25_000 + n * 9_000;
            self.call(
                call_start,
                4_500,
                "cudaLaunchKernel",
                211,
                kernel.correlation,
                caller,
                stack,
            );
            for (phase, time) in [(FlowPhase::START, call_start), (FlowPhase::END, start)] {
                let shape = FlowShape {
                    kind: FlowKind::LAUNCH,
                    phase,
                    process: place.process,
                    ..FlowShape::default()
                };
                let correlation = kernel.correlation;
                let flow = Flow {
                    time: Timestamp(time),
                    flow: correlation.0,
                    correlation,
                    shape,
                };
                self.writer.push(HOST_CLOCK, &flow).unwrap();
            }
        }
        self.communicate(rank, step, begin + 1_200_000, place);

        let wait = Synchronization {
            start: Timestamp(begin + 140_000),
            end: Timestamp(begin + 1_850_000),
            correlation: correlation(90),
            place,
            shape: SyncShape {
                kind: SyncKind::STREAM_WAIT,
                result: 0,
            },
            ..Synchronization::default()
        };
        self.writer.push(HOST_CLOCK, &wait).unwrap();
        self.call(
            begin + 139_000,
            1_712_000,
            "cudaStreamSynchronize",
            131,
            correlation(90),
            caller,
            stack,
        );
    }

    fn communicate(&mut self, rank: u32, step: u64, begin: u64, place: Place) {
        let place = Place {
            stream: StreamId(13),
            ..place
        };
        let collective = Collective {
            start: on_gpu(begin),
            end: on_gpu(begin + 410_000 + u64::from(rank) * 7_000),
            enqueued: on_gpu(begin - 30_000),
            sequence: step + 1,
            count: 4 << 20,
            bytes: Bytes(8 << 20),
            correlation: CorrelationId(step * 100 + 80),
            place,
            shape: CollectiveShape {
                name: self.text("AllReduce"),
                communicator: 0xfeed_beef,
                rank: Ordinal::new(rank),
                ranks: 2,
                datatype: self.text("bfloat16"),
                reduction: self.text("sum"),
                algorithm: self.text("RING"),
                protocol: self.text("LL128"),
                channels: 16,
                ..CollectiveShape::default()
            },
            ..Collective::default()
        };
        self.writer.push(GPU_CLOCK, &collective).unwrap();
        let graph = GraphLaunch {
            start: on_gpu(begin + 450_000),
            end: on_gpu(begin + 600_000),
            correlation: CorrelationId(step * 100 + 85),
            place,
            shape: GraphShape {
                graph: GraphId(3),
                executable: GraphId(4),
                nodes: 20,
                ..GraphShape::default()
            },
            ..GraphLaunch::default()
        };
        self.writer.push(GPU_CLOCK, &graph).unwrap();
    }

    #[allow(clippy::too_many_arguments, reason = "a row has that many columns")]
    fn call(
        &mut self,
        start: u64,
        length: u64,
        name: &str,
        function: u32,
        correlation: CorrelationId,
        caller: Caller,
        stack: StackId,
    ) {
        let call = ApiCall {
            start: Timestamp(start),
            end: Timestamp(start + length),
            correlation,
            stack,
            caller,
            shape: ApiShape {
                name: self.text(name),
                domain: ApiDomain::CUDA_RUNTIME,
                function,
                result: 0,
            },
        };
        self.writer.push(HOST_CLOCK, &call).unwrap();
    }

    fn stack(&mut self, step: u64) -> StackId {
        let file = self.text("train.py");
        let functions = [("<module>", 40), ("main", 31), ("train_step", 12 + step as u32)];
        let mut frames = Vec::new();
        for (function, line) in functions {
            let function = self.text(function);
            let frame = Frame {
                kind: FrameKind::PYTHON,
                function,
                file,
                line,
                ..Frame::default()
            };
            frames.push(self.writer.frame(frame).unwrap());
        }
        let native = Frame {
            image: ImageId(1),
            address: Address(0x1234_0000 + step * 16),
            ..Frame::default()
        };
        frames.push(self.writer.frame(native).unwrap());
        self.writer.stack_of(frames).unwrap()
    }

    /// What happens once: memory, counters, host work, code, and a loss that was noticed.
    fn rest(&mut self) {
        let image = Image {
            id: ImageId(1),
            process: ProcessId(1),
            address: Address(0x7f00_0000_0000),
            size: Bytes(64 << 20),
            path: self.text("/usr/lib/libexample_cuda.so"),
            build_id: self.text("00112233445566778899aabbccddeeff00112233"),
            ..Image::default()
        };
        self.writer.define(&image).unwrap();
        let symbol = Symbol {
            frame: FrameId(4),
            function: self.text("example::launch(int)"),
            file: self.text("launch.cpp"),
            line: 77,
            ..Symbol::default()
        };
        self.writer.define(&symbol).unwrap();
        let module = Module {
            loaded: Timestamp(START - 500_000),
            process: ProcessId(1),
            context: ContextId(1),
            module: ModuleId(1),
            size: Bytes(16),
            hash_high: 1,
            hash_low: 2,
            code: Blob(b"not really cubin".to_vec()),
            ..Module::default()
        };
        self.writer.push(HOST_CLOCK, &module).unwrap();
        for (n, operation) in [MemoryOperation::ALLOCATE, MemoryOperation::FREE]
            .into_iter()
            .enumerate()
        {
            let shape = AllocationShape {
                operation,
                memory: MemoryKind::DEVICE,
                thread: ThreadId(4_000),
                allocator: self.text("cuMemAlloc_v2"),
                ..AllocationShape::default()
            };
            let allocation = Allocation {
                time: Timestamp(START - 400_000 + n as u64 * 7_000_000),
                address: Address(0x7f55_0000_0000),
                bytes: Bytes(512 << 20),
                place: Place {
                    process: ProcessId(1),
                    device: DeviceId(1),
                    context: ContextId(1),
                    ..Place::default()
                },
                shape,
                ..Allocation::default()
            };
            self.writer.push(HOST_CLOCK, &allocation).unwrap();
        }
        for n in 0..10u64 {
            let track = CounterTrack {
                name: self.text("power"),
                unit: self.text("W"),
                device: DeviceId(1),
                ..CounterTrack::default()
            };
            let counter = Counter {
                time: Timestamp(START + n * 500_000),
                value: 310.5 + n as f64 * 12.25,
                track,
            };
            self.writer.push(HOST_CLOCK, &counter).unwrap();
        }
        let shape = HostShape {
            name: self.text("aten::linear"),
            kind: HostCallKind::OPERATOR,
            category: self.text("cpu_op"),
            ..HostShape::default()
        };
        let host_call = HostCall {
            start: Timestamp(START + 20_000),
            end: Timestamp(START + 34_000),
            sequence: 17,
            caller: Caller {
                process: ProcessId(1),
                thread: ThreadId(4_000),
            },
            shape,
            ..HostCall::default()
        };
        self.writer.push(HOST_CLOCK, &host_call).unwrap();
        let loss = Health {
            time: Timestamp(START + 3_000_000),
            cause: HealthCause::RING_FULL,
            table: BlockKind::API_CALLS.0,
            process: ProcessId(2),
            count: 3,
            bytes: 120,
            ..Health::default()
        };
        self.writer.define(&loss).unwrap();
    }
}
