//! What is open, and what could be opened.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use crate::options::Control;
use crate::payload::{Keep, Payload};
use crate::reply::{Asked, Failure, Sent};
use crate::studio::Studio;
use crate::work::Length;

#[derive(Serialize)]
struct Session {
    version: &'static str,
    control: bool,
    /// Whether pages can record programs.
    records: bool,
    folder: String,
    traces: Vec<OpenTrace>,
}

#[derive(Serialize)]
struct OpenTrace {
    id: usize,
    path: String,
    name: String,
    state: &'static str,
}

/// What is open. A page asks when it is loaded, so files that have changed are read again.
pub(super) async fn session(
    State(studio): State<Arc<Studio>>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let known = Arc::clone(&studio);
    let answer = studio.work.run(Length::Quick, move |_| {
        known.library.refresh();
        let traces = known.library.all().into_iter();
        Payload::json(&Session {
            version: env!("CARGO_PKG_VERSION"),
            control: known.control == Control::Allowed,
            records: known.control == Control::Allowed && known.recorder.is_some(),
            folder: known.folder.path().display().to_string(),
            traces: traces
                .map(|opened| OpenTrace {
                    id: opened.id,
                    path: opened.path.display().to_string(),
                    name: opened.name(),
                    state: opened.change().state,
                })
                .collect(),
        })
    });
    Ok(answer.await?.response(&headers, Keep::No))
}

#[derive(Deserialize)]
pub(super) struct Place {
    #[serde(default)]
    path: String,
}

/// What a folder has.
pub(super) async fn files(
    State(studio): State<Arc<Studio>>,
    Asked(Place { path }): Asked<Place>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let folder = studio.folder.clone();
    let answer = studio
        .work
        .run(Length::Quick, move |_| Payload::json(&folder.list(&path)?));
    Ok(answer.await?.response(&headers, Keep::No))
}

#[derive(Serialize)]
struct Number {
    id: usize,
}

/// Opens a file below the start folder, or one that is open already.
pub(super) async fn open(
    State(studio): State<Arc<Studio>>,
    headers: HeaderMap,
    Sent(Place { path }): Sent<Place>,
) -> Result<Response, Failure> {
    let known = Arc::clone(&studio);
    let answer = studio.work.run(Length::Quick, move |_| {
        let opened = known.library.all();
        let named = opened.iter().find(|opened| opened.path.to_str() == Some(&path));
        let file = match named {
            Some(opened) => opened.path.clone(),
            None => known.folder.resolve(&path)?,
        };
        if named.is_none() && !file.is_file() {
            return Err(Failure::bad(format!("{path} is not a file")));
        }
        Payload::json(&Number {
            id: known.library.open(file),
        })
    });
    Ok(answer.await?.response(&headers, Keep::No))
}
