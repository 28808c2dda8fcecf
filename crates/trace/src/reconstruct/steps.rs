//! The iterations of a program: marked by itself or by its framework, or seen in the kernels that come again and again.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use rustc_hash::FxHashMap;
use serde::Serialize;
use tracesmith_format::tables::{HostCall, Marker, MarkerKind};
use tracesmith_format::{ProcessId, Projection, StringId, ThreadId};

use super::activity::{Activity, StreamIndex, Window};
use super::ops::{OpId, times_on};
use crate::error::Error;
use crate::model::trace::Trace;

/// How steps were found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum StepSource {
    /// Ranges of this name, which the program or its framework marked.
    Markers {
        /// What their names have in common.
        name: String,
    },
    /// A kernel that comes once in each repetition of the others.
    Pattern {
        /// Its name.
        anchor: String,
        /// Kernels of a repetition.
        kernels: usize,
    },
    /// None were found.
    None,
}

/// One iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// Its place among all steps of the trace.
    #[serde(skip)]
    pub number: usize,
    /// The process that it is of.
    #[serde(skip)]
    pub process: ProcessId,
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Whether the program was still warming up.
    pub is_warm_up: bool,
}

impl Step {
    /// How long it took.
    pub fn duration(&self) -> u64 {
        self.end_ns - self.start_ns
    }
}

/// The iterations of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    /// How they were found.
    pub source: StepSource,
    /// All of them, by process and time; those of a process do not overlap.
    pub steps: Vec<Step>,
    settled: Vec<u32>,
    belongs: Belongs,
}

/// What says which step a piece of work belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Belongs {
    /// When it was asked for.
    Asked,
    /// When it began: of steps whose calls are not all known.
    Begun,
}

/// A step is of the warming up when all before it are and it took this much longer than half of those behind it.
const WARM_UP: f64 = 1.25;
/// Repetitions without which a pattern is none.
const MIN_REPETITIONS: usize = 3;
/// How much the distance of repetitions may vary.
const PATTERN_TOLERANCE: f64 = 0.02;

impl Steps {
    /// Finds them: by markers, else by pattern.
    pub fn of(trace: &Trace, activity: &Activity) -> Result<Self, Error> {
        if let Some((name, steps)) = marked(trace)? {
            return Ok(Self::new(StepSource::Markers { name }, steps, Belongs::Asked));
        }
        Ok(match repeating(trace, activity) {
            Some((source, steps, belongs)) => Self::new(source, steps, belongs),
            None => Self::new(StepSource::None, Vec::new(), Belongs::Asked),
        })
    }

    fn new(source: StepSource, mut steps: Vec<Step>, belongs: Belongs) -> Self {
        steps.sort_by_key(|step| (step.process, step.start_ns, step.end_ns));
        for steps in steps.chunk_by_mut(|a, b| a.process == b.process) {
            mark_warm_up(steps);
        }
        for (number, step) in steps.iter_mut().enumerate() {
            step.number = number;
        }
        Self::of_marked(source, steps, belongs)
    }

    /// Of steps that are in order, numbered, and known to be of the warming up or not.
    fn of_marked(source: StepSource, steps: Vec<Step>, belongs: Belongs) -> Self {
        let settled = (0..steps.len() as u32)
            .filter(|at| !steps[*at as usize].is_warm_up)
            .collect();
        Steps {
            source,
            steps,
            settled,
            belongs,
        }
    }

    /// The steps that are in a window as a whole. Of any other, only a part of the work is in the activity.
    pub fn within(self, window: &Window) -> Self {
        let is_inside = |step: &Step| {
            window.from.is_none_or(|from| from <= step.start_ns)
                && window.to.is_none_or(|to| step.end_ns <= to)
        };
        let steps = self.steps.into_iter().filter(is_inside).collect();
        Self::of_marked(self.source, steps, self.belongs)
    }

    /// One step alone: its place in `steps`.
    pub fn only(&self, place: usize) -> Option<Self> {
        let step = self.steps.get(place)?.clone();
        Some(Self::of_marked(self.source.clone(), vec![step], self.belongs))
    }

