//! Where files are looked for.

use std::path::{Path, PathBuf};

use object::{Object, ReadCache};

use crate::opening::open_plain;

/// Where distributions put debug information that was split off.
const SYSTEM_FOLDER: &str = "/usr/lib/debug";

/// Folders with debug information, besides the files themselves.
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
    /// These folders first, then the system's.
    ///
    /// A folder may hold `.build-id/ab/cdef….debug` as debug packages do, the files by their names, with or without
    /// `.debug` behind, or the tree of another machine.
    pub fn with_folders(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let system = PathBuf::from(SYSTEM_FOLDER);
        Self {
            folders: folders.into_iter().chain([system]).collect(),
        }
    }

    /// Files that may be the one that was at `path` below `root`, or hold its debug information, best first.
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
        // A container's own files first, then those of the same name here, which the build id must prove.
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

    /// The file that several debug files share parts with.
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

/// Where a path of another root is seen from here.
pub(crate) fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// A file's build id in hexadecimal; empty without one, none when it is no such file.
pub(crate) fn build_id_of(path: &Path) -> Option<String> {
    // One that is not there, or no object file, is none.
    let cache = ReadCache::new(open_plain(path).ok()?);
    let file = object::File::parse(&cache).ok()?;
    Some(hexadecimal(file.build_id().ok()?.unwrap_or_default()))
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
