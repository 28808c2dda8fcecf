//! Sizes, durations and ranges on the command line.

use std::str::FromStr;
use std::time::Duration;

use tracesmith_collect::{CaptureRange, Steps};

/// A whole number that is not negative.
pub(crate) fn number_from_0(text: &str) -> Result<usize, String> {
    text.parse()
        .map_err(|_| "write a whole number of 0 or more".to_owned())
}

/// A number of bytes: `64M`, `1.5G`, `4096`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SizeArg(pub(crate) u64);

impl FromStr for SizeArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no size; write 64M, 1G, 512K or bytes");
        let (number, unit) = split_unit(text);
        let scale: u64 = match unit.to_ascii_uppercase().as_str() {
            "" | "B" => 1,
            "K" | "KB" | "KIB" => 1 << 10,
            "M" | "MB" | "MIB" => 1 << 20,
            "G" | "GB" | "GIB" => 1 << 30,
            _ => return Err(wrong()),
        };
        scaled(number, scale).map(SizeArg).ok_or_else(wrong)
    }
}

/// A span of time: `5`, `1.5s`, `200ms`, `2m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DurationArg(pub(crate) Duration);

impl FromStr for DurationArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no span of time; write 5, 1.5s, 200ms, 10us or 2m");
        let (number, unit) = split_unit(text);
        let nanos: u64 = match unit {
            "" | "s" => 1_000_000_000,
            "ms" => 1_000_000,
            "us" | "µs" => 1_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return Err(wrong()),
        };
        let nanos = scaled(number, nanos).ok_or_else(wrong)?;
        Ok(DurationArg(Duration::from_nanos(nanos)))
    }
}

/// Within which ranges of the program to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RangeArg(pub(crate) CaptureRange);

impl FromStr for RangeArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "cuda-profiler-api" {
            return Ok(RangeArg(CaptureRange::ProfilerApi));
        }
        if text == "signal" {
            return Ok(RangeArg(CaptureRange::Order));
        }
        let range = text.strip_prefix("nvtx:").filter(|range| !range.is_empty());
        let range = range.ok_or_else(|| {
            format!("'{text}' is no range; write cuda-profiler-api, nvtx:NAME, nvtx:NAME@DOMAIN or signal")
        })?;
        let (name, domain) = match range.rsplit_once('@') {
            Some((name, domain)) if !name.is_empty() && !domain.is_empty() => (name, Some(domain)),
            _ => (range, None),
        };
        Ok(RangeArg(CaptureRange::Marker {
            name: name.to_owned(),
            domain: domain.map(str::to_owned),
        }))
    }
}

/// Some of the ranges: `10..20` are the ten from number 10 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepsArg(pub(crate) Steps);

impl FromStr for StepsArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let steps = || {
            let (first, last) = text.split_once("..")?;
            let steps = Steps {
                first: first.trim().parse().ok()?,
                last: last.trim().parse().ok()?,
            };
            (steps.first < steps.last).then_some(StepsArg(steps))
        };
        steps().ok_or_else(|| format!("'{text}' are no steps; write 10..20 for the ten from number 10 on"))
    }
}

fn split_unit(text: &str) -> (&str, &str) {
    let ends = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(ends);
    (number, unit.trim())
}

/// A decimal number times `scale`, without going through floating point.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = u32::try_from(fraction.len())
        .ok()
        .filter(|digits| *digits <= 18)?;
    let whole: u64 = whole.parse().ok()?;
    let fraction: u64 = fraction.parse().ok()?;
    let part = u128::from(fraction) * u128::from(scale) / 10u128.pow(digits);
    whole.checked_mul(scale)?.checked_add(u64::try_from(part).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, bytes) in [
            ("64M", 64 << 20),
            ("1.5k", 1536),
            ("7", 7),
            ("2GiB", 2 << 30),
            ("0", 0),
        ] {
            assert_eq!(text.parse(), Ok(SizeArg(bytes)), "{text}");
        }
        for wrong in ["", "M", "-1", "1T", "1.M", ".5M", "99999999999999G"] {
            assert!(wrong.parse::<SizeArg>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_are_read() {
        for (text, millis) in [
            ("5", 5_000),
            ("1.5s", 1_500),
            ("200ms", 200),
            ("2m", 120_000),
            ("0", 0),
        ] {
            assert_eq!(
                text.parse(),
                Ok(DurationArg(Duration::from_millis(millis))),
                "{text}"
            );
        }
        for wrong in ["", "s", "-1s", "5 days", "1e9"] {
            assert!(wrong.parse::<DurationArg>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn ranges_and_steps_are_read() {
        let marker = |name: &str, domain: Option<&str>| {
            Ok(RangeArg(CaptureRange::Marker {
                name: name.to_owned(),
                domain: domain.map(str::to_owned),
            }))
        };
        assert_eq!(
            "cuda-profiler-api".parse(),
            Ok(RangeArg(CaptureRange::ProfilerApi))
        );
        assert_eq!("nvtx:step".parse(), marker("step", None));
        assert_eq!("nvtx:a@b@train".parse(), marker("a@b", Some("train")));
        for wrong in ["", "nvtx:", "step"] {
            assert!(wrong.parse::<RangeArg>().is_err(), "{wrong}");
        }
        assert_eq!("3..9".parse(), Ok(StepsArg(Steps { first: 3, last: 9 })));
        for wrong in ["3", "9..3", "3..3", "..3", "3..", "a..b"] {
            assert!(wrong.parse::<StepsArg>().is_err(), "{wrong}");
        }
    }
}
