//! What had to be over before something could start.
//!
//! Two dependencies hold for all work and are not listed: on the call that asked for it, and on the work before it on its
//! stream. Listed are those that tie streams together: waits for events, the order that CUDA's default stream imposes, that
//! of graphs, and copies between devices that are in order with both. Waits that no row states are assumed from the
//! times.
//! Beside them stand the calls in which the host waited, each with the work that it waited for.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use rustc_hash::FxHashMap;
use serde::Serialize;
use tracesmith_format::tables::{StreamKind, SyncKind};
use tracesmith_format::{ContextId, DeviceId, ProcessId, StreamId};

use super::activity::{Activity, StreamIndex, StreamKey};
use super::calls::CallId;
use super::class::CallClass;
use super::graph_edges::GraphOrder;
use super::joins::last_to_end;
use super::ops::OpId;
use super::syncs::SyncRecord;
use super::unseen_edges::unseen_edges;
use super::unseen_waits::CLOCK_ERROR;

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
    /// No row states it: its stream was free, and it started right after the other ended.
    Assumed,
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

/// An op that the host waited for in a call. A wait for a context or device has one for each stream: the last op there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostWait {
    /// The call.
    pub call: CallId,
    /// The op.
    pub op: OpId,
}

/// What ties streams and the host together.
#[derive(Clone, Debug, Default)]
pub struct Dependencies {
    /// Sorted by the one that waits.
    pub edges: Vec<Edge>,
    /// Sorted by call; of a call, the op that ended last comes last.
    pub host_waits: Vec<HostWait>,
    /// Waits whose event was recorded on a stream that the trace does not name; the stream that the recording thread used
    /// last was taken.
    pub assumed_records: u64,
    /// Waits whose event was not found. Those that were made while a stream was captured are no waits, and not counted.
    pub unknown_records: u64,
    /// Waits of the host without a row that names what they wait for, made by a thread without a launch in a process with
    /// several devices. They are linked to no op.
    pub unknown_waits: u64,
    /// Launches of graphs on several streams whose nodes' order is not known.
    pub unordered_graphs: u64,
    /// Dependencies that the times contradict, left out.
    pub contradicted: u64,
    /// Edges that no row states, assumed from the times.
    pub assumed_edges: u64,
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
        let assumed = unseen_edges(activity, &dependencies.edges);
        dependencies.assumed_edges = assumed.len() as u64;
        dependencies.edges.extend(assumed);
        dependencies.edges.sort_unstable();
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

