//! What every stream, context and device was doing at every moment.
//!
//! A stream is *idle* while nothing is asked of it, *pending* while something was launched and has not started, *waiting*
//! while what was launched is held up by work of another stream, *running*, and *finished* after its last work. A context
//! or device is in the busiest state of its streams: running before waiting before pending before idle.

use std::collections::BTreeMap;

use serde::Serialize;
use tracesmith_format::{ContextId, DeviceId, ProcessId};

use super::activity::{Activity, LaneId};
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
    Stream(LaneId),
}

/// The states of one subject, one after the other, from the start of the trace to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateLine {
    /// Of what.
    pub subject: Subject,
    /// The states.
    pub intervals: Vec<Interval>,
}

impl StateLine {
    /// Nanoseconds in each state.
    pub fn totals(&self) -> [u64; State::ALL.len()] {
        let mut totals = [0; State::ALL.len()];
        for interval in &self.intervals {
            totals[interval.state as usize] += interval.to - interval.from;
        }
        totals
    }

    /// The state at a moment; none outside of the trace.
    pub fn at(&self, time: u64) -> Option<&Interval> {
        let after = self.intervals.partition_point(|interval| interval.from <= time);
        let interval = self.intervals.get(after.checked_sub(1)?)?;
        (time < interval.to || after == self.intervals.len() && time == interval.to).then_some(interval)
    }
}

/// The states of everything: devices first, then contexts, then streams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct States {
    /// The lines.
    pub lines: Vec<StateLine>,
}

impl States {
    /// Works them out.
    pub fn of(activity: &Activity, dependencies: &Dependencies) -> Self {
        let Some(span) = activity.span else {
            return Self::default();
        };
        let streams: Vec<Vec<Interval>> = activity
            .lane_ids()
            .map(|lane| of_stream(activity, dependencies, lane, span))
            .collect();
        let mut devices: BTreeMap<Subject, Vec<usize>> = BTreeMap::new();
        for (at, lane) in activity.lanes.iter().enumerate() {
            for subject in [
                Subject::Device(lane.device),
                Subject::Context(lane.process, lane.context, lane.device),
            ] {
                devices.entry(subject).or_default().push(at);
            }
        }
        let mut lines: Vec<StateLine> = devices
            .into_iter()
            .map(|(subject, members)| StateLine {
                subject,
                intervals: together(members.iter().map(|at| streams[*at].as_slice()).collect()),
            })
            .collect();
        lines.extend(
            streams
                .into_iter()
                .zip(activity.lane_ids())
                .map(|(intervals, lane)| StateLine {
                    subject: Subject::Stream(lane),
                    intervals,
                }),
        );
        States { lines }
    }

    /// Work that was launched before a moment and had not started by then, of one stream.
    pub fn queued(activity: &Activity, lane: LaneId, time: u64) -> usize {
        let ops = activity.ops_of(lane);
        let first = ops.partition_point(|op| activity.ops.start[op.index()] <= time);
        let asked = |op: &&OpId| activity.asked(**op) <= time;
        ops[first..].iter().take_while(asked).count()
    }
}

fn of_stream(
    activity: &Activity,
    dependencies: &Dependencies,
    lane: LaneId,
    span: (u64, u64),
) -> Vec<Interval> {
    let mut line = Line {
        intervals: Vec::new(),
        until: span.0,
        end: span.1,
    };
    let ops = &activity.ops;
    for op in activity.ops_of(lane) {
        let start = ops.start[op.index()].max(span.0);
        if start > line.until {
            let asked = activity.asked(*op).clamp(line.until, start);
            line.add(asked, State::Idle, OpId::NONE, OpId::NONE);
            let held = dependencies
                .edges_to(*op)
                .iter()
                .map(|edge| (ops.end[edge.from.index()].min(start), edge.from))
                .max();
            if let Some((until, from)) = held {
                line.add(until, State::Waiting, *op, from);
            }
            line.add(start, State::Pending, *op, OpId::NONE);
        }
        line.add(ops.end[op.index()], State::Running, *op, OpId::NONE);
    }
    line.add(span.1, State::Finished, OpId::NONE, OpId::NONE);
    line.intervals
}

struct Line {
    intervals: Vec<Interval>,
    until: u64,
    end: u64,
}

impl Line {
    /// Goes on to `to` in a state; nothing when that is no later than it is.
    fn add(&mut self, to: u64, state: State, op: OpId, waits_for: OpId) {
        let to = to.min(self.end);
        if to > self.until {
            self.intervals.push(Interval {
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

/// The busiest state of several lines at every moment; finished only when all are.
fn together(lines: Vec<&[Interval]>) -> Vec<Interval> {
    let mut changes: Vec<(u64, usize, usize)> = Vec::new();
    for (line, intervals) in lines.iter().enumerate() {
        changes.extend(
            intervals
                .iter()
                .enumerate()
                .map(|(at, interval)| (interval.from, line, at)),
        );
    }
    changes.sort_unstable();
    let end = lines
        .iter()
        .filter_map(|line| line.last())
        .map(|last| last.to)
        .max()
        .unwrap_or(0);
    let mut current: Vec<Option<Interval>> = vec![None; lines.len()];
    let mut found: Vec<Interval> = Vec::new();
    let mut next = 0;
    while next < changes.len() {
        let time = changes[next].0;
        while let Some((from, line, at)) = changes.get(next)
            && *from == time
        {
            current[*line] = Some(lines[*line][*at]);
            next += 1;
        }
        let until = changes.get(next).map_or(end, |(from, ..)| *from);
        let rank = |interval: &Interval| match interval.state {
            State::Finished => 0,
            state => state as u8 + 1,
        };
        let Some(busiest) = current.iter().flatten().max_by_key(|interval| rank(interval)) else {
            continue;
        };
        match found.last_mut() {
            Some(last)
                if (last.state, last.op, last.waits_for)
                    == (busiest.state, busiest.op, busiest.waits_for) =>
            {
                last.to = until;
            }
            _ => found.push(Interval {
                from: time,
                to: until,
                ..*busiest
            }),
        }
    }
    found
}
