//! Tracks of trace-event JSON: numbers of processes and threads, their names, and the lanes of each.
//!
//! The form has processes and threads and nothing else, so a GPU becomes a process and a stream a thread. Numbers are the
//! operating system's and the runtime's own where they tell tracks apart, and made up beyond them where they do not:
//! two hosts may have the same pid, two contexts the same stream, and a second lane has no number at all.

use rustc_hash::{FxHashMap, FxHashSet};
use tracesmith_format::{ContextId, DeviceId, ProcessId, StringId};

use crate::export::json_text::{push_number, push_string};
use crate::export::lanes::{Lanes, Overlap};

/// Made-up thread numbers start here, beyond those that Linux gives out.
const FIRST_MADE_UP: u64 = 10_000_000;
/// The largest number that readers keep whole.
pub(super) const LARGEST_NUMBER: u64 = u32::MAX as u64;

/// What a track holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Role {
    /// Ranges that a thread marked.
    Markers,
    /// Calls of a thread.
    Thread,
    /// Ranges that no thread holds.
    Free,
    /// Launches of whole graphs.
    Graphs,
    /// Work of a stream.
    Stream,
    /// Waits for a stream.
    Waits,
    /// Collectives of a stream.
    Collectives,
    /// Allocations.
    Memory,
}

/// What tells tracks apart. What does not apply is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TrackKey {
    pub(super) role: Role,
    pub(super) process: ProcessId,
    pub(super) device: DeviceId,
    pub(super) context: ContextId,
    /// The thread or stream.
    pub(super) number: u64,
    pub(super) domain: StringId,
}

/// How a new track looks.
pub(super) struct NewTrack {
    /// The process number.
    pub(super) pid: u64,
    /// The thread number it would like to have; one beyond 63 bits is negative in the file.
    pub(super) tid: Option<u64>,
    pub(super) name: String,
    /// Where it stands among the tracks of its process.
    pub(super) sort_index: u64,
    pub(super) way: TrackWay,
}

/// How events stand on a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrackWay {
    /// In lanes, as they fit.
    Lanes(Overlap),
    /// All on one thread, whatever they do to each other.
    Together,
    /// Each by itself, with a start and an end event.
    Async,
}

/// All tracks so far.
#[derive(Default)]
pub(super) struct Tracks {
    known: FxHashMap<TrackKey, u32>,
    bases: Vec<Base>,
    outputs: Vec<Output>,
    used: FxHashSet<(u64, u64)>,
    definitions: Vec<u8>,
    next_made_up: u64,
}

struct Base {
    new: NewTrack,
    lanes: Lanes,
    /// The output of each lane.
    outputs: Vec<u32>,
    /// Where events go that find no lane.
    beside: Option<u32>,
    /// Start and output of the event that came last.
    latest: (u64, u32),
}

/// One thread of the file.
pub(super) struct Output {
    /// `,"pid":1,"tid":7`
    pub(super) text: Vec<u8>,
    pub(super) form: Form,
}

/// How a stretch of time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As one event with a duration.
    Complete,
    /// As a start and an end that name each other.
    Async,
}

impl Tracks {
    /// The track with this key, made by `new` the first time.
    pub(super) fn base(&mut self, key: TrackKey, new: impl FnOnce() -> NewTrack) -> u32 {
        if let Some(base) = self.known.get(&key) {
            return *base;
        }
        let new = new();
        let overlap = match new.way {
            TrackWay::Lanes(overlap) => overlap,
            TrackWay::Together | TrackWay::Async => Overlap::Nested,
        };
        let number = self.bases.len() as u32;
        self.bases.push(Base {
            lanes: Lanes::new(overlap),
            outputs: Vec::new(),
            beside: None,
            latest: (0, 0),
            new,
        });
        self.known.insert(key, number);
        number
    }

    /// The output of an event that lasts.
    pub(super) fn stretch(&mut self, base: u32, start: u64, end: u64) -> u32 {
        let track = &mut self.bases[base as usize];
        let lane = match track.new.way {
            TrackWay::Lanes(_) => track.lanes.place(start, end),
            TrackWay::Together => Some(0),
            TrackWay::Async => None,
        };
        let output = match lane {
            Some(lane) => self.lane(base, lane),
            None => self.beside(base),
        };
        self.bases[base as usize].latest = (start, output);
        output
    }

