//! What the CPU did while GPUs waited for it.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::made::{CLOCK, Made, PROCESS, THREAD, place};

use tracesmith_format::tables::*;
use tracesmith_format::{CorrelationId, StackId, ThreadId, Timestamp};
use tracesmith_trace::analysis::{Analysis, HostRow, HostTime, KernelKey};
use tracesmith_trace::reconstruct::Window;

fn host_call(made: &mut Made, kind: HostCallKind, name: &str, thread: ThreadId, times: (u64, u64)) {
    let row = HostCall {
        start: Timestamp(times.0),
        end: Timestamp(times.1),
        caller: Caller {
            process: PROCESS,
            thread,
        },
        shape: HostShape {
            name: made.writer.string(name).unwrap(),
            kind,
            ..HostShape::default()
        },
        ..HostCall::default()
    };
    made.writer.push(CLOCK, &row).unwrap();
}

fn launch(made: &mut Made, call: (u64, u64), kernel: (u64, u64), stack: StackId) {
    let correlation = made.call_of(THREAD, "cuLaunchKernel", call, stack);
    made.kernel_row("kernel", kernel, correlation, place(7));
}

/// Names and times of a list.
fn pairs(rows: &[HostRow]) -> Vec<(&str, u64)> {
    rows.iter().map(|row| (row.name.as_str(), row.total_ns)).collect()
}

/// A thread launches, works for 80 ns between calls, and launches again. The GPU is idle from 1030 to 1115.
fn two_launches(more: impl FnOnce(&mut Made)) -> (HostTime, HostTime) {
    let mut made = Made::new();
    let line = made.stack("/home/me/train.py", 21, "load_batch");
    launch(&mut made, (1000, 1010), (1020, 1030), StackId::NONE);
    launch(&mut made, (1100, 1110), (1115, 1120), line);
    more(&mut made);
    let analysis = Analysis::of(&made.finish(), Window::default()).unwrap();
    let (gaps, path) = (analysis.host_in_gaps().unwrap(), analysis.host_on_path().unwrap());
    ((*gaps).clone(), (*path).clone())
}

#[test]
fn gaps_are_listed_by_range_operator_function_and_line() {
    let (gaps, path) = two_launches(|made| {
        made.range("step 4", (995, 1200));
        made.range("load", (1015, 1080));
        host_call(made, HostCallKind::OPERATOR, "aten::mean", THREAD, (1040, 1060));
        host_call(made, HostCallKind::OPERATOR, "aten::sum", THREAD, (1045, 1050));
        host_call(
            made,
            HostCallKind::PYTHON,
            "train.py(20): load",
            THREAD,
            (1012, 1090),
        );
        host_call(
            made,
            HostCallKind::PYTHON,
            "torch/utils.py(7): go",
            THREAD,
            (1020, 1070),
        );
        // Another thread is no reason to wait.
        host_call(
            made,
            HostCallKind::OPERATOR,
            "aten::other",
            ThreadId(99),
            (1000, 1200),
        );
    });
    assert_eq!(gaps.total_ns, 70, "from the end of the kernel to the call");
    assert_eq!(pairs(&gaps.ranges), [("load", 50), ("step", 20)]);
    assert_eq!(pairs(&gaps.operators), [("aten::mean", 20)]);
    assert_eq!(pairs(&gaps.functions), [("train.py(20): load", 60)]);
    assert_eq!(pairs(&gaps.lines), [("train.py:21 (load_batch)", 70)]);
    assert_eq!(
        gaps.main_places(),
        [
            "71 % is in the range load",
            "100 % is before the CUDA call at train.py:21 (load_batch)"
        ]
    );
    assert!((gaps.ranges[0].share - 50.0 / 70.0).abs() < 1e-9);
    // The path leads over the host from the first launch to the second.
    assert!(path.total_ns >= 80, "{path:?}");
    assert_eq!(path.lines[0].name, "train.py:21 (load_batch)");
}

#[test]
fn time_in_calls_is_not_busy_between_calls() {
    let (gaps, _) = two_launches(|made| {
        made.call("cudaMalloc", (1050, 1070));
    });
    assert_eq!(gaps.total_ns, 50);
    // What came before cudaMalloc led to that call, which has no stack.
    assert_eq!(pairs(&gaps.lines), [("train.py:21 (load_batch)", 30)]);
}

