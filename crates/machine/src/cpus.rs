//! The host's CPUs and NUMA nodes, as reported by the kernel.

use std::fs;
use std::path::Path;

/// A NUMA node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumaNode {
    /// The number of the node.
    pub number: u32,
    /// The CPUs of the node.
    pub cpus: Vec<u32>,
}

/// The NUMA nodes by number. Empty if the kernel reports none.
pub fn numa_nodes() -> Vec<NumaNode> {
    let mut nodes: Vec<NumaNode> = fs::read_dir("/sys/devices/system/node")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
            let cpus = fs::read_to_string(entry.path().join("cpulist")).ok()?;
            Some(NumaNode {
                number,
                cpus: parse_list(&cpus),
            })
        })
        .collect();
    nodes.sort_by_key(|node| node.number);
    nodes
}

/// The NUMA node of a PCI device, and the CPUs near it.
pub(crate) fn near_pci(pci: &str) -> (Option<u32>, Vec<u32>) {
    let folder = Path::new("/sys/bus/pci/devices").join(pci);
    // A machine without NUMA nodes reports -1.
    let node = read(&folder.join("numa_node")).and_then(|text| text.trim().parse().ok());
    let cpus = read(&folder.join("local_cpulist"))
        .map(|text| parse_list(&text))
        .unwrap_or_default();
    (node, cpus)
}

/// The node that contains all these CPUs.
pub(crate) fn node_of(cpus: &[u32], nodes: &[NumaNode]) -> Option<u32> {
    let first = cpus.first()?;
    let node = nodes.iter().find(|node| node.cpus.contains(first))?;
    cpus.iter()
        .all(|cpu| node.cpus.contains(cpu))
        .then_some(node.number)
}

/// `None` if the file does not exist.
fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// Parses the kernel's list format: `0-3,8`.
pub fn parse_list(text: &str) -> Vec<u32> {
    let mut numbers = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            numbers.extend(first..=last);
        }
    }
    numbers
}

/// Formats sorted numbers in the kernel's list format: `0-3,8`.
pub fn format_list(numbers: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    runs.iter()
        .map(|(first, last)| {
            if first == last {
                first.to_string()
            } else {
                format!("{first}-{last}")
            }
        })
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_of_one_node_tell_the_node() {
        let node = |number, cpus: &[u32]| NumaNode {
            number,
            cpus: cpus.to_vec(),
        };
        let nodes = [node(0, &[0, 1]), node(1, &[2, 3])];
        assert_eq!(node_of(&[2, 3], &nodes), Some(1));
        assert_eq!(node_of(&[1, 2], &nodes), None);
        assert_eq!(node_of(&[], &nodes), None);
    }

    #[test]
    fn lists_of_cpus_are_read_and_written_as_the_kernel_does() {
        for text in ["0-3,8", "0", "1,3,5-6", "0-111,224-335"] {
            assert_eq!(format_list(&parse_list(text)), text);
        }
        assert_eq!(parse_list("0-2\n"), [0, 1, 2]);
        assert!(parse_list("\n").is_empty());
        assert_eq!(format_list(&[]), "");
    }
}
