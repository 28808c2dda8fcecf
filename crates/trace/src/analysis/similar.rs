//! Names that are like one that was not found.

/// Names that are suggested.
const SUGGESTED: usize = 3;
/// How alike names must be, from 0 to 1.
const ALIKE: f64 = 0.8;

/// `; did you mean a, b or c?` with the names that are most like a pattern; empty if none is.
pub(super) fn did_you_mean<'n>(pattern: &str, names: impl Iterator<Item = &'n str>) -> String {
    let names = similar(pattern, names);
    match names.as_slice() {
        [] => String::new(),
        [name] => format!("; did you mean {name}?"),
        [first @ .., last] => format!("; did you mean {} or {last}?", first.join(", ")),
    }
}

/// The names that are most like a pattern, the most alike first, as short as tables show them.
fn similar<'n>(pattern: &str, names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let wanted = pattern
        .trim_matches('/')
        .trim_matches(|letter| "*?^$.".contains(letter))
        .to_lowercase();
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<(f64, String)> = names
        .map(|name| {
            let short = super::short_name(name);
            (likeness(&wanted, &short.to_lowercase()), short)
        })
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    found.dedup_by(|a, b| a.1 == b.1);
    found.truncate(SUGGESTED);
    found.into_iter().map(|(_, name)| name).collect()
}

/// How alike a text and a name or one of its words are.
fn likeness(wanted: &str, name: &str) -> f64 {
    if name.contains(wanted) {
        return 1.0;
    }
    let words = name.split(|letter: char| !letter.is_alphanumeric());
    let words = words.filter(|word| word.len() > 2);
    words
        .chain([name])
        .map(|word| strsim::jaro_winkler(wanted, word))
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_alike_are_suggested() {
        let names = [
            "flash_fwd_kernel<128, 64>",
            "void at::native::reduce_kernel<512>(int)",
            "sgemm_128x64",
        ];
        let mean = |pattern| did_you_mean(pattern, names.into_iter());
        assert_eq!(mean("flsh*"), "; did you mean flash_fwd_kernel?");
        assert_eq!(mean("FLASH"), "; did you mean flash_fwd_kernel?");
        assert_eq!(mean("redcue*"), "; did you mean at::native::reduce_kernel?");
        assert_eq!(mean("sgem_128"), "; did you mean sgemm_128x64?");
        assert_eq!(mean("zzz"), "");
        assert_eq!(mean("*"), "");
    }
}
