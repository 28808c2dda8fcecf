//! The clock rates of a device. Without them, measured times mean little.

use tracesmith_cuda::nvml::Nvml;

use crate::run::Replay;

/// A device's clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// SM clock.
    pub sm_mhz: Option<u32>,
    /// Memory clock.
    pub memory_mhz: Option<u32>,
    /// Temperature.
    pub temperature_celsius: Option<u32>,
}

impl Replay<'_> {
    /// The current clocks. `None` if NVML does not know the device.
    pub fn clocks(&self) -> Option<Clocks> {
        let nvml = Nvml::open().ok()?;
        let pci = self.context.device().pci().ok()?;
        let is_ours = |index: &u32| {
            nvml.facts(*index)
                .is_some_and(|facts| facts.pci.as_ref() == Some(&pci))
        };
        let index = (0..nvml.device_count().ok()?).find(is_ours)?;
        let reading = nvml.reading(index);
        Some(Clocks {
            sm_mhz: reading.sm_mhz,
            memory_mhz: reading.memory_mhz,
            temperature_celsius: reading.temperature_celsius,
        })
    }
}
