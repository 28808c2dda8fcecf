//! The functions that NVTX calls.
//!
//! <https://nvidia.github.io/NVTX/doxygen/>

use std::{
    ffi::{c_int, c_void},
    sync::atomic::Ordering,
};

use tracesmith_wire::record::{self, Category, Marker};

use super::{
    LAST_RANGE,
    abi::{Attributes, COLOR_ARGB, Narrow, Wide, module},
    depth,
    registry::{self, Registry},
    text::{self, Cut, Message, Room, handle, number},
};
use crate::{
    agent::{self, Agent},
    backend::Backend,
    guard,
    sink::Sink,
    threads::TEXT_MAX,
};

/// The result of `nvtxRangePush` if no tool is attached.
const NO_TRACKING: c_int = -2;

/// A function's address, of the type that its slot has.
pub(super) struct Function(pub(super) *const c_void);

// SAFETY: the address of code.
unsafe impl Sync for Function {}

macro_rules! slots {
    ($($at:literal $function:ident)*) => { &[$(($at, Function($function as *const c_void)),)*] };
}

/// Slots by module.
pub(super) static MODULES: &[(u32, &[(usize, Function)])] = &[
    (
        module::CORE,
        slots! {
            1 mark_ex 2 mark_a 3 mark_w 4 start_ex 5 start_a 6 start_w 7 end 8 push_ex 9 push_a 10 push_w 11 pop
            12 category_a 13 category_w 14 thread_a 15 thread_w
        },
    ),
    (
        module::CORE2,
        slots! {
            1 domain_mark 2 domain_start 3 domain_end 4 domain_push 5 domain_pop 8 domain_category_a
            9 domain_category_w 10 register_a 11 register_w 12 domain_a 13 domain_w
        },
    ),
    (module::CUDA, slots! { 5 stream_a 6 stream_w }),
    (module::CUDART, slots! { 3 stream_a 4 stream_w }),
];

