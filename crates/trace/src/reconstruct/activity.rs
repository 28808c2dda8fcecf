//! Everything that the devices and the host did: the base of all that is rebuilt.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracesmith_format::tables::{GraphEdge, StreamKind};
use tracesmith_format::{
    Block, BlockKind, ContextId, CorrelationId, DeviceId, ProcessId, StreamId, Timestamp,
};

use super::calls::{CallId, Calls};
use super::data_quality::DataQuality;
use super::graphs::Graphs;
use super::joins::Joins;
use super::ops::{Gathered, InOrder, OpId, Ops};
use super::overheads::Overheads;
use super::steps::Range;
use super::syncs::{self, SyncRecord};
use crate::error::Error;
use crate::model::event::EventName;
use crate::model::table::Kept;
use crate::model::trace::Trace;
use crate::selection::{Selected, Selection};

/// Number of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamIndex(pub u32);

impl StreamIndex {
    /// As an index.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A stream of a device as one process sees it: work on it runs one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamKey {
    /// The process.
    pub process: ProcessId,
    /// The device.
    pub device: DeviceId,
    /// The context.
    pub context: ContextId,
    /// The stream.
    pub stream: StreamId,
}

/// A stretch of the timeline; an open end is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Window {
    /// Where it starts.
    pub from: Option<u64>,
    /// Where it ends, this moment not included.
    pub to: Option<u64>,
}

impl Window {
    /// The part of a stretch of time that lies in it. The end is not after the start if nothing does.
    pub fn clip(&self, start: u64, end: u64) -> (u64, u64) {
        (
            self.from.map_or(start, |from| start.max(from)),
            self.to.map_or(end, |to| end.min(to)),
        )
    }

    /// Whether something reaches into it. What touches only its edge does not, unless it is of no length.
    #[inline]
    pub fn touches(&self, start: u64, end: u64) -> bool {
        self.from.is_none_or(|from| end > from || start >= from) && self.to.is_none_or(|to| start < to)
    }

    /// Whether a moment is in it.
    #[inline]
    pub fn holds(&self, time: u64) -> bool {
        self.from.is_none_or(|from| time >= from) && self.to.is_none_or(|to| time < to)
    }

    /// The part of a span that is in it; of no length when none is.
    #[inline]
    pub fn clipped(&self, start: u64, end: u64) -> (u64, u64) {
        let start = self.from.map_or(start, |from| start.max(from));
        let end = self.to.map_or(end, |to| end.min(to));
        (start, end.max(start))
    }
}

/// Everything that the devices and the host did.
#[derive(Debug)]
pub struct Activity {
    /// Device work, in the order of its start.
    pub ops: Ops,
    /// Calls of the host.
    pub calls: Calls,
    /// Waits and records of events, by time.
    pub syncs: Vec<SyncRecord>,
    /// Time of the host threads that went to the profiler, or to loading device code.
    pub overheads: Overheads,
    /// Work that came out of graphs.
    pub graphs: Graphs,
    /// Streams, sorted.
    pub lanes: Vec<StreamKey>,
    /// What is doubtful.
    pub doubts: DataQuality,
    /// The stretch of time that device work was taken from.
    pub window: Window,
    /// The processes, devices and streams that it was taken from.
    pub selected: Selected,
    /// Earliest and latest time of work and calls in the window; `None` without any.
    pub span: Option<(u64, u64)>,
    /// The analyzed time, which shares of time refer to: from the first to the last device work, or the window where
    /// one was selected. Of no length without work.
    pub base: (u64, u64),
    /// The first moment of the whole trace: times that people read count from it.
    pub begin: u64,
    /// Device work by lane: those of lane `n` are `by_lane[first[n]..first[n + 1]]`.
    by_lane: Vec<OpId>,
    first: Vec<usize>,
    stream_kinds: Vec<StreamKind>,
}

impl Activity {
    /// Rebuilds what a trace holds.
    pub fn of(trace: &Trace) -> Result<Self, Error> {
        Self::within(trace, Window::default())
    }

    /// Rebuilds what a stretch of a trace holds. Device work that reaches into it is taken whole.
    pub fn within(trace: &Trace, window: Window) -> Result<Self, Error> {
        Self::selected(trace, window, &Selection::default())
    }

