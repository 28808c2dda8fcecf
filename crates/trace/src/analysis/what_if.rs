//! What if: the dependency graph replayed on paper with something changed.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use tracesmith_format::{DeviceId, StackId};

use super::cpu_ahead::{CpuAhead, is_doubtful};
use super::kernels::share;
use super::registry::{Analyzer, Answer, Need};
use super::source_line::source_line;
use crate::model::event::EventName;
use crate::model::trace::Trace;
use crate::name_pattern::NamePattern;
use crate::reconstruct::{
    Activity, CallId, Change, Dependencies, ExecutionGraph, Link, LinkKind, Node, OpId, OpTable, StreamLimit,
    Unchanged, Window, name_of,
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
    /// The analyzed time as measured: from the first to the last node, or as selected.
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
    /// Waits of a stream for another one that no row states, assumed from the times.
    pub assumed_edges: u64,
    /// CPU code on the critical path during which launched work had not started, if that makes the path doubtful; else
    /// 0.
    pub cpu_ahead_ns: u64,
}

impl WhatIfReport {
    /// Simulates a graph, which was built with these dependencies, with the changes. The times are those of a time range:
    /// how much sooner it would end after it begins.
    pub fn of(
        trace: &Trace,
        activity: &Activity,
        dependencies: &Dependencies,
        graph: &ExecutionGraph,
        (what_if, window): (&WhatIf, Window),
    ) -> Self {
        let mut changed = Changed::new(trace, activity, what_if, window);
        let path = OnPath::of(activity, graph, &changed.factors, window);
        let length = Length::of(activity, graph, window, path.work_share);
        let unchanged_ns = length.in_times(&graph.replayed(&mut Unchanged));
        let changed_ns = length.in_times(&graph.replayed(&mut changed));
        let measured_ns = graph.span_within(window);
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
            assumed_edges: dependencies.assumed_edges,
            cpu_ahead_ns: path.cpu_ahead_ns,
        }
    }
}

/// How long a time range is in times that were simulated.
enum Length<'a> {
    /// The whole time.
    Whole {
        activity: &'a Activity,
        graph: &'a ExecutionGraph,
    },
    /// A part. Its ends move with the nodes that are just before them: with those of the host where the CPU determines the
    /// time, else with those of the GPU.
    Part {
        /// Nodes in the order of their measured times.
        anchors: Vec<(u64, usize)>,
        ends: (u64, u64),
    },
}

impl<'a> Length<'a> {
    fn of(activity: &'a Activity, graph: &'a ExecutionGraph, window: Window, work_share: f64) -> Self {
        if window == Window::default() {
            return Length::Whole { activity, graph };
        }
        let is_wanted = |node: &Node| matches!(node, Node::Op(_)) == (work_share >= 0.5);
        let has_wanted = graph.nodes.iter().any(is_wanted);
        let mut anchors: Vec<(u64, usize)> = (0..graph.len())
            .filter(|at| !has_wanted || is_wanted(&graph.nodes[*at]))
            .map(|at| (graph.measured(at), at))
            .collect();
        anchors.sort_unstable();
        Length::Part {
            anchors,
            ends: graph.ends(window),
        }
    }

    fn in_times(&self, times: &[u64]) -> u64 {
        match self {
            Self::Whole { activity, graph } => {
                let end = times.iter().copied().max().unwrap_or(graph.start);
                // Calls after the last node stay as far behind it as they were.
                let last = activity.span.map_or(0, |(_, last)| last);
                end.saturating_sub(graph.start) + last.saturating_sub(graph.end())
            }
            Self::Part { anchors, ends } => {
                let moved = |time: u64| -> i128 {
                    let after = anchors.partition_point(|(measured, _)| *measured <= time);
                    // Before the first of them nothing moves.
                    let anchor = after.checked_sub(1).map(|before| anchors[before]);
                    let shift =
                        anchor.map_or(0, |(measured, at)| i128::from(times[at]) - i128::from(measured));
                    i128::from(time) + shift
                };
                u64::try_from(moved(ends.1) - moved(ends.0)).unwrap_or(0)
            }
        }
    }
}

/// What the critical path consists of, as far as changes go.
struct OnPath {
    scaled: u64,
    scaled_ns: u64,
    work_share: f64,
    /// CPU code during which launched work had not started, if that makes the path doubtful; else 0.
    cpu_ahead_ns: u64,
}

