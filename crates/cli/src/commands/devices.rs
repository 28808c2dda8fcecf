//! `tracesmith devices`.

use serde_json::{Value, json};
use tracesmith_machine::cpus::format_list;
use tracesmith_machine::topology::{FarEnd, Gpu, LEGEND, Link};
use tracesmith_machine::{Device, DevicesReport, TopologyReport};
use tracesmith_trace::units;

use crate::args::Format;
use crate::exit::Exit;
use crate::output::table::{Align, TextTable};
use crate::output::{FAINT, HEADING, Output};

pub(crate) fn run(output: &mut Output) -> anyhow::Result<Exit> {
    let report = DevicesReport::new();
    let topology = TopologyReport::new(&report);
    match output.format {
        Format::Json => output.json(&json_of(&report, &topology))?,
        Format::Csv => show_csv(&report.devices, output)?,
        Format::Table => show(&report, &topology, output)?,
    }
    Ok(Exit::from_check(!report.devices.is_empty()))
}

fn show(report: &DevicesReport, topology: &TopologyReport, output: &mut Output) -> anyhow::Result<()> {
    if report.devices.is_empty() {
        output.line("no NVIDIA GPU found")?;
        for problem in &report.problems {
            output.note(problem);
        }
        output.note("tracesmith doctor shows what is missing");
        return Ok(());
    }
    let versions = [
        report.driver.as_ref().map(|version| format!("driver {version}")),
        report.cuda.map(|version| format!("CUDA {version}")),
    ];
    output.line(&versions.into_iter().flatten().collect::<Vec<_>>().join(", "))?;
    output.line("")?;
    show_devices(&report.devices, output)?;
    output.line("")?;
    show_state(&report.devices, output)?;
    output.line("")?;
    show_connections(&report.devices, topology, output)?;
    for problem in &report.problems {
        output.note(problem);
    }
    Ok(())
}

/// The properties of the devices.
fn show_devices(devices: &[Device], output: &mut Output) -> anyhow::Result<()> {
    let mut table = TextTable::new(&[
        ("gpu", Align::Right),
        ("cuda", Align::Right),
        ("name", Align::Flexible),
        ("architecture", Align::Left),
        ("SMs", Align::Right),
        ("memory", Align::Right),
        ("pci", Align::Left),
        ("link", Align::Left),
        ("modes", Align::Left),
        ("uuid", Align::Flexible),
    ]);
    for device in devices {
        let cuda = match device.cuda_ordinals.as_slice() {
            [] => "hidden".to_owned(),
            ordinals => format_list(ordinals),
        };
        let architecture = match (&device.architecture, device.capability) {
            (Some(name), Some((major, minor))) => format!("{name} (cc {major}.{minor})"),
            (None, Some((major, minor))) => format!("cc {major}.{minor}"),
            (name, None) => name.clone().unwrap_or_default(),
        };
        table.row([
            device.index.to_string().into(),
            cuda.into(),
            device.name.as_str().into(),
            architecture.into(),
            text(device.multiprocessors).into(),
            device.memory_bytes.map(units::bytes).unwrap_or_default().into(),
            device.pci.clone().unwrap_or_default().into(),
            pcie(device).into(),
            modes(device).into(),
            device.uuid.clone().unwrap_or_default().into(),
        ]);
    }
    Ok(output.table(&table)?)
}

