//! What is computed for one time range of a trace: each part when it is first needed, and once.
//!
//! A trace keeps the parts of the last few time ranges, so that several analyses of the same range share them. Nothing
//! here refers to the trace: the trace owns the parts, and a reference back would keep both alive forever.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::copies::CopiesReport;
use super::critical_path::CriticalPathReport;
use super::host_activity::HostTime;
use super::host_places::HostPlaces;
use super::idle::IdleReport;
use super::kernels::{KernelKey, KernelsReport};
use super::launches::LaunchesReport;
use super::memory::MemoryReport;
use super::slack::SlackReport;
use super::summary::Swept;
use crate::error::Error;
use crate::reconstruct::{Activity, Dependencies, ExecutionGraph, States, Steps, Window};
use crate::selection::Selection;

/// Time ranges whose parts a trace keeps. The parts of a long trace take more memory than its file.
const KEPT: usize = 4;

/// A value that is computed when it is first needed.
///
/// Two threads that need it at the same time may both compute it; the first result is kept. Waiting for the other thread
/// instead could deadlock, because computations run on the threads of rayon's pool and may start others there.
#[derive(Debug)]
pub(crate) struct Once<T>(OnceLock<Arc<T>>);

impl<T> Default for Once<T> {
    fn default() -> Self {
        Once(OnceLock::new())
    }
}

impl<T> Once<T> {
    pub(crate) fn get_or(&self, compute: impl FnOnce() -> T) -> Arc<T> {
        match self.0.get() {
            Some(known) => Arc::clone(known),
            None => self.keep(compute()),
        }
    }

    pub(crate) fn get_or_try(&self, compute: impl FnOnce() -> Result<T, Error>) -> Result<Arc<T>, Error> {
        match self.0.get() {
            Some(known) => Ok(Arc::clone(known)),
            None => Ok(self.keep(compute()?)),
        }
    }

    fn keep(&self, value: T) -> Arc<T> {
        let value = Arc::new(value);
        Arc::clone(self.0.get_or_init(|| value))
    }
}

/// What is computed for one time range.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) activity: Arc<Activity>,
    pub(super) steps: Once<Steps>,
    pub(super) dependencies: Once<Dependencies>,
    pub(super) execution_graph: Once<ExecutionGraph>,
    pub(super) states: Once<States>,
    pub(super) swept: Once<Swept>,
    pub(super) idle: Once<IdleReport>,
    pub(super) host_places: Once<HostPlaces>,
    pub(super) host_in_gaps: Once<HostTime>,
    pub(super) host_on_path: Once<HostTime>,
    pub(super) kernels: [Once<KernelsReport>; KernelKey::ALL.len()],
    pub(super) copies: Once<CopiesReport>,
    pub(super) launches: Once<LaunchesReport>,
    pub(super) memory: Once<MemoryReport>,
    pub(super) critical_path: Once<CriticalPathReport>,
    pub(super) slack: Once<SlackReport>,
}

impl Parts {
    pub(super) fn of(activity: Activity) -> Self {
        Parts {
            activity: Arc::new(activity),
            steps: Once::default(),
            dependencies: Once::default(),
            execution_graph: Once::default(),
            states: Once::default(),
            swept: Once::default(),
            idle: Once::default(),
            host_places: Once::default(),
            host_in_gaps: Once::default(),
            host_on_path: Once::default(),
            kernels: Default::default(),
            copies: Once::default(),
            launches: Once::default(),
            memory: Once::default(),
            critical_path: Once::default(),
            slack: Once::default(),
        }
    }
}

/// What parts are of: a time range or a step with its number, and what is selected of it.
pub(super) type Key = (Window, Option<usize>, Selection);

/// The parts of the time ranges that were analyzed last.
#[derive(Debug, Default)]
pub(crate) struct KnownParts(Mutex<Vec<KeptParts>>);

#[derive(Debug)]
struct KeptParts {
    key: Key,
    parts: Arc<Parts>,
    used: Instant,
}

impl KnownParts {
    /// The parts of a time range, kept or made now.
    pub(super) fn get_or_try(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<Parts, Error>,
    ) -> Result<Arc<Parts>, Error> {
        if let Some(known) = self.find(&key) {
            return Ok(known);
        }
        // Without the lock: this takes long.
        let made = Arc::new(make()?);
        let mut list = self.lock();
        if let Some(known) = list.iter().find(|known| known.key == key) {
            return Ok(Arc::clone(&known.parts));
        }
        if list.len() == KEPT {
            list.remove(0);
        }
        list.push(KeptParts {
            key,
            parts: Arc::clone(&made),
            used: Instant::now(),
        });
        Ok(made)
    }

    /// The parts with this key. They become the ones that were used last.
    fn find(&self, key: &Key) -> Option<Arc<Parts>> {
        let mut list = self.lock();
        let at = list.iter().position(|known| known.key == *key)?;
        let mut entry = list.remove(at);
        entry.used = Instant::now();
        let parts = Arc::clone(&entry.parts);
        list.push(entry);
        Some(parts)
    }

    /// Forgets what nobody has asked for since so long.
    pub(crate) fn forget(&self, unused: Duration) {
        self.lock().retain(|known| known.used.elapsed() < unused);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<KeptParts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
