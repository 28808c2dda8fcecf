//! The values of an export: a tree in which anything that was written once is referred to by its number from then on.
//!
//! References reach across rows and tables and down into nested values, so every numbered value is kept until the end:
//! some 40 bytes and its text. Values without a number are kept for their row alone. A reference may come before its
//! value; it then points to a value that is filled in later.

use rustc_hash::FxHashMap;

/// Values inside of one value that are looked at. Real ones have some dozens; references can make a circle.
const MAX_LOOKED_AT: usize = 4096;

/// A value of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ValueId(u32);

#[derive(Clone, Default)]
struct Value {
    tag: u32,
    is_known: bool,
    text: Span,
    /// As Instruments shows it.
    shown: Span,
    /// Where its parts are in `Document::parts`.
    parts: (usize, u32),
}

#[derive(Clone, Copy, Default)]
struct Span {
    start: usize,
    length: u32,
}

/// All values.
#[derive(Default)]
pub(super) struct Document {
    values: Vec<Value>,
    parts: Vec<ValueId>,
    text: String,
    tags: Vec<String>,
    tag_ids: FxHashMap<String, u32>,
    numbered: FxHashMap<u64, ValueId>,
    /// Ids that are no numbers.
    named: FxHashMap<String, ValueId>,
}

/// How much of a document there was at some moment.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    values: usize,
    parts: usize,
    text: usize,
}

impl Document {
    /// The value with this id, which may come later.
    pub(super) fn by_id(&mut self, id: &str) -> Option<ValueId> {
        let known = match id.parse() {
            Ok(number) => self.numbered.get(&number),
            Err(_) => self.named.get(id),
        };
        if let Some(value) = known {
            return Some(*value);
        }
        let value = self.add()?;
        match id.parse() {
            Ok(number) => self.numbered.insert(number, value),
            Err(_) => self.named.insert(id.to_owned(), value),
        };
        Some(value)
    }

    /// A new value without an id; `None` when there are more than 4 billion.
    pub(super) fn add(&mut self) -> Option<ValueId> {
        let id = u32::try_from(self.values.len()).ok()?; // the caller stops there
        self.values.push(Value::default());
        Some(ValueId(id))
    }

    /// Says what a value is.
    pub(super) fn fill(&mut self, id: ValueId, tag: &str, text: &str, shown: &str, parts: &[ValueId]) {
        let value = Value {
            tag: self.tag(tag),
            is_known: true,
            text: self.keep(text),
            // Most are the same, and numbers are never looked at in their other form.
            shown: if shown == text {
                Span::default()
            } else {
                self.keep(shown)
            },
            parts: (self.parts.len(), parts.len() as u32),
        };
        self.parts.extend_from_slice(parts);
        self.values[id.0 as usize] = value;
    }

    /// How much there is now.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            values: self.values.len(),
            parts: self.parts.len(),
            text: self.text.len(),
        }
    }

    /// How many ids are known.
    pub(super) fn ids(&self) -> usize {
        self.numbered.len() + self.named.len()
    }

    /// Forgets everything since: possible while no id refers to it.
    pub(super) fn forget(&mut self, mark: Mark) {
        self.values.truncate(mark.values);
        self.parts.truncate(mark.parts);
        self.text.truncate(mark.text);
    }

    /// Whether a value and everything in it has been seen, as far as one looks.
    pub(super) fn is_complete(&self, id: ValueId) -> bool {
        let mut waiting = vec![id];
        for _ in 0..MAX_LOOKED_AT {
            let Some(id) = waiting.pop() else {
                break;
            };
            if !self.is_known(id) {
                return false;
            }
            waiting.extend_from_slice(self.parts_of(id));
        }
        true
    }

    pub(super) fn is_known(&self, id: ValueId) -> bool {
        self.values[id.0 as usize].is_known
    }

    pub(super) fn tag_of(&self, id: ValueId) -> &str {
        let value = &self.values[id.0 as usize];
        self.tags.get(value.tag as usize).map_or("", String::as_str)
    }

    /// A value's own text.
    pub(super) fn text_of(&self, id: ValueId) -> &str {
        self.span(self.values[id.0 as usize].text)
    }

    /// A value as Instruments shows it.
    pub(super) fn shown(&self, id: ValueId) -> &str {
        let shown = self.values[id.0 as usize].shown;
        if shown.length == 0 {
            self.text_of(id)
        } else {
            self.span(shown)
        }
    }

    pub(super) fn parts_of(&self, id: ValueId) -> &[ValueId] {
        let (start, count) = self.values[id.0 as usize].parts;
        &self.parts[start..start + count as usize]
    }

    /// The first part of this kind.
    pub(super) fn part(&self, id: ValueId, tag: &str) -> Option<ValueId> {
        let mut parts = self.parts_of(id).iter().copied();
        parts.find(|part| self.tag_of(*part) == tag)
    }

    fn tag(&mut self, tag: &str) -> u32 {
        if let Some(id) = self.tag_ids.get(tag) {
            return *id;
        }
        let id = self.tags.len() as u32;
        self.tags.push(tag.to_owned());
        self.tag_ids.insert(tag.to_owned(), id);
        id
    }

    fn keep(&mut self, text: &str) -> Span {
        let start = self.text.len();
        self.text.push_str(text);
        Span {
            start,
            length: text.len() as u32,
        }
    }

    fn span(&self, span: Span) -> &str {
        &self.text[span.start..span.start + span.length as usize]
    }
}
