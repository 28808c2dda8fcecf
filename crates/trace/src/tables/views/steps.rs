//! The steps of a training or inference loop.

use arrow_array::ArrayRef;

use super::{TextColumn, View, flags, u32s, u64s};
use crate::error::Error;
use crate::model::trace::Trace;
use crate::reconstruct::Steps;
use crate::tables::catalog::ColumnKind::{Bool, Text, U32, U64};

pub(super) const VIEW: View = View {
    name: "steps",
    doc: "The steps of the program's loop: marked by ranges, or found by kernels that repeat. One row per step and process.",
    columns: &[
        (
            "step",
            U32,
            None,
            "Its number, from 0. Ranks share the numbers of their steps.",
        ),
        ("name", Text, None, "Its name."),
        ("process", U32, None, "The process: `processes.id`, not the pid."),
        ("start", U64, Some("ns"), "When it began in this process."),
        ("end", U64, Some("ns"), "When it ended in this process."),
        ("duration", U64, Some("ns"), "End minus start."),
        (
            "is_warm_up",
            Bool,
            None,
            "Whether the program was still warming up.",
        ),
        (
            "is_cut_off",
            Bool,
            None,
            "Whether the trace does not show where it ends.",
        ),
    ],
    make,
};

fn make(trace: &Trace) -> Result<Vec<ArrayRef>, Error> {
    let steps = Steps::of(trace, &*trace.activity()?)?;
    let list: Vec<_> = (0u32..)
        .zip(&steps.steps)
        .flat_map(|(number, step)| step.parts.iter().map(move |part| (number, step, part)))
        .collect();
    let mut names = TextColumn::default();
    list.iter().for_each(|(_, step, _)| names.push(&step.name));
    Ok(vec![
        u32s(list.iter().map(|(number, ..)| *number)),
        names.finish()?,
        u32s(list.iter().map(|(.., part)| part.process)),
        u64s(list.iter().map(|(.., part)| part.start_ns)),
        u64s(list.iter().map(|(.., part)| part.end_ns)),
        u64s(list.iter().map(|(.., part)| part.end_ns - part.start_ns)),
        flags(list.iter().map(|(_, step, _)| step.is_warm_up)),
        flags(list.iter().map(|(_, step, _)| step.is_cut_off)),
    ])
}
