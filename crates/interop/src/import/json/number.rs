//! Numbers of a trace, from their text: whole ones as they are, times as exact nanoseconds, never over floating point.

use crate::import::TimeUnit;

/// Digits that a 128-bit number certainly holds.
const DIGITS: usize = 38;

/// A whole number that is not negative: `42`, `"42"`, `"0x2a"`, `42.0`.
#[inline]
pub(super) fn unsigned(text: &[u8]) -> Option<u64> {
    let mut value = 0u64;
    if text.is_empty() || text.len() > 19 {
        return unusual_unsigned(text);
    }
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return unusual_unsigned(text);
        }
        value = value * 10 + u64::from(digit);
    }
    Some(value)
}

fn unusual_unsigned(text: &[u8]) -> Option<u64> {
    let text = unquoted(text);
    if let Some(hexadecimal) = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X")) {
        let digits = std::str::from_utf8(hexadecimal).ok()?;
        return u64::from_str_radix(digits, 16).ok();
    }
    u64::try_from(scaled(text, 0)?).ok()
}

/// A whole number: `-1`, `"7"`.
pub(super) fn signed(text: &[u8]) -> Option<i64> {
    match unsigned(text) {
        Some(value) => i64::try_from(value).ok(),
        None => i64::try_from(scaled(unquoted(text), 0)?).ok(),
    }
}

/// Any number, for samples of counters.
pub(super) fn real(text: &[u8]) -> Option<f64> {
    let value: f64 = std::str::from_utf8(unquoted(text)).ok()?.trim().parse().ok()?;
    value.is_finite().then_some(value)
}

/// A time or duration in nanoseconds. What is below one is rounded.
#[inline]
pub(super) fn nanoseconds(text: &[u8], unit: TimeUnit) -> Option<i128> {
    let shift = match unit {
        TimeUnit::Nanoseconds => 0,
        TimeUnit::Microseconds => 3,
    };
    match plain_decimal(text, shift) {
        Some(value) => Some(i128::from(value)),
        None => scaled(unquoted(text), shift),
    }
}

/// The usual form: up to 15 digits before the point, none or up to three behind it.
#[inline]
fn plain_decimal(text: &[u8], shift: usize) -> Option<u64> {
    if text.is_empty() || text.len() > 19 {
        return None;
    }
    let mut value = 0u64;
    let mut behind_point = None;
    for (at, byte) in text.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            value = value * 10 + u64::from(digit);
        } else if *byte == b'.' && behind_point.is_none() && at > 0 {
            behind_point = Some(text.len() - at - 1);
        } else {
            return None;
        }
    }
    let missing = shift.checked_sub(behind_point.unwrap_or(0))?;
    [1u64, 10, 100, 1_000]
        .get(missing)
        .and_then(|scale| value.checked_mul(*scale))
}

/// The decimal number `text` times ten to the `shift`, rounded to a whole one.
fn scaled(text: &[u8], shift: usize) -> Option<i128> {
    let text = text.trim_ascii();
    let (is_negative, text) = match text.first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let exponent_at = text.iter().position(|byte| matches!(byte, b'e' | b'E'));
    let (decimal, exponent) = match exponent_at {
        Some(at) => (&text[..at], exponent_of(&text[at + 1..])?),
        None => (text, 0),
    };
    let (mut mantissa, mut digits, mut power) = (0u128, 0, exponent.saturating_add(shift as i64));
    let mut is_behind_point = false;
    let mut has_digits = false;
    for byte in decimal {
        match byte {
            b'0'..=b'9' => {
                has_digits = true;
                if digits < DIGITS {
                    mantissa = mantissa * 10 + u128::from(byte - b'0');
                    digits += usize::from(mantissa != 0);
                    power -= i64::from(is_behind_point);
                } else {
                    power += i64::from(!is_behind_point);
                }
            }
            b'.' if !is_behind_point => is_behind_point = true,
            _ => return None,
        }
    }
    if !has_digits {
        return None;
    }
    let magnitude = i128::try_from(times_power_of_ten(mantissa, power)?).ok()?;
    Some(if is_negative { -magnitude } else { magnitude })
}

