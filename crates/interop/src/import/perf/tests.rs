//! Texts of `perf script`, real and made up.

#![allow(clippy::unwrap_used, reason = "a test may stop on any error")]

use proptest::prelude::*;
use tracesmith_trace::Trace;

use super::*;
use crate::fuzz::import_any;

const TEXT: &str = "\
# ========
# hostname : node7
# nrcpus online : 2
# total memory : 100 kB
# cmdline : /usr/bin/perf record -g ./burn
# ========
#
burn 12102/12102 [000] 24116.593747:     250000 cpu-clock: 
\tffffffff815d2a68 vma_prepare+0x38 ([kernel.kallsyms])
\t            118b leaf+0x22 (/tmp/burn)
  burn.c:3
\t            11d1 main+0x23 (/tmp/burn)

my worker 1 12102/12106 [001] 24116.593994001:     250000 cpu-clock: 
\t  7ffcf593b9c000 [unknown] ([unknown])

burn 12102/12102 [000] 24116.600000: PERF_RECORD_LOST lost 12
burn 12102/12102 [000] 24116.700000: sched:sched_switch: prev_comm=burn next_pid=0
burn 12102/12102 24116.800000:          1 cycles:  7fecc6 f(int)+0x1 (/lib/x.so)
what is this
";

fn frames(trace: &Trace, stack: StackId) -> Vec<(String, FrameKind, u32)> {
    let stack = trace.stack(stack);
    let frames = stack.frames.iter().map(|frame| &frame.frame);
    frames
        .map(|frame| (trace.string(frame.function).to_owned(), frame.kind, frame.line))
        .collect()
}

#[test]
fn samples_keep_times_stacks_threads_and_periods() {
    assert!(sniff(TEXT.as_bytes()));
    let trace = crate::open_bytes(TEXT.as_bytes().to_vec()).unwrap();
    let (_, rows) = trace.host_calls.columns().next().unwrap();
    assert_eq!(
        rows.start,
        [
            24_116_593_747_000,
            24_116_593_994_001,
            24_116_700_000_000,
            24_116_800_000_000
        ]
        .map(Timestamp)
    );
    assert_eq!(rows.argument, [250_000, 250_000, 0, 1]);
    assert_eq!(rows.cpu, [0, 1, 0, 0]);
    let names: Vec<&str> = (0..4).map(|row| trace.string(rows.shape.get(row).name)).collect();
    assert_eq!(
        names,
        ["vma_prepare", "cpu-clock", "sched:sched_switch", "f(int)"]
    );
    assert_eq!(
        frames(&trace, rows.stack[0]),
        [
            ("vma_prepare".to_owned(), FrameKind::KERNEL, 0),
            ("leaf".to_owned(), FrameKind::NATIVE, 3),
            ("main".to_owned(), FrameKind::NATIVE, 0),
        ]
    );
    assert_eq!(trace.string(rows.detail[2]), "prev_comm=burn next_pid=0");
    let threads: Vec<(u64, &str)> = trace
        .threads
        .iter()
        .map(|thread| (thread.thread.0, trace.string(thread.name)))
        .collect();
    assert_eq!(threads, [(12102, "burn"), (12106, "my worker 1")]);
    assert_eq!(trace.images.rows(), 3);
    assert_eq!(
        (trace.string(trace.hosts[0].name), trace.hosts[0].memory.0),
        ("node7", 102_400)
    );
    assert_eq!(trace.metadata["perf.cmdline"], "/usr/bin/perf record -g ./burn");
    let health = trace.health();
    let skipped: Vec<(&str, u64)> = health
        .recorded
        .iter()
        .map(|item| (item.detail.as_str(), item.count))
        .collect();
    assert_eq!(
        skipped,
        [("PERF_RECORD_LOST", 1), ("lines that are no sample", 1)]
    );
}

#[test]
fn bad_texts_are_harmless() {
    for length in 0..TEXT.len() {
        import_any("perf", &TEXT.as_bytes()[..length]);
    }
    let deep = format!("a 1/1 1.000001: 1 x: \n{}", "\tff f (x)\n".repeat(100_000));
    import_any("perf", deep.as_bytes());
    for text in [
        "",
        "\n",
        "# only\n",
        "{}",
        "main;work 3\n",
        "prose with 1.5: numbers\n",
    ] {
        assert!(!sniff(text.as_bytes()), "{text:?}");
    }
}

proptest! {
    #[test]
    fn times_are_exact(seconds in 1..10_000_000_000u64, nanoseconds in 0..1_000_000_000u64, period in any::<u64>()) {
        let text = format!("a b 1/2 [000] {seconds}.{nanoseconds:09}: {period} cycles: \n\t1 f (x)\n\n");
        let trace = crate::open_bytes(text.into_bytes()).unwrap();
        let (_, rows) = trace.host_calls.columns().next().unwrap();
        prop_assert_eq!(rows.start[0], Timestamp(seconds * 1_000_000_000 + nanoseconds));
        prop_assert_eq!(rows.argument[0], period);
    }

    #[test]
    fn any_text_is_harmless(text in "(a 1/2 1\\.000001: |\\PC{0,20}|\t1 f \\(x\\)|\n|1 x: )*") {
        import_any("perf", text.as_bytes());
    }
}
