//! The time axis of a timeline: round times, as many as fit.

use tracesmith_format::Timestamp;

use super::TimeSpan;

/// A labeled time on the axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tick {
    /// Its column.
    pub column: usize,
    /// The time, as text.
    pub label: String,
}

/// Writes the times of a window as offsets from the start of the trace, all in one unit.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    window: TimeSpan,
    zero: u64,
    unit_nanos: u64,
    unit: &'static str,
}

/// Space between a label and the next tick.
const GAP: usize = 2;

impl Axis {
    /// The axis of a window of a trace that starts at `zero`.
    pub fn new(window: TimeSpan, zero: u64) -> Self {
        let (unit_nanos, unit) = match window.to.0.saturating_sub(zero) {
            0..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "µs"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        Axis {
            window,
            zero,
            unit_nanos,
            unit,
        }
    }

    /// Round times with their columns, for an axis of `width` columns. The distance between ticks is the smallest round
    /// number at which the labels do not overlap.
    pub fn ticks(&self, width: usize) -> Vec<Tick> {
        let first = self.window.from.0.saturating_sub(self.zero);
        let last = self.window.to.0.saturating_sub(self.zero);
        let nanos = self.window.nanos();
        for step in round_numbers() {
            if step > nanos {
                break;
            }
            let widest = self.label(last, step).chars().count() + GAP;
            let columns = (u128::from(step) * width as u128) / u128::from(nanos);
            if columns >= widest as u128 {
                return self.ticks_at(step, first, last, width);
            }
        }
        // Two labels do not fit: only the start is labeled.
        let label = self.label(first, 1);
        if label.chars().count() <= width {
            vec![Tick { column: 0, label }]
        } else {
            Vec::new()
        }
    }

    fn ticks_at(&self, step: u64, first: u64, last: u64, width: usize) -> Vec<Tick> {
        let mut ticks = Vec::new();
        let mut at = first.div_ceil(step).saturating_mul(step);
        while at <= last {
            let column = (u128::from(at - first) * width as u128 / u128::from(self.window.nanos())) as usize;
            let label = self.label(at, step);
            // There may be no space for the last one.
            if column + 1 + label.chars().count() <= width {
                ticks.push(Tick { column, label });
            }
            let Some(next) = at.checked_add(step) else { break };
            at = next;
        }
        ticks
    }

    /// A time as an offset from the start of the trace, precise to a thousandth of the window.
    pub fn moment(&self, time: Timestamp) -> String {
        let step = 10_u64.pow((self.window.nanos() / 1_000).max(1).ilog10());
        self.label(time.0.saturating_sub(self.zero), step)
    }

    /// An offset from the start of the trace, with the digits that distinguish times `step` apart.
    fn label(&self, offset: u64, step: u64) -> String {
        let digits = self.unit_nanos.ilog10().saturating_sub(trailing_zeros(step)) as usize;
        let (whole, rest) = (offset / self.unit_nanos, offset % self.unit_nanos);
        if digits == 0 {
            return format!("{whole} {}", self.unit);
        }
        let width = self.unit_nanos.ilog10() as usize;
        let fraction = format!("{rest:0width$}");
        format!("{whole}.{} {}", &fraction[..digits], self.unit)
    }
}

/// 1, 2, 5, 10, 20, 50…
fn round_numbers() -> impl Iterator<Item = u64> {
    (0..19).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_u64.pow(power)))
}

fn trailing_zeros(number: u64) -> u32 {
    let mut number = number.max(1);
    let mut zeros = 0;
    while number.is_multiple_of(10) {
        number /= 10;
        zeros += 1;
    }
    zeros
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(from: u64, to: u64, width: usize) -> Vec<(usize, String)> {
        let window = TimeSpan::new(Timestamp(1_000_000 + from), Timestamp(1_000_000 + to));
        let ticks = Axis::new(window, 1_000_000).ticks(width);
        ticks.into_iter().map(|tick| (tick.column, tick.label)).collect()
    }

    #[test]
    fn times_are_round_and_apart() {
        let shown = ticks(0, 10_000_000, 50);
        assert_eq!(shown[..2], [(0, "0 ms".to_owned()), (10, "2 ms".to_owned())]);
        assert_eq!(shown.len(), 5, "the one at the end has no space: {shown:?}");
        let deep = ticks(1_500_000_250, 1_500_000_950, 60);
        assert_eq!(deep[0], (12, "1.5000004 s".to_owned()));
    }

    #[test]
    fn narrow_and_short_axes_show_what_fits() {
        assert_eq!(ticks(0, 1, 1), []);
        assert_eq!(ticks(0, 1, 10), [(0, "0 ns".to_owned())]);
        assert_eq!(ticks(3_000, 9_000, 12)[0], (4, "5 µs".to_owned()));
        for width in 1..80 {
            for (column, label) in ticks(123_456_789, 987_654_321, width) {
                assert!(
                    column + label.chars().count() <= width,
                    "{width}: {column} {label}"
                );
            }
        }
    }

    #[test]
    fn moments_have_as_many_digits_as_the_window_needs() {
        let window = TimeSpan::new(Timestamp(542_270_123), Timestamp(542_276_363));
        let axis = Axis::new(window, 0);
        assert_eq!(axis.moment(window.from), "542.270123 ms");
        let whole = TimeSpan::new(Timestamp(0), Timestamp(84_491_234));
        assert_eq!(Axis::new(whole, 0).moment(whole.to), "84.49 ms");
        assert_eq!(
            Axis::new(TimeSpan::new(Timestamp(0), Timestamp(1)), 0).moment(Timestamp(1)),
            "1 ns"
        );
    }

    #[test]
    fn the_end_of_all_times_is_no_trouble() {
        let window = TimeSpan::new(Timestamp(1), Timestamp(u64::MAX));
        assert!(!Axis::new(window, 1).ticks(100).is_empty());
    }
}
