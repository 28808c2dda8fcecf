//! From Python frame to Python frame.

use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::Python;
use super::chain::Chain;
use super::layout::Mark;
use super::memory::{Checked, Direct, Memory};

/// A frame of Python code: what is running, and where in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PythonFrame {
    /// Where the code object is.
    pub code: u64,
    /// The instruction, in bytes from the first; `u32::MAX` when none has run.
    pub instruction: u32,
    /// The code's version above, whether C entered here in the lowest bit.
    tag: u32,
}

/// No instruction has run.
pub(super) const NOT_BEGUN: u32 = u32::MAX;

/// Tells a code object from all others, also from one that was at the same address before it.
///
/// Addresses come again: a program that makes functions from text in a loop finds every new code object, its name and
/// its file name where the last ones were. From 3.12 on the interpreter numbers code objects, and that number is here.
/// Before that it is made from what the names say: the hash of the name, which the interpreter keeps, the length and the
/// last letters of the file name, and the first line. Two that agree in all of that at one address are told as one; they
/// differ in lines within the function at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeId {
    /// Where it is.
    pub address: u64,
    /// Which of those that were there.
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

    /// Whether C called this frame: it is the first that a run of the eval loop had, and the last of that run in a walk.
    #[inline]
    pub fn is_entered_from_c(&self) -> bool {
        self.tag & 1 == 1
    }

    /// The code that it runs.
    #[inline]
    pub fn code_id(&self) -> CodeId {
        CodeId {
            address: self.code,
            version: self.tag >> 1,
        }
    }

    /// What tells this frame from every other, for tables of stacks.
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

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PythonEnd {
    /// At the thread's first frame. A thread that never ran Python has none.
    Root,
    /// There was no room for more frames; those that were taken are the innermost.
    Limit,
    /// At something that is not a frame.
    Broken,
    /// Python frames are not taken: a check has failed ([`Python::unknown`]), the interpreter is shutting down, or there
    /// are sub-interpreters before 3.12.
    Off,
}

/// What a walk found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PythonWalk {
    /// Frames taken.
    pub depth: usize,
    /// How it ended.
    pub end: PythonEnd,
}

/// Walks the Python frames of the thread that made it.
#[derive(Clone, Debug)]
pub struct PythonWalker {
    python: Arc<Python>,
    /// Stays on its thread.
    thread: PhantomData<*const ()>,
}

impl PythonWalker {
    /// For the calling thread.
    pub fn of_this_thread(python: Arc<Python>) -> Self {
        Self {
            python,
            thread: PhantomData,
        }
    }

    /// The interpreter whose frames it walks.
    pub fn python(&self) -> &Arc<Python> {
        &self.python
    }

    /// The thread's Python frames into `frames`, the innermost first.
    ///
    /// To be called from C code that Python called, not from a signal handler: frames are whole only between
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

    /// Where the runs of the eval loop are on the C stack, the innermost first, for [`Python::mix`]; how many there are.
    /// None in 3.9, which does not tell.
    ///
    /// As long as the thread has not gone on since a walk, they are the runs of its frames. Kept apart from the walk
    /// because only stacks that are new need them.
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
        // How the walk ended was said by the walk itself.
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
        // At shutdown the states of other threads are freed while those threads still run. It begins long before that
        // with the mark that is looked at here.
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
            // Without a doubt there was no frame to be checked: the thread does not run Python now.
            return Err(python.unknown().map_or(PythonEnd::Root, |_| PythonEnd::Off));
        }
        // SAFETY: the state and the frames of this thread, in a layout that was checked.
        let memory = unsafe { Direct::new() };
        Chain::new(&python.layout, memory, thread, most)
    }

    /// Up to 3.11 a thread that runs a sub-interpreter is still told by its state in the main one, whose frames are those
    /// before it went there: while there are several interpreters, nobody can say which frames are the right ones.
    #[inline]
    fn is_among_interpreters(&self) -> bool {
        let symbols = &self.python.symbols;
        // SAFETY: it reads a variable of a library that stays loaded.
        let first = unsafe { (symbols.first_interpreter)() };
        // SAFETY: as above.
        let last = unsafe { (symbols.last_interpreter)() };
        first != last
    }

    /// The interpreter's state for this thread, or 0.
    #[inline]
    fn thread_state(&self) -> u64 {
        // SAFETY: it reads a thread-local variable of a library that stays loaded.
        unsafe { (self.python.symbols.thread_state)() as u64 }
    }
}

/// Deeper than any stack, for walks that only pass by.
const MOST_FRAMES: usize = 1 << 20;
