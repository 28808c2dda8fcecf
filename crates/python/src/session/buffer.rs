//! What each thread of a session collects, before the session's writer takes it.
//!
//! A thread finds its buffer without a lock that other threads use. The buffer's own lock is contended only when the writer
//! empties it, a few times a second.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{Caller, Marker, MarkerKind, MarkerShape};
use tracesmith_format::{StringId, ThreadId, Timestamp};

use super::row::{PROCESS, Row};

/// Texts that a thread remembers the numbers of.
const CACHED_NAMES: usize = 4096;

thread_local! {
    /// The buffers of this thread, by the key of their recorder.
    static BUFFERS: RefCell<Vec<(u64, Arc<ThreadBuffer>)>> = const { RefCell::new(Vec::new()) };
}

/// The events of one thread.
pub(super) struct ThreadBuffer {
    pub(super) thread: ThreadId,
    pub(super) name: String,
    contents: Mutex<Contents>,
}

#[derive(Default)]
pub(super) struct Contents {
    pub(super) rows: Vec<Row>,
    pub(super) bytes: usize,
    open: Vec<Open>,
    next_range: u64,
    names: FxHashMap<Box<str>, StringId>,
    pub(super) emitted: u64,
    pub(super) dropped: u64,
    pub(super) counters_off: u64,
    pub(super) is_closed: bool,
}

/// A range that was entered and not left.
struct Open {
    range: u64,
    name: StringId,
    start: Timestamp,
}

impl ThreadBuffer {
    /// The calling thread's buffer of a recorder. `register` gets a new one.
    pub(super) fn of_this_thread(key: u64, register: impl FnOnce(&Arc<Self>)) -> Arc<Self> {
        let found = BUFFERS.try_with(|buffers| {
            let buffers = buffers.borrow();
            let found = buffers.iter().find(|(of, _)| *of == key);
            found.map(|(_, buffer)| Arc::clone(buffer))
        });
        if let Ok(Some(found)) = found {
            return found;
        }
        let buffer = Arc::new(ThreadBuffer {
            thread: ThreadId(u64::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap_or(0)),
            name: thread_name(),
            contents: Mutex::default(),
        });
        register(&buffer);
        // A thread that is ending has no place for it any more: each of its last events gets a buffer of its own.
        let _ = BUFFERS.try_with(|buffers| {
            let mut buffers = buffers.borrow_mut();
            // Only the recorder holds a buffer of a session that was stopped, if anybody does.
            buffers.retain(|(_, buffer)| Arc::strong_count(buffer) > 1);
            buffers.push((key, Arc::clone(&buffer)));
        });
        buffer
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contents {
    /// The number of a text that this thread used before.
    #[inline]
    pub(super) fn known_name(&self, text: &str) -> Option<StringId> {
        self.names.get(text).copied()
    }

    pub(super) fn remember_name(&mut self, text: &str, id: StringId) {
        if self.names.len() >= CACHED_NAMES {
            self.names.clear();
        }
        self.names.insert(text.into(), id);
    }

    /// Begins a range.
    pub(super) fn enter(&mut self, name: StringId, start: Timestamp) -> u64 {
        self.next_range += 1;
        let range = self.next_range;
        self.open.push(Open { range, name, start });
        range
    }

    /// The name and start of a range that ends. `None` if it was not begun here, or ended before.
    pub(super) fn leave(&mut self, range: u64) -> Option<(StringId, Timestamp)> {
        let at = self.open.iter().rposition(|open| open.range == range)?;
        let open = self.open.remove(at);
        Some((open.name, open.start))
    }

    /// Ends the recording of this thread: its open ranges become rows.
    pub(super) fn close(&mut self, thread: ThreadId) {
        self.is_closed = true;
        for open in std::mem::take(&mut self.open) {
            let shape = MarkerShape {
                name: open.name,
                kind: MarkerKind::OPEN_NESTED_RANGE,
                ..MarkerShape::default()
            };
            self.emitted += 1;
            self.rows.push(Row::Marker(Marker {
                start: open.start,
                end: open.start,
                caller: Caller {
                    process: PROCESS,
                    thread,
                },
                shape,
                ..Marker::default()
            }));
        }
    }
}

fn thread_name() -> String {
    let name = std::fs::read_to_string("/proc/thread-self/comm").unwrap_or_default();
    name.trim().to_owned()
}
