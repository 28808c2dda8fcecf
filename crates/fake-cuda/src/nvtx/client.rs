//! The client: what the header-only NVTX is in a program. The first call loads the library that `NVTX_INJECTION64_PATH`
//! names and lets it fill the tables; without one, calls do nothing.

#![allow(
    unsafe_code,
    reason = "exports C functions and calls those that a tool put into the tables"
)]

use std::ffi::{CString, c_char, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::protocol::{
    CALLBACKS, CORE, CORE2, Callbacks, Event, GetExportTable, MODULES, NOT_TRACKED, SLOTS, Table,
    VERSION_INFO, VersionInfo, core, core2,
};
use crate::pointer::In;

type Slots = [AtomicUsize; SLOTS];

static CORE_SLOTS: Slots = [const { AtomicUsize::new(0) }; SLOTS];
static CORE2_SLOTS: Slots = [const { AtomicUsize::new(0) }; SLOTS];
/// Of modules that are never called; tools want to find them all the same.
static OTHER_SLOTS: Slots = [const { AtomicUsize::new(0) }; SLOTS];

/// The addresses of a module's slots, ended by null; the first is not used.
fn addresses(slots: &'static Slots) -> Vec<usize> {
    let used = slots.iter().skip(1).map(|slot| slot.as_ptr() as usize);
    std::iter::once(0).chain(used).chain(std::iter::once(0)).collect()
}

fn table(module: u32) -> Option<&'static Vec<usize>> {
    static TABLES: OnceLock<[Vec<usize>; 3]> = OnceLock::new();
    let [core, core2, other] =
        TABLES.get_or_init(|| [&CORE_SLOTS, &CORE2_SLOTS, &OTHER_SLOTS].map(addresses));
    match module {
        CORE => Some(core),
        CORE2 => Some(core2),
        0 => None,
        _ => (module <= MODULES).then_some(other),
    }
}

extern "C" fn get_table(module: u32, out: *mut Table, size: *mut u32) -> i32 {
    let Some(found) = table(module) else {
        return 0;
    };
    crate::pointer::Out::from_address(out as u64).put_if_wanted(found.as_ptr() as Table);
    crate::pointer::Out::from_address(size as u64).put_if_wanted(SLOTS as u32);
    1
}

extern "C" fn set_tool_version(_version: u32) {}

extern "C" fn get_export_table(id: u32) -> *const c_void {
    static CALLBACK_TABLE: Callbacks = Callbacks {
        size: size_of::<Callbacks>(),
        get_table,
    };
    static VERSION_TABLE: VersionInfo = VersionInfo {
        size: size_of::<VersionInfo>(),
        version: 3,
        reserved: 0,
        set_tool_version,
    };
    match id {
        CALLBACKS => (&raw const CALLBACK_TABLE).cast(),
        VERSION_INFO => (&raw const VERSION_TABLE).cast(),
        _ => std::ptr::null(),
    }
}

/// Lets a tool take the tables, once.
fn start() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        let path = std::env::var_os("NVTX_INJECTION64_PATH");
        let Some(path) = path.and_then(|path| CString::new(path.as_encoded_bytes()).ok()) else {
            return;
        };
        // SAFETY: dlopen runs the constructors of a library that the environment names, as NVTX does.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY) };
        if library.is_null() {
            return;
        }
        // SAFETY: the handle came from dlopen, the name is a C string.
        let symbol = unsafe { libc::dlsym(library, c"InitializeInjectionNvtx2".as_ptr()) };
        if symbol.is_null() {
            return;
        }
        // SAFETY: the injection protocol gives the function of this name this type.
        let initialize =
            unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(GetExportTable) -> i32>(symbol) };
        if initialize(get_export_table) == 0 {
            for slot in CORE_SLOTS.iter().chain(&CORE2_SLOTS) {
                slot.store(0, Ordering::Release);
            }
        }
    });
}

/// Declares a C function that calls what a tool put into a slot.
macro_rules! nvtx {
    ($(fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)? = $slots:ident[$slot:expr] or $otherwise:expr;)*) => { $(
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the name is C's")]
        extern "C" fn $name($($arg: $type),*) $(-> $result)? {
            start();
            match $slots[$slot].load(Ordering::Acquire) {
                0 => $otherwise,
                address => {
                    type Function = extern "C" fn($($type),*) $(-> $result)?;
                    // SAFETY: a tool puts a function of the slot's type into it.
                    let function = unsafe { std::mem::transmute::<usize, Function>(address) };
                    function($($arg),*)
                }
            }
        }
    )* };
}

nvtx! {
    fn nvtxMarkA(message: In<c_char>) = CORE_SLOTS[core::MARK_A] or ();
    fn nvtxMarkEx(event: Event) = CORE_SLOTS[core::MARK_EX] or ();
    fn nvtxRangeStartA(message: In<c_char>) -> u64 = CORE_SLOTS[core::START_A] or 0;
    fn nvtxRangeStartEx(event: Event) -> u64 = CORE_SLOTS[core::START_EX] or 0;
    fn nvtxRangeEnd(id: u64) = CORE_SLOTS[core::END] or ();
    fn nvtxRangePushA(message: In<c_char>) -> i32 = CORE_SLOTS[core::PUSH_A] or NOT_TRACKED;
    fn nvtxRangePushEx(event: Event) -> i32 = CORE_SLOTS[core::PUSH_EX] or NOT_TRACKED;
    fn nvtxRangePop() -> i32 = CORE_SLOTS[core::POP] or NOT_TRACKED;
    fn nvtxNameCategoryA(category: u32, name: In<c_char>) = CORE_SLOTS[core::NAME_CATEGORY_A] or ();
    fn nvtxNameOsThreadA(thread: u32, name: In<c_char>) = CORE_SLOTS[core::NAME_OS_THREAD_A] or ();
    fn nvtxDomainCreateA(name: In<c_char>) -> usize = CORE2_SLOTS[core2::CREATE_A] or 0;
    fn nvtxDomainDestroy(domain: usize) = CORE2_SLOTS[core2::DESTROY] or ();
    fn nvtxDomainMarkEx(domain: usize, event: Event) = CORE2_SLOTS[core2::MARK_EX] or ();
    fn nvtxDomainRangeStartEx(domain: usize, event: Event) -> u64 = CORE2_SLOTS[core2::START_EX] or 0;
    fn nvtxDomainRangeEnd(domain: usize, id: u64) = CORE2_SLOTS[core2::END] or ();
    fn nvtxDomainRangePushEx(domain: usize, event: Event) -> i32 = CORE2_SLOTS[core2::PUSH_EX] or NOT_TRACKED;
    fn nvtxDomainRangePop(domain: usize) -> i32 = CORE2_SLOTS[core2::POP] or NOT_TRACKED;
    fn nvtxDomainNameCategoryA(domain: usize, category: u32, name: In<c_char>)
        = CORE2_SLOTS[core2::NAME_CATEGORY_A] or ();
    fn nvtxDomainRegisterStringA(domain: usize, text: In<c_char>) -> usize
        = CORE2_SLOTS[core2::REGISTER_STRING_A] or 0;
}
