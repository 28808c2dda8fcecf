//! `profile --perfetto`: beside the recording there is a trace that Perfetto loads, with all that was recorded.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use serde_json::{Value, json};
use support::perfetto;
use support::rows::{call_counts, joined_kernels};
use support::stage::{Place, run, stage};

#[test]
fn a_recording_is_written_for_perfetto_too() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let (run, trace) = place.profiled("--perfetto", "launcher launch 1000");
    assert_eq!(run.stdout, "launched 1000\n");
    assert!(run.stderr.contains("wrote t.pftrace ("), "{}", run.stderr);
    let calls: usize = call_counts(&trace).values().sum();
    let kernels = joined_kernels(&trace);
    let nanos: u64 = kernels.iter().map(|kernel| kernel.end.0 - kernel.start.0).sum();
    let queries = [
        "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
        "select count(*), sum(dur) from slice where category = 'kernel'",
        "select count(*) from slice where category like 'api%'",
        // Each kernel has an arrow from the call that launched it, and from nothing else.
        "select count(*) from flow f join slice c on f.slice_out = c.id join slice k on f.slice_in = k.id \
         where c.name = 'cuLaunchKernel' and k.category = 'kernel'",
        "select name from process where pid > 0",
    ];
    let Some(answers) = perfetto::query(&place.path("t.pftrace"), &queries) else {
        return;
    };
    assert_eq!(answers[0], Vec::<Value>::new());
    // Each time is brought to Perfetto's clock by itself, which may round the two ends of a kernel differently.
    let [counted, summed] = [0, 1].map(|column| answers[1][0][column].as_u64().unwrap());
    assert_eq!(counted, 1000);
    assert!(summed.abs_diff(nanos) <= counted, "{summed} of {nanos}");
    assert_eq!(answers[2], [json!([calls])]);
    assert_eq!(answers[3], [json!([1000])]);
    assert_eq!(answers[4], [json!(["launcher"])]);
}

#[test]
fn the_programs_end_counts_when_the_trace_cannot_be_written() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    // A folder stands where the file should be.
    std::fs::create_dir(place.path("t.pftrace")).unwrap();
    let run = run(&mut place.profile("--perfetto", "launcher exit 7"));
    assert_eq!(run.code, Some(7), "{}", run.stderr);
    assert!(
        run.stderr.contains("cannot write the Perfetto trace"),
        "{}",
        run.stderr
    );
    assert_eq!(joined_kernels(&place.trace("t.sbt")).len(), 10);
}
