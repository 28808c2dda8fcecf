//! What a block of rows becomes before its place in the file is known: items in time, with the encoded rest of their events.
//!
//! Everything that depends on a row alone is done here, on all cores: its arguments and flows are encoded once and later
//! copied. Everything that depends on its neighbours (lanes, time deltas, interned strings) comes after, in time order.

use tracesmith_format::tables::MemoryKind;
use tracesmith_format::{ContextId, DeviceId, ProcessId, StackId, StreamId, StringId, ThreadId};
use tracesmith_trace::EventName;

/// The items of one block.
#[derive(Default)]
pub(super) struct Piece {
    pub(super) items: Vec<Item>,
    /// The encoded parts of all items, one behind the other.
    pub(super) bodies: Vec<u8>,
    /// Encoded parts that many items have in common.
    heads: Vec<Vec<u8>>,
    /// The tracks that items refer to by number.
    pub(super) tracks: Vec<TrackKey>,
    /// Rows whose time is not known, or beyond what Perfetto can hold.
    pub(super) without_time: u64,
    /// Rows that have no place in a Perfetto trace.
    pub(super) left_out: u64,
}

/// One event on a track.
#[derive(Clone, Copy)]
pub(super) struct Item {
    pub(super) start: u64,
    /// When it ends; [`OPEN`] when that is not known.
    pub(super) end: u64,
    pub(super) track: u32,
    pub(super) form: Form,
    pub(super) name: Name,
    /// A string that an argument of it refers to.
    pub(super) text: StringId,
    pub(super) stack: StackId,
    /// What its encoded part begins with.
    pub(super) head: Head,
    /// Where the rest of its encoded part lies in the piece.
    pub(super) body: u32,
    pub(super) body_length: u32,
}

/// The number of a head in its piece, counted from 1: rows of one shape share what they begin with, all arguments of a
/// kernel's launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head(u32);

impl Head {
    pub(super) const NONE: Head = Head(0);
}

/// The encoded part of an item.
#[derive(Clone, Copy)]
pub(super) struct Body<'a> {
    pub(super) head: &'a [u8],
    pub(super) rest: &'a [u8],
}

/// The end of something whose end is not known: it is over when nothing else is left.
pub(super) const OPEN: u64 = u64::MAX;

/// What an item is in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A stretch of time.
    Slice,
    /// A moment.
    Instant,
    /// A counter's value.
    Count,
    /// A change of a counter of live bytes; the body is [`Change`].
    Change,
    /// One end of an arrow, tied to whatever runs on the track at that moment.
    Arrow,
    /// Device work in the form of a GPU render stage.
    Stage,
    /// The same of a kernel, which is interned with its names.
    KernelStage,
}

/// An event's name as the number that it is interned by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Name(pub(super) u32);

/// Names of ours that events may have; strings of the trace are numbered behind them.
const WORDS: &[&str] = &[
    "",
    "unknown",
    "copy",
    "set",
    "sync",
    "allocation",
    "graph launch",
    "collective",
    "host to device",
    "device to host",
    "host to array",
    "array to host",
    "array to array",
    "array to device",
    "device to array",
    "device to device",
    "host to host",
    "peer to peer",
    "event wait",
    "stream wait event",
    "stream wait",
    "context wait",
    "device wait",
    "event record",
    "allocate",
    "free",
    "pool create",
    "pool destroy",
    "pool trim",
    "reserve",
    "unreserve",
    "create",
    "release",
    "map",
    "unmap",
    "register",
    "unregister",
];
const FIRST_STRING: u32 = 64;

impl Name {
    pub(super) const NONE: Name = Name(0);

    /// The number for a name.
    pub(super) fn new(name: EventName) -> Self {
        match name {
            EventName::Id(id) => Self::of_string(id),
            EventName::Word(word) => {
                let at = WORDS.iter().position(|known| *known == word).unwrap_or(1);
                Name(at as u32 + 1)
            }
        }
    }

    /// The number for a string of the trace. The last few of four thousand million strings would share theirs.
    pub(super) fn of_string(id: StringId) -> Self {
        Name(id.0.saturating_add(FIRST_STRING))
    }

    /// The name itself: a word of ours, or a string of the trace.
    pub(super) fn get(self) -> EventName {
        if self.0 >= FIRST_STRING {
            return EventName::Id(StringId(self.0 - FIRST_STRING));
        }
        let word = (self.0 as usize).checked_sub(1).and_then(|at| WORDS.get(at));
        EventName::Word(word.copied().unwrap_or(""))
    }
}

