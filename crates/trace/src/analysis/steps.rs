//! The iterations of a program, and what the devices did in each.

use std::sync::Arc;

use serde::Serialize;

use super::distribution::Distribution;
use super::registry::{Analyzer, Answer, Need, row};
use super::short_name::short_name;
use super::utilization::Breakdown;
use crate::reconstruct::{Activity, Step, StepSource, Steps, Timeline};
use crate::units;

pub(super) const ANALYZER: Analyzer = Analyzer {
    name: "steps",
    aliases: &[],
    description: "The steps of the program's loop",
    needs: Need::Steps,
    run: |analysis, _| {
        Ok(Answer::whole(
            Arc::new(analysis.swept().steps.clone()),
            |report| Box::new(report.steps.iter().map(row)),
        ))
    },
};

impl StepSource {
    /// Where steps come from, for people.
    pub fn words(&self) -> String {
        match self {
            StepSource::Markers { name, is_nvtx: true } => format!("from NVTX ranges named {name}"),
            StepSource::Markers { name, .. } => format!("from ranges named {name}"),
            StepSource::Optimizer { name } => format!("each up to the end of {name}"),
            StepSource::DataLoader { name } => format!("each from the start of {name}"),
            StepSource::Pattern { anchor, kernels } => {
                let (count, anchor) = (units::count(*kernels as u64), short_name(anchor));
                format!("from a repeating pattern of {count} GPU operations, starting with {anchor}")
            }
            StepSource::None => "none".to_owned(),
        }
    }
}

/// The iterations of a program.
#[derive(Clone, Debug, Serialize)]
pub struct StepsReport {
    /// How they were found.
    pub source: StepSource,
    /// The processes that have steps.
    pub processes: usize,
    /// Durations of those after the warm-up that are not cut off.
    pub settled: Distribution,
    /// From the first GPU work of one of these to that of the next step. If the CPU runs ahead, that is the time of a
    /// step.
    pub gpu_period: Distribution,
    /// All of them.
    pub steps: Vec<StepRow>,
}

/// One iteration.
#[derive(Clone, Debug, Serialize)]
pub struct StepRow {
    /// Name and times.
    #[serde(flatten)]
    pub step: Step,
    /// When it began, from the start of the trace.
    pub offset_ns: u64,
    /// Ops that it launched, in all processes.
    pub ops: u64,
    /// What each device did while it lasted.
    pub devices: Vec<StepDevice>,
}

/// What a device did while a step lasted.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct StepDevice {
    /// The device.
    pub device: u32,
    /// What it did.
    #[serde(flatten)]
    pub breakdown: Breakdown,
}

impl StepsReport {
    /// Of steps and a timeline that was swept with their moments.
    pub fn of(activity: &Activity, steps: &Steps, timeline: &Timeline) -> Self {
        let moments = steps.moments();
        let mut ops = vec![0u64; steps.steps.len()];
        let mut first = vec![u64::MAX; steps.steps.len()];
        for op in activity.ops.ids() {
            if let Some(step) = steps.of_op(activity, op) {
                ops[step as usize] += 1;
                let first = &mut first[step as usize];
                *first = activity.ops.start[op.index()].min(*first);
            }
        }
        let begun = |step: usize| first.get(step).copied().filter(|start| *start != u64::MAX);
        let period = |step: &u32| begun(*step as usize + 1)?.checked_sub(begun(*step as usize)?);
        let mut periods: Vec<u64> = steps.settled().iter().filter_map(period).collect();
        let rows = steps.steps.iter().zip(ops).map(|(step, ops)| {
            let first = moments.partition_point(|moment| *moment < step.start_ns);
            let last = moments.partition_point(|moment| *moment < step.end_ns);
            let devices = timeline.devices.iter().filter_map(|device| {
                // Other processes may have steps of their own, which cut this one into several parts.
                let breakdown = device
                    .between
                    .get(first..last)?
                    .iter()
                    .map(Breakdown::of)
                    .reduce(|a, b| a.plus(&b))?;
                let used = activity
                    .lanes
                    .iter()
                    .any(|lane| lane.device == device.device && step.has(lane.process));
                used.then_some(StepDevice {
                    device: device.device.0,
                    // Before a device's first work and after its last it is idle as well.
                    breakdown: breakdown.over(step.duration()),
                })
            });
            StepRow {
                step: step.clone(),
                offset_ns: step.start_ns.saturating_sub(activity.begin),
                ops,
                devices: devices.collect(),
            }
        });
        let rows: Vec<StepRow> = rows.collect();
        let mut durations: Vec<u64> = steps
            .settled()
            .iter()
            .map(|at| steps.steps[*at as usize].duration())
            .collect();
        StepsReport {
            source: steps.source.clone(),
            processes: steps.processes(),
            settled: Distribution::of(&mut durations),
            gpu_period: Distribution::of(&mut periods),
            steps: rows,
        }
    }
}
