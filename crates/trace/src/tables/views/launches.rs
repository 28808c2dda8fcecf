//! API calls that launched GPU work, with that work.

use arrow_array::ArrayRef;

use super::{TextColumn, View, gpu_ops, i64s, ids, refused, u32s, u64s};
use crate::error::Error;
use crate::model::trace::Trace;
use crate::reconstruct::OpId;
use crate::tables::catalog::ColumnKind::{I64, Text, U32, U64};

pub(super) const VIEW: View = View {
    name: "launches",
    doc: "Every GPU operation whose launching API call was recorded, with that call.",
    columns: &[
        ("op", U32, None, "The operation in gpu_ops."),
        ("call", Text, None, "The API function."),
        ("process", U32, None, "The process of the call."),
        ("thread", U64, None, "The thread of the call."),
        ("call_start", U64, Some("ns"), "When the call began."),
        ("call_end", U64, Some("ns"), "When the call returned."),
        (
            "start",
            U64,
            Some("ns"),
            "When the operation started on the device.",
        ),
        ("end", U64, Some("ns"), "When the operation ended on the device."),
        (
            "latency",
            I64,
            Some("ns"),
            "From the beginning of the call to the start on the device.",
        ),
        ("name", Text, None, "The operation's name."),
        (
            "symbol",
            Text,
            None,
            "The kernel's name as the compiler wrote it.",
        ),
        (
            "device",
            U32,
            None,
            "The device: `devices.id`, not the number of the GPU.",
        ),
        ("stream", U64, None, "The stream."),
        ("stack", U32, None, "The stack that made the call."),
    ],
    make,
};

fn make(trace: &Trace) -> Result<Vec<ArrayRef>, Error> {
    let activity = trace.activity()?;
    let (ops, calls) = (&activity.ops, &activity.calls);
    let launched: Vec<OpId> = ops.ids().filter(|op| ops.call[op.index()].is_some()).collect();
    let call = |op: &OpId| ops.call[op.index()];
    let (mut functions, mut names) = (TextColumn::default(), TextColumn::default());
    for op in &launched {
        functions.push(trace.string(calls.get(call(op)).name));
        names.push(activity.name(trace, *op));
    }
    let all = gpu_ops::symbols(trace, &activity)?;
    let symbols = launched.iter().map(|op| all[op.index()]).collect();
    let threads = || {
        let threads = launched.iter().map(|op| calls.thread_of(call(op)));
        threads.map(|thread| &calls.threads[thread])
    };
    let starts = || launched.iter().map(|op| calls.start[call(op).index()]);
    Ok(vec![
        u32s(launched.iter().map(|op| op.0)),
        functions.finish()?,
        u32s(threads().map(|thread| thread.process.0)),
        u64s(threads().map(|thread| thread.thread.0)),
        u64s(starts()),
        u64s(launched.iter().map(|op| calls.end[call(op).index()])),
        u64s(launched.iter().map(|op| ops.start[op.index()])),
        u64s(launched.iter().map(|op| ops.end[op.index()])),
        i64s(launched.iter().zip(starts()).map(|(op, start)| {
            let latency = i128::from(ops.start[op.index()]) - i128::from(start);
            i64::try_from(latency).ok()
        })),
        names.finish()?,
        trace.texts()?.column(symbols).map_err(refused)?,
        u32s(
            launched
                .iter()
                .map(|op| activity.lane(ops.lane[op.index()]).device.0),
        ),
        u64s(
            launched
                .iter()
                .map(|op| activity.lane(ops.lane[op.index()]).stream.0),
        ),
        ids(launched
            .iter()
            .map(|op| ops.stack.get(op.index()).map_or(0, |stack| stack.0))),
    ])
}
