//! Steps of programs that mark none: kernels that repeat in the same order.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use tracesmith_format::ProcessId;

use super::layers::Repetitions;
use super::marked::Range;
use super::{Belongs, Found, StepSource};
use crate::model::event::EventName;
use crate::model::trace::Trace;
use crate::reconstruct::activity::{StreamIndex, name_of};
use crate::reconstruct::{Activity, OpId};

/// Repetitions without which a pattern is none.
const MIN_REPETITIONS: usize = 3;
/// How much the distance of repetitions may vary.
const TOLERANCE: f64 = 0.02;
/// How much of the usual time the last repetition must have in the trace to be whole.
const WHOLE: f64 = 0.95;
/// The share of repetitions that may be longer, as steps that also log or save something.
const LONGER: f64 = 0.1;
/// Kernels that come once in each repetition, and their share of all, without which shorter repetitions are the steps:
/// a layer of a model repeats within a step, and what is logged every tenth step does not make a step of ten.
const MIN_KINDS: usize = 4;
const MIN_KINDS_SHARE: f64 = 0.1;

/// The pattern of one process.
struct Pattern {
    process: ProcessId,
    anchor: EventName,
    /// Ops of a repetition.
    period: usize,
    stream: StreamIndex,
    /// The places in the stream with which repetitions begin.
    firsts: Vec<u32>,
    /// The ops there.
    first: Vec<OpId>,
    /// The op with which the last repetition ends, when it is whole.
    last: Option<OpId>,
}

/// Steps by the kernels of each process's busiest stream. Only processes with the same pattern have steps, and layers of a
/// model are none.
pub(super) fn find(
    trace: &Trace,
    activity: &Activity,
    ranges: &[Range],
) -> Option<(StepSource, Vec<Found>, Belongs)> {
    let mut busiest: BTreeMap<ProcessId, StreamIndex> = BTreeMap::new();
    for lane in activity.lane_ids() {
        let best = busiest.entry(activity.lane(lane).process).or_insert(lane);
        if activity.ops_of(lane).len() > activity.ops_of(*best).len() {
            *best = lane;
        }
    }
    let patterns: Vec<Pattern> = busiest
        .into_iter()
        .filter_map(|(process, lane)| pattern(activity, process, lane))
        .collect();
    let main = patterns
        .iter()
        .max_by_key(|pattern| (pattern.period * pattern.first.len(), Reverse(pattern.process)))?;
    let anchor = name_of(trace, main.anchor);
    let same: Vec<&Pattern> = patterns
        .iter()
        .filter(|other| other.period == main.period && name_of(trace, other.anchor) == anchor)
        .collect();
    let asked: Option<Vec<Vec<u64>>> = same.iter().map(|pattern| asked(activity, pattern)).collect();
    let (edges, belongs) = match asked {
        Some(edges) => (edges, Belongs::Asked),
        None => {
            let begun = same.iter().map(|pattern| begun(activity, pattern));
            (begun.collect(), Belongs::Begun)
        }
    };
    let are_layers = |(pattern, starts): (&&Pattern, &Vec<u64>)| {
        let repetitions = Repetitions {
            process: pattern.process,
            period: pattern.period,
            sequence: activity.ops_of(pattern.stream),
            firsts: &pattern.firsts,
            starts: &starts[..pattern.firsts.len()],
            belongs,
        };
        repetitions.are_layers(trace, activity, ranges)
    };
    if same.iter().zip(&edges).any(are_layers) {
        return None;
    }
    let steps = same.iter().zip(edges).flat_map(|(pattern, edges)| {
        let mut edges: Vec<_> = edges.windows(2).map(|edge| (edge[0], edge[1])).collect();
        // Others end where the next one begins; the last one ends with its last launch, unless more of it is in the trace.
        let last = pattern.first.len() - 1;
        let whole = end_of_whole(activity, pattern, &edges, last);
        if let (Some(end), Some(edge)) = (whole, edges.get_mut(last)) {
            edge.1 = end;
        }
        let steps = (0..).zip(edges).filter(|(_, (start, end))| end > start);
        steps.enumerate().map(move |(number, (at, (start, end)))| Found {
            process: pattern.process,
            name: format!("step {number}"),
            start,
            end,
            is_cut_off: at == last && whole.is_none(),
        })
    });
    let source = StepSource::Pattern {
        anchor: anchor.to_owned(),
        kernels: main.period,
    };
    Some((source, steps.collect(), belongs))
}

/// Where the last repetition ends if the trace has all of it: its work, and the time until the next one would begin.
fn end_of_whole(activity: &Activity, pattern: &Pattern, edges: &[(u64, u64)], last: usize) -> Option<u64> {
    let (start, end) = *edges.get(last)?;
    let mut lengths: Vec<u64> = edges[..last]
        .iter()
        .map(|(start, end)| end.saturating_sub(*start))
        .collect();
    let middle = lengths.len() / 2;
    let usual = *lengths.select_nth_unstable(middle).1;
    let worked_until = activity.ops.end[pattern.last?.index()];
    let end = end.max(worked_until).min(start.saturating_add(usual)).max(start);
    (((end - start) as f64) >= WHOLE * usual as f64).then_some(end)
}

