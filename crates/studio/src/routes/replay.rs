//! The replay of a trace: starting and ending it, requests to it, and where its calls are on the timeline.

use std::ops::ControlFlow;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tracesmith_format::tables::Command;
use tracesmith_format::{CorrelationId, ProcessId, Table};
use tracesmith_trace::grid::{Grid, SliceRef, TrackKind};
use tracesmith_trace::{EventKind, Query};

use super::Subject;
use crate::options::Control;
use crate::payload::{Keep, Payload};
use crate::places::{Place, place, slices_at, stream_of};
use crate::replay::{LineBody, Mode, Replayer, Session, Status};
use crate::reply::{Asked, Failure, Named, Sent};
use crate::studio::Studio;
use crate::work::Length;

/// Ops of one correlation in an answer: the nodes of a graph have the same.
const MOST_PLACES: usize = 4096;

#[derive(Serialize)]
struct Replay {
    /// Whether the trace contains a recording.
    is_recording: bool,
    /// Whether this server can start a program that replays.
    can_look: bool,
    /// Whether pages may run recorded calls.
    can_run: bool,
    /// `none`, `starting`, `ready` or `ended`.
    state: &'static str,
    /// `run` or `look`.
    mode: Option<&'static str>,
    /// The first line of the child.
    ready: Option<Value>,
    /// Why the child ended.
    error: Option<String>,
}

pub(super) async fn replay(
    State(studio): State<Arc<Studio>>,
    Named(id): Named<usize>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let subject = Subject::of(&studio, id).await?;
    let session = studio
        .replays
        .get(id)
        .filter(|session| session.stamp == subject.stamp());
    let (state, ready, error) = match session.as_ref().map(|session| session.status()) {
        None => ("none", None, None),
        Some(Status::Starting) => ("starting", None, None),
        Some(Status::Ready(ready)) => ("ready", Some(ready), None),
        Some(Status::Ended(why)) => ("ended", None, Some(why)),
    };
    let can_look = studio.replays.replayer().is_some();
    let blocks = subject.ready.trace.blocks();
    let answer = Payload::json(&Replay {
        is_recording: blocks.iter().any(|block| block.header.kind == Command::KIND),
        can_look,
        can_run: can_look && studio.control == Control::Allowed,
        state,
        mode: session.map(|session| session.mode.name()),
        ready,
        error,
    })?;
    Ok(answer.response(&headers, Keep::No))
}

#[derive(Deserialize)]
pub(super) struct Start {
    /// Whether recorded calls are run.
    run: bool,
}

/// Starts a replay, or finds one that runs. The last line is that with which the child is ready, or an error.
pub(super) async fn start(
    State(studio): State<Arc<Studio>>,
    Named(id): Named<usize>,
    Sent(Start { run }): Sent<Start>,
) -> Result<Response, Failure> {
    let mode = if run { Mode::Run } else { Mode::Look };
    if run {
        studio.may_write("run the device code of a recording")?;
    }
    let replayer = studio.replays.replayer().ok_or_else(no_replayer)?;
    let subject = Subject::of(&studio, id).await?;
    let is_wanted = |session: &Session| session.mode == mode && session.stamp == subject.stamp();
    let session = studio
        .replays
        .get_or_start(id, is_wanted, || begin(replayer, &subject, mode))?;
    let (page, body) = LineBody::new();
    tokio::spawn(session.wait_until_ready(page));
    Ok(body.response())
}

fn begin(replayer: &Replayer, subject: &Subject, mode: Mode) -> Result<Arc<Session>, Failure> {
    let session = Session::start(replayer, &subject.opened.path, mode, &subject.stamp());
    session.map_err(|error| {
        let text = format!("cannot start {}: {error}", replayer.program.display());
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, text)
    })
}

