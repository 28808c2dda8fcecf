//! GPU counters, sampled with NVML.
//!
//! One [`Counters::sample`] reads every GPU once. Values that a GPU does not provide are left out. Totals become
//! rates from the second sample on. The result contains the duration of the sample, so that the caller can choose a
//! period.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tracesmith_cuda::driver::Uuid;
use tracesmith_cuda::nvml::{Link, Nvml, Reading, Traffic};

use crate::cpus::{near_pci, node_of, numa_nodes};
use crate::error::Error;

/// Samples the GPUs of this machine.
pub struct Counters {
    nvml: Nvml,
    devices: Vec<Watched>,
    /// The next GPU for the slow call.
    turn: usize,
}

/// Constant properties of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceFacts {
    /// Identifies the GPU.
    pub uuid: Uuid,
    /// The index if all GPUs are visible.
    pub index: u32,
    /// The name.
    pub name: String,
    /// The PCI address, such as `0000:3b:00.0`.
    pub pci: String,
    /// The driver version, such as `580.82.07`.
    pub driver: String,
    /// The NUMA node of the GPU.
    pub numa_node: Option<u32>,
    /// The highest PCIe generation that the GPU and its slot support.
    pub pcie_generation: Option<u32>,
    /// The largest number of PCIe lanes that both support.
    pub pcie_width: Option<u32>,
    /// Number of active NVLinks.
    pub nvlinks: u32,
    /// Bandwidth of all NVLinks per direction, in bytes per second. `None` if the speed of a link is unknown.
    pub nvlink_bandwidth: Option<u64>,
}

/// One sample of all GPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// How long the sample took.
    pub took: Duration,
    /// The values.
    pub values: Vec<Value>,
}

/// The value of one counter of one GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Time in nanoseconds of `CLOCK_MONOTONIC`.
    pub time_nanos: u64,
    /// The GPU.
    pub device: Uuid,
    /// The counter.
    pub name: &'static str,
    /// The unit.
    pub unit: &'static str,
    /// Distinguishes counters with the same name. 0 if there is only one.
    pub instance: u32,
    /// The value.
    pub value: f64,
}

struct Watched {
    facts: DeviceFacts,
    /// The previous reading and its time in nanoseconds.
    before: Option<(u64, Reading)>,
    /// Whether PCIe traffic is available only from the call that takes 40 ms.
    slow_pcie: bool,
}

/// A kind of link.
#[derive(Clone, Copy)]
enum Path {
    Pcie,
    NvLink,
}

impl Counters {
    /// Opens NVML and finds the GPUs.
    ///
    /// # Errors
    ///
    /// If there is no driver, or if it does not work.
    pub fn open() -> Result<Self, Error> {
        let nvml = Nvml::open()?;
        let driver = nvml.driver_version().unwrap_or_default();
        let nodes = numa_nodes();
        let devices = (0..nvml.device_count()?)
            .filter_map(|index| nvml.facts(index))
            .filter_map(|facts| {
                // A device without a UUID cannot be identified in samples.
                let uuid = Uuid::from_text(facts.uuid.as_deref()?)?;
                let pci = facts.pci.unwrap_or_default();
                let slow_pcie = nvml.reading(facts.index).pcie.is_none();
                let links = nvml.links(facts.index);
                Some(Watched {
                    facts: DeviceFacts {
                        uuid,
                        index: facts.index,
                        name: facts.name.unwrap_or_default(),
                        numa_node: near_pci(&pci)
                            .0
                            .or_else(|| node_of(&facts.cpus.unwrap_or_default(), &nodes)),
                        pci,
                        driver: driver.clone(),
                        pcie_generation: facts.pcie.max_generation.or(facts.pcie.generation),
                        pcie_width: facts.pcie.max_width.or(facts.pcie.width),
                        nvlinks: links.len() as u32,
                        nvlink_bandwidth: bandwidth(&links),
                    },
                    before: None,
                    slow_pcie,
                })
            })
            .collect();
        Ok(Self {
            nvml,
            devices,
            turn: 0,
        })
    }

    /// The GPUs.
    pub fn devices(&self) -> impl Iterator<Item = &DeviceFacts> {
        self.devices.iter().map(|watched| &watched.facts)
    }

    /// Samples every GPU once.
    ///
    /// A GPU without PCIe totals must be observed for 40 ms. Each sample does this for one such GPU, in turn.
    pub fn sample(&mut self) -> Sample {
        let started = Instant::now();
        let mut values = Vec::with_capacity(self.devices.len() * 11);
        let slow: Vec<u32> = self
            .devices
            .iter()
            .filter(|watched| watched.slow_pcie)
            .map(|watched| watched.facts.index)
            .collect();
        let whose_turn = slow.get(self.turn % slow.len().max(1)).copied();
        self.turn = self.turn.wrapping_add(1);
        for watched in &mut self.devices {
            let reading = self.nvml.reading(watched.facts.index);
            let now = monotonic_nanos();
            watched.values(&reading, now, &mut values);
            watched.before = Some((now, reading));
            if whose_turn == Some(watched.facts.index) {
                let rate = self.nvml.pcie_bytes_per_second(watched.facts.index);
                watched.traffic(Path::Pcie, rate, monotonic_nanos(), &mut values);
            }
        }
        Sample {
            took: started.elapsed(),
            values,
        }
    }
}

