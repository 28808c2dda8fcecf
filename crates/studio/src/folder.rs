//! The folder that the server was started in. Pages see what is in it, and nothing beside it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::Serialize;

use crate::reply::Failure;

/// Ends of names that files with traces have. What a file holds decides when it is opened.
const TRACE_ENDS: &[&str] = &[
    ".sbt",
    ".json",
    ".json.gz",
    ".json.zst",
    ".pftrace",
    ".perfetto-trace",
    ".pb",
    ".sqlite",
    ".db",
    ".csv",
    ".xml",
    ".folded",
    ".perf",
    ".xray",
];

/// Entries of a folder that are listed.
const MOST_ENTRIES: usize = 10_000;

/// The folder below which files can be opened.
#[derive(Clone, Debug)]
pub(crate) struct StartFolder {
    /// Without symbolic links.
    root: PathBuf,
}

/// What a folder holds.
#[derive(Debug, Serialize)]
pub(crate) struct Listing {
    path: String,
    parent: Option<String>,
    entries: Vec<Entry>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Entry {
    kind: EntryKind,
    name: String,
    bytes: u64,
    /// Seconds since 1970.
    modified: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EntryKind {
    Folder,
    Trace,
    File,
}

impl StartFolder {
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        let root = path.canonicalize()?;
        fs::read_dir(&root)?;
        Ok(StartFolder { root })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.root
    }

    /// A file or folder within, by its path. Links are followed first, so that none leads out. What is outside looks the
    /// same as what does not exist.
    pub(crate) fn resolve(&self, path: &str) -> Result<PathBuf, Failure> {
        let missing = || {
            Failure::missing(format!("there is no {path} below {}", self.root.display()))
                .with_hint("name files elsewhere when you start 'tracesmith studio'")
        };
        let real = self.root.join(path).canonicalize().map_err(|_| missing())?;
        match real.starts_with(&self.root) {
            true => Ok(real),
            false => Err(missing()),
        }
    }

    /// The place of a file that does not exist yet.
    pub(crate) fn new_file(&self, path: &str) -> Result<PathBuf, Failure> {
        let wanted = Path::new(path);
        let name = wanted.file_name().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| Failure::bad(format!("{path} is not the name of a file")))?;
        let parent = wanted.parent().and_then(Path::to_str).unwrap_or_default();
        let target = self.resolve(parent)?.join(name);
        match target.symlink_metadata() {
            Ok(_) => Err(Failure::conflict(format!("{path} exists")).with_hint("choose another name")),
            Err(_) => Ok(target),
        }
    }

    /// What a folder within holds: folders first, without hidden ones.
    pub(crate) fn list(&self, path: &str) -> Result<Listing, Failure> {
        let folder = self.resolve(path)?;
        let cannot = |error: io::Error| Failure::missing(format!("cannot read the folder {path}: {error}"));
        let entries = fs::read_dir(&folder).map_err(cannot)?.flatten();
        let mut entries: Vec<Entry> = entries
            .take(MOST_ENTRIES)
            .filter_map(|entry| self.entry(&entry))
            .collect();
        entries.sort_unstable();
        let inside = folder.strip_prefix(&self.root).unwrap_or(Path::new(""));
        Ok(Listing {
            path: inside.display().to_string(),
            parent: inside.parent().map(|parent| parent.display().to_string()),
            entries,
        })
    }

    fn entry(&self, entry: &fs::DirEntry) -> Option<Entry> {
        let name = entry.file_name().into_string().ok()?;
        let real = entry.path().canonicalize().ok()?;
        if name.starts_with('.') || !real.starts_with(&self.root) {
            return None;
        }
        let facts = fs::metadata(&real).ok()?;
        let is_trace = TRACE_ENDS.iter().any(|end| name.ends_with(end));
        let kind = match (facts.is_dir(), facts.is_file()) {
            (true, _) => EntryKind::Folder,
            (_, true) if is_trace => EntryKind::Trace,
            (_, true) => EntryKind::File,
            _ => return None,
        };
        let modified = facts.modified().ok()?.duration_since(UNIX_EPOCH).ok();
        Some(Entry {
            kind,
            name,
            bytes: facts.len(),
            modified: modified.map_or(0, |time| time.as_secs()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_outside_is_found_or_listed() {
        let outside = tempfile::tempdir().unwrap();
        let inside = outside.path().join("start");
        fs::create_dir_all(inside.join("sub")).unwrap();
        fs::write(outside.path().join("secret.sbt"), "x").unwrap();
        fs::write(inside.join("sub/a.sbt"), "x").unwrap();
        fs::write(inside.join(".hidden.sbt"), "x").unwrap();
        symlink("../secret.sbt", inside.join("link.sbt")).unwrap();
        symlink("..", inside.join("up")).unwrap();
        symlink("sub/a.sbt", inside.join("good.sbt")).unwrap();
        let folder = StartFolder::new(&inside).unwrap();
        for wrong in [
            "..",
            "../secret.sbt",
            "sub/../../secret.sbt",
            "link.sbt",
            "up/secret.sbt",
            "/etc/passwd",
            "/",
            "absent",
            "a\0b",
        ] {
            assert!(folder.resolve(wrong).is_err(), "{wrong}");
        }
        let real = folder.path().join("sub/a.sbt");
        assert_eq!(folder.resolve("good.sbt").unwrap(), real);
        assert_eq!(folder.resolve("sub/../sub/a.sbt").unwrap(), real);
        assert_eq!(folder.resolve(real.to_str().unwrap()).unwrap(), real);
        let listing = folder.list("").unwrap();
        let names: Vec<&str> = listing.entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["sub", "good.sbt"]);
        assert_eq!(listing.parent, None);
        let below = folder.list("sub").unwrap();
        assert_eq!((below.path.as_str(), below.parent.as_deref()), ("sub", Some("")));
        assert!(folder.list("..").is_err());
    }
}
