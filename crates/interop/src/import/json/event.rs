//! One event of a trace, as stretches of its text: nothing is copied or converted before somebody asks.

use std::borrow::Cow;

use crate::import::json::number::{unquoted, unsigned};
use crate::import::json::scan::{Stop, Stretch, for_each_item, for_each_key, for_each_member, value_end};
use crate::import::json::text::text_of;

/// Where the parts of an event are. Kept from event to event, so that its list is allocated once.
#[derive(Debug, Default)]
pub(super) struct EventParts {
    phase: Stretch,
    category: Stretch,
    name: Stretch,
    pid: Stretch,
    tid: Stretch,
    time: Stretch,
    duration: Stretch,
    id: Stretch,
    frame: Stretch,
    stack: Stretch,
    weight: Stretch,
    arguments: Vec<(Stretch, Stretch)>,
    others: Vec<Stretch>,
}

impl EventParts {
    /// Finds the parts of the event that `text` begins with, and where it ends.
    #[inline]
    pub(super) fn scan(&mut self, text: &[u8]) -> Result<usize, Stop> {
        let (mut arguments, mut others) = (
            std::mem::take(&mut self.arguments),
            std::mem::take(&mut self.others),
        );
        arguments.clear();
        others.clear();
        *self = EventParts::default();
        let end = for_each_key(text, 0, |key, start| {
            let key_text = unquoted(key.of(text));
            // The arguments are most of an event: they are taken apart on the way to their end.
            if key_text == b"args" && text.get(start) == Some(&b'{') {
                arguments.clear();
                return for_each_member(text, start, |key, value| arguments.push((key, value)));
            }
            let end = value_end(text, start)?;
            let value = Stretch::new(start, end);
            match key_text {
                b"ph" => self.phase = value,
                b"cat" => self.category = value,
                b"name" => self.name = value,
                b"pid" => self.pid = value,
                b"tid" => self.tid = value,
                b"ts" => self.time = value,
                b"dur" => self.duration = value,
                b"id" | b"id2" => self.id = value,
                b"sf" => self.frame = value,
                b"stack" => self.stack = value,
                b"weight" => self.weight = value,
                // How an instant or an arrow is drawn: said by what it is. Arguments that are no object are none.
                b"s" | b"bp" | b"cname" | b"args" => {}
                _ => others.push(key),
            }
            Ok(end)
        });
        (self.arguments, self.others) = (arguments, others);
        end
    }

    /// The event whose parts these are.
    pub(super) fn of<'e>(&'e self, text: &'e [u8]) -> Event<'e> {
        Event { text, parts: self }
    }
}

/// One event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event<'e> {
    text: &'e [u8],
    parts: &'e EventParts,
}

impl<'e> Event<'e> {
    /// The letter that tells what kind of event it is.
    #[inline]
    pub(super) fn phase(&self) -> Option<u8> {
        unquoted(self.parts.phase.of(self.text)).first().copied()
    }

    /// The category, as written between its quotes.
    #[inline]
    pub(super) fn category(&self) -> &'e [u8] {
        unquoted(self.parts.category.of(self.text))
    }

    /// The name, as written between its quotes.
    #[inline]
    pub(super) fn raw_name(&self) -> &'e [u8] {
        unquoted(self.parts.name.of(self.text))
    }

    /// The name.
    #[inline]
    pub(super) fn name(&self) -> Cow<'e, str> {
        text_of(self.parts.name.of(self.text))
    }

    /// The process, as written.
    #[inline]
    pub(super) fn pid(&self) -> &'e [u8] {
        self.parts.pid.of(self.text)
    }

    /// The thread, as written.
    #[inline]
    pub(super) fn tid(&self) -> &'e [u8] {
        self.parts.tid.of(self.text)
    }

    /// The time, as written; empty when there is none.
    #[inline]
    pub(super) fn time(&self) -> &'e [u8] {
        self.parts.time.of(self.text)
    }

    /// The duration, as written; empty when there is none.
    #[inline]
    pub(super) fn duration(&self) -> &'e [u8] {
        self.parts.duration.of(self.text)
    }

    /// The number of an arrow or range, as written.
    pub(super) fn id(&self) -> &'e [u8] {
        self.parts.id.of(self.text)
    }

    /// The stack frame in the file's table, as written.
    pub(super) fn frame(&self) -> &'e [u8] {
        self.parts.frame.of(self.text)
    }

    /// The frames of a stack that the event brings along, the outermost first.
    pub(super) fn stack(&self) -> &'e [u8] {
        self.parts.stack.of(self.text)
    }

    /// A sample's weight.
    pub(super) fn weight(&self) -> Option<u64> {
        unsigned(self.parts.weight.of(self.text))
    }

    /// Keys and values of its arguments: keys between their quotes, values as written.
    #[inline]
    pub(super) fn arguments(&self) -> impl Iterator<Item = (&'e [u8], &'e [u8])> + use<'e> {
        let text = self.text;
        self.parts
            .arguments
            .iter()
            .map(move |(key, value)| (unquoted(key.of(text)), value.of(text)))
    }

    /// An argument.
    pub(super) fn argument(&self, key: &[u8]) -> Option<&'e [u8]> {
        self.arguments()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| value)
    }

    /// Keys of the event itself that mean nothing here.
    pub(super) fn other_keys(&self) -> impl Iterator<Item = &'e [u8]> + use<'e> {
        let text = self.text;
        self.parts.others.iter().map(move |key| unquoted(key.of(text)))
    }
}

/// Three whole numbers, as of a grid. Missing ones are 1.
pub(super) fn three(value: &[u8]) -> [u32; 3] {
    let mut numbers = [1; 3];
    let mut at = 0;
    for_each_item(value, |item| {
        if let (Some(place), Some(number)) = (numbers.get_mut(at), unsigned(item)) {
            *place = u32::try_from(number).unwrap_or(u32::MAX);
        }
        at += 1;
    });
    numbers
}

/// A number that means "none" when it is negative or the largest of 32 bits.
#[inline]
pub(super) fn number_or_none(value: &[u8]) -> u64 {
    unsigned(value)
        .filter(|number| *number != u64::from(u32::MAX))
        .unwrap_or(0)
}
