//! Devices and their properties.

#![allow(unsafe_code, reason = "exports C functions")]

use std::ffi::c_char;

use super::state::{self, device};
use crate::call::api;
use crate::config::config;
use crate::engine::device::{MEMORY_BYTES, NAME, compute_capability};
use crate::pointer::Out;

api! { Driver:
    fn cuDeviceGet = 3 (dev: Out<i32>, ordinal: i32) => device(ordinal).and_then(|_| dev.put(ordinal));
    fn cuDeviceGetCount = 4 (count: Out<i32>)
        => state::check_initialised().and_then(|()| count.put(config().devices as i32));
    fn cuDeviceGetName = 5 (name: Out<c_char>, len: i32, dev: i32) => device(dev)
        .and_then(|_| name.put_text(NAME, usize::try_from(len).unwrap_or(0)));
    fn cuDeviceComputeCapability = 6 (major: Out<i32>, minor: Out<i32>, dev: i32) => {
        device(dev)?;
        major.put(compute_capability().0)?;
        minor.put(compute_capability().1)
    };
    fn cuDeviceGetAttribute = 9 (pi: Out<i32>, attrib: u32, dev: i32)
        => device(dev).and_then(|device| pi.put(device.attribute(attrib)));
    fn cuDeviceTotalMem_v2 = 259 (bytes: Out<usize>, dev: i32)
        => device(dev).and_then(|_| bytes.put(MEMORY_BYTES as usize));
    fn cuDeviceCanAccessPeer = 312 (canAccessPeer: Out<i32>, dev: i32, peerDev: i32) => {
        device(dev)?;
        device(peerDev)?;
        canAccessPeer.put(i32::from(dev != peerDev))
    };
    fn cuDeviceGetPCIBusId = 332 (pciBusId: Out<c_char>, len: i32, dev: i32) => device(dev)
        .and_then(|device| {
            let text = format!("0000:{:02X}:00.0", device.pci_bus());
            pciBusId.put_text(&text, usize::try_from(len).unwrap_or(0))
        });
    fn cuDeviceGetUuid = 482 (uuid: Out<[u8; 16]>, dev: i32) => device(dev).and_then(|device| uuid.put(device.uuid()));
    fn cuDeviceGetUuid_v2 = 647 (uuid: Out<[u8; 16]>, dev: i32)
        => device(dev).and_then(|device| uuid.put(device.uuid()));
}

/// A memory pool is known by this handle and the device's number.
pub(crate) const DEFAULT_POOL: usize = 0x1000;

api! { Driver:
    fn cuDeviceGetDefaultMemPool = 606 (pool_out: Out<usize>, dev: i32)
        => device(dev).and_then(|device| pool_out.put(DEFAULT_POOL + device.ordinal as usize));
    fn cuDeviceGetMemPool = 610 (pool: Out<usize>, dev: i32)
        => device(dev).and_then(|device| pool.put(DEFAULT_POOL + device.ordinal as usize));
}
