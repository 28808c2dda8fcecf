//! What the names of copies and sets say: `Memcpy HtoD (Pinned -> Device)`, `Memset (Device)`.

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{CopyDirection, CopyShape, MemoryKind};

use crate::import::json::number::unquoted;

/// Names that were seen, and what they say. There are a few dozen; a file that makes up more is read afresh each time.
#[derive(Debug, Default)]
pub(super) struct CopyNames {
    copies: FxHashMap<Box<[u8]>, (CopyShape, bool)>,
    sets: FxHashMap<Box<[u8]>, (MemoryKind, bool)>,
}

const REMEMBERED: usize = 256;

static DIRECTIONS: [(&str, CopyDirection); 10] = [
    ("HtoD", CopyDirection::HOST_TO_DEVICE),
    ("DtoH", CopyDirection::DEVICE_TO_HOST),
    ("HtoA", CopyDirection::HOST_TO_ARRAY),
    ("AtoH", CopyDirection::ARRAY_TO_HOST),
    ("AtoA", CopyDirection::ARRAY_TO_ARRAY),
    ("AtoD", CopyDirection::ARRAY_TO_DEVICE),
    ("DtoA", CopyDirection::DEVICE_TO_ARRAY),
    ("DtoD", CopyDirection::DEVICE_TO_DEVICE),
    ("HtoH", CopyDirection::HOST_TO_HOST),
    ("PtoP", CopyDirection::PEER),
];

static MEMORIES: [(&str, MemoryKind); 8] = [
    ("Unknown", MemoryKind::UNKNOWN),
    ("Pageable", MemoryKind::PAGEABLE),
    ("Pinned", MemoryKind::PINNED),
    ("Device", MemoryKind::DEVICE),
    ("Array", MemoryKind::ARRAY),
    ("Managed", MemoryKind::MANAGED),
    ("Device Static", MemoryKind::DEVICE_STATIC),
    ("Managed Static", MemoryKind::MANAGED_STATIC),
];

impl CopyNames {
    /// The shape of a copy by its name, else by the argument `kind`; and whether the shape says all that the name does.
    pub(super) fn copy(&mut self, name: &[u8], kind: Option<&[u8]>) -> (CopyShape, bool) {
        if let Some(known) = self.copies.get(name) {
            return *known;
        }
        let text = String::from_utf8_lossy(name);
        let mut shape = CopyShape::default();
        let words = text
            .strip_prefix("Memcpy ")
            .and_then(|rest| rest.split_once(" ("));
        if let Some((direction, memories)) = words {
            shape.direction = direction_of(direction);
            if let Some((source, destination)) = memories.trim_end_matches(')').split_once(" -> ") {
                shape.source_memory = memory_of(source);
                shape.destination_memory = memory_of(destination);
            }
        }
        let is_said = copy_name(&shape) == text;
        if shape.direction == CopyDirection::UNKNOWN {
            let kind = kind.map(|kind| String::from_utf8_lossy(unquoted(kind)));
            shape.direction = kind.map_or(CopyDirection::UNKNOWN, |kind| direction_of(&kind));
        }
        if self.copies.len() < REMEMBERED && shape.direction != CopyDirection::UNKNOWN {
            self.copies.insert(name.into(), (shape, is_said));
        }
        (shape, is_said)
    }

    /// The memory that a set filled, and whether it says all that the name does.
    pub(super) fn set(&mut self, name: &[u8]) -> (MemoryKind, bool) {
        if let Some(known) = self.sets.get(name) {
            return *known;
        }
        let text = String::from_utf8_lossy(name);
        let memory = text
            .strip_prefix("Memset (")
            .and_then(|rest| rest.strip_suffix(')'))
            .map_or(MemoryKind::UNKNOWN, memory_of);
        let is_said = text == format!("Memset ({})", memory_word(memory));
        if self.sets.len() < REMEMBERED {
            self.sets.insert(name.into(), (memory, is_said));
        }
        (memory, is_said)
    }
}

fn copy_name(shape: &CopyShape) -> String {
    let direction = DIRECTIONS
        .iter()
        .find(|(_, direction)| *direction == shape.direction);
    format!(
        "Memcpy {} ({} -> {})",
        direction.map_or("Unknown", |(word, _)| *word),
        memory_word(shape.source_memory),
        memory_word(shape.destination_memory)
    )
}

fn direction_of(word: &str) -> CopyDirection {
    let known = DIRECTIONS.iter().find(|(name, _)| *name == word);
    known.map_or(CopyDirection::UNKNOWN, |(_, direction)| *direction)
}

/// `Host` is ROCm's word for host memory of any kind.
fn memory_of(word: &str) -> MemoryKind {
    let known = MEMORIES.iter().find(|(name, _)| *name == word);
    match known {
        Some((_, memory)) => *memory,
        None if word == "Host" => MemoryKind::PAGEABLE,
        None => MemoryKind::UNKNOWN,
    }
}

fn memory_word(memory: MemoryKind) -> &'static str {
    let known = MEMORIES.iter().find(|(_, kind)| *kind == memory);
    known.map_or("Unknown", |(word, _)| *word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_direction_and_memory() {
        let mut names = CopyNames::default();
        let (shape, is_said) = names.copy(b"Memcpy HtoD (Pinned -> Device)", None);
        assert_eq!(shape.direction, CopyDirection::HOST_TO_DEVICE);
        assert_eq!(
            (shape.source_memory, shape.destination_memory),
            (MemoryKind::PINNED, MemoryKind::DEVICE)
        );
        assert!(is_said);
        let (shape, is_said) = names.copy(b"Memcpy DtoH (Device -> Host)", None);
        assert_eq!(shape.destination_memory, MemoryKind::PAGEABLE);
        assert!(!is_said, "the word of ROCm is kept");
        let (shape, is_said) = names.copy(b"CopyDeviceToDevice", Some(b"\"DtoD\""));
        assert_eq!(shape.direction, CopyDirection::DEVICE_TO_DEVICE);
        assert!(!is_said);
        assert_eq!(names.set(b"Memset (Device)"), (MemoryKind::DEVICE, true));
        assert_eq!(names.set(b"Memset (Unknown)"), (MemoryKind::UNKNOWN, true));
        assert_eq!(names.set(b"fill"), (MemoryKind::UNKNOWN, false));
    }
}
