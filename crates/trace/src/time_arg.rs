//! Times as users write them: offsets, shares of the span, absolute nanoseconds.

use std::fmt;
use std::str::FromStr;

use tracesmith_format::Timestamp;

use crate::error::Error;
use crate::rewrite::TimeRange;
use crate::units;

/// A time as the user wrote it; what it means depends on the trace.
///
/// ```
/// use tracesmith_trace::TimeArg;
///
/// assert_eq!("1.5ms".parse(), Ok(TimeArg::Offset(1_500_000)));
/// assert_eq!("25%".parse(), Ok(TimeArg::Share(0.25)));
/// assert_eq!("@1731000000".parse(), Ok(TimeArg::Absolute(1_731_000_000)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TimeArg {
    /// Nanoseconds from the trace's start.
    Offset(u64),
    /// A share of the span, from 0 to 1.
    Share(f64),
    /// Nanoseconds of the trace's clock.
    Absolute(u64),
}

impl TimeArg {
    /// The moment in a trace with this span.
    pub fn resolve(self, span: Option<(Timestamp, Timestamp)>) -> Timestamp {
        let (first, last) = span.unwrap_or_default();
        Timestamp(match self {
            TimeArg::Offset(nanos) => first.0.saturating_add(nanos),
            TimeArg::Share(share) => first
                .0
                .saturating_add((share * (last.0 - first.0) as f64).round() as u64),
            TimeArg::Absolute(nanos) => nanos,
        })
    }
}

/// The range between two times. It must overlap the trace: every reader answers with the same error if it does not,
/// instead of with an empty result.
pub fn time_range(
    from: Option<TimeArg>,
    to: Option<TimeArg>,
    span: Option<(Timestamp, Timestamp)>,
) -> Result<TimeRange, Error> {
    let range = TimeRange {
        from: from.map(|time| time.resolve(span)),
        to: to.map(|time| time.resolve(span)),
    };
    if let (Some(from), Some(to), Some(from_time), Some(to_time)) = (from, to, range.from, range.to)
        && from_time >= to_time
    {
        return Err(outside(format!(
            "the time range is empty: its start {from} is not before its end {to}"
        )));
    }
    let Some((first, last)) = span else {
        return Ok(range);
    };
    let length = units::nanos(last.0 - first.0);
    match (from, range.from) {
        (Some(from @ TimeArg::Absolute(_)), Some(time)) if time > last => {
            return Err(outside(format!(
                "the time range starts at {from}, after the end of the trace: the trace ends at @{}",
                last.0
            )));
        }
        (Some(from), Some(time)) if time > last => {
            return Err(outside(format!(
                "the time range starts at {from}, after the end of the trace: the trace ends at {length}"
            )));
        }
        _ => {}
    }
    match (to, range.to) {
        (Some(to @ TimeArg::Absolute(_)), Some(time)) if time <= first => Err(outside(format!(
            "the time range ends at {to}, before the start of the trace: the trace starts at @{}",
            first.0
        ))),
        (Some(to), Some(time)) if time <= first => Err(outside(format!(
            "the time range is empty: its end {to} is the start of the trace"
        ))),
        _ => Ok(range),
    }
}

fn outside(problem: String) -> Error {
    Error::NotInTrace { problem }
}

/// As a user can write it.
impl fmt::Display for TimeArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimeArg::Offset(nanos) => f.write_str(&units::nanos(*nanos)),
            TimeArg::Share(share) => write!(f, "{} %", share * 100.0),
            TimeArg::Absolute(nanos) => write!(f, "@{nanos}"),
        }
    }
}

impl FromStr for TimeArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a time; write 1.5s, 200ms, 10us, 7ns, 25% or @nanoseconds");
        if let Some(absolute) = text.strip_prefix('@') {
            return absolute.parse().map(TimeArg::Absolute).map_err(|_| wrong());
        }
        if let Some(share) = text.strip_suffix('%') {
            return match share.trim().parse::<f64>() {
                Ok(share) if (0.0..=100.0).contains(&share) => Ok(TimeArg::Share(share / 100.0)),
                _ => Err(wrong()),
            };
        }
        let number_ends = text
            .find(|c: char| c.is_alphabetic() || c == 'µ')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(number_ends);
        let nanos_per_unit = match unit {
            "s" => 1_000_000_000,
            "ms" => 1_000_000,
            "us" | "µs" | "μs" => 1_000,
            "ns" => 1,
            "" if number.trim() == "0" => 1,
            _ => return Err(wrong()),
        };
        nanos(number.trim(), nanos_per_unit)
            .map(TimeArg::Offset)
            .ok_or_else(wrong)
    }
}

/// Exact to the nanosecond, which floating point is not beyond a hundred days.
fn nanos(number: &str, per_unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = if whole.is_empty() && !fraction.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let mut nanos = whole.checked_mul(per_unit)?;
    let mut unit = per_unit;
    for digit in fraction.chars() {
        unit /= 10;
        nanos = nanos.checked_add(u64::from(digit.to_digit(10)?) * unit)?;
    }
    Some(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_exactly() {
        let read = |text: &str| text.parse::<TimeArg>();
        assert_eq!(read("1.5s"), Ok(TimeArg::Offset(1_500_000_000)));
        assert_eq!(read("0.000000001s"), Ok(TimeArg::Offset(1)));
        assert_eq!(read("200ms"), Ok(TimeArg::Offset(200_000_000)));
        assert_eq!(read(".5us"), Ok(TimeArg::Offset(500)));
        assert_eq!(read("7ns"), Ok(TimeArg::Offset(7)));
        assert_eq!(read("0"), Ok(TimeArg::Offset(0)));
        assert_eq!(read("25%"), Ok(TimeArg::Share(0.25)));
        assert_eq!(read("@18446744073709551615"), Ok(TimeArg::Absolute(u64::MAX)));
        for wrong in [
            "",
            "5",
            "-1s",
            "1.5",
            "1h",
            "101%",
            "@x",
            "s",
            "1.s.",
            "99999999999s",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_are_resolved_within_the_span() {
        let span = Some((Timestamp(1_000), Timestamp(3_000)));
        assert_eq!(TimeArg::Offset(10).resolve(span), Timestamp(1_010));
        assert_eq!(TimeArg::Share(0.5).resolve(span), Timestamp(2_000));
        assert_eq!(TimeArg::Absolute(7).resolve(span), Timestamp(7));
        assert_eq!(TimeArg::Offset(u64::MAX).resolve(span), Timestamp(u64::MAX));
        assert_eq!(TimeArg::Share(1.0).resolve(None), Timestamp(0));
    }
}
