//! The GPUs of this machine.
//!
//! There are two sources. NVML reports all GPUs and their state. The driver reports the GPUs that a program can use,
//! and their properties. Devices are matched by UUID, or by PCI address if a GPU is divided into MIG instances.

use tracesmith_cuda::driver::{self, Driver, Version};
use tracesmith_cuda::nvml::{Facts, Nvml, Pcie};

use crate::cpus::{near_pci, node_of, numa_nodes};

/// All GPUs of this machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DevicesReport {
    /// The driver version, such as `580.82.07`.
    pub driver: Option<String>,
    /// The newest CUDA version that the driver supports.
    pub cuda: Option<Version>,
    /// The GPUs in the order of NVML.
    pub devices: Vec<Device>,
    /// Problems, for display.
    pub problems: Vec<String>,
}

/// One GPU. A value is `None` if the GPU does not provide it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Device {
    /// The index, by PCI address.
    pub index: u32,
    /// The ordinals for CUDA programs in this environment. Empty if the GPU is hidden. Several if it has MIG
    /// instances.
    pub cuda_ordinals: Vec<u32>,
    /// The name.
    pub name: String,
    /// The UUID, such as `GPU-00112233-…`.
    pub uuid: Option<String>,
    /// The architecture, such as Hopper.
    pub architecture: Option<String>,
    /// The compute capability: major and minor.
    pub capability: Option<(u32, u32)>,
    /// Number of streaming multiprocessors.
    pub multiprocessors: Option<u32>,
    /// The size of its memory.
    pub memory_bytes: Option<u64>,
    /// Free memory.
    pub memory_free_bytes: Option<u64>,
    /// The current SM clock.
    pub sm_mhz: Option<u32>,
    /// The maximum SM clock.
    pub sm_max_mhz: Option<u32>,
    /// The current memory clock.
    pub memory_mhz: Option<u32>,
    /// The maximum memory clock.
    pub memory_max_mhz: Option<u32>,
    /// The current power.
    pub power_watts: Option<f64>,
    /// The power limit.
    pub power_limit_watts: Option<f64>,
    /// The temperature.
    pub temperature_celsius: Option<u32>,
    /// The PCI address, such as `0000:3b:00.0`.
    pub pci: Option<String>,
    /// The PCIe connection to the host.
    pub pcie: Pcie,
    /// The NUMA node of the GPU.
    pub numa_node: Option<u32>,
    /// The CPUs near the GPU.
    pub cpus: Vec<u32>,
    /// Whether MIG is enabled.
    pub mig: Option<bool>,
    /// Whether ECC is enabled.
    pub ecc: Option<bool>,
    /// Whether persistence mode is enabled.
    pub persistence: Option<bool>,
    /// The virtualization mode, if any.
    pub virtualization: Option<String>,
    /// Whether confidential computing is enabled.
    pub confidential: Option<bool>,
    /// Whether profilers may be used with confidential computing.
    pub confidential_tools: Option<bool>,
}

/// A device as reported by the driver.
#[derive(Clone, Debug, Default)]
struct Seen {
    ordinal: u32,
    name: String,
    uuid: String,
    pci: Option<String>,
    capability: Option<(u32, u32)>,
    multiprocessors: Option<u32>,
    memory_bytes: Option<u64>,
}

impl DevicesReport {
    /// Reads the devices of this machine.
    pub fn new() -> Self {
        let mut problems = Vec::new();
        let nvml = Nvml::open()
            .map_err(|error| problems.push(error.to_string()))
            .ok();
        let driver = Driver::open()
            .map_err(|error| problems.push(error.to_string()))
            .ok();
        Self::from_libraries(nvml.as_ref(), driver.as_ref(), problems)
    }

