//! The one client that CUPTI sees.
//!
//! CUPTI serves one client of its usual interface: a second client that
//! registers buffers silently takes the first one's records away. So TraceSmith
//! is that client, and serves two users: itself, and a profiler in the program
//! ([`in_process_client`]). An activity kind or a callback is on while either of
//! them needs it. TraceSmith reads each record and copies it for the program's
//! profiler if that has enabled its kind.
//!
//! - [`callbacks`]: switching callbacks on and off, and calling those who need them.
//! - [`kinds`]: activity kinds.
//! - [`reasons`]: why each callback is on.
//! - [`records`]: buffers that CUPTI requests and returns.

mod callbacks;
mod kinds;
mod reasons;
mod records;

use std::{
    ptr,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering},
    },
};

use reasons::Reasons;
use tracesmith_cuda::{
    Error,
    cupti::{
        Cupti, Subscriber, Switch,
        abi::kind,
        callback_switches::{self, CallbackSwitches},
    },
};

pub(in crate::cuda) use callbacks::CallbackId;
pub(in crate::cuda) use reasons::Reason;

use crate::{
    agent,
    cuda::{
        buffers,
        client_selection::ClientSelection,
        earlier::{self, Exchange, Subscription},
        in_process_client,
        kinds::number_of,
        lookup, tables,
    },
    guard::lock,
};

static CURRENT: AtomicPtr<CuptiMultiplexer> = AtomicPtr::new(ptr::null_mut());
static OPENING: Mutex<()> = Mutex::new(());

/// How many threads of this process are opening CUPTI. They are counted before they lock [`OPENING`]: in the child of a
/// fork, the lock may be held by a thread that is missing there.
static OPENERS: AtomicU32 = AtomicU32::new(0);

/// Whether the process that this one is a fork of has opened CUPTI, or was opening it.
static IS_OF_PARENT: AtomicBool = AtomicBool::new(false);

/// A user of CUPTI in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cuda) enum Client {
    /// TraceSmith itself.
    TraceSmith = 0,
    /// A profiler in the program.
    InProcess = 1,
}

/// CUPTI, shared.
pub(in crate::cuda) struct CuptiMultiplexer {
    cupti: Cupti,
    state: Mutex<State>,
    /// Which callbacks of calls are on.
    switches: CallbackSwitches<Subscriber>,
    /// Kinds whose records TraceSmith keeps.
    accepted: [AtomicBool; kind::COUNT],
    /// TraceSmith keeps no records that began earlier, on CUPTI's clock: buffers
    /// that were filled for the other client come back later.
    since: AtomicU64,
    /// Why each callback is on.
    reasons: Reasons,
}

#[derive(Default)]
struct State {
    registered: bool,
    selections: [ClientSelection; 2],
}

/// The multiplexer, if CUPTI was opened.
#[inline]
pub(in crate::cuda) fn current() -> Option<&'static CuptiMultiplexer> {
    // SAFETY: null, or a box that was leaked.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// In the child of a fork there is none.
pub(in crate::cuda) fn forget() {
    let parents = CURRENT.swap(ptr::null_mut(), Ordering::AcqRel);
    if !parents.is_null() || OPENERS.load(Ordering::Acquire) > 0 {
        IS_OF_PARENT.store(true, Ordering::Release);
    }
}

/// Whether CUPTI is that of the process that this one is a fork of. It must not be opened again: its threads are missing here,
/// and its functions are found at our interposed ones, which would wait for themselves.
pub(in crate::cuda) fn is_of_parent() -> bool {
    IS_OF_PARENT.load(Ordering::Acquire)
}

