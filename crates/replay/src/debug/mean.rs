//! The mean of numbers whose sum can be larger than any number.

/// What large sums are divided by.
const UNIT: f64 = (1_u64 << 60) as f64;

/// The sum of finite numbers, and how many there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mean {
    sum: f64,
    count: u64,
    /// What the sum counts in: 1, or `UNIT` after it became too large.
    unit: f64,
}

impl Default for Mean {
    fn default() -> Self {
        Self {
            sum: 0.0,
            count: 0,
            unit: 1.0,
        }
    }
}

impl Mean {
    pub(super) fn add(&mut self, value: f64) {
        self.count += 1;
        let sum = self.sum + value / self.unit;
        self.sum = match sum.is_finite() {
            true => sum,
            false => {
                self.unit = UNIT;
                self.sum / UNIT + value / UNIT
            }
        };
    }

    /// `None` without numbers.
    pub(super) fn value(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64 * self.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_the_largest_numbers_is_a_number() {
        let mut mean = Mean::default();
        assert_eq!(mean.value(), None);
        for _ in 0..4 {
            mean.add(1e308);
        }
        assert_eq!(mean.value(), Some(1e308));
        for _ in 0..4 {
            mean.add(-1e308);
        }
        assert_eq!(mean.value(), Some(0.0));
    }
}
