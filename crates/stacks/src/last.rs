//! The walk before this one.
//!
//! Launches follow each other closely, and most of their frames are the same: the program's, the training loop's, the
//! framework's outer ones. A walk that comes to a frame where the last one was too has the same way before it, as long as
//! the words that led there still lie on the stack. To compare them is a read or two for each frame at addresses that are
//! known beforehand; to work the way out anew is a rule to find for each, and none before the last.

use crate::walk::Registers;

/// Steps that are kept: those of the innermost frames.
const MOST_STEPS: usize = 320;

/// One frame of a walk, and what was read to leave it.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    /// Where the walk was; the instruction is that whose rule was looked up.
    pub(crate) at: Registers,
    pub(crate) left: Left,
}

/// What led to the caller, besides the registers and the return address below the caller's frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing: the base pointer stayed as it was.
    BaseKept,
    /// The word at this address, the caller's base pointer.
    BaseSaved(u64),
    /// More than is kept here.
    Otherwise,
    /// A signal's frame: the instruction it interrupted was not a call.
    BySignal,
    /// Not at all: there is no caller.
    Outermost,
}

/// How far the last walk led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Followed {
    /// To the thread's first function.
    Root,
    /// Until there was no room for more.
    Full,
    /// To this frame, which must be left in another way.
    Until(Registers),
}

/// The last walk, and what of the one under way is not in it.
pub(crate) struct LastWalk {
    /// The outermost first, so that another walk changes the end alone.
    steps: Vec<Step>,
    /// How many of them the walk under way has not passed.
    ahead: usize,
    /// How many of them are the walk's own too: it was led to the end by them.
    shared: usize,
    /// Of the walk under way, the innermost first.
    new: Vec<Step>,
}

impl LastWalk {
    pub(crate) fn new() -> Self {
        Self {
            steps: Vec::with_capacity(MOST_STEPS),
            ahead: 0,
            shared: 0,
            new: Vec::with_capacity(MOST_STEPS),
        }
    }

    /// Forgets the last walk: what its addresses meant may have changed.
    pub(crate) fn clear(&mut self) {
        self.steps.clear();
    }

