//! The arguments of an event that have no column, as one JSON text with keys and values as they stand in the file.

use tracesmith_format::StringId;

use crate::error::Error;
use crate::import::Builder;
use crate::import::json::text::mended;

/// Collects arguments.
#[derive(Debug, Default)]
pub(super) struct Rest {
    text: Vec<u8>,
}

impl Rest {
    #[inline]
    pub(super) fn clear(&mut self) {
        self.text.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Adds an argument: the key between its quotes, the value as written.
    #[inline]
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        self.text
            .extend_from_slice(if self.text.is_empty() { b"{\"" } else { b",\"" });
        self.text.extend_from_slice(key);
        self.text.extend_from_slice(b"\":");
        self.text.extend_from_slice(value);
    }

    /// Adds a text, given as written between its quotes.
    pub(super) fn add_text(&mut self, key: &[u8], text: &[u8]) {
        self.add(key, b"\"");
        self.text.extend_from_slice(text);
        self.text.push(b'"');
    }

    /// The number of the text, none when there is nothing. Empties it.
    #[inline]
    pub(super) fn store(&mut self, builder: &mut Builder<'_, '_>) -> Result<StringId, Error> {
        if self.text.is_empty() {
            return Ok(StringId::NONE);
        }
        self.text.push(b'}');
        let id = builder.string(&mended(&self.text));
        self.text.clear();
        id
    }
}
