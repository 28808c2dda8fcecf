//! The traces that are open: each has a number, and is read in the background.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::events::{Change, Hub};
use crate::opened::{Opened, State};
use crate::reply::Failure;
use crate::tabs::Tabs;

/// The traces that are open.
#[derive(Debug)]
pub(crate) struct Library {
    slots: Mutex<Vec<Slot>>,
    /// Held while a file is opened: numbers are given one by one.
    opening: Mutex<()>,
    /// Held while notes are written: no page writes over what another one has just saved.
    saving: Mutex<()>,
    hub: Hub,
    tabs: Arc<Tabs>,
}

/// A file, and what was read of it last.
#[derive(Debug)]
struct Slot {
    path: PathBuf,
    current: Arc<Opened>,
}

impl Library {
    pub(crate) fn new(hub: Hub, tabs: Arc<Tabs>) -> Self {
        Library {
            slots: Mutex::new(Vec::new()),
            opening: Mutex::new(()),
            saving: Mutex::new(()),
            hub,
            tabs,
        }
    }

    /// Opens a file that the user named. What is no file, such as a pipe, is read as it is.
    pub(crate) fn open_named(&self, path: &Path) -> io::Result<usize> {
        let path = match path.canonicalize() {
            Ok(real) => real,
            // A pipe of a shell has a path in /dev/fd that leads to no other.
            Err(_) if path.metadata().is_ok() => path.to_owned(),
            Err(error) => return Err(error),
        };
        Ok(self.open(path))
    }

    /// Opens a file, or the one that is open already, again if it has changed. Gives its number.
    pub(crate) fn open(&self, path: PathBuf) -> usize {
        let _one_by_one = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.lock().iter().position(|slot| slot.path == path);
        if let Some(id) = known {
            self.renew(id);
            return id;
        }
        let id = self.lock().len();
        let current = self.begin(id, path.clone());
        self.lock().push(Slot { path, current });
        id
    }

    /// Reads files again that have changed since they were read.
    pub(crate) fn refresh(&self) {
        let _one_by_one = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let count = self.lock().len();
        (0..count).for_each(|id| self.renew(id));
    }

    /// Reads a file again if it has changed. The file system, which may be far away, is not asked under the lock that all
    /// requests need.
    fn renew(&self, id: usize) {
        let Ok(current) = self.get(id) else { return };
        if current.has_changed() {
            current.end();
            let again = self.begin(id, current.path.clone());
            self.lock()[id].current = again;
        }
    }

    fn begin(&self, id: usize, path: PathBuf) -> Arc<Opened> {
        Opened::begin(id, path, self.hub.clone(), Arc::clone(&self.tabs))
    }

    /// The file with this number, as it was read last.
    pub(crate) fn get(&self, id: usize) -> Result<Arc<Opened>, Failure> {
        let found = self.lock().get(id).map(|slot| Arc::clone(&slot.current));
        found.ok_or_else(|| Failure::missing(format!("no trace with number {id} is open")))
    }

    /// All of them, in order.
    pub(crate) fn all(&self) -> Vec<Arc<Opened>> {
        self.lock().iter().map(|slot| Arc::clone(&slot.current)).collect()
    }

    /// Forgets what takes much memory and nobody has asked about for a while.
    pub(crate) fn forget_unused(&self) {
        for opened in self.all() {
            if let State::Ready(ready) = opened.state() {
                ready.facts.forget_unused(&ready.trace);
            }
        }
    }

    /// Held by those who write notes.
    pub(crate) fn saving(&self) -> MutexGuard<'_, ()> {
        self.saving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How all of them are.
    pub(crate) fn changes(&self) -> Vec<Change> {
        self.all().iter().map(|opened| opened.change()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
