//! A tool that directs a recording: it sends orders to a descriptor, and gets events.
//!
//! Orders are lines of text: `stop`, `dump`, `begin`, `end`. The end of the input means `stop`, so that a recording
//! does not outlive the tool that wanted it.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::PathBuf,
};

use rustix::io::{Errno, read};

/// The longest order. A line without an end must not fill the memory.
const MAX_LINE: usize = 256;

/// What a tool wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Instruction {
    /// Close the window and complete the trace.
    Stop,
    /// Write the contents of the flight recorder.
    Dump,
    /// A capture range begins.
    Begin,
    /// It ends.
    End,
    /// A line that is none of these.
    Unknown(String),
}

/// Something that a tool waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// All selected programs are being recorded.
    Open,
    /// The window is closed, and the programs can be recorded again. The trace is not complete yet.
    Closed {
        /// Why data are missing, as far as that is known.
        missing: Vec<String>,
    },
    /// The flight recorder was written to this file, or the reason why it was not.
    Dumped(Result<PathBuf, String>),
    /// An order is not known, or does not fit this recording.
    Rejected {
        /// The order.
        order: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

/// The descriptor with the orders of a tool.
#[derive(Debug)]
pub struct Operator {
    descriptor: OwnedFd,
    unfinished: Vec<u8>,
    has_ended: bool,
}

impl Operator {
    /// Takes orders from a descriptor: a pipe, or a socket.
    pub fn new(descriptor: OwnedFd) -> Self {
        Self {
            descriptor,
            unfinished: Vec::new(),
            has_ended: false,
        }
    }

    /// The orders that have arrived. Call this if the descriptor is readable; otherwise it waits.
    pub(crate) fn read(&mut self) -> Vec<Instruction> {
        if self.has_ended {
            return Vec::new();
        }
        let mut bytes = [0; 1024];
        let length = match read(&self.descriptor, &mut bytes) {
            Ok(length) => length,
            Err(Errno::INTR | Errno::AGAIN) => return Vec::new(),
            // As if the tool had gone.
            Err(_) => 0,
        };
        let mut instructions = self.split(&bytes[..length]);
        if length == 0 {
            self.has_ended = true;
            instructions.push(Instruction::Stop);
        }
        instructions
    }

    fn split(&mut self, bytes: &[u8]) -> Vec<Instruction> {
        let mut instructions = Vec::new();
        for byte in bytes {
            match byte {
                b'\n' => {
                    let line = String::from_utf8_lossy(&self.unfinished).trim().to_owned();
                    self.unfinished.clear();
                    if !line.is_empty() {
                        instructions.push(Instruction::from_line(line));
                    }
                }
                byte if self.unfinished.len() < MAX_LINE => self.unfinished.push(*byte),
                _ => {}
            }
        }
        instructions
    }
}

impl AsFd for Operator {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Instruction {
    fn from_line(line: String) -> Self {
        match line.as_str() {
            "stop" => Self::Stop,
            "dump" => Self::Dump,
            "begin" => Self::Begin,
            "end" => Self::End,
            _ => Self::Unknown(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Write, pipe};

    use super::*;

    #[test]
    fn orders_may_arrive_in_pieces() {
        let (reader, mut writer) = pipe().unwrap();
        let mut operator = Operator::new(reader.into());
        writer.write_all(b"begin\nen").unwrap();
        assert_eq!(operator.read(), [Instruction::Begin]);
        writer.write_all(b"d\n\n fly \n").unwrap();
        assert_eq!(
            operator.read(),
            [Instruction::End, Instruction::Unknown("fly".to_owned())]
        );
        drop(writer);
        assert_eq!(operator.read(), [Instruction::Stop]);
        assert_eq!(operator.read(), [], "only once");
    }

    #[test]
    fn a_line_without_an_end_takes_little_memory() {
        let (reader, _writer) = pipe().unwrap();
        let mut operator = Operator::new(reader.into());
        for _ in 0..100 {
            assert_eq!(operator.split(&[b'x'; 1000]), []);
        }
        assert!(operator.unfinished.len() <= MAX_LINE);
    }
}
