//! How devices are connected: NVLink, and how near they are on PCIe.

use nvml_wrapper::enum_wrappers::device::TopologyLevel;

use super::field::Field;
use super::{Nvml, known, pci_from_nvml};

/// Links that a device may have: 18 on Hopper and Blackwell. Asking for more
/// costs a refused call.
const LINKS: u32 = 36;

/// An NVLink that is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its number on the device.
    pub number: u32,
    /// Its version, as NVML numbers them.
    pub version: Option<u32>,
    /// MB/s in each direction.
    pub speed_mbps: Option<u32>,
    /// What is at the other end.
    pub far_end: FarEnd,
    /// Where that is on the PCI bus, as `0000:3b:00.0`.
    pub far_pci: Option<String>,
}

/// What is at the other end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarEnd {
    /// Another GPU, directly.
    Gpu,
    /// A switch, and through it all GPUs on it.
    Switch,
    /// A CPU.
    Cpu,
    /// The driver does not say.
    Unknown,
}

/// What two devices share on their way to each other over PCIe, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ancestor {
    /// The same board.
    Board,
    /// A PCIe switch.
    Switch,
    /// Several PCIe switches, no host bridge.
    Switches,
    /// A host bridge of the CPU.
    HostBridge,
    /// A NUMA node, between whose host bridges they pass.
    Node,
    /// Nothing but the machine: they pass between CPUs.
    System,
}

impl Nvml {
    /// The links of a device that are up.
    pub fn links(&self, index: u32) -> Vec<Link> {
        let Some(device) = self.device(index) else {
            return Vec::new();
        };
        (0..LINKS)
            .filter_map(|number| {
                let link = device.link_wrapper_for(number);
                if !known(link.is_active())? {
                    return None;
                }
                let [speed] = self.fields.get(&device, [Field::link_speed(number)]);
                Some(Link {
                    number,
                    version: known(link.version()),
                    speed_mbps: speed.map(|speed| speed as u32).filter(|speed| *speed > 0),
                    far_end: far_end(self.fields.far_end(&device, number)),
                    far_pci: known(link.remote_pci_info()).map(|pci| pci_from_nvml(&pci.bus_id)),
                })
            })
            .collect()
    }

    /// What two devices share over PCIe.
    pub fn ancestor(&self, one: u32, other: u32) -> Option<Ancestor> {
        let (one, other) = (self.device(one)?, self.device(other)?);
        Some(match known(one.topology_common_ancestor(other))? {
            TopologyLevel::Internal => Ancestor::Board,
            TopologyLevel::Single => Ancestor::Switch,
            TopologyLevel::Multiple => Ancestor::Switches,
            TopologyLevel::HostBridge => Ancestor::HostBridge,
            TopologyLevel::Node => Ancestor::Node,
            TopologyLevel::System => Ancestor::System,
        })
    }
}

/// <https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceEnumvs.html>
fn far_end(kind: Option<u32>) -> FarEnd {
    match kind {
        Some(0) => FarEnd::Gpu,
        Some(1) => FarEnd::Cpu,
        Some(2) => FarEnd::Switch,
        _ => FarEnd::Unknown,
    }
}
