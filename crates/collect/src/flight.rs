//! The flight recorder. It keeps definitions in memory, and leaves all other records in the rings until a dump.
//!
//! Every dump is a complete trace, so it needs all definitions: see [`RecordLog`]. Events come from the rings. Each
//! dump contains the events since the previous dump.

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

/// Counter samples that are kept.
const MAX_SAMPLES: usize = 1 << 16;

/// Where dumps are written, and the counter samples for the next dump.
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

    /// The path of the next dump: first the given file, then numbered files next to it. Only the first may replace an
    /// existing file.
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
