//! Which devices there are and what they are.

#![allow(unsafe_code, reason = "exports C functions")]

use std::ffi::c_char;

use super::code::{DeviceHandle, NvmlCode};
use super::session::{check, text};
use crate::config::config;
use crate::driver::state;
use crate::engine::device::{NAME, compute_capability};
use crate::pointer::{In, Out};

/// `nvmlPciInfo_t`, third version.
#[repr(C)]
#[derive(Clone, Copy)]
struct PciInfo {
    legacy_bus_id: [u8; 16],
    domain: u32,
    bus: u32,
    device: u32,
    device_id: u32,
    subsystem_id: u32,
    bus_id: [u8; 32],
}

const _: () = assert!(size_of::<PciInfo>() == 68);

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetCount_v2(count: Out<u32>) -> u32 {
    NvmlCode::of(check().and_then(|()| Ok(count.put(config().devices)?)))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: u32, handle: Out<DeviceHandle>) -> u32 {
    let found = state::devices()
        .into_iter()
        .find(|device| device.ordinal == index);
    NvmlCode::of(check().and_then(|()| {
        let device = found.ok_or(NvmlCode::INVALID_ARGUMENT)?;
        Ok(handle.put(DeviceHandle::of(device))?)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetHandleByUUID(uuid: In<c_char>, handle: Out<DeviceHandle>) -> u32 {
    let wanted = uuid.string();
    let found = state::devices()
        .into_iter()
        .find(|device| Some(device.uuid_text()) == wanted);
    NvmlCode::of(check().and_then(|()| {
        let device = found.ok_or(NvmlCode::NOT_FOUND)?;
        Ok(handle.put(DeviceHandle::of(device))?)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetIndex(handle: DeviceHandle, index: Out<u32>) -> u32 {
    NvmlCode::of(handle.device().and_then(|device| Ok(index.put(device.ordinal)?)))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetName(handle: DeviceHandle, name: Out<c_char>, length: u32) -> u32 {
    NvmlCode::of(handle.device().and_then(|_| text(name, length, NAME)))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetUUID(handle: DeviceHandle, uuid: Out<c_char>, length: u32) -> u32 {
    NvmlCode::of(
        handle
            .device()
            .and_then(|device| text(uuid, length, &device.uuid_text())),
    )
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetPciInfo_v3(handle: DeviceHandle, info: Out<PciInfo>) -> u32 {
    NvmlCode::of(handle.device().and_then(|device| {
        let mut pci = PciInfo {
            legacy_bus_id: [0; 16],
            domain: 0,
            bus: device.pci_bus(),
            device: 0,
            device_id: 0x2335_10DE,
            subsystem_id: 0x18BE_10DE,
            bus_id: [0; 32],
        };
        let short = format!("0000:{:02X}:00.0", device.pci_bus());
        let long = format!("00000000:{:02X}:00.0", device.pci_bus());
        pci.legacy_bus_id[..short.len()].copy_from_slice(short.as_bytes());
        pci.bus_id[..long.len()].copy_from_slice(long.as_bytes());
        Ok(info.put(pci)?)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetCudaComputeCapability(
    handle: DeviceHandle,
    major: Out<i32>,
    minor: Out<i32>,
) -> u32 {
    NvmlCode::of(handle.device().and_then(|_| {
        major.put(compute_capability().0)?;
        Ok(minor.put(compute_capability().1)?)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetNumaNodeId(handle: DeviceHandle, node: Out<u32>) -> u32 {
    NvmlCode::of(handle.device().and_then(|_| Ok(node.put(0)?)))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMemoryAffinity(
    handle: DeviceHandle,
    words: u32,
    nodes: Out<u64>,
    _scope: u32,
) -> u32 {
    affinity(handle, words, nodes, 1)
}

/// All processors of this machine are near the device.
#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetCpuAffinity(handle: DeviceHandle, words: u32, processors: Out<u64>) -> u32 {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    affinity(handle, words, processors, u64::MAX >> (64 - count.clamp(1, 64)))
}

fn affinity(handle: DeviceHandle, words: u32, out: Out<u64>, first: u64) -> u32 {
    NvmlCode::of(handle.device().and_then(|_| {
        if words == 0 {
            return Err(NvmlCode::INSUFFICIENT_SIZE);
        }
        let mut set = vec![0; words as usize];
        set[0] = first;
        out.put_all(&set);
        Ok(())
    }))
}
