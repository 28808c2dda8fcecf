//! Copies of the memory, kept on the device while calls are made, so that going back to one of them is a copy and not a
//! run from the beginning.
//!
//! They take no more than half of the memory that was free. When that is full every second one goes, and the next ones
//! are taken at twice the distance: what is left still covers all that was run.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashMap;
use tracesmith_cuda::driver::Snapshot;

use crate::error::Error;
use crate::run::{Fresh, Replay};

/// Snapshots by the place before whose call they were taken.
#[derive(Default)]
pub(crate) struct Snapshots {
    /// Calls from one to the next; 0: none are kept.
    every: usize,
    most: usize,
    /// How memory was filled in the runs that they are of.
    made: Option<(Fresh, u8)>,
    kept: BTreeMap<usize, StoredSnapshot>,
}

struct StoredSnapshot {
    memory: Snapshot,
    host: FxHashMap<u64, Vec<u8>>,
}

impl Snapshots {
    /// Where the next one is taken when calls go on behind a place.
    fn next(&self, place: usize) -> usize {
        match self.every {
            0 => usize::MAX,
            every => (place / every + 1) * every,
        }
    }

    fn is_wanted(&self, place: usize) -> bool {
        self.every > 0 && self.most > 0 && place.is_multiple_of(self.every) && !self.kept.contains_key(&place)
    }

    /// Makes room for one more.
    fn evict_every_other(&mut self) {
        while self.kept.len() >= self.most {
            self.every = self.every.saturating_mul(2);
            let every = self.every;
            let before = self.kept.len();
            self.kept.retain(|place, _| place.is_multiple_of(every));
            if self.kept.len() == before {
                // All of them lie on the wider raster already.
                self.kept.pop_last();
            }
        }
    }
}

impl Replay<'_> {
    /// Keeps a copy of the memory every so many calls from now on.
    ///
    /// # Errors
    ///
    /// What the driver says.
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

    /// How many copies of the memory there are.
    pub fn snapshot_count(&self) -> usize {
        self.snapshots.kept.len()
    }

    /// Brings the memory into the state that it has before the call at a place: from the nearest snapshot, or from the
    /// beginning.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn go_to(&mut self, place: usize) -> Result<(), Error> {
        let place = place.min(self.recording.commands.len());
        let at = self.go_back(place)?;
        self.go_on(at..place)
    }

    /// Makes the calls at these places, the first of which is the next one, and waits for them.
    ///
    /// # Errors
    ///
    /// What the driver says.
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

    /// Snapshots hold what the recorded kernels leave: with others they are neither used nor taken.
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
