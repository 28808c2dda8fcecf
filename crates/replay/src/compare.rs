//! Compares memory with the recorded memory, or with the memory after an earlier run.

use std::collections::BTreeMap;
use std::ops::Range;

use tracesmith_cuda::driver::Snapshot;
use xxhash_rust::xxh3::xxh3_128;

use crate::error::Error;
use crate::recording::{Buffer, Piece};
use crate::run::{Replay, host_slice, missing_content};
use crate::tolerance::{Attempt, Close, Tolerance};
use crate::verdict::{Difference, Verdict};

/// Memory is read in chunks of this size.
const PART: u64 = 4 << 20;

/// The results of all buffers so far.
#[derive(Default)]
pub(crate) struct Findings {
    buffers: usize,
    bytes: u64,
    differences: Vec<Difference>,
    close: Vec<Close>,
}

impl Findings {
    /// For buffers that were compared by hash after each call. Differing buffers are added later.
    pub(crate) fn of_calls(buffers: usize) -> Self {
        Self {
            buffers,
            ..Self::default()
        }
    }

    /// Adds a buffer with a different hash after a call.
    pub(crate) fn add_call(
        &mut self,
        call: u64,
        address: u64,
        expected: &[u8],
        found: &[u8],
        tolerances: &[Tolerance],
    ) {
        let mut look = Look::new(address, found.len() as u64, tolerances);
        look.compare(address, expected, found);
        // It differed before. An equal hash now does not change that.
        look.difference.get_or_insert_with(|| Difference {
            address,
            bytes: found.len() as u64,
            ..Difference::default()
        });
        if let Some(difference) = &mut look.difference {
            difference.call = Some(call);
            if difference.count == 0 {
                look.attempts.clear();
            }
        }
        self.settle(look);
    }

    pub(crate) fn verdict(self) -> Verdict {
        let Self {
            buffers,
            bytes,
            differences,
            close,
        } = self;
        if !differences.is_empty() {
            return Verdict::Differs { differences, buffers };
        }
        if buffers == 0 {
            let why = "the recording contains no memory to compare";
            return Verdict::Unproven { why };
        }
        if !close.is_empty() {
            return Verdict::Within {
                buffers,
                bytes,
                close,
            };
        }
        Verdict::Same { buffers, bytes }
    }

    fn add(&mut self, look: Look) {
        self.buffers += 1;
        self.bytes += look.bytes;
        self.settle(look);
    }

    fn settle(&mut self, look: Look) {
        let Some(difference) = look.difference else { return };
        let close = |attempt: &Attempt| attempt.close(look.address, look.bytes);
        match look.attempts.iter().find_map(close) {
            Some(close) => self.close.push(close),
            None => self.differences.push(difference),
        }
    }
}

/// The memory after a run.
pub(crate) struct Left {
    pub(crate) memory: Snapshot,
    /// Unmapped host memory, by address.
    host: BTreeMap<u64, Vec<u8>>,
}

impl Left {
    /// Unmapped host memory.
    pub(crate) fn host_slice(&self, range: &Range<u64>) -> Option<&[u8]> {
        self.host.iter().find_map(|(base, memory)| {
            let first = range.start.checked_sub(*base)? as usize;
            memory.get(first..first.checked_add((range.end - range.start) as usize)?)
        })
    }
}

/// One buffer, compared in chunks.
struct Look {
    address: u64,
    bytes: u64,
    difference: Option<Difference>,
    attempts: Vec<Attempt>,
}

impl Look {
    fn new(address: u64, bytes: u64, tolerances: &[Tolerance]) -> Self {
        Self {
            address,
            bytes,
            difference: None,
            attempts: tolerances.iter().copied().map(Attempt::new).collect(),
        }
    }

    /// Compares a chunk that starts at an address.
    fn compare(&mut self, address: u64, expected: &[u8], found: &[u8]) {
        let pairs = expected.iter().zip(found);
        let common = expected.len().min(found.len());
        let rest = expected.len().max(found.len()) - common;
        let first = pairs.clone().position(|(one, other)| one != other);
        let Some(first) = first.or((rest > 0).then_some(common)) else {
            return;
        };
        let count = (pairs.filter(|(one, other)| one != other).count() + rest) as u64;
        let end = (first + 8).min(common).max(first);
        if rest > 0 {
            self.attempts.clear();
        }
        let difference = self.difference.get_or_insert_with(|| Difference {
            address: self.address,
            bytes: self.bytes,
            offset: address - self.address + first as u64,
            expected: expected[first..end].to_vec(),
            found: found[first..end].to_vec(),
            count: 0,
            call: None,
        });
        difference.count += count;
        for attempt in &mut self.attempts {
            attempt.compare(expected, found);
        }
    }
}

/// Two contents of a piece.
pub(crate) struct Unequal {
    pub(crate) recorded: Vec<u8>,
    pub(crate) found: Vec<u8>,
}

