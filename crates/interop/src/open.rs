//! A trace of any format, native or not.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use tracesmith_format::MAGIC;
use tracesmith_trace::Trace;

use crate::error::Error;
use crate::import::{Input, import_to_bytes, importer_of, unknown_format};

/// Enough of a file in memory to recognize its format, compressed or not.
const BEGINNING: usize = 256 << 10;

/// Opens a trace file of any format that TraceSmith reads. A native trace is read block by block, on demand. A foreign
/// file is converted in memory. A pipe or terminal is read to its end first.
pub fn open(path: &Path) -> Result<Trace, Error> {
    let open = |source| Error::Open { source };
    let mut file = File::open(path).map_err(open)?;
    if !file.metadata().map_err(open)?.is_file() {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(open)?;
        return open_bytes(bytes);
    }
    let mut magic = Vec::with_capacity(MAGIC.len());
    let is_read = file.take(MAGIC.len() as u64).read_to_end(&mut magic).is_ok();
    if is_read && magic == MAGIC {
        return Ok(Trace::open(path)?);
    }
    let input = Input::open(path)?;
    if importer_of(&input).is_some() {
        return Ok(Trace::from_bytes(import_to_bytes(input)?)?);
    }
    native_or_unknown(Trace::open(path), &input)
}

/// Opens a trace of any format that is in memory.
pub fn open_bytes(bytes: Vec<u8>) -> Result<Trace, Error> {
    const NAME: &str = "standard input";
    if bytes.starts_with(&MAGIC) {
        return Ok(Trace::from_bytes(bytes)?);
    }
    let beginning = bytes[..bytes.len().min(BEGINNING)].to_vec();
    let input = Input::from_bytes(NAME, beginning)?;
    if importer_of(&input).is_some() {
        let input = Input::from_bytes(NAME, bytes)?;
        return Ok(Trace::from_bytes(import_to_bytes(input)?)?);
    }
    native_or_unknown(Trace::from_bytes(bytes), &input)
}

/// A native trace without its beginning is still one. Anything else is reported by what it looks like.
fn native_or_unknown(trace: Result<Trace, tracesmith_trace::Error>, input: &Input) -> Result<Trace, Error> {
    match trace {
        Err(tracesmith_trace::Error::Format(tracesmith_format::Error::NotATrace)) => {
            Err(unknown_format(input))
        }
        other => Ok(other?),
    }
}