    /// All ops that the host waited for in a call; the one that ended last comes last.
    pub fn waits_of(&self, call: CallId) -> &[HostWait] {
        let first = self.host_waits.partition_point(|wait| wait.call < call);
        let count = self.host_waits[first..]
            .iter()
            .take_while(|wait| wait.call == call)
            .count();
        &self.host_waits[first..first + count]
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
        let mut contexts: BTreeMap<(ProcessId, ContextId), Vec<StreamIndex>> = BTreeMap::new();
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
            let is_legacy = |lane: StreamIndex| activity.stream_kind(lane) == StreamKind::LEGACY_DEFAULT;
            if lanes.len() < 2 || !lanes.iter().any(|lane| is_legacy(*lane)) {
                continue;
            }
            let mut work: Vec<(u64, OpId)> = lanes
                .iter()
                .flat_map(|lane| activity.ops_of(*lane))
                .map(|op| (activity.asked(*op), *op))
                .collect();
            work.sort_unstable();
            let mut last_of: FxHashMap<StreamIndex, OpId> = FxHashMap::default();
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
        let told: FxHashMap<CallId, &SyncRecord> = activity
            .syncs
            .iter()
            .filter(|sync| sync.call.is_some() && sync.kind != SyncKind::EVENT_RECORD)
            .map(|sync| (sync.call, sync))
            .collect();
        let calls = &activity.calls;
        for thread in &calls.threads {
            // The last op of each stream that the thread has waited for.
            let mut known: FxHashMap<StreamIndex, OpId> = FxHashMap::default();
            for at in thread.calls.clone() {
                if calls.class(at) != CallClass::Sync || calls.is_nested(at) {
                    continue;
                }
                let (call, asked) = (CallId(at as u32), calls.start[at]);
                let nested = (at + 1..thread.calls.end).take_while(|inner| calls.is_nested(*inner));
                let sync = std::iter::once(at)
                    .chain(nested)
                    .find_map(|at| told.get(&CallId(at as u32)));
                let waited: Vec<OpId> = match sync {
                    Some(sync) if sync.kind == SyncKind::EVENT_WAIT => {
                        let record = records.get(&sync.record_key()).copied().flatten();
                        record.into_iter().collect()
                    }
                    Some(sync) if sync.kind == SyncKind::STREAM_WAIT => {
                        let lane = index.lane(&sync.lane);
                        let last = lane.and_then(|lane| index.last_asked(activity, lane, asked));
                        last.into_iter().collect()
                    }
                    Some(sync) if index.names_place(sync) => {
                        index.last_of_each(activity, index.lanes_of(activity, sync), at, &mut known)
                    }
                    _ => match index.assumed_device(activity, call) {
                        Some(device) => {
                            let lanes = index.of_process.get(&thread.process).into_iter().flatten();
                            let of_device = lanes.filter(|lane| activity.lane(**lane).device == device);
                            let last = index.last_of_lanes(activity, of_device.copied(), at);
                            last.into_iter().collect()
                        }
                        None => {
                            self.unknown_waits += u64::from(index.of_process.contains_key(&thread.process));
                            Vec::new()
                        }
                    },
                };
                // A wait cannot be over before what it waits for is, but the clocks may differ.
                let is_over =
                    |op: &OpId| activity.ops.end[op.index()] <= calls.end[at].saturating_add(CLOCK_ERROR);
                let waits = waited.into_iter().filter(is_over);
                self.host_waits.extend(waits.map(|op| HostWait { call, op }));
            }
        }
        self.own_waits(activity);
        self.host_waits
            .sort_by_key(|wait| (wait.call, activity.ops.end[wait.op.index()], wait.op));
        self.host_waits.dedup();
    }

    /// Copies that return when they are done: the work starts and ends within its own call. A copy from pageable memory
    /// returns a little earlier, when the last part of the memory is in the driver's own buffer.
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
            let (begun, over) = (ops.start[op.index()], ops.end[op.index()]);
            let staged = over.saturating_sub(begun) / STAGED_PART;
            let is_within = (start..=end).contains(&begun) && over <= end.saturating_add(staged);
            if is_within && activity.calls.class(call.index()) == CallClass::Copy {
                self.host_waits.push(HostWait { call, op });
            }
        }
    }
}

fn is_event_wait(sync: &SyncRecord) -> bool {
    matches!(sync.kind, SyncKind::STREAM_WAIT_EVENT | SyncKind::EVENT_WAIT)
}

/// A call that copies from pageable memory may return when all but one part in this many is copied. In a
/// trace of resnet50 the call of a copy of 19 MB takes 2.02 ms, and the copy is over 0.08 ms later.
const STAGED_PART: u64 = 5;

/// When something was asked for: at its call, else when it began.
fn asked_at(activity: &Activity, sync: &SyncRecord) -> u64 {
    match sync.call.is_some() {
        true => activity.calls.start[sync.call.index()],
        false => sync.start,
    }
}

/// What tells the records of an event apart.
type RecordKey = (ProcessId, u64, u64);

impl SyncRecord {
    fn record_key(&self) -> RecordKey {
        (self.lane.process, self.event, self.record)
    }
}

