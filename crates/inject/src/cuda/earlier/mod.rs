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
//! A client that keeps addresses that `dlsym` gave it is not reached by this. If they are in variables of a library that
//! also calls us, or CUPTI has its subscription, CUPTI is not taken over.

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
    cupti::{
        BufferCompleted, BufferRequested, CallbackFunction, Cupti, Flush, Subscriber, TimestampFunction,
        abi::result,
    },
};

use super::{
    imports::{self, Redirection},
    in_process_client, interpose,
    multiplexer::CuptiMultiplexer,
};
use crate::guard::lock;

/// Who has CUPTI: [`OURS`], [`THEIRS`], [`IN_BETWEEN`] or [`COMMITTED`]. It and [`CHANGING`] are written and then the other
/// one is read, on both sides, so both are sequentially consistent.
static OWNER: AtomicU32 = AtomicU32::new(OURS);

const OURS: u32 = 0;
/// Calls are handed on to CUPTI.
const THEIRS: u32 = 1;
/// A thread prepares to take CUPTI over. Calls that change what is registered wait for it. One that has waited for long
/// ends the attempt: CUPTI is theirs again.
const IN_BETWEEN: u32 = 2;
/// It exchanges the subscriptions, and calls none of the client's functions meanwhile.
const COMMITTED: u32 = 3;

/// How many threads are in calls that change what is registered.
static CHANGING: AtomicU32 = AtomicU32::new(0);

/// For those threads to return.
const CHANGE_LIMIT: Duration = Duration::from_millis(50);

/// For CUPTI to be taken over. It takes some milliseconds. It takes longer only if it waits for a lock of the program's.
const WAIT_LIMIT: Duration = Duration::from_secs(1);

/// The libraries that call CUPTI through us.
static CALLERS: Mutex<Vec<Range<u64>>> = Mutex::new(Vec::new());

/// Why CUPTI could not be taken over the last time.
static REFUSAL: Mutex<Option<Refusal>> = Mutex::new(None);

/// What was taken over, for the trace.
static TAKEN_OVER: Mutex<Option<String>> = Mutex::new(None);

/// The handle of a subscription that was taken over: its client goes on to use it.
static ADOPTED: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// What the client has registered through us, while CUPTI was its own.
static REGISTERED: Mutex<Registered> = Mutex::new(Registered {
    buffers: None,
    clock: None,
});

/// Functions of the client's. It goes on to rely on them if it registers none again.
#[derive(Clone, Copy)]
struct Registered {
    buffers: Option<(BufferRequested, BufferCompleted)>,
    clock: Option<TimestampFunction>,
}

