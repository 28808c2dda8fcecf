//! Reads Python frames, frame by frame.

use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::Python;
use super::chain::Chain;
use super::copies::Copies;
use super::layout::Mark;
use super::memory::{Checked, Direct, Memory};

/// A Python frame: the running code, and the position in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PythonFrame {
    /// The address of the code object.
    pub code: u64,
    /// The offset of the instruction in bytes. `u32::MAX` if none has run.
    pub instruction: u32,
    /// The code's version in the upper bits. The lowest bit is set if C code entered here.
    tag: u32,
}

/// No instruction has run.
pub(super) const NOT_BEGUN: u32 = u32::MAX;

/// Identifies a code object, even if another one was at the same address before.
///
/// Addresses are reused. A program that compiles functions in a loop gets every new code object, with its name and
/// file name, at the same addresses. From 3.12 on, the interpreter numbers code objects, and the version is this
/// number. Before that, it is computed from the hash of the name, the length and last characters of the file name,
/// and the first line. Two code objects that agree in all of this at one address count as one. They differ at most in
/// lines within the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeId {
    /// The address.
    pub address: u64,
    /// Distinguishes code objects at the same address.
    pub version: u32,
}

impl PythonFrame {
    pub(super) fn new(code: u64, instruction: u32, version: u32, entered: Entered) -> Self {
        Self {
            code,
            instruction,
            tag: version << 1 | u32::from(entered == Entered::FromC),
        }
    }

    /// Whether C code called this frame. It is the first frame of a run of the eval loop, and the last of that run in
    /// a walk.
    #[inline]
    pub fn is_entered_from_c(&self) -> bool {
        self.tag & 1 == 1
    }

    /// The running code.
    #[inline]
    pub fn code_id(&self) -> CodeId {
        CodeId {
            address: self.code,
            version: self.tag >> 1,
        }
    }

    /// Identifies the frame, for tables of stacks.
    #[inline]
    pub fn words(&self) -> [u64; 2] {
        [self.code, u64::from(self.instruction) << 32 | u64::from(self.tag)]
    }
}

/// Who called a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entered {
    FromC,
    FromPython,
}

/// How reading ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PythonEnd {
    /// At the first frame of the thread. A thread that never ran Python has none.
    Root,
    /// The output is full. It contains the innermost frames.
    Limit,
    /// At something that is not a frame.
    Broken,
    /// Python frames are not read: a check failed ([`Python::unknown`]), the interpreter is shutting down, or there
    /// are sub-interpreters before 3.12.
    Off,
}

/// The result of reading frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PythonWalk {
    /// Number of frames.
    pub depth: usize,
    /// How it ended.
    pub end: PythonEnd,
}

/// Reads the Python frames of the thread that created it.
#[derive(Clone, Debug)]
pub struct PythonWalker {
    python: Arc<Python>,
    copies: Copies,
    /// Not `Send`: it stays on its thread.
    thread: PhantomData<*const ()>,
}

impl PythonWalker {
    /// For the calling thread.
    pub fn of_this_thread(python: Arc<Python>) -> Self {
        Self {
            copies: Copies::of(&python.layout),
            python,
            thread: PhantomData,
        }
    }

    /// The interpreter.
    pub fn python(&self) -> &Arc<Python> {
        &self.python
    }

    /// Writes the thread's Python frames to `frames`, innermost first.
    ///
    /// Call it from C code that Python called, and not from a signal handler. Frames are consistent only between
    /// instructions.
    #[inline]
    pub fn walk(&mut self, frames: &mut [PythonFrame]) -> PythonWalk {
        let mut depth = 0;
        let chain = match self.chain(frames.len()) {
            Ok(chain) => chain,
            Err(end) => return PythonWalk { depth, end },
        };
        let end = chain.each(|found| match frames.get_mut(depth) {
            Some(frame) => {
                *frame = found.frame;
                depth += 1;
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(PythonEnd::Limit),
        });
        PythonWalk { depth, end }
    }

    /// The positions of the eval loop's runs on the C stack, innermost first, for [`Python::mix`]. Returns their
    /// number. 3.9 does not provide them.
    ///
    /// They are valid as long as the thread has not continued since it was walked. They are separate, because only
    /// new stacks need them.
    pub fn run_places(&mut self, places: &mut [u64]) -> usize {
        let Ok(chain) = self.chain(MOST_FRAMES) else {
            return 0;
        };
        let mark = self.python.layout.mark;
        let mut left = match mark {
            Mark::None => return 0,
            Mark::EntryFrame => None,
            Mark::Chain { thread, .. } => Checked.word(self.thread_state(), thread),
        };
        let mut count = 0;
        // The walk itself reported how it ended.
        let _ = chain.each(|found| {
            if !found.frame.is_entered_from_c() {
                return ControlFlow::Continue(());
            }
            let Some(place) = places.get_mut(count) else {
                return ControlFlow::Break(PythonEnd::Limit);
            };
            count += 1;
            *place = match mark {
                Mark::EntryFrame | Mark::None => found.previous,
                Mark::Chain { previous, .. } => {
                    let place = left.unwrap_or(0);
                    left = Checked.word(place, previous);
                    place
                }
            };
            ControlFlow::Continue(())
        });
        count
    }

    /// The frames of this thread, or why there are none.
    #[inline]
    fn chain(&self, most: usize) -> Result<Chain<'_, Direct>, PythonEnd> {
        let python = &*self.python;
        // At shutdown, the interpreter frees the states of other threads while they still run. It sets this flag long
        // before.
        // SAFETY: it reads a variable of a library that stays loaded.
        if unsafe { (python.symbols.is_finalizing)() } != 0 {
            return Err(PythonEnd::Off);
        }
        if python.symbols.version.minor < 12 && self.is_among_interpreters() {
            return Err(PythonEnd::Off);
        }
        let thread = self.thread_state();
        if thread == 0 {
            return Err(PythonEnd::Root);
        }
        if !python.is_trusted(thread) {
            // No check has failed, so there was no frame to check: the thread does not run Python now.
            return Err(python.unknown().map_or(PythonEnd::Root, |_| PythonEnd::Off));
        }
        // SAFETY: the state and the frames of this thread, in a layout that was checked.
        let memory = unsafe { Direct::new() };
        Chain::new(&python.layout, memory, &self.copies, thread, most)
    }

    /// Up to 3.11, the state of a thread in a sub-interpreter still belongs to the main interpreter, and has the
    /// frames from before it entered. With several interpreters, the right frames are unknown.
    #[inline]
    fn is_among_interpreters(&self) -> bool {
        let symbols = &self.python.symbols;
        // SAFETY: it reads a variable of a library that stays loaded.
        let first = unsafe { (symbols.first_interpreter)() };
        // SAFETY: as above.
        let last = unsafe { (symbols.last_interpreter)() };
        first != last
    }

    /// The interpreter's state of this thread, or 0.
    #[inline]
    fn thread_state(&self) -> u64 {
        // SAFETY: it reads a thread-local variable of a library that stays loaded.
        unsafe { (self.python.symbols.thread_state)() as u64 }
    }
}

/// Deeper than any stack, for walks that only count.
const MOST_FRAMES: usize = 1 << 20;
