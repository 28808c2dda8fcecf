//! Unwinds the stack of the calling thread, frame by frame.

use std::arch::asm;

use crate::bounds::Bounds;
use crate::images::Images;
use crate::interned::StackHash;
use crate::rules::{Frame, Rule, RuleState, Rules, SAVED_WHERE_IT_POINTS};
use crate::unwind_cache::{FrameBuffer, Reads, UnwindCache};

/// How an unwind ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackEnd {
    /// At the first function of the thread.
    Root,
    /// The output is full. It contains the innermost frames.
    Limit,
    /// At a frame that cannot be unwound. The frames above it are unknown.
    Broken,
}

/// The result of an unwind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Number of frames.
    pub depth: usize,
    /// How it ended.
    pub end: StackEnd,
    /// An address that no known image contains. Its image may have been loaded since.
    pub stranger: Option<u64>,
    /// The hash of the frames.
    pub hash: StackHash,
}

/// Unwinds the stack of one thread. Its caches belong to this thread.
pub struct Walker {
    rules: Rules,
    known: UnwindCache,
    reads: Reads,
    bounds: Bounds,
}

/// Where the base pointer of a frame comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    /// It is the initial base pointer.
    First,
    /// It was read from this address.
    Saved(u64),
    /// The words that it depends on are already noted.
    Noted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Registers {
    pub(crate) instruction: u64,
    pub(crate) stack: u64,
    pub(crate) base: u64,
}

impl Registers {
    /// The registers of the function that this is inlined into.
    #[inline(always)]
    fn here() -> Self {
        let (instruction, stack, base): (u64, u64, u64);
        // SAFETY: it reads three registers.
        unsafe {
            asm!(
                "lea {instruction}, [rip]",
                "mov {stack}, rsp",
                "mov {base}, rbp",
                instruction = out(reg) instruction,
                stack = out(reg) stack,
                base = out(reg) base,
                options(nomem, nostack, preserves_flags)
            );
        }
        Self {
            instruction,
            stack,
            base,
        }
    }
}

impl Walker {
    /// For the calling thread. Allocates and makes system calls, so create it in advance.
    pub fn of_this_thread() -> Self {
        Self {
            rules: Rules::new(),
            known: UnwindCache::new(),
            reads: Reads::new(),
            bounds: Bounds::of_this_thread(),
        }
    }

    /// For other memory that does not change, used in tests.
    pub(crate) fn within(bounds: Bounds) -> Self {
        Self {
            rules: Rules::new(),
            known: UnwindCache::new(),
            reads: Reads::new(),
            bounds,
        }
    }

    /// Writes the return addresses of the calling thread to `frames`, innermost first. The first is in the caller of
    /// this function.
    ///
    /// There are no frames if the stack pointer is outside the thread's stack (a coroutine, or a signal handler with
    /// its own stack).
    #[inline(never)]
    pub fn walk(&mut self, images: &Images, frames: &mut [u64]) -> Walk {
        let registers = Registers::here();
        self.walk_from(images, registers, frames, &mut [])
    }

    /// Like [`walk`](Self::walk). Also writes the stack pointer of each frame to `places`. The variables of a frame
    /// are between its own stack pointer and the next one.
    #[inline(never)]
    pub fn walk_placed(&mut self, images: &Images, frames: &mut [u64], places: &mut [u64]) -> Walk {
        let registers = Registers::here();
        self.walk_from(images, registers, frames, places)
    }

