//! Host and device as one graph of nodes, each a fixed time after those that it waited for.
//!
//! A node is the end of a piece of work, the start of a call that launched something, or the end of a call in which the
//! host waited. Every dependency has a weight: the time that passed between what was waited for last and the node. So
//! the graph, walked with nothing changed, gives back the times that were measured; walked with other durations or without
//! some of its dependencies, it says what the times would have been, as far as the recorded dependencies are all
//! there are.
//!
//! Threads of the host wait for each other in ways that no trace tells. A thread that made no call for a while is taken to have waited for
//! the thread of its process that called last.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tracesmith_format::ProcessId;

use super::activity::{Activity, Window};
use super::calls::CallId;
use super::dependencies::{Dependencies, EdgeWhy};
use super::ops::OpId;
use super::timing::Timing;
use super::turns::Turns;
use super::unseen_waits::{UnseenWaits, wait_of};

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// The end of a piece of work.
    Op(OpId),
    /// The start of a call that launched something.
    Launch(CallId),
    /// The end of a call in which the host waited.
    Wait(CallId),
}

/// Why a node comes after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkKind {
    /// The work stands behind the other on its stream.
    Stream,
    /// The call launched it.
    Launched,
    /// Its stream waited for the other.
    Waited(EdgeWhy),
    /// The host waited for the work.
    HostWaited,
    /// The call launched into a full queue, and returned when this work at its front ended.
    FullQueue,
    /// The host went on when the work ended, without a call that waits for it.
    AssumedWait,
    /// The same thread did the other before.
    Host,
    /// Another thread of the process called last.
    OtherThread,
}

/// One dependency of a node.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// What it waits for: a place in the plan.
    pub from: u32,
    /// Nanoseconds between the two, at least; may be negative where times overlap.
    pub weight: i64,
    /// Why.
    pub kind: LinkKind,
}

impl Link {
    /// Whether it is a launch that seems to be later than its op: the clocks disagree.
    #[inline]
    pub(super) fn is_early(&self) -> bool {
        self.kind == LinkKind::Launched && self.weight < 0
    }
}

/// A dependency as it is kept. Its weight follows from the times and is worked out when asked for: of ten million kernels
/// there are thirty million.
#[derive(Clone, Copy, Debug)]
struct StoredLink {
    from: u32,
    kind: LinkKind,
}

/// Host and device as one graph of nodes, in an order in which everything comes after what it waits for.
#[derive(Debug)]
pub struct ExecutionGraph {
    activity: Arc<Activity>,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// Those of a node are `links[first[n]..first[n + 1]]`.
    links: Vec<StoredLink>,
    first: Vec<u32>,
    /// Launches that blocked until the GPU had done some of the work before them.
    pub blocked_launches: u64,
    /// Launches before which the host seems to have waited without a call.
    pub waits_without_call: u64,
    /// Where the plan begins: with what was looked at, or before it, where its work was asked for.
    pub start: u64,
}

/// A thread without a call for this long is taken to have waited for another one.
const SILENCE: u64 = 50_000;
/// What a wait takes at most to return once its work is over, where that is not seen.
const RETURN: u64 = 5_000;

impl ExecutionGraph {
    /// Builds the graph.
    pub fn of(activity: &Arc<Activity>, dependencies: &Dependencies) -> Self {
        Builder::new(activity, dependencies).build()
    }

