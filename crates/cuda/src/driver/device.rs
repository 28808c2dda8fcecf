//! A device, and what the driver knows of it without a context.

use std::ffi::{c_char, c_int};

use super::functions::{DeviceHandle, RawUuid};
use super::{Driver, missing};
use crate::Error;

/// A GPU, or a part of one, that this process may use.
#[derive(Clone, Debug)]
pub struct Device {
    pub(super) driver: Driver,
    pub(super) handle: DeviceHandle,
    ordinal: u32,
}

/// What tells a device apart from all others, on any machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub [u8; 16]);

impl std::fmt::Display for Uuid {
    /// As `nvidia-smi -L` writes it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GPU-")?;
        for (at, byte) in self.0.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl Uuid {
    /// From the way that `nvidia-smi -L` and NVML write it.
    pub fn from_text(text: &str) -> Option<Self> {
        let digits: String = text
            .strip_prefix("GPU-")
            .unwrap_or(text)
            .chars()
            .filter(|c| *c != '-')
            .collect();
        // Sixteen bytes are thirty-two digits, which a number of so many bits holds.
        let number = u128::from_str_radix(&digits, 16).ok()?;
        (digits.len() == 32).then(|| Self(number.to_be_bytes()))
    }
}

/// Numbers that the driver gives for a device.
/// <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html#group__CUDA__TYPES_1ge12b8a782bebe21b1ac0091bf9f4e2a3>
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Attribute {
    /// The fastest that the SMs run, in kHz.
    ClockKilohertz = 13,
    /// Streaming multiprocessors.
    Multiprocessors = 16,
    /// Bits that memory moves at once.
    MemoryBusBits = 37,
    /// Bytes of the L2 cache.
    L2Bytes = 38,
    /// Threads that an SM holds at most.
    ThreadsPerMultiprocessor = 39,
    /// 9 of compute capability 9.0.
    CapabilityMajor = 75,
    /// 0 of compute capability 9.0.
    CapabilityMinor = 76,
}

impl Device {
    pub(super) fn new(driver: &Driver, ordinal: u32) -> Result<Self, Error> {
        let mut handle = 0;
        let number = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
        // SAFETY: writes one int.
        let status = unsafe { (driver.functions().cuDeviceGet)(&raw mut handle, number) };
        driver.check("cuDeviceGet", status)?;
        Ok(Self {
            driver: driver.clone(),
            handle,
            ordinal,
        })
    }

    /// The driver that it was asked of.
    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Its number among those that this process sees.
    pub fn ordinal(&self) -> u32 {
        self.ordinal
    }

    /// What it is called.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn name(&self) -> Result<String, Error> {
        let call = self.driver.functions().cuDeviceGetName;
        // SAFETY: the driver writes at most `length` bytes to `text`.
        self.text("cuDeviceGetName", |text, length| unsafe {
            call(text, length, self.handle)
        })
    }

    /// Its place on the PCI bus, as `0000:3b:00.0`.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn pci(&self) -> Result<String, Error> {
        let call = self.driver.functions().cuDeviceGetPCIBusId;
        // SAFETY: the driver writes at most `length` bytes to `text`.
        let text = self.text("cuDeviceGetPCIBusId", |text, length| unsafe {
            call(text, length, self.handle)
        })?;
        Ok(text.to_ascii_lowercase())
    }

    /// What tells it apart.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn uuid(&self) -> Result<Uuid, Error> {
        let functions = self.driver.functions();
        let call = functions
            .cuDeviceGetUuid_v2
            .or(functions.cuDeviceGetUuid)
            .ok_or_else(|| missing("cuDeviceGetUuid"))?;
        let mut uuid = RawUuid::default();
        // SAFETY: writes sixteen bytes.
        let status = unsafe { call(&raw mut uuid, self.handle) };
        self.driver.check("cuDeviceGetUuid", status)?;
        Ok(Uuid(uuid.bytes))
    }

    /// Bytes of its memory.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn memory_bytes(&self) -> Result<u64, Error> {
        let mut bytes = 0;
        // SAFETY: writes one size_t.
        let status = unsafe { (self.driver.functions().cuDeviceTotalMem_v2)(&raw mut bytes, self.handle) };
        self.driver.check("cuDeviceTotalMem", status)?;
        Ok(bytes as u64)
    }

    /// Its streaming multiprocessors.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn multiprocessors(&self) -> Result<u32, Error> {
        Ok(self.attribute(Attribute::Multiprocessors)?.unsigned_abs())
    }

    /// Its compute capability: major and minor.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn capability(&self) -> Result<(u32, u32), Error> {
        let major = self.attribute(Attribute::CapabilityMajor)?.unsigned_abs();
        let minor = self.attribute(Attribute::CapabilityMinor)?.unsigned_abs();
        Ok((major, minor))
    }

    /// One number about it.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn attribute(&self, attribute: Attribute) -> Result<i32, Error> {
        let mut value = 0;
        // SAFETY: writes one int.
        let status = unsafe {
            (self.driver.functions().cuDeviceGetAttribute)(&raw mut value, attribute as c_int, self.handle)
        };
        self.driver.check("cuDeviceGetAttribute", status)?;
        Ok(value)
    }

    fn text(
        &self,
        function: &'static str,
        call: impl FnOnce(*mut c_char, c_int) -> u32,
    ) -> Result<String, Error> {
        let mut bytes = [0u8; 256];
        let status = call(bytes.as_mut_ptr().cast(), bytes.len() as c_int);
        self.driver.check(function, status)?;
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_written_as_nvidia_smi_does() {
        let bytes = std::array::from_fn(|at| at as u8 * 17);
        let text = "GPU-00112233-4455-6677-8899-aabbccddeeff";
        assert_eq!(Uuid(bytes).to_string(), text);
        assert_eq!(Uuid::from_text(text), Some(Uuid(bytes)));
        assert_eq!(Uuid::from_text("GPU-0011"), None);
        assert_eq!(Uuid::from_text(""), None);
    }
}
