//! Backward work and the forward operators that it belongs to.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stderr,
    reason = "a test may stop on any error, and says what it skipped"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use tracesmith_skip as support;

use std::collections::BTreeMap;

use tracesmith_format::tables::*;
use tracesmith_format::{
    ClockId, Columns, CorrelationId, ProcessId, StackId, ThreadId, Timestamp, Writer, WriterOptions,
};
use tracesmith_trace::analysis::ForwardReport;
use tracesmith_trace::{EventName, Trace};

const CLOCK: ClockId = ClockId(1);
const PROCESS: ProcessId = ProcessId(1);
const FORWARD: ThreadId = ThreadId(7);
const BACKWARD: ThreadId = ThreadId(8);
const OTHER: ThreadId = ThreadId(9);

struct Made {
    writer: Writer<Vec<u8>>,
}

impl Made {
    fn new() -> Self {
        Made {
            writer: Writer::new(Vec::new(), WriterOptions::default()).unwrap(),
        }
    }

    fn stack(&mut self, function: &str) -> StackId {
        let function = self.writer.string(function).unwrap();
        let frame = Frame {
            function,
            ..Frame::default()
        };
        let frame = self.writer.frame(frame).unwrap();
        let stack = Stack {
            frame,
            ..Stack::default()
        };
        self.writer.stack(stack).unwrap()
    }

    fn range(&mut self, thread: ThreadId, times: (u64, u64), name: &str) {
        let shape = MarkerShape {
            name: self.writer.string(name).unwrap(),
            kind: MarkerKind::NESTED_RANGE,
            ..MarkerShape::default()
        };
        let marker = Marker {
            start: Timestamp(times.0),
            end: Timestamp(times.1),
            caller: Caller {
                process: PROCESS,
                thread,
            },
            shape,
            ..Marker::default()
        };
        self.writer.push(CLOCK, &marker).unwrap();
    }

    fn call(&mut self, thread: ThreadId, start: u64, correlation: u64, stack: StackId) {
        let call = ApiCall {
            start: Timestamp(start),
            end: Timestamp(start + 1),
            correlation: CorrelationId(correlation),
            stack,
            caller: Caller {
                process: PROCESS,
                thread,
            },
            ..ApiCall::default()
        };
        self.writer.push(CLOCK, &call).unwrap();
    }

    fn finish(self) -> Trace {
        Trace::from_bytes(self.writer.finish().unwrap()).unwrap()
    }
}

/// As `torch.autograd.profiler.emit_nvtx` names its ranges.
#[test]
fn a_backward_launch_is_joined_to_the_forward_code() {
    let mut made = Made::new();
    let (model, loss, engine) = (made.stack("model"), made.stack("loss"), made.stack("engine"));
    // A linear layer transposes first, which launches nothing and takes a number too.
    made.range(FORWARD, (100, 200), "aten::linear, seq = 5, op_id = 1");
    made.range(FORWARD, (110, 120), "aten::t, seq = 5, op_id = 2");
    made.range(FORWARD, (130, 190), "aten::addmm, seq = 6, op_id = 3");
    made.call(FORWARD, 140, 1, model);
    made.range(FORWARD, (300, 400), "aten::mse_loss, seq = 7");
    made.call(FORWARD, 310, 2, loss);
    // Another thread counts by itself, and comes later.
    made.range(OTHER, (2000, 2100), "aten::addmm, seq = 6");
    made.call(OTHER, 2010, 3, loss);
    made.range(BACKWARD, (500, 600), "MseLossBackward0, seq = 7");
    made.call(BACKWARD, 510, 10, engine);
    made.range(BACKWARD, (700, 800), "AddmmBackward0, seq = 6");
    made.range(BACKWARD, (710, 790), "aten::mm, seq = 7");
    made.call(BACKWARD, 720, 11, engine);
    made.call(BACKWARD, 780, 12, engine);
    made.range(BACKWARD, (850, 860), "TBackward0, seq = 5");
    made.call(BACKWARD, 855, 13, engine);
    made.call(BACKWARD, 900, 14, engine);
    made.range(BACKWARD, (950, 960), "NoSuchBackward0, seq = 99");
    made.call(BACKWARD, 955, 15, engine);
    let trace = made.finish();
    let report = ForwardReport::of(&trace).unwrap();
    let found = |correlation| {
        let forward = report.of_call(PROCESS, CorrelationId(correlation))?;
        let EventName::Id(name) = forward.operator else {
            panic!("ranges have names");
        };
        let stack = trace.stack(forward.stack);
        let function = stack.frames.first().map(|frame| trace.frame_name(frame));
        Some((trace.string(name), function.unwrap_or_default()))
    };
    assert_eq!(found(10), Some(("aten::mse_loss, seq = 7", "loss".to_owned())));
    let addmm = Some(("aten::addmm, seq = 6, op_id = 3", "model".to_owned()));
    assert_eq!((found(11), found(12)), (addmm.clone(), addmm));
    // It launched nothing: the layer around it did.
    assert_eq!(
        found(13),
        Some(("aten::t, seq = 5, op_id = 2", "model".to_owned()))
    );
    for outside in [1, 2, 14, 15] {
        assert_eq!(found(outside), None, "{outside}");
    }
    assert_eq!(report.calls(), 4);
}

#[test]
fn a_trace_without_numbers_has_none() {
    let mut made = Made::new();
    let stack = made.stack("main");
    made.range(FORWARD, (1, 9), "step");
    made.call(FORWARD, 2, 1, stack);
    assert_eq!(ForwardReport::of(&made.finish()).unwrap().calls(), 0);
}

/// A training loop of PyTorch's profiler. Python's own JSON reader finds 1,975 of its 4,350 kernels launched within a node
/// of the backward graph whose number an earlier operator has.
#[test]
fn every_backward_kernel_of_a_real_loop_has_its_operator() {
    let name = "kineto/ns_resolution_trace_rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz";
    let Some(path) = support::data(name) else { return };
    let trace = tracesmith_interop::open(&path).unwrap();
    let report = ForwardReport::of(&trace).unwrap();
    let mut operators: BTreeMap<&str, u64> = BTreeMap::new();
    for (_, kernels) in trace.kernels.stream() {
        for row in 0..kernels.len() {
            let process = kernels.place.get(row).process;
            if let Some(forward) = report.of_call(process, kernels.correlation[row])
                && let EventName::Id(name) = forward.operator
            {
                *operators.entry(trace.string(name)).or_default() += 1;
            }
        }
    }
    assert_eq!(operators.values().sum::<u64>(), 1975, "{operators:?}");
    assert_eq!(operators["aten::cudnn_batch_norm"], 265);
    assert_eq!(operators["aten::addmm"], 20);
}