thread_local! {
    /// How many calls of the client's this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Whether this thread takes CUPTI over: a call that it makes is one of the client's functions, which CUPTI called.
    static IS_TAKING_OVER: Cell<bool> = const { Cell::new(false) };
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
    /// It calls CUPTI by addresses that it looked up, so that we cannot serve it.
    LookedUp,
    /// How this version of CUPTI keeps subscriptions was never checked.
    Version(u32),
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
            Self::LookedUp => {
                "another profiler in this process has looked up functions of CUPTI before TraceSmith was loaded: nothing is \
                 recorded, so that it keeps its data; start the program with `tracesmith profile` or in a shell prepared \
                 with `tracesmith env`"
            }
            Self::Version(version) => {
                return format!(
                    "another profiler holds CUPTI in this process, and TraceSmith cannot share CUPTI version {version} with a \
                     profiler that was there first: nothing is recorded, so that it keeps its data; start the program with \
                     `tracesmith profile` or in a shell prepared with `tracesmith env`"
                );
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
            CHANGING.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Functions that read. They are called from within others, and on CUPTI's own threads. All others change what is
/// registered or enabled, or have records delivered.
const READERS: [&str; 3] = [
    "cuptiActivityGetNextRecord",
    "cuptiActivityGetNumDroppedRecords",
    "cuptiGetCallbackState",
];

/// Where a call of the client's goes.
pub(super) enum Route {
    /// The multiplexer answers it.
    Ours,
    /// To CUPTI, which is not ours.
    Cupti(HandedOn),
    /// It fails. CUPTI is being taken over, and waits for something that the caller has: rather an error than records that
    /// nobody gets.
    Nowhere,
}

/// Where a call of a function goes. Waits while CUPTI is being taken over.
#[inline]
pub(super) fn route(function: &str) -> Route {
    if OWNER.load(Ordering::Acquire) == OURS {
        return Route::Ours;
    }
    // A thread that is being torn down is in no call.
    let is_nested = DEPTH.try_with(Cell::get).unwrap_or(0) > 0;
    let is_counted = !is_nested && !READERS.contains(&function);
    let enter = |is_counted| {
        let _ = DEPTH.try_with(|depth| depth.set(depth.get() + 1));
        Route::Cupti(HandedOn { is_counted })
    };
    if !is_counted {
        return enter(false);
    }
    let begun = Instant::now();
    loop {
        CHANGING.fetch_add(1, Ordering::SeqCst);
        let owner = OWNER.load(Ordering::SeqCst);
        if owner == THEIRS {
            return enter(true);
        }
        CHANGING.fetch_sub(1, Ordering::SeqCst);
        let is_own = IS_TAKING_OVER.try_with(Cell::get).unwrap_or(false);
        let has_waited = is_own || begun.elapsed() > WAIT_LIMIT;
        match owner {
            OURS => return Route::Ours,
            // It waits for a lock that this thread has, perhaps. If it has committed itself meanwhile, the next turn sees it.
            IN_BETWEEN if has_waited => {
                let _ = OWNER.compare_exchange(IN_BETWEEN, THEIRS, Ordering::SeqCst, Ordering::SeqCst);
            }
            COMMITTED if has_waited => return Route::Nowhere,
            _ => std::thread::yield_now(),
        }
    }
}

/// The client registers its functions for buffers while CUPTI is its own.
pub(super) fn remember_buffers(requested: Option<BufferRequested>, completed: Option<BufferCompleted>) {
    lock(&REGISTERED).buffers = requested.zip(completed);
}

/// The client registers a clock while CUPTI is its own.
pub(super) fn remember_clock(function: Option<TimestampFunction>) {
    lock(&REGISTERED).clock = function;
}

/// Runs something that no call of the client's may come in between; none if one is under way.
pub(super) fn undisturbed<T>(act: impl FnOnce() -> T) -> Option<T> {
    match OWNER.compare_exchange(THEIRS, COMMITTED, Ordering::SeqCst, Ordering::SeqCst) {
        Err(OURS) => Some(act()),
        Err(_) => None,
        Ok(_) => {
            let _back = Restored(THEIRS);
            wait_for_changes().then(act)
        }
    }
}

/// Ends what a thread has begun with [`OWNER`], however it ends.
struct Restored(u32);

impl Drop for Restored {
    fn drop(&mut self) {
        OWNER.store(self.0, Ordering::SeqCst);
    }
}

/// We were loaded into a process that may have used CUPTI before. Counts once.
pub(super) fn begin() {
    static BEGIN: Once = Once::new();
    BEGIN.call_once(|| OWNER.store(THEIRS, Ordering::SeqCst));
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

/// How a subscription of ours begins and ends, and one of another client ends.
pub(super) struct Exchange<S, U, A> {
    pub(super) subscribe: S,
    pub(super) unsubscribe: U,
    pub(super) unsubscribe_anothers: A,
}

/// Becomes CUPTI's client in a process in which an earlier profiler may be. Returns the subscription of that profiler,
/// which is to be served from now on.
///
/// # Errors
///
/// CUPTI's code, or that another client has subscribed; [`refusal`] says more.
pub(super) fn take_over(
    multiplexer: &CuptiMultiplexer,
    exchange: &Exchange<
        impl Fn() -> Result<Subscriber, Error>,
        impl Fn(Subscriber),
        impl Fn(Subscriber) -> Result<(), Error>,
    >,
) -> Result<(Subscriber, Option<Subscription>), Error> {
    *lock(&REFUSAL) = None;
    if OWNER
        .compare_exchange(THEIRS, IN_BETWEEN, Ordering::SeqCst, Ordering::SeqCst)
        .is_err()
    {
        // It is ours already, and somebody who does not call us may have subscribed meanwhile.
        return (exchange.subscribe)().map(|subscriber| (subscriber, None));
    }
    let mut restored = Restored(THEIRS);
    IS_TAKING_OVER.set(true);
    let outcome = if wait_for_changes() {
        attempt(multiplexer, exchange)
    } else {
        Err(refuse(Refusal::Busy))
    };
    IS_TAKING_OVER.set(false);
    if outcome.is_ok() {
        restored.0 = OURS;
    }
    outcome
}

fn wait_for_changes() -> bool {
    let deadline = Instant::now() + CHANGE_LIMIT;
    while CHANGING.load(Ordering::SeqCst) > 0 {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

/// Nothing is changed for the client before it is certain that it can be served.
fn attempt(
    multiplexer: &CuptiMultiplexer,
    exchange: &Exchange<
        impl Fn() -> Result<Subscriber, Error>,
        impl Fn(Subscriber),
        impl Fn(Subscriber) -> Result<(), Error>,
    >,
) -> Result<(Subscriber, Option<Subscription>), Error> {
    let cupti = multiplexer.cupti();
    let left_on = check_that_nothing_is_enabled(cupti)?;
    let callers = lock(&CALLERS).clone();
    if memory::holds_any(&callers, &interpose::real_addresses()) {
        return Err(refuse(Refusal::LookedUp));
    }
    let (subscriber, earlier) = match (exchange.subscribe)() {
        Ok(subscriber) => (Some(subscriber), None),
        Err(error) if error.code() != Some(i64::from(result::MULTIPLE_SUBSCRIBERS)) => return Err(error),
        Err(_) => (None, Some(subscription_of(cupti, &callers)?)),
    };
    if let Some(kind) = left_on {
        // Nobody else has subscribed, so only the search has enabled it. It was on, so it can be off.
        let _ = cupti.disable(kind);
    }
    // What CUPTI has in buffers of the client's goes to the client before its functions are replaced. Nothing is enabled, so
    // no others are lent. A failure shows in the client's own flush.
    let _ = cupti.flush(Flush::Forced);
    if OWNER
        .compare_exchange(IN_BETWEEN, COMMITTED, Ordering::SeqCst, Ordering::SeqCst)
        .is_err()
    {
        if let Some(subscriber) = subscriber {
            (exchange.unsubscribe)(subscriber);
        }
        return Err(refuse(Refusal::Busy));
    }
    let subscriber = match (subscriber, &earlier) {
        (Some(subscriber), _) => subscriber,
        (None, Some(earlier)) => {
            (exchange.unsubscribe_anothers)(earlier.handle)?;
            // If somebody was faster, the client has lost its callbacks, and CUPTI refuses its handle.
            (exchange.subscribe)()?
        }
        (None, None) => (exchange.subscribe)()?,
    };
    if let Some(earlier) = &earlier {
        ADOPTED.store(earlier.handle.0, Ordering::Release);
        // Its only subscription was that one.
        in_process_client::subscribe(earlier.function, earlier.user);
    }
    state::restore_clock(cupti);
    let registered = *lock(&REGISTERED);
    if let Some((requested, completed)) = registered.buffers {
        in_process_client::register_buffers(requested, completed);
    }
    if let Some(clock) = registered.clock {
        in_process_client::register_clock(multiplexer, clock);
    }
    if !callers.is_empty() {
        *lock(&TAKEN_OVER) = Some(match &earlier {
            Some(earlier) => format!("idle, with a subscription to {} callbacks", earlier.enabled.len()),
            None => "idle, without a subscription".to_owned(),
        });
    }
    Ok((subscriber, earlier))
}

fn subscription_of(cupti: &Cupti, callers: &[Range<u64>]) -> Result<Subscription, Error> {
    if !state::is_known(cupti.version()) {
        return Err(refuse(Refusal::Version(cupti.version())));
    }
    state::subscription(cupti, callers).ok_or_else(|| refuse(Refusal::Subscribed))
}

/// Returns the kind that the search for enabled ones has left on, if it has found nothing and nobody seems to be there.
fn check_that_nothing_is_enabled(cupti: &Cupti) -> Result<Option<u32>, Error> {
    match state::enabled_kinds(cupti) {
        Ok(0) => Ok(None),
        Ok(kinds) => Err(refuse(Refusal::Recording(kinds))),
        Err(search) if lock(&CALLERS).is_empty() => Ok(search.left_on),
        Err(_) => Err(refuse(Refusal::Unknown)),
    }
}

fn refuse(refusal: Refusal) -> Error {
    *lock(&REFUSAL) = Some(refusal);
    Error::Call {
        function: "cuptiSubscribe",
        code: i64::from(result::MULTIPLE_SUBSCRIBERS),
        name: "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED".to_owned(),
    }
}
