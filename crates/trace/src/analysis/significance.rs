//! Whether two sets of measurements differ by more than chance: the Mann-Whitney rank test, and the correction for many
//! comparisons at once.
//!
//! Times of steps have outliers and no normal distribution, so the test looks at their order alone. With few values the
//! probability is exact: it counts all ways to divide the values. With many, the normal approximation is as good.

/// Values of both sets together up to which all divisions are counted.
const EXACT_UP_TO: usize = 24;

/// The probability that two sets of numbers of the same distribution differ by as much as these do in their ranks, in
/// either direction; none when one of them has fewer than two.
pub fn p_value(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len() < 2 || b.len() < 2 {
        return None;
    }
    // The result is the same for the larger set; the smaller has fewer subsets.
    let (few, many) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let ranks = Ranks::of(few, many);
    Some(match few.len() + many.len() <= EXACT_UP_TO {
        true => ranks.exact(),
        false => ranks.approximate(),
    })
}

/// The least probability that so many numbers allow: that of two sets of which one is greater in all.
pub(super) fn least_p(a: usize, b: usize) -> f64 {
    // 2 of all ways to choose a of a + b.
    (1..=a.min(b))
        .fold(2.0, |p, at| p * at as f64 / (a.max(b) + at) as f64)
        .min(1.0)
}

/// Whether every value of one set is greater than every value of the other, with at least two of each.
pub(super) fn are_separate(a: &[f64], b: &[f64]) -> bool {
    let ends = |values: &[f64]| {
        let ends = (f64::INFINITY, f64::NEG_INFINITY);
        values
            .iter()
            .fold(ends, |(least, most), value| (least.min(*value), most.max(*value)))
    };
    let ((least_a, most_a), (least_b, most_b)) = (ends(a), ends(b));
    a.len() > 1 && b.len() > 1 && (most_a < least_b || most_b < least_a)
}

/// Probabilities of many comparisons, raised so that of those below a limit at most that share is expected to be chance
/// (Benjamini and Hochberg).
pub(super) fn adjusted(probabilities: &[f64]) -> Vec<f64> {
    let count = probabilities.len();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| probabilities[*b].total_cmp(&probabilities[*a]));
    let mut adjusted = vec![1.0; count];
    let mut least: f64 = 1.0;
    for (place, at) in order.into_iter().enumerate() {
        let factor = count as f64 / (count - place) as f64;
        least = least.min(probabilities[at] * factor);
        adjusted[at] = least;
    }
    adjusted
}

/// The ranks of two sets in common, doubled: equal values share the mean of their ranks, which may be a half.
struct Ranks {
    all: Vec<u64>,
    few: usize,
    /// The sum of the ranks of the smaller set.
    sum: u64,
    /// The sum over groups of equal values of n³ − n.
    ties: f64,
}

impl Ranks {
    fn of(few: &[f64], many: &[f64]) -> Self {
        let mut values: Vec<(f64, bool)> = few
            .iter()
            .map(|value| (*value, true))
            .chain(many.iter().map(|value| (*value, false)))
            .collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut ranks = Ranks {
            all: Vec::with_capacity(values.len()),
            few: few.len(),
            sum: 0,
            ties: 0.0,
        };
        for equal in values.chunk_by(|a, b| a.0 == b.0) {
            let (before, count) = (ranks.all.len() as u64, equal.len() as u64);
            let rank = 2 * before + count + 1;
            ranks.all.extend(equal.iter().map(|_| rank));
            ranks.sum += rank * equal.iter().filter(|(_, is_few)| *is_few).count() as u64;
            let count = count as f64;
            ranks.ties += count * count * count - count;
        }
        ranks
    }

    /// How far the sum is from what is expected.
    fn distance(&self, sum: u64) -> u64 {
        let expected = (self.few * (self.all.len() + 1)) as u64;
        sum.abs_diff(expected)
    }

    /// The share of all subsets of this size whose sum is at least as far from what is expected.
    fn exact(&self) -> f64 {
        let most: u64 = self.all.iter().sum();
        let width = most as usize + 1;
        // Ways to choose so many values with such a sum.
        let mut ways = vec![0.0f64; (self.few + 1) * width];
        ways[0] = 1.0;
        for rank in &self.all {
            let rank = *rank as usize;
            for chosen in (0..self.few).rev() {
                for sum in 0..width - rank {
                    let known = ways[chosen * width + sum];
                    if known > 0.0 {
                        ways[(chosen + 1) * width + sum + rank] += known;
                    }
                }
            }
        }
        let whole = &ways[self.few * width..];
        let far = self.distance(self.sum);
        let (mut all, mut extreme) = (0.0, 0.0);
        for (sum, count) in (0u64..).zip(whole) {
            all += count;
            if self.distance(sum) >= far {
                extreme += count;
            }
        }
        extreme / all
    }

