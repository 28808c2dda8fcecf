//! The connections of GPUs to each other and to CPUs.

use tracesmith_cuda::nvml::Nvml;
pub use tracesmith_cuda::nvml::{Ancestor, FarEnd, Link};

use crate::cpus::{NumaNode, numa_nodes};
use crate::devices::DevicesReport;

/// The GPUs of the machine and their connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopologyReport {
    /// The GPUs, in the order of the devices.
    pub gpus: Vec<Gpu>,
    /// The connection of each GPU to each GPU.
    pub pairs: Vec<Vec<Connection>>,
    /// The NUMA nodes.
    pub numa_nodes: Vec<NumaNode>,
}

/// A GPU and its links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gpu {
    /// The index.
    pub index: u32,
    /// The PCI address.
    pub pci: Option<String>,
    /// The active NVLinks.
    pub links: Vec<Link>,
}

/// The connection between two GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// Both are the same GPU.
    Same,
    /// NVLinks, directly or through switches.
    NvLink {
        /// The smaller number of links of the two GPUs.
        links: u32,
    },
    /// PCIe.
    Pcie {
        /// The common ancestor on the bus.
        ancestor: Ancestor,
    },
    /// The driver does not report it.
    Unknown,
}

impl Connection {
    /// The label of `nvidia-smi topo -m`.
    pub fn label(self) -> String {
        match self {
            Self::Same => "X".to_owned(),
            Self::NvLink { links } => format!("NV{links}"),
            Self::Pcie { ancestor } => match ancestor {
                Ancestor::Board => "PSB",
                Ancestor::Switch => "PIX",
                Ancestor::Switches => "PXB",
                Ancestor::HostBridge => "PHB",
                Ancestor::Node => "NODE",
                Ancestor::System => "SYS",
            }
            .to_owned(),
            Self::Unknown => "?".to_owned(),
        }
    }
}

/// The meaning of the labels, nearest first.
pub const LEGEND: &[(&str, &str)] = &[
    ("X", "the same GPU"),
    ("NV#", "# NVLinks, directly or through switches"),
    ("PSB", "the same board"),
    ("PIX", "through one PCIe switch"),
    ("PXB", "through several PCIe switches, no host bridge"),
    ("PHB", "through a PCIe host bridge, usually the CPU"),
    ("NODE", "across host bridges within a NUMA node"),
    ("SYS", "across NUMA nodes"),
];

impl TopologyReport {
    /// Finds the connections of these devices.
    pub fn new(devices: &DevicesReport) -> Self {
        // Without NVML, all connections are unknown, and the report states that.
        let nvml = Nvml::open().ok();
        let links = |index| nvml.as_ref().map(|nvml| nvml.links(index)).unwrap_or_default();
        let gpus: Vec<Gpu> = devices
            .devices
            .iter()
            .map(|device| Gpu {
                index: device.index,
                pci: device.pci.clone(),
                links: links(device.index),
            })
            .collect();
        let pairs = pairs(&gpus, |one, other| nvml.as_ref()?.ancestor(one, other));
        Self {
            gpus,
            pairs,
            numa_nodes: numa_nodes(),
        }
    }
}

/// The matrix of connections.
fn pairs(gpus: &[Gpu], ancestor: impl Fn(u32, u32) -> Option<Ancestor>) -> Vec<Vec<Connection>> {
    let between = |one: &Gpu, other: &Gpu| {
        if one.index == other.index {
            return Connection::Same;
        }
        if let Some(links) = links_between(one, other) {
            return Connection::NvLink { links };
        }
        match ancestor(one.index, other.index) {
            Some(ancestor) => Connection::Pcie { ancestor },
            None => Connection::Unknown,
        }
    };
    gpus.iter()
        .map(|one| gpus.iter().map(|other| between(one, other)).collect())
        .collect()
}

/// NVLinks from one GPU to the other. Links to switches count if both GPUs have some, because the switches of a
/// machine are one fabric.
fn links_between(one: &Gpu, other: &Gpu) -> Option<u32> {
    let direct = one
        .links
        .iter()
        .filter(|link| link.far_end != FarEnd::Switch && link.far_pci.is_some() && link.far_pci == other.pci)
        .count();
    let to_switches = |gpu: &Gpu| {
        gpu.links
            .iter()
            .filter(|link| link.far_end == FarEnd::Switch)
            .count()
    };
    let links = direct + to_switches(one).min(to_switches(other));
    (links > 0).then_some(links as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(index: u32, links: &[(FarEnd, &str)]) -> Gpu {
        let links = (0..).zip(links).map(|(number, (far_end, far_pci))| Link {
            number,
            version: Some(7),
            speed_mbps: Some(26_562),
            far_end: *far_end,
            far_pci: Some((*far_pci).to_owned()),
        });
        Gpu {
            index,
            pci: Some(format!("0000:{index}b:00.0")),
            links: links.collect(),
        }
    }

    fn labels(gpus: &[Gpu], ancestor: Option<Ancestor>) -> Vec<Vec<String>> {
        pairs(gpus, |_, _| ancestor)
            .iter()
            .map(|row| row.iter().map(|connection| connection.label()).collect())
            .collect()
    }

    #[test]
    fn gpus_on_switches_are_linked_by_what_the_weaker_one_has() {
        let full = [(FarEnd::Switch, "0000:c1:00.0"); 18];
        let gpus = [gpu(0, &full), gpu(1, &full), gpu(2, &full[..16])];
        assert_eq!(
            labels(&gpus, Some(Ancestor::System)),
            [
                ["X", "NV18", "NV16"],
                ["NV18", "X", "NV16"],
                ["NV16", "NV16", "X"]
            ]
        );
    }

    #[test]
    fn direct_links_count_for_the_gpu_at_their_end() {
        let gpus = [
            gpu(0, &[(FarEnd::Gpu, "0000:1b:00.0"), (FarEnd::Gpu, "0000:1b:00.0")]),
            gpu(1, &[(FarEnd::Gpu, "0000:0b:00.0"), (FarEnd::Gpu, "0000:0b:00.0")]),
            gpu(2, &[(FarEnd::Cpu, "0000:ff:00.0")]),
        ];
        assert_eq!(
            labels(&gpus, Some(Ancestor::Node)),
            [["X", "NV2", "NODE"], ["NV2", "X", "NODE"], ["NODE", "NODE", "X"]]
        );
    }

    #[test]
    fn without_links_the_way_over_pcie_is_told() {
        let gpus = [gpu(0, &[]), gpu(1, &[])];
        for (ancestor, label) in [
            (Some(Ancestor::Switch), "PIX"),
            (Some(Ancestor::Switches), "PXB"),
            (Some(Ancestor::HostBridge), "PHB"),
            (Some(Ancestor::System), "SYS"),
            (None, "?"),
        ] {
            assert_eq!(labels(&gpus, ancestor)[0], ["X", label]);
        }
        assert!(LEGEND.iter().any(|(label, _)| *label == "PIX"));
    }
}
