//! A profiler that used CUPTI before this library was loaded.
//!
//! Where we are loaded into a running process (`tracesmith.profile` in Python, for one), torch.profiler may have run in
//! it. Its library was bound to libcupti then. From now on its calls come to us ([`imports::redirect`]), and we hand
//! them on: CUPTI is *its* until our first window opens. Then, if it is idle, CUPTI becomes ours ([`take_over`]): what it
//! has registered is ended, and the [`multiplexer`](super::multiplexer) serves it from there on, as it serves a profiler
//! that came after us.
//!
//! CUPTI (before 13.3) answers neither who has subscribed nor which kinds are enabled. Both are read from its memory
//! ([`state`]), and believed only if CUPTI's own functions agree. Whatever cannot be found out leaves CUPTI to the
//! profiler, and the window says why it has no GPU work.
//!
//! A client that keeps addresses that `dlsym` gave it is not reached by this, and is not taken over.

mod memory;
mod state;

use std::{
    cell::Cell,
    ffi::c_void,
    ops::Range,
    sync::{
        Mutex, Once,
        atomic::{AtomicPtr, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use tracesmith_cuda::{
    Error,
    cupti::{CallbackFunction, Cupti, Flush, Subscriber},
};

use super::{
    imports::{self, Redirection},
    in_process_client,
};
use crate::guard::lock;

/// Who has CUPTI: [`OURS`], [`THEIRS`] or [`IN_BETWEEN`].
static OWNER: AtomicU32 = AtomicU32::new(OURS);

const OURS: u32 = 0;
/// Calls are handed on to CUPTI.
const THEIRS: u32 = 1;
/// A thread takes CUPTI over. Calls that change what is registered wait for it.
const IN_BETWEEN: u32 = 2;

/// How many threads are in calls that change what is registered.
static CHANGING: AtomicU32 = AtomicU32::new(0);

/// For those threads to return.
const CHANGE_LIMIT: Duration = Duration::from_millis(50);

/// For CUPTI to be taken over. It takes some milliseconds.
const WAIT_LIMIT: Duration = Duration::from_secs(1);

/// The libraries that call CUPTI through us.
static CALLERS: Mutex<Vec<Range<u64>>> = Mutex::new(Vec::new());

/// Why CUPTI could not be taken over the last time.
static REFUSAL: Mutex<Option<Refusal>> = Mutex::new(None);

/// What was taken over, for the trace.
static TAKEN_OVER: Mutex<Option<String>> = Mutex::new(None);

/// The handle of a subscription that was taken over: its client goes on to use it.
static ADOPTED: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

thread_local! {
    /// How many calls of the client's this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Why CUPTI is not taken over from an earlier profiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// A session of it is running, with these activity kinds, one bit for each.
    Recording(u64),
    /// It is not known whether one is running.
    Unknown,
    /// It has a subscription that we cannot serve.
    Subscribed,
    /// It was starting or ending a session just then.
    Busy,
}

impl Refusal {
    /// What a user reads.
    pub(super) fn words(self) -> String {
        let words = match self {
            Self::Recording(kinds) => {
                let kinds = (0..u64::BITS).filter(|kind| kinds & (1 << kind) != 0);
                let kinds: Vec<String> = kinds.map(|kind| kind.to_string()).collect();
                return format!(
                    "another profiler was recording in this process when the window opened (such as torch.profiler; activity \
                     kinds {}): nothing is recorded, so that it keeps its data; open the window before its session starts \
                     or after it has ended",
                    kinds.join(", ")
                );
            }
            Self::Unknown => {
                "another profiler has used CUPTI in this process (such as torch.profiler), and it is not known whether it is \
                 recording: nothing is recorded, so that it keeps its data; start the program with `tracesmith profile` or \
                 in a shell prepared with `tracesmith env`"
            }
            Self::Subscribed => {
                "another profiler holds CUPTI in this process (Nsight, cuda-gdb, or a library that was there first): \
                 nothing is recorded, so that it keeps its data"
            }
            Self::Busy => {
                "another profiler was starting or ending its session when the window opened: nothing is recorded, so that \
                 it keeps its data; open the window again"
            }
        };
        words.to_owned()
    }
}

/// What an earlier client has subscribed to.
pub(super) struct Subscription {
    pub(super) handle: Subscriber,
    pub(super) function: CallbackFunction,
    pub(super) user: *mut c_void,
    /// Its callbacks that are on, by domain and ID.
    pub(super) enabled: Vec<(u32, u32)>,
}

/// A call of the client's that is handed on to CUPTI.
pub(super) struct HandedOn {
    is_counted: bool,
}

impl Drop for HandedOn {
    fn drop(&mut self) {
        // A thread that is being torn down counts no more.
        let _ = DEPTH.try_with(|depth| depth.set(depth.get().saturating_sub(1)));
        if self.is_counted {
            CHANGING.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Functions that read records, or have them delivered. They are called from within others, and on CUPTI's own threads.
/// All others change what is registered or enabled.
const READERS: [&str; 4] = [
    "cuptiActivityFlushAll",
    "cuptiActivityGetNextRecord",
    "cuptiActivityGetNumDroppedRecords",
    "cuptiGetCallbackState",
];

/// Whether a call of a function is to be handed on to CUPTI, which then is not ours. Waits while CUPTI is being taken
/// over.
#[inline]
pub(super) fn hand_on(function: &str) -> Option<HandedOn> {
    if OWNER.load(Ordering::Acquire) == OURS {
        return None;
    }
    // A thread that is being torn down is in no call.
    let is_nested = DEPTH.try_with(Cell::get).unwrap_or(0) > 0;
    let is_counted = !is_nested && !READERS.contains(&function);
    let enter = |is_counted| {
        let _ = DEPTH.try_with(|depth| depth.set(depth.get() + 1));
        Some(HandedOn { is_counted })
    };
    if !is_counted {
        return enter(false);
    }
    let begun = Instant::now();
    loop {
        CHANGING.fetch_add(1, Ordering::AcqRel);
        match OWNER.load(Ordering::Acquire) {
            THEIRS => return enter(true),
            // It waits for a lock that this thread has, perhaps.
            IN_BETWEEN if begun.elapsed() > WAIT_LIMIT => return enter(true),
            owner => {
                CHANGING.fetch_sub(1, Ordering::AcqRel);
                if owner == OURS {
                    return None;
                }
                std::thread::yield_now();
            }
        }
    }
}

/// We were loaded into a process that may have used CUPTI before. Counts once.
pub(super) fn begin() {
    static BEGIN: Once = Once::new();
    BEGIN.call_once(|| OWNER.store(THEIRS, Ordering::Release));
}

/// Has the libraries of the process call us instead of CUPTI.
pub(super) fn redirect_callers(redirections: &[Redirection]) {
    let found = imports::redirect(redirections);
    let mut callers = lock(&CALLERS);
    for extent in found {
        if !callers.contains(&extent) {
            callers.push(extent);
        }
    }
}

/// Why CUPTI was not taken over, if it was not.
pub(super) fn refusal() -> Option<Refusal> {
    *lock(&REFUSAL)
}

/// The state of the earlier profiler from which CUPTI was taken over, if there is one.
pub(super) fn taken_over() -> Option<String> {
    lock(&TAKEN_OVER).clone()
}

/// Whether a handle is that of a subscription which was taken over.
pub(super) fn is_adopted(handle: *mut c_void) -> bool {
    !handle.is_null() && ADOPTED.load(Ordering::Acquire) == handle
}

/// Ends the subscription that was taken over: its client has left.
pub(super) fn forget_adopted() {
    ADOPTED.store(std::ptr::null_mut(), Ordering::Release);
}

/// Becomes CUPTI's client, by `subscribe`, in a process in which an earlier profiler may be. Returns the subscription of
/// that profiler, which is to be served from now on.
///
/// # Errors
///
/// CUPTI's code, or that another client has subscribed; [`refusal`] says more.
pub(super) fn take_over<T>(
    cupti: &Cupti,
    subscribe: impl Fn() -> Result<T, Error>,
    unsubscribe: impl Fn(Subscriber) -> Result<(), Error>,
) -> Result<(T, Option<Subscription>), Error> {
    let is_theirs = OWNER
        .compare_exchange(THEIRS, IN_BETWEEN, Ordering::AcqRel, Ordering::Acquire)
        .is_ok();
    let outcome = if is_theirs && !wait_for_changes() {
        Err(refuse(Refusal::Busy))
    } else {
        exchange(cupti, is_theirs, subscribe, unsubscribe)
    };
    if is_theirs {
        let owner = if outcome.is_ok() { OURS } else { THEIRS };
        OWNER.store(owner, Ordering::Release);
    }
    if let Ok((_, subscription)) = &outcome {
        *lock(&REFUSAL) = None;
        if is_theirs && !lock(&CALLERS).is_empty() {
            *lock(&TAKEN_OVER) = Some(match subscription {
                Some(subscription) => format!(
                    "idle, with a subscription to {} callbacks",
                    subscription.enabled.len()
                ),
                None => "idle, without a subscription".to_owned(),
            });
        }
    }
    outcome
}

fn wait_for_changes() -> bool {
    let deadline = Instant::now() + CHANGE_LIMIT;
    while CHANGING.load(Ordering::Acquire) > 0 {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

fn exchange<T>(
    cupti: &Cupti,
    is_theirs: bool,
    subscribe: impl Fn() -> Result<T, Error>,
    unsubscribe: impl Fn(Subscriber) -> Result<(), Error>,
) -> Result<(T, Option<Subscription>), Error> {
    if is_theirs {
        check_that_nothing_is_enabled(cupti)?;
    }
    let first = match subscribe() {
        Ok(subscriber) => {
            leave_its_buffers(cupti, is_theirs);
            return Ok((subscriber, None));
        }
        Err(error) => error,
    };
    if first.code()
        != Some(i64::from(
            tracesmith_cuda::cupti::abi::result::MULTIPLE_SUBSCRIBERS,
        ))
    {
        return Err(first);
    }
    let callers = lock(&CALLERS).clone();
    let Some(subscription) = state::subscription(cupti, &callers) else {
        refuse(Refusal::Subscribed);
        return Err(first);
    };
    if !is_theirs {
        check_that_nothing_is_enabled(cupti)?;
    }
    leave_its_buffers(cupti, true);
    unsubscribe(subscription.handle)?;
    match subscribe() {
        Ok(subscriber) => {
            ADOPTED.store(subscription.handle.0, Ordering::Release);
            // Its only subscription was that one.
            in_process_client::subscribe(subscription.function, subscription.user);
            Ok((subscriber, Some(subscription)))
        }
        // Somebody was faster. The client has lost its callbacks, as its handle will tell it.
        Err(error) => Err(error),
    }
}

fn check_that_nothing_is_enabled(cupti: &Cupti) -> Result<(), Error> {
    match state::enabled_kinds(cupti) {
        Some(0) => Ok(()),
        Some(kinds) => Err(refuse(Refusal::Recording(kinds))),
        // Nobody seems to be there.
        None if lock(&CALLERS).is_empty() => Ok(()),
        None => Err(refuse(Refusal::Unknown)),
    }
}

/// Buffers that the client has lent go back to it before its functions are replaced. Nothing is enabled, so no others
/// are lent. A clock of its own is replaced by the one that CUPTI has by itself.
fn leave_its_buffers(cupti: &Cupti, has_client: bool) {
    if !has_client {
        return;
    }
    // What fails now is lost to the client only if it asks for it later, and then the same call fails for it.
    let _ = cupti.flush(Flush::Forced);
    state::restore_clock(cupti);
}

fn refuse(refusal: Refusal) -> Error {
    *lock(&REFUSAL) = Some(refusal);
    Error::Call {
        function: "cuptiSubscribe",
        code: i64::from(tracesmith_cuda::cupti::abi::result::MULTIPLE_SUBSCRIBERS),
        name: "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED".to_owned(),
    }
}
