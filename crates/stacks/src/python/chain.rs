//! The chain of a thread's Python frames, in the order of the interpreter.
//!
//! Frames of the eval loop itself are skipped. So are frames that are not ready yet (`MAKE_CELL`, `RETURN_GENERATOR`,
//! and the interpreter's own shims). CPython hides both, too.

use std::ops::ControlFlow;

use super::layout::{
    Form, Identity, Innermost, Instructions, LAST_OWNER, Layout, OWNED_BY_GENERATOR, OWNED_BY_LOOP,
    TEXT_HASH, TEXT_IS_COMPACT, TEXT_LENGTH, TEXT_STATE,
};
use super::memory::{Memory, can_be_object};
use super::walk::{Entered, NOT_BEGUN, PythonEnd, PythonFrame};

/// The frames of a thread, innermost first.
pub(super) struct Chain<'a, M> {
    layout: &'a Layout,
    memory: M,
    frame: u64,
    /// Remaining steps. They bound a corrupt, cyclic chain.
    steps_left: usize,
}

/// A frame, and the address of the previous one.
pub(super) struct ChainFrame {
    pub(super) frame: PythonFrame,
    pub(super) previous: u64,
}

/// How a frame marks that C code entered it.
#[derive(Clone, Copy)]
enum Runs {
    Flagged { is_entry: u64 },
    Owned,
}

impl<'a, M: Memory> Chain<'a, M> {
    /// Frames of a thread with this state, at most `most`.
    #[inline(always)]
    pub(super) fn new(layout: &'a Layout, memory: M, thread: u64, most: usize) -> Result<Self, PythonEnd> {
        let frame = match layout.innermost {
            Innermost::Straight { frame } => memory.word(thread, frame),
            Innermost::ThroughLoop { eval_loop, frame } => match memory.word(thread, eval_loop) {
                Some(eval_loop) if can_be_object(eval_loop) => memory.word(eval_loop, frame),
                _ => None,
            },
        };
        Ok(Self {
            layout,
            memory,
            frame: frame.ok_or(PythonEnd::Broken)?,
            // Each run of the eval loop has its own frame, and calls of classes have one more.
            steps_left: most.saturating_mul(3).saturating_add(64),
        })
    }

    /// Visits frame by frame until the visitor stops or the chain ends. Returns how it ended.
    ///
    /// The frame format is checked here once, so that each format gets its own loop.
    #[inline(always)]
    pub(super) fn each(mut self, mut visit: impl FnMut(ChainFrame) -> ControlFlow<PythonEnd>) -> PythonEnd {
        match self.layout.frame.form {
            Form::Objects { unit_bytes } => loop {
                match self.next_object(unit_bytes).map(&mut visit) {
                    Ok(ControlFlow::Continue(())) => {}
                    Ok(ControlFlow::Break(end)) | Err(end) => return end,
                }
            },
            Form::Flagged { owner, is_entry } => loop {
                match self
                    .next_of_loop(owner, Runs::Flagged { is_entry })
                    .map(&mut visit)
                {
                    Ok(ControlFlow::Continue(())) => {}
                    Ok(ControlFlow::Break(end)) | Err(end) => return end,
                }
            },
            Form::Owned { owner } => loop {
                match self.next_of_loop(owner, Runs::Owned).map(&mut visit) {
                    Ok(ControlFlow::Continue(())) => {}
                    Ok(ControlFlow::Break(end)) | Err(end) => return end,
                }
            },
        }
    }

    /// Up to 3.10, each frame is an object with its own run of the eval loop.
    #[inline(always)]
    fn next_object(&mut self, unit_bytes: u32) -> Result<ChainFrame, PythonEnd> {
        let (frame, at) = (self.step()?, self.layout.frame);
        let previous = self.word(frame, at.previous)?;
        let code = object(self.word(frame, at.code)?)?;
        let index = self.half(frame, at.instruction)?;
        let instruction = match index.cast_signed() {
            ..0 => NOT_BEGUN,
            _ => index.saturating_mul(unit_bytes),
        };
        self.frame = previous;
        let frame = PythonFrame::new(code, instruction, self.version(code), Entered::FromC);
        Ok(ChainFrame { frame, previous })
    }

