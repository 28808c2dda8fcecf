//! The tool: `cuptiNvtxInitialize` puts functions into a client's tables that write marker records.

#![allow(
    unsafe_code,
    reason = "exports C functions and writes into the tables that a client lends"
)]

use std::collections::HashMap;
use std::ffi::{CString, c_char};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use super::protocol::{
    CALLBACKS, CORE, CORE2, Callbacks, Event, GetExportTable, NOT_TRACKED, Table, VERSION_INFO, core, core2,
};
use crate::clock;
use crate::cupti::activity;
use crate::cupti::code::CuptiCode;
use crate::cupti::names;
use crate::cupti::record::{Marker, MarkerData, kind};
use crate::kept::{Kept, KeptKey};
use crate::pointer::{In, Out};

/// `CUpti_ActivityFlag` of markers.
const INSTANTANEOUS: u32 = 1;
const START: u32 = 2;
const END: u32 = 4;

/// `CUPTI_ACTIVITY_OBJECT_THREAD`.
const THREAD: u32 = 2;

thread_local! {
    /// Open ranges of this thread, by domain.
    static PUSHED: Kept<HashMap<usize, Vec<u32>>> = Kept::new(HashMap::new());
}

/// Handles of domains and strings are addresses of texts that are kept for good. Domains are told apart even when they
/// share a name.
static DOMAINS: Mutex<Vec<(usize, u64)>> = Mutex::new(Vec::new());

#[unsafe(no_mangle)]
extern "C" fn cuptiNvtxInitialize(get_export_table: Option<GetExportTable>) -> u32 {
    cuptiNvtxInitialize2(get_export_table)
}

#[unsafe(no_mangle)]
extern "C" fn cuptiNvtxInitialize2(get_export_table: Option<GetExportTable>) -> u32 {
    CuptiCode::of(take_tables(get_export_table))
}

/// libcupti is itself a library that NVTX can load: `NVTX_INJECTION64_PATH` may name it.
#[unsafe(no_mangle)]
extern "C" fn InitializeInjectionNvtx2(get_export_table: Option<GetExportTable>) -> i32 {
    i32::from(take_tables(get_export_table).is_ok())
}

fn take_tables(get_export_table: Option<GetExportTable>) -> Result<(), CuptiCode> {
    let get_export_table = get_export_table.ok_or(CuptiCode::INVALID_PARAMETER)?;
    let callbacks = In::<Callbacks>::from_address(get_export_table(CALLBACKS) as u64);
    let callbacks = callbacks.get().ok_or(CuptiCode::INVALID_PARAMETER)?;
    if get_export_table(VERSION_INFO).is_null() {
        return Err(CuptiCode::INVALID_PARAMETER);
    }
    // The real tool fails when a client lacks any of the modules.
    for module in 1..=super::protocol::MODULES {
        table_of(&callbacks, module)?;
    }
    fill(table_of(&callbacks, CORE)?, &core_functions());
    fill(table_of(&callbacks, CORE2)?, &core2_functions());
    Ok(())
}

fn table_of(callbacks: &Callbacks, module: u32) -> Result<In<usize>, CuptiCode> {
    let (mut table, mut size): (Table, u32) = (0, 0);
    if (callbacks.get_table)(module, &raw mut table, &raw mut size) == 0 || table == 0 {
        return Err(CuptiCode::INVALID_PARAMETER);
    }
    Ok(In::from_address(table as u64))
}

fn fill(table: In<usize>, functions: &[(usize, usize)]) {
    for &(slot, function) in functions {
        if let Some(place) = table.at(slot) {
            Out::<usize>::from_address(place as u64).put_if_wanted(function);
        }
    }
}

fn core_functions() -> [(usize, usize); 10] {
    [
        (core::MARK_EX, mark_ex as *const () as usize),
        (core::MARK_A, mark_a as *const () as usize),
        (core::START_EX, start_ex as *const () as usize),
        (core::START_A, start_a as *const () as usize),
        (core::END, end as *const () as usize),
        (core::PUSH_EX, push_ex as *const () as usize),
        (core::PUSH_A, push_a as *const () as usize),
        (core::POP, pop as *const () as usize),
        (core::NAME_CATEGORY_A, name_category as *const () as usize),
        (core::NAME_OS_THREAD_A, name_thread as *const () as usize),
    ]
}

fn core2_functions() -> [(usize, usize); 9] {
    [
        (core2::MARK_EX, domain_mark as *const () as usize),
        (core2::START_EX, domain_start as *const () as usize),
        (core2::END, domain_end as *const () as usize),
        (core2::PUSH_EX, domain_push as *const () as usize),
        (core2::POP, domain_pop as *const () as usize),
        (core2::NAME_CATEGORY_A, domain_name_category as *const () as usize),
        (core2::REGISTER_STRING_A, register_string as *const () as usize),
        (core2::CREATE_A, create_domain as *const () as usize),
        (core2::DESTROY, destroy_domain as *const () as usize),
    ]
}

extern "C" fn mark_ex(event: Event) {
    domain_mark(0, event);
}

extern "C" fn mark_a(message: In<c_char>) {
    emit(INSTANTANEOUS, next_id(), kept(message), 0);
}

