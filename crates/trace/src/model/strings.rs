//! The strings of a trace, by id.

use tracesmith_format::tables::Texts;
use tracesmith_format::{Columns, StringId};

/// What is shown for a string whose dictionary piece was lost.
const LOST: &str = "(lost)";

/// All strings of a trace. Pieces keep their own first id, so that a lost piece leaves a gap and shifts nothing.
#[derive(Debug, Default)]
pub struct Strings {
    pieces: Vec<StringBlock>,
    mended: u64,
}

#[derive(Debug)]
struct StringBlock {
    /// The id before the first one.
    base: u64,
    ends: Vec<usize>,
    text: String,
}

impl Strings {
    pub(crate) fn from_pieces(pieces: Vec<(u64, Texts)>) -> Self {
        let mut strings = Strings::default();
        for (base, texts) in pieces {
            let mut piece = StringBlock {
                base,
                ends: Vec::with_capacity(texts.len()),
                text: String::with_capacity(texts.text.total_bytes()),
            };
            for bytes in texts.text.iter() {
                match std::str::from_utf8(bytes) {
                    Ok(text) => piece.text.push_str(text),
                    Err(_) => {
                        piece.text.push_str(&String::from_utf8_lossy(bytes));
                        strings.mended += 1;
                    }
                }
                piece.ends.push(piece.text.len());
            }
            strings.pieces.push(piece);
        }
        strings.pieces.sort_by_key(|piece| piece.base);
        strings
    }

    /// The string with this id; the empty string for none, a placeholder for one that was lost.
    pub fn get(&self, id: StringId) -> &str {
        if id == StringId::NONE {
            ""
        } else {
            self.find(id).unwrap_or(LOST)
        }
    }

    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.ends.len()).sum()
    }

    /// The largest id that a string has; 0 without any.
    pub(crate) fn last_id(&self) -> u32 {
        let last = self
            .pieces
            .last()
            .map_or(0, |piece| piece.base + piece.ends.len() as u64);
        u32::try_from(last).unwrap_or(u32::MAX)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many were not UTF-8 and are shown with replacement characters.
    pub fn mended(&self) -> u64 {
        self.mended
    }

    fn find(&self, id: StringId) -> Option<&str> {
        let index = u64::from(id.0) - 1;
        let piece = self.pieces[..self.pieces.partition_point(|piece| piece.base <= index)].last()?;
        let row = usize::try_from(index - piece.base).ok()?;
        let end = *piece.ends.get(row)?;
        let start = if row == 0 { 0 } else { piece.ends[row - 1] };
        Some(&piece.text[start..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracesmith_format::Blob;
    use tracesmith_format::tables::Text;

    fn texts(list: &[&[u8]]) -> Texts {
        let mut texts = Texts::default();
        for text in list {
            texts.push(&Text {
                text: Blob(text.to_vec()),
            });
        }
        texts
    }

    #[test]
    fn a_lost_piece_leaves_a_gap_and_shifts_nothing() {
        let strings = Strings::from_pieces(vec![(5, texts(&[b"f", b"g"])), (0, texts(&[b"a", b"b"]))]);
        let all: Vec<&str> = (0..9).map(|id| strings.get(StringId(id))).collect();
        assert_eq!(all, ["", "a", "b", LOST, LOST, LOST, "f", "g", LOST]);
        assert_eq!(strings.len(), 4);
    }

    #[test]
    fn text_that_is_not_utf8_is_mended_and_counted() {
        let strings = Strings::from_pieces(vec![(0, texts(&[b"caf\xe9", b"ok"]))]);
        assert_eq!(strings.get(StringId(1)), "caf\u{fffd}");
        assert_eq!(strings.get(StringId(2)), "ok");
        assert_eq!(strings.mended(), 1);
    }
}
