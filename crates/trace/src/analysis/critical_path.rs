//! The critical path: what held what up, from the last node back to the first, and how much room everything else had.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::cpu_ahead::{CpuAhead, is_doubtful};
use super::host_activity::HostTime;
use super::kernels::share;
use super::registry::{Analyzer, Answer, Need, row};
use crate::model::event::EventName;
use crate::model::trace::Trace;
use crate::reconstruct::{
    Activity, Dependencies, ExecutionGraph, Interner, LinkKind, Node, OpTable, Timing, Window, name_of,
};

pub(super) const ANALYZER: Analyzer = Analyzer {
    name: "critical-path",
    aliases: &[],
    description: "What determines the total time",
    needs: Need::OpsOrCalls,
    run: |analysis, _| {
        let report = PathAndHost {
            path: analysis.critical_path(),
            host: analysis.host_on_path()?,
        };
        Ok(Answer::whole(Arc::new(report), |report| {
            Box::new(report.path.segments.iter().map(row))
        }))
    },
};

/// The critical path, and what the CPU did in its part of it.
#[derive(Clone, Debug)]
pub struct PathAndHost {
    /// The path.
    pub path: Arc<CriticalPathReport>,
    /// What the CPU did.
    pub host: Arc<HostTime>,
}

impl Serialize for PathAndHost {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Flat<'a> {
            #[serde(flatten)]
            path: &'a CriticalPathReport,
            host: &'a HostTime,
        }
        let (path, host) = (&*self.path, &*self.host);
        Flat { path, host }.serialize(serializer)
    }
}

/// What held what up.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CriticalPathReport {
    /// From the start of the path to its end.
    pub path_ns: u64,
    /// From the first to the last node of the graph, or as selected.
    pub span_ns: u64,
    /// What the time went to, the most first.
    pub totals: Vec<PathTotal>,
    /// The path itself, in the order of time.
    pub segments: Segments,
    /// Kernels that were not on the path, by name, with the least room first.
    pub slack: Vec<SlackRow>,
    /// Waits for events whose stream was assumed.
    pub assumed_records: u64,
    /// Waits for events that were not found.
    pub unknown_records: u64,
    /// Waits of the host that name neither stream nor device, in a process with several devices. The path leaves them out.
    pub unknown_waits: u64,
    /// Launches of graphs on several streams whose nodes' order is not known.
    pub unordered_graphs: u64,
    /// Launches that blocked because the queue of their stream was full.
    pub blocked_launches: u64,
    /// Launches before which the host seems to have waited for its work without a call. Such a wait is assumed.
    pub assumed_waits: u64,
    /// Dependencies that the times contradict.
    pub contradicted: u64,
    /// Waits of a stream for another one that no row states, assumed from the times.
    pub assumed_edges: u64,
    /// CPU code on the path during which launched work had not started, if that makes the path doubtful; else 0.
    pub cpu_ahead_ns: u64,
}

/// What a stretch of the path went to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PathPart {
    /// Work on a device.
    Work,
    /// From the call to the start on the device.
    Launch,
    /// From the end of the work before it on the stream to the start.
    Dispatch,
    /// From the end of work on another stream to the start.
    StreamWait,
    /// The host, between and in calls.
    Host,
    /// From the end of work to the return of the call that waited for it.
    HostWait,
}

impl PathPart {
    /// Its name in JSON and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Launch => "launch",
            Self::Dispatch => "dispatch",
            Self::StreamWait => "stream_wait",
            Self::Host => "host",
            Self::HostWait => "host_wait",
        }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Work => "GPU work",
            Self::Launch => "launch (call to GPU start)",
            Self::Dispatch => "queue delay on the same stream",
            Self::StreamWait => "wait for another stream",
            Self::Host => "CPU code",
            Self::HostWait => "CPU wakes up after a wait",
        }
    }
}

/// The time that the path spent with one thing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathTotal {
    /// What kind of thing.
    pub part: PathPart,
    /// Its name: a kernel's, or nothing.
    pub name: String,
    /// The time.
    pub total_ns: u64,
    /// Share of the path.
    pub share: f64,
    /// How often.
    pub count: u64,
}

