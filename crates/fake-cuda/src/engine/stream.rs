//! A stream: a queue of work and one thread that does it in order. The thread starts with the first piece of work.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::graph::Graph;
use super::ticket::Ticket;
use crate::clock;

/// How a stream stands to the legacy default stream of its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamRole {
    /// The default stream: waits for all blocking streams, and they for it.
    Legacy,
    Blocking,
    NonBlocking,
}

type Work = Box<dyn FnOnce() + Send>;

struct Piece {
    after: Vec<Ticket>,
    work: Work,
    done: Ticket,
}

pub(crate) struct Stream {
    /// The number in records.
    pub(crate) id: u32,
    pub(crate) context_id: u32,
    pub(crate) role: StreamRole,
    pub(crate) priority: i32,
    /// The graph that takes the stream's work while it is captured.
    capture: Mutex<Option<Arc<Graph>>>,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    pieces: VecDeque<Piece>,
    /// The end of what was queued last.
    tail: Option<Ticket>,
    has_thread: bool,
    is_closed: bool,
}

impl Stream {
    pub(crate) fn new(context_id: u32, role: StreamRole, priority: i32) -> Arc<Self> {
        Arc::new(Self {
            id: next_id(role),
            context_id,
            role,
            priority,
            capture: Mutex::new(None),
            queue: Mutex::new(Queue::default()),
            changed: Condvar::new(),
        })
    }

    /// The end of the last piece of work, if that is still to come.
    pub(crate) fn tail(&self) -> Option<Ticket> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.tail.clone().filter(|ticket| !ticket.is_done())
    }

    /// Queues work that starts when all of `after` and all earlier work has ended.
    pub(crate) fn push(self: &Arc<Self>, after: Vec<Ticket>, work: Work) -> Ticket {
        let done = Ticket::default();
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.tail = Some(done.clone());
        queue.pieces.push_back(Piece {
            after,
            work,
            done: done.clone(),
        });
        if !queue.has_thread {
            queue.has_thread = true;
            let stream = self.clone();
            std::thread::Builder::new()
                .name(format!("fake-stream-{}", self.id))
                .spawn(move || stream.work())
                .expect("a stream needs its thread");
        }
        drop(queue);
        self.changed.notify_one();
        done
    }

    /// The graph that takes the stream's work, if one does.
    pub(crate) fn captured_by(&self) -> Option<Arc<Graph>> {
        self.capture
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn is_capturing(&self) -> bool {
        self.captured_by().is_some()
    }

    /// Lets a graph take the stream's work, or no longer; returns the one that did before.
    pub(crate) fn set_capture(&self, graph: Option<Arc<Graph>>) -> Option<Arc<Graph>> {
        let mut capture = self.capture.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *capture, graph)
    }

    pub(crate) fn wait(&self) {
        if let Some(ticket) = self.tail() {
            ticket.wait();
        }
    }

    /// Ends the thread once all work is done.
    pub(crate) fn close(&self) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.is_closed = true;
        self.changed.notify_one();
    }

    fn work(&self) {
        while let Some(piece) = self.next_piece() {
            for ticket in &piece.after {
                ticket.wait();
            }
            (piece.work)();
            piece.done.set_done(clock::now());
        }
    }

    fn next_piece(&self) -> Option<Piece> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(piece) = queue.pieces.pop_front() {
                return Some(piece);
            }
            if queue.is_closed {
                return None;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Streams that the driver makes for itself in each context: the default stream is the second of them.
const OWN_STREAMS: u32 = 7;

/// As seen on an H200: a context takes seven numbers, of which the second is the default stream's. In a process with one
/// context that stream is 7, and streams that the program makes count from 13.
fn next_id(role: StreamRole) -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(6);
    match role {
        StreamRole::Legacy => NEXT.fetch_add(OWN_STREAMS, Ordering::Relaxed) + 1,
        StreamRole::Blocking | StreamRole::NonBlocking => NEXT.fetch_add(1, Ordering::Relaxed),
    }
}
