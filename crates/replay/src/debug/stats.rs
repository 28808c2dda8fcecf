//! Statistics of the numbers in a range of memory.

use std::ops::Range;

use super::mean::Mean;
use super::memory::{Memory, Moment, each_chunk};
use super::number::Number;
use crate::error::Error;

/// What the numbers of a range are like.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Number of whole elements.
    pub elements: u64,
    /// Elements that are NaN.
    pub nan: u64,
    /// Elements that are positive infinity.
    pub positive_infinity: u64,
    /// Elements that are negative infinity.
    pub negative_infinity: u64,
    /// Elements that are zero.
    pub zero: u64,
    /// The smallest finite element. `None` if there is none.
    pub min: Option<f64>,
    /// The largest finite element.
    pub max: Option<f64>,
    /// The mean of the finite elements.
    pub mean: Option<f64>,
    /// Finite elements in intervals of equal width from `min` to `max`.
    pub bins: Vec<u64>,
}

impl Stats {
    /// Finite elements.
    pub fn finite(&self) -> u64 {
        self.elements - self.nan - self.positive_infinity - self.negative_infinity
    }

    /// The limits of an interval.
    pub fn limits(&self, bin: usize) -> Option<(f64, f64)> {
        let (min, max) = (self.min?, self.max?);
        let count = self.bins.len() as f64;
        // Half of each, because the difference of two numbers can be larger than any number.
        let at = |share: f64| 2.0 * (min / 2.0 + (max / 2.0 - min / 2.0) * share);
        let last = bin + 1 == self.bins.len();
        Some((
            at(bin as f64 / count),
            if last { max } else { at((bin + 1) as f64 / count) },
        ))
    }

    fn add(&mut self, value: f64, mean: &mut Mean) {
        self.elements += 1;
        if value.is_nan() {
            self.nan += 1;
        } else if value == f64::INFINITY {
            self.positive_infinity += 1;
        } else if value == f64::NEG_INFINITY {
            self.negative_infinity += 1;
        } else {
            if value == 0.0 {
                self.zero += 1;
            }
            self.min = Some(self.min.map_or(value, |min| min.min(value)));
            self.max = Some(self.max.map_or(value, |max| max.max(value)));
            mean.add(value);
        }
    }
}

/// Reads a range twice: for the limits, and then for the histogram.
///
/// # Errors
///
/// If the contents are not known.
pub fn stats(
    memory: &mut impl Memory,
    moment: Moment,
    range: &Range<u64>,
    number: Number,
    bins: usize,
) -> Result<Stats, Error> {
    let mut stats = Stats::default();
    let mut mean = Mean::default();
    each_chunk(memory, moment, range, |bytes| {
        for element in bytes.chunks_exact(number.bytes()) {
            stats.add(number.value(element), &mut mean);
        }
    })?;
    stats.mean = mean.value();
    let (Some(min), Some(max)) = (stats.min, stats.max) else {
        return Ok(stats);
    };
    let mut counts = vec![0; bins];
    let width = max / 2.0 - min / 2.0;
    each_chunk(memory, moment, range, |bytes| {
        if bins == 0 {
            return;
        }
        for element in bytes.chunks_exact(number.bytes()) {
            let value = number.value(element);
            if value.is_finite() {
                let share = if width > 0.0 {
                    (value / 2.0 - min / 2.0) / width
                } else {
                    0.0
                };
                counts[((share * bins as f64) as usize).min(bins - 1)] += 1;
            }
        }
    })?;
    stats.bins = counts;
    Ok(stats)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug::memory::tests::Bytes;

    fn of(numbers: &[f32], bins: usize) -> Stats {
        let mut memory = Bytes(numbers.iter().flat_map(|number| number.to_le_bytes()).collect());
        let range = 0..memory.0.len() as u64;
        stats(&mut memory, Moment::Now, &range, Number::F32, bins).unwrap()
    }

    #[test]
    fn numbers_are_counted_by_kind() {
        let found = of(
            &[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, -2.0, 6.0],
            4,
        );
        assert_eq!((found.elements, found.finite(), found.zero), (7, 4, 2));
        assert_eq!(
            (found.nan, found.positive_infinity, found.negative_infinity),
            (1, 1, 1)
        );
        assert_eq!(
            (found.min, found.max, found.mean),
            (Some(-2.0), Some(6.0), Some(1.0))
        );
        assert_eq!(found.bins, [1, 2, 0, 1]);
        assert_eq!(found.limits(0), Some((-2.0, 0.0)));
        assert_eq!(found.limits(3), Some((4.0, 6.0)));
    }

    #[test]
    fn odd_memory_has_statistics_too() {
        let none = of(&[f32::NAN], 4);
        assert_eq!((none.min, none.mean, none.bins.len()), (None, None, 0));
        assert_eq!(of(&[3.0, 3.0], 4).bins, [2, 0, 0, 0]);
        assert_eq!(of(&[1.0, 2.0], 0).bins, [0; 0]);
        // The difference of the limits is larger than any number.
        let mut wide = Bytes(
            [f64::MIN, 0.0, f64::MAX]
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect(),
        );
        let wide = stats(&mut wide, Moment::Now, &(0..24), Number::F64, 2).unwrap();
        assert_eq!(wide.bins, [1, 2]);
        assert_eq!(wide.limits(1), Some((0.0, f64::MAX)));
    }
}