    #[inline(always)]
    fn next_of_loop(&mut self, owner_offset: u64, runs: Runs) -> Result<ChainFrame, PythonEnd> {
        let at = self.layout.frame;
        let Instructions::Within {
            start,
            first_traceable,
        } = self.layout.code.instructions
        else {
            return Err(PythonEnd::Broken);
        };
        loop {
            let frame = self.step()?;
            let previous = self.word(frame, at.previous)?;
            let owner = self.byte(frame, owner_offset)?;
            self.frame = previous;
            if owner >= OWNED_BY_LOOP {
                if owner > LAST_OWNER {
                    return Err(PythonEnd::Broken);
                }
                continue;
            }
            // 3.14 stores flags in the lowest bits of a reference.
            let code = object(self.word(frame, at.code)? & !7)?;
            let instruction = self.word(frame, at.instruction)?;
            let instruction = instruction.wrapping_sub(code.wrapping_add(start)).cast_signed();
            let prepared = i64::from(self.half(code, first_traceable)?) * UNIT_BYTES;
            if owner != OWNED_BY_GENERATOR && instruction < prepared {
                continue;
            }
            let Ok(instruction) = u32::try_from(instruction) else {
                return Err(PythonEnd::Broken);
            };
            let is_first = match runs {
                Runs::Flagged { is_entry } => self.byte(frame, is_entry)? != 0,
                Runs::Owned => previous == 0 || self.byte(object(previous)?, owner_offset)? >= OWNED_BY_LOOP,
            };
            let entered = if is_first {
                Entered::FromC
            } else {
                Entered::FromPython
            };
            let frame = PythonFrame::new(code, instruction, self.version(code), entered);
            return Ok(ChainFrame { frame, previous });
        }
    }

    #[inline(always)]
    fn step(&mut self) -> Result<u64, PythonEnd> {
        if self.frame == 0 {
            return Err(PythonEnd::Root);
        }
        self.steps_left = self.steps_left.checked_sub(1).ok_or(PythonEnd::Broken)?;
        object(self.frame)
    }

    /// The version of the code object at this address; see [`super::CodeId`].
    #[inline(always)]
    fn version(&self, code: u64) -> u32 {
        match self.layout.code.identity {
            Identity::Version(offset) => self.memory.half(code, offset).unwrap_or(0),
            // If it cannot be read, it distinguishes nothing. Walking and naming detect the problem themselves.
            Identity::Names => self.fingerprint(code).unwrap_or(0),
        }
    }

    #[inline(always)]
    fn fingerprint(&self, code: u64) -> Option<u32> {
        let at = self.layout.code;
        let name = self.memory.word(code, at.name)?;
        let file = self.memory.word(code, at.file)?;
        if !can_be_object(name) || !can_be_object(file) {
            return None;
        }
        let length = self.memory.word(file, TEXT_LENGTH)?;
        let mut hash = Fingerprint(name ^ file.rotate_left(32));
        hash.add(
            0,
            u64::from(self.memory.half(code, at.first_line)?) << 32 ^ length,
        );
        hash.add(1, self.memory.word(name, TEXT_HASH)?);
        let is_compact = self.memory.half(file, TEXT_STATE)? & TEXT_IS_COMPACT != 0;
        if is_compact && (9..LONGEST_TAIL).contains(&length) {
            // The last nine to sixteen characters, in words. Incomplete words are left out.
            let last = self.layout.text.ascii + ((length - 1) & !7);
            let unused_bits = (7 - (length - 1) % 8) * 8;
            hash.add(2, self.memory.word(file, last)? << unused_bits);
            hash.add(3, self.memory.word(file, last - 8)?);
        }
        Some(hash.bits())
    }

    #[inline(always)]
    fn word(&self, object: u64, offset: u64) -> Result<u64, PythonEnd> {
        self.memory.word(object, offset).ok_or(PythonEnd::Broken)
    }

    #[inline(always)]
    fn half(&self, object: u64, offset: u64) -> Result<u32, PythonEnd> {
        self.memory.half(object, offset).ok_or(PythonEnd::Broken)
    }

    #[inline(always)]
    fn byte(&self, object: u64, offset: u64) -> Result<u8, PythonEnd> {
        self.memory.byte(object, offset).ok_or(PythonEnd::Broken)
    }
}

/// Whether an address can be an object.
#[inline(always)]
fn object(address: u64) -> Result<u64, PythonEnd> {
    if can_be_object(address) {
        Ok(address)
    } else {
        Err(PythonEnd::Broken)
    }
}

/// Size of an instruction in bytes.
const UNIT_BYTES: i64 = 2;

/// For longer file names, only the other properties count.
const LONGEST_TAIL: u64 = 1 << 16;

/// Mixes several words into 31 bits: a sum of independent products with different constants.
struct Fingerprint(u64);

impl Fingerprint {
    #[inline(always)]
    fn add(&mut self, nth: usize, word: u64) {
        const FACTORS: [u64; 4] = [
            0x9e37_79b9_7f4a_7c15,
            0xc2b2_ae3d_27d4_eb4f,
            0x1656_67b1_9e37_79f9,
            0x27d4_eb2f_1656_67c5,
        ];
        let product = (word ^ word >> 32).wrapping_mul(FACTORS[nth]);
        self.0 = self.0.wrapping_add(product ^ product >> 29);
    }

    #[inline(always)]
    fn bits(&self) -> u32 {
        (self.0.wrapping_mul(0xff51_afd7_ed55_8ccd) >> 33) as u32
    }
}
