//! What had to be over before something could start.
//!
//! Two dependencies hold for all work and are not listed: on the call that asked for it, and on the work before it on its
//! stream. Listed are those that tie streams together: waits for events, the order that CUDA's default stream imposes, that
//! of graphs, and copies between devices that are in order with both.
//! Beside them stand the calls in which the host waited, each with the work that it waited for.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use rustc_hash::FxHashMap;
use serde::Serialize;
use tracesmith_format::tables::{StreamKind, SyncKind};
use tracesmith_format::{ContextId, ProcessId};

use super::activity::{Activity, Lane, LaneId};
use super::calls::CallId;
use super::class::CallClass;
use super::graph_edges::GraphOrder;
use super::ops::OpId;
use super::syncs::Sync;

/// Why one piece of work waits for another on another stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EdgeWhy {
    /// Its stream was told to wait for an event that was recorded behind the other.
    Event,
    /// One of the two is on the default stream that waits for all others.
    DefaultStream,
    /// One of the two is of a graph: its node waits for the other's, or the graph as a whole stands before or behind it.
    Graph,
    /// One of the two is a copy between devices that waits for all work of both, and the other is such work.
    PeerCopy,
}

/// One piece of work waits for another on another stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The one that waits.
    pub to: OpId,
    /// The one that is waited for.
    pub from: OpId,
    /// Why.
    pub why: EdgeWhy,
}

/// A call in which the host waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostWait {
    /// The call.
    pub call: CallId,
    /// The last work that it waited for.
    pub op: OpId,
}

/// What ties streams and the host together.
#[derive(Clone, Debug, Default)]
pub struct Dependencies {
    /// Sorted by the one that waits.
    pub edges: Vec<Edge>,
    /// Sorted by call.
    pub host_waits: Vec<HostWait>,
    /// Waits whose event was recorded on a stream that the trace does not name; the stream that the recording thread used
    /// last was taken.
    pub assumed_records: u64,
    /// Waits whose event was not found. Those that were made while a stream was captured are no waits, and not counted.
    pub unknown_records: u64,
    /// Launches of graphs on several streams whose nodes' order is not known.
    pub unordered_graphs: u64,
    /// Dependencies that the times contradict, left out.
    pub contradicted: u64,
}

/// Times of two streams may be off by this much before a dependency is contradicted.
const TOLERANCE: u64 = 1_000;

impl Dependencies {
    /// Works them out.
    pub fn of(activity: &Activity) -> Self {
        let mut dependencies = Dependencies::default();
        let index = Index::of(activity);
        let recorded = dependencies.records(activity, &index);
        dependencies.event_edges(activity, &index, &recorded);
        dependencies.default_stream_edges(activity);
        dependencies.graph_edges(activity);
        dependencies.peer_copy_edges(activity, &index);
        dependencies.edges.sort_unstable();
        dependencies.edges.dedup_by_key(|edge| (edge.to, edge.from));
        dependencies.waits(activity, &index, &recorded);
        dependencies
    }

    /// What a piece of work waits for on other streams.
    pub fn edges_to(&self, op: OpId) -> &[Edge] {
        let first = self.edges.partition_point(|edge| edge.to < op);
        let count = self.edges[first..]
            .iter()
            .take_while(|edge| edge.to == op)
            .count();
        &self.edges[first..first + count]
    }

    /// The work that the host waited for in a call.
    pub fn waited_for(&self, call: CallId) -> Option<OpId> {
        let at = self
            .host_waits
            .binary_search_by_key(&call, |wait| wait.call)
            .ok()?;
        Some(self.host_waits[at].op)
    }

    fn add(&mut self, activity: &Activity, from: OpId, to: OpId, why: EdgeWhy) {
        let ops = &activity.ops;
        if from == to || ops.lane[from.index()] == ops.lane[to.index()] {
            return;
        }
        if ops.end[from.index()] > ops.start[to.index()].saturating_add(TOLERANCE) {
            self.contradicted += 1;
        } else {
            self.edges.push(Edge { to, from, why });
        }
    }

