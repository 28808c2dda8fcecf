//! What the imitated GPU looks like: roughly an H200, so that figures are of the size that programs expect.

use crate::config::config;

/// A GPU by its ordinal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) ordinal: u32,
}

pub(crate) const NAME: &str = "TraceSmith Fake GPU";
pub(crate) const MEMORY_BYTES: u64 = 8 << 30;
pub(crate) const MULTIPROCESSORS: i32 = 132;
pub(crate) const CLOCK_KILOHERTZ: i32 = 1_980_000;
pub(crate) const MEMORY_CLOCK_KILOHERTZ: i32 = 3_201_000;
pub(crate) const L2_BYTES: i32 = 60 << 20;
pub(crate) const BUS_WIDTH_BITS: i32 = 6144;

/// Major and minor.
pub(crate) fn compute_capability() -> (i32, i32) {
    let number = config().capability;
    (number / 10, number % 10)
}

impl Device {
    pub(crate) fn uuid(self) -> [u8; 16] {
        let mut uuid = *b"TraceSmithFakeG\0";
        uuid[15] = self.ordinal as u8;
        uuid
    }

    /// As NVML writes it: `GPU-` and the bytes in hexadecimal.
    pub(crate) fn uuid_text(self) -> String {
        let hex: String = self.uuid().iter().map(|byte| format!("{byte:02x}")).collect();
        format!(
            "GPU-{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        )
    }

    pub(crate) fn pci_bus(self) -> u32 {
        0x18 + self.ordinal
    }

    /// A `CUdevice_attribute` by number; what is not known is 0.
    /// <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html>
    pub(crate) fn attribute(self, number: u32) -> i32 {
        match number {
            1..=3 => 1024,     // threads per block, block x, y
            4 => 64,           // block z
            5 => i32::MAX,     // grid x
            6 | 7 => 65_535,   // grid y, z
            8 => 49_152,       // shared memory per block
            9 => 65_536,       // constant memory
            10 => 32,          // warp size
            11 => i32::MAX,    // pitch
            12 | 82 => 65_536, // registers per block, per multiprocessor
            13 => CLOCK_KILOHERTZ,
            14 => 512,    // texture alignment
            15 | 31 => 1, // copies beside kernels; kernels beside kernels
            40 => 3,      // copy engines
            16 => MULTIPROCESSORS,
            18 => 0,      // integrated
            19 | 41 => 1, // can map host memory; unified addressing
            20 => 0,      // compute mode: default
            32 => 1,      // ECC
            33 => self.pci_bus() as i32,
            34 | 50 => 0, // PCI device, domain
            36 => MEMORY_CLOCK_KILOHERTZ,
            37 => BUS_WIDTH_BITS,
            38 => L2_BYTES,
            39 => 2048, // threads per multiprocessor
            75 => compute_capability().0,
            76 => compute_capability().1,
            78 => 1,        // stream priorities
            81 => 233_472,  // shared memory per multiprocessor
            83 | 89 => 1,   // managed memory; concurrent managed access
            95 | 96 => 1,   // cooperative launch
            97 => 232_448,  // shared memory per block, opted in
            102 | 115 => 1, // virtual memory; memory pools
            106 => 32,      // blocks per multiprocessor
            _ => 0,
        }
    }
}
