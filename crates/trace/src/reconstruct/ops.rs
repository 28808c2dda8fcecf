//! Device work in compact columns, in the order of its start.
//!
//! A trace of ten million kernels must fit: a piece of work takes some forty bytes here. What repeats (where it ran, what
//! it was) is a small number into a list of distinct values, which are interned block by block, as the file shares them.

use rustc_hash::FxHashSet;
use tracesmith_format::tables::{
    CopyDirection, CopyShape, GraphLaunch, GraphLaunches, GraphShape, Kernel, KernelShape, Kernels,
    MemoryCopies, MemoryCopy, MemorySet, MemorySets, Place, SetShape,
};
use tracesmith_format::{
    Block, CorrelationId, DeviceId, GraphId, GraphNodeId, ProcessId, Projection, StackId, StringId, Table,
    Timestamp,
};

use super::calls::CallId;
use super::class::OpClass;
use super::data_quality::DataQuality;
use super::intern::Interner;
use super::order::{order_by, put_in_order};
use super::{StreamIndex, StreamKey, Window};
use crate::error::Error;
use crate::model::clocks::ClockLine;
use crate::model::event::EventName;
use crate::model::table::TableView;
use crate::model::trace::Trace;
use crate::selection::Selected;

/// Number of a piece of device work, in the order of start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u32);

impl OpId {
    /// None.
    pub const NONE: Self = OpId(u32::MAX);

    /// Whether this names one.
    pub fn is_some(self) -> bool {
        self != Self::NONE
    }

    /// As an index.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The table that a piece of device work is a row of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OpTable {
    /// Kernels.
    Kernels,
    /// Copies.
    Copies,
    /// Sets.
    Sets,
    /// Graphs that were recorded as a whole.
    GraphLaunches,
}

impl OpTable {
    /// The table's name in a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernels => "kernels",
            Self::Copies => "copies",
            Self::Sets => "sets",
            Self::GraphLaunches => "graph_launches",
        }
    }
}

/// What a piece of device work is; equal for all that are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpKind {
    /// Its class.
    pub class: OpClass,
    /// Its table.
    pub table: OpTable,
    /// Its name.
    pub name: EventName,
    /// Blocks of the grid.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// The graph that it was part of.
    pub graph: GraphId,
    /// For a copy between devices, those.
    pub peers: (DeviceId, DeviceId),
}

/// All device work of a trace, column by column.
#[derive(Debug, Default)]
pub struct Ops {
    /// When each started, in order.
    pub start: Vec<u64>,
    /// When each ended; never before its start.
    pub end: Vec<u64>,
    /// Where each ran.
    pub lane: Vec<StreamIndex>,
    /// What each is: a place in `kinds`.
    pub kind: Vec<u32>,
    /// The call that asked for each.
    pub call: Vec<CallId>,
    /// Its row in its table.
    pub row: Vec<u32>,
    /// The code that asked for each; empty when the trace has no stacks.
    pub stack: Vec<StackId>,
    /// The distinct kinds.
    pub kinds: Vec<OpKind>,
}

/// One piece of device work.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// When it started.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// Where it ran.
    pub lane: StreamIndex,
    /// What it is.
    pub kind: OpKind,
    /// The call that asked for it.
    pub call: CallId,
    /// Its row in its table.
    pub row: u32,
    /// The code that asked for it.
    pub stack: StackId,
}

impl Ops {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.start.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// All numbers.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = OpId> + DoubleEndedIterator + Clone + use<> {
        (0..self.len() as u32).map(OpId)
    }

    /// One of them.
    pub fn get(&self, id: OpId) -> Op {
        let at = id.index();
        Op {
            start: self.start[at],
            end: self.end[at],
            lane: self.lane[at],
            kind: self.kinds[self.kind[at] as usize],
            call: self.call.get(at).copied().unwrap_or(CallId::NONE),
            row: self.row[at],
            stack: self.stack.get(at).copied().unwrap_or(StackId::NONE),
        }
    }

    /// What one of them is.
    #[inline]
    pub fn kind(&self, id: OpId) -> &OpKind {
        &self.kinds[self.kind[id.index()] as usize]
    }

    /// What class of work one of them is.
    #[inline]
    pub fn class(&self, id: OpId) -> OpClass {
        self.kind(id).class
    }

    /// Nanoseconds that one of them took.
    #[inline]
    pub fn duration(&self, id: OpId) -> u64 {
        self.end[id.index()] - self.start[id.index()]
    }
}

