//! Names of recorded kernels: as people read them, and those that are similar to a name that does not exist.

use std::collections::BTreeSet;

use tracesmith_format::tables::CommandKind;
use tracesmith_replay::Recording;
use tracesmith_symbols::demangle_cpp;

/// Number of similar names to show.
const SHOWN: usize = 3;

/// The least likeness of a name that is suggested.
const SIMILAR: f64 = 0.6;

/// A kernel's name as it is in the source.
pub(super) fn readable(name: &str) -> String {
    demangle_cpp(name).unwrap_or_else(|| name.to_owned())
}

/// The positions of all launches of kernels whose recorded or readable name contains a text.
pub(super) fn launches(recording: &Recording, text: &str) -> Vec<usize> {
    let selected: BTreeSet<&str> = kernels(recording)
        .into_iter()
        .filter(|name| name.contains(text) || readable(name).contains(text))
        .collect();
    let commands = recording.commands.iter().enumerate();
    commands
        .filter(|(_, command)| {
            command.kind == CommandKind::LAUNCH && selected.contains(command.function.as_str())
        })
        .map(|(place, _)| place)
        .collect()
}

/// The recorded name that a text selects: the text itself if it is part of one, or else that of the only kernel whose
/// readable name contains it. `Err` has the readable names of several.
pub(super) fn recorded_name(recording: &Recording, text: &str) -> Result<String, Vec<String>> {
    let names = kernels(recording);
    if names.iter().any(|name| name.contains(text)) {
        return Ok(text.to_owned());
    }
    let found: Vec<&str> = names
        .into_iter()
        .filter(|name| readable(name).contains(text))
        .collect();
    match found[..] {
        [] => Ok(text.to_owned()),
        [only] => Ok(only.to_owned()),
        _ => Err(found.into_iter().map(readable).collect()),
    }
}

/// What to try instead of a name that no kernel has.
pub(super) fn suggestion(recording: &Recording, text: &str) -> String {
    let names: BTreeSet<String> = kernels(recording).into_iter().map(readable).collect();
    let mut ranked: Vec<(f64, &String)> = names.iter().map(|name| (likeness(text, name), name)).collect();
    ranked.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(other.1)));
    let similar: Vec<&str> = ranked
        .iter()
        .filter(|(likeness, _)| *likeness >= SIMILAR)
        .map(|(_, name)| name.as_str())
        .take(SHOWN)
        .collect();
    if !similar.is_empty() {
        return format!("similar names: {}", similar.join(", "));
    }
    let known: Vec<&str> = names.iter().map(String::as_str).take(SHOWN).collect();
    match names.len() {
        0 => "it launches no kernel".to_owned(),
        count if count <= SHOWN => format!("it launches {}", known.join(", ")),
        count => format!(
            "it launches {} and {} other kernels; --mode dry-run lists them",
            known.join(", "),
            count - SHOWN
        ),
    }
}

fn kernels(recording: &Recording) -> BTreeSet<&str> {
    let launches = recording.commands.iter();
    launches
        .filter(|command| command.kind == CommandKind::LAUNCH)
        .map(|command| command.function.as_str())
        .collect()
}

/// How much of a text some part of a name has: 1 is all of it, and each letter that is wrong, missing or too much is one
/// less.
fn likeness(text: &str, name: &str) -> f64 {
    let letters = |text: &str| text.to_lowercase().chars().collect::<Vec<char>>();
    let (text, name) = (letters(text), letters(name));
    // The edit distance of the text so far to the best part of the name that ends at each letter.
    let mut row = vec![0; name.len() + 1];
    for (at, letter) in text.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, other) in name.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    let wrong = row.into_iter().min().unwrap_or(0);
    1.0 - wrong as f64 / text.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_names_are_similar() {
        assert!(likeness("sclae", "scale(float*, int)") >= SIMILAR);
        assert!(likeness("softmax_fwd", "triton_per_fused__log_softmax_3") >= SIMILAR);
        assert!(likeness("flash", "scale(float*, int)") < SIMILAR);
        assert_eq!(readable("_Z5scalePfi"), "scale(float*, int)");
        assert_eq!(readable("triton_mm"), "triton_mm");
    }
}
