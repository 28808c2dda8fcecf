//! Joins the steps of several processes: the ranks of a job do the same iteration at the same time.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use tracesmith_format::ProcessId;

use super::{Found, Step, StepPart};

/// Where the names of steps come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// From the program: ranks give the same number to the same step.
    Marked,
    /// From counting the steps of each process, whose recordings may begin with different steps.
    Counted,
}

/// The steps of all processes, by time. Each process is compared with the one that has the most steps.
pub(super) fn join(found: Vec<Found>, names: Names, rank_of: impl Fn(ProcessId) -> Option<u32>) -> Vec<Step> {
    let mut processes: BTreeMap<ProcessId, Vec<Found>> = BTreeMap::new();
    for step in found {
        processes.entry(step.process).or_default().push(step);
    }
    let mut lists: Vec<Vec<Found>> = processes.into_values().collect();
    for list in &mut lists {
        list.sort_by_key(|step| (step.start, step.end));
    }
    lists.sort_by_key(|list| std::cmp::Reverse(list.len()));
    let mut lists = lists.into_iter();
    let Some(first) = lists.next() else {
        return Vec::new();
    };
    let part = |step: &Found| StepPart {
        process: step.process.0,
        rank: rank_of(step.process),
        start_ns: step.start,
        end_ns: step.end,
    };
    let alone = |step: &Found| Step {
        name: step.name.clone(),
        number: 0,
        start_ns: step.start,
        end_ns: step.end,
        is_warm_up: false,
        is_cut_off: step.is_cut_off,
        parts: vec![part(step)],
    };
    let mut steps: Vec<Step> = first.iter().map(alone).collect();
    for list in lists {
        let same = same_steps(&first, &list, names);
        for (step, same) in list.iter().zip(same) {
            match same {
                Some(at) => {
                    steps[at].parts.push(part(step));
                    steps[at].is_cut_off |= step.is_cut_off;
                }
                None => steps.push(alone(step)),
            }
        }
    }
    for step in &mut steps {
        step.parts.sort_by_key(|part| part.process);
        step.start_ns = step.parts.iter().map(|part| part.start_ns).min().unwrap_or(0);
        step.end_ns = step.parts.iter().map(|part| part.end_ns).max().unwrap_or(0);
    }
    steps.sort_by_key(|step| (step.start_ns, step.parts[0].process, step.end_ns));
    steps
}

/// For each step of another process, the place of the same step in the first: by its number where the program gave it
/// one, else by time. Nothing is joined when fewer than half of the steps agree: these are not ranks of one job.
fn same_steps(first: &[Found], other: &[Found], names: Names) -> Vec<Option<usize>> {
    let by_number: Option<Vec<Option<usize>>> =
        numbers(first)
            .zip(numbers(other))
            .map(|(first_numbers, numbers)| {
                let places: FxHashMap<u64, usize> = first_numbers.into_iter().zip(0..).collect();
                let overlaps = |(at, number): (usize, &u64)| {
                    let place = *places.get(number)?;
                    (overlap(&first[place], &other[at]) > 0).then_some(place)
                };
                numbers.iter().enumerate().map(overlaps).collect()
            });
    by_number
        .filter(|same| names == Names::Marked && agrees(same))
        .or_else(|| Some(by_time(first, other)).filter(|same| agrees(same)))
        .unwrap_or_else(|| vec![None; other.len()])
}

/// The step of the first process that lasts for at least half of the shorter one at the same time. Where there is none,
/// as for a last step that was cut off, the one that follows from the steps next to it.
fn by_time(first: &[Found], other: &[Found]) -> Vec<Option<usize>> {
    let mut from = 0;
    let overlapping = other.iter().map(|step| {
        while from < first.len() && first[from].end <= step.start {
            from += 1;
        }
        let near = first[from..].iter().take_while(|one| one.start < step.end);
        let (place, one) = (from..).zip(near).max_by_key(|(_, one)| overlap(one, step))?;
        let shorter = (one.end - one.start).min(step.end - step.start);
        (2 * overlap(one, step) >= shorter).then_some(place)
    });
    let mut same: Vec<Option<usize>> = overlapping.collect();
    let mut taken: FxHashSet<usize> = same.iter().flatten().copied().collect();
    for at in 1..same.len() {
        let next = same[at - 1].map(|before| before + 1);
        if same[at].is_none()
            && let Some((place, one)) = next.and_then(|place| Some((place, first.get(place)?)))
            && overlap(one, &other[at]) > 0
            && taken.insert(place)
        {
            same[at] = Some(place);
        }
    }
    same
}

