//! What is different between two traces: step by step and kernel by kernel, and whether it is more than noise.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::distribution::mean_and_deviation;
use super::significance::p_value;
use super::summary::Analysis;
use crate::reconstruct::{OpId, OpTable};

/// What is different between two traces, the first and the second.
#[derive(Clone, Debug, Serialize)]
pub struct DiffReport {
    /// What the times are of.
    pub unit: DiffUnit,
    /// Steps, or 1, of the first.
    pub steps_a: usize,
    /// Steps, or 1, of the second.
    pub steps_b: usize,
    /// Time of a step or of all, on average.
    pub time: Compared,
    /// Time in which devices were busy; on the device that did most.
    pub busy: Compared,
    /// The kernels, the biggest change first.
    pub kernels: Vec<KernelDiff>,
}

/// What times are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DiffUnit {
    /// A step after the warming up, on average.
    Step,
    /// The whole trace, as one of the two has fewer than two such steps.
    Trace,
}

/// One figure of both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Of the first, in nanoseconds.
    pub a_ns: f64,
    /// Of the second.
    pub b_ns: f64,
    /// The second minus the first.
    pub change_ns: f64,
    /// That as a share of the first; none when the first is nothing.
    pub change: Option<f64>,
    /// The probability that chance alone makes such a difference; none with fewer than two measurements of each.
    pub p: Option<f64>,
}

impl Compared {
    fn of(a: &[f64], b: &[f64]) -> Self {
        let ((a_ns, _), (b_ns, _)) = (mean_and_deviation(a), mean_and_deviation(b));
        Compared {
            a_ns,
            b_ns,
            change_ns: b_ns - a_ns,
            change: (a_ns > 0.0).then(|| (b_ns - a_ns) / a_ns),
            p: p_value(a, b),
        }
    }

    /// Whether it is more than chance, as far as that can be said: one in a hundred counts as chance. A single measurement
    /// of each is taken at its word.
    pub fn is_significant(&self) -> bool {
        self.change_ns != 0.0 && self.p.is_none_or(|p| p < 0.01)
    }
}

/// What became of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It is in both.
    Kept,
    /// It is only in the second.
    New,
    /// It is only in the first.
    Gone,
}

/// One kernel of both.
#[derive(Clone, Debug, Serialize)]
pub struct KernelDiff {
    /// Its name.
    pub name: String,
    /// What became of it.
    pub fate: Fate,
    /// Launches in a step, or in all, of the first.
    pub count_a: f64,
    /// Of the second.
    pub count_b: f64,
    /// Time of all its launches in a step, or in all.
    #[serde(flatten)]
    pub time: Compared,
    /// Whether the difference is more than noise.
    pub is_significant: bool,
}

#[derive(Default)]
struct Side {
    /// For each kernel the time and launches of every step.
    kernels: BTreeMap<String, Vec<(f64, f64)>>,
    times: Vec<f64>,
    busy: Vec<f64>,
    /// Durations of every launch, for traces without steps.
    launches: FxHashMap<String, Vec<f64>>,
}

impl DiffReport {
    /// Compares two traces.
    pub fn of(a: &Analysis, b: &Analysis) -> Self {
        let has_steps = |analysis: &Analysis| analysis.steps.settled().len() > 1;
        let unit = if has_steps(a) && has_steps(b) {
            DiffUnit::Step
        } else {
            DiffUnit::Trace
        };
        let (first, second) = (side(a, unit), side(b, unit));
        let mut names: Vec<&String> = first.kernels.keys().chain(second.kernels.keys()).collect();
        names.sort_unstable();
        names.dedup();
        let mut kernels: Vec<KernelDiff> = names
            .into_iter()
            .map(|name| kernel(name, unit, &first, &second))
            .collect();
        kernels.sort_by(|x, y| {
            let size = |kernel: &KernelDiff| kernel.time.change_ns.abs();
            size(y).total_cmp(&size(x)).then_with(|| x.name.cmp(&y.name))
        });
        DiffReport {
            unit,
            steps_a: first.times.len(),
            steps_b: second.times.len(),
            time: Compared::of(&first.times, &second.times),
            busy: Compared::of(&first.busy, &second.busy),
            kernels,
        }
    }
}

