//! Records are as long as each version of CUPTI makes them, and calls nest as they do there.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]

use crate::stage;

use std::collections::BTreeMap;

use stage::{number_after, records, stage};
use tracesmith_fake_cuda::{CuptiVersion, Options};

/// The length of each kind of record that a run shows, by where the next one begins.
fn lengths(lines: &[String]) -> BTreeMap<u32, u64> {
    let mut found = BTreeMap::new();
    for pair in lines.windows(2) {
        let is_record = |line: &String| line.starts_with("record ");
        if is_record(&pair[0]) && is_record(&pair[1]) {
            let length = number_after(&pair[1], "at") - number_after(&pair[0], "at");
            let kind = number_after(&pair[0], "record") as u32;
            assert_eq!(*found.entry(kind).or_insert(length), length, "kind {kind}");
        }
    }
    found
}

#[test]
fn every_version_has_its_lengths() {
    let Some(stage) = stage() else { return };
    // As the headers of 12.4, 12.9, 13.0 and 13.4 have them.
    let expected: [(u32, [u64; 4]); 14] = [
        (1, [88, 96, 96, 112]),
        (2, [88, 88, 88, 104]),
        (4, [40, 40, 40, 40]),
        (5, [40, 40, 40, 40]),
        (8, [184, 184, 184, 192]),
        (9, [24, 32, 32, 40]),
        (10, [208, 208, 216, 248]),
        (12, [56, 56, 56, 56]),
        (13, [32, 32, 40, 40]),
        (36, [24, 56, 56, 56]),
        (37, [24, 24, 24, 24]),
        (38, [40, 56, 56, 56]),
        (49, [120, 128, 128, 128]),
        (50, [72, 72, 80, 80]),
    ];
    let spy = stage.path("spy.so");
    for (index, version) in CuptiVersion::ALL.into_iter().enumerate() {
        let options = Options {
            cupti_version: version,
            ..Options::default()
        };
        let mut found = BTreeMap::new();
        for mode in ["events", "copies 2", "memory", "nvtx", "runtime"] {
            let wishes = [
                ("SPY_KINDS", "4,5,9,8,1,2,10,12,13,36,37,38,49,50"),
                ("NVTX_INJECTION64_PATH", spy.to_str().unwrap()),
            ];
            let lines = stage.spy(&format!("launcher {mode}"), &options, &wishes);
            assert_eq!(lines[0], format!("version {}", version.number()));
            found.extend(lengths(&lines));
        }
        for (kind, by_version) in expected {
            assert_eq!(found.get(&kind), Some(&by_version[index]), "{version:?} {kind}");
        }
    }
}

#[test]
fn old_versions_share_one_buffer_and_new_ones_have_one_per_thread() {
    let Some(stage) = stage() else { return };
    for (version, buffers) in [(CuptiVersion::V12_9, 1), (CuptiVersion::V13_0, 4)] {
        let options = Options {
            cupti_version: version,
            ..Options::default()
        };
        let lines = stage.spy("launcher threads 3 5", &options, &[("SPY_KINDS", "10,4")]);
        let requests = lines.iter().filter(|line| line.starts_with("request")).count();
        assert_eq!(requests, buffers, "{version:?}");
        assert_eq!(records(&lines, 10).len(), 15);
    }
}

#[test]
fn calls_are_filtered_from_12_5_on() {
    let Some(stage) = stage() else { return };
    let options = Options {
        cupti_version: CuptiVersion::V12_4,
        ..Options::default()
    };
    let wishes = [("SPY_KINDS", "4"), ("SPY_FILTER", "307")];
    let lines = stage.spy("launcher launch 2", &options, &wishes);
    // CUPTI_ERROR_NOT_SUPPORTED stands for the missing symbol.
    assert!(lines.contains(&"filter 27".to_owned()), "{lines:?}");
}

#[test]
fn a_driver_call_inside_a_runtime_call_has_its_number() {
    let Some(stage) = stage() else { return };
    let wishes = [("SPY_KINDS", "4,5,1,2"), ("SPY_CALLBACKS", "1:*,2:*")];
    let lines = stage.spy("launcher runtime", &Options::default(), &wishes);
    let numbers = |kind: u32, cbid: u64| -> Vec<u64> {
        let found = records(&lines, kind).into_iter();
        let of_call = found.filter(|line| number_after(line, "api") == cbid);
        of_call.map(|line| number_after(line, "corr")).collect()
    };
    // cudaMalloc and cuMemAlloc, cudaMemset and cuMemsetD8, cudaMemcpyAsync and cuMemcpyAsync.
    for (runtime, driver) in [(20, 243), (49, 249), (41, 306)] {
        let outer = numbers(5, runtime);
        assert_eq!(outer.len(), 1);
        assert_eq!(numbers(4, driver), outer);
    }
    assert_eq!(number_after(records(&lines, 2)[0], "corr"), numbers(5, 49)[0]);
    assert_eq!(number_after(records(&lines, 1)[0], "corr"), numbers(5, 41)[0]);
    let nested = lines
        .iter()
        .find(|line| line.starts_with("callback 1:243 enter"))
        .unwrap();
    assert_eq!(number_after(nested, "depth"), 1);
}

#[test]
fn full_buffers_leave_by_themselves() {
    let Some(stage) = stage() else { return };
    let wishes = [("SPY_KINDS", "10,4"), ("SPY_BUFFER", "4096")];
    // Long enough for the thread that delivers to get its turn.
    let options = Options {
        kernel_nanos: 50_000,
        ..Options::default()
    };
    let lines = stage.spy("launcher launch 1000", &options, &wishes);
    let before_the_end = lines.iter().take_while(|line| *line != "end");
    let delivered = before_the_end
        .filter(|line| line.starts_with("record 10"))
        .count();
    assert!(delivered > 0);
    assert_eq!(records(&lines, 10).len(), 1000);
    assert_eq!(records(&lines, 4).len(), 1006);
}

#[test]
fn work_keeps_its_order_in_a_stream() {
    let Some(stage) = stage() else { return };
    let lines = stage.spy(
        "launcher events",
        &Options::default(),
        &[("SPY_KINDS", "10,36,38")],
    );
    let spans = |stream: u64| -> Vec<(u64, u64)> {
        let kernels = records(&lines, 10).into_iter();
        let mine = kernels.filter(|line| number_after(line, "stream") == stream);
        mine.map(|line| (number_after(line, "start"), number_after(line, "end")))
            .collect()
    };
    let (first, second) = (spans(13), spans(14));
    assert_eq!((first.len(), second.len()), (10, 10));
    for stream in [&first, &second] {
        assert!(stream.windows(2).all(|pair| pair[0].1 <= pair[1].0 + 1));
    }
    // The second stream waited for an event behind the last kernel of the first.
    assert!(first[9].1 <= second[0].0 + 1);
}