/// What a track shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum TrackKey {
    /// What a thread does: calls and host work.
    Thread(ProcessId, ThreadId),
    /// Ranges and marks that a thread set, of one domain.
    Ranges(ProcessId, ThreadId, StringId),
    /// Ranges of a process that may start and end anywhere, of one domain.
    FreeRanges(ProcessId, StringId),
    /// Allocations and releases as moments.
    Allocations(ProcessId),
    /// Live bytes of one kind of memory.
    Memory(ProcessId, DeviceId, MemoryKind),
    /// Work of a stream.
    Stream(StreamKey, StreamRole),
    /// A counter.
    Counter(CounterKey),
}

/// A stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct StreamKey {
    pub(super) device: DeviceId,
    pub(super) process: ProcessId,
    pub(super) context: ContextId,
    pub(super) stream: StreamId,
}

/// What of a stream a track shows: kinds that run at the same time have a track each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum StreamRole {
    Work,
    Graphs,
    Collectives,
    Syncs,
    /// Waits for all streams, and of the host for an event.
    OtherSyncs,
    /// The same work once more, as render stages.
    Stages,
}

/// A counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CounterKey {
    pub(super) device: DeviceId,
    pub(super) process: ProcessId,
    pub(super) thread: ThreadId,
    pub(super) name: StringId,
    pub(super) unit: StringId,
    pub(super) instance: u32,
}

/// A change of live memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) address: u64,
    pub(super) bytes: u64,
    pub(super) taken: bool,
}

impl Change {
    pub(super) fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.address.to_le_bytes());
        out.extend_from_slice(&self.bytes.to_le_bytes());
        out.push(u8::from(self.taken));
    }

    pub(super) fn get(body: &[u8]) -> Self {
        let number = |at: usize| {
            let bytes: [u8; 8] = body[at..at + 8].try_into().expect("eight bytes");
            u64::from_le_bytes(bytes)
        };
        Change {
            address: number(0),
            bytes: number(8),
            taken: body[16] != 0,
        }
    }
}

impl Piece {
    /// The number of a track in this piece.
    pub(super) fn track(&mut self, key: TrackKey) -> u32 {
        // A block has few tracks, and each is asked for once for each distinct place.
        let at = self.tracks.iter().position(|known| *known == key);
        at.unwrap_or_else(|| {
            self.tracks.push(key);
            self.tracks.len() - 1
        }) as u32
    }

    /// Keeps what items will begin with.
    pub(super) fn add_head(&mut self, bytes: Vec<u8>) -> Head {
        self.heads.push(bytes);
        Head(self.heads.len() as u32)
    }

    /// The encoded part of an item.
    #[inline]
    pub(super) fn body(&self, item: &Item) -> Body<'_> {
        let start = item.body as usize;
        let head = (item.head.0 as usize).checked_sub(1);
        Body {
            head: head.map_or(&[], |at| &self.heads[at]),
            rest: &self.bodies[start..start + item.body_length as usize],
        }
    }

    /// Adds an item whose encoded part is what was written to `bodies` since it was `from` long.
    pub(super) fn push(&mut self, mut item: Item, from: usize) {
        item.body = from as u32;
        item.body_length = (self.bodies.len() - from) as u32;
        self.items.push(item);
    }

    /// Adds an item of another piece, its track by this piece's number.
    pub(super) fn push_copy(&mut self, item: &Item, body: Body<'_>, track: u32) {
        let from = self.bodies.len();
        self.bodies.extend_from_slice(body.head);
        self.bodies.extend_from_slice(body.rest);
        let head = Head::NONE;
        self.push(Item { track, head, ..*item }, from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracesmith_format::tables::{CopyDirection, MemoryOperation, SyncKind};

    #[test]
    fn every_word_that_events_have_is_known() {
        let copies = CopyDirection::ALL.iter().filter_map(|code| code.name());
        let syncs = SyncKind::ALL.iter().filter_map(|code| code.name());
        let operations = MemoryOperation::ALL.iter().filter_map(|code| code.name());
        for word in copies.chain(syncs).chain(operations) {
            assert_eq!(Name::new(EventName::Word(word)).get(), EventName::Word(word));
        }
        assert!(WORDS.len() < FIRST_STRING as usize);
        assert_eq!(Name::of_string(StringId(7)).get(), EventName::Id(StringId(7)));
        assert_eq!(Name::NONE.get(), EventName::Word(""));
    }

    #[test]
    fn a_change_comes_back() {
        let change = Change {
            address: 7,
            bytes: u64::MAX,
            taken: true,
        };
        let mut out = Vec::new();
        change.put(&mut out);
        assert_eq!(Change::get(&out), change);
    }
}
