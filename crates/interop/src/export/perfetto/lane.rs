//! Lanes: what Perfetto draws on one line, and the packet sequence that it is written on.
//!
//! Which item goes to which lane is [decided before](super::layout).
//! A lane is a packet sequence of its own: its track is the sequence's default, its times are deltas to the packet
//! before, and strings are interned when they first come up. So most packets are a dozen bytes.

use rustc_hash::FxHashSet;
use tracesmith_format::{StackId, StringId};
use tracesmith_trace::{EventName, Trace};

use super::item::{Body, Change, Form, Item, Name, OPEN, TrackKey};
use super::live_memory::LiveMemory;
use super::opening::{self, queue_id};
use super::stacks::{InternedStacks, put_interned_text, stack_text};
use super::tracks::Tracks;
use crate::perfetto::schema::{
    annotation, event, flags, gpu, interned, packet, render_stage, sample, trace as file,
};
use crate::perfetto::wire::{put_bytes, put_message, put_number, put_varint, varint_length};
use crate::perfetto::words::Argument;

/// Packets are cut into parts of about this size, to be compressed apart from each other.
const PART_BYTES: usize = 256 << 10;
/// Names that are known without a hash.
const RECENT_NAMES: usize = 256;
/// Texts of stacks are interned behind all strings.
const FIRST_STACK_TEXT: u64 = 1 << 32;

/// What lanes are written with.
pub(super) struct Scene<'t> {
    pub(super) trace: &'t Trace,
    /// The Perfetto clock that times are of, and the time that all deltas start from.
    pub(super) clock: u64,
    pub(super) base: u64,
    /// Who is going to read it.
    pub(super) reader: Reader,
}

/// Versions of Perfetto that a trace is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// All of them. Those before v53 take fields of events that they do not know for errors.
    Any,
    /// Those that know stacks of events and how calls and render stages belong together.
    Newer,
}

/// Writes one lane.
pub(super) struct Lane {
    sequence: u64,
    last: u64,
    open: Vec<u64>,
    names: FxHashSet<Name>,
    /// Some of the names, each at a place that its number tells: most events have one of these, and need no hash.
    recent: Box<[Name; RECENT_NAMES]>,
    texts: FxHashSet<StringId>,
    stacks: InternedStacks,
    interned: Vec<u8>,
    live: LiveMemory,
    /// The thread whose stacks are written as samples too.
    thread: Option<(u64, u64)>,
    parts: Vec<Vec<u8>>,
    out: Vec<u8>,
}

impl Lane {
    /// A lane that begins with everything that its packets will refer to.
    pub(super) fn new(
        scene: &Scene<'_>,
        tracks: &Tracks<'_>,
        key: &TrackKey,
        uuid: u64,
        live: LiveMemory,
    ) -> Self {
        let mut lane = Lane {
            sequence: uuid,
            last: scene.base,
            open: Vec::new(),
            names: FxHashSet::default(),
            recent: Box::new([Name::NONE; RECENT_NAMES]),
            texts: FxHashSet::default(),
            stacks: InternedStacks::default(),
            interned: Vec::new(),
            live,
            thread: match key {
                // Perfetto's threads have numbers of 32 bits.
                TrackKey::Thread(process, thread) if u32::try_from(thread.0).is_ok() && thread.is_some() => {
                    Some((tracks.pid(*process), thread.0))
                }
                _ => None,
            },
            parts: Vec::new(),
            out: Vec::new(),
        };
        opening::put(scene, tracks, key, uuid, &mut lane.out);
        lane
    }

    /// Adds an item, which does not start before the one added last.
    pub(super) fn add(&mut self, scene: &Scene<'_>, item: &Item, body: Body<'_>) {
        self.end_until(item.start);
        match item.form {
            Form::Slice => {
                self.put_event(scene, item, event::BEGIN, body);
                self.open.push(item.end);
            }
            Form::Instant => self.put_event(scene, item, event::INSTANT, body),
            Form::Arrow => self.put_event(scene, item, 0, body),
            Form::Count => self.put_event(scene, item, event::COUNTER, body),
            Form::Change => {
                let value = self.live.after(Change::get(body.rest));
                let mut rest = Vec::with_capacity(12);
                put_number(&mut rest, event::COUNTER_VALUE, value as u64);
                let body = Body {
                    head: &[],
                    rest: &rest,
                };
                self.put_event(scene, item, event::COUNTER, body);
            }
            Form::Stage | Form::KernelStage => self.put_stage(scene, item, body.rest),
        }
        if self.out.len() >= PART_BYTES {
            // A lane that filled one part will fill another.
            let next = Vec::with_capacity(PART_BYTES + PART_BYTES / 16);
            self.parts.push(std::mem::replace(&mut self.out, next));
        }
    }

