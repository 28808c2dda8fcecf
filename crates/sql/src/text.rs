//! The text of queries: words, and where a statement ends. This is no parser; SQLite is.

/// A piece of a query's text that is neither blank nor a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'q> {
    /// Where it starts in the text.
    pub(crate) start: usize,
    pub(crate) text: &'q str,
    pub(crate) kind: TokenKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A keyword, a name without quotes or a number.
    Word,
    /// Text in quotes of any kind.
    Quoted,
    /// Text in quotes or a comment that does not end.
    Open,
    /// Any other character.
    Sign,
}

/// All tokens of a text.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let (kind, length) = match first {
            _ if first.is_whitespace() => (None, first.len_utf8()),
            '-' if rest.starts_with("--") => (None, rest.find('\n').unwrap_or(rest.len())),
            '/' if rest.starts_with("/*") => match rest[2..].find("*/") {
                Some(end) => (None, end + 4),
                None => (Some(TokenKind::Open), rest.len()),
            },
            '\'' | '"' | '`' | '[' => match quoted_length(rest, if first == '[' { ']' } else { first }) {
                Some(length) => (Some(TokenKind::Quoted), length),
                None => (Some(TokenKind::Open), rest.len()),
            },
            _ if is_word(first) => {
                let end = rest.find(|next: char| !is_word(next));
                (Some(TokenKind::Word), end.unwrap_or(rest.len()))
            }
            _ => (Some(TokenKind::Sign), first.len_utf8()),
        };
        if let Some(kind) = kind {
            found.push(Token {
                start: at,
                text: &rest[..length],
                kind,
            });
        }
        at += length;
    }
    found
}

pub(crate) fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_' || char == '$'
}

/// The length of a text in quotes, if it ends. A doubled quote is one quote and does not end it.
fn quoted_length(text: &str, quote: char) -> Option<usize> {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, char)) = chars.next() {
        if char == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return Some(at + 1);
        }
    }
    None
}

/// The statements of a text, each without its semicolon, and what follows the last semicolon.
pub fn statements(text: &str) -> (Vec<&str>, &str) {
    let mut found = Vec::new();
    let mut start = 0;
    let mut is_empty = true;
    for token in tokens(text) {
        if token.kind == TokenKind::Sign && token.text == ";" {
            if !is_empty {
                found.push(text[start..token.start].trim());
            }
            start = token.start + 1;
            is_empty = true;
        } else {
            is_empty = false;
        }
    }
    let rest = if is_empty { "" } else { text[start..].trim() };
    (found, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_at_semicolons_that_are_neither_quoted_nor_commented() {
        for (text, expected, rest) in [
            ("select 1;", vec!["select 1"], ""),
            ("select 1; select 2", vec!["select 1"], "select 2"),
            (
                "select ';' , \"a;b\" , [c;d], `e;`;",
                vec!["select ';' , \"a;b\" , [c;d], `e;`"],
                "",
            ),
            ("select 'it''s; here';", vec!["select 'it''s; here'"], ""),
            ("select 1 -- no; end\n;", vec!["select 1 -- no; end"], ""),
            ("select /* ; */ 1;;; -- done", vec!["select /* ; */ 1"], ""),
            ("select 1 /* open ;", vec![], "select 1 /* open ;"),
            ("select 'open ;", vec![], "select 'open ;"),
            ("  -- nothing", vec![], ""),
            ("é;ü", vec!["é"], "ü"),
        ] {
            assert_eq!(statements(text), (expected, rest), "{text}");
        }
    }
}
