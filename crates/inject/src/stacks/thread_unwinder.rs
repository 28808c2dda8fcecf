//! What a thread keeps to take its stacks.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use tracesmith_stacks::{
    Fit, Images, Interned, InterpreterFrames, MixedFrame, NativeStack, PythonEnd, PythonFrame, PythonWalk,
    PythonWalker, Seen, StackEnd, Walk, Walker,
};
use tracesmith_wire::record::{self, IntoBytes};

use super::{
    Stacks, TIMED,
    python::{Interpreter, SeenCodeObjects},
};
use crate::{clock, sink::Sink};

/// The most frames of either kind: the innermost ones.
const MOST_FRAMES: usize = 256;

/// Images that a walk may meet for the first time before it is given up.
const MOST_STRANGERS: usize = 16;

/// Threads that may take stacks at once: what they keep for it is some 200 KiB
/// each.
const MOST_THREADS: u32 = 64;

static THREADS: AtomicU32 = AtomicU32::new(0);

struct ThreadUnwinder {
    walker: Walker,
    python: Option<PythonWalker>,
    interned: Interned,
    met: SeenCodeObjects,
    /// The window and the generation of images that both of them are of.
    epoch: (u64, u32),
    /// Stacks so far.
    taken: u32,
    /// What tells a stack from others: return addresses, and two words for each
    /// Python frame behind them.
    words: [u64; 3 * MOST_FRAMES],
    places: [u64; MOST_FRAMES],
    python_frames: [PythonFrame; MOST_FRAMES],
    mixed: [MixedFrame; 2 * MOST_FRAMES],
}

/// With what its walker and its stacks keep, some 200 KiB.
const _: () = assert!(size_of::<ThreadUnwinder>() < 48 << 10);

thread_local! {
    static UNWINDER: RefCell<Option<Box<ThreadUnwinder>>> = const { RefCell::new(None) };
}

/// The number of the calling thread's stack; 0 is none.
#[inline]
pub(super) fn take(stacks: &Stacks, sink: &Sink) -> u32 {
    // A thread that is being torn down has no stack worth a name, and one that is
    // in here already was interrupted by a signal whose handler calls CUDA.
    UNWINDER
        .try_with(|unwinder| {
            let mut unwinder = unwinder.try_borrow_mut().ok()?;
            if unwinder.is_none() {
                *unwinder = ThreadUnwinder::of_this_thread(stacks);
            }
            unwinder.as_mut()?.take_timed(stacks, sink)
        })
        .ok()
        .flatten()
        .unwrap_or(0)
}

/// The child of a fork begins anew: the numbers that its thread knows are those
/// of another process.
pub(crate) fn forked() {
    THREADS.store(0, Ordering::Relaxed);
    // A thread without one, or one that forks while it takes a stack.
    let _ = UNWINDER.try_with(|unwinder| {
        if let Ok(mut unwinder) = unwinder.try_borrow_mut() {
            // Its drop counts a thread that this process does not have.
            std::mem::forget(unwinder.take());
        }
    });
}

/// What came of walking both kinds of frames.
struct Walks {
    native: Walk,
    python: PythonWalk,
}

