//! How long things took: the figures that tell a distribution.

use serde::Serialize;

/// The figures of some durations, in nanoseconds. A percentile is one of the durations: the smallest that at least so
/// many percent are not above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// How many.
    pub count: u64,
    /// All together.
    pub total_ns: u64,
    /// One on average.
    pub mean_ns: f64,
    /// The shortest.
    pub min_ns: u64,
    /// Half are not above.
    pub p50_ns: u64,
    /// 95 % are not above.
    pub p95_ns: u64,
    /// 99 % are not above.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Distribution {
    /// Of these, which get out of order.
    pub fn of(durations: &mut [u64]) -> Self {
        let count = durations.len();
        if count == 0 {
            return Self::default();
        }
        let total: u64 = durations.iter().fold(0, |sum, one| sum.saturating_add(*one));
        let rank = |percent: usize| (count * percent).div_ceil(100).max(1) - 1;
        // Each selection leaves the larger ones behind it, where the next is found.
        let (p50, p95, p99) = (rank(50), rank(95), rank(99));
        let p50_ns = *durations.select_nth_unstable(p50).1;
        let p95_ns = *durations[p50..].select_nth_unstable(p95 - p50).1;
        let p99_ns = *durations[p95..].select_nth_unstable(p99 - p95).1;
        Distribution {
            count: count as u64,
            total_ns: total,
            mean_ns: total as f64 / count as f64,
            min_ns: durations[..=p50].iter().copied().min().unwrap_or(0),
            p50_ns,
            p95_ns,
            p99_ns,
            max_ns: durations[p99..].iter().copied().max().unwrap_or(0),
        }
    }
}

/// The figures of durations that are walked twice and never held: counted by size first, then only those of the sizes that
/// percentiles fall into are kept. For lists so long that memory for them costs more than the second walk.
pub(crate) struct Counted {
    count: u64,
    total: u64,
    min: u64,
    max: u64,
    by_size: Vec<u64>,
}

/// Sizes with the same leading bits are one: this many bits behind the first.
const SIZE_BITS: u32 = 6;

/// Small numbers have a size of their own, larger ones share it with those that are 1/64 longer or shorter.
fn size_of(duration: u64) -> usize {
    let shift = (u64::BITS - duration.leading_zeros()).saturating_sub(SIZE_BITS + 1);
    ((u64::from(shift) << SIZE_BITS) + (duration >> shift)) as usize
}

impl Default for Counted {
    fn default() -> Self {
        Counted {
            count: 0,
            total: 0,
            min: u64::MAX,
            max: 0,
            by_size: vec![0; size_of(u64::MAX) + 1],
        }
    }
}

impl Counted {
    /// Counts one, on the first walk.
    #[inline]
    pub(crate) fn add(&mut self, duration: u64) {
        self.count += 1;
        self.total = self.total.saturating_add(duration);
        self.min = self.min.min(duration);
        self.max = self.max.max(duration);
        self.by_size[size_of(duration)] += 1;
    }

    /// What the second walk is for.
    pub(crate) fn ranked(self) -> Ranked {
        let ranks = [50, 95, 99].map(|percent| (self.count * percent).div_ceil(100).max(1) - 1);
        let mut kept: Vec<Option<Vec<u64>>> = vec![None; self.by_size.len()];
        let places = ranks.map(|rank| {
            let mut before = 0;
            let size = self.by_size.iter().position(|count| {
                before += count;
                before > rank
            })?;
            let count = self.by_size[size];
            kept[size].get_or_insert_with(|| Vec::with_capacity(count as usize));
            Some((size, rank - (before - count)))
        });
        Ranked {
            counted: self,
            places,
            kept,
        }
    }
}

/// See [`Counted`]: the second walk.
pub(crate) struct Ranked {
    counted: Counted,
    /// For each percentile its size, and which of that size it is.
    places: [Option<(usize, u64)>; 3],
    kept: Vec<Option<Vec<u64>>>,
}

impl Ranked {
    /// Looks at one again, on the second walk.
    #[inline]
    pub(crate) fn add(&mut self, duration: u64) {
        if let Some(kept) = &mut self.kept[size_of(duration)] {
            kept.push(duration);
        }
    }

    /// The figures.
    pub(crate) fn distribution(mut self) -> Distribution {
        let [p50_ns, p95_ns, p99_ns] = self.places.map(|place| {
            let (size, rank) = place?;
            let kept = self.kept[size].as_mut()?;
            Some(*kept.select_nth_unstable(rank as usize).1)
        });
        let Counted {
            count,
            total,
            min,
            max,
            ..
        } = self.counted;
        if count == 0 {
            return Distribution::default();
        }
        Distribution {
            count,
            total_ns: total,
            mean_ns: total as f64 / count as f64,
            min_ns: min,
            p50_ns: p50_ns.unwrap_or(min),
            p95_ns: p95_ns.unwrap_or(min),
            p99_ns: p99_ns.unwrap_or(min),
            max_ns: max,
        }
    }
}

/// Mean and standard deviation of some numbers; the deviation is that of a sample, and 0 for one number.
pub fn mean_and_deviation(numbers: &[f64]) -> (f64, f64) {
    if numbers.is_empty() {
        return (0.0, 0.0);
    }
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    if numbers.len() < 2 {
        return (mean, 0.0);
    }
    let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
    (mean, (squares / (numbers.len() - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_durations_that_were_seen() {
        let mut durations: Vec<u64> = (1..=100).rev().collect();
        let all = Distribution::of(&mut durations);
        assert_eq!((all.count, all.total_ns, all.mean_ns), (100, 5_050, 50.5));
        assert_eq!(
            (all.min_ns, all.p50_ns, all.p95_ns, all.p99_ns, all.max_ns),
            (1, 50, 95, 99, 100)
        );
        let one = Distribution::of(&mut [7]);
        assert_eq!(
            (one.min_ns, one.p50_ns, one.p95_ns, one.p99_ns, one.max_ns),
            (7, 7, 7, 7, 7)
        );
        let two = Distribution::of(&mut [9, 3]);
        assert_eq!((two.min_ns, two.p50_ns, two.p95_ns, two.max_ns), (3, 3, 9, 9));
        assert_eq!(Distribution::of(&mut []), Distribution::default());
    }

    #[test]
    fn durations_that_are_walked_twice_give_the_same_figures() {
        let mut state = 1u64;
        let mut scattered = |bits: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> (64 - bits)
        };
        let lists: Vec<Vec<u64>> = vec![
            vec![],
            vec![0],
            vec![7],
            vec![9, 3],
            (1..=100).rev().collect(),
            vec![5; 1_000],
            (0..5_000).map(|_| scattered(12)).collect(),
            (0..5_000).map(|at| scattered(1 + at % 63)).collect(),
            vec![u64::MAX, 0, u64::MAX - 1],
        ];
        for mut list in lists {
            let mut counted = Counted::default();
            list.iter().for_each(|duration| counted.add(*duration));
            let mut ranked = counted.ranked();
            list.iter().for_each(|duration| ranked.add(*duration));
            assert_eq!(ranked.distribution(), Distribution::of(&mut list));
        }
    }

    #[test]
    fn a_deviation_is_that_of_a_sample() {
        assert_eq!(mean_and_deviation(&[]), (0.0, 0.0));
        assert_eq!(mean_and_deviation(&[4.0]), (4.0, 0.0));
        assert_eq!(mean_and_deviation(&[1.0, 3.0]), (2.0, 2f64.sqrt()));
    }
}
