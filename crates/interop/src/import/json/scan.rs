//! Where JSON values end. Nothing is built here: a value is a stretch of the text, and what is in it is looked at by
//! whoever wants it.
//!
//! The scanner takes more than JSON: bare words and numbers of any form (`NaN`, `0x1f`, `ncclFloat32`), commas too many,
//! brackets that do not match. Trace writers make all of these. It keeps no stack, so that nesting of any depth costs
//! nothing.

use memchr::memchr2;

/// Why a value's end was not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The text ends within it.
    Short,
    /// It is no value.
    Broken,
}

/// Bytes that a scan of nested values has to look at.
static STRUCTURE: [bool; 256] = {
    let mut table = [false; 256];
    table[b'"' as usize] = true;
    table[b'{' as usize] = true;
    table[b'}' as usize] = true;
    table[b'[' as usize] = true;
    table[b']' as usize] = true;
    table
};

/// A byte in all eight places of a word.
const fn spread(byte: u8) -> u64 {
    byte as u64 * 0x0101_0101_0101_0101
}

/// The eight bytes from `at`, the first one lowest.
#[inline]
fn word_at(text: &[u8], at: usize) -> Option<u64> {
    let bytes = text.get(at..at + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// Marks, by their highest bit, the bytes of a word that equal `byte`. Bytes behind the first mark may be marked wrongly.
#[inline]
fn marks_of(word: u64, byte: u8) -> u64 {
    let equal_is_zero = word ^ spread(byte);
    equal_is_zero.wrapping_sub(spread(1)) & !equal_is_zero & spread(0x80)
}

/// The first byte from `at` that is no white space, if there is one. Control characters count as space.
#[inline]
pub(super) fn after_space(text: &[u8], mut at: usize) -> Result<usize, Stop> {
    // One space or none is the rule, a new line with its indentation the exception.
    for _ in 0..2 {
        match text.get(at) {
            Some(byte) if *byte > b' ' => return Ok(at),
            Some(_) => at += 1,
            None => return Err(Stop::Short),
        }
    }
    while let Some(word) = word_at(text, at) {
        let beyond_space = (((word & spread(0x7f)) + spread(0x7f - b' ')) | word) & spread(0x80);
        if beyond_space != 0 {
            return Ok(at + (beyond_space.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    while let Some(byte) = text.get(at) {
        if *byte > b' ' {
            return Ok(at);
        }
        at += 1;
    }
    Err(Stop::Short)
}

/// Behind the string that begins at `at` with its quote.
#[inline]
pub(super) fn string_end(text: &[u8], at: usize) -> Result<usize, Stop> {
    let mut from = at + 1;
    // Most strings are keys and short names: a call of memchr costs more than they have bytes.
    for _ in 0..4 {
        let Some(word) = word_at(text, from) else { break };
        let marks = marks_of(word, b'"') | marks_of(word, b'\\');
        if marks != 0 {
            from += (marks.trailing_zeros() / 8) as usize;
            if text[from] == b'"' {
                return Ok(from + 1);
            }
            break;
        }
        from += 8;
    }
    loop {
        let rest = text.get(from..).ok_or(Stop::Short)?;
        let found = from + memchr2(b'"', b'\\', rest).ok_or(Stop::Short)?;
        if text[found] == b'"' {
            return Ok(found + 1);
        }
        from = found + 2;
    }
}

/// Behind the value that begins at `at`.
#[inline]
pub(super) fn value_end(text: &[u8], at: usize) -> Result<usize, Stop> {
    match text.get(at) {
        None => Err(Stop::Short),
        Some(b'"') => string_end(text, at),
        Some(b'{' | b'[') => nested_end(text, at),
        Some(_) => word_end(text, at),
    }
}

/// Behind a number or word.
#[inline]
fn word_end(text: &[u8], at: usize) -> Result<usize, Stop> {
    let mut end = at;
    while let Some(byte) = text.get(end) {
        match byte {
            b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t' if end > at => return Ok(end),
            b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t' | b':' | b'"' | b'{' | b'[' => {
                return Err(Stop::Broken);
            }
            _ => end += 1,
        }
    }
    Err(Stop::Short)
}

fn nested_end(text: &[u8], at: usize) -> Result<usize, Stop> {
    let mut depth = 0usize;
    let mut from = at;
    loop {
        let Some(&byte) = text.get(from) else {
            return Err(Stop::Short);
        };
        if !STRUCTURE[usize::from(byte)] {
            from += 1;
            continue;
        }
        match byte {
            b'"' => from = string_end(text, from)?,
            b'{' | b'[' => {
                depth += 1;
                from += 1;
            }
            _ => {
                depth -= 1;
                from += 1;
                if depth == 0 {
                    return Ok(from);
                }
            }
        }
    }
}

/// Calls `member` with the text of each key (quotes and all) and value of the object that begins at `at`, and gives where
/// it ends.
#[inline]
pub(super) fn for_each_member(
    text: &[u8],
    at: usize,
    mut member: impl FnMut(Stretch, Stretch),
) -> Result<usize, Stop> {
    for_each_key(text, at, |key, value| {
        let end = value_end(text, value)?;
        member(key, Stretch::new(value, end));
        Ok(end)
    })
}

/// Calls `value` with the text of each key (quotes and all) of the object that begins at `at` and the place where its value
/// begins; it gives where the value ends.
#[inline]
pub(super) fn for_each_key(
    text: &[u8],
    at: usize,
    mut value: impl FnMut(Stretch, usize) -> Result<usize, Stop>,
) -> Result<usize, Stop> {
    let mut at = at + 1;
    loop {
        at = after_space(text, at)?;
        match text[at] {
            b'}' => return Ok(at + 1),
            b',' => at += 1,
            b'"' => {
                let key_end = string_end(text, at)?;
                let colon = after_space(text, key_end)?;
                if text[colon] != b':' {
                    return Err(Stop::Broken);
                }
                let start = after_space(text, colon + 1)?;
                at = value(Stretch::new(at, key_end), start)?;
            }
            _ => return Err(Stop::Broken),
        }
    }
}

/// Calls `item` with the text of each value of the array `text`.
pub(super) fn for_each_item<'t>(text: &'t [u8], mut item: impl FnMut(&'t [u8])) {
    let mut at = 1;
    while let Ok(start) = after_space(text, at) {
        match text[start] {
            b']' => return,
            b',' => at = start + 1,
            _ => {
                let Ok(end) = value_end(text, start) else { return };
                item(&text[start..end]);
                at = end;
            }
        }
    }
}

/// A part of a text, by where it begins and ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stretch {
    start: u32,
    end: u32,
}

impl Stretch {
    /// Events are far shorter than 4 GiB; what is not would read as empty.
    #[inline]
    pub(super) fn new(start: usize, end: usize) -> Self {
        match (u32::try_from(start), u32::try_from(end)) {
            (Ok(start), Ok(end)) => Stretch { start, end },
            _ => Stretch::default(),
        }
    }

    /// The text.
    #[inline]
    pub(super) fn of(self, text: &[u8]) -> &[u8] {
        text.get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may stop on any error")]
mod tests {
    use super::*;

    #[test]
    fn values_end_where_they_end() {
        for (text, end) in [
            (r#""plain","#, 7),
            (r#""a \" quote \\" "#, 15),
            (
                r#""longer than the thirty-two bytes \"that\" are looked at one by one","#,
                68,
            ),
            ("-1.5e300,", 8),
            ("NaN]", 3),
            ("0x1f}", 4),
            (r#"{"a": [1, {"]": "}"}], "b": 2} "#, 30),
            ("[] ", 2),
        ] {
            assert_eq!(value_end(text.as_bytes(), 0), Ok(end), "{text}");
            for cut in 0..end {
                let stop = value_end(&text.as_bytes()[..cut], 0);
                assert_eq!(stop, Err(Stop::Short), "{text} cut at {cut}");
            }
        }
        assert_eq!(value_end(b",", 0), Err(Stop::Broken));
        assert_eq!(value_end(b"a:", 0), Err(Stop::Broken));
    }

    #[test]
    fn space_ends_at_the_first_other_byte() {
        for length in 0..40 {
            for other in [b'!', b'"', b'{', b'~', 0x7f, 0x80, 0xff] {
                let mut text = b" \n\t\r"
                    .iter()
                    .copied()
                    .cycle()
                    .take(length)
                    .collect::<Vec<u8>>();
                assert_eq!(after_space(&text, 0), Err(Stop::Short));
                text.extend_from_slice(&[other, b' ', b'x']);
                assert_eq!(after_space(&text, 0), Ok(length));
            }
        }
    }

    #[test]
    fn ten_thousand_brackets_need_no_stack() {
        let deep = [b"[".repeat(10_000), b"]".repeat(10_000)].concat();
        assert_eq!(value_end(&deep, 0), Ok(20_000));
        assert_eq!(value_end(&deep[..15_000], 0), Err(Stop::Short));
    }

    proptest::proptest! {
        #[test]
        fn strings_end_at_the_first_quote_that_is_not_escaped(inner in "[a\\\\\"é]{0,80}") {
            let text = format!("\"{inner}\"");
            let mut is_escaped = false;
            let end = text.bytes().enumerate().skip(1).find_map(|(at, byte)| {
                let ends = byte == b'"' && !is_escaped;
                is_escaped = byte == b'\\' && !is_escaped;
                ends.then_some(at + 1)
            });
            proptest::prop_assert_eq!(string_end(text.as_bytes(), 0).ok(), end);
        }
    }

    #[test]
    fn members_are_told_apart() {
        let text = br#"{"a": 1 , "b":"x",, "c" : {"d": []}}"#;
        let mut seen = Vec::new();
        let end = for_each_member(text, 0, |key, value| {
            seen.push((key.of(text).to_vec(), value.of(text).to_vec()));
        });
        assert_eq!(end, Ok(text.len()));
        let seen: Vec<_> = seen.iter().map(|(k, v)| (&k[..], &v[..])).collect();
        assert_eq!(
            seen,
            [
                (&b"\"a\""[..], &b"1"[..]),
                (b"\"b\"", b"\"x\""),
                (b"\"c\"", b"{\"d\": []}")
            ]
        );
        assert_eq!(for_each_member(b"{1: 2}", 0, |_, _| ()), Err(Stop::Broken));
    }
}
