//! From frame to frame.

use std::arch::asm;

use crate::bounds::Bounds;
use crate::images::Images;
use crate::last::{Followed, LastWalk, Left, Step};
use crate::rules::{Frame, Kept, Rule, Rules, SAVED_WHERE_IT_POINTS};

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
}

/// Walks the stack of one thread. What it keeps is that thread's own.
pub struct Walker {
    rules: Rules,
    last: LastWalk,
    bounds: Bounds,
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
            last: LastWalk::new(),
            bounds: Bounds::of_this_thread(),
        }
    }

    /// For a stack that is not the calling thread's: memory that stays as it is.
    pub(crate) fn within(bounds: Bounds) -> Self {
        Self {
            rules: Rules::new(),
            last: LastWalk::new(),
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
        if self.rules.follow(images) == Kept::Forgotten {
            self.last.clear();
        }
        let mut taken = Taken {
            frames,
            places,
            depth: 0,
        };
        let mut stranger = None;
        self.last.begin();
        let end = if self.bounds.contains(at.stack) {
            self.go(images, at, &mut taken, &mut stranger)
        } else {
            StackEnd::Broken
        };
        self.last.end();
        Walk {
            depth: taken.depth,
            end,
            stranger,
        }
    }

    /// From frame to frame. The first one is this very module's, whose instruction was not a call.
    #[inline]
    fn go(
        &mut self,
        images: &Images,
        mut at: Registers,
        taken: &mut Taken<'_>,
        stranger: &mut Option<u64>,
    ) -> StackEnd {
        loop {
            if self.last.meets(&at) {
                // SAFETY: the stack is the calling thread's or, as `within` says, stays as it is.
                match unsafe { self.last.follow(|caller, address| taken.add(caller, address)) } {
                    Followed::Root => return StackEnd::Root,
                    Followed::Full => return StackEnd::Limit,
                    Followed::Until(frame) => at = frame,
                }
            }
            let rule = self.rules.find(images, at.instruction).unwrap_or_else(|| {
                stranger.get_or_insert(at.instruction);
                Rule::UNKNOWN
            });
            let Some((mut caller, left)) = self.leave(&at, rule) else {
                return StackEnd::Broken;
            };
            self.last.note(Step { at, left });
            if left == Left::Outermost || caller.instruction == 0 {
                return StackEnd::Root;
            }
            if taken.add(&caller, caller.instruction).is_none() {
                return StackEnd::Limit;
            }
            if left != Left::BySignal {
                // A call that never returns can be the last instruction: the address behind it is in another function.
                // An instruction that a signal interrupted is none.
                caller.instruction -= 1;
            }
            at = caller;
        }
    }

    /// The caller, if there is a way to it.
    #[inline]
    fn leave(&self, at: &Registers, rule: Rule) -> Option<(Registers, Left)> {
        match rule.frame {
            Frame::Signal => Some((self.interrupted(at)?, Left::BySignal)),
            Frame::Outermost => Some((*at, Left::Outermost)),
            Frame::Unknown => Some((self.by_base(at)?, Left::Otherwise)),
            frame => self.by_rule(at, frame, rule.base_offset),
        }
    }

    /// The caller, as the tables say.
    #[inline]
    fn by_rule(&self, at: &Registers, frame: Frame, base_offset: i32) -> Option<(Registers, Left)> {
        let is_read = matches!(frame, Frame::AtBase(_));
        let frame = match frame {
            Frame::FromStack(offset) => at.stack.checked_add_signed(i64::from(offset))?,
            Frame::FromBase(offset) => at.base.checked_add_signed(i64::from(offset))?,
            Frame::AtBase(offset) => self.read(at.base.checked_add_signed(i64::from(offset))?, at)?,
            Frame::Signal | Frame::Outermost | Frame::Unknown => return None,
        };
        let saved = match base_offset {
            0 => None,
            SAVED_WHERE_IT_POINTS => Some(at.base),
            offset => Some(frame.checked_add_signed(i64::from(offset))?),
        };
        let base = match saved {
            Some(place) => self.read(place, at)?,
            None => at.base,
        };
        let left = match saved {
            _ if is_read => Left::Otherwise,
            Some(place) => Left::BaseSaved(place),
            None => Left::BaseKept,
        };
        Some((self.above(at, frame, base)?, left))
    }

    /// Whoever a signal interrupted. One whose handler has a stack of its own is on another stack than ours.
    fn interrupted(&self, at: &Registers) -> Option<Registers> {
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
    fn by_base(&self, at: &Registers) -> Option<Registers> {
        let frame = at.base.checked_add(16)?;
        let base = self.read(at.base, at)?;
        self.above(at, frame, base)
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

/// What a walk has found so far.
struct Taken<'a> {
    frames: &'a mut [u64],
    places: &'a mut [u64],
    depth: usize,
}

impl Taken<'_> {
    /// One frame more; `None` when there is no room for it.
    #[inline]
    fn add(&mut self, caller: &Registers, return_address: u64) -> Option<()> {
        *self.frames.get_mut(self.depth)? = return_address;
        if let Some(place) = self.places.get_mut(self.depth) {
            *place = caller.stack;
        }
        self.depth += 1;
        Some(())
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
