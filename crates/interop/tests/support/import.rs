//! Imports for tests: from bytes or text, and what came of them.

#![allow(dead_code, unreachable_pub, reason = "each test program uses its own part")]

use std::io::{Cursor, Read};
use std::path::Path;

use tracesmith_format::{Columns, StringId, Table, Writer, WriterOptions};
use tracesmith_interop::Error;
use tracesmith_interop::import::{ImportOptions, Input, Sink, import};
use tracesmith_trace::{TableView, Trace};

pub fn rows<T: Table>(table: &TableView<T>) -> Vec<T> {
    let columns = table.columns().map(|(_, columns)| columns);
    columns
        .flat_map(|columns| (0..columns.len()).map(|row| columns.row(row)))
        .collect()
}

pub fn unpacked(path: &Path) -> Vec<u8> {
    let mut content = Vec::new();
    Input::open(path).unwrap().read_to_end(&mut content).unwrap();
    content
}

pub fn import_bytes(name: &str, bytes: Vec<u8>, options: &ImportOptions) -> Result<Trace, Error> {
    import_files(vec![(name, bytes)], options)
}

pub fn import_files(files: Vec<(&str, Vec<u8>)>, options: &ImportOptions) -> Result<Trace, Error> {
    let mut bytes = Cursor::new(Vec::new());
    let sink: Box<dyn Sink + '_> = Box::new(&mut bytes);
    let mut writer = Writer::new(sink, WriterOptions::default()).unwrap();
    let inputs = files
        .into_iter()
        .map(|(name, bytes)| Input::from_bytes(name, bytes).unwrap());
    import(inputs.collect(), options, &mut writer)?;
    writer.seal().unwrap();
    Ok(tracesmith_interop::open_bytes(bytes.into_inner()).unwrap())
}

pub fn import_text(text: &str) -> Trace {
    import_bytes("test.json", text.as_bytes().to_vec(), &ImportOptions::default()).unwrap()
}

/// What health says, as `words count`.
pub fn health(trace: &Trace) -> Vec<String> {
    let items = trace.health().recorded;
    items
        .iter()
        .map(|item| format!("{} {}", item.detail, item.count))
        .collect()
}

pub fn named(trace: &Trace, names: impl IntoIterator<Item = StringId>) -> Vec<&str> {
    names.into_iter().map(|name| trace.string(name)).collect()
}
