//! Steps that the program or its framework marks: ranges around them, or calls at their borders.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{HostCall, MarkerKind};
use tracesmith_format::{ProcessId, Projection, StringId, ThreadId};

use super::{Found, StepSource};
use crate::error::Error;
use crate::model::trace::Trace;
use crate::reconstruct::Activity;
use crate::reconstruct::ops::times_on;
use crate::reconstruct::ranges::for_each_marker;
use crate::selection::Selected;

const PROFILER_STEP: &str = "ProfilerStep";
/// The share of launches without which ranges are not steps but parts of them, as those of a solver or a scheduler.
const MIN_LAUNCHES: f64 = 0.2;
/// The most ops that are looked at for that.
const SAMPLES: usize = 10_000;

/// A range that may be a step.
#[derive(Clone, Copy)]
pub(in crate::reconstruct) struct Range {
    pub(super) process: ProcessId,
    pub(super) thread: ThreadId,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) name: StringId,
}

/// What a range says about steps, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    /// It is a step of PyTorch's profiler.
    Profiler,
    /// It is named like a step.
    Step,
    /// It is a call of an optimizer, with which a step ends.
    Optimizer,
    /// It loads a batch, with which a step begins.
    DataLoader,
}

/// Steps by the best kind of mark that there is. Of several names of a kind, the one that covers most.
pub(super) fn find(trace: &Trace, activity: &Activity, ranges: &[Range]) -> Option<(StepSource, Vec<Found>)> {
    let mut groups: BTreeMap<(Mark, String), Vec<Range>> = BTreeMap::new();
    let mut names: FxHashMap<StringId, Option<(Mark, String)>> = FxHashMap::default();
    let mut first: FxHashMap<ProcessId, u64> = FxHashMap::default();
    for range in ranges {
        let earliest = first.entry(range.process).or_insert(range.start);
        *earliest = range.start.min(*earliest);
        let mark = names
            .entry(range.name)
            .or_insert_with(|| mark_of(trace.string(range.name)));
        if let Some(mark) = mark {
            groups.entry(mark.clone()).or_default().push(*range);
        }
    }
    let mut groups: Vec<(Mark, String, Vec<Range>)> = groups
        .into_iter()
        .map(|((mark, name), ranges)| (mark, name, apart(ranges)))
        .filter(|(mark, _, ranges)| ranges.len() > usize::from(*mark != Mark::Profiler))
        .collect();
    let covered = |ranges: &[Range]| ranges.iter().map(|range| range.end - range.start).sum::<u64>();
    groups.sort_by_key(|(mark, _, ranges)| (*mark, std::cmp::Reverse(covered(ranges))));
    for (mark, name, ranges) in groups {
        let found = match mark {
            Mark::Step if !launch_enough(activity, &ranges) => continue,
            Mark::Profiler | Mark::Step => ranges.iter().map(|range| found(trace, range)).collect(),
            Mark::Optimizer => ended_by(activity, &ranges, &first),
            Mark::DataLoader => begun_by(activity, &ranges),
        };
        if !found.is_empty() {
            return Some((source(trace, mark, name), found));
        }
    }
    None
}

/// Whether enough of what is launched from the first range of a process to its last is launched in one of them.
fn launch_enough(activity: &Activity, ranges: &[Range]) -> bool {
    let (mut inside, mut all) = (0u32, 0u32);
    for op in activity
        .ops
        .ids()
        .step_by(activity.ops.len().div_ceil(SAMPLES).max(1))
    {
        let process = activity.lane(activity.ops.lane[op.index()]).process;
        let time = activity.asked(op);
        let after = ranges.partition_point(|range| (range.process, range.start) <= (process, time));
        let is_last = ranges.get(after).is_none_or(|range| range.process != process);
        let before = after.checked_sub(1).map(|at| &ranges[at]);
        if let Some(before) = before.filter(|range| range.process == process) {
            inside += u32::from(time < before.end);
            all += u32::from(time < before.end || !is_last);
        }
    }
    f64::from(inside) >= f64::from(all) * MIN_LAUNCHES
}