    /// For each record of an event the last work before it: by rows that tell the stream, else by the call's thread.
    fn records(&mut self, activity: &Activity, index: &Index) -> FxHashMap<RecordKey, Option<OpId>> {
        let mut records: FxHashMap<RecordKey, Option<OpId>> = FxHashMap::default();
        for sync in activity
            .syncs
            .iter()
            .filter(|sync| sync.kind == SyncKind::EVENT_RECORD)
        {
            let before = index
                .lane(&sync.lane)
                .and_then(|lane| index.last_asked(activity, lane, asked_at(activity, sync)));
            records.insert(sync.record_key(), before);
        }
        for sync in activity.syncs.iter().filter(|sync| is_event_wait(sync)) {
            if records.contains_key(&sync.record_key()) {
                continue;
            }
            let is_recorded = sync.record_call.is_some()
                && activity.calls.class(sync.record_call.index()) == CallClass::EventRecord;
            let before = if !is_recorded {
                self.unknown_records += u64::from(!index.is_captured(activity, sync));
                None
            } else {
                match index.recording_lanes(activity, sync).as_deref() {
                    // Nothing ever ran on that stream.
                    Some([]) => None,
                    Some([lane]) => {
                        let recorded = activity.calls.start[sync.record_call.index()];
                        index.last_asked(activity, *lane, recorded)
                    }
                    _ => {
                        self.assumed_records += 1;
                        index.last_launch(activity, sync.record_call)
                    }
                }
            };
            records.insert(sync.record_key(), before);
        }
        records
    }

    fn event_edges(
        &mut self,
        activity: &Activity,
        index: &Index,
        records: &FxHashMap<RecordKey, Option<OpId>>,
    ) {
        for sync in activity
            .syncs
            .iter()
            .filter(|sync| sync.kind == SyncKind::STREAM_WAIT_EVENT)
        {
            let Some(Some(from)) = records.get(&sync.record_key()) else {
                continue;
            };
            let held = index
                .lane(&sync.lane)
                .and_then(|lane| index.first_asked(activity, lane, asked_at(activity, sync)));
            if let Some(to) = held {
                self.add(activity, *from, to, EdgeWhy::Event);
            }
        }
    }

    /// Work on the legacy default stream waits for all that was asked for before on blocking streams of its context, and
    /// they wait for it. Streams of unknown kind are taken as bound by nothing.
    fn default_stream_edges(&mut self, activity: &Activity) {
        let mut contexts: BTreeMap<(ProcessId, ContextId), Vec<LaneId>> = BTreeMap::new();
        for id in activity.lane_ids() {
            let kind = activity.stream_kind(id);
            if matches!(
                kind,
                StreamKind::LEGACY_DEFAULT | StreamKind::BLOCKING | StreamKind::PER_THREAD_DEFAULT
            ) {
                let lane = activity.lane(id);
                contexts.entry((lane.process, lane.context)).or_default().push(id);
            }
        }
        for lanes in contexts.into_values() {
            let is_legacy = |lane: LaneId| activity.stream_kind(lane) == StreamKind::LEGACY_DEFAULT;
            if lanes.len() < 2 || !lanes.iter().any(|lane| is_legacy(*lane)) {
                continue;
            }
            let mut work: Vec<(u64, OpId)> = lanes
                .iter()
                .flat_map(|lane| activity.ops_of(*lane))
                .map(|op| (activity.asked(*op), *op))
                .collect();
            work.sort_unstable();
            let mut last_of: FxHashMap<LaneId, OpId> = FxHashMap::default();
            let mut last_default: Option<OpId> = None;
            for (_, op) in work {
                let lane = activity.ops.lane[op.index()];
                if is_legacy(lane) {
                    let mut before: Vec<OpId> = last_of.drain().map(|(_, op)| op).collect();
                    before.sort_unstable();
                    for from in before {
                        self.add(activity, from, op, EdgeWhy::DefaultStream);
                    }
                    last_default = Some(op);
                } else if last_of.insert(lane, op).is_none()
                    && let Some(from) = last_default
                {
                    // Only the first on a stream after it needs to be told: the others follow by their order.
                    self.add(activity, from, op, EdgeWhy::DefaultStream);
                }
            }
        }
    }

    fn graph_edges(&mut self, activity: &Activity) {
        let order = GraphOrder::of(activity);
        self.unordered_graphs = order.unordered;
        for (from, to) in order.pairs {
            self.add(activity, from, to, EdgeWhy::Graph);
        }
    }

