//! The activity kinds and functions of each capture kind, and query calls.

use tracesmith_cuda::cupti::{
    ApiDomain, Cupti,
    abi::{domain, kind},
    activity::VERSION_13_4_1,
};
use tracesmith_wire::control::Kinds;

/// The largest callback number that is looked at: well above those of CUDA 13.
pub(crate) const LAST_FUNCTION: u32 = 1200;

/// What other records refer to: recorded from the opening of a window on, and
/// those that exist already with it.
pub(super) const OBJECTS: [u32; 3] = [kind::DEVICE, kind::CONTEXT, kind::STREAM];

/// The activity kinds for what is to be recorded. Never `KERNEL`, which makes
/// kernels run one after another. Calls are among them when those that only ask
/// are wanted too; else see [`work`].
pub(super) fn wanted(kinds: Kinds) -> Vec<u32> {
    let mut wanted = Vec::new();
    let mut add = |which: Kinds, numbers: &[u32]| {
        if kinds.contains(which) {
            wanted.extend_from_slice(numbers);
        }
    };
    add(Kinds::WHOLE_GRAPHS, &[kind::GRAPH_TRACE]);
    add(Kinds::KERNELS, &[kind::CONCURRENT_KERNEL]);
    add(Kinds::COPIES, &[kind::MEMCPY, kind::MEMCPY2, kind::MEMSET]);
    add(Kinds::API | Kinds::API_QUERIES, &[kind::RUNTIME, kind::DRIVER]);
    if !has_sync_callbacks(kinds) {
        add(Kinds::SYNCS, &[kind::SYNCHRONIZATION, kind::CUDA_EVENT]);
    }
    add(Kinds::MEMORY, &[kind::MEMORY2, kind::MEMORY_POOL]);
    add(Kinds::OVERHEAD, &[kind::OVERHEAD, kind::JIT]);
    wanted
}

/// Whether waits and events are told by callbacks. With every call recorded
/// CUPTI's own records of them cost nothing more, and know when the device
/// passed an event.
pub(super) fn has_sync_callbacks(kinds: Kinds) -> bool {
    kinds.contains(Kinds::SYNCS) && !kinds.contains(Kinds::API_QUERIES)
}

/// Whether CUPTI can be asked when launches are queued and submitted. Before 13.4
/// Update 1 it makes room on the device for these times within a launch, and the
/// program may then wait for ever, with CUPTI's thread and ours: a training loop
/// of PyTorch within some twenty windows (H200, CUPTI 13.0).
pub(super) fn can_ask_latency(version: u32) -> bool {
    version >= VERSION_13_4_1
}

/// The kind of records of an interface's calls.
pub(super) fn kind_of(which: ApiDomain) -> u32 {
    match which {
        ApiDomain::Driver => kind::DRIVER,
        ApiDomain::Runtime => kind::RUNTIME,
    }
}

/// The domain with callbacks of an interface.
pub(super) fn number_of(which: ApiDomain) -> u32 {
    match which {
        ApiDomain::Driver => domain::DRIVER,
        ApiDomain::Runtime => domain::RUNTIME,
    }
}

/// The interface that a domain tells the calls of.
#[inline]
pub(super) fn interface(number: u32) -> Option<ApiDomain> {
    match number {
        domain::DRIVER => Some(ApiDomain::Driver),
        domain::RUNTIME => Some(ApiDomain::Runtime),
        _ => None,
    }
}

/// Whether every CUPTI that we support has the kind.
pub(super) fn is_expected(number: u32) -> bool {
    number != kind::JIT && number != kind::GRAPH_TRACE
}

/// The functions whose calls are worth a record: not those that [only
/// ask](is_query_call), and of launches the driver's alone. A callback at the
/// runtime's launches costs a quarter of a microsecond each, one at the driver's
/// a fifth of that, and at other functions of the runtime nothing (H200, CUPTI
/// 13.0).
///
/// Launches come last: at the end of a window calls of other functions are
/// recorded no longer than they are.
pub(crate) fn work(cupti: &Cupti) -> Functions {
    let (mut work, mut launches) = (Vec::new(), Vec::new());
    for domain in [ApiDomain::Driver, ApiDomain::Runtime] {
        for id in 1..LAST_FUNCTION {
            match cupti.function_name(domain, id) {
                None => {}
                Some(name) if is_query_call(name) || is_runtime_launch(name) => {}
                Some(name) if name.contains("Launch") => launches.push((domain, id)),
                Some(_) => work.push((domain, id)),
            }
        }
    }
    work.append(&mut launches);
    work
}

