//! What every stream, context and device was doing at every moment.
//!
//! A stream is *idle* while nothing is asked of it, *pending* while something was launched and has not started, *waiting*
//! while what was launched is held up by work of another stream, *running*, and *finished* after its last work. A context
//! or device is in the busiest state of its streams: running before waiting before pending before idle.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::sync::Arc;

use serde::Serialize;
use tracesmith_format::{ContextId, DeviceId, ProcessId};

use super::activity::{Activity, StreamIndex};
use super::dependencies::Dependencies;
use super::ops::OpId;

/// What a stream, context or device is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing is asked of it.
    Idle,
    /// Something was launched and has not started.
    Pending,
    /// What was launched is held up by work of another stream.
    Waiting,
    /// Work runs.
    Running,
    /// Its last work is over.
    Finished,
}

impl State {
    /// All states, in the order of their numbers.
    pub const ALL: [Self; 5] = [
        Self::Idle,
        Self::Pending,
        Self::Waiting,
        Self::Running,
        Self::Finished,
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Pending => "pending",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Finished => "finished",
        }
    }
}

/// A stretch of time in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Where it starts.
    pub from: u64,
    /// Where it ends.
    pub to: u64,
    /// The state.
    pub state: State,
    /// The work that runs, is pending or is held up; none in other states.
    pub op: OpId,
    /// The work that holds it up; none in other states.
    pub waits_for: OpId,
}

/// Of what states are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A device.
    Device(DeviceId),
    /// A context.
    Context(ProcessId, ContextId, DeviceId),
    /// A stream.
    Stream(StreamIndex),
}

/// The states of one subject, one after the other, from the start of the trace to its end.
///
/// They are worked out while they are looked at and not kept: of ten million kernels there are sixty million, for streams,
/// contexts and devices.
#[derive(Clone, Debug)]
pub struct StateLine {
    /// Of what.
    pub subject: Subject,
    activity: Arc<Activity>,
    dependencies: Arc<Dependencies>,
    /// The streams that it consists of.
    lanes: Vec<StreamIndex>,
}

/// How long a subject was in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateTotals {
    /// Nanoseconds in each state, in the order of `State::ALL`.
    pub nanos: [u64; State::ALL.len()],
    /// Stretches of time.
    pub intervals: u64,
}

impl StateLine {
    /// The states, in the order of time.
    pub fn intervals(&self) -> impl Iterator<Item = Interval> + use<'_> {
        match self.lanes[..] {
            [lane] => Intervals::Stream(StreamStates::new(self, lane)),
            _ => {
                let streams = self.lanes.iter().map(|lane| StreamStates::new(self, *lane));
                Intervals::MergedStates(MergedStates::new(streams))
            }
        }
    }

    /// How long it was in each state.
    pub fn totals(&self) -> StateTotals {
        let mut totals = StateTotals::default();
        for interval in self.intervals() {
            totals.nanos[interval.state as usize] += interval.to - interval.from;
            totals.intervals += 1;
        }
        totals
    }

    /// The state at a moment; none outside of the trace.
    pub fn at(&self, time: u64) -> Option<Interval> {
        let until = self.intervals().take_while(|interval| interval.from <= time);
        until.last().filter(|interval| time <= interval.to)
    }
}

/// The states of everything: devices first, then contexts, then streams.
#[derive(Clone, Debug, Default)]
pub struct States {
    /// The lines.
    pub lines: Vec<StateLine>,
}

impl States {
    /// Finds what there are states of.
    pub fn of(activity: &Arc<Activity>, dependencies: &Arc<Dependencies>) -> Self {
        if activity.span.is_none() {
            return Self::default();
        }
        let mut members: BTreeMap<Subject, Vec<StreamIndex>> = BTreeMap::new();
        for id in activity.lane_ids() {
            let lane = activity.lane(id);
            for subject in [
                Subject::Device(lane.device),
                Subject::Context(lane.process, lane.context, lane.device),
                Subject::Stream(id),
            ] {
                members.entry(subject).or_default().push(id);
            }
        }
        let lines = members.into_iter().map(|(subject, lanes)| StateLine {
            subject,
            activity: Arc::clone(activity),
            dependencies: Arc::clone(dependencies),
            lanes,
        });
        States {
            lines: lines.collect(),
        }
    }

    /// Work that was launched before a moment and had not started by then, of one stream.
    pub fn queued(activity: &Activity, lane: StreamIndex, time: u64) -> usize {
        let ops = activity.ops_of(lane);
        let first = ops.partition_point(|op| activity.ops.start[op.index()] <= time);
        let asked = |op: &&OpId| activity.asked(**op) <= time;
        ops[first..].iter().take_while(asked).count()
    }
}

/// The states of a subject. Those of one stream need no comparison with others.
#[allow(
    clippy::large_enum_variant,
    reason = "there is one for a walk over millions of intervals"
)]
enum Intervals<'a> {
    Stream(StreamStates<'a>),
    MergedStates(MergedStates<'a>),
}

impl Iterator for Intervals<'_> {
    type Item = Interval;

    fn next(&mut self) -> Option<Interval> {
        match self {
            Self::Stream(stream) => stream.next(),
            Self::MergedStates(together) => together.next(),
        }
    }
}

