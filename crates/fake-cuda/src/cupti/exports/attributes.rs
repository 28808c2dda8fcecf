//! Settings of the activity interface: kept, and read back; only the choice of buffers per thread changes anything.

#![allow(unsafe_code, reason = "exports C functions")]

use std::sync::{Mutex, PoisonError};

use crate::cupti::activity;
use crate::cupti::code::CuptiCode;
use crate::pointer::{In, Out};

/// `CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER`: one byte, the others are `size_t` or bytes.
const PER_THREAD_ACTIVITY_BUFFER: u32 = 9;
const IS_BYTE: [u32; 3] = [5, 8, PER_THREAD_ACTIVITY_BUFFER];

/// What the real library starts with.
static VALUES: Mutex<[u64; 10]> = Mutex::new([3_200_000, 8 << 20, 250, 25_000, 250, 0, 3, 3, 0, 0]);

#[unsafe(no_mangle)]
extern "C" fn cuptiActivitySetAttribute(attribute: u32, size: Out<usize>, value: In<u8>) -> u32 {
    CuptiCode::of(set(attribute, size, value))
}

#[unsafe(no_mangle)]
extern "C" fn cuptiActivityGetAttribute(attribute: u32, size: Out<usize>, value: Out<u8>) -> u32 {
    CuptiCode::of(get(attribute, size, value))
}

fn set(attribute: u32, size: Out<usize>, value: In<u8>) -> Result<(), CuptiCode> {
    let width = width(attribute, size)?;
    let bytes = value.list(width);
    if bytes.is_empty() {
        return Err(CuptiCode::INVALID_PARAMETER);
    }
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(&bytes);
    let number = u64::from_le_bytes(wide);
    VALUES.lock().unwrap_or_else(PoisonError::into_inner)[attribute as usize] = number;
    if attribute == PER_THREAD_ACTIVITY_BUFFER {
        activity::set_buffer_per_thread(number as u32);
    }
    Ok(())
}

fn get(attribute: u32, size: Out<usize>, value: Out<u8>) -> Result<(), CuptiCode> {
    let width = width(attribute, size)?;
    let number = match attribute {
        PER_THREAD_ACTIVITY_BUFFER => u64::from(activity::has_buffer_per_thread()),
        _ => VALUES.lock().unwrap_or_else(PoisonError::into_inner)[attribute as usize],
    };
    value.put_all(&number.to_le_bytes()[..width]);
    size.put_if_wanted(width);
    Ok(())
}

/// Bytes of an attribute, if the caller's are enough.
fn width(attribute: u32, size: Out<usize>) -> Result<usize, CuptiCode> {
    if attribute > PER_THREAD_ACTIVITY_BUFFER {
        return Err(CuptiCode::INVALID_PARAMETER);
    }
    let width = if IS_BYTE.contains(&attribute) { 1 } else { 8 };
    match size.get() {
        None => Err(CuptiCode::INVALID_PARAMETER),
        Some(given) if given < width => Err(CuptiCode::PARAMETER_SIZE_NOT_SUFFICIENT),
        Some(_) => Ok(width),
    }
}
