//! Values that NVML gives by number, several at a time and for one part of a
//! device.

use std::ffi::{c_int, c_longlong, c_uint, c_void};

use super::LIBRARY;
use crate::Error;
use crate::functions::functions;
use crate::library::Library;

functions! {
    /// What `nvml-wrapper` does not give access to.
    Functions from "libnvidia-ml.so.1";
    required {}
    optional {
        /// <https://docs.nvidia.com/deploy/nvml-api/group__nvmlFieldValueQueries.html>
        fn nvmlDeviceGetFieldValues(device: *mut c_void, count: c_int, values: *mut RawField) -> c_uint;
        /// <https://docs.nvidia.com/deploy/nvml-api/group__NvLink.html>
        fn nvmlDeviceGetNvLinkRemoteDeviceType(device: *mut c_void, link: c_uint, kind: *mut c_uint) -> c_uint;
    }
}

/// <https://docs.nvidia.com/deploy/nvml-api/structnvmlFieldValue__t.html>
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(super) struct RawField {
    field: c_uint,
    scope: c_uint,
    timestamp_micros: c_longlong,
    latency_micros: c_longlong,
    kind: c_uint,
    status: c_uint,
    value: [u8; 8],
}

const _: () = assert!(size_of::<RawField>() == 40);
const _: () = assert!(std::mem::offset_of!(RawField, kind) == 24);
const _: () = assert!(std::mem::offset_of!(RawField, status) == 28);
const _: () = assert!(std::mem::offset_of!(RawField, value) == 32);

/// The number of a value, and the part of the device that is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    number: u32,
    scope: u32,
}

/// All links together.
const EVERY_LINK: u32 = u32::MAX;

impl Field {
    /// KiB that all links have sent. Since driver 450.
    pub(super) const NVLINK_SENT: Self = Self::new(138, EVERY_LINK);
    /// KiB that all links have received.
    pub(super) const NVLINK_RECEIVED: Self = Self::new(139, EVERY_LINK);
    /// Milliwatts at this moment; the usual call gives the average of a second since Ampere. Since driver 530.
    pub(super) const POWER_NOW: Self = Self::new(186, 0);
    /// Bytes sent over PCIe. Since driver 535, not on every device.
    pub(super) const PCIE_SENT: Self = Self::new(197, 0);
    /// Bytes received over PCIe.
    pub(super) const PCIE_RECEIVED: Self = Self::new(198, 0);

    /// MB/s of one link. Since driver 510.
    pub(super) const fn link_speed(link: u32) -> Self {
        Self::new(164, link)
    }

    const fn new(number: u32, scope: u32) -> Self {
        Self { number, scope }
    }
}

/// The request for such values.
pub(super) struct Fields {
    functions: Functions,
}

impl Fields {
    pub(super) fn open() -> Result<Self, Error> {
        let library = Library::open(LIBRARY).map_err(|words| Error::missing(LIBRARY, &words))?;
        let functions = Functions::load(&library)?;
        Ok(Self { functions })
    }

    /// The values, in one call.
    pub(super) fn get<const N: usize>(
        &self,
        device: &nvml_wrapper::Device<'_>,
        fields: [Field; N],
    ) -> [Option<f64>; N] {
        let Some(call) = self.functions.nvmlDeviceGetFieldValues else {
            return [None; N];
        };
        let mut values = fields.map(|field| RawField {
            field: field.number,
            scope: field.scope,
            ..RawField::default()
        });
        // SAFETY: the handle is used below only, while the library is initialised.
        let handle = unsafe { device.handle() }.cast::<c_void>();
        // SAFETY: so many values are ours to read and write.
        let status = unsafe { call(handle, N as c_int, values.as_mut_ptr()) };
        if status != 0 {
            return [None; N];
        }
        values.map(|value| value_of(&value))
    }

    /// What is at the far end of a link: NVML's number for it.
    pub(super) fn far_end(&self, device: &nvml_wrapper::Device<'_>, link: u32) -> Option<u32> {
        let call = self.functions.nvmlDeviceGetNvLinkRemoteDeviceType?;
        let mut kind = 0;
        // SAFETY: the handle is used below only, while the library is initialised.
        let handle = unsafe { device.handle() }.cast::<c_void>();
        // SAFETY: writes one number.
        let status = unsafe { call(handle, link, &raw mut kind) };
        (status == 0).then_some(kind)
    }
}

/// By the kind that NVML states: 0 double, 1 and 2 unsigned, 3 unsigned long
/// long, 4 signed long long, 5 signed.
/// <https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceEnumvs.html>
fn value_of(raw: &RawField) -> Option<f64> {
    if raw.status != 0 {
        return None;
    }
    let bytes = raw.value;
    let low = [bytes[0], bytes[1], bytes[2], bytes[3]];
    match raw.kind {
        0 => Some(f64::from_ne_bytes(bytes)),
        1 => Some(f64::from(u32::from_ne_bytes(low))),
        2 | 3 => Some(u64::from_ne_bytes(bytes) as f64),
        4 => Some(i64::from_ne_bytes(bytes) as f64),
        5 => Some(f64::from(i32::from_ne_bytes(low))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_by_their_kind() {
        let raw = |kind, number: u64| RawField {
            kind,
            value: number.to_ne_bytes(),
            ..RawField::default()
        };
        assert_eq!(value_of(&raw(0, 1.5f64.to_bits())), Some(1.5));
        assert_eq!(value_of(&raw(1, 7)), Some(7.0));
        assert_eq!(value_of(&raw(3, 1 << 40)), Some((1u64 << 40) as f64));
        assert_eq!(value_of(&raw(4, (-3i64) as u64)), Some(-3.0));
        assert_eq!(value_of(&raw(99, 7)), None);
        let refused = RawField {
            status: 3,
            ..raw(1, 7)
        };
        assert_eq!(value_of(&refused), None);
    }
}
