//! All that is known of one slice: its columns, who launched it and from which code, what it waited for, and how long
//! others like it took.

mod gap;
mod host;
mod op;
mod row;
mod runs;
mod stacks;

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracesmith_trace::grid::{SliceRef, Track, TrackKind};
use tracesmith_trace::tables::Cancel;

use self::runs::Runs;
use self::stacks::{Forward, StackOf};
use super::Subject;
use super::tiles::rows_of;
use crate::payload::{Keep, Payload};
use crate::places::{Place, Places, slices_at};
use crate::reply::{Asked, Failure, Named};
use crate::studio::Studio;
use crate::work::Length;

#[derive(Debug, Deserialize)]
pub(super) struct Chosen {
    row: u32,
    start: u64,
    shape: Option<u32>,
}

/// The answer.
#[derive(Debug, Default, Serialize)]
struct Event {
    row: u32,
    start: u64,
    duration: u64,
    shape: u32,
    name: String,
    short_name: String,
    kind: &'static str,
    /// The table that it is a row of.
    table: Option<&'static str>,
    /// Why a device did nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
    fields: Vec<(String, Value)>,
    /// The call that launched it.
    launch: Option<Launch>,
    /// What a call launched; the op that ended a gap.
    ops: Vec<Place>,
    stack: StackOf,
    #[serde(skip_serializing_if = "Option::is_none")]
    launch_stack: Option<StackOf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forward: Option<Forward>,
    waited_for: Vec<Tie>,
    waited_by: Vec<Tie>,
    runs: Option<Runs>,
}

/// The call that launched something.
#[derive(Debug, Serialize)]
struct Launch {
    #[serde(flatten)]
    place: Place,
    /// The label of the thread.
    thread: String,
}

/// Something that waits, or that is waited for.
#[derive(Debug, Serialize)]
struct Tie {
    #[serde(flatten)]
    place: Place,
    why: &'static str,
}

/// A slice that was found, and what it is in.
struct Picked<'a> {
    subject: &'a Subject,
    places: Places<'a>,
    track: &'a Track,
    slice: SliceRef,
    name: &'a str,
}

pub(super) async fn event(
    State(studio): State<Arc<Studio>>,
    Named(id): Named<usize>,
    Asked(chosen): Asked<Chosen>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let subject = Subject::of(&studio, id).await?;
    let answer = studio.work.run(Length::Quick, move |cancel| {
        Payload::json(&event_of(&subject, &chosen, cancel)?)
    });
    Ok(answer.await?.response(&headers, Keep::No))
}

fn event_of(subject: &Subject, chosen: &Chosen, cancel: &Cancel) -> Result<Event, Failure> {
    let grid = subject.ready.grid();
    rows_of(&chosen.row.to_string(), grid)?;
    let missing = || Failure::missing("no event starts there");
    let slice = slices_at(grid, chosen.row, chosen.start)
        .into_iter()
        .find(|slice| chosen.shape.is_none_or(|shape| slice.shape == shape))
        .ok_or_else(missing)?;
    let track = grid.track_of(chosen.row).ok_or_else(missing)?;
    let shape = &grid.shapes()[slice.shape as usize];
    let whole = subject.ready.facts.whole(&subject.ready.trace)?;
    let picked = Picked {
        subject,
        places: Places {
            trace: &subject.ready.trace,
            grid,
            activity: &whole.analysis.activity,
        },
        track,
        slice,
        name: &shape.name,
    };
    let mut event = Event {
        row: slice.row,
        start: slice.start,
        duration: slice.duration,
        shape: slice.shape,
        name: shape.name.clone(),
        short_name: shape.short_name.clone(),
        kind: shape.kind.map_or("idle", |kind| kind.name()),
        runs: runs::of(&picked, cancel)?,
        ..Event::default()
    };
    match track.kind {
        TrackKind::Idle => gap::describe(&picked, &whole, &mut event),
        TrackKind::Stream => op::describe(&picked, &whole, &mut event)?,
        TrackKind::Calls => host::describe_call(&picked, &whole, &mut event)?,
        _ => {
            if let Some(found) = row::find(&picked) {
                row::describe(&picked, &found, &mut event)?;
            }
        }
    }
    Ok(event)
}

impl Picked<'_> {
    /// When the slice starts, on the trace's timeline.
    fn start(&self) -> u64 {
        self.places.grid.origin() + self.slice.start
    }

    /// When it ends.
    fn end(&self) -> u64 {
        self.start() + self.slice.duration
    }

    /// A call, as the launch of something.
    fn launch(&self, call: tracesmith_trace::reconstruct::CallId) -> Option<Launch> {
        let place = call.is_some().then(|| self.places.of_call(call)).flatten()?;
        let track = self.places.grid.track_of(place.row);
        Some(Launch {
            thread: track.map(|track| track.label.clone()).unwrap_or_default(),
            place,
        })
    }
}