    /// What a node waits for.
    pub fn links_of(&self, at: usize) -> impl Iterator<Item = Link> + use<'_> {
        let links = self.stored_links_of(at);
        let rule = self.weighing(at, links);
        links.iter().map(move |link| Link {
            from: link.from,
            weight: rule.weight(link.kind, self.measured(link.from as usize)),
            kind: link.kind,
        })
    }

    fn stored_links_of(&self, at: usize) -> &[StoredLink] {
        &self.links[self.first[at] as usize..self.first[at + 1] as usize]
    }

    /// What it was made of.
    pub fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// When a node was measured.
    #[inline]
    pub fn measured(&self, at: usize) -> u64 {
        time_of(&self.activity, self.nodes[at])
    }

    /// A work's duration as measured; of other nodes 0.
    #[inline]
    pub fn duration(&self, at: usize) -> u64 {
        match self.nodes[at] {
            Node::Op(op) => self.activity.ops.duration(op),
            _ => 0,
        }
    }

    /// When the last node is.
    pub fn end(&self) -> u64 {
        let times = (0..self.len()).map(|at| self.measured(at));
        times.max().unwrap_or(self.start)
    }

    /// From where the plan begins to its last node or the end of what was looked at, whichever is later.
    pub fn span(&self) -> u64 {
        let end = self.activity.span.map_or(self.start, |(_, end)| end);
        end.max(self.end()) - self.start
    }

    /// From where the plan begins to its last node in times that were simulated. Calls after the last node stay as far behind
    /// it as they were.
    pub fn total(&self, times: &[u64]) -> u64 {
        let end = times.iter().copied().max().unwrap_or(self.start);
        let last = self.activity.span.map_or(0, |(_, last)| last);
        end.saturating_sub(self.start) + last.saturating_sub(self.end())
    }

    /// Where a time range begins and ends. An open end is that of the plan.
    pub fn ends(&self, window: Window) -> (u64, u64) {
        let from = window.from.unwrap_or(self.start);
        let to = window.to.unwrap_or(self.start + self.span());
        (from, to.max(from))
    }

    /// The length of a time range, or of the whole plan.
    pub fn span_within(&self, window: Window) -> u64 {
        let (from, to) = self.ends(window);
        to - from
    }

    /// What the weights of a node's dependencies follow from.
    fn weighing(&self, at: usize, links: &[StoredLink]) -> Weighing {
        match self.nodes[at] {
            Node::Op(op) => {
                let start = self.activity.ops.start[op.index()];
                let over = links
                    .iter()
                    .map(|link| (link.kind, self.measured(link.from as usize)));
                let counts = |(kind, from): &(LinkKind, u64)| *kind != LinkKind::Launched || *from <= start;
                let ready = over.filter(counts).map(|(_, from)| from).max();
                Weighing::Op {
                    start,
                    ready: ready.unwrap_or(start),
                }
            }
            Node::Launch(call) => {
                let is_blocked = links.iter().any(|link| link.kind == LinkKind::AssumedWait);
                Weighing::Launch {
                    start: self.activity.calls.start[call.index()],
                    blocked_since: is_blocked.then(|| self.activity.calls.end_before(call)),
                }
            }
            Node::Wait(call) => {
                let waited = links.iter().filter(|link| is_host_wait(link.kind));
                let over = waited.map(|link| self.measured(link.from as usize)).max();
                Weighing::Wait {
                    setup: self.setup(call, links),
                    start: self.activity.calls.start[call.index()],
                    end: self.activity.calls.end[call.index()],
                    over: over.unwrap_or(0),
                }
            }
        }
    }

    /// How long a call that waits for its own op took to begin it.
    fn setup(&self, call: CallId, links: &[StoredLink]) -> u64 {
        let own = links
            .iter()
            .map(|link| link.from as usize)
            .filter(|from| match self.nodes[*from] {
                Node::Op(op) => self.activity.ops.call[op.index()] == call,
                _ => false,
            });
        let delay = |at: usize| match self.weighing(at, self.stored_links_of(at)) {
            Weighing::Op { start, ready } => start.saturating_sub(ready),
            _ => 0,
        };
        own.map(delay).max().unwrap_or(0)
    }

    /// For every node how much later it could have been without making the end any later.
    pub fn slack(&self) -> Vec<u64> {
        let end = self.last().map_or(self.start, |last| self.measured(last));
        let mut slack: Vec<u64> = (0..self.len())
            .map(|at| end.saturating_sub(self.measured(at)))
            .collect();
        for at in (0..self.len()).rev() {
            // The latest begin that leaves the end where it is.
            let latest =
                i128::from(self.measured(at)) + i128::from(slack[at]) - i128::from(self.duration(at));
            for link in self.links_of(at) {
                let from = link.from as usize;
                let room = latest - i128::from(link.weight) - i128::from(self.measured(from));
                slack[from] = slack[from].min(u64::try_from(room).unwrap_or(0));
            }
        }
        slack
    }

    /// The dependency that held a node up longest; none for one that waited for nothing. A launch that seems to be later
    /// than its op held nothing up: the clocks disagree.
    pub fn binding(&self, at: usize) -> Option<Link> {
        self.links_of(at)
            .filter(|link| !link.is_early())
            .max_by_key(|link| {
                let ready = i128::from(self.measured(link.from as usize)) + i128::from(link.weight);
                (ready, Reverse(link.kind))
            })
    }
}

