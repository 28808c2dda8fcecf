//! The kernel table: how often, how long and how evenly each kernel ran.

use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use tracesmith_format::{DeviceId, ProcessId, StackId, StringId};

use super::distribution::{Distribution, mean_and_deviation};
use super::host_places::{HostPlaces, LineFinder, NO_PLACE};
use super::registry::{Analyzer, Answer, Need, row};
use super::short_name::short_name;
use crate::model::trace::Trace;
use crate::reconstruct::{Activity, Interner, OpId, OpTable, RangePaths, Steps, name_of};

pub(super) const ANALYZER: Analyzer = Analyzer {
    name: "kernels",
    aliases: &["hotspots"],
    description: "Kernels by total time",
    needs: Need::Ops,
    run: |analysis, options| {
        let mut report = analysis.kernels(options.by);
        if let Some(limit) = options.limit.filter(|limit| *limit < report.rows.len()) {
            Arc::make_mut(&mut report).rows.truncate(limit);
        }
        Ok(Answer::whole(report, |report| {
            Box::new(report.rows.iter().map(row))
        }))
    },
};

/// What makes two kernels the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelKey {
    /// Their names.
    #[default]
    Name,
    /// Their names without template and function arguments.
    ShortName,
    /// Their names and the shapes of grid and block.
    Shape,
    /// The line of the program that launched them; the operator where no line is known.
    Stack,
    /// The ranges that were open when they were launched.
    Ranges,
    /// The outermost operator that launched them.
    Operator,
    /// The process that launched them.
    Process,
    /// The rank of the process that launched them.
    Rank,
    /// The step in which they were launched.
    Step,
}

impl KernelKey {
    /// All keys, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::Name,
        Self::ShortName,
        Self::Shape,
        Self::Stack,
        Self::Ranges,
        Self::Operator,
        Self::Process,
        Self::Rank,
        Self::Step,
    ];
}

/// How often, how long and how evenly kernels ran.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KernelsReport {
    /// What a row stands for.
    pub by: KernelKey,
    /// How many kernels there are.
    pub count: u64,
    /// Time of all kernels together; those that ran at once count each.
    pub total_ns: u64,
    /// Steps over which the spread was taken; 0 when there are too few.
    pub steps: usize,
    /// Why operators and ranges are missing from the keys; `None` where they are not, or do not matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub places_problem: Option<String>,
    /// The rows, the longest total first.
    pub rows: Vec<KernelRow>,
}

/// The kernels of one key.
#[derive(Clone, Debug, Serialize)]
pub struct KernelRow {
    /// What they have in common.
    pub name: String,
    /// What they do.
    pub class: &'static str,
    /// Their share of the time of all kernels.
    pub share: f64,
    /// Their durations.
    #[serde(flatten)]
    pub durations: Distribution,
    /// Their mean time in a step on one device, of those that ran them in the step; without the steps of warming up.
    pub step_ns: Option<f64>,
    /// Standard deviation of that time, as a share of its mean.
    pub step_spread: Option<f64>,
    /// Row and start of the longest one, to go and look.
    pub longest_row: u32,
    /// See `longest_row`.
    pub longest_start_ns: u64,
}

/// What stands for a kernel that no operator launched.
const NO_OPERATOR: &str = "no operator";

impl KernelsReport {
    /// Whether the trace has nothing to group by: no operator or no line is known of any kernel.
    pub fn has_no_places(&self) -> bool {
        let nothing = match self.by {
            KernelKey::Operator => NO_OPERATOR,
            KernelKey::Stack => NO_PLACE,
            _ => return false,
        };
        let first = self.rows.first();
        first.is_some_and(|row| row.name == nothing && row.durations.count == self.count)
    }

