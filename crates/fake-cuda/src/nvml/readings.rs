//! Readings: memory, load, power, temperature, clocks, traffic.

#![allow(unsafe_code, reason = "exports C functions")]

use super::code::{DeviceHandle, NvmlCode};
use crate::clock;
use crate::engine::device::{self, MEMORY_BYTES};
use crate::engine::memory;
use crate::pointer::Out;

/// `nvmlMemory_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

/// `nvmlMemory_v2_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct MemoryV2 {
    version: u32,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

/// `nvmlUtilization_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Utilization {
    gpu: u32,
    memory: u32,
}

const _: () = assert!(size_of::<Memory>() == 24 && size_of::<MemoryV2>() == 40);

/// What the driver keeps for itself.
const RESERVED_BYTES: u64 = 256 << 20;

/// Moves up and down between 0 and `height` about once in eight seconds.
fn swing(height: u64) -> u32 {
    let millis = clock::epoch_nanos() / 1_000_000 % 8000;
    (millis.min(8000 - millis) * height / 4000) as u32
}

/// Declares a C function that answers one value about a device; the call may have parameters in between.
macro_rules! reading {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $arg_type:ty),*) -> $type:ty = $value:expr;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the name is C's")]
        extern "C" fn $name(handle: DeviceHandle, $($arg: $arg_type,)* out: Out<$type>) -> u32 {
            NvmlCode::of(handle.device().and_then(|_| Ok(out.put($value)?)))
        }
    )* };
}

reading! {
    fn nvmlDeviceGetUtilizationRates() -> Utilization = Utilization { gpu: swing(90), memory: swing(40) };
    /// In milliwatts.
    fn nvmlDeviceGetPowerUsage() -> u32 = 120_000 + swing(400_000);
    fn nvmlDeviceGetEnforcedPowerLimit() -> u32 = 700_000;
    fn nvmlDeviceGetPowerManagementLimit() -> u32 = 700_000;
    /// In millijoules.
    fn nvmlDeviceGetTotalEnergyConsumption() -> u64 = clock::epoch_nanos() / 10_000_000;
    fn nvmlDeviceGetTemperature(_sensor: u32) -> u32 = 35 + swing(30);
    /// In megahertz; type 2 is memory.
    fn nvmlDeviceGetClockInfo(kind: u32) -> u32 = match kind {
        2 => device::MEMORY_CLOCK_KILOHERTZ as u32 / 1000,
        _ => 345 + swing(1635),
    };
    fn nvmlDeviceGetMaxClockInfo(kind: u32) -> u32 = match kind {
        2 => device::MEMORY_CLOCK_KILOHERTZ as u32 / 1000,
        _ => device::CLOCK_KILOHERTZ as u32 / 1000,
    };
    /// In kilobytes a second.
    fn nvmlDeviceGetPcieThroughput(_counter: u32) -> u32 = swing(20_000_000);
    fn nvmlDeviceGetCurrPcieLinkGeneration() -> u32 = 5;
    fn nvmlDeviceGetCurrPcieLinkWidth() -> u32 = 16;
    fn nvmlDeviceGetMaxPcieLinkGeneration() -> u32 = 5;
    fn nvmlDeviceGetMaxPcieLinkWidth() -> u32 = 16;
    fn nvmlDeviceGetPerformanceState() -> u32 = 0;
    fn nvmlDeviceGetCurrentClocksThrottleReasons() -> u64 = 0;
    fn nvmlDeviceGetCurrentClocksEventReasons() -> u64 = 0;
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMemoryInfo(handle: DeviceHandle, out: Out<Memory>) -> u32 {
    NvmlCode::of(handle.device().and_then(|device| {
        let used = memory::used_bytes(device.ordinal) + RESERVED_BYTES;
        Ok(out.put(Memory {
            total: MEMORY_BYTES,
            free: MEMORY_BYTES.saturating_sub(used),
            used,
        })?)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMemoryInfo_v2(handle: DeviceHandle, out: Out<MemoryV2>) -> u32 {
    NvmlCode::of(handle.device().and_then(|device| {
        // The caller says which version it knows: the size, and 2 in the upper byte.
        let version = out.get().map_or(0, |memory| memory.version);
        if version != size_of::<MemoryV2>() as u32 | 2 << 24 {
            return Err(NvmlCode::INVALID_ARGUMENT);
        }
        let used = memory::used_bytes(device.ordinal);
        Ok(out.put(MemoryV2 {
            version,
            total: MEMORY_BYTES,
            reserved: RESERVED_BYTES,
            free: MEMORY_BYTES.saturating_sub(used + RESERVED_BYTES),
            used,
        })?)
    }))
}