    /// A copy between devices that is not asynchronous is in order with all work of both, whatever their streams:
    /// <https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__MEMORY.html> (`cudaMemcpyPeer`). An asynchronous one is
    /// in order with its stream alone.
    fn peer_copy_edges(&mut self, activity: &Activity, index: &Index) {
        for op in activity.ops.ids() {
            let call = activity.ops.call[op.index()];
            if !call.is_some() || activity.calls.class(call.index()) != CallClass::PeerCopy {
                continue;
            }
            let (process, peers) = (
                activity.lane(activity.ops.lane[op.index()]).process,
                activity.ops.kind(op).peers,
            );
            let lanes = index.of_process.get(&process).into_iter().flatten();
            for lane in lanes.filter(|id| [peers.0, peers.1].contains(&activity.lane(**id).device)) {
                let asked = activity.calls.start[call.index()];
                if let Some(from) = index.last_asked(activity, *lane, asked) {
                    self.add(activity, from, op, EdgeWhy::PeerCopy);
                }
                if let Some(to) = index.first_asked(activity, *lane, asked) {
                    self.add(activity, op, to, EdgeWhy::PeerCopy);
                }
            }
        }
    }

    fn waits(&mut self, activity: &Activity, index: &Index, records: &FxHashMap<RecordKey, Option<OpId>>) {
        let told: FxHashMap<CallId, &Sync> = activity
            .syncs
            .iter()
            .filter(|sync| sync.call.is_some() && sync.kind != SyncKind::EVENT_RECORD)
            .map(|sync| (sync.call, sync))
            .collect();
        for (number, thread) in activity.calls.threads.iter().enumerate() {
            for at in thread.calls.clone() {
                if activity.calls.class(at) != CallClass::Sync || activity.calls.is_nested(at) {
                    continue;
                }
                let call = CallId(at as u32);
                let nested = (at + 1..thread.calls.end).take_while(|inner| activity.calls.is_nested(*inner));
                let sync = std::iter::once(at)
                    .chain(nested)
                    .find_map(|at| told.get(&CallId(at as u32)));
                let op = match sync {
                    Some(sync) if sync.kind == SyncKind::EVENT_WAIT => {
                        records.get(&sync.record_key()).copied().flatten()
                    }
                    Some(sync) if sync.kind == SyncKind::STREAM_WAIT => index
                        .lane(&sync.lane)
                        .and_then(|lane| index.last_asked(activity, lane, activity.calls.start[at])),
                    _ => index.last_to_end(activity, number, at),
                };
                // A wait cannot be over before what it waits for is.
                if let Some(op) = op.filter(|op| {
                    activity.ops.end[op.index()] <= activity.calls.end[at].saturating_add(TOLERANCE)
                }) {
                    self.host_waits.push(HostWait { call, op });
                }
            }
        }
        self.own_waits(activity);
        self.host_waits.sort_by_key(|wait| (wait.call, wait.op));
        self.host_waits.dedup_by_key(|wait| wait.call);
    }

    /// Copies that return when they are done: the work starts and ends within its own call.
    fn own_waits(&mut self, activity: &Activity) {
        let ops = &activity.ops;
        for op in ops.ids() {
            let call = ops.call[op.index()];
            if !call.is_some() {
                continue;
            }
            let (start, end) = (
                activity.calls.start[call.index()],
                activity.calls.end[call.index()],
            );
            let is_within = ops.start[op.index()] >= start && ops.end[op.index()] <= end;
            if is_within && activity.calls.class(call.index()) == CallClass::Copy {
                self.host_waits.push(HostWait { call, op });
            }
        }
    }
}

fn is_event_wait(sync: &Sync) -> bool {
    matches!(sync.kind, SyncKind::STREAM_WAIT_EVENT | SyncKind::EVENT_WAIT)
}

/// When something was asked for: at its call, else when it began.
fn asked_at(activity: &Activity, sync: &Sync) -> u64 {
    match sync.call.is_some() {
        true => activity.calls.start[sync.call.index()],
        false => sync.start,
    }
}

/// What tells the records of an event apart.
type RecordKey = (ProcessId, u64, u64);

impl Sync {
    fn record_key(&self) -> RecordKey {
        (self.lane.process, self.event, self.record)
    }
}

/// Finds work by the time at which it was asked for. On a stream that is the order in which it ran.
struct Index {
    lanes: FxHashMap<Lane, LaneId>,
    /// For each thread the calls that launched something, with the last work of each.
    launches: Vec<Vec<(u32, OpId)>>,
    of_process: FxHashMap<ProcessId, Vec<LaneId>>,
    captures: OnceCell<Captures>,
}

/// When streams were captured, by process.
type Captures = FxHashMap<ProcessId, Vec<RangeInclusive<u64>>>;

