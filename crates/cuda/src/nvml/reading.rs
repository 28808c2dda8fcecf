//! What a device does at this moment.

use nvml_wrapper::enum_wrappers::device::{Clock, PcieUtilCounter, TemperatureSensor};

use super::facts::memory;
use super::field::Field;
use super::{Nvml, known};

/// What one look at a device gave.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// Share of time that a kernel ran, over the driver's last period of up to a second.
    pub gpu_percent: Option<u32>,
    /// Share of time that memory was read or written, over the same.
    pub memory_percent: Option<u32>,
    /// Memory in use, by whomever.
    pub memory_used_bytes: Option<u64>,
    /// Power drawn: at this moment, or over a second where only that is known.
    pub power_milliwatts: Option<u32>,
    /// How hot it is.
    pub temperature_celsius: Option<u32>,
    /// The SMs' clock.
    pub sm_mhz: Option<u32>,
    /// The memory's clock.
    pub memory_mhz: Option<u32>,
    /// Bytes over PCIe since the driver was loaded.
    pub pcie: Option<Traffic>,
    /// Bytes over all NVLinks since the driver was loaded.
    pub nvlink: Option<Traffic>,
}

/// Bytes in both directions, as the device sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// To the device.
    pub received_bytes: f64,
    /// From the device.
    pub sent_bytes: f64,
}

impl Nvml {
    /// Looks at a device; all unknown when it cannot be reached.
    pub fn reading(&self, index: u32) -> Reading {
        let Some(device) = self.device(index) else {
            return Reading::default();
        };
        let fields = [
            Field::NVLINK_SENT,
            Field::NVLINK_RECEIVED,
            Field::PCIE_SENT,
            Field::PCIE_RECEIVED,
            Field::POWER_NOW,
        ];
        let [nvlink_sent, nvlink_received, pcie_sent, pcie_received, power] =
            self.fields.get(&device, fields);
        let utilization = known(device.utilization_rates());
        Reading {
            gpu_percent: utilization.as_ref().map(|rates| rates.gpu),
            memory_percent: utilization.as_ref().map(|rates| rates.memory),
            memory_used_bytes: memory(&device).map(|memory| memory.used_bytes),
            power_milliwatts: power
                .map(|milliwatts| milliwatts as u32)
                .or_else(|| known(device.power_usage())),
            temperature_celsius: known(device.temperature(TemperatureSensor::Gpu)),
            sm_mhz: known(device.clock_info(Clock::SM)),
            memory_mhz: known(device.clock_info(Clock::Memory)),
            pcie: traffic(pcie_received, pcie_sent, 1.0),
            nvlink: traffic(nvlink_received, nvlink_sent, 1024.0),
        }
    }

    /// Bytes a second over PCIe, where totals are not to be had. The library
    /// watches for 20 ms in each direction and the caller waits for it.
    pub fn pcie_bytes_per_second(&self, index: u32) -> Option<Traffic> {
        let device = self.device(index)?;
        let received = known(device.pcie_throughput(PcieUtilCounter::Receive))?;
        let sent = known(device.pcie_throughput(PcieUtilCounter::Send))?;
        traffic(Some(f64::from(received)), Some(f64::from(sent)), 1000.0)
    }
}

fn traffic(received: Option<f64>, sent: Option<f64>, unit_bytes: f64) -> Option<Traffic> {
    Some(Traffic {
        received_bytes: received? * unit_bytes,
        sent_bytes: sent? * unit_bytes,
    })
}