fn source(trace: &Trace, mark: Mark, name: String) -> StepSource {
    match mark {
        Mark::Profiler | Mark::Step => {
            // Only nsys writes NVTX ranges as such; the other formats have ranges of their own.
            let format = trace.metadata.get("import.format");
            let is_nvtx = mark == Mark::Step && format.is_none_or(|format| format.contains("Nsight"));
            StepSource::Markers { name, is_nvtx }
        }
        Mark::Optimizer => StepSource::Optimizer { name },
        Mark::DataLoader => StepSource::DataLoader { name },
    }
}

fn found(trace: &Trace, range: &Range) -> Found {
    Found {
        process: range.process,
        name: trace.string(range.name).to_owned(),
        start: range.start,
        end: range.end,
        is_cut_off: false,
    }
}

/// What a name says about steps, and what the names of the same kind have in common.
fn mark_of(name: &str) -> Option<(Mark, String)> {
    let lower = name.to_ascii_lowercase();
    if lower.contains("dataloader") {
        let is_next = lower.trim_end_matches('_').ends_with("next");
        return is_next.then(|| (Mark::DataLoader, name.to_owned()));
    }
    let base = step_base(name)?;
    let mark = match base.to_ascii_lowercase() {
        lower if lower.contains("optimizer") || lower.contains("scheduler") => {
            // PyTorch's hooks are named after the optimizer; a scheduler has steps of its own.
            let is_step = !lower.contains("scheduler");
            return is_step.then_some((Mark::Optimizer, base));
        }
        _ if base == PROFILER_STEP => Mark::Profiler,
        _ => Mark::Step,
    };
    Some((mark, base))
}

/// What the names of steps have in common: the name without its numbers, when its last word is a step or an iteration.
/// Serving programs write what a step does in brackets: `step[DECODE bs=32]`.
fn step_base(name: &str) -> Option<String> {
    let name = match name.split_once('[') {
        Some((base, rest)) if !base.is_empty() && rest.ends_with(']') => base,
        _ => name,
    };
    let is_word = |letter: char| letter.is_alphanumeric();
    let mut words: Vec<&str> = Vec::new();
    let mut rest = name;
    // Words with what separates them, as `train_` and `step`; numbers are left out.
    while let Some(start) = rest.find(is_word) {
        let from = &rest[start..];
        let end = from.find(|letter| !is_word(letter)).unwrap_or(from.len());
        let next = from[end..].find(is_word).map_or(from.len(), |gap| end + gap);
        if from[..end].chars().any(|letter| !letter.is_ascii_digit()) {
            words.push(&from[..next]);
        }
        rest = &from[next..];
    }
    let base = words.concat();
    let base = base
        .trim_end_matches(|letter: char| !is_word(letter))
        .trim_end_matches(|letter: char| letter.is_ascii_digit());
    let lower = base.to_ascii_lowercase();
    let last = lower.rsplit(|letter: char| !is_word(letter)).next()?;
    ["step", "iteration", "iter"]
        .iter()
        .any(|word| last.ends_with(word))
        .then(|| base.to_owned())
}

