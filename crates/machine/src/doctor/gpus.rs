//! Checks the GPUs: whether there is one, and whether a mode limits recording.

use std::path::Path;

use super::process::processes_named;
use super::{Check, Surroundings};
use crate::counters::{Counters, Sample};
use crate::devices::{Device, DevicesReport};

pub(super) fn checks(report: &DevicesReport, surroundings: &Surroundings<'_>) -> Vec<Check> {
    let mut checks = vec![present(report, surroundings)];
    if !report.devices.is_empty() {
        checks.push(counted());
    }
    checks.extend(divided(&report.devices));
    checks.extend(virtualized(&report.devices));
    checks.extend(confidential(&report.devices));
    checks.extend(shared(surroundings));
    checks
}

fn present(report: &DevicesReport, surroundings: &Surroundings<'_>) -> Check {
    let (name, what) = ("gpu.present", "GPUs");
    let visible = report
        .devices
        .iter()
        .filter(|device| !device.cuda_ordinals.is_empty())
        .count();
    match (report.devices.len(), visible) {
        (0, _) => Check::no(
            name,
            what,
            "none",
            "record on a machine with an NVIDIA GPU; traces can be viewed on any machine (tracesmith view, tracesmith demo)",
        ),
        (all, 0) => Check::no(
            name,
            what,
            format!("{all}, but none is visible to CUDA programs"),
            match surroundings.variable("CUDA_VISIBLE_DEVICES") {
                Some(value) => format!("CUDA_VISIBLE_DEVICES is {value}: unset it, or set it to a GPU"),
                None => "see the driver checks above".to_owned(),
            },
        ),
        (all, visible) => {
            let mut names: Vec<&str> = report.devices.iter().map(|device| device.name.as_str()).collect();
            names.dedup();
            let hidden = if visible < all {
                format!(", {visible} of them visible")
            } else {
                String::new()
            };
            Check::ok(name, what, format!("{all} × {}{hidden}", names.join(", ")))
        }
    }
}

/// The counters that NVML provides, and how long a sample takes.
fn counted() -> Check {
    let (name, what) = ("gpu.counters", "sampled counters");
    match Counters::open() {
        Ok(mut counters) => {
            // The first sample has no rates.
            counters.sample();
            Check::ok(name, what, sampled(&counters.sample()))
        }
        Err(error) => Check::warning(
            name,
            what,
            error.to_string(),
            "traces will not contain power, clocks and utilization until nvidia-smi works",
        ),
    }
}

fn sampled(sample: &Sample) -> String {
    let mut names: Vec<&str> = sample.values.iter().map(|value| value.name).collect();
    names.sort_unstable();
    names.dedup();
    let micros = sample.took.as_micros();
    format!("{}; a sample of all GPUs took {micros} µs", names.join(", "))
}

fn numbers(devices: &[Device], is_meant: impl Fn(&Device) -> bool) -> String {
    let numbers: Vec<String> = devices
        .iter()
        .filter(|device| is_meant(device))
        .map(|device| device.index.to_string())
        .collect();
    numbers.join(", ")
}

fn divided(devices: &[Device]) -> Option<Check> {
    let numbers = numbers(devices, |device| device.mig == Some(true));
    (!numbers.is_empty()).then(|| {
        Check::ok(
            "gpu.mig",
            "MIG",
            format!("on for GPU {numbers}: programs and traces show MIG instances"),
        )
    })
}

fn virtualized(devices: &[Device]) -> Option<Check> {
    let numbers = numbers(devices, |device| device.virtualization.as_deref() == Some("vgpu"));
    (!numbers.is_empty()).then(|| {
        Check::warning(
            "gpu.virtualization",
            "virtual GPU",
            format!("GPU {numbers} is a virtual GPU (vGPU)"),
            "enable tracing for this virtual machine on the host (vGPU plugin parameter enable_profiling=1)",
        )
    })
}

fn confidential(devices: &[Device]) -> Option<Check> {
    let locked = numbers(devices, |device| {
        device.confidential == Some(true) && device.confidential_tools != Some(true)
    });
    (!locked.is_empty()).then(|| {
        Check::no(
            "gpu.confidential",
            "confidential computing",
            format!("on for GPU {locked}; profilers are blocked"),
            "set the GPU's mode to devtools on the host",
        )
    })
}

