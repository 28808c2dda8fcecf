//! Collectives and point-to-point operations, and kernels that communicate without a row of their own.

use arrow_array::ArrayRef;
use rustc_hash::FxHashMap;
use tracesmith_format::tables::{Collective, Collectives, Kernel, Kernels, Marker, MarkerKind, Markers};
use tracesmith_format::{Columns as _, CorrelationId, ProcessId, Projection, StackId, StringId, ThreadId};

use super::{TextColumn, View, ids, refused, some_u32s, some_u64s, u32s, u64s};
use crate::analysis::short_name;
use crate::error::Error;
use crate::model::table::Kept;
use crate::model::trace::Trace;
use crate::reconstruct::{Activity, OpClass, OpId, OpTable, first_rows, times_on};
use crate::tables::catalog::ColumnKind::{Text, U32, U64};

pub(super) const VIEW: View = View {
    name: "collective_ops",
    doc: "Communication between GPUs: every row of `collectives`, and every communication kernel that has no such row.",
    columns: &[
        (
            "start",
            U64,
            Some("ns"),
            "When it started: on the device if that is known.",
        ),
        ("end", U64, Some("ns"), "When it ended."),
        ("duration", U64, Some("ns"), "End minus start."),
        ("name", Text, None, "The operation, such as AllReduce."),
        (
            "source",
            Text,
            None,
            "collectives for a row of that table, kernel for a kernel without one.",
        ),
        ("kind", Text, None, "The kind of the row in collectives."),
        ("op", U32, None, "Its kernel in gpu_ops, if that is known."),
        ("kernel", Text, None, "The kernel's readable name."),
        (
            "range",
            Text,
            None,
            "The NVTX range of NCCL around the launch, such as ncclAllReduce.",
        ),
        ("process", U32, None, "The process: `processes.id`, not the pid."),
        (
            "device",
            U32,
            None,
            "The device: `devices.id`, not the number of the GPU.",
        ),
        ("stream", U64, None, "The stream."),
        ("communicator", U64, None, "The communicator."),
        ("communicator_name", Text, None, "The communicator's name."),
        ("sequence", U64, None, "The sequence number in the communicator."),
        ("rank", U32, None, "This rank in the communicator."),
        ("ranks", U32, None, "The number of ranks."),
        (
            "root",
            U32,
            None,
            "The root, or the peer of a point-to-point operation.",
        ),
        ("count", U64, None, "The number of elements."),
        ("bytes", U64, Some("bytes"), "The number of bytes."),
        ("datatype", Text, None, "The type of the elements."),
        ("reduction", Text, None, "The reduction operation."),
        ("algorithm", Text, None, "The algorithm."),
        ("protocol", Text, None, "The protocol."),
        (
            "stack",
            U32,
            None,
            "The stack that made the call or launched the kernel.",
        ),
    ],
    make,
};

struct Row {
    start: u64,
    end: u64,
    /// The row of `collectives`.
    recorded: Option<Collective>,
    op: Option<OpId>,
}

fn make(trace: &Trace) -> Result<Vec<ArrayRef>, Error> {
    let activity = trace.activity()?;
    let kernels = kernels(trace, &activity)?;
    let mut rows = recorded(trace, &kernels)?;
    let mut has_row = vec![false; activity.ops.len()];
    rows.iter()
        .filter_map(|row| row.op)
        .for_each(|op| has_row[op.index()] = true);
    let others = kernels.in_order.into_iter().filter(|op| !has_row[op.index()]);
    rows.extend(others.map(|op| Row {
        start: activity.ops.start[op.index()],
        end: activity.ops.end[op.index()],
        recorded: None,
        op: Some(op),
    }));
    rows.sort_by_key(|row| (row.start, row.op));
    arrays(trace, &activity, &rows)
}

/// Kernels that communicate.
struct CommunicationKernels {
    in_order: Vec<OpId>,
    by_correlation: FxHashMap<(ProcessId, CorrelationId), OpId>,
}

