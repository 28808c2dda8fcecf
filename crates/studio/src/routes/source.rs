//! Lines of source files. Only files that a stack of the trace names are shown: a page cannot read any others.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::Subject;
use crate::folder::StartFolder;
use crate::payload::{Keep, Payload};
use crate::ready::Ready;
use crate::reply::{Asked, Failure, Named};
use crate::studio::Studio;
use crate::work::Length;

/// Larger files are no sources that people read.
const MOST_BYTES: u64 = 16 << 20;
/// Lines before and after the one that is asked for.
const AROUND: usize = 40;
/// Characters of a line.
const MOST_LETTERS: usize = 1_000;

#[derive(Deserialize)]
pub(super) struct Place {
    file: String,
    line: usize,
}

#[derive(Serialize)]
struct Lines<'a> {
    file: &'a str,
    /// The number of the first line.
    first: usize,
    lines: Vec<String>,
    line: usize,
}

pub(super) async fn source(
    State(studio): State<Arc<Studio>>,
    Named(id): Named<usize>,
    Asked(Place { file, line }): Asked<Place>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let subject = Subject::of(&studio, id).await?;
    let folder = studio.folder.clone();
    let answer = studio.work.run(Length::Quick, move |_| {
        let Ready { trace, facts, .. } = &subject.ready;
        if !facts.names_source(trace, &file) {
            return Err(Failure::missing(format!(
                "no stack of {} names this file",
                subject.opened.name()
            )));
        }
        let text = read(&folder, &file)?;
        let first = line.saturating_sub(AROUND).max(1);
        let lines = text.lines().skip(first - 1).take(2 * AROUND + 1);
        Payload::json(&Lines {
            file: &file,
            first,
            lines: lines
                .map(|line| line.chars().take(MOST_LETTERS).collect())
                .collect(),
            line,
        })
    });
    Ok(answer.await?.response(&headers, Keep::No))
}

/// The text of a source file. One that is not named by its whole path is looked for in the start folder, and nowhere else.
fn read(folder: &StartFolder, file: &str) -> Result<String, Failure> {
    let missing = || Failure::missing(format!("{file} cannot be read on this machine"));
    let path: PathBuf = match Path::new(file).is_absolute() {
        true => PathBuf::from(file),
        false => folder.resolve(file).map_err(|_| missing())?,
    };
    let facts = fs::metadata(&path).map_err(|_| missing())?;
    if !facts.is_file() || facts.len() > MOST_BYTES {
        return Err(missing());
    }
    let bytes = fs::read(&path).map_err(|_| missing())?;
    if bytes.contains(&0) {
        return Err(missing());
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