fn agrees(same: &[Option<usize>]) -> bool {
    let known: Vec<usize> = same.iter().flatten().copied().collect();
    let distinct: FxHashSet<usize> = known.iter().copied().collect();
    2 * known.len() >= same.len() && distinct.len() == known.len()
}

fn overlap(a: &Found, b: &Found) -> u64 {
    a.end.min(b.end).saturating_sub(a.start.max(b.start))
}

/// The numbers at the end of the names; none when some have none or two have the same.
fn numbers(steps: &[Found]) -> Option<Vec<u64>> {
    let number = |step: &Found| {
        let digits = step.name.len()
            - step
                .name
                .trim_end_matches(|letter: char| letter.is_ascii_digit())
                .len();
        step.name[step.name.len() - digits..].parse().ok()
    };
    let numbers: Vec<u64> = steps.iter().map(number).collect::<Option<_>>()?;
    let distinct: FxHashSet<u64> = numbers.iter().copied().collect();
    (distinct.len() == numbers.len()).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(process: u32, name: &str, starts: &[u64], length: u64) -> Vec<Found> {
        let step = |(number, start): (usize, &u64)| Found {
            process: ProcessId(process),
            name: name.replace('#', &number.to_string()),
            start: *start,
            end: start + length,
            is_cut_off: false,
        };
        starts.iter().enumerate().map(step).collect()
    }

    fn sizes(found: Vec<Found>) -> Vec<usize> {
        let steps = join(found, Names::Marked, |process| Some(process.0 - 1));
        steps.iter().map(|step| step.parts.len()).collect()
    }

    #[test]
    fn steps_of_ranks_are_joined_by_number_and_by_time() {
        for name in ["step #", "step"] {
            let mut found = steps(1, name, &[100, 200, 300], 90);
            found.extend(steps(2, name, &[105, 211, 290], 90));
            let joined = join(found, Names::Marked, |process| Some(process.0 - 1));
            assert_eq!(joined.len(), 3, "{name}");
            assert_eq!((joined[1].start_ns, joined[1].end_ns), (200, 301));
            assert_eq!(
                joined[2].parts.iter().map(|part| part.rank).collect::<Vec<_>>(),
                [Some(0), Some(1)]
            );
        }
    }

    #[test]
    fn a_rank_that_was_recorded_later_has_the_later_steps() {
        let mut found = steps(1, "step", &[100, 200, 300], 100);
        found.extend(steps(2, "step", &[210, 310], 100));
        assert_eq!(sizes(found), [1, 2, 2]);
    }

    #[test]
    fn numbers_that_we_counted_join_nothing() {
        let mut found = steps(1, "step #", &[100, 200, 300], 100);
        found.extend(steps(2, "step #", &[190, 290], 100));
        let joined = join(found, Names::Counted, |_| None);
        assert_eq!(joined.len(), 3);
        assert_eq!((joined[1].start_ns, joined[1].end_ns), (190, 300));
    }

    #[test]
    fn programs_that_run_one_after_the_other_are_not_joined() {
        let mut found = steps(1, "step #", &[100, 200, 300], 100);
        found.extend(steps(2, "step #", &[1_100, 1_200, 1_300], 100));
        assert_eq!(sizes(found), [1; 6]);
        // One is ten times as fast: its steps are not those of the other.
        let mut found = steps(1, "step", &[100, 110, 120, 130, 140, 150], 10);
        found.extend(steps(2, "step", &[100], 60));
        assert_eq!(sizes(found).iter().sum::<usize>(), 7);
        assert_eq!(join(Vec::new(), Names::Marked, |_| None), []);
    }
}
