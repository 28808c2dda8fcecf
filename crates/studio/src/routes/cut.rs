//! Writing a part of a trace to a file below the start folder.

use std::io::BufWriter;
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tracesmith_format::{Writer, WriterOptions};
use tracesmith_trace::{Selection, cut as cut_trace};

use super::Subject;
use super::analysis::range_of;
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
    studio.writing_allowed("write files")?;
    let subject = Subject::of(&studio, id).await?;
    let folder = studio.folder.clone();
    let answer = studio.work.run(Length::Long, move |_| {
        let trace = &subject.ready.trace;
        let range = range_of(trace, subject.origin(), from, to)?;
        let target = folder.new_file(&path)?;
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

fn cannot_write(path: &str, error: &dyn std::error::Error) -> Failure {
    Failure::unprocessable(format!("cannot write {path}: {}", sentence(error)))
}