    /// Those after the warming up: places in `steps`.
    pub fn settled(&self) -> &[u32] {
        &self.settled
    }

    /// The step in which a process was at a moment: a place in `steps`.
    pub fn at(&self, process: ProcessId, time: u64) -> Option<u32> {
        let after = self
            .steps
            .partition_point(|step| (step.process, step.start_ns) <= (process, time));
        let at = after.checked_sub(1)?;
        let step = &self.steps[at];
        (step.process == process && time < step.end_ns).then_some(at as u32)
    }

    /// The step that asked for a piece of work, or in which it ran when the call is not known.
    pub fn of_op(&self, activity: &Activity, op: OpId) -> Option<u32> {
        let at = op.index();
        let call = activity.ops.call[at];
        let time = match call.is_some() && self.belongs == Belongs::Asked {
            true => activity.calls.start[call.index()],
            false => activity.ops.start[at],
        };
        self.at(activity.lane(activity.ops.lane[at]).process, time)
    }

    /// The same, unless the program was still warming up.
    pub fn settled_of(&self, activity: &Activity, op: OpId) -> Option<u32> {
        self.of_op(activity, op)
            .filter(|step| !self.steps[*step as usize].is_warm_up)
    }

    /// Starts and ends of all, sorted: the moments between which a timeline is to be counted apart.
    pub fn moments(&self) -> Vec<u64> {
        let mut moments: Vec<u64> = self
            .steps
            .iter()
            .flat_map(|step| [step.start_ns, step.end_ns])
            .collect();
        moments.sort_unstable();
        moments.dedup();
        moments
    }
}

fn mark_warm_up(steps: &mut [Step]) {
    let typical = medians_after(steps);
    for at in 0..steps.len().saturating_sub(2) {
        if steps[at].duration() as f64 <= typical[at] as f64 * WARM_UP {
            break;
        }
        steps[at].is_warm_up = true;
    }
}

/// For each step the median duration of those after it; 0 for the last. A program that generates text has a hundred
/// thousand steps, so the median is kept up to date from the last step to the first, in two heaps.
fn medians_after(steps: &[Step]) -> Vec<u64> {
    let mut medians = vec![0; steps.len()];
    let mut shorter: BinaryHeap<u64> = BinaryHeap::new();
    // The median is the shortest of these: as many as are shorter, or one more.
    let mut longer: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    for at in (0..steps.len()).rev() {
        medians[at] = longer.peek().map_or(0, |Reverse(median)| *median);
        let duration = steps[at].duration();
        if duration >= medians[at] {
            longer.push(Reverse(duration));
        } else {
            shorter.push(duration);
        }
        if longer.len() > shorter.len() + 1 {
            shorter.extend(longer.pop().map(|Reverse(duration)| duration));
        } else if shorter.len() > longer.len() {
            longer.extend(shorter.pop().map(Reverse));
        }
    }
    medians
}

/// A range that may be a step.
#[derive(Clone, Copy)]
pub(super) struct Range {
    process: ProcessId,
    thread: ThreadId,
    start: u64,
    end: u64,
    name: StringId,
}

/// Ranges that are named like steps: of all such names the one that covers most, PyTorch's own before all others.
fn marked(trace: &Trace) -> Result<Option<(String, Vec<Step>)>, Error> {
    let mut groups: BTreeMap<String, Vec<Range>> = BTreeMap::new();
    let mut names: FxHashMap<StringId, Option<String>> = FxHashMap::default();
    for range in ranges(trace)? {
        let base = names
            .entry(range.name)
            .or_insert_with(|| step_base(trace.string(range.name)));
        if let Some(base) = base {
            groups.entry(base.clone()).or_default().push(range);
        }
    }
    let best = groups
        .into_iter()
        .map(|(base, ranges)| (base, apart(ranges)))
        .filter(|(base, ranges)| ranges.len() > 1 || base == PROFILER_STEP && !ranges.is_empty())
        .max_by_key(|(base, ranges)| {
            let covered: u64 = ranges.iter().map(|range| range.end - range.start).sum();
            (base == PROFILER_STEP, covered, std::cmp::Reverse(base.clone()))
        });
    Ok(best.map(|(base, ranges)| {
        let step = |range: &Range| Step {
            number: 0,
            name: trace.string(range.name).to_owned(),
            process: range.process,
            start_ns: range.start,
            end_ns: range.end,
            is_warm_up: false,
        };
        (base, ranges.iter().map(step).collect())
    }))
}

