//! Where a trace's bytes come from: memory, a mapped file, or a file read piece by piece.
//!
//! [`FileSource`] reads with positioned reads instead of a mapping on purpose: a file that another process cuts short while
//! it is read then gives an error, where a mapping gives SIGBUS and kills the reader. The copy costs little beside
//! decoding (`bench/benches/format.rs` shows both). Whoever holds a mapping passes it as [`Memory`].

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes that can be read at any offset, from several threads at once.
pub trait Source: Send + Sync {
    /// How many bytes there are.
    fn length(&self) -> u64;

    /// The `length` bytes at `offset`, in `buffer` or, without copying, in the source itself.
    fn read<'a>(&'a self, offset: u64, length: usize, buffer: &'a mut Vec<u8>) -> io::Result<&'a [u8]>;
}

/// Bytes in memory, a mapped file included.
#[derive(Clone, Debug)]
pub struct Memory<B>(pub B);

impl<B: AsRef<[u8]> + Send + Sync> Source for Memory<B> {
    fn length(&self) -> u64 {
        self.0.as_ref().len() as u64
    }

    fn read<'a>(&'a self, offset: u64, length: usize, _: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
        usize::try_from(offset)
            .ok()
            .and_then(|start| self.0.as_ref().get(start..start.checked_add(length)?))
            .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

/// A file, as long as it was when it was opened.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    length: u64,
}

impl FileSource {
    /// Opens a file. A directory is refused here, not at the first read.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::new(File::open(path)?)
    }

    /// Takes an open file.
    pub fn new(file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(FileSource {
            file,
            length: metadata.len(),
        })
    }
}

impl Source for FileSource {
    fn length(&self) -> u64 {
        self.length
    }

    fn read<'a>(&'a self, offset: u64, length: usize, buffer: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
        if offset
            .checked_add(length as u64)
            .is_none_or(|end| end > self.length)
        {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer.resize(length, 0);
        self.file.read_exact_at(buffer, offset)?;
        Ok(buffer)
    }
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn length(&self) -> u64 {
        (**self).length()
    }

    fn read<'a>(&'a self, offset: u64, length: usize, buffer: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
        (**self).read(offset, length, buffer)
    }
}