    /// Ends everything that has an end: the file is complete.
    pub(super) fn finish(&mut self) {
        self.end_until(OPEN - 1);
    }

    /// The time of the latest packet.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// The live memory that the lane counts, for the lane of the next file.
    pub(super) fn take_live(&mut self) -> LiveMemory {
        std::mem::take(&mut self.live)
    }

    /// What was written since the last time, in parts that each end with a whole packet.
    pub(super) fn take_parts(&mut self) -> Vec<Vec<u8>> {
        let mut parts = std::mem::take(&mut self.parts);
        if !self.out.is_empty() {
            parts.push(std::mem::take(&mut self.out));
        }
        parts
    }

    fn end_until(&mut self, time: u64) {
        while let Some(end) = self.open.pop_if(|end| *end <= time) {
            const END: [u8; 6] = [
                (packet::SEQUENCE_FLAGS << 3) as u8,
                flags::NEEDED as u8,
                (packet::TRACK_EVENT << 3 | 2) as u8,
                2,
                (event::TYPE << 3) as u8,
                event::END as u8,
            ];
            self.begin_packet(end, END.len());
            self.out.extend_from_slice(&END);
        }
    }

    /// Begins a packet at a time that has `length` bytes besides time and sequence.
    #[inline]
    fn begin_packet(&mut self, time: u64, length: usize) {
        let delta = time - self.last;
        self.last = time;
        let length = length + 2 + varint_length(delta) + varint_length(self.sequence);
        let out = &mut self.out;
        out.push((file::PACKET << 3 | 2) as u8);
        put_varint(out, length as u64);
        out.push((packet::TIMESTAMP << 3) as u8);
        put_varint(out, delta);
        out.push((packet::SEQUENCE_ID << 3) as u8);
        put_varint(out, self.sequence);
    }

    fn put_event(&mut self, scene: &Scene<'_>, item: &Item, kind: u64, body: Body<'_>) {
        self.intern(scene, item);
        let mut stack = Vec::new();
        if item.stack.is_some() {
            put_stack(&mut stack, item.stack, scene.reader);
        }
        let name = u64::from(item.name.0);
        let name_length = if name == 0 { 0 } else { 1 + varint_length(name) };
        let event_length = 2 + name_length + body.head.len() + body.rest.len() + stack.len();
        let mut length = 2 + 1 + varint_length(event_length as u64) + event_length;
        if !self.interned.is_empty() {
            length += 1 + varint_length(self.interned.len() as u64) + self.interned.len();
        }
        self.begin_packet(item.start, length);
        let out = &mut self.out;
        out.extend_from_slice(&[(packet::SEQUENCE_FLAGS << 3) as u8, flags::NEEDED as u8]);
        if !self.interned.is_empty() {
            put_bytes(out, packet::INTERNED_DATA, &self.interned);
            self.interned.clear();
        }
        out.push((packet::TRACK_EVENT << 3 | 2) as u8);
        put_varint(out, event_length as u64);
        out.extend_from_slice(&[(event::TYPE << 3) as u8, kind as u8]);
        if name != 0 {
            out.push((event::NAME_IID << 3) as u8);
            put_varint(out, name);
        }
        out.extend_from_slice(body.head);
        out.extend_from_slice(body.rest);
        out.extend_from_slice(&stack);
        if let (Some(thread), true) = (self.thread, item.stack.is_some()) {
            self.put_sample(thread, item);
        }
    }

    /// The stack of an event as a sample, which all versions draw flame graphs of.
    fn put_sample(&mut self, (pid, tid): (u64, u64), item: &Item) {
        let mut rest = Vec::with_capacity(32);
        put_number(&mut rest, packet::SEQUENCE_FLAGS, flags::NEEDED);
        put_message(&mut rest, packet::PERF_SAMPLE, |out| {
            put_number(out, sample::PID, pid);
            put_number(out, sample::TID, tid);
            put_number(out, sample::CALLSTACK_IID, u64::from(item.stack.0));
        });
        self.begin_packet(item.start, rest.len());
        self.out.extend_from_slice(&rest);
    }