/// The states of one stream. They follow each other without a hole, so a state is where the last one ended.
struct StreamStates<'a> {
    activity: &'a Activity,
    dependencies: &'a Dependencies,
    ops: std::slice::Iter<'a, OpId>,
    /// What one piece of work adds, of which there is no more than this.
    ready: VecDeque<Interval>,
    until: u64,
    span: (u64, u64),
}

impl<'a> StreamStates<'a> {
    fn new(line: &'a StateLine, lane: StreamIndex) -> Self {
        let span = line.activity.span.unwrap_or_default();
        StreamStates {
            activity: &line.activity,
            dependencies: &line.dependencies,
            ops: line.activity.ops_of(lane).iter(),
            ready: VecDeque::with_capacity(4),
            until: span.0,
            span,
        }
    }

    fn add_work(&mut self, op: OpId) {
        let ops = &self.activity.ops;
        let start = ops.start[op.index()].max(self.span.0);
        if start > self.until {
            let asked = self.activity.asked(op).clamp(self.until, start);
            self.add(asked, State::Idle, OpId::NONE, OpId::NONE);
            let edges = self.dependencies.edges_to(op).iter();
            let held = edges
                .map(|edge| (ops.end[edge.from.index()].min(start), edge.from))
                .max();
            if let Some((until, from)) = held {
                self.add(until, State::Waiting, op, from);
            }
            self.add(start, State::Pending, op, OpId::NONE);
        }
        self.add(ops.end[op.index()], State::Running, op, OpId::NONE);
    }

    /// Goes on to `to` in a state; nothing when that is no later than it is.
    fn add(&mut self, to: u64, state: State, op: OpId, waits_for: OpId) {
        let to = to.min(self.span.1);
        if to > self.until {
            self.ready.push_back(Interval {
                from: self.until,
                to,
                state,
                op,
                waits_for,
            });
            self.until = to;
        }
    }
}

impl Iterator for StreamStates<'_> {
    type Item = Interval;

    fn next(&mut self) -> Option<Interval> {
        loop {
            if let Some(interval) = self.ready.pop_front() {
                return Some(interval);
            }
            match self.ops.next() {
                Some(op) => self.add_work(*op),
                None if self.until < self.span.1 => {
                    self.add(self.span.1, State::Finished, OpId::NONE, OpId::NONE);
                }
                None => return None,
            }
        }
    }
}

/// The busiest state of several lines at every moment; finished only when all are. Of equally busy lines the last counts.
struct MergedStates<'a> {
    lines: Vec<(StreamStates<'a>, Option<Interval>)>,
    /// When each line changes next.
    changes: BinaryHeap<Reverse<(u64, usize)>>,
    /// The lines in each state, by rank.
    ranked: [BTreeSet<usize>; State::ALL.len()],
    next: Option<Interval>,
}

impl<'a> MergedStates<'a> {
    fn new(streams: impl Iterator<Item = StreamStates<'a>>) -> Self {
        let mut together = MergedStates {
            lines: streams.map(|stream| (stream, None)).collect(),
            changes: BinaryHeap::new(),
            ranked: Default::default(),
            next: None,
        };
        for line in 0..together.lines.len() {
            together.advance(line);
        }
        together.next = together.busiest();
        together
    }

    fn rank(state: State) -> usize {
        match state {
            State::Finished => 0,
            state => state as usize + 1,
        }
    }

    /// Goes on to a line's next state.
    fn advance(&mut self, line: usize) {
        let (stream, current) = &mut self.lines[line];
        let before = std::mem::replace(current, stream.next());
        if let Some(before) = before {
            self.ranked[Self::rank(before.state)].remove(&line);
        }
        if let Some(now) = current {
            self.ranked[Self::rank(now.state)].insert(line);
            self.changes.push(Reverse((now.to, line)));
        }
    }

    /// What the busiest line does, up to the next change.
    fn busiest(&self) -> Option<Interval> {
        let line = self.ranked.iter().rev().find_map(|lines| lines.last())?;
        let Reverse((to, _)) = self.changes.peek()?;
        let (_, current) = &self.lines[*line];
        current.map(|current| Interval { to: *to, ..current })
    }

    /// Goes on to the next change, and says what is then.
    fn step(&mut self) -> Option<Interval> {
        let Reverse((time, _)) = *self.changes.peek()?;
        while let Some(Reverse((next, line))) = self.changes.peek().copied()
            && next == time
        {
            self.changes.pop();
            self.advance(line);
        }
        self.busiest().map(|busiest| Interval {
            from: time,
            ..busiest
        })
    }
}

impl Iterator for MergedStates<'_> {
    type Item = Interval;

    fn next(&mut self) -> Option<Interval> {
        let mut found = self.next?;
        loop {
            self.next = self.step();
            match self.next {
                Some(next)
                    if (next.state, next.op, next.waits_for) == (found.state, found.op, found.waits_for) =>
                {
                    found.to = next.to;
                }
                _ => return Some(found),
            }
        }
    }
}
