//! Asking a libcupti for its version, and nothing else.

use std::ffi::c_uint;
use std::path::Path;

use crate::Error;
use crate::driver::Driver;
use crate::functions::functions;
use crate::library::Library;

functions! {
    /// The one call that every CUPTI has.
    Functions from "libcupti";
    required {
        /// <https://docs.nvidia.com/cupti/api/group__CUPTI__VERSION__API.html>
        fn cuptiGetVersion(version: *mut u32) -> c_uint;
    }
    optional {}
}

/// The version that the libcupti in this file states: 28 is CUDA 12.9's, 130001
/// CUDA 13.0's.
///
/// The library stays loaded, and the first CUPTI of a process serves all later
/// ones: ask about each file in a process of its own.
///
/// # Errors
///
/// No driver, no such library, or it refuses. The driver is asked for first:
/// CUPTI 13 crashes without one.
pub fn cupti_version(path: &Path) -> Result<u32, Error> {
    Driver::load()?;
    let library = Library::open(path).map_err(|words| Error::missing("libcupti", &words))?;
    let functions = Functions::load(&library)?;
    let mut version = 0;
    // SAFETY: writes one number.
    let status = unsafe { (functions.cuptiGetVersion)(&raw mut version) };
    if status != 0 {
        return Err(Error::Call {
            function: "cuptiGetVersion",
            code: i64::from(status),
            name: "unknown".to_owned(),
        });
    }
    Ok(version)
}
