//! What happens around each call of the driver or runtime: its number, its callbacks, its record.

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::clock;
use crate::code::Code;
use crate::cupti::record::{Api, kind};
use crate::cupti::subscriber::{self, Domain};
use crate::cupti::{activity, correlation, filters};
use crate::engine::context;
use crate::kept::{Kept, KeptKey};
use crate::process;

/// A function of the interface.
pub(crate) struct Site {
    pub(crate) domain: Domain,
    pub(crate) cbid: u32,
    pub(crate) name: &'static CStr,
}

/// `CUpti_CallbackData`.
#[repr(C)]
struct CallbackData {
    site: u32,
    function_name: *const c_char,
    parameters: *const c_void,
    return_value: *mut c_void,
    symbol_name: *const c_char,
    context: usize,
    context_uid: u32,
    correlation_data: *mut u64,
    correlation_id: u32,
}

const _: () = {
    assert!(size_of::<CallbackData>() == 72);
    assert!(offset_of!(CallbackData, context_uid) == 48);
    assert!(offset_of!(CallbackData, correlation_id) == 64);
};

/// What this thread is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Frame {
    Call {
        domain: Domain,
        correlation_id: u32,
    },
    /// A client's callback: calls that it makes are its own.
    Callback,
}

thread_local! {
    static FRAMES: Kept<Vec<Frame>> = const { Kept::new(Vec::new()) };
    /// The numbers of calls whose beginning was told, and not yet their end.
    static TOLD: Kept<Vec<u32>> = const { Kept::new(Vec::new()) };
}

/// How many calls of a thread are told at a time. One whose callback is switched off before it ends is never forgotten:
/// later calls of its thread have its number, and behind a few of that kind no beginnings are told any more (H200, CUPTI
/// 13.0).
const MOST_TOLD: usize = 4;

/// `CUpti_ApiCallbackSite`.
const ENTER: u32 = 0;
const EXIT: u32 = 1;

/// Threads within a call.
static INSIDE: AtomicU32 = AtomicU32::new(0);

/// Whether another thread than this one is within a call.
pub(crate) fn is_another_inside() -> bool {
    let is_inside = FRAMES.with_borrow(|frames| !frames.is_empty());
    INSIDE.load(Ordering::Acquire) > u32::from(is_inside)
}

impl Site {
    /// Runs `body` with all that a profiler sees of it. `symbol` is the kernel's name, for launches.
    pub(crate) fn run(
        &self,
        parameters: *const c_void,
        symbol: Option<CString>,
        body: impl FnOnce() -> Result<(), Code>,
    ) -> u32 {
        if process::is_forked() {
            return Code::NOT_INITIALIZED.0;
        }
        // What is not recorded when a call begins is not when it ends: `cuInit` itself never is. Callbacks are looked up anew.
        let is_recorded = filters::is_recorded(self.domain, self.cbid);
        let was_up = subscriber::was_there();
        let enclosing = enclosing_runtime_call().or_else(unended_call);
        let correlation_id = match enclosing {
            Some(id) => id,
            None if is_recorded || correlation::is_numbered(self.domain, self.cbid) => correlation::next(),
            None => 0,
        };
        let frame = Frame::Call {
            domain: self.domain,
            correlation_id,
        };
        let is_outermost = FRAMES.with_borrow_mut(|frames| {
            frames.push(frame);
            frames.len() == 1
        });
        if is_outermost {
            INSIDE.fetch_add(1, Ordering::AcqRel);
        }
        if enclosing.is_none() && is_recorded {
            correlation::emit_external(correlation_id);
        }
        let symbol_name = symbol.as_ref().map_or(std::ptr::null(), |name| name.as_ptr());
        let (mut correlation_data, mut result, mut is_begun) = (0_u64, 0_u32, false);
        let mut call_back = |site: u32, result: &mut u32| {
            if !subscriber::is_wanted(self.domain, self.cbid) {
                return;
            }
            match site {
                ENTER => {
                    is_begun = tell_beginning(correlation_id);
                    if !is_begun {
                        return;
                    }
                }
                _ if is_begun => drop(TOLD.with_borrow_mut(Vec::pop)),
                // One that began before its callback was switched on is told to end, unless it began before the library
                // came up: `cuInit` is not, with CUPTI 13.0.
                _ if !was_up => return,
                _ => {}
            }
            let current = context::current_or_none();
            let data = CallbackData {
                site,
                function_name: self.name.as_ptr(),
                parameters,
                return_value: (&raw mut *result).cast(),
                symbol_name,
                context: current.as_ref().map_or(0, |context| context.handle()),
                context_uid: current.as_ref().map_or(0, |context| context.id),
                correlation_data: &raw mut correlation_data,
                correlation_id,
            };
            // It was decided above: who is noted to be in a call is told.
            subscriber::tell(self.domain, self.cbid, (&raw const data).cast());
        };
        call_back(ENTER, &mut result);
        let start = clock::now();
        result = Code::of(body());
        let end = clock::now();
        if is_recorded {
            self.record(start, end, correlation_id, result);
        }
        call_back(EXIT, &mut result);
        FRAMES.with_borrow_mut(Vec::pop);
        if is_outermost {
            INSIDE.fetch_sub(1, Ordering::AcqRel);
        }
        result
    }