impl CuptiMultiplexer {
    /// The multiplexer. Opens CUPTI if that was not done yet.
    pub(in crate::cuda) fn open() -> Result<&'static Self, Error> {
        if let Some(multiplexer) = current() {
            return Ok(multiplexer);
        }
        OPENERS.fetch_add(1, Ordering::AcqRel);
        let opened = Self::open_once();
        OPENERS.fetch_sub(1, Ordering::AcqRel);
        opened
    }

    fn open_once() -> Result<&'static Self, Error> {
        let _one_at_a_time = lock(&OPENING);
        if let Some(multiplexer) = current() {
            return Ok(multiplexer);
        }
        let multiplexer = Box::leak(Box::new(Self {
            cupti: lookup::for_ourselves(Cupti::open)?,
            state: Mutex::default(),
            switches: CallbackSwitches::default(),
            accepted: [const { AtomicBool::new(false) }; kind::COUNT],
            since: AtomicU64::new(0),
            reasons: Reasons::default(),
        }));
        CURRENT.store(multiplexer, Ordering::Release);
        agent::close_at_exit();
        Ok(multiplexer)
    }

    pub(in crate::cuda) fn cupti(&self) -> &Cupti {
        &self.cupti
    }

    /// Becomes CUPTI's client, unless it is so already.
    pub(in crate::cuda) fn attach(&self) -> Result<(), Error> {
        let mut adopted = None;
        let attached = self.attach_and_register(&mut adopted);
        for callback in adopted
            .iter()
            .flat_map(|subscription: &Subscription| &subscription.enabled)
        {
            // It was on, so it can be on.
            let _ = self.set_reason(Reason::InProcessClient, *callback, Switch::On);
        }
        attached
    }

    fn attach_and_register(&self, adopted: &mut Option<Subscription>) -> Result<(), Error> {
        let mut state = lock(&self.state);
        let mut is_taken_over = false;
        self.switches.attach(|| {
            let exchange = Exchange {
                subscribe: || self.subscribe(),
                unsubscribe: |subscriber| self.unsubscribe(subscriber),
                unsubscribe_anothers: |subscriber| {
                    let unsubscribe = || self.cupti.unsubscribe(subscriber);
                    tables::ending_anothers(self.cupti.subscribing(), unsubscribe)
                },
            };
            let (subscriber, earlier) = earlier::take_over(self, &exchange)?;
            is_taken_over = true;
            *adopted = earlier;
            Ok(subscriber)
        })?;
        if !state.registered {
            buffers::fill();
            // One buffer for all threads: as fast, and bounded. Older ones have
            // no other way and refuse.
            let _ = self.cupti.set_buffer_per_thread(Switch::Off);
            // They are cleared when they come back: see `buffers`.
            let _ = self.cupti.promise_zeroed_buffers();
            // Without it threads are named by their handles.
            let _ = self.cupti.use_system_thread_ids();
            // SAFETY: the two functions below keep the contract.
            if let Err(error) = unsafe {
                self.cupti
                    .register_buffers(records::requested, records::completed)
            } {
                // A client without buffers is of no use to us, and in the way of others. The other side has none either:
                // its buffers are these.
                self.release_now();
                return Err(error);
            }
            state.registered = true;
        }
        drop(state);
        if is_taken_over {
            in_process_client::lend_one();
        }
        Ok(())
    }

    fn subscribe(&self) -> Result<Subscriber, Error> {
        // SAFETY: catches its panics, and calls only what is allowed there.
        let subscribe = || unsafe { self.cupti.subscribe(callbacks::callback) };
        tables::with_preallocated_tables(self.cupti.subscribing(), subscribe)
    }

    /// Becomes CUPTI's client and leaves it again, unless it is its client already.
    pub(in crate::cuda) fn subscribe_once(&self) {
        let _one_at_a_time = lock(&self.state);
        if self.switches.handle().is_some() {
            return;
        }
        // An earlier profiler that subscribed just then would be refused.
        let _ = earlier::undisturbed(|| {
            if let Ok(subscriber) = self.subscribe() {
                self.unsubscribe(subscriber);
            }
        });
    }

    /// Whether the program's profiler has nothing enabled.
    pub(in crate::cuda) fn is_ours_alone(&self) -> bool {
        let state = lock(&self.state);
        let selection = &state.selections[Client::InProcess as usize];
        !selection.kinds.iter().any(|wanted| *wanted)
            && selection.single.is_empty()
            && !in_process_client::is_subscribed()
    }

    /// Ends the subscription, some time after the last thread has left a call whose
    /// callback is on. Buffers stay registered, and come back.
    pub(in crate::cuda) fn release(&self) {
        self.switches.leave();
    }

    /// Ends the subscription now: another client comes.
    pub(in crate::cuda) fn release_now(&self) {
        self.switches.leave_now(|subscriber| self.unsubscribe(subscriber));
    }

    fn unsubscribe(&self, subscriber: Subscriber) {
        let unsubscribe = || self.cupti.unsubscribe(subscriber);
        // The next client gets CUPTI's error.
        let _ = tables::ending(self.cupti.subscribing(), unsubscribe);
    }

    /// Whether no callback is on that nobody needs.
    pub(in crate::cuda) fn is_settled(&self) -> bool {
        self.switches.is_settled()
    }

    /// Switches off the callbacks that had to stay on because a thread was in a call.
    pub(in crate::cuda) fn settle(&self) {
        self.switches.settle(
            callback_switches::is_any_within,
            |subscriber, (which, id)| {
                // It was on, so it can be off.
                let _ = self
                    .cupti
                    .enable_callback(subscriber, number_of(which), id, Switch::Off);
            },
            |subscriber| self.unsubscribe(subscriber),
        );
    }

    /// Whether there are such callbacks.
    pub(in crate::cuda) fn is_waiting(&self) -> bool {
        self.switches.is_waiting()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether CUPTI is that of the parent, in the child of a fork.
    fn is_of_parent_after_fork() -> bool {
        // SAFETY: the child only uses atomics, and leaves by `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            forget();
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(is_of_parent())) };
        }
        let mut status = 0;
        // SAFETY: waits for the child, and writes one word.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(waited, child);
        libc::WEXITSTATUS(status) == 1
    }

    #[test]
    fn a_fork_while_a_thread_opens_cupti_does_not_wait_for_that_thread() {
        assert!(!is_of_parent_after_fork());
        OPENERS.fetch_add(1, Ordering::AcqRel);
        let is_of_parent = is_of_parent_after_fork();
        OPENERS.fetch_sub(1, Ordering::AcqRel);
        assert!(is_of_parent);
    }
}