impl ThreadUnwinder {
    #[cold]
    fn of_this_thread(stacks: &Stacks) -> Option<Box<Self>> {
        if THREADS.fetch_add(1, Ordering::Relaxed) >= MOST_THREADS {
            THREADS.fetch_sub(1, Ordering::Relaxed);
            stacks.doubts.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(Box::new(Self {
            walker: Walker::of_this_thread(),
            python: None,
            interned: Interned::default(),
            met: SeenCodeObjects::default(),
            epoch: (0, 0),
            taken: 0,
            words: [0; 3 * MOST_FRAMES],
            places: [0; MOST_FRAMES],
            python_frames: [PythonFrame::default(); MOST_FRAMES],
            mixed: [MixedFrame::Native(0); 2 * MOST_FRAMES],
        }))
    }

    /// Takes it, and now and then the time that it takes: what we cost a program
    /// is in its trace.
    #[inline]
    fn take_timed(&mut self, stacks: &Stacks, sink: &Sink) -> Option<u32> {
        self.taken = self.taken.wrapping_add(1);
        let start = self.taken.is_multiple_of(TIMED).then(clock::now);
        let seen = self.take(stacks, sink)?;
        // A stack that is new costs far more, once.
        if let (Some(start), Seen::Before(_)) = (start, &seen) {
            let nanos = clock::now().saturating_sub(start);
            stacks.cost.timed.fetch_add(1, Ordering::Relaxed);
            stacks.cost.nanos.fetch_add(nanos, Ordering::Relaxed);
        }
        let (Seen::Before(stack) | Seen::First(stack)) = seen;
        Some(stack)
    }

    #[inline]
    fn take(&mut self, stacks: &Stacks, sink: &Sink) -> Option<Seen> {
        let images = stacks.images.list()?;
        self.follow(stacks, images);
        let mut walks = self.walk(images);
        for _ in 0..MOST_STRANGERS {
            let Some(images) = walks
                .native
                .stranger
                .and_then(|stranger| stacks.images.add_image_at(stranger, sink))
            else {
                break;
            };
            self.follow(stacks, images);
            walks = self.walk(images);
        }
        let mut seen = self.find(stacks, &walks);
        if let Seen::First(_) = seen
            && let Some(images) = stacks
                .images
                .refresh_replaced_image(&self.words[..walks.native.depth], sink)
        {
            self.follow(stacks, images);
            walks = self.walk(images);
            seen = self.find(stacks, &walks);
        }
        if let Seen::First(stack) = seen {
            self.send(stack, &walks, stacks, sink);
        }
        Some(seen)
    }

    /// Forgets what was learned in another window, or of images that have gone.
    #[inline]
    fn follow(&mut self, stacks: &Stacks, images: &Images) {
        let epoch = (stacks.window.load(Ordering::Relaxed), images.generation());
        if self.epoch != epoch {
            self.epoch = epoch;
            self.interned.clear();
            self.met.clear();
        }
        match stacks.interpreter.wanted() {
            None => self.python = None,
            Some(_) if self.python.is_some() => {}
            Some(python) => self.python = Some(PythonWalker::of_this_thread(Arc::clone(python))),
        }
    }

    /// Both kinds of frames, into `words`.
    #[inline]
    fn walk(&mut self, images: &Images) -> Walks {
        let Some(python) = &mut self.python else {
            return Walks {
                native: self.walker.walk(images, &mut self.words[..MOST_FRAMES]),
                python: PythonWalk {
                    depth: 0,
                    end: PythonEnd::Root,
                },
            };
        };
        let native = self
            .walker
            .walk_placed(images, &mut self.words[..MOST_FRAMES], &mut self.places);
        let python = python.walk(&mut self.python_frames);
        let behind = self.words[native.depth..].chunks_exact_mut(2);
        for (words, frame) in behind.zip(&self.python_frames[..python.depth]) {
            words.copy_from_slice(&frame.words());
        }
        Walks { native, python }
    }

    #[inline]
    fn find(&mut self, stacks: &Stacks, walks: &Walks) -> Seen {
        let python = &self.words[walks.native.depth..][..2 * walks.python.depth];
        let hash = if python.is_empty() {
            walks.native.hash
        } else {
            walks.native.hash.and(python)
        };
        self.interned.find(hash, || stacks.number())
    }

    #[cold]
    fn send(&mut self, stack: u32, walks: &Walks, stacks: &Stacks, sink: &Sink) {
        let mut end = walks.native.end;
        let native = &self.words[..walks.native.depth];
        let words = match &mut self.python {
            Some(python) if walks.python.depth > 0 => {
                let mut run_places = [0; MOST_FRAMES];
                let runs = python.run_places(&mut run_places);
                let native = NativeStack {
                    frames: native,
                    places: &self.places[..walks.native.depth],
                };
                let mixed = python.python().mix(
                    native,
                    &self.python_frames[..walks.python.depth],
                    &run_places[..runs],
                    InterpreterFrames::LeftOut,
                    &mut self.mixed,
                );
                if mixed.fit == Fit::Apart {
                    stacks.doubts.apart.fetch_add(1, Ordering::Relaxed);
                }
                if mixed.is_cut || walks.python.end == PythonEnd::Limit {
                    end = StackEnd::Limit;
                }
                let frames = &self.mixed[..mixed.depth];
                encode_frames(frames, &mut self.met, python, &stacks.interpreter, sink)
            }
            _ => native.to_vec(),
        };
        let end = match end {
            StackEnd::Root => 0,
            StackEnd::Limit => 1,
            StackEnd::Broken => {
                stacks.doubts.broken.fetch_add(1, Ordering::Relaxed);
                2
            }
        };
        sink.define_with(&record::Stack { stack, end }, words.as_bytes());
    }
}

impl Drop for ThreadUnwinder {
    fn drop(&mut self) {
        THREADS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Frames as they travel; code that is new is told.
fn encode_frames(
    frames: &[MixedFrame],
    met: &mut SeenCodeObjects,
    walker: &PythonWalker,
    interpreter: &Interpreter,
    sink: &Sink,
) -> Vec<u64> {
    let words = frames.iter().map(|frame| match frame {
        MixedFrame::Native(address) => *address,
        MixedFrame::Python(frame) => met.word(frame, walker.python(), interpreter, sink),
    });
    words.collect()
}