    pub(crate) fn walk_from(
        &mut self,
        images: &Images,
        at: Registers,
        frames: &mut [u64],
        places: &mut [u64],
    ) -> Walk {
        if self.rules.follow(images) == RuleState::Cleared {
            self.known.clear();
        }
        let mut output = FrameBuffer {
            frames,
            places,
            depth: 0,
        };
        let mut walk = Walk {
            depth: 0,
            end: StackEnd::Broken,
            stranger: None,
            hash: StackHash::of(&[]),
        };
        if !self.bounds.contains(at.stack) {
            return walk;
        }
        // SAFETY: this is the thread's own stack, or memory that does not change (see `within`). It can be read from
        // the stack pointer to its end.
        if let Some(hash) = unsafe { self.known.find(&at, &mut output) } {
            walk.end = StackEnd::Root;
            walk.depth = output.depth;
            walk.hash = hash;
            return walk;
        }
        self.reads.begin();
        walk.end = self.go(images, at, &mut output, &mut walk.stranger);
        walk.depth = output.depth;
        walk.hash = StackHash::of(&output.frames[..output.depth]);
        // Another attempt may find more: an image can be added, or there can be more space.
        if walk.end != StackEnd::Root || walk.stranger.is_some() {
            self.reads.something_else();
        }
        self.known.keep(at, &self.reads, walk.hash);
        walk
    }

    /// Unwinds frame by frame. The first frame is in this module, and its address is not a return address.
    fn go(
        &mut self,
        images: &Images,
        mut at: Registers,
        output: &mut FrameBuffer<'_>,
        stranger: &mut Option<u64>,
    ) -> StackEnd {
        let mut base = Base::First;
        loop {
            let rule = self.rules.find(images, at.instruction).unwrap_or_else(|| {
                stranger.get_or_insert(at.instruction);
                Rule::UNKNOWN
            });
            let mut behind_call = 1;
            let caller = match rule.frame {
                Frame::Outermost => return StackEnd::Root,
                Frame::Signal => {
                    behind_call = 0;
                    self.interrupted(&at)
                }
                Frame::Unknown => self.by_base(&at, &mut base),
                frame => self.by_rule(&at, frame, rule.base_offset, &mut base),
            };
            let Some(mut caller) = caller else {
                return StackEnd::Broken;
            };
            if caller.instruction == 0 {
                self.reads.other(caller.stack - 8, 0);
                return StackEnd::Root;
            }
            if output.add(&caller).is_none() {
                return StackEnd::Limit;
            }
            self.reads.frame(caller.stack - 8, caller.instruction);
            // A call that never returns can be the last instruction of a function. Then the return address is in
            // another function. This does not apply to an interrupted instruction.
            caller.instruction -= behind_call;
            at = caller;
        }
    }

    /// The caller, found with the unwind tables.
    #[inline]
    fn by_rule(
        &mut self,
        at: &Registers,
        frame: Frame,
        base_offset: i32,
        base: &mut Base,
    ) -> Option<Registers> {
        let frame = match frame {
            Frame::FromStack(offset) => at.stack.checked_add_signed(i64::from(offset))?,
            Frame::FromBase(offset) => self.base(at, base).checked_add_signed(i64::from(offset))?,
            Frame::AtBase(offset) => {
                let place = self.base(at, base).checked_add_signed(i64::from(offset))?;
                let frame = self.read(place, at)?;
                self.reads.other(place, frame);
                frame
            }
            Frame::Signal | Frame::Outermost | Frame::Unknown => return None,
        };
        let place = match base_offset {
            0 => return self.above(at, frame, at.base),
            SAVED_WHERE_IT_POINTS => self.base(at, base),
            offset => frame.checked_add_signed(i64::from(offset))?,
        };
        *base = Base::Saved(place);
        self.above(at, frame, self.read(place, at)?)
    }

    /// The base pointer. Notes the word that it was read from, because the unwind depends on it.
    #[inline]
    fn base(&mut self, at: &Registers, from: &mut Base) -> u64 {
        match *from {
            Base::First => self.reads.first_base(),
            Base::Saved(place) => self.reads.other(place, at.base),
            Base::Noted => {}
        }
        *from = Base::Noted;
        at.base
    }

    /// The frame that a signal interrupted. If the handler has its own stack, that frame is on another stack.
    fn interrupted(&mut self, at: &Registers) -> Option<Registers> {
        self.reads.something_else();
        let register = |offset| self.read(at.stack.checked_add(offset)?, at);
        let stack = register(SAVED_STACK)?;
        if stack <= at.stack {
            return None;
        }
        Some(Registers {
            instruction: register(SAVED_INSTRUCTION)?,
            stack,
            base: register(SAVED_BASE)?,
        })
    }

