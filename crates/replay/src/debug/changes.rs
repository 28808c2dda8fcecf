//! What a call changes, and what differs from the recorded end.
//!
//! Memory is hashed on the GPU in chunks, before and after the call. Only chunks with a different hash are read.

use std::ops::Range;

use tracesmith_cuda::kernels::Digester;

use super::buffers::Extent;
use super::diff::{Diff, DiffLimits};
use super::live::Debugger;
use super::number::Number;
use crate::compare::Left;
use crate::error::Error;
use crate::run::host_slice;
use crate::trail::addresses;

/// Memory is hashed in chunks of this size.
const HASHED: u64 = 256 << 10;

/// Memory before a call.
pub(super) struct Before {
    pub(super) place: usize,
    left: Left,
    /// Chunks that the call changed, by buffer.
    changed: Vec<(Extent, Vec<Range<u64>>)>,
}

/// A buffer that a call changed, or that differs from the recording.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferDiff {
    /// The buffer.
    pub buffer: Extent,
    /// The differences: from before the call to after it, or from the recording to this replay.
    pub diff: Diff,
    /// The number of the last call with this buffer as an argument.
    pub last_call: Option<u64>,
}

/// The comparison of memory with the recorded end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndDiff {
    /// Compared buffers.
    pub buffers: usize,
    /// Their size.
    pub bytes: u64,
    /// Those that differ.
    pub different: Vec<BufferDiff>,
}

impl Debugger<'_, '_> {
    /// Runs the call at a position, and finds all memory that it changes. Afterwards, the position is after the call,
    /// and [`Moment::Before`](super::Moment::Before) is before it.
    ///
    /// # Errors
    ///
    /// If there is no such call, if the driver reports an error, or if the device does not have enough memory for a
    /// copy.
    pub fn changes(
        &mut self,
        place: usize,
        number: Number,
        limits: DiffLimits,
    ) -> Result<Vec<BufferDiff>, Error> {
        if place >= self.recording().commands.len() {
            return Err(Error::Unavailable("no call follows the end".to_owned()));
        }
        self.keep_before(place)?;
        let Some(before) = self.before.take() else {
            return Ok(Vec::new());
        };
        let diffs = self.diffs_since(&before, number, limits);
        self.before = Some(before);
        diffs
    }

    /// Goes to after the call at a position, with the memory from before it kept.
    fn keep_before(&mut self, place: usize) -> Result<(), Error> {
        let is_kept = self.before_place() == Some(place) && self.place() == place + 1 && self.is_settled();
        match is_kept {
            true => Ok(()),
            false => self.run_and_hash(place),
        }
    }

    fn run_and_hash(&mut self, place: usize) -> Result<(), Error> {
        self.before = None;
        self.go(place)?;
        let left = match self.replay.left() {
            Ok(left) => left,
            // Snapshots can use half of the memory.
            Err(_) => {
                self.replay.drop_snapshots();
                self.replay.left()?
            }
        };
        let buffers: Vec<Extent> = self.recording().buffers_at(place);
        let (hosts, devices): (Vec<Extent>, Vec<Extent>) = buffers.into_iter().partition(|buffer| {
            let host = &mut self.replay.host;
            host_slice(host, buffer.range.start, buffer.bytes()).is_some()
        });
        let devices: Vec<Extent> = devices
            .into_iter()
            .filter(|buffer| self.replay.is_here(&(buffer.range.start, buffer.bytes())))
            .collect();
        let before = self.hashes(&devices)?;
        self.go(place + 1)?;
        let after = self.hashes(&devices)?;
        let mut hashes = before.into_iter().zip(after);
        let mut changed: Vec<(Extent, Vec<Range<u64>>)> = Vec::new();
        for buffer in devices {
            let chunks: Vec<Range<u64>> = hashed_chunks(&buffer)
                .filter(|_| hashes.next().is_some_and(|(before, after)| before != after))
                .collect();
            if !chunks.is_empty() {
                changed.push((buffer, chunks));
            }
        }
        for buffer in hosts {
            let range = buffer.range.clone();
            let now = host_slice(&mut self.replay.host, range.start, buffer.bytes());
            if left.host_slice(&range) != now.as_deref() {
                changed.push((buffer, vec![range]));
            }
        }
        self.before = Some(Before { place, left, changed });
        Ok(())
    }

