//! Counters of this machine's GPUs, for recordings.

use tracesmith_collect::{CounterSource, DeviceFacts, Sample};
use tracesmith_machine::Counters;

/// Opens the GPU counters. `None` if there is no GPU, which does not prevent recording.
pub(crate) fn counter_source() -> Option<Box<dyn CounterSource>> {
    let counters = Counters::open().ok()?;
    Some(Box::new(GpuCounters(counters)))
}

struct GpuCounters(Counters);

impl CounterSource for GpuCounters {
    fn devices(&mut self) -> Vec<DeviceFacts> {
        self.0
            .devices()
            .map(|device| DeviceFacts {
                uuid: device.uuid.0,
                ordinal: Some(device.index),
                name: device.name.clone(),
                pci: device.pci.clone(),
                driver: device.driver.clone(),
                numa_node: device.numa_node,
                pcie_generation: device.pcie_generation,
                pcie_width: device.pcie_width,
                nvlinks: device.nvlinks,
                nvlink_bandwidth: device.nvlink_bandwidth,
            })
            .collect()
    }

    fn sample(&mut self, samples: &mut Vec<Sample>) {
        samples.extend(self.0.sample().values.into_iter().map(|value| Sample {
            time: value.time_nanos,
            name: value.name.to_owned(),
            unit: value.unit.to_owned(),
            device: Some(value.device.0),
            instance: value.instance,
            value: value.value,
        }));
    }
}