/// The pattern of a sequence of kernels: those that come equally often and at even distances are of one pattern, and the
/// first of them begins it.
fn pattern(activity: &Activity, process: ProcessId, stream: StreamIndex) -> Option<Pattern> {
    let sequence = activity.ops_of(stream);
    let mut places: FxHashMap<EventName, Vec<u32>> = FxHashMap::default();
    for (at, op) in (0u32..).zip(sequence) {
        places.entry(activity.ops.kind(*op).name).or_default().push(at);
    }
    let mut by_count: BTreeMap<usize, Kinds> = BTreeMap::new();
    for places in places.values().filter(|places| is_even(places, sequence.len())) {
        let kinds = by_count.entry(places.len()).or_default();
        kinds.count += 1;
        kinds.first = kinds.first.min(places[0]);
    }
    let count = repetitions(&by_count)?;
    let first = by_count[&count].first;
    let anchor = activity.ops.kind(sequence[first as usize]).name;
    let anchors = &places[&anchor];
    // What repeats within one launch of a graph, as the layers of a model, is a part of a step.
    let call = |at: u32| activity.ops.call[sequence[at as usize].index()];
    let mut firsts = anchors.clone();
    firsts.dedup_by(|a, b| call(*a).is_some() && call(*a) == call(*b));
    if firsts.len() < MIN_REPETITIONS {
        return None;
    }
    let period = distance(&firsts) as usize;
    let op = |at: u32| sequence.get(at as usize).copied();
    Some(Pattern {
        process,
        anchor,
        period,
        stream,
        last: op(firsts[firsts.len() - 1] + period as u32 - 1),
        first: firsts.iter().copied().filter_map(op).collect(),
        firsts,
    })
}

/// The kernels that come equally often.
#[derive(Clone, Copy)]
struct Kinds {
    count: usize,
    /// Where the first of them comes first.
    first: u32,
}

impl Default for Kinds {
    fn default() -> Self {
        Kinds {
            count: 0,
            first: u32::MAX,
        }
    }
}

/// How many steps there are: the fewest repetitions that enough kernels agree on, else those that most agree on.
fn repetitions(by_count: &BTreeMap<usize, Kinds>) -> Option<usize> {
    let all: usize = by_count.values().map(|kinds| kinds.count).sum();
    let is_enough =
        |kinds: &Kinds| kinds.count >= MIN_KINDS && kinds.count as f64 >= all as f64 * MIN_KINDS_SHARE;
    let most = by_count
        .iter()
        .max_by_key(|(count, kinds)| (kinds.count, Reverse(**count)));
    by_count
        .iter()
        .find(|(_, kinds)| is_enough(kinds))
        .or(most)
        .map(|(count, _)| *count)
}

/// The median distance of two places.
fn distance(places: &[u32]) -> u32 {
    let mut distances: Vec<u32> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let middle = distances.len() / 2;
    *distances.select_nth_unstable(middle).1
}

/// Whether something comes at even distances over most of a sequence. A few distances may be longer.
fn is_even(places: &[u32], length: usize) -> bool {
    if places.len() < MIN_REPETITIONS {
        return false;
    }
    let usual = f64::from(distance(places));
    let spread = f64::from(places[places.len() - 1] - places[0]);
    let away = |pair: &[u32]| f64::from(pair[1] - pair[0]) - usual;
    let longer = places
        .windows(2)
        .filter(|pair| away(pair) > usual * TOLERANCE)
        .count();
    usual >= 2.0
        && spread + usual >= length as f64 * 0.5
        && longer as f64 <= (places.len() - 1) as f64 * LONGER
        && places.windows(2).all(|pair| -away(pair) <= usual * TOLERANCE)
}

/// The borders of steps by the calls that launched their first kernels; none when some are not known or not in order.
fn asked(activity: &Activity, pattern: &Pattern) -> Option<Vec<u64>> {
    let calls = &activity.calls;
    let call = |op: OpId| activity.ops.call[op.index()].index();
    let starts = pattern.first.iter().map(|op| calls.start.get(call(*op)).copied());
    let end = pattern.last.map(|op| calls.end.get(call(op)).copied());
    let times: Vec<u64> = starts.chain(end).collect::<Option<_>>()?;
    times.is_sorted_by(|a, b| a < b).then_some(times)
}

/// The borders of steps by the time at which their kernels ran.
fn begun(activity: &Activity, pattern: &Pattern) -> Vec<u64> {
    let starts = pattern.first.iter().map(|op| activity.ops.start[op.index()]);
    let end = pattern.last.map(|op| activity.ops.end[op.index()]);
    starts.chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_places_cover_a_sequence() {
        assert!(is_even(&[0, 10, 20, 30], 40));
        assert!(!is_even(&[0, 10], 20));
        assert!(!is_even(&[0, 10, 25, 30], 40));
        assert!(!is_even(&[0, 1, 2], 3), "everything the same is no pattern");
        assert!(!is_even(&[0, 10, 20, 30], 1_000));
    }

    #[test]
    fn a_few_longer_repetitions_are_even() {
        // Every twentieth step logs something.
        let places: Vec<u32> = (0..200u32).map(|step| step * 10 + step / 20 * 3).collect();
        assert!(is_even(&places, 2_030));
        let places: Vec<u32> = (0..200u32).map(|step| step * 10 + step / 2 * 3).collect();
        assert!(!is_even(&places, 2_300), "half of them is no exception");
    }

    #[test]
    fn layers_are_not_steps_and_logs_are_not_either() {
        let kinds = |count| Kinds { count, first: 0 };
        let layers = BTreeMap::from([(10, kinds(12)), (360, kinds(25))]);
        assert_eq!(repetitions(&layers), Some(10));
        let logs = BTreeMap::from([(10, kinds(2)), (200, kinds(40))]);
        assert_eq!(repetitions(&logs), Some(200));
        assert_eq!(repetitions(&BTreeMap::new()), None);
    }
}
