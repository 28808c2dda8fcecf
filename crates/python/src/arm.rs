//! Loads the library that records into this process, and calls its functions.
//!
//! The `tracesmith` command contains the library and says where it is. If it is loaded already, because the process was
//! started with the variables of `tracesmith env`, that copy is used: two would not know of each other.

#![allow(unsafe_code, reason = "calls a library that is loaded at run time")]

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use pyo3::{exceptions::PyOSError, prelude::*};

use crate::nvtx;

/// The flag of `tracesmith_arm` that initializes CUPTI now.
const READY: u32 = 1;

type Arm = unsafe extern "C" fn(*const c_char, u32) -> c_int;
type CaptureRange = extern "C" fn(c_int);

/// The functions of the library. It is never unloaded.
struct Library {
    arm: Arm,
    capture_range: CaptureRange,
}

static LIBRARY: OnceLock<Library> = OnceLock::new();

/// Makes this process recordable. Returns whether that worked.
#[pyfunction]
pub(crate) fn arm(
    py: Python<'_>,
    library: PathBuf,
    runtime_directory: PathBuf,
    ready: bool,
) -> PyResult<bool> {
    let directory = CString::new(runtime_directory.as_os_str().as_bytes())?;
    py.detach(|| {
        let functions = match LIBRARY.get() {
            Some(functions) => functions,
            None => {
                let loaded = Library::load(&loaded_library().unwrap_or(library))?;
                LIBRARY.get_or_init(|| loaded)
            }
        };
        let flags = if ready { READY } else { 0 };
        // SAFETY: the function that the library documents, and a text that ends with a zero byte.
        let is_armed = unsafe { (functions.arm)(directory.as_ptr(), flags) } != 0;
        if is_armed {
            // Ranges then reach the library, also if another tool has them.
            nvtx::attach_recorder(|name| symbol_of_recorder(name));
        }
        Ok(is_armed)
    })
}

/// Begins or ends a capture range of a window that was opened with `--capture-range signal`.
#[pyfunction]
pub(crate) fn capture_range(py: Python<'_>, begins: bool) {
    if let Some(library) = LIBRARY.get() {
        py.detach(|| (library.capture_range)(c_int::from(begins)));
    }
}

/// Whether a file is the library, of any version, by its name.
pub(crate) fn is_recorder(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(b"libtracesmith_inject")
}

/// The library that was loaded when the process started, if it was.
fn loaded_library() -> Option<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let paths = maps
        .lines()
        .filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])));
    paths
        .filter(|path| path.exists())
        .find(|path| is_recorder(path))
        .map(Path::to_owned)
}

static HANDLE: OnceLock<usize> = OnceLock::new();

impl Library {
    fn load(path: &Path) -> PyResult<Self> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: a library of ours, whose initializers may run at any time.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_NODELETE) };
        if handle.is_null() {
            return Err(PyOSError::new_err(last_error()));
        }
        let arm = symbol(handle, c"tracesmith_arm")?;
        let capture_range = symbol(handle, c"tracesmith_capture_range")?;
        let _ = HANDLE.set(handle as usize);
        Ok(Self {
            // SAFETY: the library's function of this type.
            arm: unsafe { std::mem::transmute::<*mut c_void, Arm>(arm) },
            // SAFETY: as above.
            capture_range: unsafe { std::mem::transmute::<*mut c_void, CaptureRange>(capture_range) },
        })
    }
}

/// A function of the library. One of another version may not have it.
fn symbol(handle: *mut c_void, name: &CStr) -> PyResult<*mut c_void> {
    // SAFETY: a handle of dlopen that is never closed.
    let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if found.is_null() {
        return Err(PyOSError::new_err(format!(
            "the library in this process is of another version of TraceSmith ({})",
            last_error()
        )));
    }
    Ok(found)
}

fn symbol_of_recorder(name: &CStr) -> Option<*mut c_void> {
    symbol(*HANDLE.get()? as *mut c_void, name).ok()
}

fn last_error() -> String {
    // SAFETY: gives null, or a text that stays until this thread's next call.
    let words = unsafe { libc::dlerror() };
    if words.is_null() {
        return "unknown error".to_owned();
    }
    // SAFETY: as above.
    unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned()
}