    /// The same by the normal distribution, corrected for ties and for the steps of the sum.
    fn approximate(&self) -> f64 {
        let (few, all) = (self.few as f64, self.all.len() as f64);
        let variance = few * (all - few) / 12.0 * (all + 1.0 - self.ties / (all * (all - 1.0)));
        if variance <= 0.0 {
            return 1.0;
        }
        let away = (self.distance(self.sum) as f64 / 2.0 - 0.5).max(0.0);
        outside(away / variance.sqrt())
    }
}

/// The probability that a normally distributed number is farther from its mean than so many standard deviations.
fn outside(deviations: f64) -> f64 {
    let x = deviations / std::f64::consts::SQRT_2;
    if x < 2.0 {
        // The series of the error function.
        let (mut term, mut sum) = (x, x);
        for n in 1..100 {
            let n = f64::from(n);
            term *= -x * x / n;
            sum += term / (2.0 * n + 1.0);
        }
        return (1.0 - sum * std::f64::consts::FRAC_2_SQRT_PI).clamp(0.0, 1.0);
    }
    // The continued fraction of the complement, from its end.
    let fraction = (1..100).rev().fold(x, |below, n| x + f64::from(n) / 2.0 / below);
    ((-x * x).exp() / fraction / std::f64::consts::PI.sqrt()).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }

    #[test]
    fn probabilities_of_few_values_are_counted() {
        // Of the 20 ways to choose 3 of 6, two are as extreme.
        let (low, high) = ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]);
        assert!(near(p_value(&low, &high).unwrap(), 0.1));
        assert!(near(
            p_value(&[1.0, 2.0, 3.0, 4.0, 5.0], &[6.0, 7.0, 8.0, 9.0, 10.0]).unwrap(),
            2.0 / 252.0
        ));
        // scipy.stats.mannwhitneyu([1, 2, 3, 4, 5], [2.5, 3.5, 4.5, 5.5, 6.5], method="exact")
        let p = p_value(&[1.0, 2.0, 3.0, 4.0, 5.0], &[2.5, 3.5, 4.5, 5.5, 6.5]).unwrap();
        assert!(near(p, 0.222_222_222), "{p}");
        assert!(near(least_p(3, 3), 0.1) && near(least_p(5, 5), 2.0 / 252.0) && least_p(0, 3) == 1.0);
        assert_eq!(p_value(&[1.0], &[2.0, 3.0]), None);
        assert_eq!(p_value(&[1.0, 1.0], &[1.0, 1.0]), Some(1.0));
    }

    #[test]
    fn the_approximation_agrees_with_the_count() {
        let a: Vec<f64> = (0..12).map(f64::from).collect();
        let b: Vec<f64> = (0..12).map(|value| f64::from(value) + 4.0).collect();
        let ranks = Ranks::of(&a, &b);
        let (exact, approximate) = (ranks.exact(), ranks.approximate());
        assert!((exact - approximate).abs() < 0.005, "{exact} {approximate}");
        assert!(near(outside(0.0), 1.0) && near(outside(1.959_963_985), 0.05));
        assert!((outside(5.0) / 5.733_031_437e-7 - 1.0).abs() < 1e-6);
        let equal = [1.0; 40];
        assert_eq!(p_value(&equal, &equal), Some(1.0));
    }

    #[test]
    fn probabilities_of_many_comparisons_are_raised() {
        let raised = adjusted(&[0.01, 0.04, 0.03, 0.5]);
        let expected = [0.04, 0.16 / 3.0, 0.16 / 3.0, 0.5];
        assert!(
            raised.iter().zip(expected).all(|(a, b)| near(*a, b)),
            "{raised:?}"
        );
        assert_eq!(adjusted(&[]), [0.0; 0]);
    }

    proptest! {
        #[test]
        fn a_probability_is_one_and_does_not_depend_on_the_order(
            a in prop::collection::vec(0u32..50, 0..40),
            b in prop::collection::vec(0u32..50, 0..40),
        ) {
            let numbers = |list: &[u32]| list.iter().map(|value| f64::from(*value)).collect::<Vec<f64>>();
            let (a, b) = (numbers(&a), numbers(&b));
            let p = p_value(&a, &b);
            prop_assert_eq!(p.is_some(), a.len() > 1 && b.len() > 1);
            prop_assert!(p.is_none_or(|p| (0.0..=1.0).contains(&p)));
            let swapped = p_value(&b, &a);
            prop_assert!(p.zip(swapped).is_none_or(|(p, q)| near(p, q)), "{:?} {:?}", p, swapped);
            prop_assert_eq!(are_separate(&a, &b), are_separate(&b, &a));
        }

        #[test]
        fn raised_probabilities_are_not_smaller_and_keep_their_order(list in prop::collection::vec(0.0f64..=1.0, 0..50)) {
            let raised = adjusted(&list);
            for (at, p) in list.iter().enumerate() {
                prop_assert!(raised[at] >= *p && raised[at] <= 1.0);
                for (other, q) in list.iter().enumerate() {
                    prop_assert!(p > q || raised[at] <= raised[other]);
                }
            }
        }
    }
}