/// A stretch of the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Segment {
    /// What it went to.
    pub part: PathPart,
    /// Where it starts.
    pub from_ns: u64,
    /// Where it ends.
    pub to_ns: u64,
    /// The work or call that it ends with.
    pub name: Arc<str>,
    /// The table that the work is in; none for calls.
    pub table: Option<OpTable>,
    /// The row of the work in its table.
    pub row: Option<u32>,
}

/// The stretches of the path, in the order of time. There may be twice as many as kernels, so what repeats is kept once:
/// one takes twenty-four bytes.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    kinds: Vec<(PathPart, Option<OpTable>, Arc<str>)>,
    stretches: Vec<Stretch>,
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    from_ns: u64,
    to_ns: u64,
    /// A place in `kinds`.
    kind: u32,
    /// `NO_ROW` for calls.
    row: u32,
}

const NO_ROW: u32 = u32::MAX;

impl Segments {
    /// The critical path by some times, as far as it lies in a time range, and its length.
    pub(super) fn of(
        trace: &Trace,
        activity: &Activity,
        timing: &impl Timing,
        window: Window,
    ) -> (Self, u64) {
        let mut path = Path::new(activity);
        let critical = timing.critical();
        if let Some((from, begin)) = timing.before(&critical, window) {
            path.begin(timing.graph(), critical[0] as usize, (from, begin));
        }
        for at in critical {
            path.add(timing, at as usize);
        }
        path.clip(window);
        let segments = path.segments(trace);
        let path_ns = match (segments.stretches.first(), segments.stretches.last()) {
            (Some(first), Some(last)) => last.to_ns.saturating_sub(first.from_ns),
            _ => 0,
        };
        (segments, path_ns)
    }

    /// What the time went to, the most first.
    pub(super) fn totals(&self, path_ns: u64) -> Vec<PathTotal> {
        totals(self, self.stretches.iter().copied(), path_ns)
    }

    /// The same of some time ranges together, which may overlap.
    pub(super) fn totals_in(&self, ranges: &[(u64, u64)]) -> Vec<PathTotal> {
        let of_range = |(from, to): &(u64, u64)| {
            let (from, to) = (*from, *to);
            let first = self.stretches.partition_point(|stretch| stretch.to_ns <= from);
            let touched = self.stretches[first..]
                .iter()
                .take_while(move |stretch| stretch.from_ns < to);
            touched.map(move |stretch| Stretch {
                from_ns: stretch.from_ns.max(from),
                to_ns: stretch.to_ns.min(to).max(stretch.from_ns.max(from)),
                ..*stretch
            })
        };
        let stretches = ranges.iter().flat_map(of_range);
        let path_ns = stretches
            .clone()
            .map(|stretch| stretch.to_ns - stretch.from_ns)
            .sum();
        totals(self, stretches, path_ns)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.stretches.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// All of them, in the order of time.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Segment> + '_ {
        self.stretches.iter().map(|stretch| {
            let (part, table, name) = &self.kinds[stretch.kind as usize];
            Segment {
                part: *part,
                table: *table,
                from_ns: stretch.from_ns,
                to_ns: stretch.to_ns,
                name: Arc::clone(name),
                row: (stretch.row != NO_ROW).then_some(stretch.row),
            }
        })
    }

    /// When the path is CPU code.
    fn host_stretches(&self) -> impl Iterator<Item = (u64, u64)> + Clone {
        let is_host = move |stretch: &&Stretch| self.kinds[stretch.kind as usize].0 == PathPart::Host;
        let of_host = self.stretches.iter().filter(is_host);
        of_host.map(|stretch| (stretch.from_ns, stretch.to_ns))
    }

    /// The name of every segment, in the order of time.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.stretches
            .iter()
            .map(|stretch| &*self.kinds[stretch.kind as usize].2)
    }
}

