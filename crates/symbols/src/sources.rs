//! Where files are searched.

use std::os::unix::{ffi::OsStrExt, fs::MetadataExt};
use std::path::{Path, PathBuf};

use object::{Object, ReadCache};

use crate::opening::open_plain;

/// Where distributions install separate debug files.
const SYSTEM_FOLDER: &str = "/usr/lib/debug";

/// Folders with debug files, in addition to the files themselves.
#[derive(Clone, Debug)]
pub struct Sources {
    folders: Vec<PathBuf>,
}

impl Default for Sources {
    fn default() -> Self {
        Self::with_folders([])
    }
}

impl Sources {
    /// Searches these folders first, then the system's.
    ///
    /// A folder can contain `.build-id/ab/cdef….debug` as in debug packages, files by name (with or without
    /// `.debug`), or the file tree of another machine.
    pub fn with_folders(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let system = PathBuf::from(SYSTEM_FOLDER);
        Self {
            folders: folders.into_iter().chain([system]).collect(),
        }
    }

    /// Files that can be the one at `path` below `root`, or contain its debug information, best first.
    pub(crate) fn candidates(&self, root: &Path, path: &Path, build_id: &str) -> Vec<PathBuf> {
        let mut candidates = Vec::new();
        let is_elsewhere = root != Path::new("/");
        let theirs = is_elsewhere.then(|| below(root, Path::new(SYSTEM_FOLDER)));
        for folder in theirs.iter().chain(&self.folders) {
            if let Some((first, rest)) = build_id.split_at_checked(2).filter(|(_, rest)| !rest.is_empty()) {
                candidates.push(folder.join(format!(".build-id/{first}/{rest}.debug")));
            }
            let inside = path.strip_prefix("/").unwrap_or(path);
            for named in [inside, Path::new(path.file_name().unwrap_or_default())] {
                if named.as_os_str().is_empty() {
                    continue;
                }
                let mut split = named.as_os_str().to_owned();
                split.push(".debug");
                candidates.push(folder.join(split));
                candidates.push(folder.join(named));
            }
        }
        // First the container's own files. Then files with the same name here, if the build ID matches.
        let own = is_elsewhere.then(|| below(root, path));
        for path in own.as_deref().into_iter().chain([path]) {
            if let (Some(parent), Some(name)) = (path.parent(), path.file_name()) {
                let mut split = name.to_owned();
                split.push(".debug");
                candidates.push(parent.join(".debug").join(&split));
                candidates.push(parent.join(&split));
            }
            candidates.push(path.to_owned());
        }
        candidates
    }

    /// What decides how a file is read: those of its [`candidates`](Self::candidates) that exist, with their sizes and
    /// times. Below another root their names count from there, because a container has another root each time.
    pub(crate) fn key(&self, root: &Path, path: &Path, build_id: &str) -> Vec<u8> {
        let mut key = Vec::new();
        for candidate in self.candidates(root, path, build_id) {
            // A missing file is no candidate.
            let Ok(metadata) = candidate.metadata() else {
                continue;
            };
            let place = match candidate.strip_prefix(root) {
                Ok(inside) if root != Path::new("/") => Path::new("+").join(inside),
                _ => candidate,
            };
            key.extend_from_slice(place.as_os_str().as_bytes());
            key.push(0);
            for number in [
                metadata.size(),
                metadata.mtime() as u64,
                metadata.mtime_nsec() as u64,
            ] {
                key.extend_from_slice(&number.to_le_bytes());
            }
        }
        key
    }

    /// The supplementary file that several debug files share.
    pub(crate) fn supplement(&self, debug_file: &Path, link: &Path, build_id: &str) -> Option<PathBuf> {
        let beside = debug_file.parent()?.join(link);
        let mut candidates = vec![link.to_owned(), beside];
        if let Some((first, rest)) = build_id.split_at_checked(2) {
            let name = format!(".build-id/{first}/{rest}.debug");
            candidates.extend(self.folders.iter().map(|folder| folder.join(&name)));
        }
        candidates
            .into_iter()
            .find(|path| build_id_of(path).is_some_and(|found| found == build_id))
    }
}

/// The path below another root, as seen from here.
pub(crate) fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// The build ID of a file in hexadecimal. Empty if it has none. `None` if it is not an object file.
pub(crate) fn build_id_of(path: &Path) -> Option<String> {
    // A missing file, or one that is not an object file, has none.
    let cache = ReadCache::new(open_plain(path).ok()?);
    let file = object::File::parse(&cache).ok()?;
    Some(hexadecimal(file.build_id().ok()?.unwrap_or_default()))
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
