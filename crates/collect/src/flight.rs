//! The flight recorder: definitions are kept, everything else stays in its ring
//! until someone asks.
//!
//! A trace that is written out must stand alone, so definitions are kept: see
//! [`RecordLog`]. Events are what the rings still hold; each dump takes what
//! came since the one before.

mod log;

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
};

pub(crate) use log::RecordLog;

use crate::{
    capture::{Destination, Existing},
    counters::Sample,
};

/// Samples of counters kept.
const MAX_SAMPLES: usize = 1 << 16;

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
    fn dumps_are_numbered_beside_the_first() {
        assert_eq!(numbered(Path::new("a/b.sbt"), 2), Path::new("a/b-2.sbt"));
        assert_eq!(numbered(Path::new("b"), 3), Path::new("b-3"));
    }
}
