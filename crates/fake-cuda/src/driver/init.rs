//! `cuInit`, and the loading of an injection library inside it.

#![allow(
    unsafe_code,
    reason = "exports C functions and loads a library that is named in the environment"
)]

use std::ffi::{CString, c_int};
use std::sync::Mutex;

use super::state;
use crate::call::api;
use crate::code::Code;
use crate::config::config;
use crate::cupti::announcements;
use crate::cupti::callbacks;
use crate::pointer::Out;
use crate::process;

api! { Driver:
    fn cuInit = 1 (Flags: u32) => initialise(Flags);
    fn cuDriverGetVersion = 2 (driverVersion: Out<i32>) => driverVersion.put(config().driver_version);
}

/// The first call loads the injection library and lets it prepare itself before the call returns.
pub(crate) fn initialise(flags: u32) -> Result<(), Code> {
    static IS_BEGUN: Mutex<bool> = Mutex::new(false);
    if flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    if config().init_error != 0 {
        return Err(Code(config().init_error));
    }
    if config().devices == 0 {
        return Err(Code::NO_DEVICE);
    }
    {
        let mut is_begun = IS_BEGUN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if std::mem::replace(&mut *is_begun, true) {
            return Ok(());
        }
    }
    process::watch_for_fork();
    // An injection library that asks the driver something gets an answer.
    state::set_initialised();
    if let Some(path) = std::env::var_os("CUDA_INJECTION64_PATH") {
        inject(path.as_encoded_bytes());
    }
    announcements::announce_devices();
    callbacks::about_initialisation();
    Ok(())
}

/// A library that cannot be loaded, or says no, leaves the program as it was.
fn inject(path: &[u8]) {
    let Ok(path) = CString::new(path) else {
        return;
    };
    // SAFETY: dlopen runs the constructors of a library that the environment names, as the real driver does.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return;
    }
    // SAFETY: the handle came from dlopen, the name is a C string.
    let symbol = unsafe { libc::dlsym(library, c"InitializeInjection".as_ptr()) };
    if symbol.is_null() {
        return;
    }
    // SAFETY: the injection protocol gives the function of this name this type.
    let initialize = unsafe { std::mem::transmute::<*mut libc::c_void, extern "C" fn() -> c_int>(symbol) };
    crate::call::outside_of_calls(|| {
        // 1 is success; the driver goes on either way.
        let _ = initialize();
    });
}