    /// The output of something that happens at one moment: beside what starts then, if anything does.
    pub(super) fn moment(&mut self, base: u32, time: u64) -> u32 {
        match self.bases[base as usize].latest {
            (start, output) if start == time && self.outputs[output as usize].form == Form::Complete => {
                output
            }
            _ => self.lane(base, 0),
        }
    }

    /// The thread of the file with this number.
    pub(super) fn output(&self, number: u32) -> &Output {
        &self.outputs[number as usize]
    }

    /// Definitions since the last call.
    pub(super) fn take_definitions(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.definitions)
    }

    /// Names a process of the file.
    pub(super) fn define_process(&mut self, pid: u64, name: &str, labels: &str, sort_index: u64) {
        for (event, key, text) in [
            ("process_name", "name", name),
            ("process_labels", "labels", labels),
        ] {
            if text.is_empty() {
                continue;
            }
            self.begin_definition(event, pid, 0, key);
            push_string(&mut self.definitions, text);
            self.definitions.extend_from_slice(b"}}");
        }
        self.begin_definition("process_sort_index", pid, 0, "sort_index");
        push_number(&mut self.definitions, sort_index);
        self.definitions.extend_from_slice(b"}}");
    }

    fn lane(&mut self, base: u32, lane: usize) -> u32 {
        let track = &self.bases[base as usize];
        if let Some(output) = track.outputs.get(lane) {
            return *output;
        }
        let (pid, wanted, sort_index) = (track.new.pid, track.new.tid, track.new.sort_index);
        let tid = self.free_tid(pid, wanted.filter(|_| lane == 0));
        let name = match lane {
            0 => self.bases[base as usize].new.name.clone(),
            lane => format!("{} ({})", self.bases[base as usize].new.name, lane + 1),
        };
        let output = self.outputs.len() as u32;
        self.push_output(pid, tid, Form::Complete);
        self.bases[base as usize].outputs.push(output);
        self.define_thread(pid, tid, &name, sort_index + lane as u64);
        output
    }

    fn beside(&mut self, base: u32) -> u32 {
        if let Some(output) = self.bases[base as usize].beside {
            return output;
        }
        let pid = self.bases[base as usize].new.pid;
        let tid = self.free_tid(pid, None);
        let output = self.outputs.len() as u32;
        self.push_output(pid, tid, Form::Async);
        self.bases[base as usize].beside = Some(output);
        output
    }

    fn push_output(&mut self, pid: u64, tid: u64, form: Form) {
        let mut text = b",\"pid\":".to_vec();
        push_number(&mut text, pid);
        text.extend_from_slice(b",\"tid\":");
        push_number(&mut text, tid as i64);
        self.outputs.push(Output { text, form });
    }

    fn free_tid(&mut self, pid: u64, wanted: Option<u64>) -> u64 {
        if let Some(tid) = wanted
            && self.used.insert((pid, tid))
        {
            return tid;
        }
        loop {
            let tid = FIRST_MADE_UP + self.next_made_up;
            self.next_made_up += 1;
            if self.used.insert((pid, tid)) {
                return tid;
            }
        }
    }

    fn define_thread(&mut self, pid: u64, tid: u64, name: &str, sort_index: u64) {
        self.begin_definition("thread_name", pid, tid, "name");
        push_string(&mut self.definitions, name);
        self.definitions.extend_from_slice(b"}}");
        self.begin_definition("thread_sort_index", pid, tid, "sort_index");
        push_number(&mut self.definitions, sort_index);
        self.definitions.extend_from_slice(b"}}");
    }

    fn begin_definition(&mut self, event: &str, pid: u64, tid: u64, key: &str) {
        let out = &mut self.definitions;
        out.extend_from_slice(b",\n{\"ph\":\"M\",\"name\":");
        push_string(out, event);
        out.extend_from_slice(b",\"pid\":");
        push_number(out, pid);
        out.extend_from_slice(b",\"tid\":");
        push_number(out, tid as i64);
        out.extend_from_slice(b",\"args\":{");
        push_string(out, key);
        out.push(b':');
    }
}