#[test]
fn a_gpu_that_waits_for_nothing_has_no_host_time() {
    let mut made = Made::new();
    let correlation = CorrelationId::NONE;
    made.kernel_row("first", (1000, 1100), correlation, place(7));
    made.kernel_row("second", (1200, 1300), correlation, place(7));
    let analysis = Analysis::of(&made.finish(), Window::default()).unwrap();
    let gaps = analysis.host_in_gaps().unwrap();
    assert_eq!((gaps.total_ns, gaps.lines.len()), (0, 0));
    assert!(gaps.main_places().is_empty() && !gaps.has_places());
}

/// The kernels of a trace by the line that launched them.
fn by(made: Made, key: KernelKey) -> Vec<(String, u64)> {
    let analysis = Analysis::of(&made.finish(), Window::default()).unwrap();
    let rows = &analysis.kernels(key).rows;
    rows.iter()
        .map(|row| (row.name.clone(), row.durations.total_ns))
        .collect()
}

/// PyTorch runs the backward pass on a thread of its own, without any Python code of the program. The main thread makes
/// one call in `backward` and waits.
#[test]
fn backward_work_belongs_to_the_line_that_waits_for_it() {
    let mut made = Made::new();
    let autograd = ThreadId(99);
    let native = made.native_stack(&[("/lib/libtorch.so", "at::native::launch")]);
    let forward = made.python_stack(&[("/home/me/train.py", 30, "train_step")]);
    let backward = made.python_stack(&[
        ("/lib/site-packages/torch/autograd/__init__.py", 300, "backward"),
        ("/lib/site-packages/torch/_tensor.py", 600, "Tensor.backward"),
        ("/home/me/train.py", 35, "train_step"),
    ]);
    let mut kernel = |thread, name: &str, start: u64, stack| {
        let correlation = made.call_of(thread, "cuLaunchKernel", (start, start + 5), stack);
        made.kernel_row(name, (start + 10, start + 20), correlation, place(7));
    };
    kernel(THREAD, "forward", 1000, forward);
    kernel(THREAD, "fill", 1100, backward);
    kernel(autograd, "gradient", 1200, native);
    kernel(autograd, "gradient", 1300, StackId::NONE);
    kernel(THREAD, "forward", 1400, forward);
    // Behind the next call of the main thread nobody waits for a backward pass.
    kernel(autograd, "other", 1500, native);
    let rows = by(made, KernelKey::Stack);
    assert_eq!(
        rows,
        [
            ("train.py:30 (train_step)".to_owned(), 20),
            ("train.py:35 (train_step), backward pass".to_owned(), 20),
            ("at::native::launch".to_owned(), 10),
            ("train.py:35 (train_step)".to_owned(), 10),
        ]
    );
}

#[test]
fn without_a_stack_the_operator_is_shown() {
    let launch = |made: &mut Made, start: u64| {
        let correlation = made.call("cuLaunchKernel", (start, start + 5));
        made.kernel_row("kernel", (start + 10, start + 20), correlation, place(7));
    };
    let made = || {
        let mut made = Made::new();
        host_call(
            &mut made,
            HostCallKind::OPERATOR,
            "aten::linear",
            THREAD,
            (990, 1090),
        );
        host_call(&mut made, HostCallKind::OPERATOR, "aten::mm", THREAD, (995, 1080));
        launch(&mut made, 1000);
        launch(&mut made, 1050);
        launch(&mut made, 1100);
        made
    };
    let named = |name: &str, nanos| (name.to_owned(), nanos);
    assert_eq!(
        by(made(), KernelKey::Stack),
        [named("aten::linear", 20), named("no stack", 10)]
    );
    assert_eq!(
        by(made(), KernelKey::Operator),
        [named("aten::linear", 20), named("no operator", 10)]
    );
}

/// torch.profiler records Python functions instead of stacks.
#[test]
fn backward_work_belongs_to_the_function_that_waits_for_it() {
    let mut made = Made::new();
    let autograd = ThreadId(99);
    host_call(
        &mut made,
        HostCallKind::PYTHON,
        "train.py(35): train_step",
        THREAD,
        (900, 1500),
    );
    host_call(
        &mut made,
        HostCallKind::OPERATOR,
        "autograd::engine::evaluate_function: AddmmBackward0",
        autograd,
        (1000, 1100),
    );
    let correlation = made.call_of(THREAD, "cudaLaunchKernel", (950, 955), StackId::NONE);
    made.kernel_row("forward", (960, 970), correlation, place(7));
    let correlation = made.call_of(autograd, "cudaLaunchKernel", (1050, 1055), StackId::NONE);
    made.kernel_row("gradient", (1060, 1080), correlation, place(7));
    assert_eq!(
        by(made, KernelKey::Stack),
        [
            ("train.py(35): train_step, backward pass".to_owned(), 20),
            ("train.py(35): train_step".to_owned(), 10),
        ]
    );
}
