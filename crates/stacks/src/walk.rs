//! From frame to frame.

use std::arch::asm;

use crate::bounds::Bounds;
use crate::images::Images;
use crate::interned::StackHash;
use crate::rules::{Frame, Rule, RuleState, Rules, SAVED_WHERE_IT_POINTS};
use crate::unwind_cache::{FrameBuffer, Reads, UnwindCache};

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackEnd {
    /// At the thread's first function.
    Root,
    /// There was no room for more frames; those that were taken are the innermost.
    Limit,
    /// At a frame that cannot be left: what is above it is not known.
    Broken,
}

/// What a walk found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Frames taken.
    pub depth: usize,
    /// How it ended.
    pub end: StackEnd,
    /// An address on the way that belongs to no image that is known: perhaps one that was loaded since.
    pub stranger: Option<u64>,
    /// Of the frames.
    pub hash: StackHash,
}

/// Walks the stack of one thread. What it keeps is that thread's own.
pub struct Walker {
    rules: Rules,
    known: UnwindCache,
    reads: Reads,
    bounds: Bounds,
}

/// Where the base pointer of a frame came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    /// It is that which the walk began with.
    First,
    /// It was read from here.
    Saved(u64),
    /// What leads to it is noted.
    Noted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Registers {
    pub(crate) instruction: u64,
    pub(crate) stack: u64,
    pub(crate) base: u64,
}

impl Registers {
    /// Of the function that this is written into.
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
    /// For the calling thread. Allocates and asks the system: to be made before it matters.
    pub fn of_this_thread() -> Self {
        Self {
            rules: Rules::new(),
            known: UnwindCache::new(),
            reads: Reads::new(),
            bounds: Bounds::of_this_thread(),
        }
    }

    /// For a stack that is not the calling thread's: memory that stays as it is.
    pub(crate) fn within(bounds: Bounds) -> Self {
        Self {
            rules: Rules::new(),
            known: UnwindCache::new(),
            reads: Reads::new(),
            bounds,
        }
    }

    /// The calling thread's return addresses into `frames`, the innermost first: that of the caller of this function.
    ///
    /// A stack pointer outside the thread's own stack (a coroutine, a handler on a stack of its own) gives no frames.
    #[inline(never)]
    pub fn walk(&mut self, images: &Images, frames: &mut [u64]) -> Walk {
        let registers = Registers::here();
        self.walk_from(images, registers, frames, &mut [])
    }

    /// The same, with the stack pointer in each of these frames into `places`: a variable of a frame lies at its place
    /// or above, and below the next one's.
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
        // SAFETY: that is this thread's stack or, as `within` says, one that stays as it is, and above the stack pointer
        // it can be read to its end.
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
        // One that ended elsewhere may find the way the next time, or have more room.
        if walk.end != StackEnd::Root || walk.stranger.is_some() {
            self.reads.something_else();
        }
        self.known.keep(at, &self.reads, walk.hash);
        walk
    }

    /// From frame to frame. The first one is this very module's, whose instruction was not a call.
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
            // A call that never returns can be the last instruction: the address behind it is in another function. An
            // instruction that a signal interrupted is none.
            caller.instruction -= behind_call;
            at = caller;
        }
    }

    /// The caller, as the tables say.
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

    /// The base pointer, which leads somewhere: so what it was read from counts.
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

    /// Whoever a signal interrupted. One whose handler has a stack of its own is on another stack than ours.
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

    /// The caller, as the base pointer says: code without tables that keeps one.
    fn by_base(&mut self, at: &Registers, base: &mut Base) -> Option<Registers> {
        let place = self.base(at, base);
        let saved = self.read(place, at)?;
        *base = Base::Saved(place);
        self.above(at, place.checked_add(16)?, saved)
    }

    /// The registers of a caller whose frame is there. Stacks grow downwards: a caller's frame lies above.
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

    /// A word of the stack, if it is one: between the stack pointer and the stack's end.
    #[inline]
    fn read(&self, address: u64, at: &Registers) -> Option<u64> {
        let readable =
            address >= at.stack && address.checked_add(8)? <= self.bounds.high && address.is_multiple_of(8);
        // SAFETY: it lies in the used part of the calling thread's stack, which is mapped and aligned. That part may
        // be written by nobody else now, and any bytes are a number.
        readable.then(|| unsafe { std::ptr::read_volatile(address as *const u64) })
    }
}

/// Where the kernel keeps registers, from the stack pointer that a handler returns with: a `ucontext_t` lies there.
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

    /// Code without tables: frames are linked by their base pointers, and only these say where the next one is.
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