    fn from_libraries(nvml: Option<&Nvml>, driver: Option<&Driver>, mut problems: Vec<String>) -> Self {
        let mut facts = Vec::new();
        if let Some(nvml) = nvml {
            match nvml.device_count() {
                Ok(count) => {
                    for index in 0..count {
                        match nvml.facts(index) {
                            Some(device) => facts.push(device),
                            None => problems.push(format!("GPU {index} does not respond")),
                        }
                    }
                }
                Err(error) => problems.push(error.to_string()),
            }
        }
        let mut seen = Vec::new();
        match driver.map(Driver::devices) {
            Some(Ok(devices)) => seen.extend(devices.iter().map(seen_by)),
            Some(Err(error)) => problems.push(error.to_string()),
            None => {}
        }
        let cuda = driver.and_then(|driver| driver.version().ok());
        Self {
            driver: nvml.and_then(Nvml::driver_version),
            cuda: cuda.or_else(|| nvml.and_then(Nvml::cuda_version)),
            devices: join(facts, seen),
            problems,
        }
    }
}

/// A value stays unknown if the driver does not provide it.
fn seen_by(device: &driver::Device) -> Seen {
    Seen {
        ordinal: device.ordinal(),
        name: device.name().unwrap_or_default(),
        uuid: device.uuid().map(|uuid| uuid.to_string()).unwrap_or_default(),
        pci: device.pci().ok(),
        capability: device.capability().ok(),
        multiprocessors: device.multiprocessors().ok(),
        memory_bytes: device.memory_bytes().ok(),
    }
}

/// Merges both lists.
fn join(facts: Vec<Facts>, seen: Vec<Seen>) -> Vec<Device> {
    let mut devices: Vec<Device> = facts.into_iter().map(device_from_facts).collect();
    for seen in seen {
        let known = devices.iter_mut().find(|device| {
            device.uuid.as_deref() == Some(seen.uuid.as_str())
                || (device.pci.is_some() && device.pci == seen.pci)
        });
        match known {
            Some(device) => device.add(&seen),
            // NVML is missing or does not list it, so only the driver's values are known.
            None => {
                let mut device = Device {
                    index: seen.ordinal,
                    uuid: Some(seen.uuid.clone()),
                    pci: seen.pci.clone(),
                    ..Device::default()
                };
                device.add(&seen);
                devices.push(device);
            }
        }
    }
    for device in &mut devices {
        device.complete();
    }
    devices
}

fn device_from_facts(facts: Facts) -> Device {
    let watts = |milliwatts: u32| f64::from(milliwatts) / 1000.0;
    Device {
        index: facts.index,
        name: facts.name.unwrap_or_default(),
        uuid: facts.uuid,
        architecture: facts.architecture,
        capability: facts.capability,
        memory_bytes: facts.memory.map(|memory| memory.total_bytes),
        memory_free_bytes: facts.memory.map(|memory| memory.free_bytes),
        sm_mhz: facts.sm_mhz,
        sm_max_mhz: facts.sm_max_mhz,
        memory_mhz: facts.memory_mhz,
        memory_max_mhz: facts.memory_max_mhz,
        power_watts: facts.power_milliwatts.map(watts),
        power_limit_watts: facts.power_limit_milliwatts.map(watts),
        temperature_celsius: facts.temperature_celsius,
        pci: facts.pci,
        pcie: facts.pcie,
        cpus: facts.cpus.unwrap_or_default(),
        mig: facts.mig,
        ecc: facts.ecc,
        persistence: facts.persistence,
        virtualization: facts.virtualization,
        confidential: facts.confidential,
        confidential_tools: facts.confidential_tools,
        ..Device::default()
    }
}

impl Device {
    /// Adds the driver's values.
    fn add(&mut self, seen: &Seen) {
        self.cuda_ordinals.push(seen.ordinal);
        if self.name.is_empty() {
            self.name.clone_from(&seen.name);
        }
        self.capability = self.capability.or(seen.capability);
        // The size of a MIG instance is not the size of the device.
        if self.mig != Some(true) {
            self.multiprocessors = seen.multiprocessors;
            self.memory_bytes = self.memory_bytes.or(seen.memory_bytes);
        }
    }

