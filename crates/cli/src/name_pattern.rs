//! Names as users write them on the command line and in searches.

use anyhow::Context;
use globset::GlobBuilder;
use regex::Regex;
use tracesmith_trace::NameFilter;

/// A glob when it holds wildcards, a regular expression between slashes, else a part of the name.
pub(crate) fn name_filter(pattern: &str) -> anyhow::Result<NameFilter> {
    if let Some(regex) = pattern.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
        let regex = Regex::new(regex).with_context(|| format!("reading the regular expression {pattern}"))?;
        return Ok(Box::new(move |name| regex.is_match(name)));
    }
    if pattern.contains(['*', '?', '[']) {
        let glob = GlobBuilder::new(pattern)
            .literal_separator(false)
            .backslash_escape(true)
            .build();
        let glob = glob
            .with_context(|| format!("reading the glob {pattern}"))?
            .compile_matcher();
        return Ok(Box::new(move |name| glob.is_match(name)));
    }
    let part = pattern.to_owned();
    Ok(Box::new(move |name| name.contains(&part)))
}
