//! Links between devices: NVLink and how near they are to each other.

#![allow(unsafe_code, reason = "exports C functions")]

use super::code::{DeviceHandle, NvmlCode};
use crate::clock;
use crate::config::config;
use crate::pointer::Out;

/// Links of a device, when there is another device to link to.
const LINKS: u32 = 18;

/// `NVML_FI_DEV_NVLINK_LINK_COUNT` and the four throughputs: data sent and received, raw sent and received.
const LINK_COUNT: u32 = 91;
const THROUGHPUT: std::ops::RangeInclusive<u32> = 138..=141;
/// `NVML_FI_DEV_NVLINK_GET_SPEED`: MB/s of the link that the scope names, in each direction.
const LINK_SPEED: u32 = 164;
/// What an H200's does.
const LINK_MEGABYTES: u64 = 26_562;

/// `nvmlFieldValue_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct FieldValue {
    field: u32,
    scope: u32,
    timestamp: i64,
    latency_micros: i64,
    value_type: u32,
    result: u32,
    value: u64,
}

const _: () = assert!(size_of::<FieldValue>() == 40);

/// `NVML_VALUE_TYPE_UNSIGNED_INT` and `NVML_VALUE_TYPE_UNSIGNED_LONG_LONG`.
const UNSIGNED: u32 = 1;
const UNSIGNED_LONG_LONG: u32 = 3;

fn links() -> u32 {
    if config().devices > 1 { LINKS } else { 0 }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetNvLinkState(handle: DeviceHandle, link: u32, is_active: Out<u32>) -> u32 {
    NvmlCode::of(handle.device().and_then(|_| {
        if link >= LINKS {
            return Err(NvmlCode::INVALID_ARGUMENT);
        }
        if links() == 0 {
            return Err(NvmlCode::NOT_SUPPORTED);
        }
        Ok(is_active.put(1)?)
    }))
}

/// Each field has its own result; the call succeeds as long as it understood the list.
#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetFieldValues(handle: DeviceHandle, count: i32, values: Out<FieldValue>) -> u32 {
    NvmlCode::of(handle.device().and_then(|_| {
        for index in 0..u64::try_from(count).unwrap_or(0) {
            let place = values.address() + index * size_of::<FieldValue>() as u64;
            let place = Out::<FieldValue>::from_address(place);
            let field = place.get().ok_or(NvmlCode::INVALID_ARGUMENT)?;
            place.put(answered(field))?;
        }
        Ok(())
    }))
}

fn answered(asked: FieldValue) -> FieldValue {
    let now = clock::epoch_nanos();
    let (value_type, value) = match asked.field {
        LINK_COUNT => (UNSIGNED, u64::from(links())),
        LINK_SPEED if asked.scope < links() => (UNSIGNED, LINK_MEGABYTES),
        // In kibibytes since the start: grows by about 10 GB a second while there are links.
        field if THROUGHPUT.contains(&field) && links() > 0 => (UNSIGNED_LONG_LONG, now / 100),
        _ => {
            let result = NvmlCode::NOT_SUPPORTED.0;
            return FieldValue { result, ..asked };
        }
    };
    FieldValue {
        timestamp: (now / 1000) as i64,
        latency_micros: 1,
        value_type,
        result: 0,
        value,
        ..asked
    }
}

/// All devices hang off one host bridge: `NVML_TOPOLOGY_HOSTBRIDGE`.
#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetTopologyCommonAncestor(
    first: DeviceHandle,
    second: DeviceHandle,
    level: Out<u32>,
) -> u32 {
    NvmlCode::of(
        first
            .device()
            .and_then(|_| second.device())
            .and_then(|_| Ok(level.put(30)?)),
    )
}