/// What the weights of a node's dependencies follow from.
#[derive(Clone, Copy)]
enum Weighing {
    /// An op that started at this time, and when the last of them was over; a launch that is later than its op, since the
    /// clocks disagree, does not count.
    Op { start: u64, ready: u64 },
    /// A call that launches stands where it stood behind what was before it. If its thread waited before it without a
    /// call, the thread would have launched at once after its last call.
    Launch { start: u64, blocked_since: Option<u64> },
    /// A call that waits for ops, the last of which was over at this time. If they are its own, it took some time to begin
    /// them.
    Wait {
        start: u64,
        end: u64,
        over: u64,
        setup: u64,
    },
}

/// From one time to another. A hostile file may have times that are too far apart for the type.
fn between(from: u64, to: u64) -> i64 {
    let nanos = i128::from(to) - i128::from(from);
    nanos.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

impl Weighing {
    fn weight(self, kind: LinkKind, from: u64) -> i64 {
        match self {
            // The clocks disagree: by no more than they did.
            Self::Op { start, .. } if kind == LinkKind::Launched && from > start => between(from, start),
            // The op started this long after the last of them. That delay stays, whichever is the last.
            Self::Op { start, ready } if ready <= start => between(ready, start),
            // The op overlapped some of them, as programmatic launches do: it keeps its place relative to those, and
            // starts no earlier than the others, above all its launch.
            Self::Op { start, .. } => between(from, start).min(0),
            Self::Launch {
                start,
                blocked_since: Some(since),
            } if kind != LinkKind::AssumedWait => between(from, since.min(start)),
            Self::Launch { start, .. } => between(from, start),
            Self::Wait {
                start,
                end,
                over,
                setup,
            } => {
                let since = between(from, end);
                let returned = between(over, end);
                match (kind, over > start) {
                    // The call returned this long after the last of its ops. That delay stays, whichever is the last.
                    (LinkKind::HostWaited | LinkKind::FullQueue, true) => returned,
                    (LinkKind::HostWaited | LinkKind::FullQueue, false) => returned.min(RETURN as i64),
                    // The wait was for this work: without it the call would have come back as soon as it had begun its own.
                    (_, true) => since.saturating_sub(between(start, end.saturating_sub(setup).max(start))),
                    (_, false) => since,
                }
            }
        }
    }
}

fn is_host_wait(kind: LinkKind) -> bool {
    matches!(kind, LinkKind::HostWaited | LinkKind::FullQueue)
}

struct Builder<'a> {
    activity: &'a Activity,
    dependencies: &'a Dependencies,
    unseen: UnseenWaits,
    graph: ExecutionGraph,
    /// The place of each piece of work, once it has one.
    of_op: Vec<u32>,
    /// The place of each call that launched something, once it has one.
    of_call: Vec<u32>,
    last_of_lane: Vec<Option<u32>>,
    last_of_thread: Vec<Option<u32>>,
    /// The last node of the host, and its thread.
    last_of_process: FxHashMap<ProcessId, (u32, usize)>,
}

