//! The CUDA driver: devices, memory, streams and work of our own.
//!
//! What TraceSmith itself runs on a GPU goes through here. Programs that are
//! profiled never see it; what they do is watched through [`cupti`](crate::cupti).
//!
//! ```no_run
//! use tracesmith_cuda::driver::{Context, Driver};
//!
//! # fn main() -> Result<(), tracesmith_cuda::Error> {
//! let driver = Driver::open()?;
//! for device in driver.devices()? {
//!     println!("{} has {} SMs", device.name()?, device.multiprocessors()?);
//! }
//! let context = Context::of(&driver.device(0)?)?;
//! let stream = context.stream()?;
//! let memory = context.memory::<f32>(1024)?;
//! memory.fill(1.0, &stream)?;
//! assert_eq!(memory.read(&stream)?, [1.0; 1024]);
//! # Ok(())
//! # }
//! ```
//!
//! A context belongs to the thread that made it, and everything made in it is
//! tied to that thread too. Resources are freed when they are dropped.

mod array;
mod capture;
mod context;
mod device;
mod event;
mod fixed_address_memory;
mod functions;
mod graph;
mod memory;
mod module;
mod stream;
mod target;

use std::ffi::CStr;
use std::sync::Arc;

pub use array::{Array, Reading, Texture, TextureMake};
pub use capture::{Capture, Nodes};
pub use context::Context;
pub use device::{Attribute, Device, Uuid};
pub use event::Event;
pub use fixed_address_memory::{FixedAddressMemory, InArray, Placing, Setting, Shifted, Snapshot, widened};
pub use graph::Graph;
pub use memory::{DeviceMemory, HostMemory, Word};
pub use module::{Argument, Function, Launch, LaunchAttribute, Module};
pub use stream::Stream;
pub use target::{
    ArrayHandle, ArrayRows, Edge, Extent, FunctionHandle, GraphHandle, MemoryPlace, NodeHandle, NodeKind,
    Parameter, StallRelease, StreamMake, StreamStall, TargetDriver,
};

use crate::{Error, library::Library};
use functions::{Functions, Status};

/// The file that every driver since the first brings.
const LIBRARY: &str = "libcuda.so.1";

/// A version of CUDA: major and minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// 13 of 13.1.
    pub major: u32,
    /// 1 of 13.1.
    pub minor: u32,
}

impl Version {
    /// From the one number that NVIDIA's interfaces use: 13010 is 13.1.
    pub fn from_number(number: u32) -> Self {
        Self {
            major: number / 1000,
            minor: number % 1000 / 10,
        }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The driver, opened. Copies share it.
#[derive(Clone)]
pub struct Driver {
    functions: Arc<Functions>,
}

impl Driver {
    /// Opens the driver and initialises it, which takes from a few milliseconds
    /// to seconds, by how many GPUs there are and whether one was in use.
    ///
    /// # Errors
    ///
    /// No driver, one without a function we need, or none of its GPUs can be
    /// used: the code says why.
    pub fn open() -> Result<Self, Error> {
        let driver = Self::load()?;
        driver.initialise()?;
        Ok(driver)
    }

    /// Loads the library and leaves it at that: enough for [`version`](Self::version).
    ///
    /// # Errors
    ///
    /// No driver, or one without a function we need.
    pub fn load() -> Result<Self, Error> {
        let library = Library::open(LIBRARY).map_err(|words| Error::missing(LIBRARY, &words))?;
        let functions = Arc::new(Functions::load(&library)?);
        Ok(Self { functions })
    }

    /// Makes the devices known. Doing so again does nothing.
    ///
    /// # Errors
    ///
    /// What the driver says: 100 when there is no device, 803 when it does not
    /// fit the kernel's part of it.
    pub fn initialise(&self) -> Result<(), Error> {
        // SAFETY: takes no pointer; may be called at any time.
        self.check("cuInit", unsafe { (self.functions.cuInit)(0) })
    }

    /// The newest CUDA that this driver serves.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn version(&self) -> Result<Version, Error> {
        let mut number = 0;
        // SAFETY: writes one int.
        let status = unsafe { (self.functions.cuDriverGetVersion)(&raw mut number) };
        self.check("cuDriverGetVersion", status)?;
        Ok(Version::from_number(number.unsigned_abs()))
    }

    /// The devices that this process may use, `CUDA_VISIBLE_DEVICES` minded.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn devices(&self) -> Result<Vec<Device>, Error> {
        let mut count = 0;
        // SAFETY: writes one int.
        let status = unsafe { (self.functions.cuDeviceGetCount)(&raw mut count) };
        self.check("cuDeviceGetCount", status)?;
        (0..count.unsigned_abs())
            .map(|ordinal| self.device(ordinal))
            .collect()
    }

    /// One device.
    ///
    /// # Errors
    ///
    /// 101 when there are not so many.
    pub fn device(&self, ordinal: u32) -> Result<Device, Error> {
        Device::new(self, ordinal)
    }

    pub(crate) fn functions(&self) -> &Functions {
        &self.functions
    }

    /// An error unless the status is success.
    pub(crate) fn check(&self, function: &'static str, status: Status) -> Result<(), Error> {
        if status == 0 {
            return Ok(());
        }
        Err(Error::Call {
            function,
            code: i64::from(status),
            name: self.name_of(status),
        })
    }

    /// What a code means, in the driver's words; empty when it knows none.
    pub fn words(&self, code: i64) -> String {
        let (Some(call), Ok(status)) = (self.functions.cuGetErrorString, Status::try_from(code)) else {
            return String::new();
        };
        let mut words = std::ptr::null();
        // SAFETY: writes one pointer, to a string that is never freed or null.
        let known = unsafe { call(status, &raw mut words) };
        if known != 0 || words.is_null() {
            return String::new();
        }
        // SAFETY: the driver's own constant, ended by a zero.
        unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned()
    }

    fn name_of(&self, status: Status) -> String {
        let mut name = std::ptr::null();
        // SAFETY: writes one pointer, to a string that is never freed or null.
        let known = unsafe { (self.functions.cuGetErrorName)(status, &raw mut name) };
        if known != 0 || name.is_null() {
            return "unknown".to_owned();
        }
        // SAFETY: the driver's own constant, ended by a zero.
        unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
    }
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Driver")
    }
}

/// What is lacking when the driver is older than a function.
pub(crate) fn missing(function: &'static str) -> Error {
    Error::MissingFunction {
        library: LIBRARY,
        function,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_one_number() {
        assert_eq!(Version::from_number(12090).to_string(), "12.9");
        assert_eq!(Version::from_number(13000).to_string(), "13.0");
        assert_eq!(Version::from_number(11040), Version { major: 11, minor: 4 });
    }

    #[test]
    fn a_machine_without_a_driver_says_so() {
        // Where there is one, there is nothing to see here.
        if let Err(error) = Driver::load() {
            assert!(error.to_string().starts_with("libcuda.so.1"), "{error}");
        }
    }
}
