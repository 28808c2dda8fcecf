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
