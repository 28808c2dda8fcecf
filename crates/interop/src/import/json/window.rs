//! The part of a file that is being looked at: a buffer that moves over it, and grows for a value that is larger.

use std::io::Read;

use crate::error::Error;
use crate::import::Input;
use crate::import::json::scan::{Stop, after_space};

/// Small enough to stay in the cache of a core.
const USUAL_BYTES: usize = 256 << 10;

/// A moving view of a file.
pub(super) struct Window<'i> {
    input: &'i mut Input,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    position: u64,
    ended: bool,
}

/// What became of a wish for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum More {
    /// There is more to see now.
    Read,
    /// The file has ended.
    Ended,
    /// The view has the size that was given as its limit.
    Full,
}

impl<'i> Window<'i> {
    pub(super) fn new(input: &'i mut Input) -> Self {
        Window {
            input,
            buffer: vec![0; USUAL_BYTES],
            start: 0,
            end: 0,
            position: 0,
            ended: false,
        }
    }

    /// What is seen and not passed yet.
    #[inline]
    pub(super) fn text(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// How far into the content the view begins.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Leaves bytes behind.
    #[inline]
    pub(super) fn pass(&mut self, bytes: usize) {
        let bytes = bytes.min(self.end - self.start);
        self.start += bytes;
        self.position += bytes as u64;
    }

    /// Sees more of the file, up to `limit` bytes at once.
    pub(super) fn more(&mut self, limit: usize) -> Result<More, Error> {
        if self.ended {
            return Ok(More::Ended);
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            if self.end >= limit.max(USUAL_BYTES) {
                return Ok(More::Full);
            }
            self.buffer.resize(self.end * 2, 0);
        } else if self.buffer.len() > USUAL_BYTES && self.end < USUAL_BYTES {
            self.buffer.truncate(USUAL_BYTES);
            self.buffer.shrink_to_fit();
        }
        let before = self.end;
        while self.end < self.buffer.len() {
            let count = self
                .input
                .read(&mut self.buffer[self.end..])
                .map_err(|source| Error::Read { source })?;
            if count == 0 {
                self.ended = true;
                break;
            }
            self.end += count;
        }
        Ok(if self.end == before {
            More::Ended
        } else {
            More::Read
        })
    }

    /// The next byte that is no white space; `None` at the file's end.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<u8>, Error> {
        loop {
            match after_space(self.text(), 0) {
                Ok(at) => {
                    self.pass(at);
                    return Ok(self.text().first().copied());
                }
                Err(_) => {
                    self.pass(self.end - self.start);
                    if self.more(USUAL_BYTES)? != More::Read {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Lets `scan` look at the text until it has seen enough of it.
    pub(super) fn scan<T>(
        &mut self,
        limit: usize,
        mut scan: impl FnMut(&[u8]) -> Result<T, Stop>,
    ) -> Result<Result<T, Unfinished>, Error> {
        loop {
            match scan(self.text()) {
                Ok(found) => return Ok(Ok(found)),
                Err(Stop::Broken) => return Ok(Err(Unfinished::Broken)),
                Err(Stop::Short) => match self.more(limit)? {
                    More::Read => {}
                    More::Ended => return Ok(Err(Unfinished::Ended)),
                    More::Full => return Ok(Err(Unfinished::TooLarge)),
                },
            }
        }
    }

    /// Passes over the value that begins here, however large, without keeping it. `false` when the file ends within it.
    pub(super) fn pass_value(&mut self) -> Result<bool, Error> {
        let (mut depth, mut in_string, mut is_escaped) = (0u64, false, false);
        loop {
            let mut at = 0;
            let text = self.text();
            while at < text.len() {
                let byte = text[at];
                at += 1;
                if in_string {
                    match byte {
                        _ if is_escaped => is_escaped = false,
                        b'\\' => is_escaped = true,
                        b'"' => in_string = false,
                        _ => continue,
                    }
                } else {
                    match byte {
                        b'"' => in_string = true,
                        b'{' | b'[' => depth += 1,
                        b'}' | b']' if depth > 0 => depth -= 1,
                        // The end of a bare word belongs to what is around it.
                        b'}' | b']' | b',' if depth == 0 => {
                            self.pass(at - 1);
                            return Ok(true);
                        }
                        _ => continue,
                    }
                }
                let is_whole = depth == 0 && !in_string && matches!(byte, b'"' | b'}' | b']');
                if is_whole {
                    self.pass(at);
                    return Ok(true);
                }
            }
            self.pass(at);
            if self.more(USUAL_BYTES)? != More::Read {
                return Ok(false);
            }
        }
    }
}

/// Why a scan did not come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfinished {
    /// The file ends first.
    Ended,
    /// The text is not what it should be.
    Broken,
    /// The value is larger than the limit.
    TooLarge,
}
