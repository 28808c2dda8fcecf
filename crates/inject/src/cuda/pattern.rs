//! What the name of a kernel is like.

/// A name with `*` for anything and `?` for one character.
pub(super) struct KernelPattern {
    text: Vec<u8>,
}

impl KernelPattern {
    pub(super) fn new(text: &str) -> Self {
        Self {
            text: text.as_bytes().to_owned(),
        }
    }

    /// Whether a symbol fits: as it is, or by the plain name in it, which is what
    /// people write.
    pub(super) fn fits(&self, symbol: &[u8]) -> bool {
        matches(&self.text, symbol) || plain(symbol).is_some_and(|name| matches(&self.text, name))
    }
}

/// The last plain name of a symbol of C++: `flash` in `_ZN3lib5flashIfEEvPf`.
fn plain(symbol: &[u8]) -> Option<&[u8]> {
    let mut rest = symbol.strip_prefix(b"_Z")?;
    rest = rest.strip_prefix(b"N").unwrap_or(rest);
    let mut last = None;
    loop {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let length: usize = std::str::from_utf8(&rest[..digits])
            .ok()?
            .parse()
            .ok()
            .or(Some(0))?;
        if length == 0 || rest.len() < digits + length {
            return last;
        }
        last = Some(&rest[digits..digits + length]);
        rest = &rest[digits + length..];
    }
}

/// Whether a text is like a pattern. Only the last `*` is ever tried again, so it
/// takes no longer than both lengths multiplied.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut place) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while place < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[place] => {
                at += 1;
                place += 1;
            }
            _ => match star {
                Some((before, taken)) => {
                    star = Some((before, taken + 1));
                    (at, place) = (before + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_like_patterns() {
        for (pattern, symbol) in [
            ("fill", "fill"),
            ("f*l", "fill"),
            ("f??l", "fill"),
            ("*", "anything"),
            ("flash*", "_ZN5flash16flash_fwd_kernelIfEEvPf"),
            ("add", "_Z3addPfPKfS1_f"),
            ("*add*", "_ZN2at6native3addEv"),
            ("a*b*c", "aXbYbZc"),
        ] {
            assert!(KernelPattern::new(pattern).fits(symbol.as_bytes()), "{pattern}");
        }
        for (pattern, symbol) in [
            ("fill", "refill"),
            ("f?l", "fill"),
            ("flash", "_ZN5flash16flash_fwd_kernelIfEEvPf"),
            ("", "fill"),
            ("a*b", "abc"),
            ("add", "_Z9"),
        ] {
            assert!(!KernelPattern::new(pattern).fits(symbol.as_bytes()), "{pattern}");
        }
    }
}
