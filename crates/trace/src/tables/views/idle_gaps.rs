//! When devices had nothing to do, and why.

use arrow_array::ArrayRef;

use super::{TextColumn, View, u32s, u64s};
use crate::analysis::main_cause;
use crate::error::Error;
use crate::model::trace::Trace;
use crate::reconstruct::{Gap, Timeline};
use crate::tables::catalog::ColumnKind::{Text, U32, U64};

pub(super) const VIEW: View = View {
    name: "idle_gaps",
    doc: "Times between two operations in which a device had nothing to do, with the main cause.",
    columns: &[
        (
            "device",
            U32,
            None,
            "The device: `devices.id`, not the number of the GPU.",
        ),
        (
            "start",
            U64,
            Some("ns"),
            "When the last operation before it ended.",
        ),
        ("end", U64, Some("ns"), "When the next operation started."),
        ("duration", U64, Some("ns"), "End minus start."),
        (
            "cause",
            Text,
            None,
            "The cause with the largest part in it, as in `analyze --format json`.",
        ),
        ("next_op", U32, None, "The operation in gpu_ops that ended it."),
        ("next_name", Text, None, "That operation's name."),
    ],
    make,
};

fn make(trace: &Trace) -> Result<Vec<ArrayRef>, Error> {
    let activity = trace.activity()?;
    let mut gaps: Vec<Gap> = Vec::new();
    Timeline::swept(&activity, &[], |gap| gaps.push(gap));
    gaps.sort_by_key(|gap| (gap.from, gap.device));
    let (mut causes, mut names) = (TextColumn::default(), TextColumn::default());
    for gap in &gaps {
        causes.push(main_cause(&activity, gap).name());
        names.push(activity.name(trace, gap.next));
    }
    Ok(vec![
        u32s(gaps.iter().map(|gap| gap.device.0)),
        u64s(gaps.iter().map(|gap| gap.from)),
        u64s(gaps.iter().map(|gap| gap.to)),
        u64s(gaps.iter().map(|gap| gap.to - gap.from)),
        causes.finish()?,
        u32s(gaps.iter().map(|gap| gap.next.0)),
        names.finish()?,
    ])
}
