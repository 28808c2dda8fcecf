//! The definitions of a process, in bounded memory.
//!
//! A dump needs all definitions. Most definitions have an ID, and a new definition with the same ID replaces the old
//! one. So the log grows with the number of objects in the program, not with time. Other records are limited by kind:
//!
//! - Destroyed streams, contexts and modules, and replaced images: the last [`MAX_GONE`] of each kind.
//! - Names of threads and categories, and notes: the last [`MAX_NAMED`] of each kind.
//! - Windows: the first opening, the last opening and the last close.
//! - Losses and notes with the same text: sums.
//! - Clock pairs, graph edges, and events without a ring: the newest, see [`newest_bytes`].
//!
//! The log counts the records that it dropped for newer ones. Dumps contain this count.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashMap;
use tracesmith_wire::{
    Kind, Record, Tag,
    record::{self as wire, IntoBytes, Payload},
};

/// Memory limit per process. Strings, stacks and images of a real program need a few megabytes. The limit protects
/// against a broken target.
const MAX_LOG_BYTES: usize = 64 << 20;

/// Memory of a record in addition to its payload: tag, position and key.
const RECORD_BYTES: usize = 128;

/// Destroyed objects that are kept per kind. Events in the rings can refer to them.
const MAX_GONE: usize = 4096;

/// Names that are kept per kind. The log does not know when a thread ends.
const MAX_NAMED: usize = 1 << 14;

/// Records in the order of their first definition.
#[derive(Debug, Default)]
pub(crate) struct RecordLog {
    records: BTreeMap<u64, LoggedRecord>,
    by_key: FxHashMap<Key, u64>,
    /// Records without a key, by kind, oldest first.
    newest: FxHashMap<u16, Newest>,
    /// Destroyed objects, by kind, oldest first.
    gone: FxHashMap<u16, VecDeque<Object>>,
    /// The image at an address.
    images: FxHashMap<u64, u64>,
    /// Images that were unmapped and replaced at the same address, oldest first. Older stacks refer to them.
    replaced_images: VecDeque<u64>,
    /// Keys of names, by kind, oldest first.
    named: FxHashMap<u16, VecDeque<Key>>,
    bytes: usize,
    next: u64,
    refused: u64,
    overwritten: u64,
    in_window: bool,
}

#[derive(Debug)]
struct LoggedRecord {
    tag: Tag,
    payload: Box<[u8]>,
}

/// Identifies the definition that a later record replaces: the kind, and the ID.
type Key = (u16, Box<[u8]>);

/// A stream, a context or a module: the context, and the ID in it.
type Object = (u32, u32);

#[derive(Debug, Default)]
struct Newest {
    places: VecDeque<u64>,
    bytes: usize,
}

/// How to store a record.
enum Keep {
    /// Replace the record with the same key.
    Keyed(Vec<u8>),
    /// Like [`Keep::Keyed`], limited to [`MAX_NAMED`].
    Named(Vec<u8>),
    /// Append, and remove the record with the same key.
    Latest(Vec<u8>),
    /// Store as the image that is mapped at this address from now on.
    Image(u64),
    /// Store as a definition of an object.
    Object(Object, Phase),
    /// Add to the record with the same key, limited to [`MAX_NAMED`].
    Sum(Vec<u8>),
    /// Keep the newest records of this kind.
    Newest,
}

/// What a record states about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Made = 0,
    Gone = 1,
    Named = 2,
}

impl RecordLog {
    pub(crate) fn push(&mut self, record: &Record<'_>) {
        let kind = record.tag.kind;
        if let Some((window, _)) = read::<wire::Window>(record) {
            self.in_window = window.phase == wire::WINDOW_OPENED;
        }
        if kind == wire::Goodbye::KIND {
            self.in_window = false;
        }
        match keep(record) {
            Keep::Keyed(key) => drop(self.put(boxed(kind, &key), record)),
            Keep::Named(key) => self.put_named(boxed(kind, &key), record),
            Keep::Latest(key) => {
                let key = boxed(kind, &key);
                self.keep_first_opening(record);
                self.remove_key(&key);
                self.put(key, record);
            }
            Keep::Image(address) => self.put_image(address, record),
            Keep::Object(object, phase) => self.put_object(object, phase, record),
            Keep::Sum(key) => self.add(key, record),
            Keep::Newest => self.put_newest(record),
        }
    }

