//! Patterns for names, as users write them on the command line and in searches.

use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};
use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// A pattern for names: a regular expression between slashes, a glob if it has wildcards, else a part of the name.
///
/// Tables show kernels without the return type `void`, so a pattern may leave it out.
/// It is plain data: it is compared and stored as the text that the user wrote.
///
/// ```
/// use tracesmith_trace::NamePattern;
///
/// assert!(NamePattern::new("gemm")?.matches("sgemm_128x64"));
/// assert!(NamePattern::new("flash*")?.matches("flash_fwd"));
/// assert!(NamePattern::new("flash*")?.matches("void flash::flash_fwd_kernel<float>(Params)"));
/// assert!(NamePattern::new("/^ampere.*nn$/")?.matches("ampere_sgemm_nn"));
/// assert!(!NamePattern::exact("gemm").matches("sgemm"));
/// # Ok::<(), tracesmith_trace::Error>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NamePattern {
    text: Arc<str>,
    matcher: Matcher,
}

#[derive(Clone, Debug)]
enum Matcher {
    Regex(Regex),
    Glob(GlobMatcher),
    Part,
}

impl NamePattern {
    /// Reads a pattern.
    pub fn new(text: &str) -> Result<Self, Error> {
        Ok(NamePattern {
            text: text.into(),
            matcher: Matcher::of(text)?,
        })
    }

    /// The pattern that matches one name only.
    pub fn exact(name: &str) -> Self {
        let text = format!("/^{}$/", regex::escape(name));
        Self::new(&text).expect("an escaped name is a regular expression")
    }

    /// Whether a name matches, as it is stored or without its return type `void`.
    pub fn matches(&self, name: &str) -> bool {
        let without_type = || name.strip_prefix("void ");
        self.matches_text(name) || without_type().is_some_and(|name| self.matches_text(name))
    }

    fn matches_text(&self, name: &str) -> bool {
        match &self.matcher {
            Matcher::Regex(regex) => regex.is_match(name),
            Matcher::Glob(glob) => glob.is_match(name),
            Matcher::Part => name.contains(&*self.text),
        }
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl Matcher {
    fn of(text: &str) -> Result<Self, Error> {
        if let Some(regex) = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
            let regex = Regex::new(regex).map_err(|source| Error::Regex {
                pattern: text.to_owned(),
                source: Box::new(source),
            })?;
            return Ok(Matcher::Regex(regex));
        }
        if text.contains(['*', '?', '[']) {
            let glob = GlobBuilder::new(text)
                .literal_separator(false)
                .backslash_escape(true)
                .build()
                .map_err(|source| Error::Glob {
                    pattern: text.to_owned(),
                    source: Box::new(source),
                })?;
            return Ok(Matcher::Glob(glob.compile_matcher()));
        }
        Ok(Matcher::Part)
    }
}

impl PartialEq for NamePattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for NamePattern {}

impl TryFrom<String> for NamePattern {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        Self::new(&text)
    }
}

impl From<NamePattern> for String {
    fn from(pattern: NamePattern) -> Self {
        pattern.text.as_ref().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::NamePattern;

    /// Issue 29: tables show `flash::flash_fwd_kernel`, and `flash*` matched nothing.
    #[test]
    fn a_pattern_matches_names_as_tables_show_them() {
        for (pattern, name) in [
            ("flash*", "void flash::flash_fwd_kernel<float>(Params)"),
            ("void flash*", "void flash::flash_fwd_kernel<float>(Params)"),
            (
                "at::native::elementwise_add*",
                "void at::native::elementwise_add<float>(float*)",
            ),
            ("/^flash::/", "void flash::flash_fwd_kernel<float>(Params)"),
        ] {
            assert!(NamePattern::new(pattern).unwrap().matches(name), "{pattern}");
        }
        for (pattern, name) in [("flash*", "void my_flash()"), ("flash*", "avoid flash")] {
            assert!(!NamePattern::new(pattern).unwrap().matches(name), "{pattern}");
        }
    }
}
