//! The folder of the cache: one file for each build ID.
//!
//! Entries are written to a temporary file and renamed, so a reader sees a whole one or none, and the last writer wins.
//! Nothing here is an error: without a folder, without space or without permission there is no cache.

use std::{
    ffi::OsStr,
    fs::{self, DirBuilder, File},
    io::Write,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

use crate::opening::open_trusted;

/// The ending of entries; another layout has another one, and the files of this one age.
const ENDING: &str = "symbols";
const UNFINISHED: &str = "unfinished";

/// A temporary file that is older belongs to a process that has died.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The last use of an entry is noted so often.
const USE_PERIOD: Duration = Duration::from_secs(600);

/// A folder with a limit for the sum of its files.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    limit_bytes: u64,
}

impl Folder {
    pub(crate) fn new(path: PathBuf, limit_bytes: u64) -> Self {
        Self { path, limit_bytes }
    }

    /// The entry of a build ID. None if there is none, or if another user may have written it.
    pub(crate) fn open(&self, build_id: &str) -> Option<File> {
        let file = open_trusted(&self.path_of(build_id)?).ok()?; // most often there is none
        let used = file.metadata().and_then(|metadata| metadata.modified()).ok()?;
        if used.elapsed().is_ok_and(|age| age > USE_PERIOD) {
            // Another user's cache, or one that is read-only: then entries leave it in another order.
            let _ = file.set_modified(SystemTime::now());
        }
        Some(file)
    }

    /// Writes the entry of a build ID, if that is possible. Removes those that were not used for the longest time.
    pub(crate) fn write(&self, build_id: &str, entry: &[u8]) -> Option<()> {
        let path = self.path_of(build_id)?;
        if entry.len() as u64 > self.limit_bytes {
            return None;
        }
        self.create()?;
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.path.join(format!("{}-{number}.{UNFINISHED}", process::id()));
        let written = write_new(&unfinished, entry).and_then(|()| fs::rename(&unfinished, &path));
        if written.is_err() {
            // It is not there, or ages.
            let _ = fs::remove_file(&unfinished);
        }
        self.evict(&path);
        written.ok() // a cache that cannot be written to is none
    }

    /// Only this user may look into it: it shows which programs were recorded.
    fn create(&self) -> Option<()> {
        // Cannot be created: there is no cache.
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.path)
            .ok()?;
        let metadata = fs::metadata(&self.path).ok()?; // gone again
        let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
        // A folder that others can write to is not ours alone.
        (is_ours && metadata.is_dir() && metadata.mode() & 0o022 == 0).then_some(())
    }

    fn path_of(&self, build_id: &str) -> Option<PathBuf> {
        let is_hexadecimal = build_id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_build_id = is_hexadecimal && (4..=128).contains(&build_id.len());
        is_build_id.then(|| self.path.join(format!("{build_id}.{ENDING}")))
    }

    /// Removes the oldest files until the rest keeps the limit, never the newest one.
    fn evict(&self, newest: &Path) {
        let Ok(listed) = fs::read_dir(&self.path) else {
            return;
        };
        let mut entries = Vec::new();
        let mut sum = 0;
        for file in listed.flatten() {
            let path = file.path();
            let Ok(metadata) = file.metadata() else {
                continue;
            };
            let age = metadata.modified().ok().and_then(|used| used.elapsed().ok());
            match path.extension().and_then(OsStr::to_str) {
                Some(UNFINISHED) if age.is_some_and(|age| age > ABANDONED) => {
                    // Another process may have been faster.
                    let _ = fs::remove_file(path);
                }
                Some(ENDING) => {
                    sum += metadata.len();
                    entries.push((age.unwrap_or_default(), path, metadata.len()));
                }
                _ => {}
            }
        }
        entries.sort();
        while sum > self.limit_bytes
            && let Some((_, path, length)) = entries.pop()
        {
            if path == newest {
                continue;
            }
            sum -= length;
            // As above.
            let _ = fs::remove_file(path);
        }
    }
}

fn write_new(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut options = File::options();
    let mut file = options.write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)
}
