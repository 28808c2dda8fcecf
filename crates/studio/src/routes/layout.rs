//! What a page needs to draw a trace at all: its rows, their names, and how far it is read.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tracesmith_format::Problem;
use tracesmith_trace::Trace;
use tracesmith_trace::grid::{Grid, Group, GroupKey, Shape, Track, TrackKind};
use tracesmith_trace::overview::Direction;

use super::Subject;
use crate::opened::{Opened, State as Reading};
use crate::payload::{Keep, Payload};
use crate::predictions::{self, State as Predicting};
use crate::ready::{Idle, Live, LiveState, Ready};
use crate::reply::{Asked, Failure, Named};
use crate::studio::Studio;
use crate::work::Length;

#[derive(Serialize)]
struct Layout<'a> {
    generation: String,
    state: &'static str,
    progress: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    /// The trace that this is a prediction of.
    #[serde(skip_serializing_if = "Option::is_none")]
    predicted_of: Option<usize>,
    /// Too large for a number of a browser.
    origin_ns: String,
    span_ns: u64,
    /// From the first to the last work of a GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    work: Option<(u64, u64)>,
    name: String,
    path: String,
    bytes: u64,
    health: Health,
    metadata: BTreeMap<String, String>,
    idle: Idle,
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<LiveOf>,
    groups: Vec<GroupOf>,
    tracks: Vec<TrackOf<'a>>,
}

#[derive(Serialize)]
struct Health {
    good: bool,
    sentences: Vec<String>,
}

/// What is known of a file that its writer has not finished.
#[derive(Serialize)]
struct LiveOf {
    state: LiveState,
    changes: Vec<ChangeOf>,
}

/// A generation, and from when on it differs from the one before.
#[derive(Serialize)]
struct ChangeOf {
    generation: String,
    from_ns: u64,
}

#[derive(Serialize)]
struct GroupOf {
    id: String,
    kind: &'static str,
    label: String,
    /// The place of the process in a distributed job.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<u32>,
    tracks: Vec<usize>,
}

#[derive(Serialize)]
struct TrackOf<'a> {
    id: usize,
    key: &'a str,
    kind: &'static str,
    label: &'a str,
    group: String,
    first_row: u32,
    rows: u32,
    slices: u64,
    categories: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<f64>,
}

pub(super) async fn layout(
    State(studio): State<Arc<Studio>>,
    Named(id): Named<usize>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    if id >= predictions::FIRST {
        return predicted(&studio, id, &headers).await;
    }
    let opened = studio.library.get(id)?;
    let answer = studio.work.run(Length::Quick, move |_| {
        opened.unchanged()?;
        match opened.state() {
            Reading::Ready(ready) => Payload::json(&of_ready(&opened, &ready)),
            Reading::Reading => Payload::json(&empty(&opened, None)),
            Reading::Failed(failure) => Payload::json(&empty(&opened, Some(failure.error()))),
        }
    });
    Ok(answer.await?.response(&headers, Keep::No))
}

/// The layout of a predicted timeline.
async fn predicted(studio: &Studio, id: usize, headers: &HeaderMap) -> Result<Response, Failure> {
    let prediction = studio.predictions.get(id)?;
    let answer = studio.work.run(Length::Quick, move |_| {
        let base = &prediction.base;
        base.unchanged()?;
        let (state, change) = (prediction.state(), prediction.change());
        let layout = match &state {
            Predicting::Ready(done) => of_ready(base, &done.ready),
            Predicting::Working => empty(base, None),
            Predicting::Failed(failure) => empty(base, Some(failure.error())),
        };
        Payload::json(&Layout {
            generation: change.generation,
            state: change.state,
            progress: change.progress,
            predicted_of: Some(base.id),
            idle: Idle::None,
            ..layout
        })
    });
    Ok(answer.await?.response(headers, Keep::No))
}

/// The layout of a file that is not read, or cannot be.
fn empty<'a>(opened: &Opened, error: Option<&'a str>) -> Layout<'a> {
    let change = opened.change();
    Layout {
        generation: change.generation,
        state: change.state,
        progress: change.progress,
        error,
        predicted_of: None,
        origin_ns: "0".to_owned(),
        span_ns: 1,
        work: None,
        name: opened.name(),
        path: opened.path.display().to_string(),
        bytes: opened.bytes(),
        health: Health {
            good: true,
            sentences: Vec::new(),
        },
        metadata: BTreeMap::new(),
        idle: Idle::Pending,
        live: None,
        groups: Vec::new(),
        tracks: Vec::new(),
    }
}

