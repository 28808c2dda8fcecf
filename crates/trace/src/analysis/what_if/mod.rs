//! What if: the dependency graph simulated with something changed.

mod change;
mod moments;
mod on_path;

use std::sync::Arc;

use serde::Serialize;

use super::critical_path::{PathTotal, Segments};
use super::distribution::Distribution;
use super::host_activity::HostTime;
use super::host_places::HostPlaces;
use super::registry::{Analyzer, Answer, Need};
use crate::error::Error;
use crate::model::trace::Trace;
use crate::reconstruct::{
    Dependencies, ExecutionGraph, Predicted, Simulated, Step, Steps, Unchanged, Watch, Window,
};

use change::Changed;
use moments::Moments;
use on_path::OnPath;

pub use change::{HostWaits, Scale, StreamCount, WhatIf};

pub(super) const ANALYZER: Analyzer = Analyzer {
    name: "what-if",
    aliases: &[],
    description: "The predicted total time with --scale, --streams or --without-sync",
    needs: Need::OpsOrCalls,
    run: |analysis, options| {
        let report = Arc::new(analysis.what_if(&options.what_if)?);
        Ok(Answer::list("what_if", report, |report: &WhatIfReport| {
            std::slice::from_ref(report)
        }))
    },
};

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
    /// The median step; none without steps that count in statistics.
    pub step: Option<MedianStep>,
    /// All steps that are as a whole in the time range.
    pub steps: Vec<PredictedStep>,
    /// The critical path with the changes: what limits the time then.
    pub path: PredictedPath,
}

/// The median of all steps after the warm-up that are not cut off.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MedianStep {
    /// How many steps there are.
    pub count: u64,
    /// The median of their measured times.
    pub measured_ns: u64,
    /// The median of their times with the changes.
    pub changed_ns: u64,
    /// What the critical path goes to in all of these steps with the changes, the most first.
    pub path: Vec<PathTotal>,
}

/// A step as it was, and as it would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PredictedStep {
    /// Its place among all steps of the trace.
    pub number: usize,
    /// Its name.
    pub name: String,
    /// The measured time.
    pub measured_ns: u64,
    /// The time with the changes.
    pub changed_ns: u64,
}

/// The critical path with the changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PredictedPath {
    /// From its start to its end.
    pub path_ns: u64,
    /// What the time goes to, the most first.
    pub totals: Vec<PathTotal>,
    /// Where the CPU is in its part of the path.
    pub host: HostTime,
}

/// What a simulation needs of a trace.
pub(super) struct Simulation<'a> {
    pub(super) trace: &'a Trace,
    pub(super) graph: &'a Arc<ExecutionGraph>,
    pub(super) dependencies: &'a Dependencies,
    pub(super) steps: &'a Steps,
    pub(super) places: &'a HostPlaces,
}

/// Simulates a graph with the changes. What is counted lies in a time range.
pub(super) fn predicted<'a>(
    trace: &'a Trace,
    graph: &Arc<ExecutionGraph>,
    (what_if, window): (&'a WhatIf, Window),
    watch: &Watch<'_>,
) -> Result<(Predicted, Changed<'a>), Error> {
    let mut changed = Changed::new(trace, graph.activity(), what_if, window);
    let simulated = Simulated::of(graph, &mut changed, watch)?;
    let predicted = Predicted::new(Arc::clone(graph), simulated, changed.factors.clone());
    Ok((predicted, changed))
}

impl WhatIfReport {
    /// Simulates a graph, which was built with these dependencies, with the changes. The times are those of a time range:
    /// how much sooner it would end after it begins.
    pub(super) fn of(simulation: &Simulation<'_>, what_if: &WhatIf, window: Window) -> Result<Self, Error> {
        let Simulation {
            trace,
            graph,
            dependencies,
            steps,
            ..
        } = *simulation;
        let activity = &**graph.activity();
        let watch: &Watch<'_> = &|_| Ok(());
        let ends = graph.ends(window);
        let of_steps = steps.steps.iter().flat_map(|step| [step.start_ns, step.end_ns]);
        let moments = Moments::of(graph, of_steps.chain([ends.0, ends.1]));

        let unchanged = Simulated::of(graph, &mut Unchanged, watch)?;
        let (predicted, changed) = predicted(trace, graph, (what_if, window), watch)?;
        let path = OnPath::of(activity, graph, &changed.factors, window);
        let anchor = path.anchor_in(window);
        let length = |times: &[u64]| match window == Window::default() {
            true => graph.total(times),
            false => moments.length(ends, anchor, times),
        };
        let (unchanged_ns, changed_ns) = (length(unchanged.times()), length(predicted.times()));
        drop(unchanged);

        let range = match window == Window::default() {
            true => window,
            false => Window {
                from: Some(moments.moved(ends.0, anchor, predicted.times())),
                to: Some(moments.moved(ends.1, anchor, predicted.times())),
            },
        };
        let of_steps = predicted_steps(steps, &path, &moments, predicted.times());
        let measured_ns = graph.span_within(window);
        Ok(WhatIfReport {
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
            step: MedianStep::of(steps, &of_steps, |ranges| {
                let (segments, _) = Segments::of(trace, activity, &predicted, Window::default());
                segments.totals_in(ranges)
            }),
            steps: of_steps.into_iter().map(|(step, _)| step).collect(),
            path: PredictedPath::of(trace, &predicted, range, simulation.places),
        })
    }
}

impl PredictedPath {
    fn of(trace: &Trace, predicted: &Predicted, range: Window, places: &HostPlaces) -> Self {
        let activity = predicted.activity();
        let (segments, path_ns) = Segments::of(trace, activity, predicted, range);
        PredictedPath {
            path_ns,
            totals: segments.totals(path_ns),
            host: HostTime::of_path(trace, activity, predicted, range, places),
        }
    }
}

/// A step with the time range that it moves to.
type MovedStep = (PredictedStep, (u64, u64));

/// The times of all steps. Each is what the report of the step alone gives.
fn predicted_steps(steps: &Steps, path: &OnPath, moments: &Moments, times: &[u64]) -> Vec<MovedStep> {
    let of_step = |step: &Step| {
        let window = Window {
            from: Some(step.start_ns),
            to: Some(step.end_ns),
        };
        let anchor = path.anchor_in(window);
        let moved = |time| moments.moved(time, anchor, times);
        let (from, to) = (moved(step.start_ns), moved(step.end_ns));
        let predicted = PredictedStep {
            number: step.number,
            name: step.name.clone(),
            measured_ns: step.duration(),
            changed_ns: to.saturating_sub(from),
        };
        (predicted, (from, to.max(from)))
    };
    steps.steps.iter().map(of_step).collect()
}

impl MedianStep {
    fn of(
        steps: &Steps,
        predicted: &[MovedStep],
        path: impl FnOnce(&[(u64, u64)]) -> Vec<PathTotal>,
    ) -> Option<Self> {
        let settled = steps.settled().iter().map(|at| &predicted[*at as usize]);
        let median = |nanos: &mut dyn Iterator<Item = u64>| {
            let mut nanos: Vec<u64> = nanos.collect();
            Distribution::of(&mut nanos)
        };
        let measured = median(&mut settled.clone().map(|(step, _)| step.measured_ns));
        let changed = median(&mut settled.clone().map(|(step, _)| step.changed_ns));
        let ranges: Vec<(u64, u64)> = settled.map(|(_, range)| *range).collect();
        (measured.count > 0).then(|| MedianStep {
            count: measured.count,
            measured_ns: measured.p50_ns,
            changed_ns: changed.p50_ns,
            path: path(&ranges),
        })
    }
}
