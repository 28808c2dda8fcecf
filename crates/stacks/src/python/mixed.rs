//! Merges Python and native frames into one stack.
//!
//! The Python frames replace the native frames of the eval loop that runs them. The eval loop is found by position:
//! each of its runs leaves something on the C stack, between the stack pointers of exactly one native frame. The
//! address of the function is not enough. Compilers move its rare parts elsewhere (in Debian's 3.13, all but 2 of
//! about 50 KB), and newer interpreters split it into many small functions. Only 3.9 leaves nothing on the stack, and
//! there the address is used.
//!
//! By default, the interpreter's own native frames are left out. Calls such as `_PyObject_Vectorcall` add no
//! information to the frames around them.

use std::ops::Range;

use super::Python;
use super::walk::PythonFrame;

/// A native stack, innermost first, from [`crate::Walker::walk_placed`].
#[derive(Clone, Copy, Debug)]
pub struct NativeStack<'a> {
    /// Return addresses.
    pub frames: &'a [u64],
    /// The stack pointer of each frame.
    pub places: &'a [u64],
}

/// A frame of a merged stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MixedFrame {
    /// A return address.
    Native(u64),
    /// A Python frame.
    Python(PythonFrame),
}

/// What happens to the interpreter's native frames inside the outermost Python frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterpreterFrames {
    /// Leave them out.
    LeftOut,
    /// Keep them.
    Kept,
}

/// Whether the two stacks could be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// Every frame is at its position.
    Joined,
    /// The positions are unknown. All native frames come first, then all Python frames.
    Apart,
}

/// The result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mixed {
    /// Number of frames.
    pub depth: usize,
    /// Whether the stacks could be merged.
    pub fit: Fit,
    /// The output was too small for the outermost frames.
    pub is_cut: bool,
}

impl Python {
    /// Writes one stack to `mixed`, innermost first. The native stack, the Python frames and the [run
    /// places](crate::PythonWalker::run_places) must come from the same moment.
    pub fn mix(
        &self,
        native: NativeStack<'_>,
        python: &[PythonFrame],
        run_places: &[u64],
        interpreter: InterpreterFrames,
        mixed: &mut [MixedFrame],
    ) -> Mixed {
        let runs = if self.layout.mark == super::layout::Mark::None {
            Runs::Within(self.symbols.eval.clone())
        } else {
            Runs::Placed {
                native: native.places,
                runs: run_places,
            }
        };
        let own = match interpreter {
            InterpreterFrames::LeftOut => self.symbols.own.clone(),
            InterpreterFrames::Kept => 0..0,
        };
        mix(native.frames, python, &runs, &own, mixed)
    }
}

/// How native frames of the eval loop are recognized.
enum Runs<'a> {
    /// By the stack pointers of native frames, and by the marks of runs on the stack.
    Placed { native: &'a [u64], runs: &'a [u64] },
    /// By address.
    Within(Range<u64>),
}

impl Runs<'_> {
    /// Whether a native frame is the eval loop of a run.
    fn is_loop(&self, frames: &[u64], native: usize, run: usize) -> bool {
        match self {
            Self::Placed { native: places, runs } => {
                let (Some(from), Some(to), Some(place)) =
                    (places.get(native), places.get(native + 1), runs.get(run))
                else {
                    return false;
                };
                (*from..*to).contains(place)
            }
            Self::Within(eval) => is_within(eval, frames[native]),
        }
    }

    /// Whether native frames and runs match, given how many runs have found their loop.
    fn fits(&self, frames: &[u64], found: usize, count: usize) -> bool {
        match self {
            // Runs above the last native frame belong there: the native stack ended before them.
            Self::Placed { native, runs } => {
                let last = native.last().copied().unwrap_or(0);
                runs.len() >= count
                    && native.len() >= frames.len()
                    && runs
                        .get(found..count)
                        .unwrap_or_default()
                        .iter()
                        .all(|&place| place >= last)
            }
            // An eval loop without a run would shift all others.
            Self::Within(eval) => {
                let loops = frames.iter().filter(|&&frame| is_within(eval, frame)).count();
                loops == count
            }
        }
    }
}

/// A return address points after the call, which may have been the last instruction.
fn is_within(range: &Range<u64>, return_address: u64) -> bool {
    range.contains(&return_address.wrapping_sub(1))
}

fn mix(
    frames: &[u64],
    python: &[PythonFrame],
    runs: &Runs<'_>,
    own: &Range<u64>,
    mixed: &mut [MixedFrame],
) -> Mixed {
    let count = python.iter().filter(|frame| frame.is_entered_from_c()).count();
    // Frames after the last entry are a run whose end was cut off.
    let count = count + usize::from(python.last().is_some_and(|frame| !frame.is_entered_from_c()));
    let mut found = 0;
    for native in 0..frames.len() {
        found += usize::from(found < count && runs.is_loop(frames, native, found));
    }
    let mut out = Out { mixed, depth: 0 };
    if !runs.fits(frames, found, count) {
        out.push(frames.iter().map(|&frame| MixedFrame::Native(frame)));
        out.push(python.iter().map(|&frame| MixedFrame::Python(frame)));
        return out.done(Fit::Apart);
    }
    let (mut rest, mut run) = (python, 0);
    for (native, &frame) in frames.iter().enumerate() {
        if run < found && runs.is_loop(frames, native, run) {
            let length = rest.iter().position(PythonFrame::is_entered_from_c);
            let (of_run, others) = rest.split_at(length.map_or(rest.len(), |last| last + 1));
            out.push(of_run.iter().map(|&frame| MixedFrame::Python(frame)));
            (rest, run) = (others, run + 1);
        } else if run == found || !is_within(own, frame) {
            out.push([MixedFrame::Native(frame)]);
        }
    }
    out.push(rest.iter().map(|&frame| MixedFrame::Python(frame)));
    out.done(Fit::Joined)
}