const PROFILER_STEP: &str = "ProfilerStep";

/// What the names of steps have in common: the name without its number, when it speaks of steps or iterations.
fn step_base(name: &str) -> Option<String> {
    let base = name
        .trim_end_matches(|letter: char| letter.is_ascii_digit())
        .trim_end_matches(|letter: char| !letter.is_alphanumeric());
    let lower = base.to_ascii_lowercase();
    let last = lower.rsplit(|letter: char| !letter.is_alphanumeric()).next()?;
    let is_step = ["step", "iteration", "iter"]
        .iter()
        .any(|word| last.ends_with(word));
    // `optimizer.step` is a part of one.
    (is_step && !lower.contains("optimizer")).then(|| base.to_owned())
}

fn ranges(trace: &Trace) -> Result<Vec<Range>, Error> {
    let mut ranges = Vec::new();
    let wanted = Projection::of::<Marker>(&["start", "end", "caller", "shape.name", "shape.kind"])?;
    trace.markers.stream_wanted(
        &wanted,
        |block, rows| {
            (
                times_on(trace.clock_map.line(block.header.clock), &rows.start, &rows.end),
                rows,
            )
        },
        |((start, end), rows)| {
            for row in 0..start.len() {
                let (caller, shape) = (rows.caller.get(row), rows.shape.get(row));
                let is_range = matches!(shape.kind, MarkerKind::NESTED_RANGE | MarkerKind::FREE_RANGE);
                if is_range && caller.thread.is_some() && start[row] != 0 && end[row] > start[row] {
                    ranges.push(Range {
                        process: caller.process,
                        thread: caller.thread,
                        start: start[row],
                        end: end[row],
                        name: shape.name,
                    });
                }
            }
        },
    );
    let wanted = Projection::of::<HostCall>(&["start", "end", "caller", "shape.name"])?;
    trace.host_calls.stream_wanted(
        &wanted,
        |block, rows| {
            // Old profilers of PyTorch wrote steps as operators.
            let is_step = |name: StringId| trace.string(name).starts_with(PROFILER_STEP);
            if !rows.shape.values.iter().any(|shape| is_step(shape.name)) {
                return Vec::new();
            }
            let (start, end) = times_on(trace.clock_map.line(block.header.clock), &rows.start, &rows.end);
            (0..start.len())
                .filter(|row| {
                    is_step(rows.shape.get(*row).name) && start[*row] != 0 && end[*row] > start[*row]
                })
                .map(|row| Range {
                    process: rows.caller.get(row).process,
                    thread: rows.caller.get(row).thread,
                    start: start[row],
                    end: end[row],
                    name: rows.shape.get(row).name,
                })
                .collect()
        },
        |found| ranges.extend(found),
    );
    Ok(ranges)
}

/// Of ranges that overlap within a process only the first, and of several threads the one that marks most.
fn apart(mut ranges: Vec<Range>) -> Vec<Range> {
    let mut covered: BTreeMap<(ProcessId, ThreadId), u64> = BTreeMap::new();
    for range in &ranges {
        *covered.entry((range.process, range.thread)).or_default() += range.end - range.start;
    }
    let mut best: BTreeMap<ProcessId, (u64, ThreadId)> = BTreeMap::new();
    for ((process, thread), nanos) in covered {
        let entry = best.entry(process).or_insert((nanos, thread));
        if nanos > entry.0 {
            *entry = (nanos, thread);
        }
    }
    ranges.retain(|range| best[&range.process].1 == range.thread);
    ranges.sort_by_key(|range| (range.process, range.start, std::cmp::Reverse(range.end)));
    let mut until: Option<(ProcessId, u64)> = None;
    ranges.retain(|range| {
        let is_apart = until.is_none_or(|(process, end)| process != range.process || range.start >= end);
        if is_apart {
            until = Some((range.process, range.end));
        }
        is_apart
    });
    ranges
}

