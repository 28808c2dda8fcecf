//! The steps in which a program was still warming up.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::Step;

/// A step is of the warm-up when all before it are and it took this much longer than half of those after it.
const WARM_UP: f64 = 1.25;

/// Marks the first steps that took much longer than those after them. Programs that do not share steps warm up on their
/// own, so steps are grouped by their first process.
pub(super) fn mark(steps: &mut [Step]) {
    let mut programs: BTreeMap<Option<u32>, Vec<usize>> = BTreeMap::new();
    for (at, step) in steps.iter().enumerate() {
        let first = step.parts.first().map(|part| part.process);
        programs.entry(first).or_default().push(at);
    }
    for places in programs.into_values() {
        let durations: Vec<u64> = places.iter().map(|at| steps[*at].duration()).collect();
        let count = warm_up_steps(&durations);
        places[..count].iter().for_each(|at| steps[*at].is_warm_up = true);
    }
}

fn warm_up_steps(durations: &[u64]) -> usize {
    let typical = medians_after(durations);
    let is_long = |(duration, typical): &(&u64, &u64)| **duration as f64 > **typical as f64 * WARM_UP;
    let settled = durations.len().saturating_sub(2);
    durations
        .iter()
        .zip(&typical)
        .take(settled)
        .take_while(is_long)
        .count()
}

/// For each step the median duration of those after it; 0 for the last. A program that generates text has a hundred
/// thousand steps, so the median is kept up to date from the last step to the first, in two heaps.
fn medians_after(durations: &[u64]) -> Vec<u64> {
    let mut medians = vec![0; durations.len()];
    let mut shorter: BinaryHeap<u64> = BinaryHeap::new();
    // The median is the shortest of these: as many as are shorter, or one more.
    let mut longer: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    for at in (0..durations.len()).rev() {
        medians[at] = longer.peek().map_or(0, |Reverse(median)| *median);
        let duration = durations[at];
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

#[cfg(test)]
mod tests {
    use super::*;

    fn durations(list: &[u64]) -> Vec<bool> {
        let count = warm_up_steps(list);
        (0..list.len()).map(|at| at < count).collect()
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
            for (at, median) in medians_after(&lengths).into_iter().enumerate() {
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
}
