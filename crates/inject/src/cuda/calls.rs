//! API calls, recorded by callbacks.
//!
//! CUPTI can record calls by itself. It then handles every runtime and driver
//! call, even those whose records are switched off. PyTorch makes about twenty of
//! them for each launch, which made a training loop 25 % slower (H200, CUPTI
//! 13.0). Callbacks are switched on one by one and cost nothing elsewhere. So the
//! calling thread reads the clock at the beginning and the end of a call, and
//! pushes a record into its own ring. Calls within calls are not recorded.

use std::{
    cell::Cell,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

use tracesmith_cuda::cupti::{
    ApiDomain, Switch,
    abi::{ApiCallback, SITE_EXIT},
    callback_switches,
    function_set::FunctionSet,
};
use tracesmith_wire::record::{ApiCall, HOST_CLOCK, Payload, Text};

use super::{kinds::plain_name, multiplexer::CuptiMultiplexer, translate::code};
use crate::{agent::Agent, clock, threads};

/// IDs of function names follow from the interface and the callback ID. They lie
/// below those of records and above those of NVTX.
const FIRST_TEXT: u32 = 1 << 23;
const TEXTS_OF_DOMAIN: u32 = 1 << 12;

/// Counts windows: calls that a thread began in an earlier window are forgotten.
static EPOCH: AtomicU32 = AtomicU32::new(0);

/// Calls that begin later are not recorded, on CUPTI's clock; 0 while all are.
static END: AtomicU64 = AtomicU64::new(0);

/// Functions whose names were sent in this window.
static NAMED: [FunctionSet; 2] = [const { FunctionSet::new() }; 2];

#[derive(Clone, Copy)]
struct ActiveCall {
    epoch: u32,
    depth: u32,
    start: u64,
}

thread_local! {
    static ACTIVE_CALL: Cell<ActiveCall> = const { Cell::new(ActiveCall { epoch: 0, depth: 0, start: 0 }) };
}

/// A window opens.
pub(super) fn begin() {
    END.store(0, Ordering::Relaxed);
    EPOCH.fetch_add(1, Ordering::Relaxed);
    for bits in &NAMED {
        bits.set_all(Switch::Off);
    }
}

/// Calls that begin from now on are not recorded. GPU work still is, for a while. `time` is now on CUPTI's clock.
pub(super) fn end(time: u64) {
    END.store(time, Ordering::Release);
}

/// Whether work started after the end of the window and was launched by a call
/// after it. Calls are noted when they begin, so this is known even if the work's
/// record arrives first.
#[inline]
pub(super) fn is_after_window(correlation: u32, start: u64) -> bool {
    let end = END.load(Ordering::Acquire);
    end != 0 && start >= end && correlation > callback_switches::last_recorded()
}

/// The calling thread begins or ends a call.
#[inline]
pub(super) fn call(
    agent: &Agent,
    multiplexer: &CuptiMultiplexer,
    domain: ApiDomain,
    id: u32,
    call: &ApiCallback,
) {
    let epoch = EPOCH.load(Ordering::Relaxed);
    // A thread that is being torn down makes no calls that anyone looks for.
    let _ = ACTIVE_CALL.try_with(|place| {
        let mut at = place.get();
        if at.epoch != epoch {
            at = ActiveCall {
                epoch,
                depth: 0,
                start: 0,
            };
        }
        if call.site != SITE_EXIT {
            if at.depth == 0 {
                if END.load(Ordering::Acquire) != 0 {
                    return;
                }
                if let Some(stack) = callback_switches::here() {
                    stack.set_last_recorded(call.correlation);
                }
                at.start = clock::now();
            }
            at.depth += 1;
            place.set(at);
            return;
        }
        // One that began before the window is none of it.
        if at.depth == 0 {
            return;
        }
        at.depth -= 1;
        place.set(at);
        if at.depth == 0 {
            record(agent, multiplexer, domain, id, call, at.start);
        }
    });
}

fn record(
    agent: &Agent,
    multiplexer: &CuptiMultiplexer,
    domain: ApiDomain,
    id: u32,
    call: &ApiCallback,
    start: u64,
) {
    let result = result_of(call);
    let call = ApiCall {
        start,
        end: clock::now(),
        correlation: u64::from(call.correlation),
        thread: threads::thread_id(),
        name: name(agent, multiplexer, domain, id),
        result,
        stack: agent.stacks.of_call(call.correlation),
        function: u16::try_from(id).unwrap_or(u16::MAX),
        domain: match domain {
            ApiDomain::Driver => code::CUDA_DRIVER,
            ApiDomain::Runtime => code::CUDA_RUNTIME,
        },
        clock: HOST_CLOCK,
        reserved: [0; 4],
    };
    push(agent, &call);
}

/// The result of a call, at its end.
#[inline]
pub(super) fn result_of(call: &ApiCallback) -> i32 {
    // SAFETY: at the end of a call it is the call's result, a code of 32 bits for every function that has one.
    unsafe { call.result.cast::<i32>().as_ref() }
        .copied()
        .unwrap_or(0)
}

/// A record of the calling thread.
#[inline]
pub(super) fn push<T: Payload>(agent: &Agent, record: &T) {
    if !agent.threads.push_plain(record) {
        // An exit handler of the program's, say, which runs behind those of its thread. This ring is everyone's.
        agent.sink.with_activity(|activity, _| activity.push(record));
    }
}

/// The ID of the function's name, which is sent once per window.
#[inline]
fn name(agent: &Agent, multiplexer: &CuptiMultiplexer, domain: ApiDomain, id: u32) -> u32 {
    let text = FIRST_TEXT + domain as u32 * TEXTS_OF_DOMAIN + id;
    if !NAMED[domain as usize].contains(id) {
        let name = multiplexer.cupti().function_name(domain, id).unwrap_or_default();
        agent.sink.define_with(
            &Text {
                id: text,
                reserved: 0,
            },
            plain_name(name).as_bytes(),
        );
        // Last: another thread that finds it relies on it.
        NAMED[domain as usize].set(id, Switch::On);
    }
    text
}