fn exponent_of(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let value: i64 = text.parse().ok()?;
    Some(value.clamp(-1_000_000, 1_000_000))
}

fn times_power_of_ten(mantissa: u128, power: i64) -> Option<u128> {
    if mantissa == 0 {
        return Some(0);
    }
    let size = u32::try_from(power.unsigned_abs()).ok()?;
    if power >= 0 {
        return mantissa.checked_mul(10u128.checked_pow(size)?);
    }
    match 10u128.checked_pow(size) {
        Some(divisor) => Some((mantissa + divisor / 2) / divisor),
        None => Some(0),
    }
}

/// The text without the quotes around it.
#[inline]
pub(super) fn unquoted(text: &[u8]) -> &[u8] {
    match text {
        [b'"', inner @ .., b'"'] => inner,
        _ => text,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may stop on any error")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn micros(text: &str) -> Option<i128> {
        nanoseconds(text.as_bytes(), TimeUnit::Microseconds)
    }

    #[test]
    fn times_are_exact() {
        for (text, expected) in [
            ("0", 0),
            ("4203669604595.407", 4_203_669_604_595_407),
            ("1712195495519695.8", 1_712_195_495_519_695_800),
            ("1623142623460111", 1_623_142_623_460_111_000),
            ("\"1623142623460111\"", 1_623_142_623_460_111_000),
            ("0.001", 1),
            ("0.0004", 0),
            ("0.0005", 1),
            ("-3.25", -3_250),
            ("1.5e3", 1_500_000),
            ("15E-4", 2),
            ("1712195495.519689152e6", 1_712_195_495_519_689_152),
            ("9223372036854775808", 9_223_372_036_854_775_808_000),
            ("0.00000000000000000000000000000000000000000000000001", 0),
            ("1e-400000000", 0),
        ] {
            assert_eq!(micros(text), Some(expected), "{text}");
        }
        assert_eq!(nanoseconds(b"12.5", TimeUnit::Nanoseconds), Some(13));
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in [
            "",
            "\"\"",
            "null",
            "NaN",
            "Infinity",
            "-Infinity",
            "1e309",
            "1e",
            "--1",
            "1.2.3",
            "{}",
            ".",
            "0x10",
            "1 2",
        ] {
            assert_eq!(micros(text), None, "{text}");
        }
        assert_eq!(unsigned(b"-1"), None);
        assert_eq!(signed(b"18446744073709551615"), None);
    }

    #[test]
    fn whole_numbers_of_every_form() {
        assert_eq!(unsigned(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(unsigned(b"\"0x7fda0e810200\""), Some(0x7fda_0e81_0200));
        assert_eq!(unsigned(b"7.0"), Some(7));
        assert_eq!(signed(b"-1"), Some(-1));
        assert_eq!(signed(b"\"25738\""), Some(25_738));
        assert_eq!(real(b"0.25"), Some(0.25));
        assert_eq!(real(b"NaN"), None);
    }

    proptest! {
        #[test]
        fn any_time_comes_back(nanos in 0u64.., digits in 0usize..3) {
            let text = format!("{}.{:03}{}", nanos / 1_000, nanos % 1_000, "0".repeat(digits));
            prop_assert_eq!(micros(&text), Some(i128::from(nanos)));
            prop_assert_eq!(micros(&format!("-{text}")), Some(-i128::from(nanos)));
            prop_assert_eq!(unsigned(nanos.to_string().as_bytes()), Some(nanos));
        }

        #[test]
        fn any_text_is_a_number_or_none(text in ".*") {
            micros(&text);
            signed(text.as_bytes());
            real(text.as_bytes());
        }
    }
}