extern "C" fn start_ex(event: Event) -> u64 {
    domain_start(0, event)
}

extern "C" fn start_a(message: In<c_char>) -> u64 {
    let id = next_id();
    emit(START, id, kept(message), 0);
    id.into()
}

extern "C" fn end(id: u64) {
    domain_end(0, id);
}

extern "C" fn push_ex(event: Event) -> i32 {
    domain_push(0, event)
}

extern "C" fn push_a(message: In<c_char>) -> i32 {
    let id = next_id();
    emit(START, id, kept(message), 0);
    pushed(0, id)
}

extern "C" fn pop() -> i32 {
    domain_pop(0)
}

extern "C" fn name_category(_category: u32, _name: In<c_char>) {}

extern "C" fn name_thread(_thread: u32, _name: In<c_char>) {}

extern "C" fn domain_name_category(_domain: usize, _category: u32, _name: In<c_char>) {}

extern "C" fn register_string(_domain: usize, text: In<c_char>) -> usize {
    kept(text) as usize
}

/// Each domain has a handle of its own: the address of a copy of its name.
extern "C" fn create_domain(name: In<c_char>) -> usize {
    let text: CString = name.text().unwrap_or_default();
    let mut domains = DOMAINS.lock().unwrap_or_else(PoisonError::into_inner);
    let handle = text.clone().into_raw() as usize;
    domains.push((handle, names::kept(&text)));
    handle
}

extern "C" fn destroy_domain(domain: usize) {
    let mut domains = DOMAINS.lock().unwrap_or_else(PoisonError::into_inner);
    domains.retain(|&(handle, _)| handle != domain);
}

extern "C" fn domain_mark(domain: usize, event: Event) {
    let id = next_id();
    emit(INSTANTANEOUS, id, message_of(event), domain);
    emit_data(id, event);
}

extern "C" fn domain_start(domain: usize, event: Event) -> u64 {
    let id = next_id();
    emit(START, id, message_of(event), domain);
    emit_data(id, event);
    id.into()
}

extern "C" fn domain_end(domain: usize, id: u64) {
    emit(END, id as u32, 0, domain);
}

extern "C" fn domain_push(domain: usize, event: Event) -> i32 {
    let id = next_id();
    emit(START, id, message_of(event), domain);
    emit_data(id, event);
    pushed(domain, id)
}

/// Answers the level of the range that ended, the outermost being 0.
extern "C" fn domain_pop(domain: usize) -> i32 {
    let popped = PUSHED.with_borrow_mut(|pushed| {
        let open = pushed.entry(domain).or_default();
        open.pop().map(|id| (id, open.len()))
    });
    match popped {
        Some((id, level)) => {
            emit(END, id, 0, domain);
            level as i32
        }
        None => NOT_TRACKED,
    }
}

/// Answers the level of the range, the outermost being 0.
fn pushed(domain: usize, id: u32) -> i32 {
    PUSHED.with_borrow_mut(|pushed| {
        let open = pushed.entry(domain).or_default();
        open.push(id);
        open.len() as i32 - 1
    })
}

fn next_id() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn kept(text: In<c_char>) -> u64 {
    text.text().map_or(0, |text| names::kept(&text))
}

/// The message of an event: text (1) or a registered string (3), whose handle is the address of its text.
fn message_of(event: Event) -> u64 {
    match event.get() {
        Some(event) if event.message_type == 1 => kept(In::from_address(event.message)),
        Some(event) if event.message_type == 3 => event.message,
        _ => 0,
    }
}

fn emit(flags: u32, id: u32, name: u64, domain: usize) {
    if !activity::is_enabled(kind::MARKER) {
        return;
    }
    let domains = DOMAINS.lock().unwrap_or_else(PoisonError::into_inner);
    let domain = domains.iter().find(|&&(handle, _)| handle == domain);
    let domain = domain.map_or(0, |&(_, name)| name);
    let record = Marker {
        kind: kind::MARKER,
        flags,
        timestamp: clock::now(),
        id,
        object_kind: THREAD,
        object: [std::process::id(), activity::thread_id(), 0],
        pad0: 0,
        name,
        domain,
    };
    activity::emit(&record, kind::MARKER);
}

fn emit_data(id: u32, event: Event) {
    let Some(event) = event.get() else {
        return;
    };
    if !activity::is_enabled(kind::MARKER_DATA) {
        return;
    }
    // CUPTI_ACTIVITY_FLAG_MARKER_COLOR_ARGB is 1 << 1 for marker data.
    let flags = if event.color_type == 1 { 2 } else { 1 };
    let record = MarkerData {
        kind: kind::MARKER_DATA,
        flags,
        id,
        payload_kind: payload_kind(event.payload_type),
        payload: event.payload,
        color: event.color,
        category: event.category,
        ..MarkerData::default()
    };
    activity::emit(&record, kind::MARKER_DATA);
}

/// `CUpti_MetricValueKind` for an `nvtxPayloadType_t`: unsigned, signed or floating, of 64 or 32 bits.
fn payload_kind(payload_type: i32) -> u32 {
    match payload_type {
        1 | 4 => 1,
        2 | 5 => 4,
        3 | 6 => 0,
        _ => u32::MAX,
    }
}