    /// Rebuilds what a stretch of a trace holds of a selection: its device work, and the calls of its processes.
    pub fn selected(trace: &Trace, window: Window, selection: &Selection) -> Result<Self, Error> {
        admit(trace, &window)?;
        let selected = Selected::of(trace, selection)?;
        // Each reads its blocks on all cores and puts the rows together on one: side by side, these parts overlap.
        let (of_ops, of_calls) = rayon::join(
            || -> Result<_, Error> {
                let mut doubts = DataQuality::default();
                let gathered = Gathered::read(trace, (&window, &selected), &mut doubts)?;
                Ok((gathered.in_order(), doubts))
            },
            || -> Result<_, Error> {
                let mut doubts = DataQuality::default();
                Ok((Calls::read(trace, &selected, &mut doubts)?, doubts))
            },
        );
        let (in_order, mut doubts) = of_ops?;
        let InOrder {
            mut ops,
            correlations,
            nodes,
            lanes,
        } = in_order;
        let ((calls, joins), call_doubts) = of_calls?;
        doubts.calls_without_time = call_doubts.calls_without_time;
        let (lanes, numbers) = sorted_lanes(lanes);
        for lane in &mut ops.lane {
            *lane = numbers[lane.index()];
        }
        join(&mut ops, &correlations, &lanes, &calls, &joins, &mut doubts);
        let syncs = syncs::read(trace, &selected, &lanes, &joins)?;
        let overheads = Overheads::read(trace, &selected, &calls.threads)?;
        let graphs = Graphs::of(trace, &ops, &nodes, &correlations, &lanes);
        drop((joins, correlations, nodes));
        doubts.uncertainty = uncertainty(trace);
        doubts.add_health(trace);
        let (by_lane, first) = by_lane(&ops, lanes.len());
        let span = span(&ops, &calls, &window);
        let base = base(trace, &ops, &window);
        let stream_kinds = stream_kinds(trace, &lanes);
        Ok(Activity {
            ops,
            calls,
            syncs,
            overheads,
            graphs,
            lanes,
            doubts,
            window,
            selected,
            span,
            base,
            begin: trace.span().map_or(0, |(begin, _)| begin.0),
            by_lane,
            first,
            stream_kinds,
        })
    }

    /// Numbers of all lanes.
    pub fn lane_ids(&self) -> impl ExactSizeIterator<Item = StreamIndex> + use<> {
        (0..self.lanes.len() as u32).map(StreamIndex)
    }

    /// A lane.
    #[inline]
    pub fn lane(&self, id: StreamIndex) -> &StreamKey {
        &self.lanes[id.index()]
    }

    /// The work of a lane, in the order of its start.
    pub fn ops_of(&self, lane: StreamIndex) -> &[OpId] {
        &self.by_lane[self.first[lane.index()]..self.first[lane.index() + 1]]
    }

    /// The devices that did something, sorted.
    pub fn devices(&self) -> Vec<DeviceId> {
        let mut devices: Vec<DeviceId> = self.lanes.iter().map(|lane| lane.device).collect();
        devices.sort_unstable();
        devices.dedup();
        devices
    }

    /// What orders a lane against others, as far as the trace knows.
    pub fn stream_kind(&self, lane: StreamIndex) -> StreamKind {
        self.stream_kinds[lane.index()]
    }

    /// When a piece of work was asked for: at the start of its call, else at its own start.
    #[inline]
    pub fn asked(&self, op: OpId) -> u64 {
        let (call, start) = (self.ops.call[op.index()], self.ops.start[op.index()]);
        match call.is_some() {
            true => self.calls.start[call.index()].min(start),
            false => start,
        }
    }

    /// Whether an op reaches into a time range.
    pub fn touches(&self, op: OpId, window: &Window) -> bool {
        window.touches(self.ops.start[op.index()], self.ops.end[op.index()])
    }

    /// The names of all kinds of work. A name may come several times.
    pub fn op_names<'t>(&self, trace: &'t Trace) -> impl Iterator<Item = &'t str> {
        self.ops.kinds.iter().map(|kind| name_of(trace, kind.name))
    }

    /// A work's name.
    pub fn name<'t>(&self, trace: &'t Trace, op: OpId) -> &'t str {
        name_of(trace, self.ops.kind(op).name)
    }
}

/// What one op and one call take while they are put together.
const OP_BYTES: usize = 52;
const CALL_BYTES: usize = 36;

/// Fails for a file that claims more rows than it can well hold.
fn admit(trace: &Trace, window: &Window) -> Result<(), Error> {
    let is_op = |block: &&Block| {
        let tables = [
            BlockKind::KERNELS,
            BlockKind::COPIES,
            BlockKind::SETS,
            BlockKind::GRAPH_LAUNCHES,
        ];
        let (first, last) = trace.block_span(block);
        tables.contains(&block.header.kind) && window.touches(first.0.min(last.0), last.0.max(first.0))
    };
    let op_blocks = trace.blocks().iter().filter(is_op);
    let ops = op_blocks.map(|block| u64::from(block.header.rows)).sum();
    trace.file.admit_rows(
        "ops, calls, waits and ranges",
        &[
            Kept::new(ops, OP_BYTES),
            Kept::new(trace.api_calls.rows(), CALL_BYTES),
            Kept::new(trace.syncs.rows(), size_of::<SyncRecord>()),
            Kept::new(trace.graph_edges.rows(), 2 * size_of::<GraphEdge>()),
            Kept::new(trace.markers.rows(), size_of::<Range>()),
        ],
    )
}

