//! Unfinished output that has a name: removed when a signal ends the program.
//!
//! Most files have no name until they are whole (see `out_file`). Folders, and files of writers that open them by name,
//! cannot be made that way. A thread waits for the signals that end the program, removes what is unfinished, and lets the
//! signal take effect.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::Context;
use nix::sys::signal::{SigSet, Signal, raise};

/// Signals that end a program from outside.
const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// How often removal is tried: the writer may add a file meanwhile.
const TRIES: usize = 100;

/// What is being written.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Watches for signals from now on. Must be called before there are other threads: they take over what is blocked.
pub(crate) fn watch() -> anyhow::Result<()> {
    let ignored = ignored_signals();
    let caught: SigSet = ENDING
        .into_iter()
        .filter(|signal| ignored >> (*signal as u32 - 1) & 1 == 0)
        .collect();
    caught.thread_block().context("blocking signals")?;
    thread::spawn(move || {
        if let Ok(signal) = caught.wait() {
            // Held until the end: the writer must not report that its files are gone.
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

/// Has `fill` write to `path`, which is removed when it fails or a signal comes, and else gets its name from `place`.
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

/// Removes a file or folder. What made us give up is the error to report.
fn remove(path: &Path) {
    for _ in 0..TRIES {
        let _ = fs::remove_file(path);
        let _ = fs::remove_dir_all(path);
        if !path.exists() {
            return;
        }
    }
}

/// The signals that this process ignores, as under nohup: a bit for each. They do not end it.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
