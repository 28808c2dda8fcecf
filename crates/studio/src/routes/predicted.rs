//! Predicted timelines: asking for one, and where an event of one timeline is in the other.

use std::ops::ControlFlow;
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tracesmith_trace::analysis::WhatIf;
use tracesmith_trace::grid::{Grid, SliceRef, Track};
use tracesmith_trace::reconstruct::{Activity, OpId, Predicted};
use tracesmith_trace::tables::Cancel;

use super::Subject;
use super::tiles::rows_of;
use crate::payload::{Keep, Payload};
use crate::places::{Place, Places, each_slice, slices_at, stream_of, thread_of};
use crate::predictions::{Done, Prediction};
use crate::reply::{Asked, Failure, Named, Sent};
use crate::studio::Studio;
use crate::work::Length;

#[derive(Serialize)]
struct Number {
    id: usize,
}

/// Starts a prediction with these changes, or finds it. Its layout says how far it is.
pub(super) async fn predict(
    State(studio): State<Arc<Studio>>,
    Named(id): Named<usize>,
    headers: HeaderMap,
    Sent(what_if): Sent<WhatIf>,
) -> Result<Response, Failure> {
    let subject = Subject::of(&studio, id).await?;
    let (prediction, is_new) = studio.predictions.ask(subject.opened, subject.ready, what_if);
    let number = Number { id: prediction.id };
    if is_new {
        tokio::spawn(work(Arc::clone(&studio), prediction));
    }
    Ok(Payload::json(&number)?.response(&headers, Keep::No))
}

/// Goes on when the one who asked goes away: it asks about the layout later.
async fn work(studio: Arc<Studio>, prediction: Arc<Prediction>) {
    let working = Arc::clone(&prediction);
    let done = studio.work.run_until(Length::Long, Cancel::default(), move |_| {
        working.work();
        Ok(())
    });
    if let Err(failure) = done.await {
        prediction.fail(failure);
    }
    studio.predictions.settle();
}

#[derive(Debug, Deserialize)]
pub(super) struct Chosen {
    row: u32,
    start: u64,
    shape: Option<u32>,
    side: Side,
}

/// The timeline that an event is chosen in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Side {
    Measured,
    Predicted,
}

/// An event in both timelines.
#[derive(Serialize)]
struct Moved {
    measured: Place,
    predicted: Place,
}

/// Where an event of one timeline is in the other; `null` if it has no predicted times.
pub(super) async fn moved(
    State(studio): State<Arc<Studio>>,
    Named(id): Named<usize>,
    Asked(chosen): Asked<Chosen>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let prediction = studio.predictions.get(id)?;
    let answer = studio.work.run(Length::Quick, move |cancel| {
        prediction.base.unchanged()?;
        let done = prediction.ready()?;
        let whole = prediction.measured.facts.whole(&prediction.measured.trace)?;
        let both = Both {
            prediction: &prediction,
            done: &done,
            activity: &whole.analysis.activity,
        };
        Payload::json(&both.moved(&chosen, cancel)?)
    });
    Ok(answer.await?.response(&headers, Keep::No))
}

/// Both timelines.
struct Both<'a> {
    prediction: &'a Prediction,
    done: &'a Done,
    activity: &'a Activity,
}

/// Start and end on the trace's timeline.
type Times = (u64, u64);

impl Both<'_> {
    fn moved(&self, chosen: &Chosen, cancel: &Cancel) -> Result<Option<Moved>, Failure> {
        let grid = self.grid(chosen.side);
        rows_of(&chosen.row.to_string(), grid)?;
        let missing = || Failure::missing("no event starts there");
        let slice = slices_at(grid, chosen.row, chosen.start)
            .into_iter()
            .find(|slice| chosen.shape.is_none_or(|shape| slice.shape == shape))
            .ok_or_else(missing)?;
        let track = grid.track_of(chosen.row).ok_or_else(missing)?;
        let start = grid.origin() + slice.start;
        let times = (start, start + slice.duration);
        let other = match (stream_of(track), thread_of(track)) {
            (Some(_), _) => self.op(
                chosen.side,
                track,
                times,
                &grid.shapes()[slice.shape as usize].name,
            ),
            (None, Some(_)) => self.of_thread(chosen.side, track, (slice, times), cancel)?,
            (None, None) => None,
        };
        let Some(other) = other else {
            return Ok(None);
        };
        let here = self.places(chosen.side).place(slice);
        let there = match chosen.side {
            Side::Measured => Side::Predicted,
            Side::Predicted => Side::Measured,
        };
        let tracks = self.grid(there).tracks();
        let track = tracks.iter().find(|other| other.key == track.key);
        let there = track.and_then(|track| self.places(there).within(track, other, &here.name));
        Ok(there.map(|there| match chosen.side {
            Side::Measured => Moved {
                measured: here,
                predicted: there,
            },
            Side::Predicted => Moved {
                measured: there,
                predicted: here,
            },
        }))
    }

    fn grid(&self, side: Side) -> &Grid {
        match side {
            Side::Measured => self.prediction.measured.grid(),
            Side::Predicted => self.done.ready.grid(),
        }
    }

    fn places(&self, side: Side) -> Places<'_> {
        Places {
            trace: &self.prediction.measured.trace,
            grid: self.grid(side),
            activity: self.activity,
        }
    }

    /// The times of an op in the other timeline.
    fn op(&self, side: Side, track: &Track, times: Times, name: &str) -> Option<Times> {
        let (predicted, ops) = (self.predicted(), &self.activity.ops);
        let is_meant = |op: OpId| {
            let lane = self.activity.lane(ops.lane[op.index()]);
            stream_of(track) == Some((lane.device, lane.process, lane.context, lane.stream))
                && self.activity.name(&self.prediction.measured.trace, op) == name
        };
        match side {
            Side::Measured => {
                let first = ops.start.partition_point(|start| *start < times.0);
                let together = ops.start[first..].iter().take_while(|start| **start == times.0);
                let mut ids = (first..first + together.count()).map(|at| OpId(at as u32));
                let op = ids.find(|op| ops.end[op.index()] == times.1 && is_meant(*op))?;
                predicted.op(op)
            }
            Side::Predicted => {
                let (op, _) = predicted
                    .ops()
                    .find(|(op, found)| *found == times && is_meant(*op))?;
                Some((ops.start[op.index()], ops.end[op.index()]))
            }
        }
    }

    /// The times of a call or range in the other timeline.
    fn of_thread(
        &self,
        side: Side,
        track: &Track,
        (slice, times): (SliceRef, Times),
        cancel: &Cancel,
    ) -> Result<Option<Times>, Failure> {
        let threads = self.predicted().threads();
        let moves = thread_of(track).and_then(|(process, thread, _)| threads.of_thread(process, thread));
        let Some(mut moves) = moves else {
            return Ok(None);
        };
        if side == Side::Measured {
            return Ok(Some((moves.moved(times.0), moves.moved(times.1))));
        }
        let measured = self.grid(Side::Measured);
        let Some(track) = measured.tracks().iter().find(|other| other.key == track.key) else {
            return Ok(None);
        };
        let mut found = None;
        for row in track.first_row..track.first_row + track.rows {
            each_slice(measured, row, (0, u64::MAX), cancel, |candidate| {
                let start = measured.origin() + candidate.start;
                let was = (start, start + candidate.duration);
                if candidate.shape == slice.shape && (moves.moved(was.0), moves.moved(was.1)) == times {
                    found = Some(was);
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            })?;
        }
        Ok(found)
    }

    fn predicted(&self) -> &Predicted {
        &self.done.predicted
    }
}