/// All ranges of the selected processes.
pub(super) fn ranges(trace: &Trace, selected: &Selected) -> Result<Vec<Range>, Error> {
    let mut ranges = Vec::new();
    for_each_marker(trace, |caller, shape, (start, end)| {
        let is_range = matches!(shape.kind, MarkerKind::NESTED_RANGE | MarkerKind::FREE_RANGE);
        if is_range && caller.thread.is_some() && start != 0 && end > start {
            ranges.push(Range {
                process: caller.process,
                thread: caller.thread,
                start,
                end,
                name: shape.name,
            });
        }
    })?;
    let wanted = Projection::of::<HostCall>(&["start", "end", "caller", "shape.name"])?;
    trace.host_calls.stream_wanted(
        &wanted,
        |block, rows| {
            // Old profilers of PyTorch wrote steps, optimizers and data loaders as operators.
            let is_mark = |name: StringId| {
                let name = trace.string(name);
                let words = [PROFILER_STEP, "Optimizer.step", "enumerate(DataLoader)"];
                words.iter().any(|word| name.starts_with(word))
            };
            if !rows.shape.values.iter().any(|shape| is_mark(shape.name)) {
                return Vec::new();
            }
            let (start, end) = times_on(trace.clock_map.line(block.header.clock), &rows.start, &rows.end);
            (0..start.len())
                .filter(|row| {
                    is_mark(rows.shape.get(*row).name) && start[*row] != 0 && end[*row] > start[*row]
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
    ranges.retain(|range| selected.wants_process(range.process));
    Ok(ranges)
}

/// Of ranges that overlap within a process only one: first those of the thread that marks most, then those of other
/// threads that fit between them.
fn apart(ranges: Vec<Range>) -> Vec<Range> {
    let mut threads: BTreeMap<(ProcessId, ThreadId), (u64, Vec<Range>)> = BTreeMap::new();
    for range in ranges {
        let (covered, list) = threads.entry((range.process, range.thread)).or_default();
        *covered += range.end - range.start;
        list.push(range);
    }
    let mut threads: Vec<_> = threads.into_iter().collect();
    threads.sort_by_key(|((process, thread), (covered, _))| (*process, std::cmp::Reverse(*covered), *thread));
    let mut kept: BTreeMap<(ProcessId, u64), Range> = BTreeMap::new();
    for (_, (_, mut list)) in threads {
        list.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
        for range in list {
            let before = kept.range(..=(range.process, range.start)).next_back();
            let after = kept.range((range.process, range.start)..).next();
            let is_apart = before
                .is_none_or(|((of, _), other)| *of != range.process || other.end <= range.start)
                && after.is_none_or(|((of, start), _)| *of != range.process || range.end <= *start);
            if is_apart {
                kept.insert((range.process, range.start), range);
            }
        }
    }
    kept.into_values().collect()
}

/// Steps that end with these ranges. The first begins with the first launch or range of its process, and does not count
/// when it is less than three quarters as long as the typical one: the recording began in the middle of it.
fn ended_by(activity: &Activity, ranges: &[Range], earliest: &FxHashMap<ProcessId, u64>) -> Vec<Found> {
    let spans = spans(activity);
    let steps = ranges.chunk_by(|a, b| a.process == b.process).flat_map(|ranges| {
        let process = ranges[0].process;
        let launched = spans.get(&process).map(|span| span.0);
        let marked = earliest.get(&process).copied().unwrap_or(ranges[0].start);
        let first = launched.map_or(marked, |launched| launched.min(marked));
        let edges = std::iter::once(first).chain(ranges.iter().map(|range| range.end));
        let mut steps = between(process, &edges.collect::<Vec<_>>());
        if steps.first().is_some_and(|step| is_short(step, &steps, 0.75)) {
            steps.remove(0);
        }
        steps
    });
    named(steps.collect())
}

/// Steps that begin with these ranges. The last ends with the last op of its process. It does not count when it is less
/// than half as long as the typical one: an iterator that has no more batches is called once more.
fn begun_by(activity: &Activity, ranges: &[Range]) -> Vec<Found> {
    let spans = spans(activity);
    let steps = ranges.chunk_by(|a, b| a.process == b.process).flat_map(|ranges| {
        let last = &ranges[ranges.len() - 1];
        let end = spans
            .get(&last.process)
            .map_or(last.end, |span| span.1.max(last.end));
        let edges = ranges.iter().map(|range| range.start).chain([end]);
        let mut steps = between(last.process, &edges.collect::<Vec<_>>());
        if steps.last().is_some_and(|step| is_short(step, &steps, 0.5)) {
            steps.pop();
        } else if let Some(last) = steps.last_mut() {
            last.is_cut_off = true;
        }
        steps
    });
    named(steps.collect())
}

/// First launch and last end of the ops of each process.
fn spans(activity: &Activity) -> FxHashMap<ProcessId, (u64, u64)> {
    let mut spans: FxHashMap<ProcessId, (u64, u64)> = FxHashMap::default();
    for op in activity.ops.ids() {
        let process = activity.lane(activity.ops.lane[op.index()]).process;
        let span = spans.entry(process).or_insert((u64::MAX, 0));
        *span = (
            span.0.min(activity.asked(op)),
            span.1.max(activity.ops.end[op.index()]),
        );
    }
    spans
}

fn between(process: ProcessId, edges: &[u64]) -> Vec<Found> {
    let step = |edge: &[u64]| Found {
        process,
        name: String::new(),
        start: edge[0],
        end: edge[1],
        is_cut_off: false,
    };
    let edges = edges.windows(2).filter(|edge| edge[0] < edge[1]);
    edges.map(step).collect()
}

fn is_short(step: &Found, steps: &[Found], share: f64) -> bool {
    let mut lengths: Vec<u64> = steps.iter().map(|step| step.end - step.start).collect();
    lengths.sort_unstable();
    ((step.end - step.start) as f64) < lengths[lengths.len() / 2] as f64 * share
}

/// Steps with the numbers that they have in their process as names.
fn named(mut steps: Vec<Found>) -> Vec<Found> {
    for steps in steps.chunk_by_mut(|a, b| a.process == b.process) {
        for (number, step) in steps.iter_mut().enumerate() {
            step.name = format!("step {number}");
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_steps_are_known() {
        for (name, base) in [
            ("ProfilerStep#552", Some("ProfilerStep")),
            ("step 12", Some("step")),
            ("train_step_3", Some("train_step")),
            ("Iteration: 4", Some("Iteration")),
            ("iter7", Some("iter")),
            ("step", Some("step")),
            ("[step 3/200]", Some("step")),
            ("epoch 1 step 3", Some("epoch step")),
            ("step[DECODE bs=32]", Some("step")),
            ("layers[3]", None),
            ("aten::addmm", None),
            ("stepping", None),
            ("steps done: 3", None),
            ("", None),
            ("12", None),
        ] {
            assert_eq!(step_base(name).as_deref(), base, "{name}");
        }
    }

    #[test]
    fn borders_of_steps_are_known() {
        let optimizer = "Optimizer.step#SGD.step";
        assert_eq!(mark_of(optimizer), Some((Mark::Optimizer, optimizer.to_owned())));
        let loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
        assert_eq!(mark_of(loader), Some((Mark::DataLoader, loader.to_owned())));
        assert_eq!(mark_of("Optimizer.zero_grad#SGD.zero_grad"), None);
        assert_eq!(mark_of("lr_scheduler.step"), None);
        assert_eq!(mark_of("DataLoader.reset"), None);
    }

    #[test]
    fn ranges_of_other_threads_fill_what_the_first_leaves() {
        let range = |thread: u64, start: u64, end: u64| Range {
            process: ProcessId(1),
            thread: ThreadId(thread),
            start,
            end,
            name: StringId(0),
        };
        let starts = |ranges: Vec<Range>| apart(ranges).iter().map(|range| range.start).collect::<Vec<_>>();
        let (one, two) = (
            [range(1, 0, 10), range(1, 20, 30)],
            [range(2, 10, 20), range(2, 30, 35)],
        );
        assert_eq!(starts([one, two].concat()), [0, 10, 20, 30], "threads take turns");
        let nested = [range(1, 0, 10), range(1, 2, 5), range(2, 1, 11), range(1, 10, 20)];
        assert_eq!(starts(nested.to_vec()), [0, 10]);
    }
}
