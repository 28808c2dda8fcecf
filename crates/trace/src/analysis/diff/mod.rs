//! What is different between two traces: the runs themselves, then times by step, cause, direction and kernel, and
//! whether each change is more than chance.

mod compared;
mod memory;
mod renamed;
mod runs;
mod side;

use std::collections::BTreeSet;

use serde::Serialize;

use super::distribution::mean_and_deviation;
use super::idle::IdleCause;
use super::significance::{least_p, p_value};
use super::summary::Analysis;
use crate::error::Error;
use compared::{CERTAIN, adjust};
use renamed::Candidate;
use side::{Copies, Launches, Side};

pub use compared::Compared;
pub use memory::MemoryDiff;
pub use runs::RunDiff;

/// What is different between two traces, the first and the second.
#[derive(Clone, Debug, Serialize)]
pub struct DiffReport {
    /// What differs between the runs themselves.
    pub runs: Vec<RunDiff>,
    /// What the times are of.
    pub unit: DiffUnit,
    /// Steps, or 1, of the first.
    pub steps_a: usize,
    /// Steps, or 1, of the second.
    pub steps_b: usize,
    /// Whether there are enough steps for a change to be certain, such as five of each trace.
    pub has_enough_steps: bool,
    /// Time of a step or of all, on average.
    pub time: Compared,
    /// Time in which devices were busy; on the device that did most.
    pub busy: Compared,
    /// Idle time by cause, the biggest change first.
    pub idle: Vec<IdleDiff>,
    /// The peak of device memory of each process.
    pub memory: Vec<MemoryDiff>,
    /// Copies by direction, the biggest change first.
    pub copies: Vec<CopyDiff>,
    /// What makes two kernels the same.
    pub by: DiffKey,
    /// The kernels, the biggest change first.
    pub kernels: Vec<KernelDiff>,
}

/// What times are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DiffUnit {
    /// A step after the warm-up, on average.
    Step,
    /// The whole trace, as one of the two has fewer than two such steps.
    Trace,
}

/// What makes two kernels the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DiffKey {
    /// Their names.
    #[default]
    Name,
    /// Their names without template and function arguments.
    Short,
}

/// Idle time of one cause.
#[derive(Clone, Debug, Serialize)]
pub struct IdleDiff {
    /// The cause.
    pub cause: IdleCause,
    /// Idle time in a step, or in all, of the mean device.
    #[serde(flatten)]
    pub time: Compared,
}

/// Copies of one direction.
#[derive(Clone, Debug, Serialize)]
pub struct CopyDiff {
    /// The direction, or `set`.
    pub direction: &'static str,
    /// Copies in a step, or in all, of the first.
    pub count_a: f64,
    /// Of the second.
    pub count_b: f64,
    /// Bytes in a step, or in all, of the first.
    pub a_bytes: f64,
    /// Of the second.
    pub b_bytes: f64,
    /// Time of all such copies in a step, or in all.
    #[serde(flatten)]
    pub time: Compared,
}

/// What became of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It is in both.
    Kept,
    /// It is in both, with another name in the second.
    Renamed,
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
    /// Its name in the second, when it was renamed.
    pub renamed_to: Option<String>,
    /// What became of it.
    pub fate: Fate,
    /// Launches in a step, or in all, of the first.
    pub count_a: f64,
    /// Of the second.
    pub count_b: f64,
    /// Time of all its launches in a step, or in all.
    #[serde(flatten)]
    pub time: Compared,
}

impl DiffReport {
    /// Whether the second trace is slower by more than a share. With too few steps for a test, a change counts if every
    /// step of the second took longer than any of the first.
    pub fn is_slower_by(&self, share: f64) -> bool {
        let is_in_every_step = !self.has_enough_steps && self.time.is_in_every_step;
        (self.time.is_significant || is_in_every_step)
            && self.time.change.is_some_and(|change| change > share)
    }

    /// Compares two traces. Kernels are the same by name or by short name.
    pub fn of(a: &Analysis, b: &Analysis, by: DiffKey) -> Result<Self, Error> {
        let has_steps = |analysis: &Analysis| analysis.steps.settled().len() > 1;
        let unit = if has_steps(a) && has_steps(b) {
            DiffUnit::Step
        } else {
            DiffUnit::Trace
        };
        let (first, second) = (Side::of(a, unit, by)?, Side::of(b, unit, by)?);
        Ok(DiffReport {
            runs: runs::differences(a, b),
            unit,
            steps_a: first.samples(),
            steps_b: second.samples(),
            has_enough_steps: least_p(first.samples(), second.samples()) < CERTAIN,
            time: Compared::of(&first.times, &second.times),
            busy: Compared::of(&first.busy, &second.busy),
            idle: idle(&first, &second),
            memory: memory::compare(&a.trace, &b.trace)?,
            copies: copies(&first, &second),
            by,
            kernels: kernels(unit, &first, &second),
        })
    }
}

fn idle(first: &Side, second: &Side) -> Vec<IdleDiff> {
    let part = |side: &Side, cause: &usize| match side.idle.get(cause) {
        Some(steps) => steps.clone(),
        None => vec![0.0; side.samples()],
    };
    let causes: BTreeSet<&usize> = first.idle.keys().chain(second.idle.keys()).collect();
    let mut rows: Vec<IdleDiff> = causes
        .into_iter()
        .map(|cause| IdleDiff {
            cause: side::cause(*cause),
            time: Compared::of(&part(first, cause), &part(second, cause)),
        })
        .collect();
    adjust(&mut rows, |row| &mut row.time);
    rows.sort_by(|a, b| larger(&a.time, &b.time).then_with(|| a.cause.name().cmp(b.cause.name())));
    rows
}