    /// Adds derived values, and those from the kernel.
    fn complete(&mut self) {
        if self.architecture.is_none() {
            self.architecture = self.capability.and_then(architecture_of).map(str::to_owned);
        }
        let (node, cpus) = self.pci.as_deref().map(near_pci).unwrap_or_default();
        if self.cpus.is_empty() {
            self.cpus = cpus;
        }
        // In a virtual machine, the bus reports no NUMA node. The CPUs determine it.
        self.numa_node = node.or_else(|| node_of(&self.cpus, &numa_nodes()));
    }
}

/// The name of an architecture. <https://developer.nvidia.com/cuda-gpus>
fn architecture_of(capability: (u32, u32)) -> Option<&'static str> {
    Some(match capability {
        (5, _) => "Maxwell",
        (6, _) => "Pascal",
        (7, 0..=4) => "Volta",
        (7, _) => "Turing",
        (8, 9) => "Ada",
        (8, _) => "Ampere",
        (9, _) => "Hopper",
        (10..=12, _) => "Blackwell",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(index: u32) -> Facts {
        Facts {
            index,
            name: Some("NVIDIA H200".to_owned()),
            uuid: Some(format!("GPU-{index}")),
            pci: Some(format!("ffff:0{index}:00.0")),
            power_milliwatts: Some(75_500),
            ..Facts::default()
        }
    }

    fn seen(ordinal: u32, uuid: &str, pci: &str) -> Seen {
        Seen {
            ordinal,
            name: "NVIDIA H200".to_owned(),
            uuid: uuid.to_owned(),
            pci: Some(pci.to_owned()),
            capability: Some((9, 0)),
            multiprocessors: Some(132),
            memory_bytes: Some(1 << 37),
        }
    }

    #[test]
    fn both_sources_make_one_device() {
        // CUDA_VISIBLE_DEVICES=1 shows the second GPU as ordinal 0.
        let devices = join(vec![facts(0), facts(1)], vec![seen(0, "GPU-1", "ffff:01:00.0")]);
        assert_eq!(devices.len(), 2);
        assert!(devices[0].cuda_ordinals.is_empty());
        assert_eq!(devices[0].multiprocessors, None);
        assert_eq!(devices[1].cuda_ordinals, [0]);
        assert_eq!(devices[1].multiprocessors, Some(132));
        assert_eq!(devices[1].architecture.as_deref(), Some("Hopper"));
        assert_eq!(devices[1].power_watts, Some(75.5));
    }

    #[test]
    fn instances_belong_to_the_device_that_is_divided() {
        let mut divided = facts(0);
        divided.mig = Some(true);
        let devices = join(
            vec![divided],
            vec![seen(0, "GPU-x", "ffff:00:00.0"), seen(1, "GPU-y", "ffff:00:00.0")],
        );
        assert_eq!(devices.len(), 1);
        assert_eq!(devices[0].cuda_ordinals, [0, 1]);
        assert_eq!(
            devices[0].multiprocessors, None,
            "an instance's are not the device's"
        );
    }

    #[test]
    fn the_driver_alone_is_enough() {
        let devices = join(Vec::new(), vec![seen(0, "GPU-0", "ffff:00:00.0")]);
        assert_eq!(devices[0].name, "NVIDIA H200");
        assert_eq!(devices[0].memory_bytes, Some(1 << 37));
    }

    #[test]
    fn generations_have_names() {
        for (capability, name) in [
            ((5, 2), "Maxwell"),
            ((7, 5), "Turing"),
            ((8, 6), "Ampere"),
            ((8, 9), "Ada"),
            ((9, 0), "Hopper"),
            ((12, 0), "Blackwell"),
        ] {
            assert_eq!(architecture_of(capability), Some(name));
        }
        assert_eq!(architecture_of((99, 0)), None);
    }
}
