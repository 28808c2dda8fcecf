//! `dlsym`, for libraries that look CUPTI's functions up by name.
//!
//! Proton, XLA and others open libcupti and ask for its functions, perhaps in a
//! copy of their own. Preloaded, we are asked instead. Names that do not begin
//! with `cupti` go on to the real function by a jump, so that it sees the
//! program's own return address, which decides what `RTLD_NEXT` means. For those
//! that do, the answer is our function where there is one, and otherwise that of
//! the one CUPTI that this process uses: two CUPTIs do not work side by side.

use std::{
    cell::Cell,
    ffi::{CStr, c_char, c_void},
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

use super::interpose;
use crate::guard;

/// The C library's function.
static REAL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

thread_local! {
    static OURS: Cell<u32> = const { Cell::new(0) };
}

type Lookup = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// Runs `body` with lookups of our own, which find CUPTI's real functions.
pub(super) fn for_ourselves<T>(body: impl FnOnce() -> T) -> T {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            // A thread that is being torn down looks nothing up any more.
            let _ = OURS.try_with(|depth| depth.set(depth.get().saturating_sub(1)));
        }
    }
    let _ = OURS.try_with(|depth| depth.set(depth.get() + 1));
    let _leave = Leave;
    body()
}

/// What the program calls.
///
/// # Safety
///
/// As the C library's function of this name.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    std::arch::naked_asm!(
        "test rsi, rsi",
        "je 2f",
        "cmp byte ptr [rsi], 'c'",
        "jne 2f",
        "cmp byte ptr [rsi + 1], 'u'",
        "jne 2f",
        "cmp byte ptr [rsi + 2], 'p'",
        "jne 2f",
        "cmp byte ptr [rsi + 3], 't'",
        "jne 2f",
        "cmp byte ptr [rsi + 4], 'i'",
        "je {cupti}",
        "2:",
        "mov rax, qword ptr [rip + {real}]",
        "test rax, rax",
        "je 3f",
        "jmp rax",
        "3:",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {find}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        cupti = sym cupti_function,
        real = sym REAL,
        find = sym find_real,
    )
}

/// The C library's `dlsym`, found by its version so that it is not ours.
#[cfg(target_arch = "x86_64")]
extern "C" fn find_real() -> *mut c_void {
    let known = REAL.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    for version in [c"GLIBC_2.34", c"GLIBC_2.2.5", c"GLIBC_2.17"] {
        // SAFETY: texts that end with a zero byte.
        let found = unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()) };
        if !found.is_null() {
            REAL.store(found, Ordering::Relaxed);
            return found;
        }
    }
    nothing as *mut c_void
}

/// Stands in where the C library's function cannot be found, which no version of
/// glibc has shown.
#[cfg(target_arch = "x86_64")]
unsafe extern "C" fn nothing(_handle: *mut c_void, _name: *const c_char) -> *mut c_void {
    ptr::null_mut()
}

/// A function whose name begins with `cupti`.
#[cfg(target_arch = "x86_64")]
unsafe extern "C" fn cupti_function(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: the C library's function, or one of the same type.
    let real = unsafe { std::mem::transmute::<*mut c_void, Lookup>(find_real()) };
    // SAFETY: as the program called us.
    let found = unsafe { real(handle, name) };
    let ourselves = OURS.try_with(Cell::get).unwrap_or(0) > 0;
    if found.is_null() || ourselves {
        return found;
    }
    guard::run(found, || {
        // SAFETY: the program's text.
        let name = unsafe { CStr::from_ptr(name) };
        name.to_str()
            .ok()
            .and_then(interpose::instead_of)
            .map_or(found, <*const c_void>::cast_mut)
    })
}
