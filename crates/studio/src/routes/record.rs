//! Recordings that pages start and stop.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;

use crate::options::Recorder;
use crate::payload::{Keep, Payload};
use crate::recorder::Wish;
use crate::reply::{Failure, Named, Sent};
use crate::studio::Studio;
use crate::work::Length;

#[derive(Serialize)]
struct Process {
    pid: u32,
    command: String,
}

/// The processes that can be recorded now.
pub(super) async fn processes(
    State(studio): State<Arc<Studio>>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let recorder = recorder_of(&studio)?;
    let answer = studio.work.run(Length::Quick, move |_| {
        let processes = (recorder.processes)().into_iter();
        let processes = processes.map(|process| Process {
            pid: process.pid,
            command: process.command,
        });
        Payload::json(&processes.collect::<Vec<_>>())
    });
    Ok(answer.await?.response(&headers, Keep::No))
}

/// Starts to record a process to a new file below the start folder.
pub(super) async fn start(
    State(studio): State<Arc<Studio>>,
    headers: HeaderMap,
    Sent(wish): Sent<Wish>,
) -> Result<Response, Failure> {
    let recorder = recorder_of(&studio)?;
    let known = Arc::clone(&studio);
    let answer = studio.work.run(Length::Quick, move |_| {
        let file = known.folder.new_file(&wish.path)?;
        let status = known.recordings.start(&recorder, &known.library, &wish, &file)?;
        Payload::json(&status)
    });
    Ok(answer.await?.response(&headers, Keep::No))
}

/// How all recordings are.
pub(super) async fn recordings(
    State(studio): State<Arc<Studio>>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let answer = Payload::json(&studio.recordings.all())?;
    Ok(answer.response(&headers, Keep::No))
}

/// Stops a recording. Its file is complete when its state is `done`.
pub(super) async fn stop(
    State(studio): State<Arc<Studio>>,
    Named(id): Named<usize>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    recorder_of(&studio)?;
    let known = Arc::clone(&studio);
    let answer = studio
        .work
        .run(Length::Quick, move |_| Payload::json(&known.recordings.stop(id)?));
    Ok(answer.await?.response(&headers, Keep::No))
}

fn recorder_of(studio: &Studio) -> Result<Recorder, Failure> {
    studio.writing_allowed("record programs")?;
    let recorder = studio.recorder.clone();
    recorder.ok_or_else(|| Failure::missing("this server cannot record programs"))
}
