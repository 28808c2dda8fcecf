//! What the word at the cursor can become.

use crate::schema::{Named, NamedKind};
use crate::text::{Token, TokenKind, is_word, tokens};

/// Keywords of SQLite that a query of a trace may need.
const KEYWORDS: &[&str] = &[
    "and",
    "as",
    "asc",
    "avg",
    "between",
    "by",
    "case",
    "cast",
    "coalesce",
    "count",
    "cross",
    "desc",
    "distinct",
    "else",
    "end",
    "except",
    "exists",
    "explain",
    "filter",
    "from",
    "glob",
    "group",
    "having",
    "in",
    "inner",
    "intersect",
    "is",
    "join",
    "left",
    "like",
    "limit",
    "max",
    "min",
    "not",
    "null",
    "offset",
    "on",
    "or",
    "order",
    "over",
    "partition",
    "recursive",
    "round",
    "select",
    "substr",
    "sum",
    "then",
    "union",
    "using",
    "values",
    "when",
    "where",
    "window",
    "with",
];

/// Names that a query can use.
#[derive(Debug)]
pub struct Completions {
    names: Vec<Named>,
}

impl Completions {
    /// Completes to these names.
    pub fn new(names: Vec<Named>) -> Self {
        Completions { names }
    }

    /// Where the word at `cursor` starts, and what it can become, in order.
    ///
    /// After `from` and `join`, these are tables. After `name.`, they are columns of that table or alias. Elsewhere they
    /// are columns of the tables that the query names, then keywords, tables and functions.
    pub fn complete(&self, query: &str, cursor: usize) -> (usize, Vec<String>) {
        let Some(before) = query.get(..cursor) else {
            return (cursor, Vec::new());
        };
        let start = before
            .rfind(|char: char| !is_word(char))
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let word = &before[start..];
        let all = tokens(query);
        let is_text = |token: &Token<'_>| match token.kind {
            TokenKind::Word | TokenKind::Sign => false,
            TokenKind::Quoted => token.start < cursor && cursor < token.start + token.text.len(),
            TokenKind::Open => token.start < cursor,
        };
        if all.iter().any(is_text) {
            return (cursor, Vec::new());
        }
        let earlier: Vec<&Token<'_>> = all.iter().filter(|token| token.start < start).collect();
        let mut found = match earlier[..] {
            [.., owner, dot] if dot.text == "." && dot.start + 1 == start => {
                self.columns_of(&all, owner.text)
            }
            [.., last] if is_one_of(last.text, &["from", "join"]) => self.relations(),
            _ if before[..start].trim_end().ends_with(',') && self.is_in_from(&earlier) => self.relations(),
            _ => {
                let mut found = self.columns_in(&all);
                found.extend(KEYWORDS.iter().map(|keyword| as_typed(keyword, word)));
                found.extend(self.relations());
                found
            }
        };
        found.retain(|text| starts_with(text, word) && (text.len() > word.len() || text == word));
        let mut seen = std::collections::BTreeSet::new();
        found.retain(|text| seen.insert(text.clone()));
        (start, found)
    }

    /// Names that start like a word.
    pub fn names_like(&self, word: &str) -> Vec<String> {
        let names = self.names.iter().map(|named| named.name.to_owned());
        let mut found: Vec<String> = names.filter(|name| starts_with(name, word)).collect();
        found.sort_unstable();
        found
    }

    /// The table, view or function of a name.
    pub fn find(&self, name: &str) -> Option<&Named> {
        self.names
            .iter()
            .find(|named| named.name.eq_ignore_ascii_case(name))
    }

    /// Everything that has a name.
    pub fn all(&self) -> &[Named] {
        &self.names
    }

    fn relations(&self) -> Vec<String> {
        let text = |named: &Named| match named.kind {
            NamedKind::Function => format!("{}(", named.name),
            _ => named.name.to_owned(),
        };
        let mut found: Vec<String> = self.names.iter().map(text).collect();
        found.sort_unstable();
        found
    }

    /// Columns of the tables that a query names.
    fn columns_in(&self, tokens: &[Token<'_>]) -> Vec<String> {
        let named = tokens.iter().filter_map(|token| self.find(unquoted(token.text)));
        let mut found: Vec<String> = named
            .flat_map(|named| named.columns.iter().map(|column| column.name.clone()))
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Columns of a table, by its name or by the alias that the query gives it.
    fn columns_of(&self, tokens: &[Token<'_>], owner: &str) -> Vec<String> {
        let owner = unquoted(owner);
        let named = self.find(owner).or_else(|| {
            let alias = tokens
                .iter()
                .enumerate()
                .filter(|(at, token)| *at > 0 && unquoted(token.text).eq_ignore_ascii_case(owner));
            alias.filter_map(|(at, _)| self.aliased(&tokens[..at])).next()
        });
        let mut found: Vec<String> = named
            .iter()
            .flat_map(|named| named.columns.iter().map(|column| column.name.clone()))
            .collect();
        found.sort_unstable();
        found
    }

    /// The table at the end of some tokens, as in `kernels as` or `gaps(100)`.
    fn aliased(&self, tokens: &[Token<'_>]) -> Option<&Named> {
        let tokens = match tokens {
            [before @ .., last] if last.text.eq_ignore_ascii_case("as") => before,
            _ => tokens,
        };
        let tokens = match tokens {
            [.., last] if last.text == ")" => {
                let open = tokens.iter().rposition(|token| token.text == "(")?;
                &tokens[..open]
            }
            _ => tokens,
        };
        self.find(unquoted(tokens.last()?.text))
    }

    /// Whether the last keyword is `from`: after a comma comes another table.
    fn is_in_from(&self, tokens: &[&Token<'_>]) -> bool {
        let is_keyword =
            |token: &&&Token<'_>| is_one_of(token.text, KEYWORDS) && !is_one_of(token.text, &["as"]);
        let last = tokens.iter().rev().find(is_keyword);
        last.is_some_and(|token| is_one_of(token.text, &["from", "join"]))
    }
}

fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|other| other.eq_ignore_ascii_case(word))
}

fn starts_with(text: &str, word: &str) -> bool {
    text.get(..word.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(word))
}

fn unquoted(text: &str) -> &str {
    text.trim_matches(['"', '`', '[', ']'])
}

/// A keyword in capitals, if the word is.
fn as_typed(keyword: &str, word: &str) -> String {
    let is_upper = !word.is_empty() && word.chars().all(char::is_uppercase);
    if is_upper {
        keyword.to_uppercase()
    } else {
        keyword.to_owned()
    }
}
