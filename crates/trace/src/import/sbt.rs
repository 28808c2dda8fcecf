//! The native format: nothing is converted, blocks are read as they are needed. What is foreign becomes native first.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use tracesmith_format::{FileSource, MAGIC, Memory, Reader, Source};

use crate::error::Error;
use crate::import::{Input, import_to_bytes, importer_of, unknown_format};

/// Enough of a file in memory to tell what it is, packed or not.
const BEGINNING: usize = 256 << 10;

/// The source of a native trace, wherever its bytes are.
pub(crate) type AnySource = Box<dyn Source>;

/// Opens a file. What cannot be read at any offset (a pipe, a terminal) is read into memory first.
pub(crate) fn open(path: &Path) -> Result<Reader<AnySource>, Error> {
    let open = |source| Error::Open { source };
    let mut file = File::open(path).map_err(open)?;
    if !file.metadata().map_err(open)?.is_file() {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(open)?;
        return open_bytes(bytes);
    }
    let source = FileSource::new(file).map_err(open)?;
    let mut buffer = Vec::new();
    let is_native = source
        .read(0, MAGIC.len(), &mut buffer)
        .is_ok_and(|magic| magic == MAGIC);
    if !is_native {
        let input = Input::open(path)?;
        if importer_of(&input).is_some() {
            return native(Memory(import_to_bytes(input)?));
        }
        return native_or_unknown(source, &input);
    }
    native(source)
}

/// Opens a trace that is in memory.
pub(crate) fn open_bytes(bytes: Vec<u8>) -> Result<Reader<AnySource>, Error> {
    const NAME: &str = "standard input";
    if !bytes.starts_with(&MAGIC) {
        let beginning = bytes[..bytes.len().min(BEGINNING)].to_vec();
        let input = Input::from_bytes(NAME, beginning)?;
        if importer_of(&input).is_some() {
            return native(Memory(import_to_bytes(Input::from_bytes(NAME, bytes)?)?));
        }
        return native_or_unknown(Memory(bytes), &input);
    }
    native(Memory(bytes))
}

/// A native trace without its beginning is still one. What is none is reported as what it looks like.
fn native_or_unknown(source: impl Source + 'static, input: &Input) -> Result<Reader<AnySource>, Error> {
    match native(source) {
        Err(Error::Format(tracesmith_format::Error::NotATrace)) => Err(unknown_format(input)),
        other => other,
    }
}

fn native(source: impl Source + 'static) -> Result<Reader<AnySource>, Error> {
    Ok(Reader::open(Box::new(source) as AnySource)?)
}
