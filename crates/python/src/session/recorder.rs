//! The recorder of one process: takes rows of all threads, and writes them on a thread of its own.
//!
//! Threads hand over batches. A batch that does not fit into the session's memory is dropped and counted, or waited for.
//! Several times a second the writer also takes what threads have not handed over, and flushes the file: a process that is
//! killed loses at most the last fraction of a second.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tracesmith_format::{StringId, ThreadId};

use super::buffer::ThreadBuffer;
use super::clock;
use super::file::{Losses, SessionFile};
use super::names::Names;
use super::row::Row;

/// Rows that a thread collects before it hands them over.
const BATCH_ROWS: usize = 4096;

/// The time between two flushes.
const FLUSH_PERIOD: Duration = Duration::from_millis(200);

/// Every recorder of a process has another key.
static NEXT_KEY: AtomicU64 = AtomicU64::new(1);

/// What happens to events when the memory is full.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WhenFull {
    /// They are dropped and counted: the program goes on.
    Drop,
    /// The calling thread waits: nothing is lost.
    Wait,
}

/// Limits of a recorder.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Memory for events that are not written yet, and for texts.
    pub(super) bytes: usize,
    pub(super) when_full: WhenFull,
}

/// Numbers of a session.
pub(super) struct Statistics {
    pub(super) emitted: u64,
    pub(super) dropped: u64,
    pub(super) counters_off: u64,
    pub(super) started: u64,
    pub(super) stopped: Option<u64>,
}

/// Records the events of one process.
pub(super) struct Recorder {
    key: u64,
    path: PathBuf,
    limits: Limits,
    batch_rows: usize,
    pub(super) names: Names,
    threads: Mutex<Vec<Arc<ThreadBuffer>>>,
    queue: Mutex<Queue>,
    /// The writer has something to do.
    wake: Condvar,
    /// The writer has done something.
    done: Condvar,
    worker: Mutex<Option<JoinHandle<()>>>,
    started: u64,
    /// Threads that have ended, summed up.
    ended: Mutex<Totals>,
}

#[derive(Default)]
struct Queue {
    batches: VecDeque<Batch>,
    metadata: Vec<(String, String)>,
    bytes: usize,
    is_stopping: bool,
    /// Counts of requested and completed flushes.
    flushes: (u64, u64),
    /// Rows that were lost after they had been handed over.
    dropped: u64,
    error: Option<String>,
    stopped: Option<u64>,
}

struct Batch {
    thread: ThreadId,
    thread_name: String,
    rows: Vec<Row>,
    bytes: usize,
}

#[derive(Clone, Copy, Default)]
struct Totals {
    emitted: u64,
    dropped: u64,
    counters_off: u64,
}

impl Recorder {
    /// Starts a recorder that writes to `file`.
    pub(super) fn start(
        path: &Path,
        file: File,
        limits: Limits,
    ) -> Result<Arc<Self>, tracesmith_format::Error> {
        let file = SessionFile::begin(file)?;
        let recorder = Arc::new(Recorder {
            key: NEXT_KEY.fetch_add(1, Ordering::Relaxed),
            path: path.to_owned(),
            limits,
            batch_rows: (limits.bytes / 8 / size_of::<Row>()).clamp(1, BATCH_ROWS),
            names: Names::default(),
            threads: Mutex::default(),
            queue: Mutex::default(),
            wake: Condvar::new(),
            done: Condvar::new(),
            worker: Mutex::default(),
            started: clock::now(),
            ended: Mutex::default(),
        });
        let worker = Arc::clone(&recorder);
        let thread = std::thread::Builder::new().name("tracesmith".to_owned());
        let handle = thread
            .spawn(move || worker.work(file))
            .map_err(|source| tracesmith_format::Error::Write { written: 0, source })?;
        *lock(&recorder.worker) = Some(handle);
        Ok(recorder)
    }

    /// The file that is written.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The calling thread's buffer.
    #[inline]
    pub(super) fn buffer(&self) -> Arc<ThreadBuffer> {
        ThreadBuffer::of_this_thread(self.key, |buffer| {
            let mut threads = lock(&self.threads);
            // The last round over all threads may have been already.
            buffer.lock().is_closed = lock(&self.queue).is_stopping;
            threads.push(Arc::clone(buffer));
        })
    }

