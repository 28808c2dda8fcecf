//! An export as rows: the XML is read as a stream, and each row is given out when all its values are known.

use std::io::{BufReader, Read};

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use rustc_hash::FxHashMap;

use super::document::{Document, Mark, ValueId};
use crate::error::Error;
use crate::import::bounded::{Allowance, Bounded};

/// Elements inside of elements that are looked at.
const MAX_DEPTH: usize = 64;

/// One table's columns.
#[derive(Debug, Default)]
pub(super) struct Schema {
    pub(super) name: String,
    /// What each column is called, and what kind of value it holds.
    columns: Vec<(String, String)>,
    by_name: FxHashMap<String, usize>,
}

impl Schema {
    /// Where a column is: by one of its names, or by a kind of value that no other column has.
    pub(super) fn column(&self, names: &[&str], kind: &str) -> Option<usize> {
        if let Some(index) = names.iter().find_map(|name| self.by_name.get(*name)) {
            return Some(*index);
        }
        let mut of_kind = (0..self.columns.len()).filter(|index| self.columns[*index].1 == kind);
        match (of_kind.next(), of_kind.next()) {
            (Some(index), None) if !kind.is_empty() => Some(index),
            _ => None,
        }
    }

    fn push(&mut self, name: String, kind: String) {
        self.by_name.insert(name.clone(), self.columns.len());
        self.columns.push((name, kind));
    }
}

/// What a document gives out.
pub(super) enum Item {
    /// A table begins.
    Schema(Schema),
    /// A row of the table, a value for each column. Its values stay known until the next item is asked for.
    Row(Vec<Option<ValueId>>),
    /// A row that refers to values which have not come yet.
    EarlyRow(Vec<Option<ValueId>>),
    /// The table of contents: no data.
    Contents,
    /// The file ends in its middle.
    Cut,
}

/// Reads a document.
pub(super) struct Export<R> {
    reader: quick_xml::Reader<BufReader<Bounded<R>>>,
    allowance: Allowance,
    buffer: Vec<u8>,
    pub(super) document: Document,
    /// Elements that are open, outermost first.
    open: Vec<Element>,
    /// How many elements are open that are too deep to be looked at.
    skipped_depth: usize,
    /// What to forget before the next row.
    row_start: Option<(Mark, usize, u64)>,
    schema: Option<Schema>,
    column: (String, String),
    /// Values that came with an id.
    definitions: u64,
    /// Rows that are open.
    rows: usize,
    /// Elements too deep to be looked at.
    pub(super) too_deep: u64,
    /// Values whose id was given out before.
    pub(super) repeated: u64,
}

struct Element {
    tag: String,
    id: Option<ValueId>,
    is_reference: bool,
    shown: String,
    text: String,
    parts: Vec<Option<ValueId>>,
}

impl<R: Read> Export<R> {
    pub(super) fn new(input: R) -> Self {
        let (bounded, allowance) = Bounded::new(input);
        Export {
            reader: quick_xml::Reader::from_reader(BufReader::with_capacity(256 << 10, bounded)),
            allowance,
            buffer: Vec::new(),
            document: Document::default(),
            open: Vec::new(),
            skipped_depth: 0,
            row_start: None,
            schema: None,
            column: Default::default(),
            definitions: 0,
            rows: 0,
            too_deep: 0,
            repeated: 0,
        }
    }

