//! Lines of a session: requests of limited length, and answers with progress in between.

use std::io::{self, BufRead, Read as _, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tracesmith_replay::{ProgressFn, Replay, Watch};

/// Bytes of a request.
pub(super) const MOST_BYTES: u64 = 1 << 20;

/// Time between two lines of progress.
const INTERVAL: Duration = Duration::from_millis(250);

/// How often a thread looks whether progress is due.
const TICK: Duration = Duration::from_millis(25);

/// A line of input.
pub(super) enum Read {
    Line(Vec<u8>),
    /// It was skipped.
    TooLong,
    End,
}

/// Reads a line. The last one needs no newline.
pub(super) fn read(input: &mut impl BufRead) -> io::Result<Read> {
    let mut line = Vec::new();
    input.by_ref().take(MOST_BYTES).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(Read::End);
    }
    if line.last() == Some(&b'\n') || (line.len() as u64) < MOST_BYTES {
        return Ok(Read::Line(line));
    }
    loop {
        let buffer = input.fill_buf()?;
        let (length, end) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        input.consume(length);
        if end {
            return Ok(Read::TooLong);
        }
    }
}

/// Standard output, which a thread shares to write progress.
pub(super) struct Lines {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// The request that is being handled, and when it last gave a sign of life.
    busy: Mutex<Option<(Value, Instant)>>,
    bytes: AtomicU64,
    is_over: AtomicBool,
}

impl Shared {
    fn write(value: &Value) -> io::Result<()> {
        let mut line = value.to_string();
        line.push('\n');
        let mut out = io::stdout().lock();
        out.write_all(line.as_bytes())?;
        out.flush()
    }
}

impl Lines {
    /// For a session whose requests take no time.
    pub(super) fn alone() -> Self {
        Self {
            shared: Arc::default(),
        }
    }

    /// Writes the progress of a replay while a request is being handled.
    pub(super) fn of_replay(replay: &Replay<'_>) -> Self {
        let lines = Self::alone();
        let (shared, watch) = (Arc::clone(&lines.shared), replay.watch());
        let calls = replay.recording().commands.len();
        thread::spawn(move || {
            while !shared.is_over.load(Ordering::Relaxed) {
                thread::sleep(TICK);
                if report(&shared, &watch, calls).is_err() {
                    // Nobody reads the lines, so the next answer fails, too.
                    return;
                }
            }
        });
        lines
    }

    /// Counts restored and compared memory as progress.
    pub(super) fn count_bytes(&self) -> ProgressFn {
        let shared = Arc::clone(&self.shared);
        Box::new(move |bytes| {
            shared.bytes.fetch_add(bytes, Ordering::Relaxed);
        })
    }

    /// A request is being handled.
    pub(super) fn begin(&self, id: Value) {
        self.shared.bytes.store(0, Ordering::Relaxed);
        *self.busy() = Some((id, Instant::now()));
    }

    /// It is done.
    pub(super) fn end(&self) {
        *self.busy() = None;
    }

    /// Writes a line.
    pub(super) fn write(&self, value: &Value) -> io::Result<()> {
        Shared::write(value)
    }

    fn busy(&self) -> std::sync::MutexGuard<'_, Option<(Value, Instant)>> {
        self.shared.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}

/// The lock is held while the line is written, so that no progress follows the answer.
fn report(shared: &Shared, watch: &Watch, calls: usize) -> io::Result<()> {
    let mut busy = shared.busy.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((id, last)) = busy.as_mut().filter(|(_, last)| last.elapsed() >= INTERVAL) else {
        return Ok(());
    };
    *last = Instant::now();
    let pulse = watch.pulse();
    let progress = json!({
        "call": pulse.call, "calls": calls, "steps": pulse.beats, "bytes": shared.bytes.load(Ordering::Relaxed),
    });
    Shared::write(&json!({ "id": id, "progress": progress }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Vec<Option<usize>> {
        let mut input = io::BufReader::with_capacity(64, bytes);
        let mut found = Vec::new();
        loop {
            match read(&mut input).unwrap() {
                Read::End => return found,
                Read::Line(line) => found.push(Some(line.len())),
                Read::TooLong => found.push(None),
            }
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_is_read() {
        let long = MOST_BYTES as usize;
        let mut bytes = b"one\n".to_vec();
        bytes.extend(std::iter::repeat_n(b'x', long + 100));
        bytes.extend_from_slice(b"\ntwo");
        assert_eq!(all(&bytes), [Some(4), None, Some(3)]);
        let mut exact = vec![b'x'; long - 1];
        exact.push(b'\n');
        exact.extend_from_slice(b"\n");
        assert_eq!(all(&exact), [Some(long), Some(1)]);
        assert_eq!(all(&vec![b'x'; long]), [None]);
        assert!(all(b"").is_empty());
    }
}