/// The state of the devices.
fn show_state(devices: &[Device], output: &mut Output) -> anyhow::Result<()> {
    let mut table = TextTable::new(&[
        ("gpu", Align::Right),
        ("memory free", Align::Right),
        ("SM clock", Align::Right),
        ("memory clock", Align::Right),
        ("power", Align::Right),
        ("temperature", Align::Right),
    ]);
    let clock = |now: Option<u32>, most: Option<u32>| match (now, most) {
        (Some(now), Some(most)) => format!("{now} of {most} MHz"),
        (now, _) => now.map(|now| format!("{now} MHz")).unwrap_or_default(),
    };
    for device in devices {
        let power = match (device.power_watts, device.power_limit_watts) {
            (Some(now), Some(most)) => format!("{now:.0} of {most:.0} W"),
            (now, _) => now.map(|now| format!("{now:.0} W")).unwrap_or_default(),
        };
        table.row([
            device.index.to_string().into(),
            device
                .memory_free_bytes
                .map(units::bytes)
                .unwrap_or_default()
                .into(),
            clock(device.sm_mhz, device.sm_max_mhz).into(),
            clock(device.memory_mhz, device.memory_max_mhz).into(),
            power.into(),
            device
                .temperature_celsius
                .map(|celsius| format!("{celsius} °C"))
                .unwrap_or_default()
                .into(),
        ]);
    }
    Ok(output.table(&table)?)
}

/// The connections, as `nvidia-smi topo -m` shows them.
fn show_connections(
    devices: &[Device],
    topology: &TopologyReport,
    output: &mut Output,
) -> anyhow::Result<()> {
    let width = |labels: &[String]| labels.iter().map(String::len).max().unwrap_or(0);
    let names: Vec<String> = devices
        .iter()
        .map(|device| format!("GPU{}", device.index))
        .collect();
    let labels: Vec<Vec<String>> = topology
        .pairs
        .iter()
        .map(|row| row.iter().map(|connection| connection.label()).collect())
        .collect();
    let column = labels
        .iter()
        .map(|row| width(row))
        .chain([width(&names)])
        .max()
        .unwrap_or(0);
    let cpus: Vec<String> = devices.iter().map(|device| format_list(&device.cpus)).collect();
    let cpu_column = width(&cpus).max("CPUs".len());
    let line = |cells: &[String], cpus: &str, node: &str| {
        let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:<column$}")).collect();
        format!("{}  {cpus:<cpu_column$}  {node}", cells.join("  "))
            .trim_end()
            .to_owned()
    };
    let first = width(&names);
    let head = line(&names, "CPUs", "NUMA node");
    output.line(&format!("{HEADING}{:first$}  {head}{HEADING:#}", ""))?;
    for (at, row) in labels.iter().enumerate() {
        let row = line(row, &cpus[at], &text(devices[at].numa_node));
        output.line(&format!("{:first$}  {row}", names[at]))?;
    }
    for gpu in &topology.gpus {
        if let Some(links) = links(gpu) {
            output.line(&format!("{FAINT}GPU{}: {links}{FAINT:#}", gpu.index))?;
        }
    }
    let used = |label: &str| {
        labels
            .iter()
            .flatten()
            .any(|found| found == label || (label == "NV#" && found.starts_with("NV")))
    };
    for (label, meaning) in LEGEND.iter().filter(|(label, _)| *label != "X" && used(label)) {
        output.line(&format!("{FAINT}{label}: {meaning}{FAINT:#}"))?;
    }
    Ok(())
}

/// Describes the NVLinks of a device.
fn links(gpu: &Gpu) -> Option<String> {
    let first = gpu.links.first()?;
    let total: u64 = gpu
        .links
        .iter()
        .filter_map(|link| link.speed_mbps)
        .map(u64::from)
        .sum();
    let version = first
        .version
        .map(|version| format!(" version {version}"))
        .unwrap_or_default();
    let speed = if total > 0 {
        format!(", {:.0} GB/s each way", total as f64 / 1000.0)
    } else {
        String::new()
    };
    Some(format!(
        "{} NVLinks{version} to {}{speed}",
        gpu.links.len(),
        far_end(first)
    ))
}

fn far_end(link: &Link) -> &'static str {
    match link.far_end {
        FarEnd::Gpu => "gpu",
        FarEnd::Switch => "switch",
        FarEnd::Cpu => "cpu",
        FarEnd::Unknown => "unknown",
    }
}

fn pcie(device: &Device) -> String {
    let pcie = device.pcie;
    match (
        pcie.generation,
        pcie.max_generation,
        pcie.width.or(pcie.max_width),
    ) {
        (Some(now), Some(most), Some(width)) if now != most => format!("PCIe {now} of {most} ×{width}"),
        (Some(generation), _, Some(width)) => format!("PCIe {generation} ×{width}"),
        _ => String::new(),
    }
}