fn of_ready<'a>(opened: &Opened, ready: &'a Ready) -> Layout<'a> {
    let (trace, grid) = (&ready.trace, ready.grid());
    let mut health = trace.health();
    if ready
        .live
        .as_ref()
        .is_some_and(|live| live.state == LiveState::Recording)
    {
        // More will follow: that is no damage.
        health
            .damage
            .retain(|damage| !matches!(damage.problem, Problem::Unfinished | Problem::Cut));
    }
    let tracks = grid.tracks();
    let mut ordered: Vec<&Group> = grid.groups().iter().collect();
    ordered.sort_by_key(|group| place_of(trace, group.key));
    let groups = ordered.into_iter().map(|group| GroupOf {
        id: group.key.to_string(),
        kind: group.key.kind(),
        label: label_of(group),
        rank: rank_of(trace, group.key),
        tracks: (0..tracks.len())
            .filter(|at| tracks[*at].group == group.key)
            .collect(),
    });
    let mut sentences = health.sentences();
    sentences.extend(doubts(&grid.doubtful()));
    Layout {
        generation: opened.text_of(ready.generation()),
        state: "ready",
        progress: 1.0,
        origin_ns: grid.origin().to_string(),
        span_ns: grid.span(),
        work: work_of(grid),
        health: Health {
            good: sentences.is_empty(),
            sentences,
        },
        metadata: trace.metadata.clone(),
        idle: ready.idle,
        live: ready.live.as_ref().map(|live| live_of(opened, live)),
        groups: groups.collect(),
        tracks: tracks
            .iter()
            .enumerate()
            .map(|(id, track)| track_of(id, track))
            .collect(),
        ..empty(opened, None)
    }
}

/// Where a group is shown: GPUs in the order of their numbers, then what has none, in the order of the grid.
fn place_of(trace: &Trace, group: GroupKey) -> (u8, u32) {
    match group {
        GroupKey::Device(device) => match trace.device(device) {
            Some(device) => (0, device.ordinal),
            None => (1, 0),
        },
        GroupKey::Process(_) => (2, 0),
        GroupKey::Counters => (3, 0),
    }
}

/// As the verdict and the findings write it.
fn label_of(group: &Group) -> String {
    match group.label.strip_prefix("gpu ") {
        Some(rest) => format!("GPU {rest}"),
        None => group.label.clone(),
    }
}

/// From the first to the last work on a stream. A recording can be much longer, as when it has counters.
fn work_of(grid: &Grid) -> Option<(u64, u64)> {
    let tracks = grid
        .tracks()
        .iter()
        .filter(|track| track.kind == TrackKind::Stream);
    let rows = tracks.flat_map(|track| track.first_row..track.first_row + track.rows);
    rows.filter_map(|row| {
        let first = *grid.slices(row, 0, u64::MAX, 1).starts.first()?;
        let last = grid.neighbor(row, u64::MAX, Direction::Back, None)?;
        Some((first, last.start + last.duration))
    })
    .reduce(|(from, to), (first, last)| (from.min(first), to.max(last)))
}

fn rank_of(trace: &Trace, group: GroupKey) -> Option<u32> {
    match group {
        GroupKey::Process(process) => trace.process(process)?.rank.get(),
        GroupKey::Device(_) | GroupKey::Counters => None,
    }
}

fn live_of(opened: &Opened, live: &Live) -> LiveOf {
    let changes = live.changes().map(|(generation, from_ns)| ChangeOf {
        generation: opened.text_of(generation),
        // A number that a browser can hold.
        from_ns: from_ns.min(1 << 53),
    });
    LiveOf {
        state: live.state,
        changes: changes.collect(),
    }
}

fn track_of(id: usize, track: &Track) -> TrackOf<'_> {
    TrackOf {
        id,
        key: &track.address,
        kind: track.kind.name(),
        label: &track.label,
        group: track.group.to_string(),
        first_row: track.first_row,
        rows: track.rows,
        slices: track.slices,
        categories: &track.categories,
        unit: track.unit.as_deref(),
        min: track.min,
        max: track.max,
    }
}

/// What the picture cannot show as it is, in words.
fn doubts(doubtful: &tracesmith_trace::overview::Doubtful) -> Vec<String> {
    let events = |count: u64, what: &str| {
        let counted = tracesmith_trace::units::counted(count, "event", "events");
        (count > 0).then(|| format!("{counted} {what}"))
    };
    let sentences = [
        events(doubtful.without_time, "without a time: left out"),
        events(doubtful.without_end, "without an end: shown as moments"),
        events(doubtful.backwards, "that end before they start: shown as moments"),
    ];
    let more = "more streams and threads than there are rows: events of the others are left out";
    let more = doubtful.has_more_rows.then(|| more.to_owned());
    sentences.into_iter().flatten().chain(more).collect()
}

#[derive(Deserialize)]
pub(super) struct First {
    #[serde(default)]
    from: usize,
}

/// The table of shapes, from one of them on.
pub(super) async fn shapes(
    State(studio): State<Arc<Studio>>,
    Named(id): Named<usize>,
    Asked(First { from }): Asked<First>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let subject = Subject::with_rows(&studio, id).await?;
    let answer = studio.work.run(Length::Quick, move |_| {
        let shapes = subject.ready.grid().shapes();
        let row = |shape: &'_ Shape| -> (String, String, &'static str, u8) {
            let kind = shape.kind.map_or("idle", |kind| kind.name());
            (shape.name.clone(), shape.short_name.clone(), kind, shape.category)
        };
        let rows: Vec<_> = shapes.iter().skip(from).map(row).collect();
        Payload::json(&rows)
    });
    Ok(answer.await?.response(&headers, Keep::No))
}