fn kernels(trace: &Trace, activity: &Activity) -> Result<CommunicationKernels, Error> {
    let ops = &activity.ops;
    let is_one = |op: &OpId| {
        let kind = &ops.kinds[ops.kind[op.index()] as usize];
        kind.table == OpTable::Kernels && kind.class == OpClass::Communication
    };
    let in_order: Vec<OpId> = ops.ids().filter(is_one).collect();
    let mut by_correlation = FxHashMap::default();
    if trace.collectives.rows() > 0 {
        let of_row: FxHashMap<u64, OpId> = in_order
            .iter()
            .map(|op| (u64::from(ops.row[op.index()]), *op))
            .collect();
        let first_row = first_rows(&trace.kernels);
        trace.kernels.stream_wanted(
            &Projection::of::<Kernel>(&["correlation"])?,
            |block, rows: Kernels| (first_row(block), rows.correlation),
            |(first, correlations)| {
                for (row, correlation) in (first..).zip(correlations) {
                    if let Some(op) = of_row.get(&row).filter(|_| correlation.is_some()) {
                        let process = activity.lane(ops.lane[op.index()]).process;
                        by_correlation.entry((process, correlation)).or_insert(*op);
                    }
                }
            },
        );
    }
    Ok(CommunicationKernels {
        in_order,
        by_correlation,
    })
}

fn recorded(trace: &Trace, kernels: &CommunicationKernels) -> Result<Vec<Row>, Error> {
    let kept = Kept::new(trace.collectives.rows(), size_of::<Row>());
    trace.file.admit_rows("collectives", &[kept])?;
    let mut rows = Vec::new();
    trace.collectives.stream_wanted(
        &Projection::all(),
        |block, rows: Collectives| {
            let line = trace.clock_map.line(block.header.clock);
            (times_on(line, &rows.start, &rows.end), rows)
        },
        |((starts, ends), block)| {
            for (row, (start, end)) in starts.into_iter().zip(ends).enumerate() {
                let recorded = block.row(row);
                let key = (recorded.place.process, recorded.correlation);
                rows.push(Row {
                    start,
                    end: end.max(start),
                    op: kernels.by_correlation.get(&key).copied(),
                    recorded: Some(recorded),
                });
            }
        },
    );
    Ok(rows)
}

fn arrays(trace: &Trace, activity: &Activity, rows: &[Row]) -> Result<Vec<ArrayRef>, Error> {
    let ops = &activity.ops;
    let texts = trace.texts()?;
    let string = |of: &dyn Fn(&Collective) -> StringId| {
        let ids = rows
            .iter()
            .map(|row| row.recorded.as_ref().map_or(0, |row| of(row).0));
        texts.column(ids.collect()).map_err(refused)
    };
    let fact =
        |of: &dyn Fn(&Collective) -> u64| some_u64s(rows.iter().map(|row| row.recorded.as_ref().map(of)));
    let small = |of: &dyn Fn(&Collective) -> Option<u32>| {
        some_u32s(rows.iter().map(|row| row.recorded.as_ref().and_then(of)))
    };
    let (mut names, mut sources) = (TextColumn::default(), TextColumn::default());
    for row in rows {
        match (&row.recorded, row.op) {
            (Some(recorded), _) => names.push(trace.string(recorded.shape.name)),
            (None, Some(op)) => names.push(&operation(activity.name(trace, op))),
            (None, None) => names.push(""),
        }
        sources.push(if row.recorded.is_some() {
            "collectives"
        } else {
            "kernel"
        });
    }
    let kinds = rows
        .iter()
        .map(|row| row.recorded.as_ref().map(|row| row.shape.kind));
    let kernels = rows.iter().map(|row| row.op.map(|op| activity.name(trace, op)));
    let ranges = Ranges::of(trace)?;
    let range = |row: &Row| {
        let call = row
            .op
            .map(|op| ops.call[op.index()])
            .filter(|call| call.is_some())?;
        let thread = &activity.calls.threads[activity.calls.thread_of(call)];
        let start = activity.calls.start[call.index()];
        ranges.around(thread.process, thread.thread, start)
    };
    let lane = |row: &Row| row.op.map(|op| activity.lane(ops.lane[op.index()]));
    let place = |row: &Row| row.recorded.as_ref().map(|row| row.place);
    Ok(vec![
        u64s(rows.iter().map(|row| row.start)),
        u64s(rows.iter().map(|row| row.end)),
        u64s(rows.iter().map(|row| row.end - row.start)),
        names.finish()?,
        sources.finish()?,
        some_texts(kinds.map(|kind| kind.map(|kind| kind.name().unwrap_or("unknown"))))?,
        some_u32s(rows.iter().map(|row| row.op.map(|op| op.0))),
        some_texts(kernels)?,
        texts
            .column(
                rows.iter()
                    .map(|row| range(row).map_or(0, |name| name.0))
                    .collect(),
            )
            .map_err(refused)?,
        u32s(rows.iter().map(|row| {
            let process = lane(row).map(|lane| lane.process);
            process
                .or_else(|| Some(place(row)?.process))
                .unwrap_or_default()
                .0
        })),
        ids(rows.iter().map(|row| {
            let device = lane(row).map(|lane| lane.device);
            device.or_else(|| Some(place(row)?.device)).unwrap_or_default().0
        })),
        some_u64s(rows.iter().map(|row| {
            let of_row = place(row).filter(|place| place.device.is_some());
            let stream = lane(row).map(|lane| lane.stream).or_else(|| Some(of_row?.stream));
            stream.map(|stream| stream.0)
        })),
        fact(&|row| row.shape.communicator),
        string(&|row| row.shape.communicator_name)?,
        fact(&|row| row.sequence),
        small(&|row| row.shape.rank.get()),
        small(&|row| (row.shape.ranks > 0).then_some(row.shape.ranks)),
        small(&|row| row.shape.root.get()),
        fact(&|row| row.count),
        fact(&|row| row.bytes.0),
        string(&|row| row.shape.datatype)?,
        string(&|row| row.shape.reduction)?,
        string(&|row| row.shape.algorithm)?,
        string(&|row| row.shape.protocol)?,
        ids(rows.iter().map(|row| stack(activity, row).0)),
    ])
}

