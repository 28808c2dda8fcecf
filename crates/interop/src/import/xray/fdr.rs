//! A flight recorder's log: an image of the buffers that the threads wrote into.
//!
//! Buffers are used again and again, so their order in the file says nothing: each names its thread and the time it was
//! begun, and they are read thread by thread in that order. That needs the whole log in memory, which is never more
//! than what the traced program itself set aside for its buffers.

use std::collections::BTreeMap;
use std::ops::Range;

use super::records::{Breaks, Header, RECORD_BYTES, Record, RecordKind, u16_at, u32_at, u64_at};

/// Metadata records are this long, functions' records half of it.
const METADATA_BYTES: usize = 16;
const FUNCTION_BYTES: usize = 8;

/// What a buffer has at least: whose it is, when it was begun, and on which processor.
const MIN_BUFFER: usize = 3 * METADATA_BYTES;

/// The kinds of metadata records, by their numbers in the log.
const NEW_BUFFER: u8 = 0;
const END_OF_BUFFER: u8 = 1;
const NEW_CPU: u8 = 2;
const COUNTER_WRAP: u8 = 3;
const WALL_CLOCK: u8 = 4;
const CUSTOM_EVENT: u8 = 5;
const CALL_ARGUMENT: u8 = 6;
const BUFFER_EXTENTS: u8 = 7;
const TYPED_EVENT: u8 = 8;
const PROCESS: u8 = 9;

/// The first byte of a metadata record.
pub(super) const fn introducer(kind: u8) -> u8 {
    kind << 1 | 1
}

/// What a log of this version begins with.
pub(super) fn first_byte(version: u16) -> u8 {
    introducer(if version == 1 { NEW_BUFFER } else { BUFFER_EXTENTS })
}

/// A whole log and where its buffers are.
pub(super) struct FlightLog<'a> {
    bytes: &'a [u8],
    version: u16,
    /// By process and thread, in the order of time.
    buffers: BTreeMap<(u32, u32), Vec<Buffer>>,
    broken: Breaks,
}

/// One buffer of one thread.
struct Buffer {
    /// When it was begun, in seconds and nanoseconds.
    begun: (u64, u32),
    records: Range<usize>,
}

impl<'a> FlightLog<'a> {
    /// Finds the buffers of a log.
    pub(super) fn new(bytes: &'a [u8], header: &Header) -> Self {
        let mut log = FlightLog {
            bytes,
            version: header.version,
            buffers: BTreeMap::new(),
            broken: Breaks::default(),
        };
        for records in log.extents(header) {
            log.index(records);
        }
        for buffers in log.buffers.values_mut() {
            buffers.sort_by_key(|buffer| buffer.begun);
        }
        log
    }

    /// When the first buffer was begun, by the runtime's clock: seconds and nanoseconds.
    pub(super) fn begun(&self) -> Option<(u64, u32)> {
        self.buffers.values().flatten().map(|buffer| buffer.begun).min()
    }

    /// Calls `each` with every record, thread by thread. Gives back where the log is damaged.
    pub(super) fn for_each<E>(mut self, mut each: impl FnMut(Record) -> Result<(), E>) -> Result<Breaks, E> {
        for buffers in std::mem::take(&mut self.buffers).into_values() {
            for buffer in buffers {
                let mut reader = BufferReader::new(self.bytes, self.version, buffer.records);
                while let Some(record) = reader.next() {
                    each(record)?;
                }
                if let Some(problem) = reader.broken {
                    self.broken.add(&problem, reader.at);
                }
            }
        }
        Ok(self.broken)
    }

    /// Where buffers are. From version 2 on each says how long it is; before, all had the same length.
    fn extents(&mut self, header: &Header) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut at = RECORD_BYTES;
        if header.version == 1 {
            let step = usize::try_from(header.buffer_bytes).unwrap_or(0);
            let step = if step < MIN_BUFFER { self.bytes.len() } else { step };
            while at < self.bytes.len() {
                let end = at.saturating_add(step).min(self.bytes.len());
                found.push(at..end);
                at = end;
            }
            return found;
        }
        while let Some(offset) =
            memchr::memchr(introducer(BUFFER_EXTENTS), self.bytes.get(at..).unwrap_or(&[]))
        {
            let start = at + offset + METADATA_BYTES;
            let Some(length) = u64_at(self.bytes, at + offset + 1) else {
                break;
            };
            let end = start.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
            if end > self.bytes.len() {
                self.broken.add("the last buffer is cut off", self.bytes.len());
            }
            let end = end.min(self.bytes.len());
            if start < end {
                found.push(start..end);
            }
            at = end.max(start);
        }
        found
    }

    /// Notes whose a buffer is, and when it was begun.
    fn index(&mut self, records: Range<usize>) {
        let mut reader = BufferReader::new(self.bytes, self.version, records.clone());
        let is_buffer = self.bytes.get(records.start) == Some(&introducer(NEW_BUFFER));
        if !is_buffer || !reader.step_header() {
            self.broken.add("a buffer does not begin as one", records.start);
            return;
        }
        let key = (reader.process, reader.thread);
        let begun = reader.begun;
        self.buffers
            .entry(key)
            .or_default()
            .push(Buffer { begun, records });
    }
}

/// Reads the records of one buffer.
struct BufferReader<'a> {
    bytes: &'a [u8],
    version: u16,
    at: usize,
    end: usize,
    thread: u32,
    process: u32,
    cpu: u16,
    counter: u64,
    begun: (u64, u32),
    waiting: Option<Record>,
    broken: Option<String>,
}

