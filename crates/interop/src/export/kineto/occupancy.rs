//! How many blocks of a kernel fit on a multiprocessor, as Kineto reckons it with CUDA's occupancy calculator.

use tracesmith_format::tables::{Device, KernelShape};

/// What Kineto says of a kernel's shape on a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Occupancy {
    pub(super) blocks_per_sm: f64,
    pub(super) warps_per_sm: f64,
    /// Percent of the threads that a multiprocessor can hold, when registers and memory of the device are known.
    pub(super) percent: Option<u32>,
}

/// Registers are given out in units of this, to a warp at a time.
const REGISTER_UNIT: u64 = 256;
/// Warps of a multiprocessor are spread over this many parts, each with its own registers.
const PARTS: u64 = 4;

impl Occupancy {
    /// `None` where the device or the launch is not known well enough.
    pub(super) fn of(device: &Device, shape: &KernelShape) -> Option<Self> {
        let product = |x: u32, y: u32, z: u32| {
            u64::from(x)
                .saturating_mul(u64::from(y))
                .saturating_mul(u64::from(z))
        };
        let blocks = product(shape.grid_x, shape.grid_y, shape.grid_z);
        let threads = product(shape.block_x, shape.block_y, shape.block_z);
        let warp = u64::from(device.warp_size);
        if device.multiprocessors == 0 || warp == 0 || threads == 0 {
            return None;
        }
        let blocks_per_sm = blocks as f64 / f64::from(device.multiprocessors);
        Some(Occupancy {
            blocks_per_sm,
            warps_per_sm: blocks_per_sm * threads as f64 / warp as f64,
            percent: resident_blocks(device, shape, threads).map(|resident| {
                // Single precision throughout, so that halves are rounded as Kineto rounds them.
                let blocks = (blocks as f32 / device.multiprocessors as f32).min(resident as f32);
                let share = blocks * threads as f32 / device.threads_per_multiprocessor as f32;
                (0.5 + f64::from(share) * 100.0) as u32
            }),
        })
    }
}

/// The most blocks that are on a multiprocessor at once.
fn resident_blocks(device: &Device, shape: &KernelShape, threads: u64) -> Option<u64> {
    let registers = u64::from(device.registers_per_multiprocessor);
    let shared = device.shared_per_multiprocessor.0;
    if device.threads_per_multiprocessor == 0 || registers == 0 || shared == 0 || device.capability_major == 0
    {
        return None;
    }
    let warps = threads.div_ceil(u64::from(device.warp_size));
    let by_threads = u64::from(device.threads_per_multiprocessor / device.warp_size) / warps;
    let by_registers = match u64::from(shape.registers) {
        0 => u64::MAX,
        each => {
            let of_a_warp = (each * u64::from(device.warp_size)).next_multiple_of(REGISTER_UNIT);
            registers / PARTS / of_a_warp * PARTS / warps
        }
    };
    // From Ampere on the driver takes a KiB of every block's shared memory for itself.
    let (reserved, unit) = match device.capability_major {
        0..8 => (0, 256),
        _ => (1024, 128),
    };
    let asked = shape.static_shared.0.saturating_add(shape.dynamic_shared.0);
    // More than a block may take without asking for it first is more than Kineto reckons with: it says 0.
    if device.shared_per_block.is_some() && asked > device.shared_per_block.0 {
        return Some(0);
    }
    let taken = asked.saturating_add(reserved).div_ceil(unit).saturating_mul(unit);
    let by_shared = shared.checked_div(taken).unwrap_or(u64::MAX);
    Some(
        most_blocks(device)
            .min(by_threads)
            .min(by_registers)
            .min(by_shared),
    )
}

/// The limit of the hardware, by compute capability where the device does not say it.
fn most_blocks(device: &Device) -> u64 {
    match (
        device.blocks_per_multiprocessor,
        device.capability_major,
        device.capability_minor,
    ) {
        (0, 7, 5) | (0, 8, 6 | 7) => 16,
        (0, 8, 9) | (0, 12, _) => 24,
        (0, ..) => 32,
        (known, ..) => u64::from(known),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracesmith_format::Bytes;

    /// Figures that PyTorch 2.7 wrote for kernels on an H100 and an A100.
    #[test]
    fn figures_are_those_of_kineto() {
        let device = |capability_major, multiprocessors, shared| Device {
            capability_major,
            multiprocessors,
            warp_size: 32,
            threads_per_multiprocessor: 2048,
            registers_per_multiprocessor: 65536,
            shared_per_multiprocessor: Bytes(shared),
            ..Device::default()
        };
        let shape = |grid_x, block_x, registers, shared| KernelShape {
            grid_x,
            grid_y: 1,
            grid_z: 1,
            block_x,
            block_y: 1,
            block_z: 1,
            registers,
            dynamic_shared: Bytes(shared),
            ..KernelShape::default()
        };
        let h100 = Occupancy::of(&device(9, 132, 233_472), &shape(564, 128, 32, 0));
        assert_eq!(h100.and_then(|occupancy| occupancy.percent), Some(27));
        let a100 = Occupancy::of(&device(8, 108, 167_936), &shape(512, 512, 40, 400));
        assert_eq!(a100.and_then(|occupancy| occupancy.percent), Some(75));
        assert_eq!(Occupancy::of(&Device::default(), &shape(1, 1, 1, 0)), None);
    }
}
