//! Rings of single threads.
//!
//! A thread that marks a range connects to the collector once per window and
//! then pushes without asking anyone. Its ring is also known to the process, so
//! that closing the window closes all of them: the lock around it is taken by
//! its thread and, once in a window's life, by the thread that closes the window.
//! The ring of a thread that has ended serves the next new thread, so that only
//! threads that live at the same time count towards the memory limit. Records
//! state their thread, so one ring can hold those of several.

use std::{
    cell::RefCell,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tracesmith_wire::{
    Capacity, Producer, Tag,
    control::Settings,
    handshake::{self, Purpose},
    record::Payload,
};

use crate::{
    guard::lock,
    sink::{Cause, Sink},
};

/// How long the collector may take. A thread of the program waits, so it is
/// short, and a collector that was too slow once is not asked again.
const GRANT_LIMIT: Duration = Duration::from_millis(200);

/// Numbers windows across forks, so that a ring of an older one is known.
static WINDOWS: AtomicU64 = AtomicU64::new(1);

type Ring = Arc<Mutex<Option<Producer>>>;

thread_local! {
    static OWN: RefCell<(u64, Option<Ring>)> = const { RefCell::new((0, None)) };
    static THREAD_ID: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// The rings of all threads of an open window.
#[derive(Default)]
pub(crate) struct ThreadRings {
    /// 0 when no window is open.
    window: AtomicU64,
    /// Marks of threads that got no ring.
    lost: AtomicU64,
    shared: Mutex<Shared>,
}

#[derive(Default)]
struct Shared {
    collector: PathBuf,
    capacity: Option<Capacity>,
    /// How many more rings the memory limit allows.
    left: u64,
    rings: Vec<Ring>,
}

impl Shared {
    /// The ring of a thread that has ended: nobody but this list holds it. The
    /// lock around it orders the pushes of the two threads.
    fn unused(&self) -> Option<Ring> {
        let is_unused = |ring: &&Ring| Arc::strong_count(ring) == 1;
        self.rings.iter().find(is_unused).map(Arc::clone)
    }
}

impl ThreadRings {
    /// Rings may be had from now on.
    pub(crate) fn open(&self, settings: &Settings) {
        let mut shared = lock(&self.shared);
        let rings = settings.activity_ring.bytes() + crate::cuda::BUFFER_POOL_BYTES;
        let left = settings.memory_bytes.saturating_sub(rings) / settings.thread_ring.bytes();
        *shared = Shared {
            collector: settings.collector.clone(),
            capacity: Some(settings.thread_ring),
            left,
            rings: Vec::new(),
        };
        let window = WINDOWS.fetch_add(1, Ordering::Relaxed);
        self.window.store(window, Ordering::Release);
    }

    /// Closes the rings of all threads, and says what was lost for want of one.
    pub(crate) fn close(&self, sink: &Sink) {
        self.window.store(0, Ordering::Release);
        let mut shared = lock(&self.shared);
        for ring in shared.rings.drain(..) {
            *lock(&ring) = None;
        }
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let words = format!("{lost} marks are missing: too many threads make some");
            sink.note(Cause::RingFull, &words);
        }
    }

    /// Pushes a record with text behind it into this thread's ring.
    pub(crate) fn push<T: Payload>(&self, record: &T, text: &[u8]) {
        if !self.with_ring(|producer| push(producer, record, text)) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Pushes a record into this thread's ring; false when it has none: there are
    /// too many, or it is being torn down.
    #[inline]
    pub(crate) fn push_plain<T: Payload>(&self, record: &T) -> bool {
        self.with_ring(|producer| {
            // A full ring counts what it drops.
            let _ = producer.push(Tag::from(T::KIND), record.as_bytes());
        })
    }

    /// False when the thread has no ring.
    #[inline]
    fn with_ring(&self, body: impl FnOnce(&mut Producer)) -> bool {
        let window = self.window.load(Ordering::Acquire);
        if window == 0 {
            return true;
        }
        let reached = OWN.try_with(|own| {
            let Ok(mut own) = own.try_borrow_mut() else {
                return true;
            };
            if own.0 != window {
                let old = std::mem::replace(&mut *own, (window, None));
                if crate::agent::current().is_some_and(|agent| std::ptr::eq(&raw const agent.threads, self)) {
                    // In a fork's child its lock may be held for ever: a ring
                    // of another process is left alone.
                    drop(old);
                } else {
                    std::mem::forget(old);
                }
                own.1 = self.connect();
            }
            let Some(ring) = &own.1 else {
                return false;
            };
            // None once the window is closed.
            if let Some(producer) = lock(ring).as_mut() {
                body(producer);
            }
            true
        });
        // A thread that is being torn down cannot be reached.
        reached.unwrap_or(false)
    }

    fn connect(&self) -> Option<Ring> {
        let mut shared = lock(&self.shared);
        if let Some(ring) = shared.unused() {
            return Some(ring);
        }
        let capacity = shared.capacity?;
        if shared.left == 0 {
            return None;
        }
        shared.left -= 1;
        let Ok(producer) = handshake::connect(&shared.collector, Purpose::Thread, capacity, GRANT_LIMIT)
        else {
            shared.left = 0;
            return None;
        };
        let ring = Arc::new(Mutex::new(Some(producer)));
        shared.rings.push(Arc::clone(&ring));
        Some(ring)
    }
}

/// Longest text that goes with a record of a thread; the rest is cut.
pub(crate) const TEXT_MAX: usize = 1024;

fn push<T: Payload>(producer: &mut Producer, record: &T, text: &[u8]) {
    let mut bytes = [0; 64 + TEXT_MAX];
    let fixed = record.as_bytes();
    let end = fixed.len() + text.len();
    let Some(payload) = bytes.get_mut(..end) else {
        return;
    };
    let (head, tail) = payload.split_at_mut(fixed.len());
    head.copy_from_slice(fixed);
    tail.copy_from_slice(text);
    // A full ring counts what it drops.
    let _ = producer.push(Tag::from(T::KIND), payload);
}

/// In the child of a fork, on its only thread: that has a number of its own.
pub(crate) fn forked() {
    // A thread that is being torn down does not fork.
    let _ = THREAD_ID.try_with(|known| known.set(0));
}

/// The operating system's ID of this thread, read once.
#[inline]
pub(crate) fn thread_id() -> u32 {
    THREAD_ID
        .try_with(|known| match known.get() {
            0 => {
                let id = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
                known.set(id);
                id
            }
            id => id,
        })
        .unwrap_or(0)
}
