//! The chain of a thread's Python frames, in the order of the interpreter.
//!
//! Frames of the eval loop itself are skipped. So are frames that are not ready yet (`MAKE_CELL`, `RETURN_GENERATOR`,
//! and the interpreter's own shims). CPython hides both, too.

use std::ops::ControlFlow;

use super::copies::{Copies, Copy};
use super::layout::{
    Form, Identity, Innermost, Instructions, LAST_OWNER, Layout, OLD_TEXT, OWNED_BY_GENERATOR, OWNED_BY_LOOP,
};
use super::memory::{Memory, can_be_object};
use super::walk::{Entered, NOT_BEGUN, PythonEnd, PythonFrame};

/// The frames of a thread, innermost first.
pub(super) struct Chain<'a, M> {
    layout: &'a Layout,
    memory: M,
    copies: &'a Copies,
    frame: u64,
    /// Remaining steps. They bound a corrupt, cyclic chain.
    steps_left: usize,
}

/// A frame, and the address of the previous one.
pub(super) struct ChainFrame {
    pub(super) frame: PythonFrame,
    pub(super) previous: u64,
}

/// Where a frame's bytecode is.
#[derive(Clone, Copy)]
enum Bytecode {
    InCode,
    Copied { number: u64, copies: u64 },
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
    pub(super) fn new(
        layout: &'a Layout,
        memory: M,
        copies: &'a Copies,
        thread: u64,
        most: usize,
    ) -> Result<Self, PythonEnd> {
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
            copies,
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
                let found = self.next_of_loop(owner, Runs::Flagged { is_entry }, Bytecode::InCode);
                match found.map(&mut visit) {
                    Ok(ControlFlow::Continue(())) => {}
                    Ok(ControlFlow::Break(end)) | Err(end) => return end,
                }
            },
            Form::Owned { owner } => loop {
                let found = self.next_of_loop(owner, Runs::Owned, Bytecode::InCode);
                match found.map(&mut visit) {
                    Ok(ControlFlow::Continue(())) => {}
                    Ok(ControlFlow::Break(end)) | Err(end) => return end,
                }
            },
            Form::Copied {
                owner,
                number,
                copies,
            } => self.each_copied(owner, Bytecode::Copied { number, copies }, visit),
        }
    }

    /// The loop for builds without the GIL. On its own, because it made the loop of 3.10 slower by a quarter.
    #[inline(never)]
    fn each_copied(
        mut self,
        owner: u64,
        bytecode: Bytecode,
        mut visit: impl FnMut(ChainFrame) -> ControlFlow<PythonEnd>,
    ) -> PythonEnd {
        loop {
            match self.next_of_loop(owner, Runs::Owned, bytecode).map(&mut visit) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(end)) | Err(end) => return end,
            }
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
    fn next_of_loop(
        &mut self,
        owner_offset: u64,
        runs: Runs,
        bytecode: Bytecode,
    ) -> Result<ChainFrame, PythonEnd> {
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
            // From 3.14 on, the lowest bits of a reference are flags.
            let code = object(self.word(frame, at.code)? & !7)?;
            let address = self.word(frame, at.instruction)?;
            let version = self.version(code);
            let start = match bytecode {
                Bytecode::InCode => code.wrapping_add(start),
                Bytecode::Copied { number, copies } => match self.half(frame, number)? {
                    0 => code.wrapping_add(start),
                    number => {
                        let copy = Copy {
                            code,
                            version,
                            number,
                        };
                        self.copy_start(copy, copies, address)?
                    }
                },
            };
            let instruction = address.wrapping_sub(start).cast_signed();
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
            let frame = PythonFrame::new(code, instruction, version, entered);
            return Ok(ChainFrame { frame, previous });
        }
    }

    /// The start of the copy that contains an instruction.
    #[inline(always)]
    fn copy_start(&self, copy: Copy, copies: u64, instruction: u64) -> Result<u64, PythonEnd> {
        if let Some(start) = self.copies.get(copy, instruction) {
            return Ok(start);
        }
        let units = self.word(copy.code, self.layout.object.size)?;
        self.copies
            .find(copy, copies, units.saturating_mul(UNIT_BYTES as u64), instruction)
            .ok_or(PythonEnd::Broken)
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
        // Only versions up to 3.11 need this. Constant offsets save a tenth of a walk.
        let text = OLD_TEXT;
        let length = self.memory.word(file, text.length)?;
        let mut hash = Fingerprint(name ^ file.rotate_left(32));
        hash.add(
            0,
            u64::from(self.memory.half(code, at.first_line)?) << 32 ^ length,
        );
        hash.add(1, self.memory.word(name, text.hash)?);
        let is_compact = text.is_compact(self.memory.half(file, text.state)?);
        if is_compact && (9..LONGEST_TAIL).contains(&length) {
            // The last nine to sixteen characters, in words. Incomplete words are left out.
            let last = text.ascii + ((length - 1) & !7);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::memory::Checked;
    use crate::python::published::tests::recorded;

    /// Objects of 3.14 without the GIL: a thread with one frame, which runs a copy of its code.
    struct Objects {
        thread: [u64; 10],
        frame: [u64; 10],
        code: [u64; 30],
        list: [u64; 4],
        /// Only its address counts.
        copy: [u64; 4],
    }

    const DEFERRED: u64 = 1;

    impl Objects {
        fn new(number: u64, instruction: u64) -> Box<Self> {
            let mut objects = Box::new(Self {
                thread: [0; 10],
                frame: [0; 10],
                code: [0; 30],
                list: [3, 0, 0, 0],
                copy: [0; 4],
            });
            let code = objects.code.as_ptr() as u64;
            objects.thread[9] = objects.frame.as_ptr() as u64;
            objects.frame[0] = code | DEFERRED;
            objects.frame[7] = match number {
                0 => code + 232 + instruction,
                _ => objects.copy.as_ptr() as u64 + instruction,
            };
            objects.frame[9] = number;
            objects.code[4] = 16;
            objects.code[13] = 5 << 32;
            objects.code[26] = 1;
            objects.code[28] = objects.list.as_ptr() as u64;
            objects.list[1] = code + 232;
            objects.list[3] = objects.copy.as_ptr() as u64;
            objects
        }

        fn frames(&self) -> (Vec<PythonFrame>, PythonEnd) {
            let [_, _, layout, ..] = recorded();
            let copies = Copies::of(&layout);
            let thread = self.thread.as_ptr() as u64;
            let chain = Chain::new(&layout, Checked, &copies, thread, 10).unwrap();
            let mut frames = Vec::new();
            let end = chain.each(|found| {
                frames.push(found.frame);
                ControlFlow::Continue(())
            });
            (frames, end)
        }
    }

    #[test]
    fn instructions_are_counted_from_the_copy_that_a_frame_runs() {
        for number in [0, 2] {
            let objects = Objects::new(number, 20);
            let code = objects.code.as_ptr() as u64;
            let frame = PythonFrame::new(code, 20, 5, Entered::FromC);
            assert_eq!(objects.frames(), (vec![frame], PythonEnd::Root), "copy {number}");
        }
        assert_eq!(
            Objects::new(2, 0).frames(),
            (vec![], PythonEnd::Root),
            "not ready yet"
        );
    }

    #[test]
    fn a_copy_that_is_not_listed_or_elsewhere_is_no_frame() {
        for (number, instruction) in [(1, 20), (3, 20), (1 << 31, 20), (2, 32)] {
            let objects = Objects::new(number, instruction);
            assert_eq!(objects.frames(), (vec![], PythonEnd::Broken), "copy {number}");
        }
        let mut objects = Objects::new(2, 20);
        objects.code[28] = 0x10_0000;
        assert_eq!(objects.frames(), (vec![], PythonEnd::Broken), "unmapped list");
    }
}
