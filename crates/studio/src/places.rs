//! Where things are in a grid: the slice of an op or of a call, and all slices of a row.

use std::ops::ControlFlow;

use serde::Serialize;
use tracesmith_format::{ContextId, DeviceId, ProcessId, StreamId, ThreadId};
use tracesmith_trace::Trace;
use tracesmith_trace::grid::{Grid, SliceRef, Track, TrackKey};
use tracesmith_trace::overview::{RowKey, ThreadRole};
use tracesmith_trace::reconstruct::{Activity, CallId, OpId};
use tracesmith_trace::tables::Cancel;

use crate::reply::Failure;

/// Slices that are looked at at once.
const CHUNK: usize = 1 << 14;
/// Slices of one row that start at the same moment, at most.
const TOGETHER: usize = 64;

/// A slice as pages know it, with its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Place {
    pub(crate) row: u32,
    pub(crate) start: u64,
    pub(crate) duration: u64,
    pub(crate) shape: u32,
    pub(crate) name: String,
}

/// A trace with its grid and with what was rebuilt of it.
#[derive(Clone, Copy)]
pub(crate) struct Places<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) grid: &'a Grid,
    pub(crate) activity: &'a Activity,
}

impl Places<'_> {
    /// The slice of an op.
    pub(crate) fn of_op(self, id: OpId) -> Option<Place> {
        let op = self.activity.ops.get(id);
        let lane = self.activity.lane(op.lane);
        let wanted = (lane.device, lane.process, lane.context, lane.stream);
        let track = self
            .grid
            .tracks()
            .iter()
            .find(|track| stream_of(track) == Some(wanted))?;
        self.within(track, (op.start, op.end), self.activity.name(self.trace, id))
    }

    /// The slice of a call.
    pub(crate) fn of_call(self, id: CallId) -> Option<Place> {
        let calls = &self.activity.calls;
        let (call, thread) = (calls.get(id), &calls.threads[calls.thread_of(id)]);
        let wanted = (thread.process, thread.thread, ThreadRole::Calls);
        let track = self
            .grid
            .tracks()
            .iter()
            .find(|track| thread_of(track) == Some(wanted))?;
        self.within(track, (call.start, call.end), self.trace.string(call.name))
    }

    /// The slice of a track with these times on the timeline.
    pub(crate) fn within(self, track: &Track, (start, end): (u64, u64), name: &str) -> Option<Place> {
        let start = start.checked_sub(self.grid.origin())?;
        let duration = end.saturating_sub(self.grid.origin()).saturating_sub(start);
        let mut rows = track.first_row..track.first_row + track.rows;
        let found = rows.find_map(|row| {
            let at_once = slices_at(self.grid, row, start);
            at_once.into_iter().find(|slice| {
                slice.duration == duration && self.grid.shapes()[slice.shape as usize].name == name
            })
        });
        found.map(|slice| self.place(slice))
    }

    /// A slice with its name.
    pub(crate) fn place(self, slice: SliceRef) -> Place {
        place(self.grid, slice)
    }
}

/// A slice with its name.
pub(crate) fn place(grid: &Grid, slice: SliceRef) -> Place {
    Place {
        row: slice.row,
        start: slice.start,
        duration: slice.duration,
        shape: slice.shape,
        name: grid.shapes()[slice.shape as usize].name.clone(),
    }
}

/// The slices of a row that start at a moment.
pub(crate) fn slices_at(grid: &Grid, row: u32, start: u64) -> Vec<SliceRef> {
    let found = grid.slices(row, start, start.saturating_add(1), TOGETHER);
    slices_of(row, &found)
        .filter(|slice| slice.start == start)
        .collect()
}

/// Calls `f` with all slices of a row in a stretch of time, in order, until it says stop.
pub(crate) fn each_slice(
    grid: &Grid,
    row: u32,
    (mut from, to): (u64, u64),
    cancel: &Cancel,
    mut f: impl FnMut(SliceRef) -> ControlFlow<()>,
) -> Result<(), Failure> {
    // Of those that start where the next chunk begins, so many were seen. What reaches into it was seen, too.
    let mut seen: Option<usize> = None;
    loop {
        if cancel.is_cancelled() {
            return Err(Failure::cancelled());
        }
        let found = grid.slices(row, from, to, CHUNK + seen.map_or(0, |seen| seen + 1));
        let is_new = |slice: &SliceRef| seen.is_none() || slice.start >= from;
        let all: Vec<SliceRef> = slices_of(row, &found)
            .filter(is_new)
            .skip(seen.unwrap_or(0))
            .collect();
        for slice in &all {
            if f(*slice).is_break() {
                return Ok(());
            }
        }
        let (true, Some(last)) = (found.has_more, all.last()) else {
            return Ok(());
        };
        let before = seen.filter(|_| last.start == from).unwrap_or(0);
        seen = Some(before + all.iter().filter(|slice| slice.start == last.start).count());
        from = last.start;
    }
}

fn slices_of(row: u32, found: &tracesmith_trace::grid::RowSlices) -> impl Iterator<Item = SliceRef> {
    let columns = found.starts.iter().zip(&found.durations).zip(&found.shapes);
    columns.map(move |((start, duration), shape)| SliceRef {
        row,
        start: *start,
        duration: *duration,
        shape: *shape,
    })
}

/// The stream that a track shows.
pub(crate) fn stream_of(track: &Track) -> Option<(DeviceId, ProcessId, ContextId, StreamId)> {
    match track.key {
        TrackKey::Row(RowKey::Stream {
            device,
            process,
            context,
            stream,
        }) => Some((device, process, context, stream)),
        _ => None,
    }
}

/// The thread that a track shows, and what of it.
pub(crate) fn thread_of(track: &Track) -> Option<(ProcessId, ThreadId, ThreadRole)> {
    match track.key {
        TrackKey::Row(RowKey::Thread {
            process,
            thread,
            role,
            ..
        }) => Some((process, thread, role)),
        _ => None,
    }
}