/// No place yet.
const NOWHERE: u32 = u32::MAX;

impl<'a> Builder<'a> {
    fn new(activity: &'a Arc<Activity>, dependencies: &'a Dependencies) -> Self {
        let unseen = UnseenWaits::of(activity);
        Builder {
            activity,
            dependencies,
            graph: ExecutionGraph {
                blocked_launches: unseen.blocked_launches.len() as u64,
                waits_without_call: unseen.without_call.len() as u64,
                activity: Arc::clone(activity),
                nodes: Vec::new(),
                links: Vec::new(),
                first: vec![0],
                start: activity.span.map_or(0, |(start, _)| start),
            },
            unseen,
            of_op: vec![NOWHERE; activity.ops.len()],
            of_call: vec![NOWHERE; activity.calls.len()],
            last_of_lane: vec![None; activity.lanes.len()],
            last_of_thread: vec![None; activity.calls.threads.len()],
            last_of_process: FxHashMap::default(),
        }
    }

    /// Takes calls of all threads and work by time: a launch at its start, work at its start, a wait at its end.
    fn build(mut self) -> ExecutionGraph {
        let calls = self.host_nodes();
        let ops = &self.activity.ops;
        let mut waiting: BinaryHeap<Reverse<(u64, u8, usize)>> = BinaryHeap::new();
        let mut next = vec![0usize; calls.len()];
        let turns = Turns::of(self.activity, self.dependencies, &calls);
        let host = self.activity;
        let push = |heap: &mut BinaryHeap<_>, thread: usize, at: usize| {
            if let Some(node) = calls[thread].get(at) {
                let rank = if matches!(node, Node::Launch(_)) { 0 } else { 2 };
                heap.push(Reverse((turns.of_host(host, *node), rank, thread)));
            }
        };
        for thread in 0..calls.len() {
            push(&mut waiting, thread, 0);
        }
        let op_at = |place: usize| turns.order.as_ref().map_or(place, |order| order[place] as usize);
        let mut placed = 0;
        loop {
            let host = waiting.peek().map(|Reverse((time, rank, ..))| (*time, *rank));
            let work = (placed < ops.len()).then(|| {
                let op = op_at(placed);
                (turns.of_op(self.activity, op), 1u8)
            });
            match (host, work) {
                (Some(host), work) if work.is_none_or(|work| host < work) => {
                    let Some(Reverse((_, _, thread))) = waiting.pop() else {
                        break;
                    };
                    self.add_call(thread, calls[thread][next[thread]]);
                    next[thread] += 1;
                    push(&mut waiting, thread, next[thread]);
                }
                (_, Some(_)) => {
                    self.add_work(OpId(op_at(placed) as u32));
                    placed += 1;
                }
                _ => break,
            }
        }
        let graph = &mut self.graph;
        let first = (0..graph.len())
            .map(|at| graph.measured(at) - graph.duration(at))
            .min();
        graph.start = graph.start.min(first.unwrap_or(graph.start));
        self.graph
    }

    /// The calls of each thread that matter: those that launched something, at their start, and those that waited, at
    /// their end.
    fn host_nodes(&self) -> Vec<Vec<Node>> {
        let calls = &self.activity.calls;
        let mut launching = vec![false; calls.len()];
        for call in self.activity.ops.call.iter().filter(|call| call.is_some()) {
            launching[call.index()] = true;
        }
        let of_thread = |thread: &super::calls::HostThread| {
            let mut nodes: Vec<Node> = Vec::new();
            for at in thread.calls.clone() {
                let call = CallId(at as u32);
                if launching[at] {
                    nodes.push(Node::Launch(call));
                }
                let waits = || {
                    !self.dependencies.waits_of(call).is_empty()
                        || wait_of(&self.unseen.blocked_launches, call).is_some()
                };
                // A wait behind the stretch of time that is looked at seems to be for its last work, whatever it was for.
                if self.activity.window.holds(calls.end[at]) && waits() {
                    nodes.push(Node::Wait(call));
                }
            }
            let time = |node: &Node| (time_of(self.activity, *node), matches!(node, Node::Wait(_)));
            nodes.sort_by_key(time);
            nodes
        };
        calls.threads.iter().map(of_thread).collect()
    }