/// Finds work by the time at which it was asked for. On a stream that is the order in which it ran.
struct Index {
    lanes: FxHashMap<StreamKey, StreamIndex>,
    of_context: FxHashMap<(ProcessId, ContextId, StreamId), StreamIndex>,
    /// For each thread the calls that launched something, with the last work of each.
    launches: OnceCell<Vec<Vec<(u32, OpId)>>>,
    of_process: FxHashMap<ProcessId, Vec<StreamIndex>>,
    /// For each stream how many ops at its front were launched before the trace begins; 0 if it has no launches at all.
    unasked: Vec<usize>,
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

/// When an op was launched, by the host's clock alone. An op of a GPU whose clock is behind starts before its launch.
fn launched(activity: &Activity, op: OpId) -> u64 {
    match activity.ops.call[op.index()] {
        call if call.is_some() => activity.calls.start[call.index()],
        _ => activity.ops.start[op.index()],
    }
}

/// How many ops at the front of a stream have no call.
fn unasked(activity: &Activity, lane: StreamIndex) -> usize {
    let has_call = |op: &OpId| activity.ops.call[op.index()].is_some();
    (activity.ops_of(lane).iter().position(has_call)).unwrap_or(0)
}

/// The ops of each thread by the calls that launched them.
fn launches(activity: &Activity) -> Vec<Vec<(u32, OpId)>> {
    let mut launches: Vec<Vec<(u32, OpId)>> = vec![Vec::new(); activity.calls.threads.len()];
    for op in activity.ops.ids() {
        let call = activity.ops.call[op.index()];
        if call.is_some() {
            launches[activity.calls.thread_of(call)].push((call.0, op));
        }
    }
    launches.iter_mut().for_each(|list| list.sort_unstable());
    launches
}

impl Index {
    fn of(activity: &Activity) -> Self {
        let mut of_process: FxHashMap<ProcessId, Vec<StreamIndex>> = FxHashMap::default();
        for id in activity.lane_ids() {
            of_process.entry(activity.lane(id).process).or_default().push(id);
        }
        Index {
            lanes: activity.lane_ids().map(|id| (*activity.lane(id), id)).collect(),
            of_context: activity
                .lane_ids()
                .map(|id| {
                    let lane = activity.lane(id);
                    ((lane.process, lane.context, lane.stream), id)
                })
                .collect(),
            launches: OnceCell::new(),
            of_process,
            unasked: activity.lane_ids().map(|lane| unasked(activity, lane)).collect(),
            captures: OnceCell::new(),
        }
    }

    /// The stream of a row. Nsight Systems writes device 0 for the waits of all GPUs, so the context counts: it belongs to
    /// one device.
    fn lane(&self, lane: &StreamKey) -> Option<StreamIndex> {
        let of_context = || {
            let key = (lane.process, lane.context, lane.stream);
            self.of_context.get(&key).copied()
        };
        let found = self.lanes.get(lane).copied();
        found.or_else(|| (lane.context.0 != 0).then(of_context).flatten())
    }

    /// The stream that the event of a wait was recorded in, where the wait names it: that of the wait's own context, else
    /// all of its process with that number.
    fn recording_lanes(&self, activity: &Activity, sync: &SyncRecord) -> Option<Vec<StreamIndex>> {
        let stream = sync.event_stream?;
        if let Some(lane) = self.lane(&StreamKey { stream, ..sync.lane }) {
            return Some(vec![lane]);
        }
        let lanes = self.of_process.get(&sync.lane.process).into_iter().flatten();
        let of_number = lanes.filter(|id| activity.lane(**id).stream == stream);
        Some(of_number.copied().collect())
    }

    /// Whether a wait was asked for while a stream of its process was captured: it is an edge of a graph then.
    fn is_captured(&self, activity: &Activity, sync: &SyncRecord) -> bool {
        let captures = self.captures.get_or_init(|| captures(activity));
        let of_process = captures.get(&sync.lane.process).into_iter().flatten();
        let asked = asked_at(activity, sync);
        of_process.into_iter().any(|time| time.contains(&asked))
    }

    /// The last work of a stream that was asked for before a moment. Of a graph that was launched on it that is what ends
    /// last, wherever it ran.
    fn last_asked(&self, activity: &Activity, lane: StreamIndex, time: u64) -> Option<OpId> {
        let ops = activity.ops_of(lane);
        let unasked = self.unasked[lane.index()];
        let after = unasked + ops[unasked..].partition_point(|op| launched(activity, *op) <= time);
        let last = ops[after.checked_sub(1)?];
        let graphs = &activity.graphs;
        let launch = graphs.launch_of(last).map(|number| &graphs.launches()[number]);
        let Some(launch) = launch.filter(|launch| launch.lane == lane) else {
            return Some(last);
        };
        last_to_end(&activity.ops, graphs.work_of(launch).iter().map(|(_, op)| *op))
    }

