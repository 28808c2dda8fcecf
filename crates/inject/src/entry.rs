//! What the driver and NVTX call when they load this library.

use std::ffi::{CStr, c_char, c_int};

use crate::{agent, cuda, guard, leaving, nvtx};

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
