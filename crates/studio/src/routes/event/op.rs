//! Work of a stream: the call that launched it, and what it waits for and holds up.

use tracesmith_trace::EventKind;
use tracesmith_trace::reconstruct::{EdgeWhy, OpId, OpTable};

use super::row::{self, FoundRow};
use super::{Event, Picked, Tie};
use crate::facts::Whole;
use crate::places::stream_of;
use crate::reply::Failure;

/// Ties of one event in an answer. An op of the default stream can hold up very many.
const MOST_TIES: usize = 200;

pub(super) fn describe(picked: &Picked<'_>, whole: &Whole, event: &mut Event) -> Result<(), Failure> {
    let Some(id) = op_of(picked) else {
        // A wait on a stream is a row, but no op.
        return match row::find(picked) {
            Some(found) => row::describe(picked, &found, event),
            None => Ok(()),
        };
    };
    let (places, activity) = (picked.places, picked.places.activity);
    let op = activity.ops.get(id);
    let found = picked
        .places
        .trace
        .with_row(kind_of(op.kind.table), u64::from(op.row), |found| {
            FoundRow::of(places.trace, found)
        });
    // A row in a damaged part of the file has no columns to show.
    if let Ok(found) = found {
        row::describe(picked, &found, event)?;
    }
    event.launch = picked.launch(op.call);
    let ties = whole.ties();
    let tie = |op: OpId, why| places.of_op(op).map(|place| Tie { place, why });
    let (before, after) = neighbors(picked, id);
    let waited_for = ties
        .dependencies
        .edges_to(id)
        .iter()
        .map(|edge| (edge.from, words(edge.why)));
    let waited_by = ties.edges_from(id).iter().map(|edge| (edge.to, words(edge.why)));
    let ties_of = |own: Option<OpId>, others: &mut dyn Iterator<Item = (OpId, &'static str)>| -> Vec<Tie> {
        let own = own.map(|op| (op, "stream_order")).into_iter();
        own.chain(others)
            .take(MOST_TIES)
            .filter_map(|(op, why)| tie(op, why))
            .collect()
    };
    event.waited_for = ties_of(before, &mut { waited_for });
    event.waited_by = ties_of(after, &mut { waited_by });
    let calls = ties.calls_that_wait_for(id).take(MOST_TIES);
    event.waited_by.extend(calls.filter_map(|call| {
        let place = places.of_call(call)?;
        Some(Tie {
            place,
            why: "host_wait",
        })
    }));
    Ok(())
}

/// The op that a slice shows.
fn op_of(picked: &Picked<'_>) -> Option<OpId> {
    let (trace, activity) = (picked.places.trace, picked.places.activity);
    let ops = &activity.ops;
    let start = picked.start();
    let first = ops.start.partition_point(|other| *other < start);
    let together = ops.start[first..]
        .iter()
        .take_while(|other| **other == start)
        .count();
    let mut ids = (first..first + together).map(|at| OpId(at as u32));
    ids.find(|id| {
        let op = ops.get(*id);
        let lane = activity.lane(op.lane);
        stream_of(picked.track) == Some((lane.device, lane.process, lane.context, lane.stream))
            && op.end == picked.end()
            && activity.name(trace, *id) == picked.name
    })
}

/// The ops before and after one on its stream, which its order ties together.
fn neighbors(picked: &Picked<'_>, id: OpId) -> (Option<OpId>, Option<OpId>) {
    let activity = picked.places.activity;
    let of_lane = activity.ops_of(activity.ops.get(id).lane);
    let at = of_lane.partition_point(|other| *other < id);
    let before = at.checked_sub(1).map(|at| of_lane[at]);
    (before, of_lane.get(at + 1).copied())
}

fn words(why: EdgeWhy) -> &'static str {
    match why {
        EdgeWhy::Event => "event",
        EdgeWhy::DefaultStream => "default_stream",
        EdgeWhy::Graph => "graph",
        EdgeWhy::PeerCopy => "peer_copy",
        EdgeWhy::Assumed => "assumed",
    }
}

fn kind_of(table: OpTable) -> EventKind {
    match table {
        OpTable::Kernels => EventKind::Kernel,
        OpTable::Copies => EventKind::Copy,
        OpTable::Sets => EventKind::Set,
        OpTable::GraphLaunches => EventKind::GraphLaunch,
    }
}
