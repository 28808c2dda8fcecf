//! Names that several crates must agree on: environment variables, and the file of the injected library.

use std::path::Path;

/// Names the collector's socket in a process that was started under a collector.
pub const COLLECTOR: &str = "TRACESMITH_COLLECTOR";

/// Makes a process attachable. Its value is [`ATTACHABLE_IDLE`] or [`ATTACHABLE_READY`].
pub const ATTACHABLE: &str = "TRACESMITH_ARMED";

/// Value of [`ATTACHABLE`]: CUPTI is not used until the process is recorded.
pub const ATTACHABLE_IDLE: &str = "1";

/// Value of [`ATTACHABLE`]: CUPTI is initialized together with CUDA.
pub const ATTACHABLE_READY: &str = "ready";

/// Names the directory in which attachable processes have their sockets.
pub const RUNTIME_DIRECTORY: &str = "TRACESMITH_RUNTIME_DIR";

/// Names the library that the CUDA driver loads.
pub const CUDA_INJECTION: &str = "CUDA_INJECTION64_PATH";

/// Names the library that NVTX loads.
pub const NVTX_INJECTION: &str = "NVTX_INJECTION64_PATH";

/// Names the libraries that the dynamic loader loads before all others.
pub const PRELOAD: &str = "LD_PRELOAD";

/// The file names of all versions of the injected library begin with this.
const INJECTED_LIBRARY: &str = "libtracesmith_inject";

/// Whether a file is the injected library, of any version, by its name.
pub fn is_injected_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(INJECTED_LIBRARY.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_of_the_library_is_recognized() {
        for ours in [
            "/opt/libtracesmith_inject.so",
            "libtracesmith_inject-0123.so",
            "/gone/libtracesmith_inject-0123.so (deleted)",
        ] {
            assert!(is_injected_library(Path::new(ours)), "{ours}");
        }
        for other in [
            "",
            "/",
            "/opt/libToolsInjection64.so",
            "/opt/tracesmith/libcupti.so.13",
        ] {
            assert!(!is_injected_library(Path::new(other)), "{other}");
        }
    }
}
