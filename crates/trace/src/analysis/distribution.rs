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
    fn a_deviation_is_that_of_a_sample() {
        assert_eq!(mean_and_deviation(&[]), (0.0, 0.0));
        assert_eq!(mean_and_deviation(&[4.0]), (4.0, 0.0));
        assert_eq!(mean_and_deviation(&[1.0, 3.0]), (2.0, 2f64.sqrt()));
    }
}