    /// Passes all records to `each`, in order.
    pub(crate) fn replay(&self, mut each: impl FnMut(&Record<'_>)) {
        for kept in self.records.values() {
            each(&Record {
                tag: kept.tag,
                payload: &kept.payload,
            });
        }
    }

    /// Number of records that were dropped because the log was full.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    /// Number of records that were dropped for newer ones.
    pub(crate) fn overwritten(&self) -> u64 {
        self.overwritten
    }

    /// Whether a window is open, and the process has not disconnected.
    pub(crate) fn in_window(&self) -> bool {
        self.in_window
    }

    /// The first opening keeps its position, because a trace states when recording began.
    fn keep_first_opening(&mut self, record: &Record<'_>) {
        let key = boxed(record.tag.kind, b"first");
        let opened = read::<wire::Window>(record).filter(|(window, _)| window.phase == wire::WINDOW_OPENED);
        if opened.is_some() && !self.by_key.contains_key(&key) {
            self.put(key, record);
        }
    }

    /// Replaces the record with the same key, or appends. Returns whether the key is new.
    fn put(&mut self, key: Key, record: &Record<'_>) -> bool {
        if let Some(place) = self.by_key.get(&key).copied() {
            self.replace(place, record);
            return false;
        }
        let place = self.append(record);
        if let Some(place) = place {
            self.by_key.insert(key, place);
        }
        place.is_some()
    }

    fn put_named(&mut self, key: Key, record: &Record<'_>) {
        let kind = key.0;
        if !self.put(key.clone(), record) {
            return;
        }
        let named = self.named.entry(kind).or_default();
        named.push_back(key);
        if named.len() > MAX_NAMED
            && let Some(oldest) = named.pop_front()
            && self.remove_key(&oldest)
        {
            self.overwritten += 1;
        }
    }

    /// An image that is mapped again at the same address is not stored again.
    fn put_image(&mut self, address: u64, record: &Record<'_>) {
        let before = self.images.get(&address).copied();
        let is_same = before
            .and_then(|place| self.records.get(&place))
            .is_some_and(|kept| without_time(&kept.payload) == without_time(record.payload));
        if is_same {
            return;
        }
        let Some(place) = self.append(record) else {
            return;
        };
        self.images.insert(address, place);
        self.replaced_images.extend(before);
        if self.replaced_images.len() > MAX_GONE
            && let Some(oldest) = self.replaced_images.pop_front()
        {
            self.remove(oldest);
            self.overwritten += 1;
        }
    }

    fn replace(&mut self, place: u64, record: &Record<'_>) {
        let Some(kept) = self.records.get_mut(&place) else {
            return;
        };
        let bytes = self.bytes - kept.payload.len() + record.payload.len();
        if bytes > MAX_LOG_BYTES {
            self.refused += 1;
            return;
        }
        self.bytes = bytes;
        kept.payload = record.payload.into();
        kept.tag = record.tag;
    }

    fn append(&mut self, record: &Record<'_>) -> Option<u64> {
        let bytes = RECORD_BYTES + record.payload.len();
        if self.bytes + bytes > MAX_LOG_BYTES {
            self.refused += 1;
            return None;
        }
        self.bytes += bytes;
        self.next += 1;
        let kept = LoggedRecord {
            tag: record.tag,
            payload: record.payload.into(),
        };
        self.records.insert(self.next, kept);
        Some(self.next)
    }

    fn remove(&mut self, place: u64) {
        if let Some(kept) = self.records.remove(&place) {
            self.bytes -= RECORD_BYTES + kept.payload.len();
        }
    }

    fn remove_key(&mut self, key: &Key) -> bool {
        let place = self.by_key.remove(key);
        if let Some(place) = place {
            self.remove(place);
        }
        place.is_some()
    }

    fn put_object(&mut self, object: Object, phase: Phase, record: &Record<'_>) {
        let family = family(record.tag.kind);
        let key = |phase| boxed(family, &object_key(object, phase));
        let is_new_end = phase == Phase::Gone && !self.by_key.contains_key(&key(Phase::Gone));
        self.put(key(phase), record);
        if !is_new_end {
            return;
        }
        let gone = self.gone.entry(family.number()).or_default();
        gone.push_back(object);
        if gone.len() <= MAX_GONE {
            return;
        }
        let Some(oldest) = gone.pop_front() else {
            return;
        };
        for phase in [Phase::Made, Phase::Gone, Phase::Named] {
            if self.remove_key(&boxed(family, &object_key(oldest, phase))) {
                self.overwritten += 1;
            }
        }
    }

    /// Adds up losses, and notes with the same text.
    fn add(&mut self, key: Vec<u8>, record: &Record<'_>) {
        let place = self.by_key.get(&boxed(record.tag.kind, &key)).copied();
        let earlier = place.and_then(|place| self.records.get(&place));
        let Some(earlier) = earlier else {
            return self.put_named(boxed(record.tag.kind, &key), record);
        };
        let earlier = Record {
            tag: earlier.tag,
            payload: &earlier.payload,
        };
        let sum = match (read::<wire::Losses>(&earlier), read::<wire::Losses>(record)) {
            (Some((earlier, _)), Some((later, tail))) => {
                let sum = wire::Losses {
                    time: later.time,
                    dropped: earlier.dropped.saturating_add(later.dropped),
                    zero_time: earlier.zero_time.saturating_add(later.zero_time),
                    unknown: earlier.unknown.saturating_add(later.unknown),
                };
                [sum.as_bytes(), tail].concat()
            }
            _ => match (read::<wire::Note>(&earlier), read::<wire::Note>(record)) {
                (Some((earlier, _)), Some((later, words))) => {
                    let count = earlier.count.saturating_add(later.count);
                    [wire::Note { count, ..later }.as_bytes(), words].concat()
                }
                _ => record.payload.to_vec(),
            },
        };
        let sum = Record {
            tag: record.tag,
            payload: &sum,
        };
        self.put(boxed(record.tag.kind, &key), &sum);
    }

    fn put_newest(&mut self, record: &Record<'_>) {
        let kind = record.tag.kind.number();
        let bytes = RECORD_BYTES + record.payload.len();
        let limit = newest_bytes(record.tag.kind);
        if bytes > limit {
            self.refused += 1;
            return;
        }
        while let Some(oldest) = self.oldest_beyond(kind, limit - bytes) {
            self.remove(oldest);
            self.overwritten += 1;
        }
        if let Some(place) = self.append(record) {
            let newest = self.newest.entry(kind).or_default();
            newest.places.push_back(place);
            newest.bytes += bytes;
        }
    }

    /// Removes and returns the oldest record of a kind from its list, while the records of this kind use more than
    /// the limit.
    fn oldest_beyond(&mut self, kind: u16, limit: usize) -> Option<u64> {
        let newest = self.newest.get_mut(&kind).filter(|newest| newest.bytes > limit)?;
        let oldest = newest.places.pop_front()?;
        let payload = self.records.get(&oldest).map_or(0, |kept| kept.payload.len());
        newest.bytes -= RECORD_BYTES + payload;
        Some(oldest)
    }
}

/// Memory for the newest records of a kind without a key.
fn newest_bytes(kind: Kind) -> usize {
    match kind {
        wire::ClockPair::KIND => 1 << 20,
        wire::GraphEdges::KIND => 16 << 20,
        _ => 4 << 20,
    }
}

fn keep(record: &Record<'_>) -> Keep {
    let number = |numbers: &[u32]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    macro_rules! of {
        ($($type:ident => |$row:ident, $tail:ident| $keep:expr,)*) => {
            $(if let Some(($row, $tail)) = read::<wire::$type>(record) {
                return $keep;
            })*
        };
    }
    of! {
        Text => |row, _tail| Keep::Keyed(number(&[row.id])),
        Stack => |row, _tail| Keep::Keyed(number(&[row.stack])),
        PythonCode => |row, _tail| Keep::Keyed(number(&[row.code])),
        Device => |row, _tail| Keep::Keyed(number(&[row.device])),
        ThreadName => |row, _tail| Keep::Named(number(&[row.thread])),
        Category => |row, _tail| Keep::Named(number(&[row.domain, row.category])),
        Stream => |row, _tail| Keep::Object((row.context, row.stream), phase(u32::from(row.destroyed))),
        StreamName => |row, _tail| Keep::Object((row.context, row.stream), Phase::Named),
        Context => |row, _tail| Keep::Object((0, row.context), phase(row.destroyed)),
        Module => |row, _tail| Keep::Object((row.context, row.module), phase(row.unloaded)),
        Losses => |_row, _tail| Keep::Sum(Vec::new()),
        Note => |row, words| Keep::Sum([&row.cause.to_le_bytes(), words].concat()),
        ProcessStart => |_row, _tail| Keep::Keyed(Vec::new()),
        Goodbye => |_row, _tail| Keep::Latest(Vec::new()),
        Window => |row, _tail| Keep::Latest(number(&[row.phase])),
    }
    if let Some((fact, words)) = read::<wire::ProcessFact>(record) {
        let key = words.get(..fact.key_bytes as usize).unwrap_or(words);
        return Keep::Keyed(key.to_vec());
    }
    if let Some((image, _)) = read::<wire::Image>(record) {
        return Keep::Image(image.address);
    }
    Keep::Newest
}

fn phase(gone: u32) -> Phase {
    if gone == 0 { Phase::Made } else { Phase::Gone }
}

fn object_key((context, number): Object, phase: Phase) -> Vec<u8> {
    let mut key = [context, number].map(u32::to_le_bytes).as_flattened().to_vec();
    key.push(phase as u8);
    key
}

/// Names of streams belong to their streams.
fn family(kind: Kind) -> Kind {
    match kind {
        wire::StreamName::KIND => wire::Stream::KIND,
        kind => kind,
    }
}

fn boxed(kind: Kind, key: &[u8]) -> Key {
    (kind.number(), key.into())
}

/// The image without the time when it was seen.
fn without_time(image: &[u8]) -> Option<(wire::Image, &[u8])> {
    let tag = wire::Image::KIND.into();
    let (mut fixed, path) = wire::read::<wire::Image>(&Record { tag, payload: image })?;
    fixed.time = 0;
    Some((fixed, path))
}

/// The payload of a record of this kind.
fn read<'b, T: Payload>(record: &Record<'b>) -> Option<(T, &'b [u8])> {
    wire::read::<T>(record).filter(|_| record.tag.kind == T::KIND)
}

#[cfg(test)]
mod tests;
