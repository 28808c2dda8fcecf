//! What is known of one of the two traces: every figure for every step, or once for the whole trace.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{MemoryCopy, MemorySet};
use tracesmith_format::{ProcessId, Projection};

use super::renamed::{Place, family};
use super::{DiffKey, DiffUnit};
use crate::analysis::idle::{IdleCause, causes_of};
use crate::analysis::short_name::short_name;
use crate::analysis::summary::Analysis;
use crate::error::Error;
use crate::model::event::EventName;
use crate::model::trace::Trace;
use crate::reconstruct::{Activity, Gap, OpId, OpTable, Timeline, first_rows};

/// One of the two traces.
#[derive(Default)]
pub(super) struct Side {
    pub(super) times: Vec<f64>,
    pub(super) busy: Vec<f64>,
    /// Idle time of each cause, of the mean device.
    pub(super) idle: BTreeMap<usize, Vec<f64>>,
    /// Copies by direction.
    pub(super) copies: BTreeMap<&'static str, Vec<Copies>>,
    /// Kernels by name.
    pub(super) kernels: BTreeMap<String, Vec<Launches>>,
    /// Durations of every launch, for traces without steps.
    pub(super) launches: FxHashMap<String, Vec<f64>>,
    /// Where in a step each kernel first runs.
    pub(super) places: FxHashMap<String, Place>,
}

/// The launches of a kernel in a step.
#[derive(Clone, Copy, Default)]
pub(super) struct Launches {
    pub(super) nanos: f64,
    pub(super) count: f64,
}

/// The copies of one direction in a step.
#[derive(Clone, Copy, Default)]
pub(super) struct Copies {
    pub(super) nanos: f64,
    pub(super) bytes: f64,
    pub(super) count: f64,
}

impl Side {
    pub(super) fn of(analysis: &Analysis, unit: DiffUnit, by: DiffKey) -> Result<Self, Error> {
        let mut side = Side::default();
        side.measure(analysis, unit);
        side.add_idle(analysis, unit);
        side.add_copies(analysis, unit)?;
        side.add_kernels(analysis, unit, by);
        Ok(side)
    }

    /// Steps, or 1.
    pub(super) fn samples(&self) -> usize {
        self.times.len()
    }

    fn measure(&mut self, analysis: &Analysis, unit: DiffUnit) {
        let swept = analysis.swept();
        match unit {
            DiffUnit::Step => {
                for at in analysis.steps.settled() {
                    let row = &swept.steps.steps[*at as usize];
                    let busiest = row.devices.iter().map(|device| device.breakdown.busy_ns).max();
                    self.times.push(row.step.duration() as f64);
                    self.busy.push(busiest.unwrap_or(0) as f64);
                }
            }
            DiffUnit::Trace => {
                let devices = swept.utilization.devices.iter();
                let busiest = devices.map(|device| device.breakdown.busy_ns).max();
                let span = analysis.activity.span.map_or(0, |(start, end)| end - start);
                self.times.push(span as f64);
                self.busy.push(busiest.unwrap_or(0) as f64);
            }
        }
    }

    /// Gaps are cut at the borders of steps, as one may last longer than a step.
    fn add_idle(&mut self, analysis: &Analysis, unit: DiffUnit) {
        let (activity, steps) = (&*analysis.activity, &*analysis.steps);
        let (samples, devices) = (self.samples(), activity.devices().len().max(1) as f64);
        let idle = &mut self.idle;
        let mut add = |gap: Gap, place: usize| {
            causes_of(activity, gap, &mut |cause, nanos| {
                let steps = idle.entry(cause as usize).or_insert_with(|| vec![0.0; samples]);
                steps[place] += nanos as f64 / devices;
            });
        };
        Timeline::swept(activity, &[], |gap| match unit {
            DiffUnit::Trace => add(gap, 0),
            DiffUnit::Step => {
                let process = process_of(activity, gap.next);
                for (step, from, to) in steps.during(process, gap.from, gap.to) {
                    if let Ok(place) = steps.settled().binary_search(&step) {
                        add(Gap { from, to, ..gap }, place);
                    }
                }
            }
        });
    }

    fn add_copies(&mut self, analysis: &Analysis, unit: DiffUnit) -> Result<(), Error> {
        let (activity, samples) = (&*analysis.activity, self.samples());
        let ops = &activity.ops;
        let is_there = |table: OpTable| ops.kinds.iter().any(|kind| kind.table == table);
        let copies = match is_there(OpTable::Copies) {
            true => copied_bytes(&analysis.trace)?,
            false => Vec::new(),
        };
        let sets = match is_there(OpTable::Sets) {
            true => set_bytes(&analysis.trace)?,
            false => Vec::new(),
        };
        for op in ops.ids() {
            let kind = ops.kind(op);
            let bytes = match kind.table {
                OpTable::Copies => &copies,
                OpTable::Sets => &sets,
                _ => continue,
            };
            let (EventName::Word(direction), Some(place)) = (kind.name, place_of(analysis, unit, op)) else {
                continue;
            };
            let steps = self
                .copies
                .entry(direction)
                .or_insert_with(|| vec![Copies::default(); samples]);
            steps[place].nanos += ops.duration(op) as f64;
            steps[place].bytes += bytes.get(ops.row[op.index()] as usize).copied().unwrap_or(0) as f64;
            steps[place].count += 1.0;
        }
        Ok(())
    }

