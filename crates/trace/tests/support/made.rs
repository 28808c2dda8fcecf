//! Small traces made by hand, for answers that can be worked out on paper.

#![allow(dead_code, unreachable_pub, reason = "each test program uses its own part")]

use std::sync::Arc;

use tracesmith_format::tables::*;
use tracesmith_format::{
    Address, Bytes, ClockId, ContextId, CorrelationId, DeviceId, GraphId, GraphNodeId, ImageId, ProcessId,
    StackId, StreamId, ThreadId, Timestamp, Writer, WriterOptions,
};
use tracesmith_trace::Trace;

pub const CLOCK: ClockId = ClockId(1);
pub const PROCESS: ProcessId = ProcessId(1);
pub const THREAD: ThreadId = ThreadId(7);
pub const DEVICE: DeviceId = DeviceId(1);

pub struct Made {
    pub writer: Writer<Vec<u8>>,
    correlation: u64,
}

pub fn place(stream: u64) -> Place {
    Place {
        process: PROCESS,
        device: DEVICE,
        context: ContextId(1),
        stream: StreamId(stream),
        ..Place::default()
    }
}

impl Made {
    pub fn new() -> Self {
        Made::with(Writer::new(Vec::new(), WriterOptions::default()).unwrap())
    }

    /// Into a writer with options of its own.
    pub fn with(writer: Writer<Vec<u8>>) -> Self {
        Made {
            writer,
            correlation: 0,
        }
    }

    pub fn finish(self) -> Arc<Trace> {
        Arc::new(Trace::from_bytes(self.writer.finish().unwrap()).unwrap())
    }

    pub fn next_correlation(&mut self) -> CorrelationId {
        self.correlation += 1;
        CorrelationId(self.correlation)
    }

    pub fn kernel_row(&mut self, name: &str, times: (u64, u64), correlation: CorrelationId, place: Place) {
        let shape = KernelShape {
            name: self.writer.string(name).unwrap(),
            grid_x: 8,
            grid_y: 1,
            grid_z: 1,
            block_x: 128,
            block_y: 1,
            block_z: 1,
            ..KernelShape::default()
        };
        let row = Kernel {
            start: Timestamp(times.0),
            end: Timestamp(times.1),
            correlation,
            place,
            shape,
            ..Kernel::default()
        };
        self.writer.push(CLOCK, &row).unwrap();
    }

    /// A kernel without a call.
    pub fn kernel(&mut self, name: &str, stream: u64, start: u64, end: u64) {
        self.kernel_row(name, (start, end), CorrelationId::NONE, place(stream));
    }

    /// A kernel and the call that launched it.
    pub fn launched(&mut self, name: &str, stream: u64, call: (u64, u64), times: (u64, u64)) {
        let correlation = self.call("cudaLaunchKernel", call);
        self.kernel_row(name, times, correlation, place(stream));
    }

    /// A kernel that came out of a graph.
    pub fn node(&mut self, node: u64, stream: u64, times: (u64, u64), launch: CorrelationId) {
        let shape = KernelShape {
            name: self.writer.string(&format!("node {node}")).unwrap(),
            graph: GraphId(7),
            ..KernelShape::default()
        };
        let row = Kernel {
            start: Timestamp(times.0),
            end: Timestamp(times.1),
            correlation: launch,
            graph_node: GraphNodeId(node),
            place: place(stream),
            shape,
            ..Kernel::default()
        };
        self.writer.push(CLOCK, &row).unwrap();
    }

    /// What nodes wait for: the one that waits, and the other.
    pub fn edges(&mut self, edges: &[(u64, u64)]) {
        for (node, before) in edges {
            let row = GraphEdge {
                process: PROCESS,
                node: GraphNodeId(*node),
                before: GraphNodeId(*before),
            };
            self.writer.define(&row).unwrap();
        }
    }

    pub fn copy(&mut self, stream: u64, times: (u64, u64), bytes: u64, shape: CopyShape) {
        self.copy_of(CorrelationId::default(), stream, times, bytes, shape);
    }

    /// A copy that a call asked for.
    pub fn copy_of(
        &mut self,
        correlation: CorrelationId,
        stream: u64,
        times: (u64, u64),
        bytes: u64,
        shape: CopyShape,
    ) {
        let row = MemoryCopy {
            start: Timestamp(times.0),
            end: Timestamp(times.1),
            correlation,
            bytes: Bytes(bytes),
            place: place(stream),
            shape,
            ..MemoryCopy::default()
        };
        self.writer.push(CLOCK, &row).unwrap();
    }

    pub fn call(&mut self, name: &str, times: (u64, u64)) -> CorrelationId {
        self.call_of(THREAD, name, times, StackId::NONE)
    }

    pub fn call_of(
        &mut self,
        thread: ThreadId,
        name: &str,
        times: (u64, u64),
        stack: StackId,
    ) -> CorrelationId {
        let correlation = self.next_correlation();
        let row = ApiCall {
            start: Timestamp(times.0),
            end: Timestamp(times.1),
            correlation,
            stack,
            caller: Caller {
                process: PROCESS,
                thread,
            },
            shape: ApiShape {
                name: self.writer.string(name).unwrap(),
                domain: ApiDomain::CUDA_RUNTIME,
                ..ApiShape::default()
            },
        };
        self.writer.push(CLOCK, &row).unwrap();
        correlation
    }