impl Serialize for Segments {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// How much later kernels of a name could have ended without making the end any later.
#[derive(Clone, Debug, Serialize)]
pub struct SlackRow {
    /// The name.
    pub name: String,
    /// How many there are.
    pub count: u64,
    /// How many are on the path, without any room.
    pub on_path: u64,
    /// The least room.
    pub min_slack_ns: u64,
    /// On average.
    pub mean_slack_ns: f64,
}

impl CriticalPathReport {
    /// Finds the critical path of a graph that was built with these dependencies, as far as it lies in a time range.
    pub fn of(
        trace: &Trace,
        activity: &Activity,
        dependencies: &Dependencies,
        graph: &ExecutionGraph,
        window: Window,
    ) -> Self {
        let slack = slack(trace, activity, graph, window);
        let (segments, path_ns) = Segments::of(trace, activity, graph, window);
        let host = segments.host_stretches();
        let host_ns: u64 = host
            .clone()
            .map(|(from, to)| to.saturating_sub(from))
            .fold(0, u64::saturating_add);
        let ahead_ns = CpuAhead::of(activity).within(host);
        let cpu_ahead_ns = match is_doubtful(path_ns, host_ns, ahead_ns) {
            true => ahead_ns,
            false => 0,
        };
        CriticalPathReport {
            path_ns,
            span_ns: graph.span_within(window),
            totals: segments.totals(path_ns),
            segments,
            slack,
            assumed_records: dependencies.assumed_records,
            unknown_records: dependencies.unknown_records,
            unknown_waits: dependencies.unknown_waits,
            unordered_graphs: dependencies.unordered_graphs,
            blocked_launches: graph.blocked_launches,
            assumed_waits: graph.waits_without_call,
            contradicted: dependencies.contradicted,
            assumed_edges: dependencies.assumed_edges,
            cpu_ahead_ns,
        }
    }
}

/// The path while it is put together.
struct Path<'a> {
    activity: &'a Activity,
    /// For each kind of work a number of its table and name: kinds with the same share it.
    of_work: Vec<u32>,
    /// For each function the same.
    of_function: Vec<u32>,
    names: Interner<(Option<OpTable>, EventName)>,
    kinds: Interner<(PathPart, u32)>,
    stretches: Vec<Stretch>,
}

impl<'a> Path<'a> {
    fn new(activity: &'a Activity) -> Self {
        let mut names = Interner::default();
        let of_work = names.numbers(
            activity
                .ops
                .kinds
                .iter()
                .map(|kind| (Some(kind.table), kind.name)),
        );
        let functions = activity.calls.functions.iter();
        let of_function = names.numbers(functions.map(|(name, _)| (None, EventName::Id(*name))));
        Path {
            activity,
            of_work,
            of_function,
            names,
            kinds: Interner::default(),
            stretches: Vec::new(),
        }
    }

    /// The CPU's time before the first node.
    fn begin(&mut self, graph: &ExecutionGraph, first: usize, times: (u64, u64)) {
        let (name, row) = self.name_and_row(graph, first);
        self.push(PathPart::Host, name, times, row);
    }

    fn name_and_row(&self, graph: &ExecutionGraph, at: usize) -> (u32, u32) {
        match graph.nodes[at] {
            Node::Op(op) => (
                self.of_work[self.activity.ops.kind[op.index()] as usize],
                self.activity.ops.row[op.index()],
            ),
            Node::Launch(call) | Node::Wait(call) => (
                self.of_function[self.activity.calls.function[call.index()] as usize],
                NO_ROW,
            ),
        }
    }

    /// The stretch between a node and what held it up, and for work its own time.
    fn add(&mut self, timing: &impl Timing, at: usize) {
        let time = timing.time(at);
        let begin = time - timing.length(at);
        let (name, row) = self.name_and_row(timing.graph(), at);
        if let Some((from, kind)) = timing.held_by(at) {
            // The path never goes back: an op may end before the one that it overlaps.
            let reached = self.stretches.last().map_or(0, |last| last.to_ns);
            let from = timing.time(from as usize).max(reached);
            if begin > from {
                self.push(part_of(kind), name, (from, begin), row);
            }
        }
        if let Node::Op(_) = timing.graph().nodes[at] {
            // Work that began before the one that held it up ended, as overlapping launches do, counts from there on.
            let reached = self.stretches.last().map_or(begin, |last| last.to_ns);
            let from = reached.max(begin);
            self.push(PathPart::Work, name, (from, time.max(from)), row);
        }
    }

    /// Leaves the part that lies in a time range.
    fn clip(&mut self, window: Window) {
        self.stretches.retain_mut(|stretch| {
            (stretch.from_ns, stretch.to_ns) = window.clip(stretch.from_ns, stretch.to_ns);
            stretch.to_ns > stretch.from_ns || window == Window::default()
        });
    }