    /// The first work of a stream that was asked for after a moment.
    fn first_asked(&self, activity: &Activity, lane: StreamIndex, time: u64) -> Option<OpId> {
        let ops = &activity.ops_of(lane)[self.unasked[lane.index()]..];
        ops.get(ops.partition_point(|op| launched(activity, *op) <= time))
            .copied()
    }

    /// The last work that a call's thread launched before it.
    fn last_launch(&self, activity: &Activity, call: CallId) -> Option<OpId> {
        let launches = &self.launches.get_or_init(|| launches(activity))[activity.calls.thread_of(call)];
        let after = launches.partition_point(|(launch, _)| *launch < call.0);
        after.checked_sub(1).map(|at| launches[at].1)
    }

    /// Whether a wait names the context or device that it waits for.
    fn names_place(&self, sync: &SyncRecord) -> bool {
        sync.lane.context.0 != 0 || sync.lane.device.is_some()
    }

    /// The streams of the context or device that a wait is for.
    fn lanes_of(&self, activity: &Activity, sync: &SyncRecord) -> Vec<StreamIndex> {
        let StreamKey {
            process,
            device,
            context,
            ..
        } = sync.lane;
        let by_device = device.is_some() && (sync.kind == SyncKind::DEVICE_WAIT || context.0 == 0);
        let is_meant = |lane: &StreamKey| match by_device {
            true => lane.device == device,
            false => lane.context == context,
        };
        let lanes = self.of_process.get(&process).into_iter().flatten();
        let meant = lanes.filter(|id| is_meant(activity.lane(**id)));
        meant.copied().collect()
    }

    /// The device that a wait without a row is for. CUDA's current device belongs to the thread, so it is that of the
    /// thread's last launch. `None` when the thread launched nothing and its process uses several devices.
    fn assumed_device(&self, activity: &Activity, call: CallId) -> Option<DeviceId> {
        let calls = &activity.calls;
        let lanes = self
            .of_process
            .get(&calls.threads[calls.thread_of(call)].process)?;
        let device = |lane: StreamIndex| activity.lane(lane).device;
        let first = device(*lanes.first()?);
        if lanes.iter().all(|lane| device(*lane) == first) {
            return Some(first);
        }
        let launched = self.last_launch(activity, call)?;
        Some(device(activity.ops.lane[launched.index()]))
    }

    /// The last op of each stream before a wait, less those that the thread has waited for before. The one that ended
    /// last is always among them.
    fn last_of_each(
        &self,
        activity: &Activity,
        lanes: Vec<StreamIndex>,
        call: usize,
        known: &mut FxHashMap<StreamIndex, OpId>,
    ) -> Vec<OpId> {
        let asked = activity.calls.start[call];
        let mut found: Vec<OpId> = Vec::new();
        for lane in &lanes {
            if let Some(op) = self.last_asked(activity, *lane, asked)
                && known.insert(*lane, op) != Some(op)
            {
                found.push(op);
            }
        }
        found.extend(self.last_of_lanes(activity, lanes.into_iter(), call));
        found
    }

    /// Of the last op of each stream before a wait the one that ended last, yet not after the wait. If none of these ended
    /// during the wait, one that ended shortly after it was waited for: the clocks differ.
    fn last_of_lanes(
        &self,
        activity: &Activity,
        lanes: impl Iterator<Item = StreamIndex>,
        call: usize,
    ) -> Option<OpId> {
        let (start, end) = (activity.calls.start[call], activity.calls.end[call]);
        let last = lanes.filter_map(|lane| self.last_asked(activity, lane, start));
        let over = |op: &OpId| activity.ops.end[op.index()];
        let (before, after): (Vec<OpId>, Vec<OpId>) = last
            .filter(|op| over(op) <= end.saturating_add(CLOCK_ERROR))
            .partition(|op| over(op) <= end);
        let found = last_to_end(&activity.ops, before.into_iter());
        match found.filter(|op| over(op) > start) {
            Some(op) => Some(op),
            None => after.into_iter().min_by_key(|op| over(op)).or(found),
        }
    }
}