/// Sends a request to the child. The last line is the answer.
pub(super) async fn ask(
    State(studio): State<Arc<Studio>>,
    Named(id): Named<usize>,
    Sent(mut request): Sent<Map<String, Value>>,
) -> Result<Response, Failure> {
    let subject = Subject::of(&studio, id).await;
    let Some(session) = studio.replays.get(id) else {
        return Err(Failure::new(
            StatusCode::CONFLICT,
            "no replay of this trace was started",
        ));
    };
    match &subject {
        Ok(subject) if subject.stamp() == session.stamp => {}
        Ok(subject) => {
            session.end("the file has changed");
            return Err(subject.opened.changed());
        }
        Err(failure) => {
            session.end("the file has changed");
            return Err(failure.clone());
        }
    }
    match request.get("do").and_then(Value::as_str) {
        Some("quit") => return Err(Failure::bad("a replay is ended with a request to stop it")),
        Some("replace") => {
            let file = request
                .get("file")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            let folder = studio.folder.clone();
            let find = move |_: &_| folder.resolve(&file);
            let file = studio.work.run(Length::Quick, find).await?;
            let file = file
                .to_str()
                .ok_or_else(|| Failure::bad("the file's name is not UTF-8"))?;
            request.insert("file".to_owned(), file.into());
        }
        _ => {}
    }
    let (page, body) = LineBody::new();
    tokio::spawn(session.ask(request, page));
    Ok(body.response())
}

/// Ends the child.
pub(super) async fn stop(
    State(studio): State<Arc<Studio>>,
    Named(id): Named<usize>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    if let Some(session) = studio.replays.get(id) {
        session.end("the replay was stopped");
    }
    Ok(Payload::json(&Value::Object(Map::new()))?.response(&headers, Keep::No))
}

fn no_replayer() -> Failure {
    Failure::new(
        StatusCode::NOT_IMPLEMENTED,
        "this server has no program that replays",
    )
}

#[derive(Deserialize)]
pub(super) struct Launched {
    correlation: u64,
    process: u32,
}

/// The GPU operations of a call on the timeline, by time. A call of a recording has the same correlation.
pub(super) async fn places(
    State(studio): State<Arc<Studio>>,
    Named(id): Named<usize>,
    Asked(launched): Asked<Launched>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let subject = Subject::of(&studio, id).await?;
    let answer = studio.work.run(Length::Quick, move |_| {
        Payload::json(&places_of(&subject, &launched))
    });
    Ok(answer.await?.response(&headers, Keep::No))
}

#[derive(Serialize)]
struct Op {
    kind: &'static str,
    #[serde(flatten)]
    place: Place,
}

fn places_of(subject: &Subject, launched: &Launched) -> Vec<Op> {
    let (trace, grid) = (&subject.ready.trace, subject.ready.grid());
    let query = Query {
        kinds: Some(vec![EventKind::Kernel, EventKind::Copy, EventKind::Set]),
        ..Query::default()
    };
    let mut ops = Vec::new();
    trace.for_each_event(&query, |found| {
        let event = &found.event;
        let is_meant = event.correlation == CorrelationId(launched.correlation)
            && event.process == ProcessId(launched.process);
        if is_meant && let Some(slice) = slice_of(grid, event, trace.event_name(event)) {
            ops.push(Op {
                kind: event.kind.name(),
                place: place(grid, slice),
            });
        }
        match ops.len() < MOST_PLACES {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    });
    ops.sort_by_key(|op| op.place.start);
    ops
}

/// The slice of an op of a stream.
fn slice_of(grid: &Grid, event: &tracesmith_trace::Event, name: &str) -> Option<SliceRef> {
    let start = event.start.0.checked_sub(grid.origin())?;
    let duration = event.end.0.saturating_sub(event.start.0);
    let tracks = grid.tracks().iter().filter(|track| {
        let stream = stream_of(track).map(|(device, process, _, stream)| (device, process, Some(stream)));
        track.kind == TrackKind::Stream && stream == Some((event.device, event.process, event.stream))
    });
    let mut rows = tracks.flat_map(|track| track.first_row..track.first_row + track.rows);
    rows.find_map(|row| {
        let together = slices_at(grid, row, start).into_iter();
        let mut same = together.filter(|slice| slice.duration == duration);
        same.find(|slice| grid.shapes()[slice.shape as usize].name == name)
    })
}
