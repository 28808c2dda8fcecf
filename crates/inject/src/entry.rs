//! What the driver and NVTX call when they load this library.

use std::ffi::c_int;

use crate::{agent, guard, nvtx};

/// Called by the CUDA driver while it is initialised, on the thread that calls
/// `cuInit`. Always says that all is well: a driver that is told otherwise
/// warns the program's user.
///
/// <https://docs.nvidia.com/cupti/main/main.html#tracing-library-injection>
#[unsafe(no_mangle)]
extern "C" fn InitializeInjection() -> c_int {
    guard::run((), || {
        if let Some(agent) = agent::get_or_start() {
            agent.cuda_loaded();
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
