//! Entry points for fuzzing: every importer behind a function that takes any bytes and must neither panic, nor hang, nor
//! take more memory than the input justifies. `fuzz/` runs them under libFuzzer; `tests/fuzz_corpus.rs` replays its corpus.

use std::io::Cursor;
use std::ops::ControlFlow;

use tracesmith_format::{Writer, WriterOptions};
use tracesmith_trace::{Query, Trace};

use crate::import::{IMPORTERS, ImportOptions, Input, Sink, import};

/// Imports any bytes as a file of the named format and walks through what came of it.
pub fn import_any(name: &str, data: &[u8]) {
    let format = IMPORTERS.iter().find(|importer| importer.name == name);
    let format = format.expect("a fuzz program is named after an importer");
    let _ = (format.sniff)(data);
    let Ok(input) = Input::from_bytes("fuzz", data.to_vec()) else {
        return;
    };
    let mut bytes = Cursor::new(Vec::new());
    let sink: Box<dyn Sink + '_> = Box::new(&mut bytes);
    let mut writer = Writer::new(sink, WriterOptions::default()).expect("memory takes everything");
    let options = ImportOptions {
        format: Some(format),
        ..ImportOptions::default()
    };
    if import(vec![input], &options, &mut writer).is_err() {
        return;
    }
    writer.seal().expect("memory takes everything");
    let trace = Trace::from_bytes(bytes.into_inner()).expect("what was imported is a trace");
    assert!(trace.health().damage.is_empty(), "what was imported is whole");
    trace.for_each_event(&Query::default(), |found| {
        let _ = found.columns.detail(found.row, &trace.strings);
        let _ = trace.event_name(&found.event);
        ControlFlow::Continue(())
    });
}
