//! The states of streams over time.

use std::sync::Arc;

use arrow_array::ArrayRef;

use super::{TextColumn, View, some_u32s, u32s, u64s};
use crate::error::Error;
use crate::model::trace::Trace;
use crate::reconstruct::{Dependencies, Interval, OpId, States, StreamKey, Subject};
use crate::tables::catalog::ColumnKind::{Text, U32, U64};

pub(super) const VIEW: View = View {
    name: "states",
    doc: "What each stream did at each time, from the start of the trace to its end.",
    columns: &[
        ("process", U32, None, "The process: `processes.id`, not the pid."),
        (
            "device",
            U32,
            None,
            "The device: `devices.id`, not the number of the GPU.",
        ),
        ("context", U32, None, "The context."),
        ("stream", U64, None, "The stream."),
        ("start", U64, Some("ns"), "Where the state begins."),
        ("end", U64, Some("ns"), "Where it ends."),
        ("duration", U64, Some("ns"), "End minus start."),
        (
            "state",
            Text,
            None,
            "idle, pending, waiting, running or finished.",
        ),
        (
            "op",
            U32,
            None,
            "The operation in gpu_ops that runs, is pending or waits.",
        ),
        (
            "waits_for",
            U32,
            None,
            "The operation in gpu_ops that it waits for.",
        ),
    ],
    make,
};

fn make(trace: &Trace) -> Result<Vec<ArrayRef>, Error> {
    let activity = trace.activity()?;
    let dependencies = Arc::new(Dependencies::of(&activity));
    let states = States::of(&activity, &dependencies);
    let mut rows: Vec<(StreamKey, Interval)> = Vec::new();
    for line in &states.lines {
        if let Subject::Stream(lane) = line.subject {
            let lane = *activity.lane(lane);
            rows.extend(line.intervals().map(|interval| (lane, interval)));
        }
    }
    let mut names = TextColumn::default();
    rows.iter()
        .for_each(|(_, interval)| names.push(interval.state.name()));
    let op = |op: OpId| op.is_some().then_some(op.0);
    Ok(vec![
        u32s(rows.iter().map(|(lane, _)| lane.process.0)),
        u32s(rows.iter().map(|(lane, _)| lane.device.0)),
        u32s(rows.iter().map(|(lane, _)| lane.context.0)),
        u64s(rows.iter().map(|(lane, _)| lane.stream.0)),
        u64s(rows.iter().map(|(_, interval)| interval.from)),
        u64s(rows.iter().map(|(_, interval)| interval.to)),
        u64s(rows.iter().map(|(_, interval)| interval.to - interval.from)),
        names.finish()?,
        some_u32s(rows.iter().map(|(_, interval)| op(interval.op))),
        some_u32s(rows.iter().map(|(_, interval)| op(interval.waits_for))),
    ])
}
