//! Starting and ending, versions, errors.

#![allow(unsafe_code, reason = "exports C functions")]

use std::ffi::c_char;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::code::NvmlCode;
use crate::config::config;
use crate::pointer::Out;

/// How often it was started and not ended.
static USERS: AtomicUsize = AtomicUsize::new(0);

/// Every function but a few fails before it is started.
pub(super) fn check() -> Result<(), NvmlCode> {
    if USERS.load(Ordering::Acquire) == 0 {
        return Err(NvmlCode::UNINITIALIZED);
    }
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> u32 {
    if USERS.fetch_add(1, Ordering::AcqRel) == 0 {
        start_helper();
    }
    0
}

/// As the real one does, in whose place nothing of ours must rely on there
/// being no other thread. It has the signal mask of whoever starts NVML, so
/// that a signal that is not blocked there finds it.
fn start_helper() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        // Without it the fake is a little less like the real one.
        let _ = thread::Builder::new().name("nvml".to_owned()).spawn(|| {
            loop {
                thread::park();
            }
        });
    });
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInitWithFlags(_flags: u32) -> u32 {
    nvmlInit_v2()
}

#[unsafe(no_mangle)]
extern "C" fn nvmlShutdown() -> u32 {
    let ended = USERS.fetch_update(Ordering::AcqRel, Ordering::Acquire, |users| users.checked_sub(1));
    NvmlCode::of(ended.map(|_| ()).map_err(|_| NvmlCode::UNINITIALIZED))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(code: u32) -> *const c_char {
    NvmlCode(code).c_text().as_ptr().cast()
}

#[unsafe(no_mangle)]
extern "C" fn nvmlSystemGetDriverVersion(version: Out<c_char>, length: u32) -> u32 {
    NvmlCode::of(text(version, length, "580.159.04"))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlSystemGetNVMLVersion(version: Out<c_char>, length: u32) -> u32 {
    NvmlCode::of(text(version, length, "13.580.159.04"))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlSystemGetCudaDriverVersion(version: Out<i32>) -> u32 {
    NvmlCode::of(version.put(config().driver_version).map_err(NvmlCode::from))
}

/// Writes a whole text or says that there is no room for it.
pub(super) fn text(out: Out<c_char>, length: u32, text: &str) -> Result<(), NvmlCode> {
    check()?;
    if (length as usize) <= text.len() {
        return Err(NvmlCode::INSUFFICIENT_SIZE);
    }
    Ok(out.put_text(text, length as usize)?)
}
