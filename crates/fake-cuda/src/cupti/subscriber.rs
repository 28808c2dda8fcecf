//! The one subscriber of callbacks, and which callbacks it wants.

#![allow(
    unsafe_code,
    reason = "calls the subscriber's function by address, and is told of by C"
)]

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::code::CuptiCode;
use crate::config::config;

/// `CUpti_CallbackDomain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Domain {
    Driver = 1,
    Runtime = 2,
    Resource = 3,
    Synchronize = 4,
    Nvtx = 5,
    State = 6,
}

impl Domain {
    pub(crate) const ALL: [Self; 6] = [
        Self::Driver,
        Self::Runtime,
        Self::Resource,
        Self::Synchronize,
        Self::Nvtx,
        Self::State,
    ];

    pub(crate) fn by_number(number: u32) -> Result<Self, CuptiCode> {
        let found = Self::ALL.into_iter().find(|&domain| domain as u32 == number);
        found.ok_or(CuptiCode::INVALID_PARAMETER)
    }
}

/// Whether the subscriber asks for a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Yes,
    No,
}

impl Wish {
    /// From C, where 0 is no.
    pub(crate) fn from_c(enable: u32) -> Self {
        if enable == 0 { Self::No } else { Self::Yes }
    }
}

pub(crate) type CallbackFunction = extern "C" fn(*mut c_void, u32, u32, *const c_void);

/// Callback ids that fit: more than any version has.
const IDS: usize = 1024;
const WORDS: usize = IDS / 64;

static FUNCTION: AtomicUsize = AtomicUsize::new(0);
/// Whether there ever was one.
static WAS_THERE: AtomicBool = AtomicBool::new(false);
static USER_DATA: AtomicUsize = AtomicUsize::new(0);
static WANTED: [[AtomicU64; WORDS]; 7] = [const { [const { AtomicU64::new(0) }; WORDS] }; 7];

/// What `cuptiSubscribe` hands out: the address of something of ours.
fn handle() -> usize {
    (&raw const FUNCTION) as usize
}

pub(crate) fn subscribe(function: CallbackFunction, user_data: usize) -> Result<usize, CuptiCode> {
    if config().is_subscribed_by_other {
        return Err(CuptiCode::MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    }
    FUNCTION
        .compare_exchange(0, function as usize, Ordering::AcqRel, Ordering::Acquire)
        .map_err(|_| CuptiCode::MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)?;
    USER_DATA.store(user_data, Ordering::Release);
    WAS_THERE.store(true, Ordering::Release);
    Ok(handle())
}

/// Whether anyone ever subscribed.
pub(crate) fn was_there() -> bool {
    WAS_THERE.load(Ordering::Acquire)
}

pub(crate) fn unsubscribe(subscriber: usize) -> Result<(), CuptiCode> {
    check(subscriber)?;
    release();
    Ok(())
}

/// Drops the subscriber, whoever it is: what `cuptiFinalize` does.
pub(crate) fn release() {
    for domain in Domain::ALL {
        want_domain(domain, Wish::No);
    }
    FUNCTION.store(0, Ordering::Release);
}

/// Whether that is the handle of the subscriber.
pub(crate) fn check(subscriber: usize) -> Result<(), CuptiCode> {
    if subscriber != handle() || FUNCTION.load(Ordering::Acquire) == 0 {
        return Err(CuptiCode::INVALID_PARAMETER);
    }
    Ok(())
}

pub(crate) fn want(domain: Domain, id: u32, wish: Wish) -> Result<(), CuptiCode> {
    let word = WANTED[domain as usize]
        .get(id as usize / 64)
        .ok_or(CuptiCode::INVALID_PARAMETER)?;
    match wish {
        Wish::Yes => word.fetch_or(1 << (id % 64), Ordering::AcqRel),
        Wish::No => word.fetch_and(!(1 << (id % 64)), Ordering::AcqRel),
    };
    Ok(())
}

pub(crate) fn want_domain(domain: Domain, wish: Wish) {
    let bits = match wish {
        Wish::Yes => u64::MAX,
        Wish::No => 0,
    };
    for word in &WANTED[domain as usize] {
        word.store(bits, Ordering::Release);
    }
}

pub(crate) fn is_wanted(domain: Domain, id: u32) -> bool {
    WANTED[domain as usize]
        .get(id as usize / 64)
        .is_some_and(|word| word.load(Ordering::Relaxed) & (1 << (id % 64)) != 0)
}

/// Whether libcupti's file says that there is a client, and the table that it says what the client wants in.
static HAS_CLIENT: AtomicBool = AtomicBool::new(false);
static TABLE: AtomicUsize = AtomicUsize::new(0);

/// Libcupti's file tells of its client: see `targets/cupti_file.c`.
#[unsafe(no_mangle)]
extern "C" fn fakeCuptiClient(has_client: i32, table: usize) {
    TABLE.store(table, Ordering::Release);
    HAS_CLIENT.store(has_client != 0, Ordering::Release);
}

/// What CUPTI does at each resource: it looks whether someone wants to know. A table that comes within this time is
/// forgiven, other than there, so that tests do not end by chance.
const TABLE_LIMIT: Duration = Duration::from_millis(10);

fn look_into_table() {
    let is_missing = || HAS_CLIENT.load(Ordering::Acquire) && TABLE.load(Ordering::Acquire) == 0;
    if !is_missing() {
        return;
    }
    let deadline = Instant::now() + TABLE_LIMIT;
    while is_missing() {
        if Instant::now() >= deadline {
            // A null pointer is read through.
            std::process::abort();
        }
        std::thread::yield_now();
    }
}

/// Calls the subscriber, if it wants this.
pub(crate) fn call(domain: Domain, id: u32, data: *const c_void) {
    if domain == Domain::Resource {
        look_into_table();
    }
    if is_wanted(domain, id) {
        tell(domain, id, data);
    }
}

/// Calls the subscriber, which wanted this a moment ago.
pub(crate) fn tell(domain: Domain, id: u32, data: *const c_void) {
    let address = FUNCTION.load(Ordering::Acquire);
    if address == 0 {
        return;
    }
    // SAFETY: only `subscribe` stores here, and it stores functions of this type.
    let function = unsafe { std::mem::transmute::<usize, CallbackFunction>(address) };
    let user_data = USER_DATA.load(Ordering::Acquire) as *mut c_void;
    crate::call::outside_of_calls(|| function(user_data, domain as u32, id, data));
}
