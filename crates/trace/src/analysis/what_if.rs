//! What if: the dependency graph replayed on paper with something changed.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use tracesmith_format::StackId;

use super::kernels::share;
use super::registry::{Analyzer, Answer, Need};
use super::source_line::source_line;
use crate::model::trace::Trace;
use crate::name_pattern::NamePattern;
use crate::reconstruct::{
    Activity, CallId, Change, Dependencies, ExecutionGraph, Link, LinkKind, Node, OpId, StreamLimit,
    Unchanged, name_of,
};
use crate::units;

pub(super) const ANALYZER: Analyzer = Analyzer {
    name: "what-if",
    aliases: &[],
    description: "The predicted total time with --scale, --streams or --without-sync",
    needs: Need::OpsOrCalls,
    run: |analysis, options| {
        let report = Arc::new(analysis.what_if(&options.what_if));
        Ok(Answer::list("what_if", report, |report: &WhatIfReport| {
            std::slice::from_ref(report)
        }))
    },
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
    pub factor: f64,
}

/// What the time would have been.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WhatIfReport {
    /// From the first to the last node, as measured; of a stretch of time, with the launches of its work before it and all
    /// of the work that reaches out of it.
    pub measured_ns: u64,
    /// The same, replayed with nothing changed: how well the graph explains what was measured.
    pub unchanged_ns: u64,
    /// The same, replayed with the changes.
    pub changed_ns: u64,
    /// The measured time divided by the changed one.
    pub speedup: f64,
    /// Pieces of work whose duration was changed.
    pub scaled_ops: u64,
    /// How many of them are on the critical path as it was measured.
    pub scaled_on_path: u64,
    /// The measured time of these.
    pub scaled_on_path_ns: u64,
    /// Waits of the host that were left out.
    pub left_waits: u64,
    /// Share of the critical path that is work of devices. The rest is the host, launches and waits.
    pub path_work_share: f64,
    /// Why the changes bring nothing; none if they bring something, or if nothing was changed.
    pub explanation: Option<String>,
    /// Waits for events whose stream was assumed.
    pub assumed_records: u64,
    /// Waits for events that were not found: the real ones may hold up more.
    pub unknown_records: u64,
    /// Waits of the host that name neither stream nor device, in a process with several devices. The replay leaves them out.
    pub unknown_waits: u64,
    /// Launches of graphs on several streams whose nodes' order is not known.
    pub unordered_graphs: u64,
    /// Launches that blocked because the queue of their stream was full.
    pub blocked_launches: u64,
    /// Launches before which the host seems to have waited for its work without a call. Such a wait is assumed.
    pub assumed_waits: u64,
}

impl WhatIfReport {
    /// Simulates a graph, which was built with these dependencies, with the changes.
    pub fn of(
        trace: &Trace,
        activity: &Activity,
        dependencies: &Dependencies,
        graph: &ExecutionGraph,
        what_if: &WhatIf,
    ) -> Self {
        let length = |times: &[u64]| {
            let end = times.iter().copied().max().unwrap_or(graph.start);
            // Calls after the last node stay as far behind it as they were.
            let rest = activity
                .span
                .map_or(0, |(_, last)| last.saturating_sub(graph.end()));
            end.saturating_sub(graph.start) + rest
        };
        let mut changed = Changed::new(trace, activity, what_if);
        let unchanged_ns = length(&graph.replayed(&mut Unchanged));
        let changed_ns = length(&graph.replayed(&mut changed));
        let measured_ns = graph.span();
        let path = OnPath::of(activity, graph, &changed.factors);
        WhatIfReport {
            scaled_on_path: path.scaled,
            scaled_on_path_ns: path.scaled_ns,
            path_work_share: path.work_share,
            explanation: path.explanation(&changed, (unchanged_ns, changed_ns)),
            measured_ns,
            unchanged_ns,
            changed_ns,
            speedup: measured_ns as f64 / changed_ns.max(1) as f64,
            scaled_ops: changed.scaled_ops,
            left_waits: changed.left_waits,
            assumed_records: dependencies.assumed_records,
            unknown_records: dependencies.unknown_records,
            unknown_waits: dependencies.unknown_waits,
            unordered_graphs: dependencies.unordered_graphs,
            blocked_launches: graph.blocked_launches,
            assumed_waits: graph.waits_without_call,
        }
    }
}

/// What the critical path consists of, as far as changes go.
struct OnPath {
    scaled: u64,
    scaled_ns: u64,
    work_share: f64,
}

