//! Interning on the writing side: each string, frame and stack is stored once and known by a number from then on.

use std::collections::HashMap;
use std::hash::Hash;

use rustc_hash::FxBuildHasher;

use crate::block::{BlockKind, MAX_BLOCK_BYTES};
use crate::error::Error;
use crate::ids::{FrameId, StackId, StringId};
use crate::table::Columns;
use crate::tables::{Frame, Frames, Stack, StackEnd, Stacks, Texts};

/// Gives out ids from 1 on.
struct Ids<K> {
    known: HashMap<K, u32, FxBuildHasher>,
    count: u32,
    what: &'static str,
}

impl<K: Hash + Eq> Ids<K> {
    fn new(what: &'static str) -> Self {
        Ids {
            known: HashMap::default(),
            count: 0,
            what,
        }
    }

    fn add(&mut self, key: K) -> Result<u32, Error> {
        let id = self.count.checked_add(1).ok_or(Error::TooMany {
            what: self.what,
            limit: u64::from(u32::MAX),
        })?;
        self.count = id;
        self.known.insert(key, id);
        Ok(id)
    }
}

/// The three dictionaries of a trace, and what of them is not written yet.
pub(crate) struct Dictionaries {
    strings: Ids<Box<str>>,
    frames: Ids<FrameKey>,
    stacks: Ids<(StackId, FrameId, StackEnd)>,
    pub(crate) new_texts: Texts,
    pub(crate) new_frames: Frames,
    pub(crate) new_stacks: Stacks,
}

type FrameKey = (u8, u32, u64, u32, u32, u32);

impl Dictionaries {
    pub(crate) fn new() -> Self {
        Dictionaries {
            strings: Ids::new("strings"),
            frames: Ids::new("frames"),
            stacks: Ids::new("stacks"),
            new_texts: Texts::default(),
            new_frames: Frames::default(),
            new_stacks: Stacks::default(),
        }
    }

    /// Goes on behind dictionary pieces that were copied from another file, whose entries are not known here.
    pub(crate) fn skip(&mut self, kind: BlockKind, first_free: u32) {
        let count = match kind {
            BlockKind::STRINGS => &mut self.strings.count,
            BlockKind::FRAMES => &mut self.frames.count,
            BlockKind::STACKS => &mut self.stacks.count,
            _ => return,
        };
        *count = (*count).max(first_free);
    }

    pub(crate) fn string(&mut self, text: &str) -> Result<StringId, Error> {
        if text.is_empty() {
            return Ok(StringId::NONE);
        }
        if let Some(&id) = self.strings.known.get(text) {
            return Ok(StringId(id));
        }
        // Refused here, where it costs nothing but itself: a piece that cannot be written would take all ids with it.
        let size = text.len() as u64;
        if size > MAX_BLOCK_BYTES / 2 {
            return Err(Error::RowTooLarge {
                size,
                limit: MAX_BLOCK_BYTES / 2,
            });
        }
        let id = self.strings.add(text.into())?;
        self.new_texts.push_bytes(text.as_bytes());
        Ok(StringId(id))
    }

    pub(crate) fn frame(&mut self, frame: Frame) -> Result<FrameId, Error> {
        let key = (
            frame.kind.0,
            frame.image.0,
            frame.address.0,
            frame.function.0,
            frame.file.0,
            frame.line,
        );
        if let Some(&id) = self.frames.known.get(&key) {
            return Ok(FrameId(id));
        }
        let id = self.frames.add(key)?;
        self.new_frames.push(&frame);
        Ok(FrameId(id))
    }

    pub(crate) fn stack(&mut self, stack: Stack) -> Result<StackId, Error> {
        let key = (stack.parent, stack.frame, stack.end);
        if let Some(&id) = self.stacks.known.get(&key) {
            return Ok(StackId(id));
        }
        let id = self.stacks.add(key)?;
        self.new_stacks.push(&stack);
        Ok(StackId(id))
    }
}