    /// Another walk begins.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.ahead = self.steps.len();
        self.shared = 0;
        self.new.clear();
    }

    /// Whether the last walk was here too.
    #[inline]
    pub(crate) fn meets(&mut self, at: &Registers) -> bool {
        // Both go upwards.
        while let Some(step) = self.steps[..self.ahead].last() {
            if step.at.stack >= at.stack {
                return step.at == *at;
            }
            self.ahead -= 1;
        }
        false
    }

    /// Goes the way of the last walk from the step that was met, as far as the same words still lead there: `take` gets
    /// each caller and its return address, and gives back `None` when there is no room.
    ///
    /// # Safety
    ///
    /// The stack that both walk is the calling thread's, or one that nobody changes now.
    #[inline]
    pub(crate) unsafe fn follow(&mut self, mut take: impl FnMut(&Registers, u64) -> Option<()>) -> Followed {
        // SAFETY: the last walk read there, above the place where this one is, which is above the stack pointer of the
        // thread: it is within its stack still.
        let word = |address: u64| unsafe { std::ptr::read_volatile(address as *const u64) };
        let mut at = self.ahead;
        while let [.., caller, step] = &self.steps[..at] {
            let same_base = match step.left {
                Left::BaseKept => true,
                Left::BaseSaved(place) => word(place) == caller.at.base,
                Left::Otherwise | Left::BySignal | Left::Outermost => break,
            };
            // Behind a call, one before the return address is looked up.
            let return_address = word(caller.at.stack - 8);
            if !same_base || return_address != caller.at.instruction + 1 {
                break;
            }
            if take(&caller.at, return_address).is_none() {
                self.keep_until(at);
                return Followed::Full;
            }
            at -= 1;
        }
        if let [
            Step {
                left: Left::Outermost,
                ..
            },
        ] = self.steps[..at]
        {
            self.shared = self.ahead;
            return Followed::Root;
        }
        self.keep_until(at);
        Followed::Until(self.steps[at - 1].at)
    }

    /// The walk under way leaves that of the last.
    #[cold]
    fn keep_until(&mut self, at: usize) {
        let followed = self.steps[at..self.ahead].iter().rev();
        self.new.extend(followed.take(MOST_STEPS - self.new.len()));
        self.ahead = at;
    }

    /// Keeps a step of the walk that is under way.
    #[inline]
    pub(crate) fn note(&mut self, step: Step) {
        if self.new.len() < MOST_STEPS {
            self.new.push(step);
        }
    }

    /// The walk under way has ended.
    #[inline]
    pub(crate) fn end(&mut self) {
        self.steps.truncate(self.shared);
        if self.shared + self.new.len() <= MOST_STEPS {
            self.steps.extend(self.new.iter().rev());
        } else {
            self.steps.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stack of words, and a walk over three frames of it: the first saves the base pointer, the second does not.
    struct Walked {
        stack: Vec<u64>,
        walk: LastWalk,
    }

    impl Walked {
        fn new() -> Self {
            let mut walked = Self {
                stack: vec![0, 0xba5e, 0x1001, 0, 0, 0x2001],
                walk: LastWalk::new(),
            };
            let saved = Left::BaseSaved(walked.place(1));
            walked.walk.begin();
            for (number, left) in [saved, Left::BaseKept, Left::Outermost].into_iter().enumerate() {
                let at = walked.at(number);
                walked.walk.note(Step { at, left });
            }
            walked.walk.end();
            walked.walk.begin();
            walked
        }

        fn place(&self, word: usize) -> u64 {
            self.stack.as_ptr().wrapping_add(word) as u64
        }

        fn at(&self, number: usize) -> Registers {
            let (instruction, word, base) =
                [(0x500, 0, 0xf00), (0x1000, 3, 0xba5e), (0x2000, 6, 0xba5e)][number];
            Registers {
                instruction,
                stack: self.place(word),
                base,
            }
        }

        /// How many frames the last walk leads to from this one, with room for so many, and how that ends.
        fn followed(&mut self, from: Registers, room: usize) -> Option<(usize, Followed)> {
            if !self.walk.meets(&from) {
                return None;
            }
            let mut frames = 0;
            let take = |_: &Registers, _| {
                let has_room = frames < room;
                frames += usize::from(has_room);
                has_room.then_some(())
            };
            // SAFETY: the words are there, and nobody writes them meanwhile.
            let followed = unsafe { self.walk.follow(take) };
            Some((frames, followed))
        }
    }

    #[test]
    fn the_same_words_lead_the_same_way() {
        let mut walked = Walked::new();
        let first = walked.at(0);
        for _ in 0..3 {
            assert_eq!(walked.followed(first, 9), Some((2, Followed::Root)));
            walked.walk.end();
            walked.walk.begin();
        }
    }

    #[test]
    fn it_is_met_on_the_way_and_what_came_before_is_kept() {
        let mut walked = Walked::new();
        let (first, second) = (walked.at(0), walked.at(1));
        let other = Registers {
            instruction: 7,
            ..first
        };
        assert_eq!(walked.followed(other, 9), None);
        walked.walk.note(Step {
            at: other,
            left: Left::BaseSaved(walked.place(1)),
        });
        assert_eq!(walked.followed(second, 9), Some((1, Followed::Root)));
        walked.walk.end();
        walked.walk.begin();
        assert_eq!(walked.followed(first, 9), None);
        assert_eq!(walked.followed(other, 9), Some((2, Followed::Root)));
    }

    #[test]
    fn another_return_address_or_base_pointer_leads_elsewhere() {
        for (word, frames) in [(1, 0), (2, 0), (5, 1)] {
            let mut walked = Walked::new();
            walked.stack[word] += 1;
            let until = Followed::Until(walked.at(frames));
            let first = walked.at(0);
            assert_eq!(walked.followed(first, 9), Some((frames, until)), "word {word}");
            // What was followed is kept, and leads as far the next time.
            walked.walk.note(Step {
                at: walked.at(frames),
                left: Left::Otherwise,
            });
            walked.walk.end();
            walked.walk.begin();
            assert_eq!(walked.followed(first, 9), Some((frames, until)), "word {word}");
        }
    }

    #[test]
    fn it_ends_where_there_is_no_room() {
        let mut walked = Walked::new();
        let first = walked.at(0);
        assert_eq!(walked.followed(first, 1), Some((1, Followed::Full)));
        walked.walk.end();
        walked.walk.begin();
        assert_eq!(walked.followed(first, 9), Some((0, Followed::Until(first))));
    }

    #[test]
    fn more_steps_than_are_kept_do_no_harm() {
        let mut walk = LastWalk::new();
        for _ in 0..2 {
            walk.begin();
            for number in 0..2 * MOST_STEPS as u64 {
                let at = Registers {
                    instruction: 1,
                    stack: number * 8,
                    base: 0,
                };
                assert!(!walk.meets(&at) || number < MOST_STEPS as u64);
                walk.note(Step {
                    at,
                    left: Left::Otherwise,
                });
            }
            walk.end();
        }
        assert_eq!(
            (walk.steps.len(), walk.steps.capacity()),
            (MOST_STEPS, MOST_STEPS)
        );
    }

    #[test]
    fn a_frame_with_anything_else_in_it_is_another() {
        let mut walked = Walked::new();
        let first = walked.at(0);
        for other in [
            Registers {
                instruction: 0x501,
                ..first
            },
            Registers { base: 0xf01, ..first },
            Registers {
                stack: first.stack + 8,
                ..first
            },
        ] {
            assert_eq!(walked.followed(other, 9), None);
        }
    }

    #[test]
    fn what_is_forgotten_is_not_met() {
        let mut walked = Walked::new();
        walked.walk.clear();
        walked.walk.begin();
        let first = walked.at(0);
        assert_eq!(walked.followed(first, 9), None);
    }
}
