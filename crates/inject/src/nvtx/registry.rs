//! What the program has named: domains, texts, categories, threads.
//!
//! It outlives windows, and is told again to each collector.

use std::collections::HashMap;

use tracesmith_wire::record::{Category, Text, ThreadName};

use crate::sink::Sink;

/// Names, in the order in which they came.
#[derive(Default)]
pub(super) struct Registry {
    texts: Vec<Box<[u8]>>,
    numbers: HashMap<Box<[u8]>, u32>,
    categories: Vec<(Category, Box<[u8]>)>,
    threads: Vec<(u32, Box<[u8]>)>,
}

impl Registry {
    /// The number of a text, counted from 1, and whether it is new.
    pub(super) fn text(&mut self, text: &[u8], sink: &Sink) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        self.texts.push(text.into());
        let number = self.texts.len() as u32;
        self.numbers.insert(text.into(), number);
        define(number, text, sink);
        number
    }

    /// The text with this number.
    pub(super) fn get(&self, number: u32) -> Option<&[u8]> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        self.texts.get(at).map(AsRef::as_ref)
    }

    pub(super) fn category(&mut self, category: Category, name: &[u8], sink: &Sink) {
        sink.define_with(&category, name);
        self.categories.push((category, name.into()));
    }

    pub(super) fn thread(&mut self, thread: u32, name: &[u8], sink: &Sink) {
        let record = ThreadName { thread, reserved: 0 };
        sink.define_with(&record, name);
        self.threads.push((thread, name.into()));
    }

    /// Tells all of it to a collector that is new.
    pub(super) fn announce(&self, sink: &Sink) {
        for (at, text) in self.texts.iter().enumerate() {
            define(at as u32 + 1, text, sink);
        }
        for (category, name) in &self.categories {
            sink.define_with(category, name);
        }
        for (thread, name) in &self.threads {
            let record = ThreadName {
                thread: *thread,
                reserved: 0,
            };
            sink.define_with(&record, name);
        }
    }
}

fn define(number: u32, text: &[u8], sink: &Sink) {
    let record = Text {
        id: number,
        reserved: 0,
    };
    sink.define_with(&record, text);
}