/// Steps by the kernels of the busiest stream: those that come equally often and at even distances are of one pattern, and
/// the first of them begins it.
fn repeating(trace: &Trace, activity: &Activity) -> Option<(StepSource, Vec<Step>, Belongs)> {
    let lane = activity
        .lane_ids()
        .max_by_key(|lane| (activity.ops_of(*lane).len(), std::cmp::Reverse(*lane)))?;
    let sequence = activity.ops_of(lane);
    let mut places: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    let mut names: FxHashMap<_, u32> = FxHashMap::default();
    for (at, op) in sequence.iter().enumerate() {
        let next = names.len() as u32;
        let name = *names.entry(activity.ops.kind(*op).name).or_insert(next);
        places.entry(name).or_default().push(at as u32);
    }
    let mut by_count: BTreeMap<usize, (usize, u32)> = BTreeMap::new();
    for places in places.values().filter(|places| is_even(places, sequence.len())) {
        let entry = by_count.entry(places.len()).or_insert((0, u32::MAX));
        *entry = (entry.0 + 1, entry.1.min(places[0]));
    }
    let (_, (_, first)) = by_count
        .into_iter()
        .max_by_key(|(count, (kinds, _))| (*kinds, std::cmp::Reverse(*count)))?;
    let anchor = activity.ops.kind(sequence[first as usize]).name;
    let anchors = places
        .into_values()
        .find(|places| places[0] == first)
        .unwrap_or_default();
    let period = (anchors[anchors.len() - 1] - anchors[0]) as usize / (anchors.len() - 1);
    let (steps, belongs) = pattern_steps(activity, lane, sequence, &anchors, period);
    let source = StepSource::Pattern {
        anchor: super::activity::name_of(trace, anchor).to_owned(),
        kernels: period,
    };
    Some((source, steps, belongs))
}

/// Whether something comes at even distances over the most of a sequence.
fn is_even(places: &[u32], length: usize) -> bool {
    if places.len() < MIN_REPETITIONS {
        return false;
    }
    let spread = (places[places.len() - 1] - places[0]) as f64;
    let distance = spread / (places.len() - 1) as f64;
    let tolerance = (distance * PATTERN_TOLERANCE).max(0.0);
    distance >= 2.0
        && spread + distance >= length as f64 * 0.5
        && places
            .windows(2)
            .all(|pair| (f64::from(pair[1] - pair[0]) - distance).abs() <= tolerance)
}

