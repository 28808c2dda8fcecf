//! The rings of an open window.
//!
//! A process has two: one for definitions, which any thread may fill, rarely,
//! and one for CUPTI's records, which CUPTI's own thread fills. Threads that
//! mark ranges or make calls have rings of their own, in
//! [`threads`](crate::threads).

use std::{collections::HashMap, sync::Mutex, time::Duration};

use tracesmith_wire::{
    Capacity, Producer, Tag,
    control::Settings,
    handshake::{self, Purpose},
    record::{Goodbye, Losses, Note, Payload, Text},
};

use crate::{clock, guard::lock};

/// How long the collector may take to grant a ring.
const GRANT_LIMIT: Duration = Duration::from_secs(2);

/// The subject of a note: numbers of the format's health causes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cause {
    Other = 0,
    RingFull = 1,
    Conflict = 8,
    Unavailable = 9,
}

/// The rings of this process; closed when no window is open.
#[derive(Default)]
pub(crate) struct Sink {
    definitions: Mutex<Option<Producer>>,
    activity: Mutex<Option<ActivityRing>>,
}

/// The ring for CUPTI's records, and the texts that they have referred to.
pub(crate) struct ActivityRing {
    producer: Producer,
    texts: Texts,
    pub(crate) losses: Losses,
}

impl Sink {
    /// Connects to the collector.
    pub(crate) fn open(&self, settings: &Settings) -> Result<(), tracesmith_wire::Error> {
        let path = &settings.collector;
        let definitions = handshake::connect(path, Purpose::Definitions, Capacity::DEFINITIONS, GRANT_LIMIT)?;
        let activity = handshake::connect(path, Purpose::Activity, settings.activity_ring, GRANT_LIMIT)?;
        *lock(&self.definitions) = Some(definitions);
        *lock(&self.activity) = Some(ActivityRing {
            producer: activity,
            texts: Texts::default(),
            losses: Losses::default(),
        });
        Ok(())
    }

    /// Closes the rings. The collector can still read what is in them.
    pub(crate) fn close(&self) {
        *lock(&self.activity) = None;
        *lock(&self.definitions) = None;
    }

    /// Whether a window is open that nobody reads any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        lock(&self.definitions)
            .as_ref()
            .is_some_and(Producer::is_abandoned)
    }

    /// Sends a definition that other records refer to, or a rare event.
    pub(crate) fn define<T: Payload>(&self, record: &T) {
        self.define_with(record, &[]);
    }

    /// The same, followed by text.
    pub(crate) fn define_with<T: Payload>(&self, record: &T, text: &[u8]) {
        if let Some(producer) = lock(&self.definitions).as_mut() {
            push_with(producer, record, text);
        }
    }

    /// Sends a note to the user.
    pub(crate) fn note(&self, cause: Cause, words: &str) {
        let note = Note {
            time: clock::now(),
            cause: cause as u32,
            count: 0,
        };
        self.define_with(&note, words.as_bytes());
    }

    /// The process ends in the ordinary way.
    pub(crate) fn goodbye(&self) {
        self.define(&Goodbye { time: clock::now() });
    }

    /// Calls `body` with the ring for CUPTI's records, if a window is open.
    pub(crate) fn with_activity(&self, body: impl FnOnce(&mut ActivityRing, &Self)) {
        if let Some(activity) = lock(&self.activity).as_mut() {
            body(activity, self);
        }
    }

    /// Sends the losses since the last call.
    pub(crate) fn report_losses(&self) {
        self.with_activity(|activity, _| {
            let mut losses = std::mem::take(&mut activity.losses);
            if losses != Losses::default() {
                losses.time = clock::now();
                activity.push(&losses);
            }
        });
    }
}

impl ActivityRing {
    /// Pushes a record. A full ring counts what it drops by itself.
    #[inline]
    pub(crate) fn push<T: Payload>(&mut self, record: &T) {
        let _ = self.producer.push(Tag::from(T::KIND), record.as_bytes());
    }

    /// The ID of a text at an address. The content is compared each time: after a
    /// module is unloaded, another name can be at the address.
    #[inline]
    pub(crate) fn text_at(&mut self, address: usize, text: &[u8], sink: &Sink) -> u32 {
        if let Some((known, id)) = self.texts.by_address.get(&address)
            && **known == *text
        {
            return *id;
        }
        let id = self.text(text, sink);
        self.texts.by_address.insert(address, (text.into(), id));
        id
    }

    /// The ID of a text. A new text is defined.
    pub(crate) fn text(&mut self, text: &[u8], sink: &Sink) -> u32 {
        if let Some(id) = self.texts.by_content.get(text) {
            return *id;
        }
        let id = FIRST_ACTIVITY_TEXT + self.texts.by_content.len() as u32;
        self.texts.by_content.insert(text.into(), id);
        sink.define_with(&Text { id, reserved: 0 }, text);
        id
    }
}

/// Texts below this number are those of NVTX, which outlive windows.
pub(crate) const FIRST_ACTIVITY_TEXT: u32 = 1 << 24;

#[derive(Default)]
struct Texts {
    by_address: HashMap<usize, (Box<[u8]>, u32)>,
    by_content: HashMap<Box<[u8]>, u32>,
}

/// Pushes a record with text behind it.
pub(crate) fn push_with<T: Payload>(producer: &mut Producer, record: &T, text: &[u8]) {
    // A full ring counts what it drops.
    if text.is_empty() {
        let _ = producer.push(Tag::from(T::KIND), record.as_bytes());
        return;
    }
    let mut bytes = Vec::with_capacity(size_of::<T>() + text.len());
    bytes.extend_from_slice(record.as_bytes());
    bytes.extend_from_slice(text);
    let _ = producer.push(Tag::from(T::KIND), &bytes);
}