    /// The kernels that started in the activity's window.
    pub fn of(trace: &Trace, activity: &Activity, by: KernelKey, steps: Option<&Steps>) -> Self {
        let groups = Groups::of(trace, activity, by, steps);
        let mut per_group = vec![0u32; groups.names.len()];
        let mut longest = vec![OpId::NONE; groups.names.len()];
        let ops = &activity.ops;
        let wanted = |op: OpId| activity.window.holds(ops.start[op.index()]);
        for op in ops.ids().filter(|op| wanted(*op)) {
            let Some(group) = groups.of_op(activity, op) else {
                continue;
            };
            per_group[group] += 1;
            let known = longest[group];
            if !known.is_some() || ops.duration(op) > ops.duration(known) {
                longest[group] = op;
            }
        }
        let mut durations: Vec<Vec<u64>> = per_group
            .iter()
            .map(|count| Vec::with_capacity(*count as usize))
            .collect();
        let counted = steps.filter(|steps| by != KernelKey::Step && steps.settled().len() > 1);
        let mut by_step: FxHashMap<(usize, u32, DeviceId), u64> = FxHashMap::default();
        for op in ops.ids().filter(|op| wanted(*op)) {
            let Some(group) = groups.of_op(activity, op) else {
                continue;
            };
            durations[group].push(ops.duration(op));
            if let Some(step) = counted.and_then(|steps| steps.settled_of(activity, op)) {
                let device = activity.lane(ops.lane[op.index()]).device;
                *by_step.entry((group, step, device)).or_default() += ops.duration(op);
            }
        }
        let total_ns = durations.iter().flatten().sum();
        let count = durations.iter().map(|of_group| of_group.len() as u64).sum();
        let distributions: Vec<Distribution> = durations
            .into_par_iter()
            .map(|mut durations| Distribution::of(&mut durations))
            .collect();
        let spreads = spreads(groups.names.len(), counted, &by_step);
        let mut rows: Vec<KernelRow> = groups
            .names
            .into_iter()
            .enumerate()
            .filter(|(group, _)| per_group[*group] > 0)
            .map(|(group, name)| KernelRow {
                name,
                class: ops.class(longest[group]).name(),
                share: share(distributions[group].total_ns, total_ns),
                durations: distributions[group],
                step_ns: spreads[group].map(|(mean, _)| mean),
                step_spread: spreads[group].map(|(_, spread)| spread),
                longest_row: ops.row[longest[group].index()],
                longest_start_ns: ops.start[longest[group].index()],
            })
            .collect();
        rows.sort_by(|a, b| {
            let key = |row: &KernelRow| (std::cmp::Reverse(row.durations.total_ns), row.durations.count);
            key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
        });
        KernelsReport {
            by,
            count,
            total_ns,
            steps: counted.map_or(0, |steps| steps.settled().len()),
            places_problem: groups.places_problem,
            rows,
        }
    }
}

/// A part of a whole; 0 of nothing.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// The mean time of each group in a step, and its deviation as a share of it. Devices work at the same time, so that the
/// time in a step is the mean of those that ran the group.
fn spreads(
    groups: usize,
    steps: Option<&Steps>,
    by_step: &FxHashMap<(usize, u32, DeviceId), u64>,
) -> Vec<Option<(f64, f64)>> {
    let Some(steps) = steps else {
        return vec![None; groups];
    };
    let settled = steps.settled();
    let mut of_devices: FxHashMap<(usize, u32), (u64, u64)> = FxHashMap::default();
    for ((group, step, _), nanos) in by_step {
        let (total, devices) = of_devices.entry((*group, *step)).or_default();
        *total += nanos;
        *devices += 1;
    }
    (0..groups)
        .map(|group| {
            let totals: Vec<f64> = settled
                .iter()
                .map(|step| match of_devices.get(&(group, *step)) {
                    Some((total, devices)) => *total as f64 / *devices as f64,
                    None => 0.0,
                })
                .collect();
            let (mean, deviation) = mean_and_deviation(&totals);
            (mean > 0.0).then(|| (mean, deviation / mean))
        })
        .collect()
}

/// Which key each kernel has. Keys that follow from what a kernel is are worked out once for each kind of kernel.
struct Groups {
    names: Vec<String>,
    of: GroupOf,
    places_problem: Option<String>,
}

enum GroupOf {
    Kind(Vec<Option<u32>>),
    Op(Vec<u32>),
}

