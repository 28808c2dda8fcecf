//! Names and texts of errors. These two make no records.

#![allow(unsafe_code, reason = "exports C functions")]

use std::ffi::c_char;

use crate::code::Code;
use crate::pointer::Out;

#[unsafe(no_mangle)]
extern "C" fn cuGetErrorName(error: u32, text: Out<*const c_char>) -> u32 {
    answer(Code(error).c_name(), text)
}

#[unsafe(no_mangle)]
extern "C" fn cuGetErrorString(error: u32, text: Out<*const c_char>) -> u32 {
    answer(Code(error).c_text(), text)
}

fn answer(text: Option<&'static str>, out: Out<*const c_char>) -> u32 {
    match text {
        Some(text) => Code::of(out.put(text.as_ptr().cast())),
        None => {
            out.put_if_wanted(std::ptr::null());
            Code::INVALID_VALUE.0
        }
    }
}