    fn record(&self, start: u64, end: u64, correlation_id: u32, return_value: u32) {
        let kind = match self.domain {
            Domain::Driver => kind::DRIVER,
            _ => kind::RUNTIME,
        };
        let record = Api {
            kind,
            cbid: self.cbid,
            start,
            end: end.max(start + 1),
            process_id: std::process::id(),
            thread_id: activity::thread_id(),
            correlation_id,
            return_value,
        };
        activity::emit(&record, kind);
    }
}

/// The number of the call that this thread is in; 0 when calls are not numbered.
pub(crate) fn correlation_id() -> u32 {
    FRAMES.with_borrow(|frames| match frames.last() {
        Some(Frame::Call { correlation_id, .. }) => *correlation_id,
        _ => 0,
    })
}

/// Runs a client's callback, in which calls count as its own.
pub(crate) fn outside_of_calls(callback: impl FnOnce()) {
    FRAMES.with_borrow_mut(|frames| frames.push(Frame::Callback));
    callback();
    FRAMES.with_borrow_mut(Vec::pop);
}

/// A driver call inside a runtime call has that call's number, also if a client's callback makes it (H200, CUPTI 13.0).
fn enclosing_runtime_call() -> Option<u32> {
    let runtime = |frame: &Frame| match frame {
        Frame::Call {
            domain: Domain::Runtime,
            correlation_id: correlation_id @ 1..,
        } => Some(*correlation_id),
        _ => None,
    };
    FRAMES.with_borrow(|frames| frames.iter().rev().find_map(runtime))
}

/// The number of a call that has ended without this thread's client being told, if there is one and the thread is in no
/// other.
fn unended_call() -> Option<u32> {
    if FRAMES.with_borrow(|frames| !frames.is_empty()) {
        return None;
    }
    TOLD.with_borrow(|told| told.first().copied())
}

/// The client is told of the beginning of a call, unless too many others have not ended.
fn tell_beginning(correlation_id: u32) -> bool {
    TOLD.with_borrow_mut(|told| {
        let is_told = told.len() < MOST_TOLD;
        if is_told {
            told.push(correlation_id);
        }
        is_told
    })
}

/// Declares functions of the driver or runtime: name, callback id, parameters as in the C header, and what they do. The
/// parameters are laid out as in CUPTI's generated structs, which name and order them alike.
macro_rules! api {
    ($domain:ident: $(
        $(#[$doc:meta])*
        fn $name:ident = $cbid:literal ($($arg:ident: $type:ty),* $(,)?) $(for $symbol:expr)? => $body:expr;
    )*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the name is C's")]
        pub(crate) extern "C" fn $name($($arg: $type),*) -> u32 {
            #[repr(C)]
            #[allow(dead_code, reason = "read by callbacks")]
            struct Parameters { $($arg: $type),* }
            const SITE: $crate::call::Site = $crate::call::Site {
                domain: $crate::cupti::subscriber::Domain::$domain,
                cbid: $cbid,
                name: match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("an identifier has no zero byte"),
                },
            };
            let parameters = Parameters { $($arg),* };
            #[allow(unused_mut, unused_assignments, reason = "only launches name a symbol")]
            let mut symbol = None;
            $(symbol = $symbol;)?
            SITE.run((&raw const parameters).cast(), symbol, move || $body)
        }
    )* };
}
pub(crate) use api;