    /// The next item; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Item>, Error> {
        // A row that brought no id can be forgotten now that it was looked at.
        if let Some((mark, ids, definitions)) = self.row_start.take()
            && (self.document.ids(), self.definitions) == (ids, definitions)
        {
            self.document.forget(mark);
        }
        loop {
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.clear();
            let event = self.reader.read_event_into(&mut buffer);
            let item = match event {
                Ok(Event::Eof) if self.open.is_empty() => return Ok(None),
                Ok(Event::Eof) => {
                    self.open.clear();
                    return Ok(Some(Item::Cut));
                }
                Ok(event) => self.take(&event),
                Err(quick_xml::Error::Syntax(_)) => {
                    // What is unclosed here goes on to the file's end.
                    self.open.clear();
                    return Ok(Some(Item::Cut));
                }
                Err(error) => Err(self.error(&error)),
            };
            self.buffer = buffer;
            if let Some(item) = item? {
                return Ok(Some(item));
            }
        }
    }

    fn take(&mut self, event: &Event<'_>) -> Result<Option<Item>, Error> {
        match event {
            Event::Start(start) => {
                if start.name().0 == "trace-toc" && self.open.is_empty() {
                    return Ok(Some(Item::Contents));
                }
                self.begin(start)?;
                Ok(None)
            }
            Event::Empty(start) => {
                self.begin(start)?;
                self.end()
            }
            Event::End(_) => self.end(),
            Event::Text(text) => {
                self.add_text(&text.xml_content(XmlVersion::Implicit1_0));
                Ok(None)
            }
            Event::CData(text) => {
                self.add_text(&text.xml_content(XmlVersion::Implicit1_0));
                Ok(None)
            }
            Event::GeneralRef(reference) => {
                let character = reference.resolve_char_ref().map_err(|error| self.error(&error))?;
                match character {
                    Some(character) => self.add_text(character.encode_utf8(&mut [0; 4])),
                    None => {
                        let entity = reference.xml_content(XmlVersion::Implicit1_0);
                        let text = quick_xml::escape::resolve_predefined_entity(&entity);
                        self.add_text(text.unwrap_or_default());
                    }
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn begin(&mut self, start: &BytesStart<'_>) -> Result<(), Error> {
        if self.open.len() >= MAX_DEPTH {
            self.skipped_depth += 1;
            self.too_deep += 1;
            return Ok(());
        }
        let tag = start.name().0.to_owned();
        let mut element = Element {
            tag,
            id: None,
            is_reference: false,
            shown: String::new(),
            text: String::new(),
            parts: Vec::new(),
        };
        if element.tag == "row" {
            self.rows += 1;
            self.row_start = Some((self.document.mark(), self.document.ids(), self.definitions));
        }
        let is_schema = element.tag == "schema";
        for attribute in start.attributes() {
            let attribute = attribute.map_err(|error| self.error(&error.into()))?;
            let value = attribute
                .normalized_value(XmlVersion::Implicit1_0)
                .map_err(|error| self.error(&error))?;
            match attribute.key.0 {
                "id" => {
                    self.definitions += 1;
                    element.id = self.document.by_id(&value);
                }
                "ref" => {
                    element.id = self.document.by_id(&value);
                    element.is_reference = true;
                }
                "fmt" => element.shown = value.into_owned(),
                "name" if is_schema => {
                    self.schema = Some(Schema {
                        name: value.into_owned(),
                        ..Schema::default()
                    });
                }
                // What else an element says of itself is a part of it.
                name if self.in_row() => {
                    if let Some(part) = self.document.add() {
                        self.document.fill(part, &format!("@{name}"), &value, "", &[]);
                        element.parts.push(Some(part));
                    }
                }
                _ => {}
            }
        }
        self.open.push(element);
        Ok(())
    }

    fn end(&mut self) -> Result<Option<Item>, Error> {
        if self.skipped_depth > 0 {
            self.skipped_depth -= 1;
            return Ok(None);
        }
        let Some(element) = self.open.pop() else {
            return Ok(None);
        };
        match element.tag.as_str() {
            "row" => {
                self.rows -= 1;
                return Ok(Some(self.row(element.parts)));
            }
            "schema" => return Ok(self.schema.take().map(Item::Schema)),
            "mnemonic" if self.schema.is_some() => self.column.0 = element.text,
            "engineering-type" if self.schema.is_some() => self.column.1 = element.text,
            "col" => {
                let (name, kind) = std::mem::take(&mut self.column);
                if let Some(schema) = &mut self.schema {
                    schema.push(name, kind);
                }
            }
            _ if self.in_row() => {
                let value = self.value(&element);
                if let Some(parent) = self.open.last_mut() {
                    parent.parts.push(value);
                }
            }
            _ => {}
        }
        if !self.in_row() {
            self.allowance.renew();
        }
        Ok(None)
    }

    /// The value that an element is; `None` for one that says there is none.
    fn value(&mut self, element: &Element) -> Option<ValueId> {
        if element.tag == "sentinel" {
            return None;
        }
        if element.is_reference {
            return element.id;
        }
        if element.id.is_some_and(|id| self.document.is_known(id)) {
            self.repeated += 1;
        }
        let id = element.id.or_else(|| self.document.add())?;
        let parts: Vec<ValueId> = element.parts.iter().flatten().copied().collect();
        self.document
            .fill(id, &element.tag, element.text.trim(), &element.shown, &parts);
        Some(id)
    }

    fn row(&mut self, values: Vec<Option<ValueId>>) -> Item {
        self.allowance.renew();
        let is_complete = values
            .iter()
            .flatten()
            .all(|value| self.document.is_complete(*value));
        if is_complete {
            return Item::Row(values);
        }
        // What it refers to comes later, so its own values must stay.
        self.row_start = None;
        Item::EarlyRow(values)
    }

    fn in_row(&self) -> bool {
        self.rows > 0
    }

    fn add_text(&mut self, text: &str) {
        if self.skipped_depth == 0
            && let Some(element) = self.open.last_mut()
        {
            element.text.push_str(text);
        }
    }

    fn error(&self, error: &quick_xml::Error) -> Error {
        match error {
            quick_xml::Error::Io(source) => Error::Read {
                source: std::io::Error::other(source.to_string()),
            },
            error => Error::Foreign {
                format: "xctrace",
                problem: error.to_string(),
                position: format!("byte {}", self.reader.buffer_position()),
            },
        }
    }
}
