//! The entry point for fuzzing: what a target's rings hold, as a hostile or
//! broken one would write it. `fuzz/` runs it under libFuzzer;
//! `tests/fuzz_corpus.rs` replays its corpus.

use tracesmith_wire::frame::{Parsed, parse};

use crate::{
    capture::{Destination, Existing},
    clocks::HostClocks,
    end::End,
    identity::Identity,
    rows::{Definitions, TraceRows},
    trace_file::TraceFile,
};

/// Bytes of the ring that the records are taken to lie in.
const RING_BYTES: u64 = 1 << 16;

/// Makes rows of the records in `data`, up to the first that is none, and writes
/// the trace to nowhere.
pub fn records(data: &[u8]) {
    let nowhere = Destination {
        path: "/dev/null".into(),
        existing: Existing::Replace,
    };
    let Ok(file) = TraceFile::create(&nowhere) else {
        return;
    };
    let mut trace = TraceRows::begin(file, Vec::new(), &[], &HostClocks::default());
    let mut process = trace.begin_process(&Identity::default());
    let mut rest = data;
    while let Ok(Parsed::Record { record, frame_bytes }) = parse(rest, RING_BYTES) {
        let _ = process.take(&record, Definitions::Complete, &mut trace);
        rest = rest.get(frame_bytes..).unwrap_or_default();
    }
    process.end(End::Unknown, &mut trace);
    // Writing to nowhere goes well; what it says is of no interest.
    let _ = trace.finish();
}