/// Device work as it is read, before it is in order.
#[derive(Default)]
pub(super) struct Gathered {
    start: Vec<u64>,
    end: Vec<u64>,
    lane: Vec<StreamIndex>,
    kind: Vec<u32>,
    row: Vec<u32>,
    stack: Vec<StackId>,
    node: Vec<GraphNodeId>,
    correlation: Vec<CorrelationId>,
    lanes: Interner<StreamKey>,
    kinds: Interner<OpKind>,
}

/// Device work in order, and what it is joined by.
pub(super) struct InOrder {
    pub(super) ops: Ops,
    pub(super) correlations: Vec<CorrelationId>,
    /// The graph's node that each was; empty when the trace has no graphs.
    pub(super) nodes: Vec<GraphNodeId>,
    pub(super) lanes: Vec<StreamKey>,
}

/// What all tables of device work have, of one block: times on the timeline, and what else is needed of each row.
struct Part<S> {
    first_row: u64,
    start: Vec<u64>,
    end: Vec<u64>,
    correlation: Vec<CorrelationId>,
    stack: Vec<StackId>,
    /// The graph's node that each was; empty where the table has none.
    node: Vec<GraphNodeId>,
    place: (Vec<Place>, Vec<u32>),
    shape: (Vec<S>, Vec<u32>),
}

const COLUMNS: [&str; 8] = [
    "start",
    "end",
    "correlation",
    "stack",
    "place.process",
    "place.device",
    "place.context",
    "place.stream",
];

/// The first row of each block of a table, by the block's offset.
pub(crate) fn first_rows<T: Table>(table: &TableView<T>) -> impl Fn(&Block) -> u64 + Sync + use<T> {
    let mut rows = 0;
    let firsts: Vec<(u64, u64)> = table
        .blocks()
        .map(|block| {
            let first = (block.offset, rows);
            rows += u64::from(block.header.rows);
            first
        })
        .collect();
    move |block| {
        let at = firsts.binary_search_by_key(&block.offset, |(offset, _)| *offset);
        at.map_or(0, |at| firsts[at].1)
    }
}

/// Both ends of a block's rows on the timeline.
pub(crate) fn times_on(
    mut line: ClockLine<'_>,
    start: &[Timestamp],
    end: &[Timestamp],
) -> (Vec<u64>, Vec<u64>) {
    (
        start.iter().map(|time| line.convert(*time)).collect(),
        end.iter().map(|time| line.convert(*time)).collect(),
    )
}

macro_rules! read_table {
    ($gathered:ident, $trace:ident, $within:expr, $doubts:ident, $table:ident: $row:ty, $nodes:expr, [$($more:literal),*],
     $kind:expr) => {{
        let mut names = COLUMNS.to_vec();
        names.extend([$($more),*]);
        let wanted = Projection::of::<$row>(&names)?;
        let first_row = first_rows(&$trace.$table);
        let mut is_full = false;
        $trace.$table.stream_wanted(
            &wanted,
            |block, mut rows: <$row as Table>::Columns| {
                let node = $nodes(&mut rows);
                let (start, end) = times_on($trace.clock_map.line(block.header.clock), &rows.start, &rows.end);
                Part {
                    first_row: first_row(block),
                    start,
                    end,
                    correlation: rows.correlation,
                    stack: rows.stack,
                    node,
                    place: (rows.place.values, rows.place.index),
                    shape: (rows.shape.values, rows.shape.index),
                }
            },
            |part| is_full |= !$gathered.add(part, $within, $doubts, $kind),
        );
        if is_full {
            return Err(Error::TooLarge { what: "pieces of device work" });
        }
    }};
}

