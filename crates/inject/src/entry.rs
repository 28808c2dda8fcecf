//! What the driver, NVTX and the program itself call when they load this library.

use std::{
    ffi::{CStr, OsStr, c_char, c_int},
    os::unix::ffi::OsStrExt,
    path::PathBuf,
};

use crate::{
    agent::{self, Arming},
    cuda, guard, leaving, nvtx,
    range::RangeEdge,
};

unsafe extern "C" {
    /// How the program was called, without its folder: the C library's.
    static program_invocation_short_name: *const c_char;
}

/// Tools that do not start where the driver would load a library that is not theirs.
const REFUSERS: [&CStr; 2] = [c"ncu", c"nv-nsight-cu-cli"];

/// Run by the loader, where the library is preloaded before the program begins.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

/// In such a tool we are not to be found by it, nor by what it starts.
extern "C" fn at_load() {
    leaving::find_functions();
    // SAFETY: set by the C library before any other library is initialised.
    let name = unsafe { program_invocation_short_name };
    if name.is_null() {
        return;
    }
    // SAFETY: a text of the C library's.
    let name = unsafe { CStr::from_ptr(name) };
    if REFUSERS.contains(&name) {
        guard::run((), cuda::withdraw);
    }
}

/// Called by the CUDA driver while it is initialised, on the thread that calls
/// `cuInit`. Always says that all is well: a driver that is told otherwise
/// warns the program's user.
///
/// <https://docs.nvidia.com/cupti/main/main.html#tracing-library-injection>
#[unsafe(no_mangle)]
extern "C" fn InitializeInjection() -> c_int {
    guard::run((), || {
        if let Some(agent) = agent::get_or_start() {
            agent.driver_loaded(&agent.cuda);
        }
    });
    1
}

/// Flag of [`tracesmith_arm`]: CUPTI is initialized now, not when the process is recorded.
const READY: u32 = 1;

/// Called by a program that wants to be recorded later, such as the Python package. CUDA may be in use already. The
/// process then waits for collectors as if it had been started with the variables of `tracesmith env`, whose
/// `TRACESMITH_RUNTIME_DIR` is the argument. The environment is neither read nor changed, so that child processes are
/// not armed. The child of a fork is not armed either, and may call this itself.
///
/// Returns 1 if the process can be recorded, also if it could before, and 0 if not.
///
/// # Safety
///
/// `runtime_directory` is a path that ends with a zero byte.
#[unsafe(no_mangle)]
unsafe extern "C" fn tracesmith_arm(runtime_directory: *const c_char, flags: u32) -> c_int {
    guard::run(0, || {
        if runtime_directory.is_null() {
            return 0;
        }
        // SAFETY: the caller vouches for it.
        let directory = unsafe { CStr::from_ptr(runtime_directory) };
        c_int::from(agent::arm(Arming {
            runtime_directory: PathBuf::from(OsStr::from_bytes(directory.to_bytes())),
            readies: flags & READY != 0,
        }))
    })
}

/// Called by a program that steers its own recording: begins a capture range of `record --capture-range signal`, or ends
/// it with 0. Recording has begun or ended when this comes back, so exactly the calls in between are recorded.
#[unsafe(no_mangle)]
extern "C" fn tracesmith_capture_range(begins: c_int) {
    guard::run((), || {
        if let Some(agent) = agent::current() {
            agent.ordered_edge(if begins == 0 {
                RangeEdge::End
            } else {
                RangeEdge::Begin
            });
        }
    });
}

/// Called by NVTX in each program or library that is built with it, at its
/// first range or mark.
///
/// # Safety
///
/// NVTX passes the function that its documentation describes.
#[unsafe(no_mangle)]
unsafe extern "C" fn InitializeInjectionNvtx2(get_export_table: nvtx::GetExportTable) -> c_int {
    guard::run(0, || {
        if agent::get_or_start().is_none() {
            // Not to be recorded: NVTX then makes its functions empty.
            return 0;
        }
        // SAFETY: NVTX keeps its contract.
        c_int::from(unsafe { nvtx::attach(get_export_table) })
    })
}
