//! Lines of a text file, none of them longer than memory allows.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read};

use tracesmith_format::tables::HealthCause;

use crate::error::Error;
use crate::import::Builder;

/// The longest line that is kept: 10,000 frames of a long name each.
const MAX_LINE: u64 = 16 << 20;

/// Reads lines. What a line has beyond [`MAX_LINE`] is left out, and what is no UTF-8 is mended; both are counted.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    shortened: u64,
    mended: u64,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Lines {
            reader: BufReader::with_capacity(256 << 10, reader),
            line: Vec::new(),
            shortened: 0,
            mended: 0,
        }
    }

    /// The next line without its end; `None` behind the last.
    pub(super) fn next(&mut self) -> Result<Option<Cow<'_, str>>, Error> {
        let read = |source| Error::Read { source };
        self.line.clear();
        let mut limited = (&mut self.reader).take(MAX_LINE);
        if limited.read_until(b'\n', &mut self.line).map_err(read)? == 0 {
            return Ok(None);
        }
        if self.line.len() as u64 == MAX_LINE && self.line.last() != Some(&b'\n') {
            self.shortened += 1;
            self.reader.skip_until(b'\n').map_err(read)?;
        }
        while let Some(b'\n' | b'\r') = self.line.last() {
            self.line.pop();
        }
        let text = String::from_utf8_lossy(&self.line);
        if matches!(text, Cow::Owned(_)) {
            self.mended += 1;
        }
        Ok(Some(text))
    }

    /// Counts what was changed.
    pub(super) fn note(&self, builder: &mut Builder<'_, '_>) {
        builder.doubt(
            HealthCause::CUT,
            "lines longer than 16 MiB, shortened",
            self.shortened,
        );
        builder.doubt(
            HealthCause::BAD_TEXT,
            "lines that are no UTF-8, mended",
            self.mended,
        );
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may stop on any error")]
mod tests {
    use super::*;

    #[test]
    fn lines_come_without_ends_and_never_too_long() {
        let long = vec![b'x'; MAX_LINE as usize + 5];
        let bytes = [b"one\r\n\ntwo\xff\n".to_vec(), long, b"\nlast".to_vec()].concat();
        let mut lines = Lines::new(&bytes[..]);
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(line.into_owned());
        }
        assert_eq!(found[..3], ["one", "", "two\u{fffd}"]);
        assert_eq!((found[3].len() as u64, found[4].as_str()), (MAX_LINE, "last"));
        assert_eq!((lines.shortened, lines.mended), (1, 1));
    }
}