fn with_agent<T: Copy>(otherwise: T, body: impl FnOnce(&'static Agent) -> T) -> T {
    guard::run(otherwise, || agent::current().map_or(otherwise, body))
}

fn event(agent: &Agent, marker: Marker, message: &Message<'_>) {
    agent.nvtx.event(agent, marker, message);
}

/// A marker of one phase in a domain.
fn plain(phase: u8, domain: u32) -> Marker {
    Marker {
        phase,
        domain,
        ..Marker::default()
    }
}

/// A marker with the program's attributes.
fn with_attributes(phase: u8, domain: u32, attributes: &Attributes) -> Marker {
    Marker {
        category: attributes.category,
        color: if attributes.color_kind == COLOR_ARGB {
            attributes.color
        } else {
            0
        },
        payload: attributes.payload,
        // The codes of the format are those of NVTX.
        payload_kind: u8::try_from(attributes.payload_kind).unwrap_or(0),
        ..plain(phase, domain)
    }
}

/// An event of a domain with attributes that may be missing.
///
/// # Safety
///
/// Null, or attributes as NVTX documents them.
unsafe fn attributed(agent: &Agent, phase: u8, domain: u32, range: u64, attributes: *const Attributes) {
    let mut room: Room = [0; TEXT_MAX];
    // SAFETY: the caller vouches for it.
    let Some(attributes) = (unsafe { attributes.as_ref() }) else {
        let marker = Marker {
            range,
            ..plain(phase, domain)
        };
        return event(agent, marker, &Message::Text(b"", Cut::Whole));
    };
    // SAFETY: as above.
    let message = unsafe { text::of_attributes(attributes, &mut room) };
    let marker = Marker {
        range,
        ..with_attributes(phase, domain, attributes)
    };
    event(agent, marker, &message);
}

unsafe extern "C" fn mark_ex(attributes: *const Attributes) {
    // SAFETY: NVTX's contract.
    with_agent((), |agent| unsafe {
        attributed(agent, record::MARK, 0, 0, attributes)
    });
}

unsafe extern "C" fn mark_a(name: Narrow) {
    // SAFETY: NVTX's contract.
    let message = unsafe { text::narrow(name) };
    with_agent((), |agent| event(agent, plain(record::MARK, 0), &message));
}

unsafe extern "C" fn mark_w(name: Wide) {
    with_agent((), |agent| {
        let mut room: Room = [0; TEXT_MAX];
        // SAFETY: NVTX's contract.
        let message = unsafe { text::wide(name, &mut room) };
        event(agent, plain(record::MARK, 0), &message);
    });
}

fn next_range() -> u64 {
    LAST_RANGE.fetch_add(1, Ordering::Relaxed) + 1
}

unsafe extern "C" fn start_ex(attributes: *const Attributes) -> u64 {
    // SAFETY: NVTX's contract.
    unsafe { domain_start(std::ptr::null(), attributes) }
}

unsafe extern "C" fn start_a(name: Narrow) -> u64 {
    with_agent(0, |agent| {
        let marker = Marker {
            range: next_range(),
            ..plain(record::START, 0)
        };
        // SAFETY: NVTX's contract.
        event(agent, marker, &unsafe { text::narrow(name) });
        marker.range
    })
}

unsafe extern "C" fn start_w(name: Wide) -> u64 {
    with_agent(0, |agent| {
        let mut room: Room = [0; TEXT_MAX];
        // SAFETY: NVTX's contract.
        let message = unsafe { text::wide(name, &mut room) };
        let marker = Marker {
            range: next_range(),
            ..plain(record::START, 0)
        };
        event(agent, marker, &message);
        marker.range
    })
}

unsafe extern "C" fn end(range: u64) {
    // SAFETY: takes numbers.
    unsafe { domain_end(std::ptr::null(), range) };
}

unsafe extern "C" fn push_ex(attributes: *const Attributes) -> c_int {
    // SAFETY: NVTX's contract.
    unsafe { domain_push(std::ptr::null(), attributes) }
}

unsafe extern "C" fn push_a(name: Narrow) -> c_int {
    with_agent(NO_TRACKING, |agent| {
        let level = depth::push(0);
        // SAFETY: NVTX's contract.
        event(agent, plain(record::PUSH, 0), &unsafe { text::narrow(name) });
        level
    })
}

unsafe extern "C" fn push_w(name: Wide) -> c_int {
    with_agent(NO_TRACKING, |agent| {
        let level = depth::push(0);
        let mut room: Room = [0; TEXT_MAX];
        // SAFETY: NVTX's contract.
        let message = unsafe { text::wide(name, &mut room) };
        event(agent, plain(record::PUSH, 0), &message);
        level
    })
}

unsafe extern "C" fn pop() -> c_int {
    // SAFETY: takes a handle of ours.
    unsafe { domain_pop(std::ptr::null()) }
}

unsafe extern "C" fn domain_mark(domain: *const c_void, attributes: *const Attributes) {
    with_agent((), |agent| {
        // SAFETY: NVTX's contract.
        unsafe { attributed(agent, record::MARK, number(domain), 0, attributes) };
    });
}

unsafe extern "C" fn domain_start(domain: *const c_void, attributes: *const Attributes) -> u64 {
    with_agent(0, |agent| {
        let range = next_range();
        // SAFETY: NVTX's contract.
        unsafe { attributed(agent, record::START, number(domain), range, attributes) };
        range
    })
}

unsafe extern "C" fn domain_end(domain: *const c_void, range: u64) {
    with_agent((), |agent| {
        let marker = Marker {
            range,
            ..plain(record::END, number(domain))
        };
        event(agent, marker, &Message::Text(b"", Cut::Whole));
    });
}

unsafe extern "C" fn domain_push(domain: *const c_void, attributes: *const Attributes) -> c_int {
    with_agent(NO_TRACKING, |agent| {
        let level = depth::push(number(domain));
        // SAFETY: NVTX's contract.
        unsafe { attributed(agent, record::PUSH, number(domain), 0, attributes) };
        level
    })
}

unsafe extern "C" fn domain_pop(domain: *const c_void) -> c_int {
    with_agent(NO_TRACKING, |agent| {
        let level = depth::pop(number(domain));
        if level >= 0 {
            event(
                agent,
                plain(record::POP, number(domain)),
                &Message::Text(b"", Cut::Whole),
            );
        }
        level
    })
}

/// Names are kept also where nothing is recorded yet, as in the child of a fork.
fn with_names<T: Copy>(otherwise: T, body: impl FnOnce(&mut Registry, Option<&Sink>) -> T) -> T {
    guard::run(otherwise, || {
        let sink = agent::current().map(|agent| &agent.sink);
        registry::with(|registry| body(registry, sink))
    })
}

fn name_category(domain: u32, category: u32, name: &Message<'_>) {
    with_names((), |names, sink| {
        if let Message::Text(name, _) = name {
            names.category(Category { domain, category }, name, sink);
        }
    });
}

unsafe extern "C" fn category_a(category: u32, name: Narrow) {
    // SAFETY: NVTX's contract.
    name_category(0, category, &unsafe { text::narrow(name) });
}

unsafe extern "C" fn category_w(category: u32, name: Wide) {
    let mut room: Room = [0; TEXT_MAX];
    // SAFETY: NVTX's contract.
    name_category(0, category, &unsafe { text::wide(name, &mut room) });
}

unsafe extern "C" fn domain_category_a(domain: *const c_void, category: u32, name: Narrow) {
    // SAFETY: NVTX's contract.
    name_category(number(domain), category, &unsafe { text::narrow(name) });
}

unsafe extern "C" fn domain_category_w(domain: *const c_void, category: u32, name: Wide) {
    let mut room: Room = [0; TEXT_MAX];
    // SAFETY: NVTX's contract.
    name_category(number(domain), category, &unsafe { text::wide(name, &mut room) });
}

fn name_thread(thread: u32, name: &Message<'_>) {
    with_names((), |names, sink| {
        if let Message::Text(name, _) = name {
            names.thread(thread, name, sink);
        }
    });
}

unsafe extern "C" fn thread_a(thread: u32, name: Narrow) {
    // SAFETY: NVTX's contract.
    name_thread(thread, &unsafe { text::narrow(name) });
}

unsafe extern "C" fn thread_w(thread: u32, name: Wide) {
    let mut room: Room = [0; TEXT_MAX];
    // SAFETY: NVTX's contract.
    name_thread(thread, &unsafe { text::wide(name, &mut room) });
}

fn registered(text: &Message<'_>) -> *const c_void {
    let number = with_names(0, |names, sink| match text {
        Message::Text(text, _) => names.text(text, sink),
        Message::Registered(number) => *number,
    });
    handle(number)
}

unsafe extern "C" fn register_a(_domain: *const c_void, text: Narrow) -> *const c_void {
    // SAFETY: NVTX's contract.
    registered(&unsafe { text::narrow(text) })
}

unsafe extern "C" fn register_w(_domain: *const c_void, text: Wide) -> *const c_void {
    let mut room: Room = [0; TEXT_MAX];
    // SAFETY: NVTX's contract.
    registered(&unsafe { text::wide(text, &mut room) })
}

unsafe extern "C" fn domain_a(name: Narrow) -> *const c_void {
    // SAFETY: NVTX's contract.
    registered(&unsafe { text::narrow(name) })
}

unsafe extern "C" fn domain_w(name: Wide) -> *const c_void {
    let mut room: Room = [0; TEXT_MAX];
    // SAFETY: NVTX's contract.
    registered(&unsafe { text::wide(name, &mut room) })
}

fn name_stream(stream: *mut c_void, name: &Message<'_>) {
    with_agent((), |agent| {
        if let Message::Text(name, _) = name {
            agent.cuda.name_stream(agent, stream, name);
        }
    });
}

unsafe extern "C" fn stream_a(stream: *mut c_void, name: Narrow) {
    // SAFETY: NVTX's contract.
    name_stream(stream, &unsafe { text::narrow(name) });
}

unsafe extern "C" fn stream_w(stream: *mut c_void, name: Wide) {
    let mut room: Room = [0; TEXT_MAX];
    // SAFETY: NVTX's contract.
    name_stream(stream, &unsafe { text::wide(name, &mut room) });
}
