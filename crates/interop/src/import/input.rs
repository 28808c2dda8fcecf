//! A foreign file as a stream of its content, unpacked on the way.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;

/// So much of the content is looked at to tell formats apart.
const HEAD_BYTES: usize = 64 << 10;
/// A packed file may grow to this, and beyond it by [`MAX_RATIO`]. Real traces shrink by 10 to 40.
const UNPACKED_FREELY: u64 = 1 << 30;
const MAX_RATIO: u64 = 300;

/// A file to import: its content is read once, from the start.
pub struct Input {
    name: String,
    path: Option<PathBuf>,
    packing: Packing,
    head: Vec<u8>,
    head_read: usize,
    content: Box<dyn Read + Send>,
    packed_read: Arc<AtomicU64>,
    unpacked: u64,
    length: u64,
    cut: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    None,
    Gzip,
    Zstd,
}

impl Input {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let open = |source| Error::Open { source };
        let file = File::open(path).map_err(open)?;
        let metadata = file.metadata().map_err(open)?;
        let plain = metadata.is_file();
        let mut input = Self::new(path.display().to_string(), Box::new(file), metadata.len())?;
        input.path = plain.then(|| path.to_owned());
        Ok(input)
    }

    /// A file that is in memory.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Self, Error> {
        let length = bytes.len() as u64;
        Self::new(name.to_owned(), Box::new(Cursor::new(bytes)), length)
    }

    fn new(name: String, raw: Box<dyn Read + Send>, length: u64) -> Result<Self, Error> {
        let packed_read = Arc::new(AtomicU64::new(0));
        let mut raw = Counted {
            inner: raw,
            count: Arc::clone(&packed_read),
        };
        let mut magic = Vec::new();
        let read = |source| Error::Read { source };
        (&mut raw).take(4).read_to_end(&mut magic).map_err(read)?;
        let packing = match magic[..] {
            [0x1f, 0x8b, ..] => Packing::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd] => Packing::Zstd,
            _ => Packing::None,
        };
        let raw = Cursor::new(magic).chain(raw);
        let content: Box<dyn Read + Send> = match packing {
            Packing::None => Box::new(raw),
            Packing::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(
                256 << 10,
                raw,
            ))),
            Packing::Zstd => Box::new(zstd::stream::read::Decoder::new(raw).map_err(read)?),
        };
        let mut input = Input {
            name,
            path: None,
            packing,
            head: Vec::new(),
            head_read: 0,
            content,
            packed_read,
            unpacked: 0,
            length,
            cut: false,
        };
        let mut head = Vec::new();
        (&mut input)
            .take(HEAD_BYTES as u64)
            .read_to_end(&mut head)
            .map_err(read)?;
        input.head = head;
        Ok(input)
    }

    /// What the user calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the packing; `None` for a plain file.
    pub(super) fn packed_with(&self) -> Option<&'static str> {
        match self.packing {
            Packing::None => None,
            Packing::Gzip => Some("gzip"),
            Packing::Zstd => Some("zstd"),
        }
    }

    /// The beginning of the content.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Where it can be opened again by a reader of its own; `None` for what is packed, or no file.
    pub fn plain_path(&self) -> Option<&Path> {
        self.path.as_deref().filter(|_| self.packing == Packing::None)
    }

    /// The file's length in bytes, as it is stored; 0 for a stream.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Bytes of the stored file that were read so far.
    pub fn bytes_read(&self) -> u64 {
        self.packed_read.load(Ordering::Relaxed)
    }

    /// Whether the packed file ends in its middle: what is left of it was given.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    fn check_growth(&self) -> io::Result<()> {
        let allowed = self.bytes_read().saturating_mul(MAX_RATIO);
        if self.packing != Packing::None && self.unpacked > UNPACKED_FREELY.max(allowed) {
            return Err(io::Error::other(format!(
                "the packed file grows to more than {MAX_RATIO} times its size"
            )));
        }
        Ok(())
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.head_read < self.head.len() {
            let count = (&self.head[self.head_read..]).read(buffer)?;
            self.head_read += count;
            return Ok(count);
        }
        if self.cut {
            return Ok(0);
        }
        match self.content.read(buffer) {
            Ok(count) => {
                self.unpacked += count as u64;
                self.check_growth()?;
                Ok(count)
            }
            // A packed file that was cut off, or is damaged from here on: what came before is good.
            Err(error)
                if self.packing != Packing::None
                    && (error.kind() == io::ErrorKind::UnexpectedEof || self.unpacked > 0) =>
            {
                self.cut = true;
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input")
            .field("name", &self.name)
            .field("packing", &self.packing)
            .finish_non_exhaustive()
    }
}

struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.count.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may stop on any error")]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn content(bytes: Vec<u8>) -> (Vec<u8>, bool) {
        let mut input = Input::from_bytes("test", bytes).unwrap();
        let mut content = Vec::new();
        input.read_to_end(&mut content).unwrap();
        (content, input.is_cut())
    }

    fn text() -> Vec<u8> {
        (0..100_000u32)
            .flat_map(|n| format!("{n} ").into_bytes())
            .collect()
    }

    #[test]
    fn every_packing_gives_the_same_content() {
        let twice = [gzip(b"one "), gzip(b"two")].concat();
        assert_eq!(content(twice), (b"one two".to_vec(), false));
        for packed in [text(), gzip(&text()), zstd::encode_all(&text()[..], 1).unwrap()] {
            assert_eq!(content(packed), (text(), false));
        }
        assert_eq!(content(Vec::new()), (Vec::new(), false));
    }

    #[test]
    fn a_cut_packed_file_gives_what_is_left() {
        for packed in [gzip(&text()), zstd::encode_all(&text()[..], 1).unwrap()] {
            let (left, cut) = content(packed[..packed.len() / 2].to_vec());
            assert!(cut && left.len() > 100_000 && text().starts_with(&left));
        }
    }

    #[test]
    fn a_file_that_grows_without_end_is_refused() {
        let mut packed = Vec::new();
        let piece = gzip(&vec![b' '; 64 << 20]);
        for _ in 0..20 {
            packed.extend_from_slice(&piece);
        }
        let mut input = Input::from_bytes("bomb", packed).unwrap();
        let error = io::copy(&mut input, &mut io::sink()).unwrap_err();
        assert!(error.to_string().contains("300 times"), "{error}");
    }
}