impl<'a> BufferReader<'a> {
    fn new(bytes: &'a [u8], version: u16, records: Range<usize>) -> Self {
        BufferReader {
            bytes,
            version,
            at: records.start,
            end: records.end,
            thread: 0,
            process: 0,
            cpu: 0,
            counter: 0,
            begun: (0, 0),
            waiting: None,
            broken: None,
        }
    }

    /// Reads the records that stand before the first event; whether they are whole.
    fn step_header(&mut self) -> bool {
        while let Some(byte) = self.bytes[..self.end].get(self.at) {
            let is_header = [NEW_BUFFER, WALL_CLOCK, PROCESS].map(introducer).contains(byte);
            if !is_header {
                return true;
            }
            if self.step().is_err() {
                return false;
            }
        }
        true
    }

    fn next(&mut self) -> Option<Record> {
        while self.broken.is_none() && self.at < self.end {
            match self.step() {
                Ok(Some(complete)) => return Some(complete),
                Ok(None) => {}
                Err(problem) => self.broken = Some(problem),
            }
        }
        self.waiting.take()
    }

    /// Takes one record of the log. Gives back the call or event before it, which is complete now.
    fn step(&mut self) -> Result<Option<Record>, String> {
        let rest = &self.bytes[self.at..self.end];
        let first = rest[0];
        if first & 1 == 0 {
            return self.function(rest);
        }
        let cut = || "a record is cut off".to_owned();
        let body = rest.get(1..METADATA_BYTES).ok_or_else(cut)?;
        let (u16_in, u32_in, u64_in) = (
            |at| u16_at(body, at).ok_or_else(cut),
            |at| u32_at(body, at).ok_or_else(cut),
            |at| u64_at(body, at).ok_or_else(cut),
        );
        match first >> 1 {
            NEW_BUFFER => {
                self.thread = u32_in(0)?;
                // Version 2 has no process records: LLVM's reader takes the thread's number for it, and so do we.
                if self.version == 2 {
                    self.process = self.thread;
                }
            }
            WALL_CLOCK => self.begun = (u64_in(0)?, u32_in(8)?),
            PROCESS => self.process = u32_in(0)?,
            NEW_CPU => (self.cpu, self.counter) = (u16_in(0)?, u64_in(2)?),
            COUNTER_WRAP => self.counter = u64_in(0)?,
            CALL_ARGUMENT => {
                let argument = u64_in(0)?;
                let Some(call) = &mut self.waiting else {
                    return Err("an argument without a call".to_owned());
                };
                call.kind = RecordKind::EnterWithArgument;
                call.arguments.push(argument);
            }
            CUSTOM_EVENT if self.version < 5 => {
                let (counter, own_cpu) = (u64_in(4)?, u16_in(12)?);
                let mut record = self.event(RecordKind::CustomEvent, u32_in(0)?)?;
                record.counter = counter;
                record.cpu = if self.version >= 4 { own_cpu } else { 0 };
                return Ok(self.waiting.replace(record));
            }
            kind @ (CUSTOM_EVENT | TYPED_EVENT) => {
                let delta = i64::from(u32_in(4)? as i32);
                let event_type = u16_in(8)?;
                let record_kind = match kind {
                    TYPED_EVENT => RecordKind::TypedEvent,
                    _ => RecordKind::CustomEvent,
                };
                let mut record = self.event(record_kind, u32_in(0)?)?;
                self.counter = self.counter.wrapping_add_signed(delta);
                record.counter = self.counter;
                record.event_type = if kind == TYPED_EVENT { event_type } else { 0 };
                return Ok(self.waiting.replace(record));
            }
            END_OF_BUFFER if self.version == 1 => {
                self.at = self.end;
                return Ok(None);
            }
            other => return Err(format!("a metadata record of the unknown kind {other}")),
        }
        self.at += METADATA_BYTES;
        Ok(None)
    }

    /// A function's record: a bit that says so, 3 bits for the kind, 28 for the function, 32 for the time passed.
    fn function(&mut self, rest: &[u8]) -> Result<Option<Record>, String> {
        let (Some(word), Some(delta)) = (u32_at(rest, 0), u32_at(rest, 4)) else {
            return Err("a record is cut off".to_owned());
        };
        let number = (word >> 1 & 7) as u8;
        let kind = RecordKind::of_function(number)
            .ok_or_else(|| format!("a function record of the unknown kind {number}"))?;
        self.counter = self.counter.wrapping_add(u64::from(delta));
        self.at += FUNCTION_BYTES;
        let record = Record {
            function: (word >> 4) as i32,
            ..self.record(kind)
        };
        Ok(self.waiting.replace(record))
    }

    /// An event's record, whose bytes follow it. Nothing is stepped over unless all is there.
    fn event(&mut self, kind: RecordKind, size: u32) -> Result<Record, String> {
        let size = usize::try_from(size as i32).ok().filter(|size| *size > 0);
        let size = size.ok_or("an event without data")?;
        let start = self.at + METADATA_BYTES;
        let data = self.bytes[..self.end].get(start..start.saturating_add(size));
        let data = data.ok_or("an event is cut off")?.to_vec();
        self.at = start + size;
        Ok(Record {
            data,
            ..self.record(kind)
        })
    }

    fn record(&self, kind: RecordKind) -> Record {
        Record {
            kind,
            function: 0,
            event_type: 0,
            cpu: self.cpu,
            thread: self.thread,
            process: self.process,
            counter: self.counter,
            arguments: Vec::new(),
            data: Vec::new(),
        }
    }
}