fn copies(first: &Side, second: &Side) -> Vec<CopyDiff> {
    let part = |side: &Side, direction: &str, pick: fn(&Copies) -> f64| -> Vec<f64> {
        match side.copies.get(direction) {
            Some(steps) => steps.iter().map(pick).collect(),
            None => vec![0.0; side.samples()],
        }
    };
    let mean = |side, direction, pick| mean_and_deviation(&part(side, direction, pick)).0;
    let directions: BTreeSet<&&str> = first.copies.keys().chain(second.copies.keys()).collect();
    let mut rows: Vec<CopyDiff> = directions
        .into_iter()
        .map(|direction| CopyDiff {
            direction,
            count_a: mean(first, direction, |copies| copies.count),
            count_b: mean(second, direction, |copies| copies.count),
            a_bytes: mean(first, direction, |copies| copies.bytes),
            b_bytes: mean(second, direction, |copies| copies.bytes),
            time: Compared::of(
                &part(first, direction, |copies| copies.nanos),
                &part(second, direction, |copies| copies.nanos),
            ),
        })
        .collect();
    adjust(&mut rows, |row| &mut row.time);
    rows.sort_by(|a, b| larger(&a.time, &b.time).then_with(|| a.direction.cmp(b.direction)));
    rows
}

fn kernels(unit: DiffUnit, first: &Side, second: &Side) -> Vec<KernelDiff> {
    let only_in = |side: &'_ Side, other: &Side| -> Vec<String> {
        let names = side.kernels.keys();
        names
            .filter(|name| !other.kernels.contains_key(*name))
            .cloned()
            .collect()
    };
    let (gone, new) = (only_in(first, second), only_in(second, first));
    let pairs = renamed::pairs(&candidates(first, &gone), &candidates(second, &new));
    let kept = first
        .kernels
        .keys()
        .filter(|name| second.kernels.contains_key(*name));
    let mut rows: Vec<KernelDiff> = kept
        .map(|name| kernel(unit, (first, Some(name)), (second, Some(name))))
        .collect();
    let renamed = pairs
        .iter()
        .map(|(a, b)| kernel(unit, (first, Some(&gone[*a])), (second, Some(&new[*b]))));
    rows.extend(renamed);
    for (at, name) in gone.iter().enumerate() {
        if !pairs.iter().any(|(a, _)| *a == at) {
            rows.push(kernel(unit, (first, Some(name)), (second, None)));
        }
    }
    for (at, name) in new.iter().enumerate() {
        if !pairs.iter().any(|(_, b)| *b == at) {
            rows.push(kernel(unit, (first, None), (second, Some(name))));
        }
    }
    adjust(&mut rows, |row| &mut row.time);
    rows.sort_by(|a, b| larger(&a.time, &b.time).then_with(|| a.name.cmp(&b.name)));
    rows
}

fn candidates<'n>(side: &Side, names: &'n [String]) -> Vec<Candidate<'n>> {
    names
        .iter()
        .map(|name| Candidate {
            name,
            count: mean_and_deviation(&part(side, Some(name), |step| step.count)).0,
            place: side.places.get(name).cloned(),
        })
        .collect()
}

fn part(side: &Side, name: Option<&String>, pick: fn(&Launches) -> f64) -> Vec<f64> {
    match name.and_then(|name| side.kernels.get(name)) {
        Some(steps) => steps.iter().map(pick).collect(),
        None => vec![0.0; side.samples()],
    }
}

fn kernel(
    unit: DiffUnit,
    (first, old): (&Side, Option<&String>),
    (second, new): (&Side, Option<&String>),
) -> KernelDiff {
    let of = |pick: fn(&Launches) -> f64| (part(first, old, pick), part(second, new, pick));
    let (a, b) = of(|step| step.nanos);
    let (count_a, count_b) = of(|step| step.count);
    let mut time = Compared::of(&a, &b);
    let fate = match (old, new) {
        (Some(old), Some(new)) if old == new => Fate::Kept,
        (Some(_), Some(_)) => Fate::Renamed,
        (None, _) => Fate::New,
        (_, None) => Fate::Gone,
    };
    time = match (unit, old.zip(new)) {
        // One total says nothing of noise; the durations of the launches do.
        (DiffUnit::Trace, Some((old, new))) => match (first.launches.get(old), second.launches.get(new)) {
            (Some(a), Some(b)) if a.len() == b.len() => time.with(p_value(a, b)),
            _ => time,
        },
        (DiffUnit::Step, Some(_)) => time,
        // That a kernel is there or not is no chance.
        (_, None) => time.with(None),
    };
    KernelDiff {
        name: old.or(new).cloned().unwrap_or_default(),
        renamed_to: (fate == Fate::Renamed).then(|| new.cloned()).flatten(),
        fate,
        count_a: mean_and_deviation(&count_a).0,
        count_b: mean_and_deviation(&count_b).0,
        time,
    }
}

/// The order of rows: the bigger change first.
fn larger(a: &Compared, b: &Compared) -> std::cmp::Ordering {
    b.change_ns.abs().total_cmp(&a.change_ns.abs())
}
