//! Numbers for people: bytes, nanoseconds, rates, counts.

/// Bytes with a binary unit: `512 B`, `1.5 KiB`, `64.0 MiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A span of time with a fitting unit: `812 ns`, `3.50 µs`, `12.04 ms`, `1.500 s`.
pub fn nanos(nanos: u64) -> String {
    match nanos {
        0..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => format!("{:.2} µs", nanos as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", nanos as f64 / 1e6),
        _ => format!("{:.3} s", nanos as f64 / 1e9),
    }
}

/// Bytes in a span of time, as decimal gigabytes a second; empty when there is no span.
pub fn rate(bytes: u64, nanos: u64) -> String {
    if nanos == 0 {
        String::new()
    } else {
        format!("{:.1} GB/s", bytes as f64 / nanos as f64)
    }
}

/// A count with its thousands apart: `1,234,567`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A value of a counter with at most so many digits that matter: `130.004 W`, `1.5 GiB`, `530 kB/s`. Bytes have binary
/// prefixes. Units that have a prefix already get no other one.
pub fn quantity(value: f64, unit: &str, digits: usize) -> String {
    let (step, prefixes): (f64, &[&str]) = match unit {
        "B" => (1024.0, &["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]),
        "" | "B/s" | "Hz" | "W" | "J" | "V" | "A" => (1000.0, &["", "k", "M", "G", "T", "P", "E"]),
        _ => (1000.0, &[""]),
    };
    let digits = digits.max(1);
    let rounded = |value: f64| {
        let above_point = value.abs().max(1.0).log10().floor() as usize + 1;
        let text = format!("{value:.*}", digits.saturating_sub(above_point));
        if !text.contains('.') {
            return text;
        }
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let (mut value, mut prefix) = (value, 0);
    while prefix + 1 < prefixes.len() && rounded(value).parse().is_ok_and(|shown: f64| shown.abs() >= step) {
        value /= step;
        prefix += 1;
    }
    let number = match value.abs() {
        great if great >= 1e15 => format!("{value:.*e}", digits - 1),
        small if small > 0.0 && small < 0.1_f64.powi(digits as i32) => format!("{value:.*e}", digits - 1),
        _ => rounded(value),
    };
    format!("{number} {}{unit}", prefixes[prefix])
        .trim_end()
        .to_owned()
}

/// A count and what is counted: `1 kernel`, `1,234 kernels`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// A change as percent, with its sign: `+12.5 %`. What rounds to nothing has none: `0.0 %`.
pub fn change(share: f64) -> String {
    let text = format!("{:+.1} %", 100.0 * share);
    match text.as_str() {
        "-0.0 %" | "+0.0 %" => "0.0 %".to_owned(),
        _ => text,
    }
}

/// A moment in nanoseconds since 1970 as a date in UTC: `2026-11-15 02:06:00 UTC`.
pub fn date(unix_nanos: u64) -> String {
    let seconds = unix_nanos / 1_000_000_000;
    let (mut days, time) = (seconds / 86_400, seconds % 86_400);
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 0;
    let lengths = [
        31,
        28 + u64::from(is_leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!(
        "{year}-{:02}-{:02} {hour:02}:{minute:02}:{second:02} UTC",
        month + 1,
        days + 1
    )
}

/// The name of a code; "unknown" for a code that this version has no name for.
pub fn name_or_unknown(name: Option<&'static str>) -> &'static str {
    name.unwrap_or("unknown")
}

/// A time as an offset from the start of the trace, as `--from`, `--to` and `--at` take it.
pub fn offset(span: Option<(u64, u64)>, time: u64) -> String {
    match span {
        Some((start, _)) if time >= start => format!("+{}", nanos(time - start)),
        _ => format!("@{time}"),
    }
}

/// A time as `--from`, `--to` and `--at` take it, to the microsecond and not after it.
pub fn time_argument(span: Option<(u64, u64)>, time: u64) -> String {
    match span {
        Some((start, _)) if time >= start => format!("{}us", (time - start) / 1_000),
        _ => format!("@{time}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_change_where_the_shown_number_would_grow_a_digit() {
        assert_eq!(
            [bytes(0), bytes(1023), bytes(1024), bytes(1536)],
            ["0 B", "1023 B", "1.0 KiB", "1.5 KiB"]
        );
        assert_eq!(bytes(1024 * 1024 - 1), "1.0 MiB");
        assert_eq!(bytes(u64::MAX), "16.0 EiB");
        assert_eq!(
            [nanos(0), nanos(999), nanos(1_000)],
            ["0 ns", "999 ns", "1.00 µs"]
        );
        assert_eq!(nanos(1_500_000_000), "1.500 s");
        assert_eq!([rate(100, 0), rate(2_000, 1_000)], ["", "2.0 GB/s"]);
    }

    #[test]
    fn quantities_have_a_prefix_and_the_digits_that_matter() {
        let shown = [
            quantity(0.0, "%", 3),
            quantity(130.004, "W", 6),
            quantity(1980.0, "MHz", 3),
            quantity(38.0, "°C", 3),
            quantity(1.5 * 1024.0 * 1024.0 * 1024.0, "B", 3),
            quantity(530_386.0, "B/s", 3),
            quantity(999_999.0, "B/s", 3),
            quantity(-0.25, "", 3),
            quantity(12_345_678.0, "", 3),
            quantity(1e300, "MHz", 2),
            quantity(1e-9, "s", 2),
        ];
        let expected = [
            "0 %",
            "130.004 W",
            "1980 MHz",
            "38 °C",
            "1.5 GiB",
            "530 kB/s",
            "1 MB/s",
            "-0.25",
            "12.3 M",
            "1.0e300 MHz",
            "1.0e-9 s",
        ];
        assert_eq!(shown, expected);
        assert_eq!(quantity(f64::MAX, "B", 3), "1.56e290 EiB");
    }

    #[test]
    fn one_is_not_many_and_nothing_has_no_sign() {
        let steps = |count: u64| counted(count, "step", "steps");
        assert_eq!(
            [steps(0), steps(1), steps(1_234)],
            ["0 steps", "1 step", "1,234 steps"]
        );
        assert_eq!(
            [change(-0.0001), change(0.0), change(0.125), change(-0.5)],
            ["0.0 %", "0.0 %", "+12.5 %", "-50.0 %"]
        );
    }

    #[test]
    fn dates_know_leap_years() {
        assert_eq!(date(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(date(951_782_399 * 1_000_000_000), "2000-02-28 23:59:59 UTC");
        assert_eq!(date(951_782_400 * 1_000_000_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(date(1_763_172_360 * 1_000_000_000), "2025-11-15 02:06:00 UTC");
        assert_eq!(date(u64::MAX), "2554-07-21 23:34:33 UTC");
    }

    #[test]
    fn thousands_stand_apart() {
        let shown: Vec<String> = [0, 999, 1_000, 1_234_567].into_iter().map(count).collect();
        assert_eq!(shown, ["0", "999", "1,000", "1,234,567"]);
    }
}
