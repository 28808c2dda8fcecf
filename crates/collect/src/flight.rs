//! The flight recorder: definitions are kept, everything else stays in its ring
//! until someone asks.
//!
//! A trace that is written out must stand alone, so every definition that a
//! process ever made is kept here as it came. Events are what the rings still
//! hold; each dump takes what came since the one before.

use std::{
    collections::VecDeque,
    num::NonZeroU16,
    path::{Path, PathBuf},
};

use tracesmith_wire::{
    Kind, Record, Tag,
    record::{self as wire, Goodbye, Payload, Window},
};

use crate::{
    capture::{Destination, Existing},
    counters::Sample,
};

/// Definitions kept of one process. At some hundred bytes for each kernel that
/// a program has this is out of reach; it bounds what a mad target can take.
const MAX_LOG_BYTES: usize = 64 << 20;

/// Samples of counters kept.
const MAX_SAMPLES: usize = 1 << 16;

/// Records as they came: bytes, kind, flags, payload, one behind another.
#[derive(Debug, Default)]
pub(crate) struct RecordLog {
    bytes: Vec<u8>,
    refused: u64,
    in_window: bool,
}

impl RecordLog {
    pub(crate) fn push(&mut self, record: &Record<'_>) {
        if let Some((window, _)) = wire::read::<Window>(record).filter(|_| record.tag.kind == Window::KIND) {
            self.in_window = window.phase == wire::WINDOW_OPENED;
        }
        if record.tag.kind == Goodbye::KIND {
            self.in_window = false;
        }
        let Ok(length) = u32::try_from(record.payload.len()) else {
            self.refused += 1;
            return;
        };
        if self.bytes.len() + record.payload.len() > MAX_LOG_BYTES {
            self.refused += 1;
            return;
        }
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes
            .extend_from_slice(&record.tag.kind.number().to_le_bytes());
        self.bytes.extend_from_slice(&record.tag.flags.to_le_bytes());
        self.bytes.extend_from_slice(record.payload);
    }

    /// Hands out all records in their order.
    pub(crate) fn replay(&self, mut each: impl FnMut(&Record<'_>)) {
        let mut rest = self.bytes.as_slice();
        while let Some((record, behind)) = split_record(rest) {
            each(&record);
            rest = behind;
        }
    }

    /// Records that found no room.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    /// Whether a window is open, and no goodbye was said.
    pub(crate) fn in_window(&self) -> bool {
        self.in_window
    }
}

fn split_record(bytes: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (kind, rest) = rest.split_first_chunk::<2>()?;
    let (flags, rest) = rest.split_first_chunk::<2>()?;
    let (payload, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let tag = Tag {
        kind: Kind::new(NonZeroU16::new(u16::from_le_bytes(*kind))?),
        flags: u16::from_le_bytes(*flags),
    };
    Some((Record { tag, payload }, rest))
}

/// Where dumps go, and counters until then.
#[derive(Debug)]
pub(crate) struct FlightStore {
    destination: Destination,
    dumps: u32,
    samples: VecDeque<Sample>,
}

impl FlightStore {
    pub(crate) fn new(destination: Destination) -> Self {
        Self {
            destination,
            dumps: 0,
            samples: VecDeque::new(),
        }
    }

    pub(crate) fn keep(&mut self, sample: Sample) {
        if self.samples.len() == MAX_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    pub(crate) fn take_samples(&mut self) -> VecDeque<Sample> {
        std::mem::take(&mut self.samples)
    }

    /// Where the next dump goes: the named file, then others beside it. Only
    /// the first may replace what the user said may be replaced.
    pub(crate) fn next_destination(&mut self) -> Destination {
        self.dumps += 1;
        if self.dumps == 1 {
            return self.destination.clone();
        }
        loop {
            let path = numbered(&self.destination.path, self.dumps);
            if !path.exists() {
                let existing = Existing::Refuse;
                return Destination { path, existing };
            }
            self.dumps += 1;
        }
    }
}

/// `trace.sbt` becomes `trace-2.sbt`.
pub(crate) fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_gives_back_what_it_took() {
        let mut log = RecordLog::default();
        let kind = |number| Kind::new(NonZeroU16::new(number).unwrap());
        let records: Vec<(u16, u16, Vec<u8>)> =
            vec![(1, 0, vec![]), (40, 3, vec![7; 9]), (46, 0, vec![0; 8])];
        for (number, flags, payload) in &records {
            let tag = Tag {
                kind: kind(*number),
                flags: *flags,
            };
            log.push(&Record { tag, payload });
        }
        let mut replayed = Vec::new();
        log.replay(|record| {
            replayed.push((
                record.tag.kind.number(),
                record.tag.flags,
                record.payload.to_vec(),
            ));
        });
        assert_eq!(replayed, records);
        assert!(!log.in_window());
    }

    #[test]
    fn dumps_are_numbered_beside_the_first() {
        assert_eq!(numbered(Path::new("a/b.sbt"), 2), Path::new("a/b-2.sbt"));
        assert_eq!(numbered(Path::new("b"), 3), Path::new("b-3"));
    }
}
