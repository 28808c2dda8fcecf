//! The native format: blocks are read as they are needed.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use tracesmith_format::{Block, FileSource, Memory, Reader, Source};

use crate::error::Error;

/// The source of a native trace, wherever its bytes are.
pub type AnySource = Box<dyn Source>;

/// Opens a file. A file that cannot be read at any offset (a pipe, a terminal) is read into memory first.
pub(crate) fn open(path: &Path) -> Result<Reader<AnySource>, Error> {
    let open = |source| Error::Open { source };
    let mut file = File::open(path).map_err(open)?;
    if !file.metadata().map_err(open)?.is_file() {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(open)?;
        return open_bytes(bytes);
    }
    native(FileSource::new(file).map_err(open)?)
}

/// Opens a file of which `earlier` has these blocks. What follows them is new.
pub(crate) fn open_after(path: &Path, earlier: &[Block]) -> Result<Reader<AnySource>, Error> {
    let source = FileSource::open(path).map_err(|source| Error::Open { source })?;
    Ok(Reader::open_after(Box::new(source) as AnySource, earlier)?)
}

/// Opens a trace that is in memory.
pub(crate) fn open_bytes(bytes: Vec<u8>) -> Result<Reader<AnySource>, Error> {
    native(Memory(bytes))
}

fn native(source: impl Source + 'static) -> Result<Reader<AnySource>, Error> {
    Ok(Reader::open(Box::new(source) as AnySource)?)
}