impl OnPath {
    fn of(activity: &Activity, graph: &ExecutionGraph, factors: &[Option<f64>]) -> Self {
        let path = graph.critical();
        let mut on_path = OnPath {
            scaled: 0,
            scaled_ns: 0,
            work_share: 0.0,
        };
        let (mut work, mut reached) = (0, 0);
        for at in path.iter().map(|at| *at as usize) {
            let (end, nanos) = (graph.measured(at), graph.duration(at));
            if let Node::Op(op) = graph.nodes[at] {
                if factors[activity.ops.kind[op.index()] as usize].is_some() {
                    on_path.scaled += 1;
                    on_path.scaled_ns += nanos;
                }
                // Ops of the path may overlap.
                work += end.saturating_sub((end - nanos).max(reached));
            }
            reached = reached.max(end);
        }
        let first = path.first().map_or(reached, |at| {
            graph.measured(*at as usize) - graph.duration(*at as usize)
        });
        on_path.work_share = share(work, reached - first);
        on_path
    }

    fn explanation(&self, changed: &Changed<'_>, (unchanged_ns, changed_ns): (u64, u64)) -> Option<String> {
        let change = unchanged_ns.abs_diff(changed_ns) as f64;
        if change >= NOTHING * unchanged_ns as f64 {
            return None;
        }
        let what_holds = match self.work_share < 0.5 {
            true => "the GPU waits for the CPU",
            false => "other GPU work determines the time",
        };
        let percent = |part: f64| format!("{:.0} %", 100.0 * part);
        if changed.scaled_ops > 0 {
            let ops = match changed.scaled_ops {
                1 => "1 GPU operation matches".to_owned(),
                count => format!("{} GPU operations match", units::count(count)),
            };
            return Some(match self.scaled {
                0 => format!("{ops}, none on the critical path; {what_holds}"),
                count => format!(
                    "{ops}, {} on the critical path with {} in total; {what_holds} ({} of the path is GPU work)",
                    units::count(count),
                    units::nanos(self.scaled_ns),
                    percent(self.work_share)
                ),
            });
        }
        (changed.left_waits > 0).then(|| match self.work_share < 0.5 {
            true => format!(
                "the waits cost less than 0.1 %: the CPU itself determines the time ({} of the critical path is GPU work)",
                percent(self.work_share)
            ),
            false => format!(
                "the waits cost less than 0.1 %: the GPU is busy while the CPU waits ({} of the critical path is GPU work)",
                percent(self.work_share)
            ),
        })
    }
}

/// Share of the time below which a change is none.
const NOTHING: f64 = 0.001;

struct Changed<'a> {
    trace: &'a Trace,
    /// For each kind of work the factor.
    factors: Vec<Option<f64>>,
    streams: StreamCount,
    host_waits: &'a HostWaits,
    /// Whether waits from a line of code are meant, by the stack.
    lines: FxHashMap<StackId, bool>,
    few: Option<StreamLimit>,
    scaled_ops: u64,
    left_waits: u64,
    /// The wait that was left out last. It may be tied to several ops and counts once.
    last_left: CallId,
}

impl<'a> Changed<'a> {
    fn new(trace: &'a Trace, activity: &Activity, what_if: &'a WhatIf) -> Self {
        let factor = |name: &str| {
            let scale = what_if.scales.iter().find(|scale| scale.name.matches(name))?;
            Some(scale.factor)
        };
        Changed {
            trace,
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
            scaled_ops: 0,
            left_waits: 0,
            last_left: CallId::NONE,
        }
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
        match self.factors[activity.ops.kind[op.index()] as usize] {
            Some(factor) => {
                self.scaled_ops += 1;
                (measured as f64 * factor).round() as u64
            }
            None => measured,
        }
    }

    fn keeps(&mut self, activity: &Activity, node: Node, link: &Link) -> bool {
        match (link.kind, node) {
            (LinkKind::Stream, _) => self.streams != StreamCount::Unlimited,
            (LinkKind::HostWaited, Node::Wait(call)) => {
                let waits = self.waits_in(activity, call);
                if !waits && self.last_left != call {
                    self.last_left = call;
                    self.left_waits += 1;
                }
                waits
            }
            _ => true,
        }
    }

    fn lane_free(&mut self, activity: &Activity, op: OpId) -> Option<u64> {
        self.few.as_ref().map(|few| few.free_at(activity, op))
    }

    fn done(&mut self, activity: &Activity, op: OpId, time: u64) {
        if let Some(few) = &mut self.few {
            few.done(activity, op, time);
        }
    }
}