impl Gathered {
    /// Reads all selected device work that reaches into the window.
    pub(super) fn read(
        trace: &Trace,
        (window, selected): (&Window, &Selected),
        doubts: &mut DataQuality,
    ) -> Result<Self, Error> {
        let mut gathered = Gathered::default();
        if *window == Window::default() {
            gathered.reserve(expected_rows(
                trace,
                &[trace.kernels.rows(), trace.copies.rows(), trace.sets.rows()],
            ));
        }
        let mut classes: rustc_hash::FxHashMap<StringId, OpClass> = rustc_hash::FxHashMap::default();
        let mut kernel = |shape: &KernelShape| {
            let name = if shape.demangled.is_some() {
                shape.demangled
            } else {
                shape.name
            };
            OpKind {
                class: *classes
                    .entry(name)
                    .or_insert_with(|| OpClass::of_kernel(trace.string(name))),
                table: OpTable::Kernels,
                name: EventName::Id(name),
                grid: [shape.grid_x, shape.grid_y, shape.grid_z],
                block: [shape.block_x, shape.block_y, shape.block_z],
                graph: shape.graph,
                peers: Default::default(),
            }
        };
        read_table!(gathered, trace, (window, selected), doubts, kernels: Kernel,
            |rows: &mut Kernels| std::mem::take(&mut rows.graph_node), ["graph_node", "shape.name", "shape.demangled",
            "shape.grid_x", "shape.grid_y", "shape.grid_z", "shape.block_x", "shape.block_y", "shape.block_z",
            "shape.graph"], &mut kernel);
        read_table!(gathered, trace, (window, selected), doubts, copies: MemoryCopy,
            |rows: &mut MemoryCopies| std::mem::take(&mut rows.graph_node), ["graph_node", "shape.direction", "shape.graph",
            "shape.source_device", "shape.destination_device"],
            &mut |shape: &CopyShape| plain(OpClass::Copy, OpTable::Copies, copy_word(shape.direction), shape.graph,
                (shape.source_device, shape.destination_device)));
        read_table!(gathered, trace, (window, selected), doubts, sets: MemorySet,
            |rows: &mut MemorySets| std::mem::take(&mut rows.graph_node), ["graph_node", "shape.graph"],
            &mut |shape: &SetShape| plain(OpClass::Set, OpTable::Sets, "set", shape.graph, Default::default()));
        if trace.graph_launches.rows() > 0 {
            gathered.read_graphs(trace, (window, selected), doubts)?;
        }
        Ok(gathered)
    }

    fn reserve(&mut self, rows: usize) {
        self.start.reserve(rows);
        self.end.reserve(rows);
        self.lane.reserve(rows);
        self.kind.reserve(rows);
        self.row.reserve(rows);
        self.correlation.reserve(rows);
    }

    /// Graphs that were recorded as a whole. One whose nodes were recorded too is no work of its own.
    fn read_graphs(
        &mut self,
        trace: &Trace,
        (window, selected): (&Window, &Selected),
        doubts: &mut DataQuality,
    ) -> Result<(), Error> {
        let nodes: FxHashSet<(ProcessId, CorrelationId)> = (0..self.start.len())
            .filter(|at| self.kinds.values[self.kind[*at] as usize].graph.is_some())
            .map(|at| {
                (
                    self.lanes.values[self.lane[at].index()].process,
                    self.correlation[at],
                )
            })
            .collect();
        let mut whole = Gathered::default();
        read_table!(whole, trace, (window, selected), doubts, graph_launches: GraphLaunch, |_: &mut GraphLaunches| Vec::new(),
            ["shape.graph"],
            &mut |shape: &GraphShape| plain(OpClass::Compute, OpTable::GraphLaunches, "graph launch", shape.graph,
                Default::default()));
        for at in 0..whole.start.len() {
            let lane = whole.lanes.values[whole.lane[at].index()];
            if nodes.contains(&(lane.process, whole.correlation[at])) {
                continue;
            }
            self.start.push(whole.start[at]);
            self.end.push(whole.end[at]);
            self.lane.push(StreamIndex(self.lanes.number(lane)));
            self.kind
                .push(self.kinds.number(whole.kinds.values[whole.kind[at] as usize]));
            self.row.push(whole.row[at]);
            self.correlation.push(whole.correlation[at]);
            let stack = whole.stack.get(at).copied().unwrap_or(StackId::NONE);
            push_some(&mut self.stack, self.start.len(), stack);
        }
        Ok(())
    }