impl Replay<'_> {
    /// Sets the allowed differences. Memory has no type, so a buffer that is not bit-identical is read as each of
    /// these types. It is within tolerance if all its elements are, for one of the types.
    pub fn set_tolerances(&mut self, tolerances: &[Tolerance]) {
        self.tolerances = tolerances.to_vec();
    }

    /// Compares memory with the recorded memory at the end of the window.
    pub(crate) fn compare(&mut self) -> Result<Verdict, Error> {
        self.get_arrays()?;
        let end = std::mem::take(&mut self.recording.end);
        let mut findings = Findings::default();
        let result = end.iter().try_for_each(|buffer| {
            findings.add(self.compare_buffer(buffer)?);
            Ok(())
        });
        self.recording.end = end;
        result.map(|()| findings.verdict())
    }

    fn compare_buffer(&mut self, buffer: &Buffer) -> Result<Look, Error> {
        let mut look = Look::new(buffer.address, buffer.bytes, &self.tolerances);
        let mut found = Vec::new();
        for piece in &buffer.pieces {
            self.progressed(piece.bytes);
            self.read_piece(piece, &mut found)?;
            if xxh3_128(&found) != piece.hash {
                let expected = self.recording.store.piece(piece.hash)?;
                if expected.len() != found.len() {
                    return Err(missing_content(piece));
                }
                look.compare(piece.address, expected, &found);
            }
        }
        Ok(look)
    }

    /// The recorded bytes of a piece and the current ones, if they differ.
    pub(crate) fn unequal_piece(&mut self, piece: &Piece) -> Result<Option<Unequal>, Error> {
        self.progressed(piece.bytes);
        let mut found = Vec::new();
        self.read_piece(piece, &mut found)?;
        if xxh3_128(&found) == piece.hash {
            return Ok(None);
        }
        let expected = self.recording.store.piece(piece.hash)?;
        if expected.len() != found.len() {
            return Err(missing_content(piece));
        }
        Ok(Some(Unequal {
            recorded: expected.to_vec(),
            found,
        }))
    }

    fn read_piece(&mut self, piece: &Piece, to: &mut Vec<u8>) -> Result<(), Error> {
        to.resize(piece.bytes as usize, 0);
        let address = self.place(piece.address);
        match host_slice(&mut self.host, piece.address, piece.bytes) {
            Some(host) => to.copy_from_slice(host),
            None => self
                .stage
                .read(address, to)
                .map_err(Error::device("reading memory"))?,
        }
        self.to_recorded_addresses(piece.address, to);
        Ok(())
    }

    /// Compares memory with the memory after another run.
    pub(crate) fn compare_with(&self, before: &Left, buffers: &[(u64, u64)]) -> Result<Verdict, Error> {
        let failed = || Error::device("reading memory");
        self.get_arrays()?;
        let mut findings = Findings::default();
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        let placed: Vec<(u64, u64, u64)> = buffers
            .iter()
            .map(|(address, bytes)| (*address, self.place(*address), *bytes))
            .collect();
        // Memory between buffers is compared, too: a kernel that writes out of bounds shows there.
        let beside = self.memory_beside(&placed);
        for (index, (address, now, bytes)) in placed.iter().copied().chain(beside).enumerate() {
            let mut look = Look::new(address, bytes, &self.tolerances);
            for offset in (0..bytes).step_by(PART as usize) {
                let length = PART.min(bytes - offset) as usize;
                expected.resize(length, 0);
                found.resize(length, 0);
                let from = now + offset;
                self.stage
                    .read_snapshot(&before.memory, from, &mut expected)
                    .map_err(failed())?;
                self.stage.read(from, &mut found).map_err(failed())?;
                look.compare(address + offset, &expected, &found);
            }
            if index < buffers.len() {
                findings.add(look);
            } else {
                // It counts only if it differs.
                findings.settle(look);
            }
        }
        for (address, expected) in &before.host {
            let found = self.host.get(address).map(Vec::as_slice).unwrap_or_default();
            let mut look = Look::new(*address, expected.len() as u64, &self.tolerances);
            look.compare(*address, expected, found);
            findings.add(look);
        }
        Ok(findings.verdict())
    }

    /// Mapped memory outside of the given buffers: its recorded address (or its current one), its current address and
    /// its size.
    fn memory_beside(&self, buffers: &[(u64, u64, u64)]) -> Vec<(u64, u64, u64)> {
        let taken: Vec<Range<u64>> = buffers.iter().map(|(_, now, bytes)| *now..now + bytes).collect();
        let beside = self.stage.beside(&taken).into_iter();
        beside
            .map(|range| (range.start, range.start, range.end - range.start))
            .collect()
    }

    /// Copies all memory, for a later comparison.
    pub(crate) fn left(&self) -> Result<Left, Error> {
        let host = self
            .host
            .iter()
            .map(|(address, content)| (*address, content.clone()));
        Ok(Left {
            memory: self.copy_memory()?,
            host: host.collect(),
        })
    }
}
