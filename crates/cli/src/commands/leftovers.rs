//! Removes unfinished files when a signal ends the program.
//!
//! Most files have no name until they are complete (see `out_file`). This does not work for folders, and for writers
//! that open files by name. A thread waits for the signals that end the program, removes unfinished output, and then
//! lets the signal take effect.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::Context;
use nix::sys::signal::{SigSet, Signal, raise};

/// Signals that end a program.
const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Attempts to remove a folder. The writer can add a file meanwhile.
const TRIES: usize = 100;

/// The path that is being written.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Starts to handle signals. Call it before other threads exist, because they inherit the signal mask.
pub(crate) fn watch() -> anyhow::Result<()> {
    let ignored = ignored_signals();
    let caught: SigSet = ENDING
        .into_iter()
        .filter(|signal| ignored >> (*signal as u32 - 1) & 1 == 0)
        .collect();
    caught.thread_block().context("blocking signals")?;
    thread::spawn(move || {
        if let Ok(signal) = caught.wait() {
            // Keep the lock until the process ends, so that the writer does not report missing files.
            let unfinished = unfinished();
            if let Some(path) = unfinished.as_deref() {
                remove(path);
            }
            let _ = caught.thread_unblock();
            let _ = raise(signal);
        }
    });
    Ok(())
}

/// Runs `fill` with `path`, and then `place`. Removes the path if `fill` fails or a signal arrives.
pub(crate) fn write<R>(
    path: &Path,
    fill: impl FnOnce(&Path) -> anyhow::Result<R>,
    place: impl FnOnce(&Path) -> io::Result<()>,
) -> anyhow::Result<R> {
    *unfinished() = Some(path.to_owned());
    let filled = fill(path);
    let mut unfinished = unfinished();
    let result = filled.and_then(|result| {
        place(path)?;
        Ok(result)
    });
    if result.is_err() {
        remove(path);
    }
    *unfinished = None;
    result
}

fn unfinished() -> MutexGuard<'static, Option<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes a file or folder. Errors are ignored, because the original error matters more.
fn remove(path: &Path) {
    for _ in 0..TRIES {
        let _ = fs::remove_file(path);
        let _ = fs::remove_dir_all(path);
        if !path.exists() {
            return;
        }
    }
}

/// A bit mask of ignored signals, for example under nohup. They do not end the process.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
