//! Setting memory to a value. On the device all of these run beside the caller.

#![allow(unsafe_code, reason = "exports C functions")]

use super::state::check_initialised;
use super::work;
use crate::call::api;
use crate::code::Code;
use crate::engine::context::stream_by_handle;
use crate::engine::memory;
use crate::engine::operation::{Operation, Set};

api! { Driver:
    fn cuMemsetD8_v2 = 249 (dstDevice: u64, uc: u8, N: usize) => set(dstDevice, (uc.into(), 1), N, 0);
    fn cuMemsetD16_v2 = 250 (dstDevice: u64, us: u16, N: usize) => set(dstDevice, (us.into(), 2), N, 0);
    fn cuMemsetD32_v2 = 251 (dstDevice: u64, ui: u32, N: usize) => set(dstDevice, (ui, 4), N, 0);
    fn cuMemsetD8Async = 216 (dstDevice: u64, uc: u8, N: usize, hStream: usize)
        => set(dstDevice, (uc.into(), 1), N, hStream);
    fn cuMemsetD16Async = 218 (dstDevice: u64, us: u16, N: usize, hStream: usize)
        => set(dstDevice, (us.into(), 2), N, hStream);
    fn cuMemsetD32Async = 220 (dstDevice: u64, ui: u32, N: usize, hStream: usize)
        => set(dstDevice, (ui, 4), N, hStream);
    fn cuMemsetD2D8_v2 = 252 (dstDevice: u64, dstPitch: usize, uc: u8, Width: usize, Height: usize)
        => set_rows(dstDevice, (uc.into(), 1), Width, (Height, dstPitch), 0);
    fn cuMemsetD2D16_v2 = 253 (dstDevice: u64, dstPitch: usize, us: u16, Width: usize, Height: usize)
        => set_rows(dstDevice, (us.into(), 2), Width, (Height, dstPitch), 0);
    fn cuMemsetD2D32_v2 = 254 (dstDevice: u64, dstPitch: usize, ui: u32, Width: usize, Height: usize)
        => set_rows(dstDevice, (ui, 4), Width, (Height, dstPitch), 0);
    fn cuMemsetD2D8Async = 222 (
        dstDevice: u64, dstPitch: usize, uc: u8, Width: usize, Height: usize, hStream: usize,
    ) => set_rows(dstDevice, (uc.into(), 1), Width, (Height, dstPitch), hStream);
    fn cuMemsetD2D16Async = 224 (
        dstDevice: u64, dstPitch: usize, us: u16, Width: usize, Height: usize, hStream: usize,
    ) => set_rows(dstDevice, (us.into(), 2), Width, (Height, dstPitch), hStream);
    fn cuMemsetD2D32Async = 226 (
        dstDevice: u64, dstPitch: usize, ui: u32, Width: usize, Height: usize, hStream: usize,
    ) => set_rows(dstDevice, (ui, 4), Width, (Height, dstPitch), hStream);
}

/// Sets `count` elements to a value of a width in bytes.
pub(crate) fn set(destination: u64, element: (u32, u8), count: usize, stream: usize) -> Result<(), Code> {
    set_rows(destination, element, count, (1, 0), stream)
}

/// Sets `count` elements of each of so many rows, which lie a pitch apart.
fn set_rows(
    destination: u64,
    (value, width): (u32, u8),
    count: usize,
    (rows, pitch): (usize, usize),
    stream: usize,
) -> Result<(), Code> {
    check_initialised()?;
    let (context, stream) = stream_by_handle(stream)?;
    if count == 0 || rows == 0 {
        return Ok(());
    }
    let size = count as u64 * u64::from(width);
    let allocation = memory::find(destination).ok_or(Code::INVALID_VALUE)?;
    let (rows, pitch) = (rows as u64, pitch as u64);
    if !memory::is_known(destination, (rows - 1) * pitch + size) || !destination.is_multiple_of(width.into())
    {
        return Err(Code::INVALID_VALUE);
    }
    let operation = Set {
        destination,
        value,
        width,
        size,
        rows,
        pitch,
        kind: allocation.kind,
        is_async: true,
    };
    work::submit(&context, &stream, Operation::Set(operation)).map(|_| ())
}
