//! Everything that ran on a GPU, in the order of its start.

use arrow_array::ArrayRef;
use tracesmith_format::Projection;
use tracesmith_format::tables::{Kernel, Kernels};

use super::{TextColumn, View, ids, refused, some_u64s, u32s, u64s};
use crate::error::Error;
use crate::model::trace::Trace;
use crate::reconstruct::{Activity, OpTable, first_rows, name_of};
use crate::tables::catalog::ColumnKind::{Text, U32, U64};

pub(super) const VIEW: View = View {
    name: "gpu_ops",
    doc: "Kernels, copies, sets and graphs that were recorded as a whole: all GPU work in the order of its start.",
    columns: &[
        ("op", U32, None, "Its number, in the order of start."),
        ("start", U64, Some("ns"), "When it started on the device."),
        ("end", U64, Some("ns"), "When it ended on the device."),
        ("duration", U64, Some("ns"), "End minus start."),
        ("class", Text, None, "compute, communication, copy or set."),
        (
            "name",
            Text,
            None,
            "The kernel's readable name, or the direction of a copy.",
        ),
        (
            "symbol",
            Text,
            None,
            "The kernel's name as the compiler wrote it.",
        ),
        ("process", U32, None, "The process that launched it."),
        (
            "device",
            U32,
            None,
            "The device: `devices.id`, not the number of the GPU.",
        ),
        ("context", U32, None, "The context."),
        ("stream", U64, None, "The stream."),
        ("table", Text, None, "The stored table that has its row."),
        ("row", U32, None, "The number of that row, from 0."),
        ("stack", U32, None, "The stack that launched it."),
        ("graph", U64, None, "The graph that it was part of."),
        ("grid_x", U32, None, "Blocks in the grid."),
        ("grid_y", U32, None, "Blocks in the grid."),
        ("grid_z", U32, None, "Blocks in the grid."),
        ("block_x", U32, None, "Threads in a block."),
        ("block_y", U32, None, "Threads in a block."),
        ("block_z", U32, None, "Threads in a block."),
    ],
    make,
};

fn make(trace: &Trace) -> Result<Vec<ArrayRef>, Error> {
    let activity = trace.activity()?;
    let ops = &activity.ops;
    let kinds = || ops.kind.iter().map(|kind| &ops.kinds[*kind as usize]);
    let lanes = || ops.lane.iter().map(|lane| activity.lane(*lane));
    let texts = |text: &dyn Fn(usize) -> &'static str| -> Result<ArrayRef, Error> {
        let mut column = TextColumn::default();
        let keys: Vec<u32> = (0..ops.kinds.len()).map(|kind| column.key(text(kind))).collect();
        column.keys = ops.kind.iter().map(|kind| keys[*kind as usize]).collect();
        column.finish()
    };
    Ok(vec![
        u32s(0..ops.len() as u32),
        u64s(ops.start.iter().copied()),
        u64s(ops.end.iter().copied()),
        u64s(ops.start.iter().zip(&ops.end).map(|(start, end)| end - start)),
        texts(&|kind| ops.kinds[kind].class.name())?,
        names(trace, &activity)?,
        trace
            .texts()?
            .column(symbols(trace, &activity)?)
            .map_err(refused)?,
        u32s(lanes().map(|lane| lane.process.0)),
        u32s(lanes().map(|lane| lane.device.0)),
        u32s(lanes().map(|lane| lane.context.0)),
        u64s(lanes().map(|lane| lane.stream.0)),
        texts(&|kind| ops.kinds[kind].table.name())?,
        u32s(ops.row.iter().copied()),
        ids((0..ops.len()).map(|op| ops.stack.get(op).map_or(0, |stack| stack.0))),
        some_u64s(kinds().map(|kind| kind.graph.is_some().then_some(kind.graph.0))),
        u32s(kinds().map(|kind| kind.grid[0])),
        u32s(kinds().map(|kind| kind.grid[1])),
        u32s(kinds().map(|kind| kind.grid[2])),
        u32s(kinds().map(|kind| kind.block[0])),
        u32s(kinds().map(|kind| kind.block[1])),
        u32s(kinds().map(|kind| kind.block[2])),
    ])
}

/// The ids of the symbols of all operations; 0 for those that are no kernels.
pub(super) fn symbols(trace: &Trace, activity: &Activity) -> Result<Vec<u32>, Error> {
    let mut of_rows = vec![0_u32; usize::try_from(trace.kernels.rows()).unwrap_or(0)];
    let first_row = first_rows(&trace.kernels);
    trace.kernels.stream_wanted(
        &Projection::of::<Kernel>(&["shape.name"])?,
        |block, rows: Kernels| {
            let names = (0..rows.shape.index.len()).map(|row| rows.shape.get(row).name.0);
            (first_row(block) as usize, names.collect::<Vec<u32>>())
        },
        |(first, names)| {
            for (to, name) in of_rows.iter_mut().skip(first).zip(names) {
                *to = name;
            }
        },
    );
    let ops = &activity.ops;
    let symbol = |(kind, row): (&u32, &u32)| match ops.kinds[*kind as usize].table {
        OpTable::Kernels => of_rows.get(*row as usize).copied().unwrap_or(0),
        OpTable::Copies | OpTable::Sets | OpTable::GraphLaunches => 0,
    };
    Ok(ops.kind.iter().zip(&ops.row).map(symbol).collect())
}

/// The name of every operation; equal ones are looked up once.
pub(super) fn names(trace: &Trace, activity: &Activity) -> Result<ArrayRef, Error> {
    let ops = &activity.ops;
    let mut column = TextColumn::default();
    let keys: Vec<u32> = ops
        .kinds
        .iter()
        .map(|kind| column.key(name_of(trace, kind.name)))
        .collect();
    column.keys = ops.kind.iter().map(|kind| keys[*kind as usize]).collect();
    column.finish()
}