    fn add_call(&mut self, thread: usize, node: Node) {
        let time = time_of(self.activity, node);
        let process = self.activity.calls.threads[thread].process;
        let other = self
            .last_of_process
            .get(&process)
            .filter(|(_, other)| *other != thread);
        let unseen = match node {
            Node::Launch(call) => {
                wait_of(&self.unseen.without_call, call).map(|op| (op, LinkKind::AssumedWait))
            }
            Node::Wait(call) => {
                wait_of(&self.unseen.blocked_launches, call).map(|op| (op, LinkKind::FullQueue))
            }
            Node::Op(_) => None,
        };
        let unseen = unseen
            .map(|(op, kind)| (self.of_op[op.index()], kind))
            .filter(|(place, _)| *place != NOWHERE);
        let is_silent = unseen.is_none();
        match (self.last_of_thread[thread], other) {
            (Some(before), Some((other, _))) if is_silent && self.has_handed_over(before, *other, time) => {
                self.link(*other, LinkKind::OtherThread);
            }
            (Some(before), _) => self.link(before, LinkKind::Host),
            (None, Some((other, _))) => self.link(*other, LinkKind::OtherThread),
            (None, None) => {}
        }
        if let Some((place, kind)) = unseen {
            self.link(place, kind);
        }
        if let Node::Wait(call) = node {
            for wait in self.dependencies.waits_of(call) {
                let place = self.of_op[wait.op.index()];
                if place != NOWHERE {
                    self.link(place, LinkKind::HostWaited);
                }
            }
        }
        let place = self.add(node);
        if let Node::Launch(call) = node {
            self.of_call[call.index()] = place;
        }
        self.last_of_thread[thread] = Some(place);
        self.last_of_process.insert(process, (place, thread));
    }

    /// Whether a thread was silent until `time`, and another one called meanwhile.
    fn has_handed_over(&self, before: u32, other: u32, time: u64) -> bool {
        let (before, other) = (
            self.graph.measured(before as usize),
            self.graph.measured(other as usize),
        );
        time.saturating_sub(before) > SILENCE && other > before
    }

    fn add_work(&mut self, op: OpId) {
        let at = op.index();
        let (call, lane) = (self.activity.ops.call[at], self.activity.ops.lane[at]);
        if call.is_some() && self.of_call[call.index()] != NOWHERE {
            self.link(self.of_call[call.index()], LinkKind::Launched);
        }
        if let Some(place) = self.last_of_lane[lane.index()] {
            self.link(place, LinkKind::Stream);
        }
        for edge in self.dependencies.edges_to(op) {
            let place = self.of_op[edge.from.index()];
            if place != NOWHERE {
                self.link(place, LinkKind::Waited(edge.why));
            }
        }
        let place = self.add(Node::Op(op));
        self.of_op[at] = place;
        self.last_of_lane[lane.index()] = Some(place);
    }

    /// Ties the node that is added next to one before it.
    fn link(&mut self, from: u32, kind: LinkKind) {
        self.graph.links.push(StoredLink { from, kind });
    }

    fn add(&mut self, node: Node) -> u32 {
        let graph = &mut self.graph;
        graph.nodes.push(node);
        graph.first.push(graph.links.len() as u32);
        graph.nodes.len() as u32 - 1
    }
}

/// When a node was measured.
#[inline]
pub(super) fn time_of(activity: &Activity, node: Node) -> u64 {
    match node {
        Node::Launch(call) => activity.calls.start[call.index()],
        Node::Wait(call) => activity.calls.end[call.index()],
        Node::Op(op) => activity.ops.end[op.index()],
    }
}
