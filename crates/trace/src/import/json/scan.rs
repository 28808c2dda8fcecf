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

/// The first byte from `at` that is no white space, if there is one.
#[inline]
pub(super) fn after_space(text: &[u8], mut at: usize) -> Result<usize, Stop> {
    while let Some(byte) = text.get(at) {
        if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
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
    for _ in 0..16 {
        match text.get(from) {
            Some(b'"') => return Ok(from + 1),
            Some(b'\\') => break,
            Some(_) => from += 1,
            None => return Err(Stop::Short),
        }
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
                let value = after_space(text, colon + 1)?;
                let end = value_end(text, value)?;
                member(Stretch::new(at, key_end), Stretch::new(value, end));
                at = end;
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
    fn new(start: usize, end: usize) -> Self {
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

    /// Where it begins.
    pub(super) fn start(self) -> usize {
        self.start as usize
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
                r#""longer than the sixteen bytes \"that\" are looked at one by one","#,
                65,
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
    fn ten_thousand_brackets_need_no_stack() {
        let deep = [b"[".repeat(10_000), b"]".repeat(10_000)].concat();
        assert_eq!(value_end(&deep, 0), Ok(20_000));
        assert_eq!(value_end(&deep[..15_000], 0), Err(Stop::Short));
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
