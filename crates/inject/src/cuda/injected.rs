//! Which library the CUDA driver loads into this process.
//!
//! It loads one. A tool that was started in an armed shell, or by a program that
//! is recorded, names its own and leaves us preloaded: Nsight Systems does so, and
//! loses its report if its CUPTI is not left alone.

use std::env;
use std::ffi::{CStr, OsStr, OsString, c_void};
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tracesmith_wire::environment::{self, is_injected_library};

static OTHER: OnceLock<Option<PathBuf>> = OnceLock::new();

/// The one of another tool, if it is not ours. What the variable was when the process began to use CUPTI or CUDA counts.
pub(super) fn other() -> Option<&'static Path> {
    let find = || other_than(&own_path()?, env::var_os(environment::CUDA_INJECTION)?);
    OTHER.get_or_init(find).as_deref()
}

/// Whether the driver loads this library. Otherwise somebody has loaded it into a process that may be running for a while.
pub(super) fn is_named() -> bool {
    static IS_NAMED: OnceLock<bool> = OnceLock::new();
    let named = || env::var_os(environment::CUDA_INJECTION).is_some_and(|named| !named.is_empty());
    *IS_NAMED.get_or_init(|| named() && other().is_none())
}

/// Takes our library from the driver, in this process and those that it starts.
pub(crate) fn withdraw() {
    if other().is_none() {
        // SAFETY: a name that ends with a zero byte, and a process that has no other thread yet: we are preloaded, for a
        // tool that refuses to start where the driver would load us has not come to initialise it.
        unsafe { libc::unsetenv(c"CUDA_INJECTION64_PATH".as_ptr()) };
    }
}

fn other_than(ours: &Path, named: OsString) -> Option<PathBuf> {
    let named = PathBuf::from(named);
    let identity = |path: &Path| path.metadata().ok().as_ref().map(file_identity);
    let is_ours = named == ours
        || is_injected_library(&named)
        || identity(&named).is_some_and(|file| identity(ours) == Some(file));
    (!named.as_os_str().is_empty() && !is_ours).then_some(named)
}

fn file_identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Where this library was loaded from.
fn own_path() -> Option<PathBuf> {
    // SAFETY: plain data, filled by the next call.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    let address: *const c_void = (own_path as fn() -> Option<PathBuf>) as *const c_void;
    // SAFETY: an address in this library, and room for what is said of it.
    let found = unsafe { libc::dladdr(address, &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's text.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_library_that_is_not_ours_is_anothers() {
        let ours = env::current_exe().unwrap();
        let other = |named: &Path| other_than(&ours, named.as_os_str().to_owned());
        // The second is one that the loader looks for.
        for theirs in ["/dev/null", "libToolsInjection64.so"].map(Path::new) {
            assert_eq!(other(theirs).as_deref(), Some(theirs));
        }
        let link = Path::new("/proc/self/exe");
        let of_another_version = Path::new("/gone/libtracesmith_inject-0123.so");
        for none in [&ours, link, Path::new(""), of_another_version] {
            assert_eq!(other(none), None, "{none:?}");
        }
    }

    #[test]
    fn our_own_place_is_known() {
        assert!(own_path().is_some_and(|path| path.exists()));
    }
}
