//! Rows of counters: heights, short values, and the lines of the selected counter.

use tracesmith_trace::overview::{CounterKey, CounterValues};
use tracesmith_trace::units;

use super::draw::Scene;
use super::inspect::offset;
use crate::timeline::Charset;

/// Digits of a value where there is space.
const DIGITS: usize = 6;

/// What a cell is drawn with. The lowest height is 0, or the minimum in the window if that is negative. The highest is the
/// maximum in the window.
pub(super) fn height(charset: Charset, value: f64, window: CounterValues) -> char {
    let heights = charset.levels();
    let low = window.min.min(0.0);
    // Halves, because the difference of two great numbers can be too great.
    let (above, range) = (value / 2.0 - low / 2.0, window.max / 2.0 - low / 2.0);
    let share = if range > 0.0 { above / range } else { 0.0 };
    let last = heights.len() - 1;
    let number = (share * last as f64).round().clamp(0.0, last as f64) as usize;
    heights[number]
}

/// A value with its unit in at most so many columns. The unit is left out if it does not fit: the row's label has it, too.
pub(super) fn short(value: f64, unit: &str, width: usize) -> String {
    let with_unit = (1..=4).rev().map(|digits| units::quantity(value, unit, digits));
    let without_unit = (1..=4).rev().map(|digits| units::quantity(value, "", digits));
    let mut texts = with_unit.chain(without_unit);
    texts
        .find(|text| text.chars().count() <= width)
        .unwrap_or_default()
}

/// The selected counter: its value at the selected event, and its values in the window.
pub(super) fn detail(scene: &Scene<'_>, key: CounterKey) -> Vec<String> {
    let (name, unit) = (scene.trace.string(key.name), scene.trace.string(key.unit));
    let shown = |value: f64| units::quantity(value, unit, DIGITS);
    let mut lines = vec![String::new(), format!("counter {name}")];
    if let Some(picked) = &scene.state.picked
        && let Some((counter, time, value)) = scene.counted
        && (counter, time) == (key, picked.event.start)
    {
        let value = value.map_or_else(|| "no value yet".to_owned(), shown);
        lines.push(format!("  at {}: {value}", offset(scene, time)));
    }
    let window = scene.picture.counters.row(key).and_then(|row| row.window());
    lines.push(match window {
        Some(values) => format!(
            "  in this window: mean {}, min {}, max {}",
            shown(values.mean),
            shown(values.min),
            shown(values.max)
        ),
        None => "  in this window: no value".to_owned(),
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(min: f64, max: f64) -> CounterValues {
        CounterValues {
            mean: min,
            min,
            max,
            nanos: 1,
        }
    }

    #[test]
    fn heights_start_at_zero_or_at_the_minimum() {
        let heights = |window: CounterValues, values: [f64; 3]| -> String {
            let heights = values.map(|value| height(Charset::Unicode, value, window));
            heights.into_iter().collect()
        };
        assert_eq!(heights(window(50.0, 100.0), [0.0, 50.0, 100.0]), "▁▅█");
        assert_eq!(heights(window(-1.0, 1.0), [-1.0, 0.0, 1.0]), "▁▅█");
        assert_eq!(heights(window(0.0, 0.0), [0.0; 3]), "▁▁▁");
        assert_eq!(heights(window(-5.0, -5.0), [-5.0; 3]), "▁▁▁");
        assert_eq!(
            heights(window(f64::MIN, f64::MAX), [f64::MIN, 0.0, f64::MAX]),
            "▁▅█"
        );
        assert_eq!(height(Charset::Ascii, 1.0, window(0.0, 1.0)), '@');
    }

    #[test]
    fn short_values_fit() {
        let shown = |value, unit| short(value, unit, 8);
        assert_eq!(shown(1980.0, "MHz"), "1980 MHz");
        assert_eq!(shown(697.213, "W"), "697.2 W");
        assert_eq!(shown(53_421.0, "B/s"), "53 kB/s");
        assert_eq!(shown(82_463_372_083.0, "B"), "76.8 GiB");
        assert_eq!(shown(12.25, "instructions"), "12.25");
        assert_eq!(shown(38.0, "°C"), "38 °C");
        for value in [0.0, -1.0, 1e-300, -1e-300, f64::MAX, f64::MIN, 999_999.5] {
            for unit in ["", "B", "B/s", "%", "MHz", "instructions"] {
                let text = shown(value, unit);
                assert!(
                    !text.is_empty() && text.chars().count() <= 8,
                    "{value} {unit}: {text}"
                );
            }
        }
    }
}