    fn put_stage(&mut self, scene: &Scene<'_>, item: &Item, body: &[u8]) {
        if self.names.insert(item.name) {
            self.intern_stage(scene, item);
        }
        let mut message = Vec::with_capacity(body.len() + 32);
        if item.end != OPEN {
            put_number(&mut message, render_stage::DURATION, item.end - item.start);
        }
        put_number(&mut message, render_stage::QUEUE, queue_id(self.sequence));
        put_number(&mut message, render_stage::STAGE, u64::from(item.name.0));
        if item.form == Form::KernelStage {
            put_number(&mut message, render_stage::KERNEL, u64::from(item.name.0));
        }
        message.extend_from_slice(body);
        let mut rest = Vec::with_capacity(message.len() + 8);
        put_number(&mut rest, packet::SEQUENCE_FLAGS, flags::NEEDED);
        if !self.interned.is_empty() {
            put_bytes(&mut rest, packet::INTERNED_DATA, &self.interned);
            self.interned.clear();
        }
        put_bytes(&mut rest, packet::GPU_RENDER_STAGE_EVENT, &message);
        self.begin_packet(item.start, rest.len());
        self.out.extend_from_slice(&rest);
    }

    /// A stage for every kernel: older versions show the stage's name and none other.
    fn intern_stage(&mut self, scene: &Scene<'_>, item: &Item) {
        let name = name_text(scene.trace, item.name);
        let iid = u64::from(item.name.0);
        put_message(&mut self.interned, interned::GPU_SPECIFICATIONS, |out| {
            put_number(out, interned::IID, iid);
            put_bytes(out, interned::TEXT, name.as_bytes());
            if item.form == Form::KernelStage {
                put_number(out, gpu::CATEGORY, gpu::COMPUTE);
            }
        });
        if item.form == Form::KernelStage {
            let mangled = if item.text.is_some() {
                scene.trace.string(item.text)
            } else {
                name
            };
            put_message(&mut self.interned, interned::COMPUTE_KERNELS, |out| {
                put_number(out, interned::IID, iid);
                put_bytes(out, gpu::KERNEL_NAME, mangled.as_bytes());
                put_bytes(out, gpu::KERNEL_DEMANGLED, name.as_bytes());
            });
        }
    }

    /// Notes an event's name; says whether it is new.
    #[inline]
    fn is_new(&mut self, name: Name) -> bool {
        let recent = &mut self.recent[name.0 as usize % RECENT_NAMES];
        if *recent == name || name == Name::NONE {
            return false;
        }
        *recent = name;
        self.names.insert(name)
    }

    #[inline]
    fn intern(&mut self, scene: &Scene<'_>, item: &Item) {
        if self.is_new(item.name) {
            let name = name_text(scene.trace, item.name);
            put_interned_text(
                &mut self.interned,
                interned::EVENT_NAMES,
                u64::from(item.name.0),
                name.as_bytes(),
            );
        }
        if item.text.is_some() && self.texts.insert(item.text) {
            let text = scene.trace.string(item.text).as_bytes();
            put_interned_text(
                &mut self.interned,
                interned::ANNOTATION_STRINGS,
                u64::from(item.text.0),
                text,
            );
        }
        if item.stack.is_some() && self.stacks.insert(item.stack) {
            if scene.reader == Reader::Newer || self.thread.is_some() {
                self.stacks.put(scene.trace, item.stack, &mut self.interned);
            }
            let text = stack_text(scene.trace, item.stack);
            let iid = FIRST_STACK_TEXT + u64::from(item.stack.0);
            put_interned_text(
                &mut self.interned,
                interned::ANNOTATION_STRINGS,
                iid,
                text.as_bytes(),
            );
        }
    }
}

/// The stack as a text that all versions show, and as such for those that know stacks of events.
fn put_stack(out: &mut Vec<u8>, stack: StackId, reader: Reader) {
    if reader == Reader::Newer {
        put_number(out, event::CALLSTACK_IID, u64::from(stack.0));
    }
    put_message(out, event::DEBUG_ANNOTATIONS, |out| {
        put_number(out, annotation::NAME_IID, u64::from(Argument::STACK.0));
        put_number(out, annotation::STRING_IID, FIRST_STACK_TEXT + u64::from(stack.0));
    });
}

fn name_text(trace: &Trace, name: Name) -> &str {
    match name.get() {
        EventName::Id(id) => trace.string(id),
        EventName::Word(word) => word,
    }
}