    fn add_kernels(&mut self, analysis: &Analysis, unit: DiffUnit, by: DiffKey) {
        let (activity, samples) = (&*analysis.activity, self.samples());
        let ops = &activity.ops;
        let mut numbers: FxHashMap<EventName, usize> = FxHashMap::default();
        let mut names: Vec<String> = Vec::new();
        let mut known: FxHashMap<String, usize> = FxHashMap::default();
        let mut steps: Vec<Vec<Launches>> = Vec::new();
        let mut launches: Vec<Vec<f64>> = Vec::new();
        // The kernels of one process in one step, in the order in which they ran.
        let mut order: Vec<usize> = Vec::new();
        let mut shown: Option<ProcessId> = None;
        for op in ops.ids() {
            let kind = ops.kind(op);
            if !matches!(kind.table, OpTable::Kernels | OpTable::GraphLaunches) {
                continue;
            }
            let Some(place) = place_of(analysis, unit, op) else {
                continue;
            };
            let number = *numbers.entry(kind.name).or_insert_with(|| {
                let name = activity.name(&analysis.trace, op);
                let name = match by {
                    DiffKey::Short => short_name(name),
                    DiffKey::Name => name.to_owned(),
                };
                *known.entry(name.clone()).or_insert_with(|| {
                    names.push(name);
                    steps.push(vec![Launches::default(); samples]);
                    launches.push(Vec::new());
                    names.len() - 1
                })
            });
            let nanos = ops.duration(op) as f64;
            steps[number][place].nanos += nanos;
            steps[number][place].count += 1.0;
            if unit == DiffUnit::Trace {
                launches[number].push(nanos);
            }
            let process = process_of(activity, op);
            if place == 0 && *shown.get_or_insert(process) == process {
                order.push(number);
            }
        }
        self.places = places(&names, &order);
        self.launches = names.iter().cloned().zip(launches).collect();
        self.kernels = names.into_iter().zip(steps).collect();
    }
}

fn process_of(activity: &Activity, op: OpId) -> ProcessId {
    activity.lane(activity.ops.lane[op.index()]).process
}

/// The place of an op among the samples.
fn place_of(analysis: &Analysis, unit: DiffUnit, op: OpId) -> Option<usize> {
    let steps = &analysis.steps;
    match unit {
        DiffUnit::Trace => Some(0),
        DiffUnit::Step => {
            let step = steps.settled_of(&analysis.activity, op)?;
            steps.settled().binary_search(&step).ok()
        }
    }
}

/// Where each kernel first runs in a sequence of kernels.
fn places(names: &[String], order: &[usize]) -> FxHashMap<String, Place> {
    let mut places: FxHashMap<String, Place> = FxHashMap::default();
    let near = |at: Option<usize>| {
        let number = at.and_then(|at| order.get(at));
        number.map_or(String::new(), |number| family(&names[*number]))
    };
    let mut seen = vec![false; names.len()];
    for (at, number) in order.iter().enumerate() {
        if std::mem::replace(&mut seen[*number], true) {
            continue;
        }
        let place = Place {
            share: at as f64 / (order.len() - 1).max(1) as f64,
            before: near(at.checked_sub(1)),
            after: near(Some(at + 1)),
        };
        places.insert(names[*number].clone(), place);
    }
    places
}

fn copied_bytes(trace: &Trace) -> Result<Vec<u64>, Error> {
    let mut bytes = vec![0; trace.copies.rows() as usize];
    let first_row = first_rows(&trace.copies);
    trace.copies.stream_wanted(
        &Projection::of::<MemoryCopy>(&["bytes"])?,
        |block, rows| (first_row(block), rows.bytes.clone()),
        |(first, rows)| fill(&mut bytes, first, rows.iter().map(|bytes| bytes.0)),
    );
    Ok(bytes)
}

fn set_bytes(trace: &Trace) -> Result<Vec<u64>, Error> {
    let mut bytes = vec![0; trace.sets.rows() as usize];
    let first_row = first_rows(&trace.sets);
    trace.sets.stream_wanted(
        &Projection::of::<MemorySet>(&["bytes"])?,
        |block, rows| (first_row(block), rows.bytes.clone()),
        |(first, rows)| fill(&mut bytes, first, rows.iter().map(|bytes| bytes.0)),
    );
    Ok(bytes)
}

fn fill(bytes: &mut [u64], first: u64, values: impl Iterator<Item = u64>) {
    for (place, value) in bytes.iter_mut().skip(first as usize).zip(values) {
        *place = value;
    }
}

/// The cause of a number.
pub(super) fn cause(number: usize) -> IdleCause {
    IdleCause::ALL
        .into_iter()
        .find(|cause| *cause as usize == number)
        .unwrap_or(IdleCause::Unknown)
}