    /// Adds the selected rows of a block that are in the window; false when there are more than can be counted.
    fn add<S>(
        &mut self,
        part: Part<S>,
        (window, selected): (&Window, &Selected),
        doubts: &mut DataQuality,
        kind: &mut dyn FnMut(&S) -> OpKind,
    ) -> bool {
        if self.start.len() + part.start.len() >= u32::MAX as usize {
            return false;
        }
        let mut lane = |place: &Place| self.lanes.number(StreamKey::of(place));
        let lanes: Vec<Option<u32>> = part
            .place
            .0
            .iter()
            .map(|place| selected.wants_place(place).then(|| lane(place)))
            .collect();
        let kinds = self.kinds.numbers(part.shape.0.iter().map(kind));
        for row in 0..part.start.len() {
            let Some(lane) = lanes[part.place.1[row] as usize] else {
                continue;
            };
            let (start, mut end) = (part.start[row], part.end[row]);
            if start == 0 || end == 0 {
                doubts.without_time += 1;
                continue;
            }
            if end < start {
                doubts.backwards += 1;
                end = start;
            }
            if !window.touches(start, end) {
                continue;
            }
            self.start.push(start);
            self.end.push(end);
            self.lane.push(StreamIndex(lane));
            self.kind.push(kinds[part.shape.1[row] as usize]);
            self.row.push((part.first_row + row as u64) as u32);
            self.correlation.push(part.correlation[row]);
            push_some(&mut self.stack, self.start.len(), part.stack[row]);
            if let Some(node) = part.node.get(row) {
                push_some(&mut self.node, self.start.len(), *node);
            }
        }
        true
    }

    /// Puts everything in the order of start; those of equal start stay as they stand in the file.
    pub(super) fn in_order(mut self) -> InOrder {
        self.stack = filled_up(self.stack, self.start.len());
        self.node = filled_up(self.node, self.start.len());
        if let Some(order) = order_by(self.start.len(), |row| self.start[row]) {
            put_in_order(order, |a, b| self.swap(a, b));
        }
        let ops = Ops {
            start: self.start,
            end: self.end,
            lane: self.lane,
            kind: self.kind,
            row: self.row,
            stack: self.stack,
            call: Vec::new(),
            kinds: self.kinds.values,
        };
        InOrder {
            ops,
            correlations: self.correlation,
            nodes: self.node,
            lanes: self.lanes.values,
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.start.swap(a, b);
        self.end.swap(a, b);
        self.lane.swap(a, b);
        self.kind.swap(a, b);
        self.row.swap(a, b);
        self.correlation.swap(a, b);
        if !self.stack.is_empty() {
            self.stack.swap(a, b);
        }
        if !self.node.is_empty() {
            self.node.swap(a, b);
        }
    }
}

/// Notes something of the last of `rows` rows that most traces have of none: the column begins with the first that has it,
/// and ends with the last one.
fn push_some<T: Copy + Default + PartialEq>(column: &mut Vec<T>, rows: usize, value: T) {
    if value != T::default() {
        column.resize(rows - 1, T::default());
        column.push(value);
    }
}

/// The column with an entry for every row; empty when no row has one.
fn filled_up<T: Copy + Default>(mut column: Vec<T>, rows: usize) -> Vec<T> {
    if !column.is_empty() {
        column.resize(rows, T::default());
    }
    column
}

/// Rows to make room for at once. Block headers may claim anything, so no more than a file of that size can well hold.
fn expected_rows(trace: &Trace, rows: &[u64]) -> usize {
    let claimed = rows.iter().fold(0u64, |sum, rows| sum.saturating_add(*rows));
    usize::try_from(claimed.min(trace.file_bytes())).unwrap_or(0)
}

fn plain(
    class: OpClass,
    table: OpTable,
    word: &'static str,
    graph: GraphId,
    peers: (DeviceId, DeviceId),
) -> OpKind {
    OpKind {
        class,
        table,
        name: EventName::Word(word),
        grid: [0; 3],
        block: [0; 3],
        graph,
        peers,
    }
}

fn copy_word(direction: CopyDirection) -> &'static str {
    match direction {
        CopyDirection::UNKNOWN => "copy",
        other => other.name().unwrap_or("copy"),
    }
}

impl StreamKey {
    /// Where a row's work ran.
    pub(super) fn of(place: &Place) -> Self {
        let Place {
            process,
            device,
            context,
            stream,
            ..
        } = *place;
        StreamKey {
            process,
            device,
            context,
            stream,
        }
    }
}