fn modes(device: &Device) -> String {
    let is_virtual = device
        .virtualization
        .as_deref()
        .filter(|mode| *mode != "none")
        .map(str::to_owned);
    let modes = [
        (device.mig == Some(true)).then(|| "MIG".to_owned()),
        (device.ecc == Some(true)).then(|| "ECC".to_owned()),
        (device.persistence == Some(true)).then(|| "persistent".to_owned()),
        (device.confidential == Some(true)).then(|| "confidential".to_owned()),
        is_virtual,
    ];
    modes.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn text<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn show_csv(devices: &[Device], output: &mut Output) -> anyhow::Result<()> {
    output.csv([
        "index",
        "name",
        "uuid",
        "architecture",
        "capability",
        "multiprocessors",
        "memory_bytes",
        "memory_free_bytes",
        "pci",
        "numa_node",
    ])?;
    for device in devices {
        let capability = device
            .capability
            .map(|(major, minor)| format!("{major}.{minor}"))
            .unwrap_or_default();
        output.csv([
            device.index.to_string(),
            device.name.clone(),
            device.uuid.clone().unwrap_or_default(),
            device.architecture.clone().unwrap_or_default(),
            capability,
            text(device.multiprocessors),
            text(device.memory_bytes),
            text(device.memory_free_bytes),
            device.pci.clone().unwrap_or_default(),
            text(device.numa_node),
        ])?;
    }
    Ok(())
}

fn json_of(report: &DevicesReport, topology: &TopologyReport) -> Value {
    let devices: Vec<Value> = report
        .devices
        .iter()
        .zip(&topology.gpus)
        .map(|(device, gpu)| device_json(device, gpu))
        .collect();
    let connections: Vec<Vec<String>> = topology
        .pairs
        .iter()
        .map(|row| row.iter().map(|connection| connection.label()).collect())
        .collect();
    json!({
        "driver": report.driver,
        "cuda": report.cuda.map(|version| version.to_string()),
        "devices": devices,
        "topology": {
            "connections": connections,
            "numa_nodes": topology.numa_nodes.iter().map(|node| json!({
                "number": node.number, "cpus": node.cpus,
            })).collect::<Vec<_>>(),
        },
        "problems": report.problems,
    })
}

fn device_json(device: &Device, gpu: &Gpu) -> Value {
    let links: Vec<Value> = gpu
        .links
        .iter()
        .map(|link| {
            json!({
                "number": link.number, "version": link.version, "speed_mbps": link.speed_mbps,
                "far_end": far_end(link), "far_pci": link.far_pci,
            })
        })
        .collect();
    json!({
        "index": device.index,
        "cuda_ordinals": device.cuda_ordinals,
        "name": device.name,
        "uuid": device.uuid,
        "architecture": device.architecture,
        "capability": device.capability.map(|(major, minor)| [major, minor]),
        "multiprocessors": device.multiprocessors,
        "memory_bytes": device.memory_bytes,
        "memory_free_bytes": device.memory_free_bytes,
        "sm_mhz": device.sm_mhz,
        "sm_max_mhz": device.sm_max_mhz,
        "memory_mhz": device.memory_mhz,
        "memory_max_mhz": device.memory_max_mhz,
        "power_watts": device.power_watts,
        "power_limit_watts": device.power_limit_watts,
        "temperature_celsius": device.temperature_celsius,
        "pci": device.pci,
        "pcie_generation": device.pcie.generation,
        "pcie_max_generation": device.pcie.max_generation,
        "pcie_width": device.pcie.width,
        "pcie_max_width": device.pcie.max_width,
        "numa_node": device.numa_node,
        "cpus": device.cpus,
        "mig": device.mig,
        "ecc": device.ecc,
        "persistence": device.persistence,
        "virtualization": device.virtualization,
        "confidential": device.confidential,
        "nvlinks": links,
    })
}