    fn hashes(&mut self, buffers: &[Extent]) -> Result<Vec<u64>, Error> {
        let failed = || Error::device("hashing memory");
        if self.digester.is_none() {
            self.digester = Some(Digester::load(&self.replay.context).map_err(failed())?);
        }
        let Some(digester) = &self.digester else {
            return Ok(Vec::new());
        };
        let chunks: Vec<(u64, u64)> = buffers
            .iter()
            .flat_map(hashed_chunks)
            .map(|chunk| (chunk.start, chunk.end - chunk.start))
            .collect();
        let room = digester.room(chunks.len().max(1), &self.replay.marks);
        let mut digests = room.map_err(failed())?;
        self.replay.digest(digester, &chunks, &mut digests)?;
        self.replay.wait()?;
        digests.read(&self.replay.marks).map_err(failed())
    }

    fn diffs_since(
        &mut self,
        before: &Before,
        number: Number,
        limits: DiffLimits,
    ) -> Result<Vec<BufferDiff>, Error> {
        let mut diffs = Vec::new();
        for (buffer, chunks) in &before.changed {
            let mut diff = Diff::new(number, limits);
            let mut at = buffer.range.start;
            for chunk in chunks {
                diff.skip(chunk.start - at);
                let old = self.old_contents(before, chunk)?;
                let new = self.replay.read(chunk.start, chunk.end - chunk.start)?;
                diff.add(chunk.start - buffer.range.start, &old, &new);
                at = chunk.end;
            }
            diff.skip(buffer.range.end - at);
            if !diff.is_empty() {
                diffs.push(BufferDiff {
                    buffer: buffer.clone(),
                    diff,
                    last_call: None,
                });
            }
        }
        Ok(diffs)
    }

    fn old_contents(&self, before: &Before, range: &Range<u64>) -> Result<Vec<u8>, Error> {
        if let Some(host) = before.left.host_slice(range) {
            return Ok(host.to_vec());
        }
        let mut content = vec![0; (range.end - range.start) as usize];
        let now = self.replay.place(range.start);
        let snapshot = &before.left.memory;
        let read = self.replay.stage.read_snapshot(snapshot, now, &mut content);
        read.map_err(Error::device("reading memory"))?;
        self.replay.to_recorded_addresses(range.start, &mut content);
        Ok(content)
    }

    /// The contents before the last call that has run. The call runs again if its memory was not kept.
    pub(super) fn contents_before(&mut self, range: &Range<u64>) -> Result<Vec<u8>, Error> {
        let nothing = || Error::Unavailable("no call comes before the start".to_owned());
        let last = self.place().checked_sub(1).ok_or_else(nothing)?;
        self.keep_before(last)?;
        let before = self.before.as_ref().ok_or_else(nothing)?;
        self.old_contents(before, range)
    }

    /// Goes to the end, and compares all memory with the recorded memory.
    ///
    /// # Errors
    ///
    /// If the driver reports an error, or if the file lacks contents.
    pub fn compare_end(&mut self, number: Number, limits: DiffLimits) -> Result<EndDiff, Error> {
        self.go(self.recording().commands.len())?;
        self.settle()?;
        self.replay.get_arrays()?;
        let end = std::mem::take(&mut self.replay.recording.end);
        let mut found = EndDiff::default();
        let compared: Result<(), Error> = end.iter().try_for_each(|buffer| {
            let mut diff = Diff::new(number, limits);
            for piece in &buffer.pieces {
                match self.replay.unequal_piece(piece)? {
                    None => diff.skip(piece.bytes),
                    Some(unequal) => {
                        diff.add(piece.address - buffer.address, &unequal.recorded, &unequal.found)
                    }
                }
            }
            found.buffers += 1;
            found.bytes += diff.bytes;
            if !diff.is_empty() {
                found.different.push(BufferDiff {
                    buffer: Extent {
                        range: buffer.range(),
                        memory: buffer.memory,
                        variable: buffer.variable.clone(),
                    },
                    diff,
                    last_call: None,
                });
            }
            Ok(())
        });
        self.replay.recording.end = end;
        compared?;
        for different in &mut found.different {
            let range = &different.buffer.range;
            let uses = |address: &u64| range.contains(address);
            let calls = self.recording().commands.iter().rev();
            let mut using = calls.filter(|command| addresses(command).iter().any(uses));
            different.last_call = using.next().map(|command| command.number);
        }
        Ok(found)
    }
}

fn hashed_chunks(buffer: &Extent) -> impl Iterator<Item = Range<u64>> + use<> {
    let end = buffer.range.end;
    (buffer.range.start..end)
        .step_by(HASHED as usize)
        .map(move |start| start..start.saturating_add(HASHED).min(end))
}
