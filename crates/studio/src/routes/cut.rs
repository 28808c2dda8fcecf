//! Writing a part of a trace to a file below the start folder.

use std::io::BufWriter;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tracesmith_format::{Writer, WriterOptions};
use tracesmith_trace::{Selection, cut as cut_trace};

use super::Subject;
use super::analysis::range_of;
use crate::folder::StartFolder;
use crate::key::random_bytes;
use crate::payload::{Keep, Payload};
use crate::reply::{Failure, Named, Sent, sentence};
use crate::studio::Studio;
use crate::work::Length;

#[derive(Deserialize)]
pub(super) struct Question {
    from: Option<u64>,
    to: Option<u64>,
    path: String,
}

#[derive(Serialize)]
struct Written {
    path: String,
    bytes: u64,
}

pub(super) async fn cut(
    State(studio): State<Arc<Studio>>,
    Named(id): Named<usize>,
    headers: HeaderMap,
    Sent(Question { from, to, path }): Sent<Question>,
) -> Result<Response, Failure> {
    studio.may_write()?;
    let subject = Subject::of(&studio, id).await?;
    let folder = studio.folder.clone();
    let answer = studio.work.run(Length::Long, move |_| {
        let trace = &subject.ready.trace;
        let range = range_of(trace, subject.origin(), from, to)?;
        let target = new_file(&folder, &path)?;
        let parent = target.parent().unwrap_or(folder.path());
        let file = tempfile::NamedTempFile::new_in(parent).map_err(|error| cannot_write(&path, &error))?;
        let options = WriterOptions {
            id: random_bytes().map_err(|error| cannot_write(&path, &error))?,
            ..WriterOptions::default()
        };
        let refused = |error: tracesmith_format::Error| cannot_write(&path, &error);
        let mut writer = Writer::new(BufWriter::new(file.as_file()), options).map_err(refused)?;
        cut_trace(trace, range, &Selection::default(), &mut writer, &mut |_| {})?;
        writer.seal().map_err(refused)?;
        let bytes = file
            .as_file()
            .metadata()
            .map_err(|error| cannot_write(&path, &error))?
            .len();
        let placed = file.persist_noclobber(&target);
        placed.map_err(|error| cannot_write(&path, &error.error))?;
        Payload::json(&Written {
            path: target.display().to_string(),
            bytes,
        })
    });
    Ok(answer.await?.response(&headers, Keep::No))
}

/// The place of a file that does not exist yet, below the start folder.
fn new_file(folder: &StartFolder, path: &str) -> Result<PathBuf, Failure> {
    let wanted = FilePath::new(path);
    let name = wanted.file_name().filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| Failure::bad(format!("{path} is not the name of a file")))?;
    let parent = wanted.parent().and_then(FilePath::to_str).unwrap_or_default();
    let target = folder.resolve(parent)?.join(name);
    match target.symlink_metadata() {
        Ok(_) => {
            Err(Failure::new(StatusCode::CONFLICT, format!("{path} exists")).with_hint("choose another name"))
        }
        Err(_) => Ok(target),
    }
}

fn cannot_write(path: &str, error: &dyn std::error::Error) -> Failure {
    let text = format!("cannot write {path}: {}", sentence(error));
    Failure::new(StatusCode::UNPROCESSABLE_ENTITY, text)
}