impl Watched {
    fn values(&self, reading: &Reading, now: u64, values: &mut Vec<Value>) {
        let mut push = |name, unit, value: Option<f64>| {
            values.extend(value.map(|value| self.value(name, unit, value, now)));
        };
        push("GPU utilization", "%", reading.gpu_percent.map(f64::from));
        push("memory utilization", "%", reading.memory_percent.map(f64::from));
        push(
            "memory used",
            "B",
            reading.memory_used_bytes.map(|bytes| bytes as f64),
        );
        push(
            "power",
            "W",
            reading
                .power_milliwatts
                .map(|milliwatts| f64::from(milliwatts) / 1000.0),
        );
        push("temperature", "°C", reading.temperature_celsius.map(f64::from));
        push("SM clock", "MHz", reading.sm_mhz.map(f64::from));
        push("memory clock", "MHz", reading.memory_mhz.map(f64::from));
        let before = self.before.as_ref();
        let rate_of = |total: fn(&Reading) -> Option<Traffic>| {
            let (then, before) = before?;
            rate(
                total(before)?,
                total(reading)?,
                Duration::from_nanos(now.saturating_sub(*then)),
            )
        };
        self.traffic(Path::Pcie, rate_of(|reading| reading.pcie), now, values);
        self.traffic(Path::NvLink, rate_of(|reading| reading.nvlink), now, values);
    }

    fn traffic(&self, path: Path, rate: Option<Traffic>, now: u64, values: &mut Vec<Value>) {
        let Some(rate) = rate else { return };
        let (received, sent) = match path {
            Path::Pcie => ("PCIe received", "PCIe sent"),
            Path::NvLink => ("NVLink received", "NVLink sent"),
        };
        values.push(self.value(received, "B/s", rate.received_bytes, now));
        values.push(self.value(sent, "B/s", rate.sent_bytes, now));
    }

    fn value(&self, name: &'static str, unit: &'static str, value: f64, time_nanos: u64) -> Value {
        Value {
            time_nanos,
            device: self.facts.uuid,
            name,
            unit,
            instance: 0,
            value,
        }
    }
}

/// Bandwidth of all links per direction, in bytes per second. `None` if there are no links, or if the speed of a link
/// is unknown.
fn bandwidth(links: &[Link]) -> Option<u64> {
    let speeds: Option<Vec<u64>> = links
        .iter()
        .map(|link| Some(u64::from(link.speed_mbps?) * 1_000_000))
        .collect();
    speeds.map(|speeds| speeds.iter().sum()).filter(|sum| *sum > 0)
}

fn monotonic_nanos() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Bytes per second from two totals. `None` if a total decreased, because the device was reset.
fn rate(before: Traffic, now: Traffic, time: Duration) -> Option<Traffic> {
    let seconds = time.as_secs_f64();
    let received = now.received_bytes - before.received_bytes;
    let sent = now.sent_bytes - before.sent_bytes;
    (seconds > 0.0 && received >= 0.0 && sent >= 0.0).then(|| Traffic {
        received_bytes: received / seconds,
        sent_bytes: sent / seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched() -> Watched {
        Watched {
            facts: DeviceFacts {
                uuid: Uuid([7; 16]),
                index: 0,
                name: "NVIDIA H200".to_owned(),
                pci: "0000:3b:00.0".to_owned(),
                driver: "580.82.07".to_owned(),
                numa_node: None,
                pcie_generation: Some(5),
                pcie_width: Some(16),
                nvlinks: 0,
                nvlink_bandwidth: None,
            },
            before: None,
            slow_pcie: false,
        }
    }

    fn traffic(received_bytes: f64, sent_bytes: f64) -> Option<Traffic> {
        Some(Traffic {
            received_bytes,
            sent_bytes,
        })
    }

    #[test]
    fn what_a_gpu_does_not_give_is_left_out() {
        let reading = Reading {
            gpu_percent: Some(97),
            power_milliwatts: Some(612_500),
            ..Reading::default()
        };
        let mut values = Vec::new();
        watched().values(&reading, 1, &mut values);
        let seen: Vec<_> = values
            .iter()
            .map(|value| (value.name, value.unit, value.value))
            .collect();
        assert_eq!(seen, [("GPU utilization", "%", 97.0), ("power", "W", 612.5)]);
    }

    #[test]
    fn totals_become_rates_from_the_second_sample_on() {
        let reading = |received, sent| Reading {
            nvlink: traffic(received, sent),
            ..Reading::default()
        };
        let start = 1_000_000;
        let mut watched = watched();
        let mut values = Vec::new();
        watched.values(&reading(0.0, 0.0), start, &mut values);
        assert!(values.is_empty());
        watched.before = Some((start, reading(1000.0, 500.0)));
        watched.values(&reading(3000.0, 500.0), start + 500_000_000, &mut values);
        let seen: Vec<_> = values.iter().map(|value| (value.name, value.value)).collect();
        assert_eq!(seen, [("NVLink received", 4000.0), ("NVLink sent", 0.0)]);
    }

    #[test]
    fn links_add_up_when_all_tell_their_speed() {
        use tracesmith_cuda::nvml::FarEnd;
        let link = |speed_mbps| Link {
            number: 0,
            version: None,
            speed_mbps,
            far_end: FarEnd::Switch,
            far_pci: None,
        };
        assert_eq!(bandwidth(&[]), None);
        assert_eq!(
            bandwidth(&[link(Some(26_562)), link(Some(26_562))]),
            Some(53_124_000_000)
        );
        assert_eq!(bandwidth(&[link(Some(26_562)), link(None)]), None);
    }

    #[test]
    fn a_reset_device_gives_no_rate() {
        let before = Traffic {
            received_bytes: 10.0,
            sent_bytes: 10.0,
        };
        assert_eq!(rate(before, Traffic::default(), Duration::from_secs(1)), None);
        assert_eq!(rate(before, before, Duration::ZERO), None);
    }
}