fn kernel(name: &str, unit: DiffUnit, first: &Side, second: &Side) -> KernelDiff {
    let part = |side: &Side, pick: fn(&(f64, f64)) -> f64| -> Vec<f64> {
        match side.kernels.get(name) {
            Some(steps) => steps.iter().map(pick).collect(),
            None => vec![0.0; side.times.len()],
        }
    };
    let mut time = Compared::of(&part(first, |step| step.0), &part(second, |step| step.0));
    if unit == DiffUnit::Trace {
        // One total says nothing of noise; the durations of the launches do.
        time.p = match (first.launches.get(name), second.launches.get(name)) {
            (Some(a), Some(b)) if a.len() == b.len() => p_value(a, b),
            _ => None,
        };
    }
    let fate = match (
        first.kernels.contains_key(name),
        second.kernels.contains_key(name),
    ) {
        (false, _) => Fate::New,
        (_, false) => Fate::Gone,
        _ => Fate::Kept,
    };
    KernelDiff {
        name: name.to_owned(),
        fate,
        count_a: mean_and_deviation(&part(first, |step| step.1)).0,
        count_b: mean_and_deviation(&part(second, |step| step.1)).0,
        is_significant: fate != Fate::Kept || time.is_significant(),
        time,
    }
}

fn side(analysis: &Analysis, unit: DiffUnit) -> Side {
    let (activity, steps) = (&analysis.activity, &analysis.steps);
    let ops = &activity.ops;
    let swept = analysis.swept();
    let settled = steps.settled();
    let mut side = Side::default();
    match unit {
        DiffUnit::Step => {
            let rows: Vec<_> = settled
                .iter()
                .map(|at| &swept.steps.steps[*at as usize])
                .collect();
            side.times = rows.iter().map(|row| row.step.duration() as f64).collect();
            let busiest = |row: &&super::steps::StepRow| {
                row.devices
                    .iter()
                    .map(|device| device.breakdown.busy_ns)
                    .max()
                    .unwrap_or(0) as f64
            };
            side.busy = rows.iter().map(busiest).collect();
        }
        DiffUnit::Trace => {
            side.times = vec![activity.span.map_or(0, |(start, end)| end - start) as f64];
            let busiest = swept
                .utilization
                .devices
                .iter()
                .map(|device| device.breakdown.busy_ns)
                .max();
            side.busy = vec![busiest.unwrap_or(0) as f64];
        }
    }
    let place_of = |op: OpId| match unit {
        DiffUnit::Step => steps
            .settled_of(activity, op)
            .and_then(|step| settled.binary_search(&step).ok()),
        DiffUnit::Trace => Some(0),
    };
    let mut by_name: FxHashMap<&str, Vec<(f64, f64)>> = FxHashMap::default();
    for op in ops.ids() {
        if !matches!(ops.kind(op).table, OpTable::Kernels | OpTable::GraphLaunches) {
            continue;
        }
        let Some(place) = place_of(op) else { continue };
        let name = activity.name(&analysis.trace, op);
        let duration = ops.duration(op) as f64;
        let entry = by_name
            .entry(name)
            .or_insert_with(|| vec![(0.0, 0.0); side.times.len()]);
        entry[place] = (entry[place].0 + duration, entry[place].1 + 1.0);
        if unit == DiffUnit::Trace {
            match side.launches.get_mut(name) {
                Some(list) => list.push(duration),
                None => {
                    side.launches.insert(name.to_owned(), vec![duration]);
                }
            }
        }
    }
    side.kernels = by_name
        .into_iter()
        .map(|(name, steps)| (name.to_owned(), steps))
        .collect();
    side
}