    /// The number of a text. `None` if the memory is full.
    pub(super) fn name(&self, buffer: &ThreadBuffer, text: &str) -> Option<StringId> {
        if let Some(id) = buffer.lock().known_name(text) {
            return Some(id);
        }
        let id = self.names.intern(text, self.limits.bytes)?;
        buffer.lock().remember_name(text, id);
        Some(id)
    }

    /// Takes an event, and hands over the thread's batch when it is full. Returns whether the event was taken, and whether
    /// the caller must [`Recorder::wait`] for room.
    #[inline]
    pub(super) fn push(&self, buffer: &ThreadBuffer, row: Row) -> (bool, bool) {
        let mut contents = buffer.lock();
        contents.emitted += 1;
        if contents.is_closed {
            contents.dropped += 1;
            return (false, false);
        }
        contents.bytes += row.bytes();
        contents.rows.push(row);
        if contents.rows.len() < self.batch_rows {
            return (true, false);
        }
        let rows = std::mem::replace(&mut contents.rows, Vec::with_capacity(self.batch_rows));
        let bytes = std::mem::take(&mut contents.bytes);
        drop(contents);
        self.hand_over(buffer, rows, bytes)
    }

    /// Counts an event that could not be taken.
    pub(super) fn drop_event(&self, buffer: &ThreadBuffer) {
        let mut contents = buffer.lock();
        contents.emitted += 1;
        contents.dropped += 1;
    }

    fn hand_over(&self, buffer: &ThreadBuffer, rows: Vec<Row>, bytes: usize) -> (bool, bool) {
        let mut queue = lock(&self.queue);
        let is_full = queue.bytes > 0 && queue.bytes + bytes > self.limits.bytes;
        if queue.stopped.is_some() || (is_full && self.limits.when_full == WhenFull::Drop) {
            queue.dropped += rows.len() as u64;
            return (false, false);
        }
        queue.bytes += bytes;
        queue.batches.push_back(Batch {
            thread: buffer.thread,
            thread_name: buffer.name.clone(),
            rows,
            bytes,
        });
        self.wake.notify_one();
        (true, is_full)
    }

