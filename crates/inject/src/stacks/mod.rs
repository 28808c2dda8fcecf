//! Who made this call: the stack of every launch.
//!
//! A callback at the entry of a call takes the stack, finds its number and
//! leaves it in a table under the call's correlation. When CUPTI hands out the
//! records of the call, the number is found there and travels in them. So a
//! launch costs a walk, a hash and one store; only a stack that is new is told,
//! as a definition.

use std::{
    cell::RefCell,
    collections::HashMap,
    sync::{
        Mutex, OnceLock, TryLockError,
        atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering},
    },
};

use tracesmith_stacks::{Image, Images, Interned, Seen, StackEnd, Walk, Walker};
use tracesmith_wire::record::{self, IntoBytes};

use crate::{
    clock,
    guard::lock,
    sink::{Cause, Sink},
};

/// The most frames of a stack: the innermost ones.
const MOST_FRAMES: usize = 256;

/// Images that a walk may meet for the first time before it is given up.
const MOST_STRANGERS: usize = 16;

/// Calls whose records may be under way at once: some tenths of a second at the
/// rate of the fastest launches.
const JOINS: usize = 1 << 18;

/// Threads that may take stacks: what they keep for it is some hundred KiB each.
const MOST_THREADS: u32 = 128;

/// The stacks of this process.
#[derive(Default)]
pub(crate) struct Stacks {
    on: AtomicBool,
    /// Numbers windows: a stack is told once in each.
    window: AtomicU64,
    /// Null, or a list that is never freed: a walk may be reading it.
    images: AtomicPtr<Images>,
    /// Held by whoever changes the list; the addresses of images that were told.
    told: Mutex<Vec<(u64, u64)>>,
    /// By the low bits of a correlation: the correlation, and the stack below.
    joins: OnceLock<Box<[AtomicU64]>>,
    last_stack: AtomicU32,
    /// The stacks of graph nodes, by their number.
    nodes: Mutex<HashMap<u64, u32>>,
    threads: AtomicU32,
    refused: AtomicU64,
    broken: AtomicU64,
}

/// What a thread keeps.
struct Taker {
    walker: Walker,
    interned: Interned,
    window: u64,
    frames: [u64; MOST_FRAMES],
}

thread_local! {
    static TAKER: RefCell<Option<Box<Taker>>> = const { RefCell::new(None) };
}

impl Stacks {
    /// Stacks are wanted from now on.
    pub(crate) fn begin(&self, sink: &Sink) {
        self.joins
            .get_or_init(|| (0..JOINS).map(|_| AtomicU64::new(0)).collect());
        self.window.fetch_add(1, Ordering::Relaxed);
        let mut told = lock(&self.told);
        told.clear();
        self.publish(Images::learn(self.images()), &mut told, sink);
        drop(told);
        self.on.store(true, Ordering::Release);
    }

    /// No more, and what went wrong.
    pub(crate) fn end(&self, sink: &Sink) {
        if !self.on.swap(false, Ordering::AcqRel) {
            return;
        }
        let refused = self.refused.swap(0, Ordering::Relaxed);
        if refused > 0 {
            let words = format!("{refused} calls have no stack: too many threads make some");
            sink.note(Cause::Other, &words);
        }
        let broken = self.broken.swap(0, Ordering::Relaxed);
        if broken > 0 {
            let words = format!("{broken} stacks end at a frame that could not be left");
            sink.note(Cause::Other, &words);
        }
    }

    /// Libraries that were loaded since are learned, and told.
    pub(crate) fn pulse(&self, sink: &Sink) {
        if self.on.load(Ordering::Acquire) {
            let mut told = lock(&self.told);
            self.publish(Images::learn(self.images()), &mut told, sink);
        }
    }

    /// The calling thread is about to make a call: keeps its stack for the
    /// call's records.
    #[inline]
    pub(crate) fn take(&self, sink: &Sink, correlation: u32) {
        if !self.on.load(Ordering::Acquire) {
            return;
        }
        let stack = self.current(sink);
        if let Some(join) = self.joins.get().and_then(|joins| joins.get(slot(correlation))) {
            join.store(u64::from(correlation) << 32 | u64::from(stack), Ordering::Release);
        }
    }

    /// The stack of the call with this correlation; 0 is none.
    #[inline]
    pub(crate) fn of_call(&self, correlation: u32) -> u32 {
        let join = self.joins.get().and_then(|joins| joins.get(slot(correlation)));
        match join.map(|join| join.load(Ordering::Acquire)) {
            Some(joined) if joined >> 32 == u64::from(correlation) => joined as u32,
            _ => 0,
        }
    }

    /// The stack behind device work: that which made its graph node, or else
    /// that of the call; 0 is none.
    #[inline]
    pub(crate) fn of_work(&self, correlation: u32, node: u64) -> u32 {
        if node != 0
            && let Some(&stack) = lock(&self.nodes).get(&node)
        {
            return stack;
        }
        self.of_call(correlation)
    }

    /// The calling thread makes a graph node: keeps its stack for the node's
    /// executions.
    pub(crate) fn take_for_node(&self, sink: &Sink, node: u64) {
        if self.on.load(Ordering::Acquire) {
            let stack = self.current(sink);
            lock(&self.nodes).insert(node, stack);
        }
    }

