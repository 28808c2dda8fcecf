//! Notes that people write about a trace: a small JSON file next to it, `train.sbt.notes.json`.
//!
//! The file may come from somebody else, as a trace may. What it says is text and numbers, which pages show as such. A file
//! that cannot be read is reported, and never written over.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use axum::http::StatusCode;
use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::identity::Identity;
use crate::reply::{Failure, MOST_BODY_BYTES};

/// What follows the name of the trace in that of its notes.
pub(crate) const NAME_END: &str = ".notes.json";

const FORMAT: &str = "tracesmith-notes";
const VERSION: u32 = 1;

/// Notes of a trace.
const MOST_NOTES: usize = 10_000;
/// Characters of a note.
const MOST_LETTERS: usize = 10_000;
/// Characters of a name.
const MOST_NAME_LETTERS: usize = 5_000;

/// A note: about a time, and about an event or a row where there are some.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Note {
    /// From the begin of the trace on.
    from_ns: u64,
    /// The same for a note about a moment.
    to_ns: u64,
    /// The track, as addresses of pages name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    track: Option<String>,
    /// The row of the track.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lane: Option<u32>,
    /// The name of the event, for readers of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    event: Option<String>,
    text: String,
}

/// The trace that notes were written about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct About {
    /// The name of the file.
    pub(crate) trace: String,
    /// Its first moment. Another one is another recording.
    pub(crate) origin_ns: String,
}

/// All that a file has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Document {
    format: String,
    version: u32,
    #[serde(flatten)]
    pub(crate) about: About,
    pub(crate) notes: Vec<Note>,
}

/// A file as it was read, and what tells it from what is there later.
#[derive(Clone, Debug)]
pub(crate) struct Saved {
    pub(crate) document: Document,
    pub(crate) stamp: String,
}

impl Document {
    /// Fails if that is more than a file may have.
    pub(crate) fn new(about: About, notes: Vec<Note>) -> Result<Self, Failure> {
        let document = Document {
            format: FORMAT.to_owned(),
            version: VERSION,
            about,
            notes,
        };
        document.check().map_err(Failure::bad)?;
        Ok(document)
    }

    fn check(&self) -> Result<(), String> {
        if self.format != FORMAT {
            return Err("it is not a file with notes".to_owned());
        }
        if self.version != VERSION {
            return Err("it was written by another version of TraceSmith".to_owned());
        }
        if self.notes.len() > MOST_NOTES {
            return Err(format!("there are more than {MOST_NOTES} notes"));
        }
        let is_long = |text: &str, most: usize| text.chars().nth(most).is_some();
        for note in &self.notes {
            let names = [&note.track, &note.event];
            if names
                .into_iter()
                .flatten()
                .any(|name| is_long(name, MOST_NAME_LETTERS))
                || is_long(&note.text, MOST_LETTERS)
            {
                return Err(format!("a note is longer than {MOST_LETTERS} characters"));
            }
            if note.to_ns < note.from_ns {
                return Err("a note ends before it begins".to_owned());
            }
        }
        Ok(())
    }
}

/// The place of the notes of a trace.
pub(crate) fn place(trace: &Path) -> PathBuf {
    let mut path = trace.as_os_str().to_owned();
    path.push(NAME_END);
    PathBuf::from(path)
}

/// The notes at a place; `None` without a file.
pub(crate) fn read(path: &Path) -> Result<Option<Saved>, Failure> {
    let unreadable = |problem: &str| {
        let text = format!("cannot read the notes in {}: {problem}", path.display());
        Failure::new(StatusCode::UNPROCESSABLE_ENTITY, text)
    };
    // A link could lead to a file of somebody else, and a pipe would never end.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let file = match file {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            return Err(unreadable("it is a symbolic link"));
        }
        Err(error) => return Err(unreadable(&error.to_string())),
    };
    let facts = file.metadata().map_err(|error| unreadable(&error.to_string()))?;
    if !facts.is_file() {
        return Err(unreadable("it is not a regular file"));
    }
    let bytes = bytes_of(&file).map_err(|error| unreadable(&error.to_string()))?;
    let bytes = bytes.ok_or_else(|| unreadable("it is longer than 1 MB"))?;
    // The message of the parser could quote the file, which may be anything.
    let document: Document = serde_json::from_slice(&bytes)
        .map_err(|error| unreadable(&format!("line {} is not as it should be", error.line())))?;
    document.check().map_err(|problem| unreadable(&problem))?;
    Ok(Some(Saved {
        document,
        stamp: Identity::of_facts(&facts).text(),
    }))
}

/// The content; `None` if it is too long.
fn bytes_of(file: &File) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    file.take(MOST_BODY_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() <= MOST_BODY_BYTES).then_some(bytes))
}

/// Writes notes next to a trace: the whole file or nothing. `base` is the stamp of the file that the writer knows.
pub(crate) fn write(trace: &Path, document: &Document, base: Option<&str>) -> Result<Saved, Failure> {
    let target = place(trace);
    let known = read(&target)?.map(|saved| saved.stamp);
    if known.as_deref() != base {
        return Err(Failure::new(
            StatusCode::PRECONDITION_FAILED,
            format!(
                "the notes in {} changed since this page read them",
                target.display()
            ),
        )
        .with_hint("download your notes, then reload the page"));
    }
    let cannot = |error: &io::Error| {
        let text = format!("cannot write {}: {error}", target.display());
        Failure::new(StatusCode::UNPROCESSABLE_ENTITY, text).with_hint("download the notes instead")
    };
    let text = serde_json::to_vec_pretty(document).map_err(|_| Failure::bug())?;
    if text.len() > MOST_BODY_BYTES {
        return Err(Failure::bad("the notes are longer than 1 MB"));
    }
    let folder = target.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|error| cannot(&error))?;
    file.write_all(&text)
        .and_then(|()| file.write_all(b"\n"))
        // Those who can read the trace can read its notes.
        .and_then(|()| file.as_file().set_permissions(permissions(trace)?))
        .and_then(|()| file.as_file().sync_all())
        .map_err(|error| cannot(&error))?;
    match base {
        Some(_) => file.persist(&target),
        None => file.persist_noclobber(&target),
    }
    .map_err(|error| cannot(&error.error))?;
    read(&target)?.ok_or_else(Failure::bug)
}

/// Those of the trace, without the right to run it.
fn permissions(trace: &Path) -> io::Result<Permissions> {
    let mode = fs::metadata(trace)?.permissions().mode();
    Ok(Permissions::from_mode((mode & 0o666) | 0o600))
}
