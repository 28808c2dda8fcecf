//! An XRay log as its records, one after the other, as LLVM's own reader sees them.
//!
//! The two kinds of log are read in two ways. A basic log is a stream of records of 32 bytes. A flight recorder's log
//! (`fdr.rs`) is an image of buffers in memory, whose order in the file is not that of time.

use std::io::Read;

use crate::error::Error;

/// Every record of a basic log, and the header of all logs, is this long.
pub(super) const RECORD_BYTES: usize = 32;

/// What stands before the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) version: u16,
    pub(super) kind: LogKind,
    /// The counter runs at the same rate whatever the processor does.
    pub(super) constant_counter: bool,
    /// The counter runs on while the processor sleeps.
    pub(super) nonstop_counter: bool,
    /// Cycles a second.
    pub(super) frequency: u64,
    /// Bytes of each buffer of a flight recorder.
    pub(super) buffer_bytes: u64,
}

/// What wrote the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogKind {
    /// Basic mode: every call, as it happens.
    Basic,
    /// Flight data recorder mode: buffers that are used again.
    FlightRecorder,
}

impl Header {
    /// The header at the beginning of a log, if it is one. The unused bits of the flags are not looked at: some
    /// versions of the runtime leave there what was in memory.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let version = u16_at(bytes, 0)?;
        let kind = match (u16_at(bytes, 2)?, version) {
            (0, 1..=3) => LogKind::Basic,
            (1, 1..=5) => LogKind::FlightRecorder,
            _ => return None,
        };
        let flags = u32_at(bytes, 4)?;
        Some(Header {
            version,
            kind,
            constant_counter: flags & 1 != 0,
            nonstop_counter: flags & 2 != 0,
            frequency: u64_at(bytes, 8)?,
            buffer_bytes: u64_at(bytes, 16)?,
        })
    }
}

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordKind {
    Enter,
    Exit,
    TailExit,
    EnterWithArgument,
    CustomEvent,
    TypedEvent,
}

impl RecordKind {
    /// The kind that a function record's number stands for.
    pub(super) fn of_function(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Enter,
            1 => Self::Exit,
            2 => Self::TailExit,
            3 => Self::EnterWithArgument,
            _ => return None,
        })
    }
}

/// One record, with what the log says of its surroundings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) kind: RecordKind,
    /// The function's number; 0 for events.
    pub(super) function: i32,
    /// A typed event's type.
    pub(super) event_type: u16,
    pub(super) cpu: u16,
    pub(super) thread: u32,
    pub(super) process: u32,
    /// The processor's counter.
    pub(super) counter: u64,
    pub(super) arguments: Vec<u64>,
    /// What the program gave with an event.
    pub(super) data: Vec<u8>,
}

/// Why records end before the file does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Break {
    pub(super) problem: String,
    pub(super) position: u64,
}

/// All places where a log is damaged: the first of them, and how many more there are.
#[derive(Debug, Default)]
pub(super) struct Breaks {
    pub(super) first: Vec<Break>,
    pub(super) further: u64,
}

impl Breaks {
    /// Places that are told one by one.
    const TOLD: usize = 8;

    pub(super) fn add(&mut self, problem: &str, position: usize) {
        if self.first.len() < Self::TOLD {
            self.first.push(Break {
                problem: problem.to_owned(),
                position: position as u64,
            });
        } else {
            self.further += 1;
        }
    }
}

/// The records of a basic log. An argument stands in a record of its own behind the call's, so each call waits for the
/// record after it.
pub(super) struct BasicRecords<R> {
    reader: R,
    version: u16,
    position: u64,
    waiting: Option<Record>,
    broken: Option<Break>,
}

impl<R: Read> BasicRecords<R> {
    /// Reads what follows the header.
    pub(super) fn new(reader: R, header: &Header) -> Self {
        BasicRecords {
            reader,
            version: header.version,
            position: RECORD_BYTES as u64,
            waiting: None,
            broken: None,
        }
    }

    /// Why the records ended, unless at the file's end.
    pub(super) fn broken(&self) -> Option<&Break> {
        self.broken.as_ref()
    }

    /// The next record; `None` at the end, or where the log is damaged.
    pub(super) fn next(&mut self) -> Result<Option<Record>, Error> {
        while self.broken.is_none() {
            let mut bytes = [0; RECORD_BYTES];
            let count = read_full(&mut self.reader, &mut bytes)?;
            if count == 0 {
                break;
            }
            if count < RECORD_BYTES {
                self.break_off("the last record is cut off".to_owned());
                break;
            }
            match u16_of(&bytes, 0) {
                0 => match function_record(&bytes) {
                    Ok(record) => {
                        self.position += RECORD_BYTES as u64;
                        if let Some(complete) = self.waiting.replace(record) {
                            return Ok(Some(complete));
                        }
                        continue;
                    }
                    Err(problem) => self.break_off(problem),
                },
                1 => match self.add_argument(&bytes) {
                    Ok(()) => self.position += RECORD_BYTES as u64,
                    Err(problem) => self.break_off(problem),
                },
                other => self.break_off(format!("a record of the unknown type {other}")),
            }
        }
        Ok(self.waiting.take())
    }

    fn add_argument(&mut self, bytes: &[u8; RECORD_BYTES]) -> Result<(), String> {
        let Some(call) = &mut self.waiting else {
            return Err("an argument without a call".to_owned());
        };
        let matches = call.function == u32_of(bytes, 4) as i32
            && call.thread == u32_of(bytes, 8)
            && (self.version < 3 || call.process == u32_of(bytes, 12));
        if !matches {
            return Err("an argument of another call than the one before it".to_owned());
        }
        call.arguments.push(u64_of(bytes, 16));
        Ok(())
    }

    fn break_off(&mut self, problem: String) {
        self.broken = Some(Break {
            problem,
            position: self.position,
        });
    }
}

fn function_record(bytes: &[u8; RECORD_BYTES]) -> Result<Record, String> {
    let kind = RecordKind::of_function(bytes[3])
        .ok_or_else(|| format!("a function record of the unknown kind {}", bytes[3]))?;
    Ok(Record {
        kind,
        function: u32_of(bytes, 4) as i32,
        event_type: 0,
        cpu: u16::from(bytes[2]),
        thread: u32_of(bytes, 16),
        process: u32_of(bytes, 20),
        counter: u64_of(bytes, 8),
        arguments: Vec::new(),
        data: Vec::new(),
    })
}

/// Fills the buffer, or as much of it as there is.
pub(super) fn read_full(reader: &mut impl Read, buffer: &mut [u8]) -> Result<usize, Error> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(source) => return Err(Error::Read { source }),
        }
    }
    Ok(filled)
}

fn u16_of(bytes: &[u8; RECORD_BYTES], offset: usize) -> u16 {
    u16_at(bytes, offset).expect("the offset lies in a record")
}

fn u32_of(bytes: &[u8; RECORD_BYTES], offset: usize) -> u32 {
    u32_at(bytes, offset).expect("the offset lies in a record")
}

fn u64_of(bytes: &[u8; RECORD_BYTES], offset: usize) -> u64 {
    u64_at(bytes, offset).expect("the offset lies in a record")
}

pub(super) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}

pub(super) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}

pub(super) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}