fn pattern_steps(
    activity: &Activity,
    lane: StreamIndex,
    sequence: &[OpId],
    anchors: &[u32],
    period: usize,
) -> (Vec<Step>, Belongs) {
    let op = |at: usize| sequence.get(at).map(|op| op.index());
    // The last repetition counts when it is whole: its end is that of its last kernel, or of the call that asked for it.
    let last = op(anchors[anchors.len() - 1] as usize + period - 1);
    let first: Vec<usize> = anchors.iter().filter_map(|anchor| op(*anchor as usize)).collect();
    let calls = &activity.calls;
    let asked: Option<Vec<u64>> = first
        .iter()
        .map(|at| (activity.ops.call[*at], calls.start.as_slice()))
        .chain(last.map(|at| (activity.ops.call[at], calls.end.as_slice())))
        .map(|(call, times)| times.get(call.index()).copied())
        .collect();
    // Launched ahead of time, those with a call stand far before those whose call was not recorded: no order to go by.
    let (edges, belongs) = match asked.filter(|times| times.is_sorted()) {
        Some(times) => (times, Belongs::Asked),
        None => {
            let starts = first.iter().map(|at| activity.ops.start[*at]);
            let times = starts.chain(last.map(|at| activity.ops.end[at]));
            (times.collect(), Belongs::Begun)
        }
    };
    let process = activity.lane(lane).process;
    let steps = edges
        .windows(2)
        .filter(|edge| edge[1] > edge[0])
        .enumerate()
        .map(|(number, edge)| Step {
            number: 0,
            name: format!("step {number}"),
            process,
            start_ns: edge[0],
            end_ns: edge[1],
            is_warm_up: false,
        })
        .collect();
    (steps, belongs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(durations: &[u64]) -> Vec<Step> {
        let mut start = 1;
        let step = |duration: &u64| {
            start += duration;
            Step {
                number: 0,
                name: String::new(),
                process: ProcessId(1),
                start_ns: start - duration,
                end_ns: start,
                is_warm_up: false,
            }
        };
        durations.iter().map(step).collect()
    }

    fn durations(list: &[u64]) -> Vec<bool> {
        let steps = Steps::new(StepSource::None, made(list), Belongs::Asked);
        steps.steps.iter().map(|step| step.is_warm_up).collect()
    }

    /// Issue 26: sorting all later steps for each of them took hours for as many.
    #[test]
    fn two_hundred_thousand_steps_are_looked_at_once() {
        const COUNT: u64 = 200_000;
        // Every step takes so much longer than those after it that all but the last two are of the warming up.
        let descending: Vec<u64> = (0..COUNT).map(|step| (COUNT - step) * 1_000).collect();
        let (done, looked) = std::sync::mpsc::channel();
        let list = descending.clone();
        std::thread::spawn(move || done.send(durations(&list)));
        // It takes less than a second; a walk over all later steps for each of them would take minutes.
        let is_warm_up = looked
            .recv_timeout(std::time::Duration::from_secs(45))
            .expect("it is not quadratic");
        let expected = |at: usize| {
            let after = descending.len() - at - 1;
            let median = descending[descending.len() - 1 - after / 2];
            at + 2 < descending.len() && descending[at] as f64 > median as f64 * WARM_UP
        };
        let count = (0..descending.len()).take_while(|at| expected(*at)).count();
        assert!(count as u64 > COUNT - 10_000, "{count}");
        assert_eq!(is_warm_up.iter().filter(|is_warm_up| **is_warm_up).count(), count);
    }

    #[test]
    fn the_median_of_later_steps_is_that_of_a_sorted_list() {
        let mut state = 7u64;
        for length in 0..40 {
            let lengths: Vec<u64> = (0..length)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 33) % 20
                })
                .collect();
            let steps = made(&lengths);
            for (at, median) in medians_after(&steps).into_iter().enumerate() {
                let mut after = lengths[at + 1..].to_vec();
                after.sort_unstable();
                assert_eq!(
                    median,
                    after.get(after.len() / 2).copied().unwrap_or(0),
                    "{lengths:?}"
                );
            }
        }
    }

    #[test]
    fn long_first_steps_are_of_the_warming_up_and_later_ones_are_not() {
        assert_eq!(
            durations(&[90, 30, 10, 10, 40, 10]),
            [true, true, false, false, false, false]
        );
        assert_eq!(durations(&[10, 10, 10, 90]), [false; 4]);
        assert_eq!(durations(&[90, 10]), [false; 2], "two say nothing of each other");
        assert_eq!(durations(&[]), [false; 0]);
    }

    #[test]
    fn names_of_steps_are_known() {
        for (name, base) in [
            ("ProfilerStep#552", Some("ProfilerStep")),
            ("step 12", Some("step")),
            ("train_step_3", Some("train_step")),
            ("Iteration: 4", Some("Iteration")),
            ("iter7", Some("iter")),
            ("step", Some("step")),
            ("Optimizer.step#SGD.step", None),
            ("aten::addmm", None),
            ("stepping", None),
            ("", None),
        ] {
            assert_eq!(step_base(name).as_deref(), base, "{name}");
        }
    }

    #[test]
    fn even_places_cover_a_sequence() {
        assert!(is_even(&[0, 10, 20, 30], 40));
        assert!(!is_even(&[0, 10], 20));
        assert!(!is_even(&[0, 10, 25, 30], 40));
        assert!(!is_even(&[0, 1, 2], 3), "everything the same is no pattern");
        assert!(!is_even(&[0, 10, 20, 30], 1_000));
    }
}
