//! JSON text that a trace carries over from another tool: taken apart before it is written again.
//!
//! Text of a trace can be anything. Only what is an object through and through may stand between our own members, so it is
//! checked here, without making values of it.

/// Objects in objects, and lists in lists, that are followed.
const MAX_DEPTH: usize = 200;

/// The members of a JSON object, each key (without its quotes, as it is escaped) and value as text; none for anything else.
pub(super) fn members(text: &str) -> Option<Vec<(&str, &str)>> {
    let mut scan = Scan { text, at: 0 };
    let mut members = Vec::new();
    scan.object(0, &mut |key, value| members.push((key, value)))?;
    scan.blank();
    (scan.at == text.len()).then_some(members)
}

/// Whether a text is one JSON value.
pub(super) fn is_value(text: &str) -> bool {
    let mut scan = Scan { text, at: 0 };
    scan.blank();
    scan.value(0).is_some() && {
        scan.blank();
        scan.at == text.len()
    }
}

struct Scan<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Scan<'t> {
    fn next(&mut self) -> Option<u8> {
        let byte = self.text.as_bytes().get(self.at).copied();
        self.at += 1;
        byte
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.blank();
        (self.next()? == byte).then_some(())
    }

    fn object(&mut self, depth: usize, member: &mut dyn FnMut(&'t str, &'t str)) -> Option<()> {
        self.expect(b'{')?;
        self.blank();
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(());
        }
        loop {
            self.blank();
            let key = self.string()?;
            self.expect(b':')?;
            self.blank();
            let start = self.at;
            self.value(depth + 1)?;
            member(key, &self.text[start..self.at]);
            self.blank();
            match self.next()? {
                b',' => {}
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    fn list(&mut self, depth: usize) -> Option<()> {
        self.expect(b'[')?;
        self.blank();
        if self.peek()? == b']' {
            self.at += 1;
            return Some(());
        }
        loop {
            self.blank();
            self.value(depth + 1)?;
            self.blank();
            match self.next()? {
                b',' => {}
                b']' => return Some(()),
                _ => return None,
            }
        }
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        match self.peek()? {
            b'{' => self.object(depth, &mut |_, _| {}),
            b'[' => self.list(depth),
            b'"' => self.string().map(|_| ()),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let found = self.text[self.at..].starts_with(word);
        self.at += word.len();
        found.then_some(())
    }

    /// The string's inside.
    fn string(&mut self) -> Option<&'t str> {
        self.expect(b'"')?;
        let start = self.at;
        loop {
            match self.next()? {
                b'"' => return Some(&self.text[start..self.at - 1]),
                b'\\' => match self.next()? {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                    b'u' => {
                        for _ in 0..4 {
                            self.next()?.is_ascii_hexdigit().then_some(())?;
                        }
                    }
                    _ => return None,
                },
                0..=0x1f => return None,
                _ => {}
            }
        }
    }

    fn number(&mut self) -> Option<()> {
        if self.peek()? == b'-' {
            self.at += 1;
        }
        match self.digits()? {
            (b'0', count) if count > 1 => return None,
            _ => {}
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    /// The first digit, and how many there are.
    fn digits(&mut self) -> Option<(u8, usize)> {
        let first = self.peek().filter(u8::is_ascii_digit)?;
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        Some((first, self.at - start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_as_they_are() {
        let text = r#" {"a":1, "b \"c\"" : [1,{"x":null}] ,"d":"é\u0001","e":{}} "#;
        let expected = vec![
            ("a", "1"),
            (r#"b \"c\""#, r#"[1,{"x":null}]"#),
            ("d", r#""é\u0001""#),
            ("e", "{}"),
        ];
        assert_eq!(members(text), Some(expected));
        assert_eq!(members("{}"), Some(vec![]));
    }

    #[test]
    fn what_is_no_object_is_refused() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
        for text in [
            "",
            "{",
            "[]",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{\"a\":1}x",
            "{\"a\":01}",
            "{\"a\":1.}",
            "{\"a\":\"\n\"}",
            "{\"a\":\"\\x\"}",
            "{\"a\":nul}",
            "{\"a\":é}",
            "{a:1}",
            "{\"a\":tr",
            &deep,
        ] {
            assert_eq!(members(text), None, "{text}");
        }
    }

    #[test]
    fn values_are_told_from_other_text() {
        for text in ["1", "-0.5e+3", "\"a\"", " [1, 2] ", "null"] {
            assert!(is_value(text), "{text}");
        }
        for text in ["", "1 2", "NaN", "'a'", "+1", "tru"] {
            assert!(!is_value(text), "{text}");
        }
    }
}