/// Whether a function of the runtime launches a kernel or a graph.
fn is_runtime_launch(name: &str) -> bool {
    const BEGINNINGS: [&str; 3] = [
        "cudaLaunchKernel",
        "cudaLaunchCooperativeKernel",
        "cudaGraphLaunch",
    ];
    BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// Functions of the driver whose callers are worth knowing: they ask for work,
/// take or give memory, or wait. The runtime's end up in these.
pub(super) fn with_stacks(cupti: &Cupti) -> Vec<u32> {
    (1..LAST_FUNCTION)
        .filter(|id| {
            cupti
                .function_name(ApiDomain::Driver, *id)
                .is_some_and(wants_stack)
        })
        .collect()
}

/// Functions of the driver that launch one kernel.
pub(super) fn launches(cupti: &Cupti) -> Vec<u32> {
    const BEGINNINGS: [&str; 2] = ["cuLaunchKernel", "cuLaunchCooperativeKernel"];
    (1..LAST_FUNCTION)
        .filter(|id| {
            cupti
                .function_name(ApiDomain::Driver, *id)
                .is_some_and(|name| BEGINNINGS.iter().any(|beginning| name.starts_with(beginning)))
        })
        .collect()
}

/// Whether the callers of a driver function are worth knowing.
fn wants_stack(name: &str) -> bool {
    const BEGINNINGS: [&str; 16] = [
        "cuLaunch",
        "cuGraphLaunch",
        "cuMemcpy",
        "cuMemset",
        "cuMemAlloc",
        "cuMemFree",
        "cuMemHostAlloc",
        "cuMemHostRegister",
        "cuMemCreate",
        "cuMemMap",
        "cuMemPrefetch",
        "cuStreamSynchronize",
        "cuCtxSynchronize",
        "cuEventSynchronize",
        "cuStreamWaitEvent",
        "cuModuleLoad",
    ];
    let name = plain_name(name);
    BEGINNINGS.iter().any(|beginning| name.starts_with(beginning)) && !is_query_call(name)
}

/// Functions by their interface and callback number.
pub(crate) type Functions = Vec<(ApiDomain, u32)>;

/// Whether a call of the function launches no work: queries, and switches between
/// contexts. PyTorch makes about twenty of them for each launch, and their records
/// cost more than the rest of capture.
pub(crate) fn is_query_call(name: &str) -> bool {
    let name = plain_name(name);
    // These look like queries, but load code on first use.
    const KEPT: [&str; 6] = [
        "cuModuleGetFunction",
        "cuModuleGetGlobal",
        "cuLibraryGetKernel",
        "cuLibraryGetModule",
        "cuLibraryGetGlobal",
        "cuKernelGetFunction",
    ];
    if KEPT.contains(&name) {
        return false;
    }
    const ASKING: [&str; 8] = [
        "Get",
        "Query",
        "IsCapturing",
        "PeekAtLastError",
        "Occupancy",
        "CanAccessPeer",
        "DriverGetVersion",
        "ThreadExchangeStreamCaptureMode",
    ];
    const SWITCHING: [&str; 5] = [
        "cuCtxSetCurrent",
        "cuCtxPushCurrent",
        "cuCtxPopCurrent",
        "cudaSetDevice",
        "cudaChooseDevice",
    ];
    ASKING.iter().any(|part| name.contains(part)) || SWITCHING.contains(&name)
}

/// The function's name without the version that CUPTI writes behind it:
/// `cudaLaunchKernel_v7000` is `cudaLaunchKernel`.
pub(crate) fn plain_name(name: &str) -> &str {
    let name = name
        .strip_suffix("_ptsz")
        .or_else(|| name.strip_suffix("_ptds"))
        .unwrap_or(name);
    match name.rsplit_once("_v") {
        Some((plain, version))
            if !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            plain.strip_suffix("_ptsz").unwrap_or(plain)
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_told_from_work() {
        for name in [
            "cuCtxGetCurrent",
            "cudaGetDevice_v3020",
            "cuStreamIsCapturing_ptsz",
            "cudaPeekAtLastError_v3020",
            "cuKernelGetName",
            "cudaEventQuery_v3020",
            "cuCtxPushCurrent_v2",
            "cudaSetDevice_v3020",
        ] {
            assert!(is_query_call(name), "{name}");
        }
        for name in [
            "cuLaunchKernel",
            "cudaLaunchKernel_ptsz_v7000",
            "cuMemAlloc_v2",
            "cudaMemcpyAsync_v3020",
            "cuStreamSynchronize_ptsz",
            "cuModuleGetFunction",
            "cudaGraphLaunch_v10000",
            "cuMemsetD8Async",
        ] {
            assert!(!is_query_call(name), "{name}");
        }
    }

    #[test]
    fn callers_of_work_are_worth_knowing() {
        for name in [
            "cuLaunchKernel_ptsz",
            "cuMemcpyHtoDAsync_v2",
            "cuMemAlloc_v2",
            "cuGraphLaunch",
        ] {
            assert!(wants_stack(name), "{name}");
        }
        for name in [
            "cuCtxGetCurrent",
            "cuEventRecord",
            "cuMemGetInfo_v2",
            "cuMemPoolCreate",
        ] {
            assert!(!wants_stack(name), "{name}");
        }
    }

    #[test]
    fn a_version_is_not_part_of_a_name() {
        for (name, plain) in [
            ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
            ("cudaLaunchKernel_ptsz_v7000", "cudaLaunchKernel"),
            ("cuMemAlloc_v2", "cuMemAlloc"),
            ("cuMemcpyHtoDAsync_v2_ptsz", "cuMemcpyHtoDAsync"),
            ("cuLaunchKernel", "cuLaunchKernel"),
            ("cudaMalloc3DArray_v3020", "cudaMalloc3DArray"),
        ] {
            assert_eq!(plain_name(name), plain);
        }
    }
}
