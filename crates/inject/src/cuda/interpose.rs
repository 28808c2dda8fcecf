//! The functions that the program finds instead of CUPTI's.
//!
//! A library that is linked against libcupti binds to these because we are
//! preloaded, and one that looks CUPTI's functions up by name asks us
//! ([`lookup`]). Where we are not preloaded, CUPTI's symbol table
//! is redirected ([`symbols`]), which reaches what is looked up
//! or bound later, and so are the words through which libraries call it
//! ([`imports`](super::imports)), which reaches what was bound before. Either way the
//! program's own profiler talks to the [`multiplexer`](mod@super::multiplexer). Without an agent
//! they hand everything on, and also as long as CUPTI belongs to a profiler that was there
//! before us ([`earlier`]).

use std::{
    ffi::c_void,
    path::Path,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use tracesmith_cuda::{
    Error,
    cupti::{
        ApiDomain, BufferCompleted, BufferRequested, CallbackFunction, Code, Switch, TimestampFunction,
        abi::{self, result},
    },
    library::{self, Library},
};

use super::{
    earlier, flush,
    imports::Redirection,
    in_process_client, injected, lookup,
    multiplexer::{self, Client, CuptiMultiplexer, Reason},
    symbols,
    times::{self, Times},
};
use crate::{agent, guard};

/// `CUPTI_ERROR_UNKNOWN`.
const UNKNOWN: Code = 999;

/// The handle that the other client gets for its subscription.
static CLIENT_SUBSCRIBER: u64 = 0;

fn client_subscriber() -> *mut c_void {
    (&raw const CLIENT_SUBSCRIBER).cast_mut().cast()
}

/// Whether a handle is that of the other client's subscription.
fn is_clients(subscriber: *mut c_void) -> bool {
    subscriber == client_subscriber() || earlier::is_adopted(subscriber)
}

fn code(result: Result<(), Error>) -> Code {
    match result {
        Ok(()) => result::SUCCESS,
        Err(error) => error
            .code()
            .and_then(|code| Code::try_from(code).ok())
            .unwrap_or(UNKNOWN),
    }
}

fn switch(enable: u32) -> Switch {
    if enable == 0 { Switch::Off } else { Switch::On }
}

/// The multiplexer, if this process has an agent and CUPTI, and no other tool has it.
fn multiplexer() -> Option<&'static CuptiMultiplexer> {
    // Also for another tool's sake: who asks is told that it is there.
    agent::get_or_start()?;
    if ASIDE.load(Ordering::Acquire) || injected::other().is_some() || multiplexer::is_of_parent() {
        return None;
    }
    // What is wrong with CUPTI, its own answer tells the program.
    CuptiMultiplexer::open().ok()
}

/// Whether CUPTI was left to the program's own profiler: its calls are handed on.
static ASIDE: AtomicBool = AtomicBool::new(false);

/// CUPTI's own functions, in the order of [`FUNCTIONS`].
static REAL: OnceLock<Vec<usize>> = OnceLock::new();

/// The same of the library that callers are bound to, in a process without a multiplexer.
static PASSED: OnceLock<Vec<usize>> = OnceLock::new();

/// CUPTI's own function, for a process that is not to be recorded or not any more.
fn real(name: &str) -> Option<*const c_void> {
    let known = match REAL.get().or_else(|| PASSED.get()) {
        Some(known) => known,
        // Once: it goes through all that the process has mapped, and records come by the million.
        None => {
            let found = addresses_in(&loaded()?);
            PASSED.get_or_init(|| found)
        }
    };
    let at = FUNCTIONS.iter().position(|(function, _)| *function == name)?;
    let address = *known.get(at)?;
    (address != 0).then_some(address as *const c_void)
}