fn captures(activity: &Activity) -> Captures {
    let calls = &activity.calls;
    let mut captures = Captures::default();
    for thread in &calls.threads {
        let mut begun = None;
        for at in thread.calls.clone() {
            match (calls.class(at), begun) {
                (CallClass::CaptureBegin, None) => begun = Some(calls.start[at]),
                (CallClass::CaptureEnd, Some(start)) if !calls.is_nested(at) => {
                    captures
                        .entry(thread.process)
                        .or_default()
                        .push(start..=calls.end[at]);
                    begun = None;
                }
                _ => {}
            }
        }
    }
    captures
}

impl Index {
    fn of(activity: &Activity) -> Self {
        let mut launches: Vec<Vec<(u32, OpId)>> = vec![Vec::new(); activity.calls.threads.len()];
        if activity.syncs.iter().any(|sync| sync.record_call.is_some()) {
            for op in activity.ops.ids() {
                let call = activity.ops.call[op.index()];
                if call.is_some() {
                    launches[activity.calls.thread_of(call)].push((call.0, op));
                }
            }
            launches.iter_mut().for_each(|list| list.sort_unstable());
        }
        let mut of_process: FxHashMap<ProcessId, Vec<LaneId>> = FxHashMap::default();
        for id in activity.lane_ids() {
            of_process.entry(activity.lane(id).process).or_default().push(id);
        }
        Index {
            lanes: activity.lane_ids().map(|id| (*activity.lane(id), id)).collect(),
            launches,
            of_process,
            captures: OnceCell::new(),
        }
    }

    fn lane(&self, lane: &Lane) -> Option<LaneId> {
        self.lanes.get(lane).copied()
    }

    /// The stream that the event of a wait was recorded in, where the wait names it: that of the wait's own context, else
    /// all of its process with that number.
    fn recording_lanes(&self, activity: &Activity, sync: &Sync) -> Option<Vec<LaneId>> {
        let stream = sync.event_stream?;
        if let Some(lane) = self.lane(&Lane { stream, ..sync.lane }) {
            return Some(vec![lane]);
        }
        let lanes = self.of_process.get(&sync.lane.process).into_iter().flatten();
        let of_number = lanes.filter(|id| activity.lane(**id).stream == stream);
        Some(of_number.copied().collect())
    }

    /// Whether a wait was asked for while a stream of its process was captured: it is an edge of a graph then.
    fn is_captured(&self, activity: &Activity, sync: &Sync) -> bool {
        let captures = self.captures.get_or_init(|| captures(activity));
        let of_process = captures.get(&sync.lane.process).into_iter().flatten();
        let asked = asked_at(activity, sync);
        of_process.into_iter().any(|time| time.contains(&asked))
    }

    /// The last work of a stream that was asked for before a moment. Of a graph that was launched on it that is what ends
    /// last, wherever it ran.
    fn last_asked(&self, activity: &Activity, lane: LaneId, time: u64) -> Option<OpId> {
        let ops = activity.ops_of(lane);
        let after = ops.partition_point(|op| activity.asked(*op) <= time);
        let last = ops[after.checked_sub(1)?];
        let graphs = &activity.graphs;
        let launch = graphs.launch_of(last).map(|number| &graphs.launches()[number]);
        let Some(launch) = launch.filter(|launch| launch.lane == lane) else {
            return Some(last);
        };
        let work = graphs.work_of(launch).iter().map(|(_, op)| *op);
        work.max_by_key(|op| (activity.ops.end[op.index()], *op))
    }

    /// The first work of a stream that was asked for after a moment.
    fn first_asked(&self, activity: &Activity, lane: LaneId, time: u64) -> Option<OpId> {
        let ops = activity.ops_of(lane);
        ops.get(ops.partition_point(|op| activity.asked(*op) <= time))
            .copied()
    }

    /// The last work that a call's thread launched before it.
    fn last_launch(&self, activity: &Activity, call: CallId) -> Option<OpId> {
        let launches = &self.launches[activity.calls.thread_of(call)];
        let after = launches.partition_point(|(launch, _)| *launch < call.0);
        after.checked_sub(1).map(|at| launches[at].1)
    }

    /// Of the last work of each stream before a wait the one that ended last, yet not after the wait.
    fn last_to_end(&self, activity: &Activity, thread: usize, call: usize) -> Option<OpId> {
        let (start, end) = (activity.calls.start[call], activity.calls.end[call]);
        let lanes = self.of_process.get(&activity.calls.threads[thread].process)?;
        lanes
            .iter()
            .filter_map(|lane| self.last_asked(activity, *lane, start))
            .filter(|op| activity.ops.end[op.index()] <= end)
            .max_by_key(|op| (activity.ops.end[op.index()], *op))
    }
}
