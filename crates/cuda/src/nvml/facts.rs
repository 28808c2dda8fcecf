//! What a device is, and how it is set.

use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};

use super::{Nvml, known, pci_from_nvml};

/// The requested words of a CPU mask: 4096 CPUs.
const CPU_WORDS: usize = 64;

/// What NVML knows of one device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Its number, by place on the bus.
    pub index: u32,
    /// What tells it apart, as `GPU-00112233-…`.
    pub uuid: Option<String>,
    /// What it is called.
    pub name: Option<String>,
    /// Its generation: Hopper.
    pub architecture: Option<String>,
    /// Its compute capability: major and minor.
    pub capability: Option<(u32, u32)>,
    /// Its memory.
    pub memory: Option<Memory>,
    /// The SMs' clock now.
    pub sm_mhz: Option<u32>,
    /// The fastest that it runs.
    pub sm_max_mhz: Option<u32>,
    /// The memory's clock now.
    pub memory_mhz: Option<u32>,
    /// The fastest that it runs.
    pub memory_max_mhz: Option<u32>,
    /// Drawn now.
    pub power_milliwatts: Option<u32>,
    /// May be drawn at most.
    pub power_limit_milliwatts: Option<u32>,
    /// How hot it is.
    pub temperature_celsius: Option<u32>,
    /// Its place on the bus, as `0000:3b:00.0`.
    pub pci: Option<String>,
    /// How it is connected to the host.
    pub pcie: Pcie,
    /// CPUs near to it.
    pub cpus: Option<Vec<u32>>,
    /// Whether it is divided into instances.
    pub mig: Option<bool>,
    /// Whether memory errors are corrected.
    pub ecc: Option<bool>,
    /// Whether the driver stays loaded when nobody uses it.
    pub persistence: Option<bool>,
    /// Whether it is, or is handed to, a virtual machine, and how.
    pub virtualization: Option<String>,
    /// Whether it computes confidentially.
    pub confidential: Option<bool>,
    /// Whether tools may look on while it does.
    pub confidential_tools: Option<bool>,
}

/// Bytes of a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// All of it.
    pub total_bytes: u64,
    /// Not in use.
    pub free_bytes: u64,
    /// In use, by whomever.
    pub used_bytes: u64,
}

/// A PCIe connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pcie {
    /// Its generation now; low while the device rests.
    pub generation: Option<u32>,
    /// The best that device and slot can do.
    pub max_generation: Option<u32>,
    /// Its lanes now.
    pub width: Option<u32>,
    /// The most that device and slot can do.
    pub max_width: Option<u32>,
}

impl Nvml {
    /// What is known of the device of this number; none when it cannot be
    /// reached at all.
    pub fn facts(&self, index: u32) -> Option<Facts> {
        let device = self.device(index)?;
        let confidential = known(device.is_cc_enabled());
        Some(Facts {
            index,
            uuid: known(device.uuid()),
            name: known(device.name()),
            architecture: known(device.architecture())
                .map(|architecture| architecture.to_string())
                .filter(|name| name != "Unknown"),
            capability: known(device.cuda_compute_capability())
                .map(|capability| (capability.major.unsigned_abs(), capability.minor.unsigned_abs())),
            memory: memory(&device),
            sm_mhz: known(device.clock_info(Clock::SM)),
            sm_max_mhz: known(device.max_clock_info(Clock::SM)),
            memory_mhz: known(device.clock_info(Clock::Memory)),
            memory_max_mhz: known(device.max_clock_info(Clock::Memory)),
            power_milliwatts: known(device.power_usage()),
            power_limit_milliwatts: known(device.enforced_power_limit()),
            temperature_celsius: known(device.temperature(TemperatureSensor::Gpu)),
            pci: known(device.pci_info()).map(|pci| pci_from_nvml(&pci.bus_id)),
            pcie: Pcie {
                generation: known(device.current_pcie_link_gen()),
                max_generation: known(device.max_pcie_link_gen()),
                width: known(device.current_pcie_link_width()),
                max_width: known(device.max_pcie_link_width()),
            },
            cpus: known(device.cpu_affinity(CPU_WORDS)).map(|words| cpus_of(&words)),
            mig: known(device.mig_mode()).map(|mode| mode.current == 1),
            ecc: known(device.is_ecc_enabled()).map(|state| state.currently_enabled),
            persistence: known(device.is_in_persistent_mode()),
            virtualization: known(device.virtualization_mode()).map(|mode| word_of(&mode).to_owned()),
            confidential,
            confidential_tools: confidential
                .filter(|enabled| *enabled)
                .and_then(|_| known(device.is_cc_dev_mode_enabled())),
        })
    }
}

pub(super) fn memory(device: &Device<'_>) -> Option<Memory> {
    known(device.memory_info()).map(|memory| Memory {
        total_bytes: memory.total,
        free_bytes: memory.free,
        used_bytes: memory.used,
    })
}

fn word_of(mode: &nvml_wrapper::enum_wrappers::device::GpuVirtualizationMode) -> &'static str {
    use nvml_wrapper::enum_wrappers::device::GpuVirtualizationMode as Mode;
    match mode {
        Mode::Bare => "none",
        Mode::PassThrough => "passthrough",
        Mode::Vgpu => "vgpu",
        Mode::HostVgpu => "host vgpu",
        Mode::HostVsga => "host vsga",
    }
}

/// The numbers of the bits that are set.
fn cpus_of(words: &[std::ffi::c_ulong]) -> Vec<u32> {
    let bits = std::ffi::c_ulong::BITS;
    (0..)
        .zip(words)
        .flat_map(|(at, word)| {
            (0..bits)
                .filter(move |bit| word >> bit & 1 == 1)
                .map(move |bit| at * bits + bit)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_of_cpus_becomes_their_numbers() {
        assert_eq!(cpus_of(&[0b1011, 1]), [0, 1, 3, 64]);
        assert!(cpus_of(&[0, 0]).is_empty());
    }
}
