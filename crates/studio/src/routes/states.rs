//! The states of streams, contexts and devices: what `tracesmith states --format json` prints, as rows.

use serde_json::Value;
use tracesmith_trace::reconstruct::{State, Subject};

use super::table::Rows;
use crate::ready::Ready;
use crate::reply::Failure;

/// The name of the table.
pub(super) const NAME: &str = "states";

pub(super) fn totals(ready: &Ready) -> Result<Rows, Failure> {
    let whole = ready.facts.whole(&ready.trace)?;
    let (states, activity) = (whole.analysis.states(), &whole.analysis.activity);
    let row = |line: &tracesmith_trace::reconstruct::StateLine| {
        let (kind, device, process, context, stream) = match line.subject {
            Subject::Device(device) => ("device", device, None, None, None),
            Subject::Context(process, context, device) => {
                ("context", device, Some(process), Some(context), None)
            }
            Subject::Stream(lane) => {
                let lane = activity.lane(lane);
                (
                    "stream",
                    lane.device,
                    Some(lane.process),
                    Some(lane.context),
                    Some(lane.stream),
                )
            }
        };
        let totals = line.totals();
        let mut row: Vec<Value> = vec![
            kind.into(),
            device.0.into(),
            process.map(|process| process.0).into(),
            context.map(|context| context.0).into(),
            stream.map(|stream| stream.0).into(),
        ];
        row.extend(totals.nanos.map(Value::from));
        row.push(totals.intervals.into());
        row
    };
    let rows: Vec<Vec<Value>> = states.lines.iter().map(row).collect();
    let subjects = ["kind", "device", "process", "context", "stream"].map(str::to_owned);
    let times = State::ALL.map(|state| format!("{}_ns", state.name()));
    Ok(Rows {
        columns: subjects
            .into_iter()
            .chain(times)
            .chain(["intervals".to_owned()])
            .collect(),
        total: rows.len(),
        rows,
    })
}