    /// The caller, found with the frame pointer, for code without unwind tables.
    fn by_base(&mut self, at: &Registers, base: &mut Base) -> Option<Registers> {
        let place = self.base(at, base);
        let saved = self.read(place, at)?;
        *base = Base::Saved(place);
        self.above(at, place.checked_add(16)?, saved)
    }

    /// The registers of the caller with this frame. Stacks grow downward, so the caller's frame is above.
    #[inline]
    fn above(&self, at: &Registers, frame: u64, base: u64) -> Option<Registers> {
        if frame <= at.stack {
            return None;
        }
        Some(Registers {
            instruction: self.read(frame.checked_sub(8)?, at)?,
            stack: frame,
            base,
        })
    }

    /// A word of the stack. `None` outside of the used part of the stack.
    #[inline]
    fn read(&self, address: u64, at: &Registers) -> Option<u64> {
        let readable =
            address >= at.stack && address.checked_add(8)? <= self.bounds.high && address.is_multiple_of(8);
        // SAFETY: the address is in the used part of the calling thread's stack, which is mapped and aligned. Nobody
        // else writes it now, and any bytes are a valid number.
        readable.then(|| unsafe { std::ptr::read_volatile(address as *const u64) })
    }
}

/// Where the kernel saved registers, relative to the stack pointer on return from a handler: a `ucontext_t`.
const SAVED_BASE: u64 = saved(libc::REG_RBP);
const SAVED_STACK: u64 = saved(libc::REG_RSP);
const SAVED_INSTRUCTION: u64 = saved(libc::REG_RIP);

const fn saved(register: libc::c_int) -> u64 {
    let registers = std::mem::offset_of!(libc::ucontext_t, uc_mcontext);
    (registers + register as usize * 8) as u64
}

const _: () = assert!(SAVED_BASE == 120 && SAVED_STACK == 160 && SAVED_INSTRUCTION == 168);

impl std::fmt::Debug for Walker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Walker")
            .field("bounds", &self.bounds)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use super::*;
    use crate::images::Image;

    /// Code without unwind tables: frames are linked by their base pointers.
    #[test]
    fn a_walk_follows_the_links_that_are_there_now() {
        const CODE: u64 = 0x10_0000;
        let images = Images::of_one(Image::made_up(CODE..CODE + 0x1000, CString::default(), None));
        let mut stack = [0u64; 16];
        let low = stack.as_ptr() as u64;
        let at = |word: u64| low + word * 8;
        let mut walker = Walker::within(Bounds {
            low,
            high: at(stack.len() as u64),
        });
        let start = Registers {
            instruction: CODE,
            stack: at(0),
            base: at(2),
        };
        // A frame is a link and a return address.
        for (word, link, address) in [(2, at(6), CODE + 1), (6, at(12), CODE + 2), (8, at(12), CODE + 3)] {
            stack[word] = link;
            stack[word + 1] = address;
        }
        let mut frames = [0; 8];
        let mut walked = |start| {
            let walk = walker.walk_from(&images, start, &mut frames, &mut []);
            assert_eq!(walk.end, StackEnd::Root);
            frames[..walk.depth].to_vec()
        };
        for _ in 0..2 {
            assert_eq!(walked(start), [CODE + 1, CODE + 2]);
        }
        std::hint::black_box(&mut stack)[2] = at(8);
        for _ in 0..2 {
            assert_eq!(walked(start), [CODE + 1, CODE + 3]);
        }
        let elsewhere = Registers { base: at(6), ..start };
        assert_eq!(walked(elsewhere), [CODE + 2]);
        std::hint::black_box(&mut stack)[2] = at(6);
        assert_eq!(walked(start), [CODE + 1, CODE + 2]);
    }
}