fn stack(activity: &Activity, row: &Row) -> StackId {
    let of_row = row.recorded.as_ref().map(|row| row.stack);
    let of_op = || activity.ops.stack.get(row.op?.index()).copied();
    of_row
        .filter(|stack| stack.is_some())
        .or_else(of_op)
        .unwrap_or_default()
}

/// What a kernel does, by its name: `ncclDevKernel_AllReduce_Sum_f32_RING_LL` is an AllReduce.
fn operation(kernel: &str) -> String {
    let short = short_name(kernel);
    let of_nccl = ["ncclDevKernel_", "ncclKernel_"]
        .into_iter()
        .find_map(|prefix| short.strip_prefix(prefix));
    match of_nccl.and_then(|rest| rest.split('_').next()) {
        Some(operation) if !operation.is_empty() => operation.to_owned(),
        _ => short,
    }
}

fn some_texts<'a>(values: impl Iterator<Item = Option<&'a str>>) -> Result<ArrayRef, Error> {
    let mut column = TextColumn::default();
    // The first text stands for none.
    column.key("");
    values.for_each(|text| match text {
        Some(text) => column.push(text),
        None => column.keys.push(0),
    });
    column.finish_optional()
}

/// Start, end and name.
type Range = (u64, u64, StringId);

/// NVTX ranges of NCCL by their threads, in the order of their start.
struct Ranges(FxHashMap<(ProcessId, ThreadId), Vec<Range>>);

impl Ranges {
    /// The domain of NCCL's ranges.
    const DOMAIN: &str = "NCCL";
    /// Ranges that are looked at before the one that starts last: they nest only a few levels.
    const NESTED: usize = 8;

    fn of(trace: &Trace) -> Result<Self, Error> {
        let mut found: FxHashMap<_, Vec<Range>> = FxHashMap::default();
        let wanted = Projection::of::<Marker>(&["start", "end", "caller", "shape"])?;
        trace.markers.stream_wanted(
            &wanted,
            |block, rows: Markers| {
                let line = trace.clock_map.line(block.header.clock);
                let (starts, ends) = times_on(line, &rows.start, &rows.end);
                let is_range = |row: &usize| {
                    let shape = rows.shape.get(*row);
                    shape.kind == MarkerKind::NESTED_RANGE && trace.string(shape.domain) == Self::DOMAIN
                };
                let range = |row: usize| {
                    let caller = rows.caller.get(row);
                    let range = (starts[row], ends[row], rows.shape.get(row).name);
                    ((caller.process, caller.thread), range)
                };
                (0..rows.start.len())
                    .filter(is_range)
                    .map(range)
                    .collect::<Vec<_>>()
            },
            |ranges| {
                ranges
                    .into_iter()
                    .for_each(|(thread, range)| found.entry(thread).or_default().push(range))
            },
        );
        found.values_mut().for_each(|ranges| ranges.sort_unstable());
        Ok(Ranges(found))
    }

    /// The innermost range around a time.
    fn around(&self, process: ProcessId, thread: ThreadId, time: u64) -> Option<StringId> {
        let ranges = self.0.get(&(process, thread))?;
        let before = ranges.partition_point(|(start, ..)| *start <= time);
        let near = ranges[..before].iter().rev().take(Self::NESTED);
        near.filter(|(_, end, _)| *end >= time)
            .map(|(.., name)| *name)
            .next()
    }
}
