//! What is to be different, and how that changes a simulation.

use rustc_hash::FxHashMap;
use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};
use tracesmith_format::{DeviceId, StackId};

use super::super::source_line::source_line;
use crate::model::event::EventName;
use crate::model::trace::Trace;
use crate::name_pattern::NamePattern;
use crate::reconstruct::{
    Activity, CallId, Change, Link, LinkKind, Node, OpId, OpTable, StreamLimit, Window, name_of, scaled,
};

/// Which streams there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamCount {
    /// As recorded.
    #[default]
    AsRecorded,
    /// Work waits for nothing but its launch and the events that its stream was told to wait for.
    Unlimited,
    /// So many on each device.
    AtMost(usize),
}

/// Whether the host waits for devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostWaits {
    /// As recorded.
    #[default]
    Kept,
    /// It never does.
    Left,
    /// It does, but not in calls of functions that match, or from lines of code that match.
    LeftIn(NamePattern),
}

/// What is to be different.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WhatIf {
    /// Which ops take how many times as long. The first scale whose pattern matches counts.
    pub scales: Vec<Scale>,
    /// Which streams there are.
    pub streams: StreamCount,
    /// Whether the host waits.
    pub host_waits: HostWaits,
}

/// Ops that take longer or shorter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scale {
    /// Matches the names of the ops.
    pub name: NamePattern,
    /// How many times as long they take.
    #[serde(deserialize_with = "factor")]
    pub factor: f64,
}

/// A factor that time can have.
fn factor<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let factor = f64::deserialize(deserializer)?;
    match factor >= 0.0 {
        true => Ok(factor),
        false => Err(D::Error::invalid_value(
            Unexpected::Float(factor),
            &"a factor of 0 or more",
        )),
    }
}

/// A change, while a graph is simulated with it.
pub(in crate::analysis) struct Changed<'a> {
    trace: &'a Trace,
    /// What is counted lies in it.
    window: Window,
    /// For each kind of work the factor.
    pub(super) factors: Vec<Option<f64>>,
    streams: StreamCount,
    host_waits: &'a HostWaits,
    /// Whether waits from a line of code are meant, by the stack.
    lines: FxHashMap<StackId, bool>,
    few: Option<StreamLimit>,
    /// When the copy engine of a device is free, by direction: copies share a link, however many streams there are.
    engines: FxHashMap<(DeviceId, EventName), (u64, u32)>,
    pub(super) scaled_ops: u64,
    pub(super) left_waits: u64,
    /// The wait that was left out last. It may be tied to several ops and counts once.
    last_left: CallId,
}

impl<'a> Changed<'a> {
    pub(super) fn new(trace: &'a Trace, activity: &Activity, what_if: &'a WhatIf, window: Window) -> Self {
        let factor = |name: &str| {
            let scale = what_if.scales.iter().find(|scale| scale.name.matches(name))?;
            Some(scale.factor)
        };
        Changed {
            trace,
            window,
            factors: activity
                .ops
                .kinds
                .iter()
                .map(|kind| factor(name_of(trace, kind.name)))
                .collect(),
            streams: what_if.streams,
            host_waits: &what_if.host_waits,
            lines: FxHashMap::default(),
            few: match what_if.streams {
                StreamCount::AtMost(count) => Some(StreamLimit::new(activity, count.max(1))),
                _ => None,
            },
            engines: FxHashMap::default(),
            scaled_ops: 0,
            left_waits: 0,
            last_left: CallId::NONE,
        }
    }

    /// The copy engine of an op, if there are more streams than recorded.
    fn engine(&self, activity: &Activity, op: OpId) -> Option<(DeviceId, EventName)> {
        let kind = activity.ops.kind(op);
        let is_copy = kind.table == OpTable::Copies;
        let device = activity.lane(activity.ops.lane[op.index()]).device;
        (self.streams == StreamCount::Unlimited && is_copy).then_some((device, kind.name))
    }

    /// Whether all ops take as long as they did.
    pub(super) fn is_same(&self) -> bool {
        self.factors.iter().flatten().all(|factor| *factor == 1.0)
    }

    /// Whether the host still waits in a call.
    fn waits_in(&mut self, activity: &Activity, call: CallId) -> bool {
        match self.host_waits {
            HostWaits::Kept => true,
            HostWaits::Left => false,
            HostWaits::LeftIn(pattern) => {
                let call = activity.calls.get(call);
                let is_left = pattern.matches(self.trace.string(call.name))
                    || call.stack.is_some()
                        && *self
                            .lines
                            .entry(call.stack)
                            .or_insert_with(|| pattern.matches(&source_line(self.trace, call.stack)));
                !is_left
            }
        }
    }
}

impl Change for Changed<'_> {
    fn duration(&mut self, activity: &Activity, op: OpId, measured: u64) -> u64 {
        let factor = self.factors[activity.ops.kind[op.index()] as usize];
        self.scaled_ops += u64::from(factor.is_some() && activity.touches(op, &self.window));
        scaled(measured, factor)
    }

    fn keeps(&mut self, activity: &Activity, node: Node, link: &Link) -> bool {
        match (link.kind, node) {
            (LinkKind::Stream, _) => self.streams != StreamCount::Unlimited,
            (LinkKind::HostWaited, Node::Wait(call)) => {
                let waits = self.waits_in(activity, call);
                if !waits && self.last_left != call {
                    self.last_left = call;
                    let end = activity.calls.end[call.index()];
                    self.left_waits += u64::from(self.window.holds(end));
                }
                waits
            }
            // A wait without a call goes with all others. Nobody can name it.
            (LinkKind::AssumedWait, Node::Launch(call)) if *self.host_waits == HostWaits::Left => {
                let start = activity.calls.start[call.index()];
                self.left_waits += u64::from(self.window.holds(start));
                false
            }
            _ => true,
        }
    }

    fn lane_free(&mut self, activity: &Activity, op: OpId) -> Option<(u64, u32)> {
        match &self.few {
            Some(few) => few.free_at(activity, op),
            None => self.engines.get(&self.engine(activity, op)?).copied(),
        }
    }

    fn done(&mut self, activity: &Activity, op: OpId, time: u64, at: u32) {
        if let Some(few) = &mut self.few {
            few.done(activity, op, time, at);
        } else if let Some(engine) = self.engine(activity, op) {
            let free = self.engines.entry(engine).or_default();
            *free = (*free).max((time, at));
        }
    }
}