    /// Overhead of the profiler, of a thread that is not known.
    pub fn overhead(&mut self, name: &str, times: (u64, u64)) {
        let row = HostCall {
            start: Timestamp(times.0),
            end: Timestamp(times.1),
            caller: Caller {
                process: PROCESS,
                thread: ThreadId(0),
            },
            shape: HostShape {
                name: self.writer.string(name).unwrap(),
                kind: HostCallKind::OVERHEAD,
                ..HostShape::default()
            },
            ..HostCall::default()
        };
        self.writer.push(CLOCK, &row).unwrap();
    }

    pub fn range(&mut self, name: &str, times: (u64, u64)) {
        let row = Marker {
            start: Timestamp(times.0),
            end: Timestamp(times.1),
            caller: Caller {
                process: PROCESS,
                thread: THREAD,
            },
            shape: MarkerShape {
                name: self.writer.string(name).unwrap(),
                kind: MarkerKind::NESTED_RANGE,
                ..MarkerShape::default()
            },
            ..Marker::default()
        };
        self.writer.push(CLOCK, &row).unwrap();
    }

    pub fn sync(
        &mut self,
        kind: SyncKind,
        stream: u64,
        times: (u64, u64),
        correlation: CorrelationId,
        event: (u64, u64),
    ) {
        // CUPTI names the device of a record and not that of a wait.
        let device = match kind {
            SyncKind::EVENT_RECORD => DEVICE,
            _ => DeviceId::NONE,
        };
        let row = Synchronization {
            start: Timestamp(times.0),
            end: Timestamp(times.1),
            correlation,
            event: event.0,
            event_record: event.1,
            place: Place {
                device,
                ..place(stream)
            },
            shape: SyncShape { kind, result: 0 },
            ..Synchronization::default()
        };
        self.writer.push(CLOCK, &row).unwrap();
    }

    /// A stream waits for an event that a call recorded in another, as PyTorch's profiler writes it.
    pub fn wait_on(&mut self, stream: u64, times: (u64, u64), record: CorrelationId, recorded_in: u64) {
        let correlation = self.call("cudaStreamWaitEvent", times);
        let row = Synchronization {
            start: Timestamp(times.0),
            end: Timestamp(times.1),
            correlation,
            event: 9,
            event_record: record.0,
            event_stream: StreamId(recorded_in),
            place: place(stream),
            shape: SyncShape {
                kind: SyncKind::STREAM_WAIT_EVENT,
                result: 0,
            },
            ..Synchronization::default()
        };
        self.writer.push(CLOCK, &row).unwrap();
    }

    pub fn stream(&mut self, stream: u64, kind: StreamKind) {
        let row = Stream {
            process: PROCESS,
            context: ContextId(1),
            stream: StreamId(stream),
            device: DEVICE,
            kind,
            ..Stream::default()
        };
        self.writer.push(CLOCK, &row).unwrap();
    }

    pub fn memory(
        &mut self,
        operation: MemoryOperation,
        time: u64,
        address: u64,
        bytes: u64,
        stack: StackId,
    ) {
        self.memory_of(
            (PROCESS, MemoryKind::DEVICE),
            operation,
            time,
            (address, bytes),
            stack,
        );
    }

    /// Memory of a process and a kind.
    pub fn memory_of(
        &mut self,
        (process, memory): (ProcessId, MemoryKind),
        operation: MemoryOperation,
        time: u64,
        (address, bytes): (u64, u64),
        stack: StackId,
    ) {
        let row = Allocation {
            time: Timestamp(time),
            address: Address(address),
            bytes: Bytes(bytes),
            stack,
            place: Place { process, ..place(0) },
            shape: AllocationShape {
                operation,
                memory,
                ..AllocationShape::default()
            },
            ..Allocation::default()
        };
        self.writer.push(CLOCK, &row).unwrap();
    }

    /// A stack of one Python line.
    /// A stack of native functions without lines, the innermost last: the file of each and its name.
    pub fn native_stack(&mut self, frames: &[(&str, &str)]) -> StackId {
        let mut of_stack = Vec::new();
        for (number, (file, function)) in frames.iter().enumerate() {
            let image = ImageId(number as u32 + 1);
            let path = self.writer.string(file).unwrap();
            let row = Image {
                id: image,
                process: PROCESS,
                path,
                ..Image::default()
            };
            self.writer.define(&row).unwrap();
            let frame = Frame {
                image,
                address: Address(number as u64),
                function: self.writer.string(function).unwrap(),
                ..Frame::default()
            };
            of_stack.push(self.writer.frame(frame).unwrap());
        }
        self.writer.stack_of(of_stack).unwrap()
    }

    /// A stack of Python functions, the innermost first: file, line and function.
    pub fn python_stack(&mut self, frames: &[(&str, u32, &str)]) -> StackId {
        let mut of_stack = Vec::new();
        for (file, line, function) in frames {
            let frame = Frame {
                kind: FrameKind::PYTHON,
                function: self.writer.string(function).unwrap(),
                file: self.writer.string(file).unwrap(),
                line: *line,
                ..Frame::default()
            };
            of_stack.push(self.writer.frame(frame).unwrap());
        }
        self.writer.stack_of(of_stack).unwrap()
    }

    pub fn stack(&mut self, file: &str, line: u32, function: &str) -> StackId {
        let frame = Frame {
            kind: FrameKind::PYTHON,
            function: self.writer.string(function).unwrap(),
            file: self.writer.string(file).unwrap(),
            line,
            ..Frame::default()
        };
        let frame = self.writer.frame(frame).unwrap();
        let stack = Stack {
            frame,
            ..Stack::default()
        };
        self.writer.stack(stack).unwrap()
    }
}
