//! Words and texts of a message, one after another.

use crate::error::Error;

/// Puts a message together.
#[derive(Default)]
pub(super) struct Encoder(Vec<u8>);

impl Encoder {
    pub(super) fn word(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn text(&mut self, text: &[u8]) -> &mut Self {
        self.word(text.len() as u64);
        self.0.extend_from_slice(text);
        self
    }

    pub(super) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}

/// Takes a message apart.
pub(super) struct Decoder<'b>(&'b [u8]);

impl<'b> Decoder<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn word(&mut self) -> Result<u64, Error> {
        let (word, rest) = self
            .0
            .split_first_chunk::<8>()
            .ok_or(malformed("it ends too early"))?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*word))
    }

    pub(super) fn text(&mut self) -> Result<&'b [u8], Error> {
        let length = usize::try_from(self.word()?).unwrap_or(usize::MAX);
        let (text, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(malformed("a text is cut off"))?;
        self.0 = rest;
        Ok(text)
    }

    pub(super) fn string(&mut self) -> Result<String, Error> {
        Ok(String::from_utf8_lossy(self.text()?).into_owned())
    }
}

pub(super) fn malformed(what: &'static str) -> Error {
    Error::Malformed {
        message: "order",
        what,
    }
}