/// MPS: one server process runs the work of all clients.
fn shared(surroundings: &Surroundings<'_>) -> Option<Check> {
    let running = processes_named(
        Path::new("/proc"),
        &["nvidia-cuda-mps-control", "nvidia-cuda-mps-server"],
    );
    let directory = surroundings.variable("CUDA_MPS_PIPE_DIRECTORY");
    if running.is_empty() && directory.is_none() {
        return None;
    }
    let found = match directory {
        Some(directory) => format!("pipe directory: {directory}"),
        None => "the MPS server is running".to_owned(),
    };
    Some(Check::warning(
        "gpu.mps",
        "MPS",
        found,
        "tracing works, but with drivers before 580, programs with cooperative kernels hang; record those without MPS (CUDA_MPS_PIPE_DIRECTORY=/nonexistent)",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use crate::doctor::State;

    fn surroundings(variables: &[(&str, &str)]) -> Surroundings<'static> {
        Surroundings {
            variables: variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>(),
            target_memory_bytes: 0,
            runtime_directory: Err(String::new()),
            armed: Vec::new(),
            program: None,
            cupti_version: &|_| Err(String::new()),
        }
    }

    fn gpu(index: u32, cuda_ordinals: &[u32]) -> Device {
        Device {
            index,
            cuda_ordinals: cuda_ordinals.to_vec(),
            name: "NVIDIA H200".to_owned(),
            ..Device::default()
        }
    }

    fn report(devices: Vec<Device>) -> DevicesReport {
        DevicesReport {
            devices,
            ..DevicesReport::default()
        }
    }

    #[test]
    fn hidden_gpus_are_told_from_missing_ones() {
        let none = present(&report(Vec::new()), &surroundings(&[]));
        assert_eq!((none.state, none.found.as_str()), (State::No, "none"));
        let hidden = present(
            &report(vec![gpu(0, &[])]),
            &surroundings(&[("CUDA_VISIBLE_DEVICES", "-1")]),
        );
        assert_eq!(hidden.state, State::No);
        assert!(hidden.remedy.unwrap().contains("CUDA_VISIBLE_DEVICES is -1"));
        let some = present(
            &report(vec![gpu(0, &[]), gpu(1, &[0])]),
            &surroundings(&[("CUDA_VISIBLE_DEVICES", "1")]),
        );
        assert_eq!(
            (some.state, some.found.as_str()),
            (State::Ok, "2 × NVIDIA H200, 1 of them visible")
        );
    }

    #[test]
    fn counters_are_named_once_for_all_gpus() {
        let value = |name| crate::counters::Value {
            time_nanos: 0,
            device: tracesmith_cuda::driver::Uuid([0; 16]),
            name,
            unit: "W",
            instance: 0,
            value: 0.0,
        };
        let sample = Sample {
            took: std::time::Duration::from_micros(420),
            values: vec![value("power"), value("SM clock"), value("power")],
        };
        assert_eq!(
            sampled(&sample),
            "SM clock, power; a sample of all GPUs took 420 µs"
        );
    }

    #[test]
    fn modes_that_hide_work_are_told() {
        let mut locked = gpu(0, &[0]);
        locked.confidential = Some(true);
        assert_eq!(
            confidential(&[locked.clone()]).map(|check| check.state),
            Some(State::No)
        );
        locked.confidential_tools = Some(true);
        assert_eq!(confidential(&[locked]), None);
        let mut share = gpu(1, &[0]);
        share.virtualization = Some("vgpu".to_owned());
        assert_eq!(
            virtualized(&[share]).map(|check| check.state),
            Some(State::Warning)
        );
        let mut divided_gpu = gpu(2, &[0, 1]);
        divided_gpu.mig = Some(true);
        assert_eq!(divided(&[divided_gpu]).map(|check| check.state), Some(State::Ok));
        assert!(shared(&surroundings(&[("CUDA_MPS_PIPE_DIRECTORY", "/tmp/mps")])).is_some());
    }
}
