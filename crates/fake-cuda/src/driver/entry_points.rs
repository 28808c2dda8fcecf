//! `cuGetProcAddress`: functions by name without their version suffix.

#![allow(
    unsafe_code,
    reason = "exports C functions and looks up symbols of this library"
)]

use std::ffi::{CString, c_char, c_void};

use crate::call::api;
use crate::code::Code;
use crate::pointer::{In, Out};

api! { Driver:
    fn cuGetProcAddress = 626 (symbol: In<c_char>, pfn: Out<usize>, _cudaVersion: i32, _flags: u64)
        => find(symbol).and_then(|address| pfn.put(address));
    fn cuGetProcAddress_v2 = 677 (
        symbol: In<c_char>, pfn: Out<usize>, _cudaVersion: i32, _flags: u64, symbolStatus: Out<u32>,
    ) => match find(symbol) {
        Ok(address) => {
            symbolStatus.put_if_wanted(0);
            pfn.put(address)
        }
        Err(code) => {
            // CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND.
            symbolStatus.put_if_wanted(1);
            pfn.put_if_wanted(0);
            Err(code)
        }
    };
}

/// The newest version of a function that is there.
fn find(symbol: In<c_char>) -> Result<usize, Code> {
    let name = symbol.string().ok_or(Code::INVALID_VALUE)?;
    let library = own_library().ok_or(Code::NOT_FOUND)?;
    // Versions above 2 have other parameters: only who names one gets it.
    for suffix in ["_v2", ""] {
        let full = CString::new(format!("{name}{suffix}")).map_err(|_| Code::INVALID_VALUE)?;
        // SAFETY: the handle came from dlopen, the name is a C string.
        let found = unsafe { libc::dlsym(library, full.as_ptr()) };
        if !found.is_null() {
            return Ok(found as usize);
        }
    }
    Err(Code::NOT_FOUND)
}

/// A handle of the shared object that this code is in.
fn own_library() -> Option<*mut c_void> {
    // SAFETY: all-zero is a valid value for this struct of pointers, which dladdr fills.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    let here = own_library as *const () as *const c_void;
    // SAFETY: any address may be asked for.
    let found = unsafe { libc::dladdr(here, &raw mut info) };
    if found == 0 {
        return None;
    }
    // SAFETY: dladdr gave the file name of a loaded object.
    let handle = unsafe { libc::dlopen(info.dli_fname, libc::RTLD_NOW | libc::RTLD_NOLOAD) };
    (!handle.is_null()).then_some(handle)
}