    fn push(&mut self, part: PathPart, name: u32, (from_ns, to_ns): (u64, u64), row: u32) {
        self.stretches.push(Stretch {
            from_ns,
            to_ns,
            kind: self.kinds.number((part, name)),
            row,
        });
    }

    fn segments(self, trace: &Trace) -> Segments {
        let kinds = self.kinds.values.iter().map(|(part, number)| {
            let (table, name) = self.names.values[*number as usize];
            (*part, table, name_of(trace, name).into())
        });
        Segments {
            kinds: kinds.collect(),
            stretches: self.stretches,
        }
    }
}

fn part_of(kind: LinkKind) -> PathPart {
    match kind {
        LinkKind::Launched => PathPart::Launch,
        LinkKind::Stream => PathPart::Dispatch,
        LinkKind::Waited(_) => PathPart::StreamWait,
        LinkKind::HostWaited | LinkKind::FullQueue | LinkKind::AssumedWait => PathPart::HostWait,
        LinkKind::Host | LinkKind::OtherThread => PathPart::Host,
    }
}

fn totals(segments: &Segments, stretches: impl Iterator<Item = Stretch>, path_ns: u64) -> Vec<PathTotal> {
    let mut of_kind = vec![(0u64, 0u64); segments.kinds.len()];
    for stretch in stretches {
        let sum = &mut of_kind[stretch.kind as usize];
        *sum = (sum.0 + stretch.to_ns - stretch.from_ns, sum.1 + 1);
    }
    let mut sums: FxHashMap<(PathPart, &str), (u64, u64)> = FxHashMap::default();
    for ((part, _, name), (total_ns, count)) in segments.kinds.iter().zip(of_kind) {
        if count == 0 {
            continue;
        }
        let name = if *part == PathPart::Work { &**name } else { "" };
        let sum = sums.entry((*part, name)).or_default();
        *sum = (sum.0 + total_ns, sum.1 + count);
    }
    let mut totals: Vec<PathTotal> = sums
        .into_iter()
        .map(|((part, name), (total_ns, count))| PathTotal {
            part,
            name: name.to_owned(),
            total_ns,
            share: share(total_ns, path_ns),
            count,
        })
        .collect();
    totals.sort_by(|a, b| (b.total_ns, a.part, &a.name).cmp(&(a.total_ns, b.part, &b.name)));
    totals
}

fn slack(trace: &Trace, activity: &Activity, graph: &ExecutionGraph, window: Window) -> Vec<SlackRow> {
    let slack = graph.slack();
    let mut of_kind = vec![(0u64, 0u64, u64::MAX, 0u128); activity.ops.kinds.len()];
    for (at, node) in graph.nodes.iter().enumerate() {
        if let Node::Op(op) = node
            && activity.touches(*op, &window)
        {
            let sum = &mut of_kind[activity.ops.kind[op.index()] as usize];
            sum.0 += 1;
            sum.1 += u64::from(slack[at] == 0);
            sum.2 = sum.2.min(slack[at]);
            sum.3 += u128::from(slack[at]);
        }
    }
    let mut sums: FxHashMap<&str, (u64, u64, u64, u128)> = FxHashMap::default();
    for (kind, of_kind) in activity.ops.kinds.iter().zip(of_kind) {
        let sum = sums
            .entry(name_of(trace, kind.name))
            .or_insert((0, 0, u64::MAX, 0));
        *sum = (
            sum.0 + of_kind.0,
            sum.1 + of_kind.1,
            sum.2.min(of_kind.2),
            sum.3 + of_kind.3,
        );
    }
    let mut rows: Vec<SlackRow> = sums
        .into_iter()
        .filter(|(_, (count, ..))| *count > 0)
        .map(|(name, (count, on_path, min_slack_ns, sum))| SlackRow {
            name: name.to_owned(),
            count,
            on_path,
            min_slack_ns,
            mean_slack_ns: sum as f64 / count as f64,
        })
        .collect();
    rows.sort_by(|a, b| (a.min_slack_ns, b.on_path, &a.name).cmp(&(b.min_slack_ns, a.on_path, &b.name)));
    rows
}
