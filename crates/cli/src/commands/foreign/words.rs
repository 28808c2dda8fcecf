//! Splits a line of arguments as a shell does.

use std::ffi::OsString;

use anyhow::bail;

/// Splits arguments as a shell does: at spaces, with quotes and backslashes.
pub(super) fn words(text: &str) -> anyhow::Result<Vec<OsString>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next() {
                        Some(end) if end == character => break,
                        Some('\\') if character == '"' => word.extend(characters.next()),
                        Some(inner) => word.push(inner),
                        None => bail!("a quote is not closed: {text}"),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(characters.next()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words.into_iter().map(OsString::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_split_as_by_a_shell() {
        let split = |text| -> Vec<String> {
            let words = words(text).unwrap();
            words
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect()
        };
        assert_eq!(
            split("  --a  b\t'c d' \"e \\\"f\" g\\ h ''"),
            ["--a", "b", "c d", "e \"f", "g h", ""]
        );
        assert!(split("").is_empty());
        assert!(words("'open").is_err());
    }
}
