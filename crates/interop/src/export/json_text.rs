//! JSON by hand: exporters write millions of small objects, and the text of each piece is known.

use std::io::Write;

/// Adds a string in quotes, escaped.
pub(super) fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    push_escaped(out, text);
    out.push(b'"');
}

/// Adds a text, escaped, without quotes.
pub(super) fn push_escaped(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let mut done = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let short = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0..=0x1f => 0,
            _ => continue,
        };
        out.extend_from_slice(&bytes[done..at]);
        done = at + 1;
        if short == 0 {
            push_format(out, format_args!("\\u{byte:04x}"));
        } else {
            out.extend_from_slice(&[b'\\', short]);
        }
    }
    out.extend_from_slice(&bytes[done..]);
}

/// Adds a number.
pub(super) fn push_number(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Adds nanoseconds as microseconds, exactly: as many places behind the point as it takes.
pub(super) fn push_micros(out: &mut Vec<u8>, nanos: u64) {
    push_number(out, nanos / 1000);
    let rest = (nanos % 1000) as u16;
    if rest > 0 {
        let digits = [
            b'0' + (rest / 100) as u8,
            b'0' + (rest / 10 % 10) as u8,
            b'0' + (rest % 10) as u8,
        ];
        let length = digits
            .iter()
            .rposition(|digit| *digit != b'0')
            .map_or(0, |last| last + 1);
        out.push(b'.');
        out.extend_from_slice(&digits[..length]);
    }
}

/// The same for times before a zero, too.
pub(super) fn push_signed_micros(out: &mut Vec<u8>, nanos: i64) {
    if nanos < 0 {
        out.push(b'-');
    }
    push_micros(out, nanos.unsigned_abs());
}

/// Adds `"key":`.
pub(super) fn push_key(out: &mut Vec<u8>, key: &str) {
    push_string(out, key);
    out.push(b':');
}

/// Adds nanoseconds as milliseconds, exactly.
pub(super) fn push_millis(out: &mut Vec<u8>, nanos: u64) {
    push_number(out, nanos / 1_000_000);
    let rest = nanos % 1_000_000;
    if rest > 0 {
        let digits = format!(".{rest:06}");
        out.extend_from_slice(digits.trim_end_matches('0').as_bytes());
    }
}

/// Adds a floating-point number; JSON has no word for infinities and for what is no number, so these become null.
pub(super) fn push_float(out: &mut Vec<u8>, number: f64) {
    if number.is_finite() {
        push_format(out, format_args!("{number}"));
    } else {
        out.extend_from_slice(b"null");
    }
}

/// Adds formatted text as it is.
pub(super) fn push_format(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a vector takes everything");
}

/// Adds a number as a member unless it is 0, which stands for "none" or "not known".
pub(super) fn push_positive(out: &mut Vec<u8>, key: &str, number: u64) {
    if number > 0 {
        push_key(out, key);
        push_number(out, number);
        out.push(b',');
    }
}

/// Adds an address as a member, as text: doubles do not hold all of them.
pub(super) fn push_address(out: &mut Vec<u8>, key: &str, address: u64) {
    if address > 0 {
        push_key(out, key);
        push_format(out, format_args!("\"0x{address:x}\","));
    }
}

/// Adds a word as a member.
pub(super) fn push_word(out: &mut Vec<u8>, key: &str, word: &str) {
    push_key(out, key);
    push_string(out, word);
    out.push(b',');
}

/// Begins an event: `,"cat":"…","name":"…"`.
pub(super) fn push_head(out: &mut Vec<u8>, category: &str, name: &str) {
    out.extend_from_slice(b",\"cat\":");
    push_string(out, category);
    out.extend_from_slice(b",\"name\":");
    push_string(out, name);
}

/// Adds members that are JSON already.
pub(super) fn push_members(out: &mut Vec<u8>, members: &[(&str, &str)]) {
    for (key, value) in members {
        out.push(b'"');
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(b"\":");
        out.extend_from_slice(value.as_bytes());
        out.push(b',');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(f: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        f(&mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    #[test]
    fn strings_are_escaped() {
        let hard = "a\"b\\c\nd\u{1}é\t\u{7f}";
        assert_eq!(
            text(|out| push_string(out, hard)),
            r#""a\"b\\c\nd\u0001é\t"#.to_owned() + "\u{7f}\""
        );
    }

    #[test]
    fn microseconds_are_exact() {
        let micros = |nanos| text(|out| push_micros(out, nanos));
        assert_eq!(
            [
                micros(0),
                micros(5),
                micros(1_250),
                micros(999),
                micros(2_000),
                micros(u64::MAX)
            ],
            ["0", "0.005", "1.25", "0.999", "2", "18446744073709551.615"]
        );
    }

    #[test]
    fn milliseconds_are_exact() {
        let millis = |nanos| text(|out| push_millis(out, nanos));
        assert_eq!(
            [
                millis(0),
                millis(5),
                millis(1_250_000),
                millis(3_000_000),
                millis(100)
            ],
            ["0", "0.000005", "1.25", "3", "0.0001"]
        );
    }

    #[test]
    fn what_is_no_number_is_null() {
        let float = |number| text(|out| push_float(out, number));
        assert_eq!([float(1.5), float(f64::NAN), float(-3.0)], ["1.5", "null", "-3"]);
    }
}
