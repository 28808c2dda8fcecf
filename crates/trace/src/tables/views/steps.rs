//! The steps of a training or inference loop.

use arrow_array::ArrayRef;

use super::{TextColumn, View, flags, u32s, u64s};
use crate::error::Error;
use crate::model::trace::Trace;
use crate::reconstruct::Steps;
use crate::tables::catalog::ColumnKind::{Bool, Text, U32, U64};

pub(super) const VIEW: View = View {
    name: "steps",
    doc: "The steps of the program's loop: marked by ranges, or found by kernels that repeat.",
    columns: &[
        ("step", U32, None, "Its number, from 0."),
        ("name", Text, None, "Its name."),
        ("process", U32, None, "The process: `processes.id`, not the pid."),
        ("start", U64, Some("ns"), "When it began."),
        ("end", U64, Some("ns"), "When it ended."),
        ("duration", U64, Some("ns"), "End minus start."),
        (
            "is_warm_up",
            Bool,
            None,
            "Whether the program was still warming up.",
        ),
    ],
    make,
};

fn make(trace: &Trace) -> Result<Vec<ArrayRef>, Error> {
    let steps = Steps::of(trace, &*trace.activity()?)?;
    let list = &steps.steps;
    let mut names = TextColumn::default();
    list.iter().for_each(|step| names.push(&step.name));
    Ok(vec![
        u32s(0..list.len() as u32),
        names.finish()?,
        u32s(list.iter().map(|step| step.process.0)),
        u64s(list.iter().map(|step| step.start_ns)),
        u64s(list.iter().map(|step| step.end_ns)),
        u64s(list.iter().map(|step| step.duration())),
        flags(list.iter().map(|step| step.is_warm_up)),
    ])
}
