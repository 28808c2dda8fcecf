//! Whether a file lacks a part of its recording.

use tracesmith_format::tables::{self, Metadata};
use tracesmith_format::{Damage, Problem, ProcessId, Reader};

use super::rows::{rows, text};
use super::{Buffer, OF_A_RECORDING};
use crate::contents::Input;
use crate::error::Error;

/// Why a file has no recording.
pub(super) fn no_recording(reader: &Reader<Input>) -> Error {
    match reader.damage().iter().find(|damage| may_be_ours(damage)) {
        None => Error::NoRecording,
        Some(damage) => Error::LostRecording {
            state: state_of_file(reader),
            damage: damage.clone(),
        },
    }
}

/// Whether damage can affect the recording. The kind of a damaged block can be unknown.
fn may_be_ours(damage: &Damage) -> bool {
    damage.kind.is_none_or(|kind| OF_A_RECORDING.contains(&kind))
}

/// Whether the file is truncated or damaged.
fn state_of_file(reader: &Reader<Input>) -> &'static str {
    let is_truncated = |damage: &Damage| {
        matches!(
            damage.problem,
            Problem::Shortened | Problem::Cut | Problem::Unfinished
        )
    };
    if reader.damage().iter().any(is_truncated) {
        "truncated"
    } else {
        "damaged"
    }
}

/// Why the recording of a process is incomplete, if it is. The last entry of a recording is its number of calls.
pub(super) fn broken(
    reader: &Reader<Input>,
    strings: &[String],
    process: ProcessId,
    commands: usize,
) -> Result<Option<String>, Error> {
    if let Some(damage) = reader.damage().iter().find(|damage| may_be_ours(damage)) {
        let state = state_of_file(reader);
        return Ok(Some(format!(
            "the file is {state} and may lack a part of the replay recording ({damage})"
        )));
    }
    let facts = rows::<Metadata>(reader)?;
    let processes = rows::<tables::Process>(reader)?;
    let own = processes.iter().find(|row| row.id == process);
    // The recordings of other processes can be complete. An entry without a process concerns all of them.
    let prefix = own.map_or_else(String::new, |row| format!("process.{}.", row.pid));
    let fact = |name: &str| {
        let own = format!("{prefix}{name}");
        let is_own = |key: String| key == name || key.ends_with(&own);
        let found = facts.iter().find(|fact| is_own(text(strings, fact.key)));
        found.map(|fact| text(strings, fact.value))
    };
    let Some(recorded) = fact("recording.commands") else {
        let words = "the replay recording is incomplete: it ends before its window was closed";
        return Ok(Some(words.to_owned()));
    };
    let missing = || {
        let words =
            format!("the replay recording is incomplete: the file contains {commands} of {recorded} calls");
        (recorded.parse() != Ok(commands)).then_some(words)
    };
    Ok(fact("recording.broken").or_else(missing))
}

/// Why memory at the end cannot be compared, if so. Without recorded contents, no difference would show.
pub(super) fn lacking(end: &[Buffer]) -> Option<String> {
    let lacking = end.iter().find(|buffer| {
        let covered = buffer.pieces.iter().fold(buffer.address, |covered, piece| {
            if piece.address > covered {
                return covered;
            }
            covered.max(piece.address.saturating_add(piece.bytes))
        });
        covered < buffer.range().end
    });
    lacking.map(|buffer| {
        format!(
            "the replay recording is incomplete: the file does not contain the final contents of the {} bytes at {:#x}",
            buffer.bytes, buffer.address
        )
    })
}
