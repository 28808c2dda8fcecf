//! Contexts: a device, its streams, and the order between the default stream and the others.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::device::Device;
use super::registry::{Handle, Registry};
use super::stream::{Stream, StreamRole};
use super::ticket::Ticket;
use crate::code::Code;
use crate::kept::{Kept, KeptKey};

pub(crate) static CONTEXTS: Registry<Context> = Registry::new();
pub(crate) static STREAMS: Registry<Stream> = Registry::new();

pub(crate) struct Context {
    /// The number in records.
    pub(crate) id: u32,
    pub(crate) device: Device,
    pub(crate) legacy: Arc<Stream>,
    /// Streams that the program made.
    streams: RwLock<Vec<Arc<Stream>>>,
    /// Held while work is queued, so that "all work before this" means the same to all threads.
    order: Mutex<()>,
    /// The first failure of a kernel; every later call answers it, as on a GPU.
    error: AtomicU32,
}

thread_local! {
    static CURRENT: Kept<Vec<Arc<Context>>> = const { Kept::new(Vec::new()) };
    static PER_THREAD: Kept<HashMap<u32, Arc<Stream>>> = Kept::new(HashMap::new());
}

impl Context {
    pub(crate) fn create(device: Device) -> Arc<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let context = Arc::new(Self {
            id,
            device,
            legacy: Stream::new(id, StreamRole::Legacy, 0),
            streams: RwLock::default(),
            order: Mutex::default(),
            error: AtomicU32::new(0),
        });
        CONTEXTS.add(context.clone());
        context
    }

    pub(crate) fn handle(self: &Arc<Self>) -> Handle {
        Registry::handle_of(self)
    }

    pub(crate) fn by_id(id: u32) -> Result<Arc<Self>, Code> {
        CONTEXTS
            .find(|context| context.id == id)
            .ok_or(Code::CONTEXT_IS_DESTROYED)
    }

    pub(crate) fn add_stream(&self, role: StreamRole, priority: i32) -> Arc<Stream> {
        let stream = Stream::new(self.id, role, priority);
        STREAMS.add(stream.clone());
        self.streams_mut(|streams| streams.push(stream.clone()));
        stream
    }

    pub(crate) fn remove_stream(&self, stream: &Arc<Stream>) {
        self.streams_mut(|streams| streams.retain(|other| !Arc::ptr_eq(other, stream)));
        stream.close();
    }

    /// All streams, the default one first.
    pub(crate) fn streams(&self) -> Vec<Arc<Stream>> {
        let made = self.streams.read().unwrap_or_else(PoisonError::into_inner);
        std::iter::once(&self.legacy)
            .chain(made.iter())
            .cloned()
            .collect()
    }

    /// Queues work in a stream, after what that stream and the default stream's rules say.
    pub(crate) fn submit(
        self: &Arc<Self>,
        stream: &Arc<Stream>,
        mut after: Vec<Ticket>,
        work: impl FnOnce() -> Result<(), Code> + Send + 'static,
    ) -> Ticket {
        let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        match stream.role {
            StreamRole::Legacy => {
                let made = self.streams.read().unwrap_or_else(PoisonError::into_inner);
                let blocking = made.iter().filter(|other| other.role == StreamRole::Blocking);
                after.extend(blocking.filter_map(|other| other.tail()));
            }
            StreamRole::Blocking => after.extend(self.legacy.tail()),
            StreamRole::NonBlocking => {}
        }
        let context = self.clone();
        stream.push(
            after,
            Box::new(move || {
                if let Err(code) = work() {
                    context.fail(code);
                }
            }),
        )
    }

    /// Waits for all work of all streams.
    pub(crate) fn wait(&self) {
        for stream in self.streams() {
            stream.wait();
        }
    }

    pub(crate) fn check(&self) -> Result<(), Code> {
        match self.error.load(Ordering::Acquire) {
            0 => Ok(()),
            code => Err(Code(code)),
        }
    }

    fn fail(&self, code: Code) {
        // Only the first failure counts; that another one was first is no error.
        let _ = self
            .error
            .compare_exchange(0, code.0, Ordering::AcqRel, Ordering::Acquire);
    }

    fn streams_mut<R>(&self, change: impl FnOnce(&mut Vec<Arc<Stream>>) -> R) -> R {
        change(&mut self.streams.write().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The context that is current to this thread.
pub(crate) fn current() -> Result<Arc<Context>, Code> {
    current_or_none().ok_or(Code::INVALID_CONTEXT)
}

pub(crate) fn current_or_none() -> Option<Arc<Context>> {
    CURRENT.with_borrow(|stack| stack.last().cloned())
}

pub(crate) fn push_current(context: Arc<Context>) {
    CURRENT.with_borrow_mut(|stack| stack.push(context));
}

pub(crate) fn pop_current() -> Option<Arc<Context>> {
    CURRENT.with_borrow_mut(Vec::pop)
}

/// Drops a destroyed context from this thread's stack.
pub(crate) fn forget_current(context: &Arc<Context>) {
    CURRENT.with_borrow_mut(|stack| stack.retain(|other| !Arc::ptr_eq(other, context)));
}

/// A stream by its handle in C: null and 1 are the default stream, 2 is the thread's own.
pub(crate) fn stream_by_handle(handle: Handle) -> Result<(Arc<Context>, Arc<Stream>), Code> {
    match handle {
        0 | 1 => {
            let context = current()?;
            let stream = context.legacy.clone();
            Ok((context, stream))
        }
        2 => {
            let context = current()?;
            let stream = PER_THREAD.with_borrow_mut(|streams| {
                let made = || context.add_stream(StreamRole::Blocking, 0);
                streams.entry(context.id).or_insert_with(made).clone()
            });
            Ok((context, stream))
        }
        _ => {
            let stream = STREAMS.get(handle)?;
            Ok((Context::by_id(stream.context_id)?, stream))
        }
    }
}
