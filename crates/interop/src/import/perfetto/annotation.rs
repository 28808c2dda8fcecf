//! Debug annotations: the arguments of events, as values to ask for and as a text to read.

use std::fmt::Write;

use super::sequence::{Sequence, Text};
use crate::perfetto::schema::annotation;
use crate::perfetto::wire::Fields;
use crate::perfetto::words::Argument;

/// Dictionaries within dictionaries that are followed.
const MAX_DEPTH: usize = 16;
/// The longest text that arguments are put into.
const MAX_TEXT: usize = 16 << 10;

/// The value of an argument.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ArgumentValue {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Flag(bool),
    Text(Text),
    /// Dictionaries and lists, as text.
    Nested(String),
}

/// The arguments of an event.
#[derive(Clone, Debug, Default)]
pub(super) struct Arguments(Vec<(Text, ArgumentValue)>);

impl Arguments {
    /// Adds an annotation.
    pub(super) fn add(&mut self, bytes: &[u8], sequence: &Sequence) {
        let (name, value) = read(bytes, sequence, 0);
        if let Some(value) = value {
            self.0.push((name, value));
        }
    }

    fn get(&self, argument: Argument) -> Option<&ArgumentValue> {
        let (_, name) = Argument::ALL.iter().find(|(known, _)| *known == argument)?;
        let found = self.0.iter().find(|(known, _)| &**known == *name);
        found.map(|(_, value)| value)
    }

    /// The number of an argument; 0 when there is none.
    pub(super) fn number(&self, argument: Argument) -> u64 {
        match self.get(argument) {
            Some(ArgumentValue::Unsigned(number)) => *number,
            Some(ArgumentValue::Signed(number)) => *number as u64,
            _ => 0,
        }
    }

    /// The number of an argument, if there is one.
    pub(super) fn some_number(&self, argument: Argument) -> Option<u64> {
        self.get(argument).map(|_| self.number(argument))
    }

    /// The text of an argument; empty when there is none.
    pub(super) fn text(&self, argument: Argument) -> &str {
        match self.get(argument) {
            Some(ArgumentValue::Text(text)) => text,
            _ => "",
        }
    }

    /// The value of an argument that may be of any kind.
    pub(super) fn value(&self, argument: Argument) -> Option<&ArgumentValue> {
        self.get(argument)
    }

    /// Three dimensions, written as `4x2x1`.
    pub(super) fn dimensions(&self, argument: Argument) -> [u32; 3] {
        let mut sizes = self
            .text(argument)
            .split('x')
            .map(|size| size.parse().unwrap_or(0));
        std::array::from_fn(|_| sizes.next().unwrap_or(0))
    }

    /// All of them in one line.
    pub(super) fn in_words(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.0 {
            if !text.is_empty() {
                text.push_str(", ");
            }
            push(&mut text, name, value);
            if text.len() > MAX_TEXT {
                text.push_str(", …");
                break;
            }
        }
        text
    }
}

fn push(text: &mut String, name: &str, value: &ArgumentValue) {
    if !name.is_empty() {
        text.push_str(name);
        text.push_str(": ");
    }
    let result = match value {
        ArgumentValue::Unsigned(number) => write!(text, "{number}"),
        ArgumentValue::Signed(number) => write!(text, "{number}"),
        ArgumentValue::Float(number) => write!(text, "{number}"),
        ArgumentValue::Flag(flag) => write!(text, "{flag}"),
        ArgumentValue::Text(value) => text.write_str(value),
        ArgumentValue::Nested(value) => text.write_str(value),
    };
    result.expect("a string takes everything");
}

fn read(bytes: &[u8], sequence: &Sequence, depth: usize) -> (Text, Option<ArgumentValue>) {
    let mut name = Text::from("");
    let mut found = None;
    let mut nested = Vec::new();
    for (field, value) in Fields::new(bytes).flatten() {
        let text = || -> Text { String::from_utf8_lossy(value.bytes()).into() };
        match field {
            annotation::NAME_IID => {
                name = sequence
                    .annotation_names
                    .get(&value.number())
                    .cloned()
                    .unwrap_or_default();
            }
            annotation::NAME => name = text(),
            annotation::BOOL => found = Some(ArgumentValue::Flag(value.number() != 0)),
            annotation::UINT | annotation::POINTER => found = Some(ArgumentValue::Unsigned(value.number())),
            annotation::INT => found = Some(ArgumentValue::Signed(value.number() as i64)),
            annotation::DOUBLE => found = Some(ArgumentValue::Float(value.double())),
            annotation::STRING | annotation::LEGACY_JSON => found = Some(ArgumentValue::Text(text())),
            annotation::STRING_IID => {
                let text = sequence.annotation_strings.get(&value.number()).cloned();
                found = Some(ArgumentValue::Text(text.unwrap_or_default()));
            }
            annotation::DICT | annotation::ARRAY if depth < MAX_DEPTH => {
                nested.push(read(value.bytes(), sequence, depth + 1));
            }
            annotation::DICT | annotation::ARRAY => nested.push((Text::from("…"), None)),
            _ => {}
        }
    }
    if !nested.is_empty() {
        let mut text = String::from("{");
        for (at, (name, value)) in nested.iter().enumerate() {
            if at > 0 {
                text.push_str(", ");
            }
            if text.len() > MAX_TEXT {
                text.push('…');
                break;
            }
            match value {
                Some(value) => push(&mut text, name, value),
                None => text.push_str(name),
            }
        }
        text.push('}');
        found = Some(ArgumentValue::Nested(text));
    }
    (name, found)
}