/// The CUPTI library that the caller is bound to. It stays in the process from here on.
fn loaded() -> Option<Library> {
    let mut loaded = library::mapped("libcupti.so");
    // Another tool looks up the functions of the one that it brings.
    let of_tool = injected::other().and_then(Path::parent);
    loaded.sort_by_key(|path| of_tool.is_some() && path.parent() == of_tool);
    loaded.into_iter().find_map(Library::loaded)
}

fn addresses_in(library: &Library) -> Vec<usize> {
    let address = |name| library.address(name).map_or(0, |found| found.as_ptr() as usize);
    lookup::for_ourselves(|| FUNCTIONS.iter().map(|(name, _)| address(name)).collect())
}

macro_rules! interposed {
    ($(
        $(#[$meta:meta])*
        fn $name:ident($($arg:ident: $type:ty),* $(,)?) |$multiplexer:ident| $body:expr $(, handed on: $note:expr)?;
    )*) => {
        /// The same functions under names that nobody else has. What is
        /// exported belongs to whoever the loader finds first: where we are not
        /// preloaded and the program is linked against libcupti, that is CUPTI,
        /// in our own references too.
        #[allow(non_snake_case, reason = "CUPTI's own names")]
        mod ours {
            use super::*;

            $(
                // Otherwise the two come out the same and are made one, the
                // exported one.
                #[inline(never)]
                pub(super) unsafe extern "C" fn $name($($arg: $type),*) -> Code {
                    guard::run(UNKNOWN, || {
                        let _counted_until_it_returns = match earlier::route(stringify!($name)) {
                            earlier::Route::Ours => {
                                if let Some($multiplexer) = multiplexer() {
                                    return $body;
                                }
                                None
                            }
                            earlier::Route::Cupti(handed_on) => {
                                $($note;)?
                                Some(handed_on)
                            }
                            earlier::Route::Nowhere => return UNKNOWN,
                        };
                        let Some(address) = real(stringify!($name)) else {
                            return UNKNOWN;
                        };
                        // SAFETY: CUPTI's function of this name has this type.
                        let function = unsafe {
                            std::mem::transmute::<*const c_void, unsafe extern "C" fn($($type),*) -> Code>(address)
                        };
                        // SAFETY: called as the program called us.
                        unsafe { function($($arg),*) }
                    })
                }
            )*
        }

        $(
            $(#[$meta])*
            ///
            /// # Safety
            ///
            /// As CUPTI's function of this name.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($arg: $type),*) -> Code {
                // SAFETY: called as the program called us.
                unsafe { ours::$name($($arg),*) }
            }
        )*

        /// What stands in for what.
        static FUNCTIONS: &[(&str, symbols::Address)] = &[
            $((stringify!($name), symbols::Address(ours::$name as *const c_void)),)*
        ];
    };
}

interposed! {
    /// The other client's buffers; ours stay registered.
    fn cuptiActivityRegisterCallbacks(requested: Option<BufferRequested>, completed: Option<BufferCompleted>) |multiplexer| {
        let (Some(requested), Some(completed)) = (requested, completed) else {
            return result::INVALID_PARAMETER;
        };
        if let Err(error) = multiplexer.attach() {
            return code(Err(error));
        }
        // Earlier records belong to the earlier clients.
        let flushed = flush::all(multiplexer);
        in_process_client::register_buffers(requested, completed);
        code(flushed)
    }, handed on: earlier::remember_buffers(requested, completed);

    /// A kind that the other client wants.
    fn cuptiActivityEnable(kind: u32) |multiplexer| enable_kind_for_client(multiplexer, kind, |multiplexer, kind| multiplexer.enable(Client::InProcess, kind));

    /// The same with the objects that exist already; we are told of them too.
    fn cuptiActivityEnableAndDump(kind: u32) |multiplexer| enable_kind_for_client(multiplexer, kind, CuptiMultiplexer::enable_objects_for_client);

    /// A kind that the other client does not want any more.
    fn cuptiActivityDisable(kind: u32) |multiplexer| disable_kind_for_client(multiplexer, kind);

    /// A kind that the other client wants in one context; it gets it in all.
    fn cuptiActivityEnableContext(context: *mut c_void, kind: u32) |multiplexer| {
        let _ = context;
        enable_kind_for_client(multiplexer, kind, |multiplexer, kind| multiplexer.enable(Client::InProcess, kind))
    };

    /// A kind that the other client does not want any more.
    fn cuptiActivityDisableContext(context: *mut c_void, kind: u32) |multiplexer| {
        let _ = context;
        disable_kind_for_client(multiplexer, kind)
    };

    /// Hands over what there is, to both.
    fn cuptiActivityFlushAll(flag: u32) |multiplexer| {
        code(if flag & 1 == 0 { flush::complete(multiplexer) } else { flush::all(multiplexer) })
    };

    /// What was dropped since the other client asked last.
    fn cuptiActivityGetNumDroppedRecords(context: *mut c_void, stream: u32, dropped: *mut usize) |multiplexer| {
        let _ = (multiplexer, context, stream);
        if dropped.is_null() {
            return result::INVALID_PARAMETER;
        }
        // SAFETY: the program's word.
        unsafe { dropped.write(in_process_client::take_dropped() as usize) };
        result::SUCCESS
    };

    /// The next record of a buffer, as laid out by the CUPTI that filled it.
    fn cuptiActivityGetNextRecord(buffer: *mut u8, valid: usize, record: *mut *mut u8) |multiplexer| {
        // SAFETY: as the program called us.
        unsafe { multiplexer.cupti().raw_next_record(buffer, valid, record) }
    };

    /// The other client's clock; CUPTI keeps its own, for us.
    fn cuptiActivityRegisterTimestampCallback(function: Option<TimestampFunction>) |multiplexer| {
        let Some(function) = function else {
            return result::INVALID_PARAMETER;
        };
        in_process_client::register_clock(multiplexer, function);
        result::SUCCESS
    }, handed on: earlier::remember_clock(function);

    /// A driver function that the other client wants, or not.
    fn cuptiActivityEnableDriverApi(id: u32, enable: u8) |multiplexer| set_function_for_client(multiplexer, ApiDomain::Driver, id, enable);

    /// A runtime function that the other client wants, or not.
    fn cuptiActivityEnableRuntimeApi(id: u32, enable: u8) |multiplexer| set_function_for_client(multiplexer, ApiDomain::Runtime, id, enable);

    /// When launches were queued and submitted, if the other client wants it.
    fn cuptiActivityEnableLatencyTimestamps(enable: u8) |multiplexer| set_times_for_client(multiplexer, Times::Launches, enable);

    /// When the device passed events, if the other client wants it.
    fn cuptiActivityEnableCudaEventDeviceTimestamps(enable: u8) |multiplexer| set_times_for_client(multiplexer, Times::Events, enable);

    /// How buffers are handed out is our business, for they are ours;
    /// other attributes are the other client's to set.
    fn cuptiActivitySetAttribute(attribute: u32, size: *mut usize, value: *mut c_void) |multiplexer| {
        if matches!(attribute, abi::ATTRIBUTE_PER_THREAD_BUFFER | abi::ATTRIBUTE_ZEROED_BUFFER) {
            return result::SUCCESS;
        }
        // SAFETY: as the program called us.
        unsafe { multiplexer.cupti().raw_set_attribute(attribute, size, value) }
    };

    /// The system's thread ids are what we need.
    fn cuptiSetThreadIdType(kind: u32) |multiplexer| {
        let _ = (multiplexer, kind);
        result::SUCCESS
    };

    /// The other client leaves; CUPTI stays.
    fn cuptiFinalize() |multiplexer| {
        for kind in 0..abi::kind::COUNT as u32 {
            if multiplexer.wants_kind(Client::InProcess, kind) {
                // The next one must be told too.
                let _ = multiplexer.disable(Client::InProcess, kind);
            }
        }
        times::leave(multiplexer, Client::InProcess);
        let flushed = flush::all(multiplexer);
        in_process_client::detached();
        end_subscription(multiplexer);
        code(flushed)
    };

    /// The other client's callbacks; ours stay registered.
    fn cuptiSubscribe(subscriber: *mut *mut c_void, function: Option<CallbackFunction>, user: *mut c_void) |multiplexer| {
        let Some(function) = function.filter(|_| !subscriber.is_null()) else {
            return result::INVALID_PARAMETER;
        };
        if let Err(error) = multiplexer.attach() {
            return code(Err(error));
        }
        if !in_process_client::subscribe(function, user) {
            return result::MULTIPLE_SUBSCRIBERS;
        }
        // SAFETY: the program's word.
        unsafe { subscriber.write(client_subscriber()) };
        result::SUCCESS
    };

    /// In CUDA 13.0 and 13.1 the same as above with a name. Later the beginning
    /// of the interface that serves several clients, which does not go together
    /// with the one that we use: we step aside, and it gets what it asks for.
    fn cuptiSubscribe_v2(
        subscriber: *mut *mut c_void,
        function: Option<CallbackFunction>,
        user: *mut c_void,
        parameters: *mut c_void
    ) |multiplexer| {
        let find = |name| lookup::for_ourselves(|| multiplexer.cupti().library().address(name));
        if find("cuptiActivityEnable_v2").is_none() {
            // SAFETY: called as the program called us.
            return unsafe { cuptiSubscribe(subscriber, function, user) };
        }
        remember(multiplexer);
        let Some(real) = real("cuptiSubscribe_v2") else {
            return UNKNOWN;
        };
        if let Some(agent) = agent::current() {
            agent.release_cupti();
        }
        ASIDE.store(true, Ordering::Release);
        type Subscribe =
            unsafe extern "C" fn(*mut *mut c_void, Option<CallbackFunction>, *mut c_void, *mut c_void) -> Code;
        // SAFETY: CUPTI's function of this name has this type.
        let real = unsafe { std::mem::transmute::<*const c_void, Subscribe>(real) };
        // SAFETY: called as the program called us.
        unsafe { real(subscriber, function, user, parameters) }
    };

    /// The other client's callbacks end.
    fn cuptiUnsubscribe(subscriber: *mut c_void) |multiplexer| {
        if !is_clients(subscriber) {
            return result::INVALID_PARAMETER;
        }
        end_subscription(multiplexer);
        result::SUCCESS
    };

    /// One callback of the other client's.
    fn cuptiEnableCallback(enable: u32, subscriber: *mut c_void, domain: u32, id: u32) |multiplexer| {
        if !is_clients(subscriber) {
            return result::INVALID_PARAMETER;
        }
        code(multiplexer.set_reason(Reason::InProcessClient, (domain, id), switch(enable)))
    };

    /// All callbacks of a domain for the other client.
    fn cuptiEnableDomain(enable: u32, subscriber: *mut c_void, domain: u32) |multiplexer| {
        if !is_clients(subscriber) {
            return result::INVALID_PARAMETER;
        }
        code(multiplexer.set_domain_for_client(domain, switch(enable)))
    };

    /// All callbacks for the other client.
    fn cuptiEnableAllDomains(enable: u32, subscriber: *mut c_void) |multiplexer| {
        if !is_clients(subscriber) {
            return result::INVALID_PARAMETER;
        }
        for domain in abi::domain::DRIVER..=abi::domain::STATE {
            // Not every version has all of them.
            let _ = multiplexer.set_domain_for_client(domain, switch(enable));
        }
        result::SUCCESS
    };

    /// Whether the other client gets a callback.
    fn cuptiGetCallbackState(enable: *mut u32, subscriber: *mut c_void, domain: u32, id: u32) |multiplexer| {
        if !is_clients(subscriber) || enable.is_null() {
            return result::INVALID_PARAMETER;
        }
        // SAFETY: the program's word.
        unsafe { enable.write(u32::from(multiplexer.reasons((domain, id)).has(Reason::InProcessClient))) };
        result::SUCCESS
    };
}

fn enable_kind_for_client(
    multiplexer: &CuptiMultiplexer,
    kind: u32,
    enable: impl Fn(&CuptiMultiplexer, u32) -> Result<(), Error>,
) -> Code {
    if let Err(error) = multiplexer.attach() {
        return code(Err(error));
    }
    in_process_client::enabled(multiplexer, kind);
    code(enable(multiplexer, kind))
}

fn disable_kind_for_client(multiplexer: &CuptiMultiplexer, kind: u32) -> Code {
    in_process_client::disabled(multiplexer, kind);
    code(multiplexer.disable(Client::InProcess, kind))
}

fn set_function_for_client(multiplexer: &CuptiMultiplexer, domain: ApiDomain, id: u32, enable: u8) -> Code {
    code(multiplexer.set_function((domain, id), switch(u32::from(enable))))
}

fn set_times_for_client(multiplexer: &CuptiMultiplexer, times: Times, enable: u8) -> Code {
    code(times::set(
        multiplexer,
        Client::InProcess,
        times,
        switch(u32::from(enable)),
    ))
}

fn end_subscription(multiplexer: &CuptiMultiplexer) {
    for domain in abi::domain::DRIVER..=abi::domain::STATE {
        // Not every version has all of them.
        let _ = multiplexer.set_domain_for_client(domain, Switch::Off);
    }
    in_process_client::unsubscribe();
    earlier::forget_adopted();
}

/// What a lookup of a function of CUPTI's is to find: ours, or that of the one
/// CUPTI that is used here. None leaves it as it is.
pub(super) fn instead_of(name: &str) -> Option<*const c_void> {
    if injected::other().is_some() {
        // So that users can find out why nothing is recorded.
        agent::get_or_start();
        return None;
    }
    if let Some((_, ours)) = FUNCTIONS.iter().find(|(function, _)| *function == name) {
        return Some(ours.0);
    }
    let multiplexer = multiplexer()?;
    lookup::for_ourselves(|| multiplexer.cupti().library().address(name)).map(library::Address::as_ptr)
}

/// Redirects the symbol tables of all CUPTIs that are loaded, once the multiplexer has
/// found its own functions.
pub(super) fn patch_loaded() {
    if library::mapped("libcupti.so").is_empty() {
        return;
    }
    let Some(multiplexer) = multiplexer() else {
        return;
    };
    // Not to be found any more behind the next line.
    let real = remember(multiplexer);
    let is_late = !injected::is_named();
    if is_late {
        earlier::begin();
    }
    symbols::redirect("libcupti.so", FUNCTIONS);
    // Where the driver loads us, CUPTI is ours from the beginning. A client that is bound already may have subscribed or
    // recorded since before that, with handles that only CUPTI knows, so it keeps calling CUPTI.
    if !is_late {
        return;
    }
    let redirections: Vec<Redirection> = FUNCTIONS
        .iter()
        .zip(real)
        .filter(|(_, from)| **from != 0)
        .map(|((name, to), from)| Redirection {
            name,
            from: *from as u64,
            to: to.0 as u64,
        })
        .collect();
    earlier::redirect_callers(&redirections);
}

/// CUPTI's own functions that ours stand in for, sorted.
pub(super) fn real_addresses() -> Vec<u64> {
    let real = REAL.get().into_iter().flatten();
    let mut addresses: Vec<u64> = real
        .filter(|address| **address != 0)
        .map(|address| *address as u64)
        .collect();
    addresses.sort_unstable();
    addresses
}

/// Keeps the addresses of CUPTI's own functions.
fn remember(multiplexer: &CuptiMultiplexer) -> &'static [usize] {
    REAL.get_or_init(|| addresses_in(multiplexer.cupti().library()))
}
