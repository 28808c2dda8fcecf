//! NVML: what the management library knows of devices, as plain values.
//!
//! The calls go through the crate `nvml-wrapper`. What it lacks or gets wrong,
//! values of one link among several and the kind of a link's far end, is asked
//! of the same library directly. A value that this GPU or this driver does not
//! give is `None`: hardly any device gives all of them.
//!
//! NVML sees all GPUs of the machine, whatever `CUDA_VISIBLE_DEVICES` says, and
//! counts them by their place on the bus.

mod facts;
mod field;
mod link;
mod reading;

use nvml_wrapper::Nvml as Wrapper;
use nvml_wrapper::error::NvmlError;

pub use facts::{Facts, Memory, Pcie};
pub use link::{Ancestor, FarEnd, Link};
pub use reading::{Reading, Traffic};

use crate::Error;
use crate::driver::Version;
use field::Fields;

/// The file that every driver brings.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// NVML, opened.
pub struct Nvml {
    wrapper: Wrapper,
    fields: Fields,
}

impl Nvml {
    /// Opens the library and initialises it.
    ///
    /// # Errors
    ///
    /// No driver, or one that does not run.
    pub fn open() -> Result<Self, Error> {
        let wrapper = Wrapper::builder()
            .lib_path(LIBRARY.as_ref())
            .init()
            .map_err(error_from)?;
        let fields = Fields::open()?;
        Ok(Self { wrapper, fields })
    }

    /// The driver's version, as `580.82.07`.
    pub fn driver_version(&self) -> Option<String> {
        known(self.wrapper.sys_driver_version())
    }

    /// The newest CUDA that the driver serves.
    pub fn cuda_version(&self) -> Option<Version> {
        let number = known(self.wrapper.sys_cuda_driver_version())?;
        Some(Version::from_number(number.unsigned_abs()))
    }

    /// How many GPUs there are.
    ///
    /// # Errors
    ///
    /// What the library says.
    pub fn device_count(&self) -> Result<u32, Error> {
        self.wrapper.device_count().map_err(error_from)
    }

    fn device(&self, index: u32) -> Option<nvml_wrapper::Device<'_>> {
        known(self.wrapper.device_by_index(index))
    }
}

impl std::fmt::Debug for Nvml {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Nvml")
    }
}

/// A value, unless it cannot be had: most devices refuse some questions, and
/// which ones is not worth telling apart.
fn known<T>(answer: Result<T, NvmlError>) -> Option<T> {
    answer.ok()
}

fn error_from(error: NvmlError) -> Error {
    match error {
        NvmlError::LibloadingError(error) => Error::missing(LIBRARY, &error.to_string()),
        other => Error::Refused {
            library: LIBRARY,
            reason: other.to_string(),
        },
    }
}

/// A place on the PCI bus as the kernel writes it: `0000:3b:00.0`. NVML writes
/// eight digits for the domain, in capitals.
fn pci_from_nvml(text: &str) -> String {
    let text = text.trim().to_ascii_lowercase();
    match text.split_once(':') {
        Some((domain, rest)) if domain.len() > 4 && domain[..domain.len() - 4].bytes().all(|b| b == b'0') => {
            format!("{}:{rest}", &domain[domain.len() - 4..])
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_on_the_bus_are_written_as_the_kernel_does() {
        assert_eq!(pci_from_nvml("00000000:3B:00.0"), "0000:3b:00.0");
        assert_eq!(pci_from_nvml("0000:3B:00.0"), "0000:3b:00.0");
        assert_eq!(pci_from_nvml("00010001:3B:00.0"), "00010001:3b:00.0");
    }

    #[test]
    fn a_machine_without_a_driver_says_so() {
        // Where there is one, there is nothing to see here.
        if let Err(error) = Nvml::open() {
            assert!(error.to_string().starts_with(LIBRARY), "{error}");
        }
    }
}
