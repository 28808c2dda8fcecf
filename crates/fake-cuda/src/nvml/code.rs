//! Results of NVML, and the handle of a device.

use crate::driver::state;
use crate::engine::device::Device;

/// An `nvmlReturn_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NvmlCode(pub(super) u32);

impl NvmlCode {
    pub(super) const UNINITIALIZED: Self = Self(1);
    pub(super) const INVALID_ARGUMENT: Self = Self(2);
    pub(super) const NOT_SUPPORTED: Self = Self(3);
    pub(super) const NOT_FOUND: Self = Self(6);
    pub(super) const INSUFFICIENT_SIZE: Self = Self(7);

    /// A sentence for people, ended by a zero byte.
    pub(super) fn c_text(self) -> &'static str {
        match self.0 {
            0 => "Success\0",
            1 => "Uninitialized\0",
            2 => "Invalid Argument\0",
            3 => "Not Supported\0",
            6 => "Not Found\0",
            7 => "Insufficient Size\0",
            _ => "Unknown Error\0",
        }
    }

    pub(super) fn of(outcome: Result<(), Self>) -> u32 {
        match outcome {
            Ok(()) => 0,
            Err(code) => code.0,
        }
    }
}

impl From<crate::code::Code> for NvmlCode {
    fn from(_: crate::code::Code) -> Self {
        Self::INVALID_ARGUMENT
    }
}

/// A device in C: a pointer that nobody follows. This one is the ordinal and a mark.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(super) struct DeviceHandle(usize);

const MARK: usize = 0xFA4E_0000;

impl DeviceHandle {
    pub(super) fn of(device: Device) -> Self {
        Self(MARK | device.ordinal as usize)
    }

    pub(super) fn device(self) -> Result<Device, NvmlCode> {
        super::session::check()?;
        let wanted = self.0.wrapping_sub(MARK);
        let mut devices = state::devices().into_iter();
        devices
            .find(|device| device.ordinal as usize == wanted)
            .ok_or(NvmlCode::INVALID_ARGUMENT)
    }
}
