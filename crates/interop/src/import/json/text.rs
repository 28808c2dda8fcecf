//! Strings of JSON as text: escapes resolved, and what is no UTF-8 mended.

use std::borrow::Cow;

use crate::import::json::number::unquoted;

/// The text of a string, or that of any other value as it stands. Borrowed when it has no escapes.
#[inline]
pub(super) fn text_of(value: &[u8]) -> Cow<'_, str> {
    let inner = unquoted(value);
    if inner.len() == value.len() || memchr::memchr(b'\\', inner).is_none() {
        return mended(inner);
    }
    Cow::Owned(unescaped(inner))
}

/// Bytes as text. Checking first is many times as fast as mending what needs none.
#[inline]
pub(super) fn mended(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// Escapes that mean nothing stay as they are; half a surrogate pair becomes the replacement character.
fn unescaped(inner: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(inner.len());
    let mut at = 0;
    while at < inner.len() {
        let Some(found) = memchr::memchr(b'\\', &inner[at..]) else {
            bytes.extend_from_slice(&inner[at..]);
            break;
        };
        bytes.extend_from_slice(&inner[at..at + found]);
        at += found + 2;
        match inner.get(at - 1) {
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'r') => bytes.push(b'\r'),
            Some(b'b') => bytes.push(8),
            Some(b'f') => bytes.push(12),
            Some(b'u') => match code_point(inner, at) {
                Some((character, length)) => {
                    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                    at += length;
                }
                None => bytes.extend_from_slice(b"\\u"),
            },
            Some(byte @ (b'"' | b'\\' | b'/')) => bytes.push(*byte),
            Some(byte) => bytes.extend_from_slice(&[b'\\', *byte]),
            None => bytes.push(b'\\'),
        }
    }
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

/// The character behind `\u`, and how many bytes say it.
fn code_point(inner: &[u8], at: usize) -> Option<(char, usize)> {
    let unit = |at: usize| -> Option<u32> {
        let digits = inner
            .get(at..at + 4)
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let first = unit(at)?;
    if let Some(character) = char::from_u32(first) {
        return Some((character, 4));
    }
    let second = inner
        .get(at + 4..at + 6)
        .filter(|escape| *escape == b"\\u")
        .and_then(|_| unit(at + 6))
        .filter(|unit| (0xdc00..0xe000).contains(unit));
    match second {
        Some(second) if first < 0xdc00 => {
            let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            Some((char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 10))
        }
        _ => Some((char::REPLACEMENT_CHARACTER, 4)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escapes_are_resolved() {
        for (json, text) in [
            (r#""plain""#, "plain"),
            (r#""a\n\"b\" \\ \/""#, "a\n\"b\" \\ /"),
            (r#""\u00b5s \ud83d\ude00""#, "µs 😀"),
            (r#""half \ud83d pair""#, "half \u{fffd} pair"),
            (r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}"),
            (r#""\x \u12 \""#, "\\x \\u12 \\"),
            ("42", "42"),
        ] {
            assert_eq!(text_of(json.as_bytes()), text, "{json}");
        }
        assert_eq!(text_of(b"\"\xff\\n\""), "\u{fffd}\n");
    }

    proptest! {
        #[test]
        fn any_bytes_become_a_text(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            text_of(&bytes);
        }
    }
}