impl Groups {
    fn of(trace: &Trace, activity: &Activity, by: KernelKey, steps: Option<&Steps>) -> Self {
        let mut numbered = Interner::default();
        let mut places_problem = None;
        let mut places = || {
            HostPlaces::of(trace, activity).unwrap_or_else(|error| {
                places_problem = Some(error.to_string());
                HostPlaces::none(activity)
            })
        };
        let of = match by {
            KernelKey::Name | KernelKey::ShortName | KernelKey::Shape => {
                GroupOf::Kind(by_kind(trace, activity, by, &mut numbered))
            }
            KernelKey::Stack => {
                let places = places();
                let mut finder = LineFinder::new(trace, activity, &places);
                let ops = &activity.ops;
                let numbers = ops.ids().map(|op| {
                    let stack = ops.stack.get(op.index()).copied().unwrap_or(StackId::NONE);
                    finder.line_or_operator(ops.call[op.index()], stack)
                });
                let numbers = numbers.collect();
                numbered.values = finder.names();
                GroupOf::Op(numbers)
            }
            KernelKey::Operator => {
                let places = places();
                let ops = &activity.ops;
                let mut known: FxHashMap<Option<StringId>, u32> = FxHashMap::default();
                let numbers = ops.ids().map(|op| {
                    let operator = places.operator(activity, ops.call[op.index()]);
                    let name = || operator.map_or(NO_OPERATOR, |name| trace.string(name));
                    *known
                        .entry(operator)
                        .or_insert_with(|| numbered.number(name().to_owned()))
                });
                GroupOf::Op(numbers.collect())
            }
            KernelKey::Process => {
                let name = |process: ProcessId| match trace.process(process) {
                    Some(row) => match row.rank.get() {
                        Some(rank) => format!("rank {rank}, {} (pid {})", trace.string(row.name), row.pid),
                        None => format!("{} (pid {})", trace.string(row.name), row.pid),
                    },
                    None => "unknown process".to_owned(),
                };
                let mut known: FxHashMap<ProcessId, u32> = FxHashMap::default();
                let mut number = |process: ProcessId| {
                    *known.entry(process).or_insert_with(|| {
                        // Processes of different hosts can have the same name and number.
                        match name(process) {
                            name if numbered.has(&name) => numbered.number(format!("{name} #{}", process.0)),
                            name => numbered.number(name),
                        }
                    })
                };
                let lanes: Vec<u32> = activity.lanes.iter().map(|lane| number(lane.process)).collect();
                let lane_of = &activity.ops.lane;
                GroupOf::Op(lane_of.iter().map(|lane| lanes[lane.index()]).collect())
            }
            KernelKey::Rank => {
                let rank = |process| trace.process(process).and_then(|row| row.rank.get());
                let mut number = |process| match rank(process) {
                    Some(rank) => numbered.number(format!("rank {rank}")),
                    None => numbered.number("no rank".to_owned()),
                };
                let lanes: Vec<u32> = activity.lanes.iter().map(|lane| number(lane.process)).collect();
                let lane_of = &activity.ops.lane;
                GroupOf::Op(lane_of.iter().map(|lane| lanes[lane.index()]).collect())
            }
            KernelKey::Step => {
                let steps_of = |op| {
                    let steps = steps?;
                    Some(steps.steps[steps.of_op(activity, op)? as usize].number)
                };
                let numbers = activity.ops.ids().map(|op| match steps_of(op) {
                    Some(step) => numbered.number(format!("step {step}")),
                    None => numbered.number("outside the steps".to_owned()),
                });
                GroupOf::Op(numbers.collect())
            }
            KernelKey::Ranges => {
                let paths = RangePaths::of(trace, activity);
                let numbers: Vec<u32> = (0..paths.len())
                    .map(|path| numbered.number(paths.text(trace, path)))
                    .collect();
                GroupOf::Op(
                    activity
                        .ops
                        .ids()
                        .map(|op| numbers[paths.of_op(activity, op)])
                        .collect(),
                )
            }
        };
        Groups {
            names: numbered.values,
            of,
            places_problem,
        }
    }

    #[inline]
    fn of_op(&self, activity: &Activity, op: OpId) -> Option<usize> {
        match &self.of {
            GroupOf::Kind(groups) => {
                groups[activity.ops.kind[op.index()] as usize].map(|group| group as usize)
            }
            GroupOf::Op(groups) => is_kernel(activity, op).then(|| groups[op.index()] as usize),
        }
    }
}

fn is_kernel(activity: &Activity, op: OpId) -> bool {
    matches!(
        activity.ops.kind(op).table,
        OpTable::Kernels | OpTable::GraphLaunches
    )
}

fn by_kind(
    trace: &Trace,
    activity: &Activity,
    by: KernelKey,
    numbered: &mut Interner<String>,
) -> Vec<Option<u32>> {
    activity
        .ops
        .kinds
        .iter()
        .map(|kind| {
            if !matches!(kind.table, OpTable::Kernels | OpTable::GraphLaunches) {
                return None;
            }
            let name = name_of(trace, kind.name);
            let name = match by {
                KernelKey::ShortName => short_name(name),
                KernelKey::Shape => {
                    let ([x, y, z], [bx, by, bz]) = (kind.grid, kind.block);
                    format!("{name} grid {x}×{y}×{z} block {bx}×{by}×{bz}")
                }
                _ => name.to_owned(),
            };
            Some(numbered.number(name))
        })
        .collect()
}
