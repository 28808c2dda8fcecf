//! What a machine needs to replay a recording. Everything is read from the file.

use rustc_hash::FxHashSet;
use tracesmith_cuda::cubin;
use tracesmith_format::tables;

use crate::error::Error;
use crate::plan::Plan;
use crate::recording::{Recording, rows};

/// What a replay needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The compute capabilities that modules were compiled for, in ascending order, each once. A module runs on GPUs
    /// with the same first number, and the same or a higher second number.
    pub capabilities: Vec<(u32, u32)>,
    /// Number of modules that the driver compiles for the GPU, such as PTX.
    pub compiled_by_driver: usize,
    /// The size of device memory, at the recorded addresses.
    pub device_bytes: u64,
    /// The size of host memory, at the recorded addresses.
    pub host_bytes: u64,
    /// The GPU of the recording.
    pub gpu: RecordedGpu,
}

/// The GPU that a recording was made on. Unknown values are empty or 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedGpu {
    /// Its name.
    pub name: String,
    /// Its compute capability.
    pub capability: (u32, u32),
    /// The driver version.
    pub driver: String,
}

impl Needs {
    /// What a planned replay needs.
    ///
    /// # Errors
    ///
    /// If the file lacks the code of a module.
    pub fn of(recording: &mut Recording, plan: &Plan) -> Result<Self, Error> {
        let (device_bytes, host_bytes) = plan.bytes();
        let mut needs = Self {
            device_bytes,
            host_bytes,
            gpu: recording.gpu.clone(),
            ..Self::default()
        };
        let modules: FxHashSet<_> = plan.code.values().copied().collect();
        for hash in modules {
            match cubin::capability(&recording.store.code(hash)?) {
                Some(capability) => needs.capabilities.push(capability),
                None => needs.compiled_by_driver += 1,
            }
        }
        needs.capabilities.sort_unstable();
        needs.capabilities.dedup();
        Ok(needs)
    }

    /// Whether a GPU with this compute capability runs all modules.
    pub fn runs_on(&self, (major, minor): (u32, u32)) -> bool {
        let mut capabilities = self.capabilities.iter();
        capabilities.all(|(of, step)| *of == major && *step <= minor)
    }
}

/// The GPU of a process. It is only shown, so damage in its tables is not an error.
pub(crate) fn recorded_gpu(
    reader: &tracesmith_format::Reader<crate::contents::Input>,
    strings: &[String],
    process: tracesmith_format::ProcessId,
) -> RecordedGpu {
    let contexts = rows::<tables::Context>(reader).unwrap_or_default();
    let devices = rows::<tables::Device>(reader).unwrap_or_default();
    let used = contexts.iter().find(|context| context.process == process);
    // A device can have several rows. The last one is the most complete.
    let device = devices
        .iter()
        .rev()
        .find(|device| used.is_none_or(|context| context.device == device.id));
    device.map_or_else(RecordedGpu::default, |device| RecordedGpu {
        name: crate::recording::text(strings, device.name),
        capability: (device.capability_major, device.capability_minor),
        driver: crate::recording::text(strings, device.driver),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_run_on_gpus_of_the_same_generation() {
        let needs = Needs {
            capabilities: vec![(8, 0), (8, 6)],
            ..Needs::default()
        };
        assert!(needs.runs_on((8, 6)) && needs.runs_on((8, 9)));
        assert!(!needs.runs_on((8, 0)) && !needs.runs_on((9, 0)));
        assert!(Needs::default().runs_on((9, 0)));
    }
}