struct Out<'a> {
    mixed: &'a mut [MixedFrame],
    /// Also counts frames that did not fit.
    depth: usize,
}

impl Out<'_> {
    fn push(&mut self, frames: impl IntoIterator<Item = MixedFrame>) {
        for frame in frames {
            if let Some(place) = self.mixed.get_mut(self.depth) {
                *place = frame;
            }
            self.depth += 1;
        }
    }

    fn done(self, fit: Fit) -> Mixed {
        Mixed {
            depth: self.depth.min(self.mixed.len()),
            fit,
            is_cut: self.depth > self.mixed.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MixedFrame::{Native, Python};
    use super::*;
    use crate::python::walk::Entered;

    fn python(code: u64, entered: Entered) -> PythonFrame {
        PythonFrame::new(code, 0, 0, entered)
    }

    /// Two runs: `a` and `b`, and `c`.
    fn frames() -> [PythonFrame; 3] {
        [
            python(0xa0, Entered::FromPython),
            python(0xb0, Entered::FromC),
            python(0xc0, Entered::FromC),
        ]
    }

    /// A library, the interpreter twice (the second is its loop), a library, the interpreter (its loop), the start.
    const NATIVE: [u64; 6] = [0x9001, 0x1001, 0x1101, 0x9002, 0x1102, 0x1301];
    const PLACES: [u64; 6] = [100, 200, 300, 400, 500, 600];
    const OWN: Range<u64> = 0x1000..0x2000;

    fn mixed(native: &[u64], runs: &Runs<'_>, own: &Range<u64>) -> (Vec<MixedFrame>, Mixed) {
        let mut room = [Native(0); 16];
        let mixed = mix(native, &frames(), runs, own, &mut room);
        (room[..mixed.depth].to_vec(), mixed)
    }

    fn joined() -> Vec<MixedFrame> {
        let [a, b, c] = frames().map(Python);
        vec![Native(0x9001), a, b, Native(0x9002), c, Native(0x1301)]
    }

    #[test]
    fn runs_stand_where_their_loops_are() {
        let runs = Runs::Placed {
            native: &PLACES,
            runs: &[340, 500],
        };
        let (frames, found) = mixed(&NATIVE, &runs, &OWN);
        assert_eq!((frames, found.fit, found.is_cut), (joined(), Fit::Joined, false));
        let (frames, _) = mixed(&NATIVE, &runs, &(0..0));
        assert_eq!(
            frames.len(),
            joined().len() + 1,
            "the interpreter's own frame stays"
        );
    }

    #[test]
    fn loops_are_found_by_address_when_they_leave_no_place() {
        let (frames, found) = mixed(&NATIVE, &Runs::Within(0x1100..0x1200), &OWN);
        assert_eq!((frames, found.fit), (joined(), Fit::Joined));
    }

    #[test]
    fn what_does_not_fit_stays_apart() {
        let both: Vec<_> = NATIVE
            .map(Native)
            .into_iter()
            .chain(frames().map(Python))
            .collect();
        let missing = Runs::Placed {
            native: &PLACES,
            runs: &[340],
        };
        let below = Runs::Placed {
            native: &PLACES,
            runs: &[40, 500],
        };
        let out_of_order = Runs::Placed {
            native: &PLACES,
            runs: &[500, 340],
        };
        let no_places = Runs::Placed {
            native: &[],
            runs: &[340, 500],
        };
        let moved_part = Runs::Within(0x1101..0x1102);
        for runs in [missing, below, out_of_order, no_places, moved_part] {
            let (frames, found) = mixed(&NATIVE, &runs, &OWN);
            assert_eq!((frames, found.fit), (both.clone(), Fit::Apart));
        }
    }

    #[test]
    fn runs_beyond_a_native_stack_that_was_cut_come_last() {
        let runs = Runs::Placed {
            native: &PLACES[..4],
            runs: &[340, 500],
        };
        let (frames, found) = mixed(&NATIVE[..4], &runs, &OWN);
        assert_eq!((frames, found.fit), (joined()[..5].to_vec(), Fit::Joined));
    }

    #[test]
    fn python_frames_that_were_cut_leave_the_rest_native() {
        let runs = Runs::Placed {
            native: &PLACES,
            runs: &[340, 500],
        };
        let mut room = [Native(0); 16];
        let found = mix(&NATIVE, &frames()[..1], &runs, &OWN, &mut room);
        let rest = [
            Native(0x9001),
            Python(frames()[0]),
            Native(0x9002),
            Native(0x1102),
            Native(0x1301),
        ];
        assert_eq!(room[..found.depth], rest);
    }

    #[test]
    fn a_stack_without_python_is_native() {
        let mut room = [Native(0); 4];
        let runs = Runs::Placed {
            native: &PLACES,
            runs: &[],
        };
        let found = mix(&NATIVE, &[], &runs, &OWN, &mut room);
        assert_eq!(room, [0x9001, 0x1001, 0x1101, 0x9002].map(Native));
        assert_eq!((found.depth, found.fit, found.is_cut), (4, Fit::Joined, true));
    }
}