impl OnPath {
    fn of(activity: &Activity, graph: &ExecutionGraph, factors: &[Option<f64>], window: Window) -> Self {
        let path = graph.critical();
        let mut on_path = OnPath {
            scaled: 0,
            scaled_ns: 0,
            work_share: 0.0,
            cpu_ahead_ns: 0,
        };
        let (mut work, mut reached) = (0, 0);
        let ahead = CpuAhead::of(activity);
        let (mut host_ns, mut ahead_ns) = (0, 0);
        for at in path.iter().map(|at| *at as usize) {
            let (end, nanos) = (graph.measured(at), graph.duration(at));
            if let Node::Op(op) = graph.nodes[at] {
                // Ops of the path may overlap.
                let (from, to) = window.clip((end - nanos).max(reached), end);
                let is_within = activity.touches(op, &window);
                if is_within && factors[activity.ops.kind[op.index()] as usize].is_some() {
                    on_path.scaled += 1;
                    on_path.scaled_ns += nanos;
                }
                work += to.saturating_sub(from);
            }
            let is_host = |link: &Link| matches!(link.kind, LinkKind::Host | LinkKind::OtherThread);
            if let Some(link) = graph.binding(at).filter(is_host) {
                let (from, to) = window.clip(graph.measured(link.from as usize), end);
                host_ns += to.saturating_sub(from);
                ahead_ns += ahead.within(std::iter::once((from, to)));
            }
            reached = reached.max(end);
        }
        let first = path.first().map_or(reached, |at| {
            graph.measured(*at as usize) - graph.duration(*at as usize)
        });
        let (first, reached) = window.clip(first, reached);
        let path_ns = reached.saturating_sub(first);
        on_path.work_share = share(work, path_ns);
        if is_doubtful(path_ns, host_ns, ahead_ns) {
            on_path.cpu_ahead_ns = ahead_ns;
        }
        on_path
    }

    fn explanation(&self, changed: &Changed<'_>, (unchanged_ns, changed_ns): (u64, u64)) -> Option<String> {
        let change = unchanged_ns.abs_diff(changed_ns) as f64;
        if change >= NOTHING * unchanged_ns as f64 {
            return None;
        }
        let what_holds = match (self.work_share < 0.5, self.cpu_ahead_ns > 0) {
            (true, true) => "by the recorded calls, the CPU determines the time",
            (true, false) => "the GPU waits for the CPU",
            (false, _) => "other GPU work determines the time",
        };
        let percent = |part: f64| format!("{:.0} %", 100.0 * part);
        if changed.scaled_ops > 0 && changed.is_same() {
            return Some("a factor of 1 changes nothing".to_owned());
        }
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
                "the waits cost less than 0.05 %: the CPU itself determines the time ({} of the critical path is GPU work)",
                percent(self.work_share)
            ),
            false => format!(
                "the waits cost less than 0.05 %: the GPU is busy while the CPU waits ({} of the critical path is GPU work)",
                percent(self.work_share)
            ),
        })
    }
}

/// Share of the time below which a change is none: it is shown as 0.0 %.
const NOTHING: f64 = 0.0005;

struct Changed<'a> {
    trace: &'a Trace,
    /// What is counted lies in it.
    window: Window,
    /// For each kind of work the factor.
    factors: Vec<Option<f64>>,
    streams: StreamCount,
    host_waits: &'a HostWaits,
    /// Whether waits from a line of code are meant, by the stack.
    lines: FxHashMap<StackId, bool>,
    few: Option<StreamLimit>,
    /// When the copy engine of a device is free, by direction: copies share a link, however many streams there are.
    engines: FxHashMap<(DeviceId, EventName), u64>,
    scaled_ops: u64,
    left_waits: u64,
    /// The wait that was left out last. It may be tied to several ops and counts once.
    last_left: CallId,
}

impl<'a> Changed<'a> {
    fn new(trace: &'a Trace, activity: &Activity, what_if: &'a WhatIf, window: Window) -> Self {
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
    fn is_same(&self) -> bool {
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
        match self.factors[activity.ops.kind[op.index()] as usize] {
            Some(factor) => {
                self.scaled_ops += u64::from(activity.touches(op, &self.window));
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

    fn lane_free(&mut self, activity: &Activity, op: OpId) -> Option<u64> {
        match &self.few {
            Some(few) => Some(few.free_at(activity, op)),
            None => self.engines.get(&self.engine(activity, op)?).copied(),
        }
    }

    fn done(&mut self, activity: &Activity, op: OpId, time: u64) {
        if let Some(few) = &mut self.few {
            few.done(activity, op, time);
        } else if let Some(engine) = self.engine(activity, op) {
            let free = self.engines.entry(engine).or_default();
            *free = (*free).max(time);
        }
    }
}
