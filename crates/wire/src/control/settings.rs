//! What a target is to record, and when.

use std::{
    ffi::OsStr,
    ops::{BitOr, BitOrAssign},
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    time::Duration,
};

use super::codec::{Decoder, Encoder, malformed};
use crate::{config::Capacity, error::Error};

/// Everything that a target must know to open a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The collector's socket, where rings are granted.
    pub collector: PathBuf,
    /// What to record.
    pub kinds: Kinds,
    /// When to record, within the window.
    pub range: CaptureRange,
    /// Which of the ranges, counted from 0; all without it.
    pub steps: Option<Steps>,
    /// Room for the vendor library's records.
    pub activity_ring: Capacity,
    /// Room for each thread's records.
    pub thread_ring: Capacity,
    /// The most memory that all buffers and rings in the target may take.
    pub memory_bytes: u64,
    /// How often records are handed over when buffers do not fill.
    pub flush_period: Duration,
}

/// When a target records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureRange {
    /// From the opening of the window to its close.
    Everything,
    /// Between the program's calls of `cuProfilerStart` and `cuProfilerStop`.
    ProfilerApi,
    /// While a range of this name is open.
    Marker {
        /// The range's text.
        name: String,
        /// Its domain; any without it.
        domain: Option<String>,
    },
    /// During the launch of a kernel.
    Launch {
        /// What its name is like, with `*` and `?`.
        pattern: String,
    },
    /// When the collector says so.
    Order,
}

/// Some of the ranges that a program opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// The first, counted from 0.
    pub first: u64,
    /// The one behind the last.
    pub last: u64,
}

/// A set of things to record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds(u64);

impl Kinds {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Kernels.
    pub const KERNELS: Self = Self(1);
    /// Copies and sets.
    pub const COPIES: Self = Self(1 << 1);
    /// Calls of the runtime and the driver, without those that only ask.
    pub const API: Self = Self(1 << 2);
    /// Also the calls that only ask.
    pub const API_QUERIES: Self = Self(1 << 3);
    /// Waits of the host and of streams, and event records.
    pub const SYNCS: Self = Self(1 << 4);
    /// Allocations and releases.
    pub const MEMORY: Self = Self(1 << 5);
    /// What the program marks (NVTX).
    pub const MARKERS: Self = Self(1 << 6);
    /// Graphs as a whole instead of node by node.
    pub const WHOLE_GRAPHS: Self = Self(1 << 7);
    /// Modules.
    pub const MODULES: Self = Self(1 << 8);
    /// The vendor library's own work, and compilations.
    pub const OVERHEAD: Self = Self(1 << 9);
    /// When launches were queued and submitted.
    pub const LATENCY: Self = Self(1 << 10);
    /// Contexts and streams.
    pub const STREAMS: Self = Self(1 << 11);
    /// The native stack of every launch, copy, allocation and wait.
    pub const STACKS: Self = Self(1 << 12);
    /// The Python functions in it.
    pub const PYTHON: Self = Self(1 << 13);

    /// Calls and memory, so that the window can be run again.
    pub const REPLAY_CAPTURE: Self = Self(1 << 14);

    /// Also collectives, by what they leave in memory.
    pub const STUB_COLLECTIVES: Self = Self(1 << 15);

    /// Whether all of `other` is in the set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The set without `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Kinds {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Kinds {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl Settings {
    pub(super) fn encode<'e>(&self, encoder: &'e mut Encoder) -> &'e mut Encoder {
        encoder
            .text(self.collector.as_os_str().as_bytes())
            .word(self.kinds.0);
        match &self.range {
            CaptureRange::Everything => encoder.word(0),
            CaptureRange::ProfilerApi => encoder.word(1),
            CaptureRange::Marker { name, domain: None } => encoder.word(2).text(name.as_bytes()),
            CaptureRange::Marker {
                name,
                domain: Some(domain),
            } => encoder.word(3).text(name.as_bytes()).text(domain.as_bytes()),
            CaptureRange::Launch { pattern } => encoder.word(4).text(pattern.as_bytes()),
            CaptureRange::Order => encoder.word(5),
        };
        match self.steps {
            None => encoder.word(0),
            Some(steps) => encoder.word(1).word(steps.first).word(steps.last),
        };
        encoder
            .word(self.activity_ring.bytes())
            .word(self.thread_ring.bytes())
            .word(self.memory_bytes)
            .word(u64::try_from(self.flush_period.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        let collector = PathBuf::from(OsStr::from_bytes(decoder.text()?));
        let kinds = Kinds(decoder.word()?);
        let range = match decoder.word()? {
            0 => CaptureRange::Everything,
            1 => CaptureRange::ProfilerApi,
            2 => CaptureRange::Marker {
                name: decoder.string()?,
                domain: None,
            },
            3 => CaptureRange::Marker {
                name: decoder.string()?,
                domain: Some(decoder.string()?),
            },
            4 => CaptureRange::Launch {
                pattern: decoder.string()?,
            },
            5 => CaptureRange::Order,
            _ => return Err(malformed("its range is not known")),
        };
        let steps = match decoder.word()? {
            0 => None,
            _ => Some(Steps {
                first: decoder.word()?,
                last: decoder.word()?,
            }),
        };
        Ok(Self {
            collector,
            kinds,
            range,
            steps,
            activity_ring: Capacity::exactly(decoder.word()?)?,
            thread_ring: Capacity::exactly(decoder.word()?)?,
            memory_bytes: decoder.word()?,
            flush_period: Duration::from_millis(decoder.word()?),
        })
    }
}