    /// Waits until there is room for events.
    pub(super) fn wait(&self) {
        let mut queue = lock(&self.queue);
        while queue.bytes > self.limits.bytes && queue.stopped.is_none() {
            queue = self.done.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// States a fact about the recording. Returns whether it was taken.
    pub(super) fn metadata(&self, key: String, value: String) -> bool {
        let mut queue = lock(&self.queue);
        if queue.stopped.is_some() {
            return false;
        }
        queue.metadata.push((key, value));
        self.wake.notify_one();
        true
    }

    /// Writes everything so far into the file.
    pub(super) fn flush(&self) -> Result<(), String> {
        let mut queue = lock(&self.queue);
        queue.flushes.0 += 1;
        let wanted = queue.flushes.0;
        self.wake.notify_one();
        while queue.flushes.1 < wanted && queue.stopped.is_none() {
            queue = self.done.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.error.clone().map_or(Ok(()), Err)
    }

    /// Writes everything and completes the file. The first error of the whole recording is returned.
    pub(super) fn stop(&self) -> Result<(), String> {
        let mut worker = lock(&self.worker);
        if let Some(handle) = worker.take() {
            lock(&self.queue).is_stopping = true;
            self.wake.notify_one();
            if handle.join().is_err() {
                let mut queue = lock(&self.queue);
                queue.stopped = Some(clock::now());
                queue.error = Some("the writer failed; this is a bug: the message is above".to_owned());
            }
        }
        lock(&self.queue).error.clone().map_or(Ok(()), Err)
    }

    pub(super) fn is_stopped(&self) -> bool {
        lock(&self.queue).stopped.is_some()
    }

    pub(super) fn statistics(&self) -> Statistics {
        let totals = self.totals();
        let queue = lock(&self.queue);
        Statistics {
            emitted: totals.emitted,
            dropped: totals.dropped + queue.dropped,
            counters_off: totals.counters_off,
            started: self.started,
            stopped: queue.stopped,
        }
    }

    fn totals(&self) -> Totals {
        let threads = lock(&self.threads);
        let mut totals = *lock(&self.ended);
        for buffer in threads.iter() {
            totals.add(&buffer.lock());
        }
        totals
    }

    fn work(&self, mut file: SessionFile) {
        let mut flushed = Instant::now();
        loop {
            let mut queue = lock(&self.queue);
            let is_due = |queue: &Queue| {
                queue.is_stopping || queue.flushes.0 > queue.flushes.1 || flushed.elapsed() >= FLUSH_PERIOD
            };
            while queue.batches.is_empty() && queue.metadata.is_empty() && !is_due(&queue) {
                let rest = FLUSH_PERIOD.saturating_sub(flushed.elapsed());
                let waited = self.wake.wait_timeout(queue, rest);
                queue = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            let is_due = is_due(&queue);
            let (is_stopping, flushes) = (queue.is_stopping, queue.flushes.0);
            let batches = std::mem::take(&mut queue.batches);
            let metadata = std::mem::take(&mut queue.metadata);
            drop(queue);
            for (key, value) in metadata {
                self.note(file.metadata(&key, &value));
            }
            for batch in batches {
                self.write(&mut file, batch);
            }
            if is_due {
                self.collect(&mut file, is_stopping);
                self.note(file.flush());
                flushed = Instant::now();
                lock(&self.queue).flushes.1 = flushes;
                self.done.notify_all();
            }
            if is_stopping {
                break self.finish(file);
            }
        }
    }

    fn finish(&self, mut file: SessionFile) {
        // Threads hand nothing over after this.
        let late = {
            let mut queue = lock(&self.queue);
            queue.stopped = Some(clock::now());
            std::mem::take(&mut queue.batches)
        };
        for batch in late {
            self.write(&mut file, batch);
        }
        let statistics = self.statistics();
        let losses = Losses {
            full: statistics.dropped,
            counters_off: statistics.counters_off,
        };
        self.note(file.finish(losses));
        self.done.notify_all();
    }

    /// Takes what threads have not handed over, and forgets threads that have ended.
    fn collect(&self, file: &mut SessionFile, is_stopping: bool) {
        let buffers = lock(&self.threads).clone();
        for buffer in &buffers {
            let mut contents = buffer.lock();
            if is_stopping {
                contents.close(buffer.thread);
            }
            if contents.rows.is_empty() {
                continue;
            }
            let (rows, bytes) = (
                std::mem::take(&mut contents.rows),
                std::mem::take(&mut contents.bytes),
            );
            drop(contents);
            lock(&self.queue).bytes += bytes;
            self.write(
                file,
                Batch {
                    thread: buffer.thread,
                    thread_name: buffer.name.clone(),
                    rows,
                    bytes,
                },
            );
        }
        drop(buffers);
        let mut threads = lock(&self.threads);
        let mut ended = lock(&self.ended);
        threads.retain(|buffer| {
            let is_held = Arc::strong_count(buffer) > 1 || !buffer.lock().rows.is_empty();
            if !is_held {
                ended.add(&buffer.lock());
            }
            is_held
        });
    }

    fn write(&self, file: &mut SessionFile, batch: Batch) {
        let count = batch.rows.len() as u64;
        let has_failed = lock(&self.queue).error.is_some();
        let result = if has_failed {
            None
        } else {
            let written = file
                .thread(batch.thread, &batch.thread_name)
                .and_then(|()| file.write(batch.rows, &self.names));
            Some(written)
        };
        let mut queue = lock(&self.queue);
        queue.bytes = queue.bytes.saturating_sub(batch.bytes);
        match result {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                queue.dropped += count;
                queue.error = Some(crate::error::sentence(&error));
            }
            None => queue.dropped += count,
        }
        self.done.notify_all();
    }

    fn note(&self, result: Result<(), tracesmith_format::Error>) {
        if let Err(error) = result {
            lock(&self.queue)
                .error
                .get_or_insert(crate::error::sentence(&error));
        }
    }
}

impl Totals {
    fn add(&mut self, contents: &super::buffer::Contents) {
        self.emitted += contents.emitted;
        self.dropped += contents.dropped;
        self.counters_off += contents.counters_off;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