    /// A graph node is a copy of another.
    pub(crate) fn copy_node(&self, original: u64, node: u64) {
        let mut nodes = lock(&self.nodes);
        if let Some(&stack) = nodes.get(&original) {
            nodes.insert(node, stack);
        }
    }

    /// A graph node is gone.
    pub(crate) fn forget_node(&self, node: u64) {
        lock(&self.nodes).remove(&node);
    }

    fn images(&self) -> Option<&'static Images> {
        // SAFETY: null, or a box that was leaked.
        unsafe { self.images.load(Ordering::Acquire).as_ref() }
    }

    /// The number of the calling thread's stack; 0 is none.
    fn current(&self, sink: &Sink) -> u32 {
        // A thread that is being torn down has no stack worth a name, and one
        // that is in here already is called by itself.
        TAKER
            .try_with(|taker| {
                let mut taker = taker.try_borrow_mut().ok()?;
                if taker.is_none() {
                    *taker = self.new_taker();
                }
                Some(self.walk(taker.as_mut()?, sink))
            })
            .ok()
            .flatten()
            .unwrap_or(0)
    }

    #[cold]
    fn new_taker(&self) -> Option<Box<Taker>> {
        if self.threads.fetch_add(1, Ordering::Relaxed) >= MOST_THREADS {
            self.threads.fetch_sub(1, Ordering::Relaxed);
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(Box::new(Taker {
            walker: Walker::of_this_thread(),
            interned: Interned::default(),
            window: 0,
            frames: [0; MOST_FRAMES],
        }))
    }

    fn walk(&self, taker: &mut Taker, sink: &Sink) -> u32 {
        let Some(mut images) = self.images() else {
            return 0;
        };
        let window = self.window.load(Ordering::Relaxed);
        if taker.window != window {
            taker.window = window;
            taker.interned.clear();
        }
        let mut walk = taker.walker.walk(images, &mut taker.frames);
        for _ in 0..MOST_STRANGERS {
            let Some(known) = walk.stranger.and_then(|stranger| self.meet(stranger, sink)) else {
                break;
            };
            images = known;
            walk = taker.walker.walk(images, &mut taker.frames);
        }
        let frames = &taker.frames[..walk.depth];
        let fresh = || self.last_stack.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        match taker.interned.find(frames, fresh) {
            Seen::Before(stack) => stack,
            Seen::First(stack) => {
                self.tell(stack, frames, walk, sink);
                stack
            }
        }
    }

    #[cold]
    fn tell(&self, stack: u32, frames: &[u64], walk: Walk, sink: &Sink) {
        let end = match walk.end {
            StackEnd::Root => 0,
            StackEnd::Limit => 1,
            StackEnd::Broken => {
                self.broken.fetch_add(1, Ordering::Relaxed);
                2
            }
        };
        sink.define_with(&record::Stack { stack, end }, frames.as_bytes());
    }

    /// An address on the stack that no known image has.
    #[cold]
    fn meet(&self, stranger: u64, sink: &Sink) -> Option<&'static Images> {
        // Someone else is learning just now, or code made at run time: such
        // belongs to no image, and asking again would be for nothing.
        let mut told = match self.told.try_lock() {
            Ok(told) => told,
            Err(TryLockError::Poisoned(told)) => told.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let images = self.images()?;
        if images.find(stranger).is_none() {
            self.publish(images.learn_at(stranger)?, &mut told, sink);
        }
        self.images()
    }

    fn publish(&self, images: Images, told: &mut Vec<(u64, u64)>, sink: &Sink) {
        let same = self.images().is_some_and(|known| known.is_same_as(&images));
        let images = match self.images().filter(|_| same) {
            Some(known) => known,
            None => {
                let leaked = Box::leak(Box::new(images));
                self.images.store(leaked, Ordering::Release);
                leaked
            }
        };
        for image in images.iter() {
            let place = (image.start, image.end);
            if !told.contains(&place) {
                told.push(place);
                tell_image(image, sink);
            }
        }
    }
}

fn tell_image(image: &Image, sink: &Sink) {
    let path = if image.path.is_empty() {
        std::env::current_exe().map_or_else(|_| Vec::new(), |path| path.into_os_string().into_encoded_bytes())
    } else {
        image.path.to_bytes().to_vec()
    };
    let mut text = image.build_id.clone();
    text.extend_from_slice(&path);
    sink.define_with(
        &record::Image {
            address: image.start,
            size: image.end - image.start,
            file_offset: 0,
            bias: image.bias,
            time: clock::now(),
            build_id_bytes: u32::try_from(image.build_id.len()).unwrap_or(0),
            reserved: 0,
        },
        &text,
    );
}

#[inline]
fn slot(correlation: u32) -> usize {
    correlation as usize % JOINS
}

/// The child of a fork begins anew: its thread's own things hold locks of
/// nobody, but numbers of another process.
pub(crate) fn forked() {
    let _ = TAKER.try_with(|taker| {
        if let Ok(mut taker) = taker.try_borrow_mut() {
            *taker = None;
        }
    });
}

impl std::fmt::Debug for Stacks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stacks")
            .field("on", &self.on)
            .finish_non_exhaustive()
    }
}
