//! Snapshots of memory on the device. They make it fast to go back to an earlier call.
//!
//! Snapshots use at most half of the free memory. When that is full, every second snapshot is dropped, and the
//! distance of new ones doubles. So they always cover the whole run.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashMap;
use tracesmith_cuda::driver::Snapshot;

use crate::error::Error;
use crate::run::{Fresh, Replay};

/// Snapshots by the position of the next call.
#[derive(Default)]
pub(crate) struct Snapshots {
    /// Calls between two snapshots. 0: no snapshots.
    every: usize,
    most: usize,
    /// How memory was filled in the runs of these snapshots.
    made: Option<(Fresh, u8)>,
    kept: BTreeMap<usize, StoredSnapshot>,
}

struct StoredSnapshot {
    memory: Snapshot,
    host: FxHashMap<u64, Vec<u8>>,
}

impl Snapshots {
    /// The position of the next snapshot after a position.
    fn next(&self, place: usize) -> usize {
        match self.every {
            0 => usize::MAX,
            every => (place / every + 1) * every,
        }
    }

    fn is_wanted(&self, place: usize) -> bool {
        self.every > 0 && self.most > 0 && place.is_multiple_of(self.every) && !self.kept.contains_key(&place)
    }

    /// Frees memory for one more snapshot.
    fn evict_every_other(&mut self) {
        while self.kept.len() >= self.most {
            self.every = self.every.saturating_mul(2);
            let every = self.every;
            let before = self.kept.len();
            self.kept.retain(|place, _| place.is_multiple_of(every));
            if self.kept.len() == before {
                // All positions are already multiples of the new distance.
                self.kept.pop_last();
            }
        }
    }
}

impl Replay<'_> {
    /// Takes a snapshot every `every` calls from now on.
    ///
    /// # Errors
    ///
    /// If the driver reports an error.
    pub fn keep_snapshots(&mut self, every: usize) -> Result<(), Error> {
        let (free, _) = self
            .context
            .free_memory()
            .map_err(Error::device("querying free memory"))?;
        let each = self.stage.snapshot_bytes().max(1);
        self.snapshots = Snapshots {
            every,
            most: (free / 2 / each) as usize,
            made: None,
            kept: BTreeMap::new(),
        };
        Ok(())
    }

    /// Frees all snapshots, and takes no more.
    pub(crate) fn drop_snapshots(&mut self) {
        self.snapshots = Snapshots::default();
    }

    /// Number of snapshots.
    pub fn snapshot_count(&self) -> usize {
        self.snapshots.kept.len()
    }

    /// Brings memory into its state before the call at a position, from the nearest snapshot or from the start.
    ///
    /// # Errors
    ///
    /// If the driver reports an error.
    pub fn go_to(&mut self, place: usize) -> Result<(), Error> {
        let place = place.min(self.recording.commands.len());
        let at = self.go_back(place)?;
        self.go_on(at..place)
    }

    /// Runs the calls at these positions, starting with the next call, and waits for them.
    ///
    /// # Errors
    ///
    /// If the driver reports an error.
    pub fn go_on(&mut self, places: Range<usize>) -> Result<(), Error> {
        let mut at = places.start;
        while at < places.end {
            let next = self.snapshots.next(at).min(places.end);
            self.issue_all(at..next)?;
            self.wait()?;
            if self.snapshots.is_wanted(next) && self.has_recorded_kernels() {
                self.keep(next)?;
            }
            at = next;
        }
        Ok(())
    }

    /// Snapshots contain results of the recorded kernels. With other kernels they are neither used nor taken.
    fn has_recorded_kernels(&self) -> bool {
        self.replaced.is_empty()
    }

    fn go_back(&mut self, place: usize) -> Result<usize, Error> {
        self.wait()?;
        let way = (self.fresh, self.pattern);
        if self.snapshots.made.replace(way) != Some(way) {
            self.snapshots.kept.clear();
        }
        let mut nearest = self.snapshots.kept.range(..=place);
        let Some((at, kept)) = nearest.next_back().filter(|_| self.has_recorded_kernels()) else {
            self.restore()?;
            if self.snapshots.is_wanted(0) && self.has_recorded_kernels() {
                // Copying memory on the device is faster than reading the file.
                self.keep(0)?;
            }
            return Ok(0);
        };
        self.put_back(&kept.memory)?;
        self.host.clone_from(&kept.host);
        let at = *at;
        self.restore_textures(at)?;
        self.wait()?;
        Ok(at)
    }

    fn keep(&mut self, place: usize) -> Result<(), Error> {
        self.snapshots.evict_every_other();
        if !self.snapshots.is_wanted(place) {
            return Ok(());
        }
        let memory = self.copy_memory()?;
        let host = self.host.clone();
        self.snapshots.kept.insert(place, StoredSnapshot { memory, host });
        self.wait()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_taken_on_a_raster() {
        let snapshots = Snapshots {
            every: 4,
            most: 2,
            made: None,
            kept: BTreeMap::new(),
        };
        assert_eq!([0, 3, 4, 9].map(|place| snapshots.next(place)), [4, 4, 8, 12]);
        assert!(snapshots.is_wanted(8) && !snapshots.is_wanted(9));
        assert_eq!(Snapshots::default().next(7), usize::MAX);
    }
}
