//! The entry point for fuzzing: records as a hostile or broken target would write them. `fuzz/` runs it under
//! libFuzzer, and `tests/fuzz_corpus.rs` replays its corpus.

use tracesmith_wire::frame::{Parsed, parse};

use crate::{
    capture::{Destination, Existing},
    clocks::HostClocks,
    end::End,
    identity::Identity,
    rows::{Definitions, TraceRows},
    trace_file::TraceFile,
};

/// The size of the simulated ring.
const RING_BYTES: u64 = 1 << 16;

/// Converts the records in `data` to rows, up to the first invalid record, and discards the trace.
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
    // Discarding cannot fail, so the result does not matter.
    let _ = trace.finish();
}