/// The text of a name.
pub(crate) fn name_of(trace: &Trace, name: EventName) -> &str {
    match name {
        EventName::Id(id) => trace.string(id),
        EventName::Word(word) => word,
    }
}

fn sorted_lanes(lanes: Vec<StreamKey>) -> (Vec<StreamKey>, Vec<StreamIndex>) {
    let mut order: Vec<usize> = (0..lanes.len()).collect();
    order.sort_by_key(|at| {
        let lane = lanes[*at];
        (lane.device, lane.process, lane.context, lane.stream)
    });
    let mut numbers = vec![StreamIndex(0); lanes.len()];
    for (number, at) in order.iter().enumerate() {
        numbers[*at] = StreamIndex(number as u32);
    }
    (order.iter().map(|at| lanes[*at]).collect(), numbers)
}

fn join(
    ops: &mut Ops,
    correlations: &[CorrelationId],
    lanes: &[StreamKey],
    calls: &Calls,
    joins: &Joins,
    doubts: &mut DataQuality,
) {
    ops.call = (0..ops.len())
        .map(|at| {
            let call = joins.find(lanes[ops.lane[at].index()].process, correlations[at]);
            if !call.is_some() {
                doubts.without_call += 1;
            } else if let Some(early) = calls.start[call.index()].checked_sub(ops.start[at])
                && early > 0
            {
                doubts.before_its_call += 1;
                doubts.before_its_call_by = doubts.before_its_call_by.max(early);
            }
            call
        })
        .collect();
    if ops.stack.is_empty() && !calls.stack.is_empty() {
        let stack_of = |call: &CallId| match call.is_some() {
            true => calls.stack[call.index()],
            false => tracesmith_format::StackId::NONE,
        };
        ops.stack = ops.call.iter().map(stack_of).collect();
    }
}

fn by_lane(ops: &Ops, lanes: usize) -> (Vec<OpId>, Vec<usize>) {
    let mut first = vec![0usize; lanes + 1];
    for lane in &ops.lane {
        first[lane.index() + 1] += 1;
    }
    for at in 0..lanes {
        first[at + 1] += first[at];
    }
    let mut next = first.clone();
    let mut by_lane = vec![OpId(0); ops.len()];
    for id in ops.ids() {
        let place = &mut next[ops.lane[id.index()].index()];
        by_lane[*place] = id;
        *place += 1;
    }
    (by_lane, first)
}

fn span(ops: &Ops, calls: &Calls, window: &Window) -> Option<(u64, u64)> {
    let work = ops
        .start
        .first()
        .map(|first| (*first, ops.end.iter().copied().max().unwrap_or(*first)));
    let called = calls
        .threads
        .iter()
        .filter(|thread| !thread.calls.is_empty())
        .map(|thread| {
            let ends = calls.end[thread.calls.clone()].iter().copied().max();
            (calls.start[thread.calls.start], ends.unwrap_or(0))
        })
        .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let (start, end) = work
        .into_iter()
        .chain(called)
        .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    Some((window.from.unwrap_or(start), window.to.unwrap_or(end))).map(|(from, to)| {
        let (from, to) = (from.max(start).min(end), to.min(end));
        (from, to.max(from))
    })
}

/// From the first to the last work. An end that was selected stays as it is: a GPU that waits at the start of a step is
/// idle, and a step may begin with CPU work before the first call of the trace.
fn base(trace: &Trace, ops: &Ops, window: &Window) -> (u64, u64) {
    let Some(first) = ops.start.first() else {
        return (0, 0);
    };
    let last = ops.end.iter().copied().max().unwrap_or(*first);
    let (first, last) = window.clipped(*first, last);
    let (begin, end) = trace
        .span()
        .map_or((first, last), |(begin, end)| (begin.0, end.0));
    (
        window.from.map_or(first, |from| from.max(begin).min(first)),
        window.to.map_or(last, |to| to.min(end).max(last)),
    )
}

fn stream_kinds(trace: &Trace, lanes: &[StreamKey]) -> Vec<StreamKind> {
    let known: BTreeMap<_, _> = trace
        .streams
        .iter()
        .map(|stream| ((stream.process, stream.context, stream.stream), stream.kind))
        .collect();
    lanes
        .iter()
        .map(|lane| {
            let key = (lane.process, lane.context, lane.stream);
            known.get(&key).copied().unwrap_or(StreamKind::UNKNOWN)
        })
        .collect()
}

/// How far off the timeline device times can be, by the clock pairs of their blocks.
fn uncertainty(trace: &Trace) -> u64 {
    let device_work = [BlockKind::KERNELS, BlockKind::COPIES, BlockKind::SETS];
    trace
        .blocks()
        .iter()
        .filter(|block| device_work.contains(&block.header.kind))
        .map(|block| {
            let time = Timestamp(block.header.first_time);
            trace.clock_map.convert(block.header.clock, time).uncertainty
        })
        .max()
        .unwrap_or(0)
}
