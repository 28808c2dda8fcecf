//! What kind of work something is, told by its table and its name.

use serde::Serialize;

/// What kind of work a device did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OpClass {
    /// A kernel that computes.
    Compute,
    /// A kernel that exchanges data with other devices.
    Communication,
    /// A copy of memory.
    Copy,
    /// A filling of memory.
    Set,
}

impl OpClass {
    /// All classes, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Compute, Self::Communication, Self::Copy, Self::Set];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Communication => "communication",
            Self::Copy => "copy",
            Self::Set => "set",
        }
    }

    /// The class of a kernel with this name.
    pub fn of_kernel(name: &str) -> Self {
        if COMMUNICATION
            .iter()
            .any(|part| contains_ignoring_case(name, part))
        {
            Self::Communication
        } else {
            Self::Compute
        }
    }
}

/// Parts of the names of kernels that exchange data: NCCL's, RCCL's, NVSHMEM's, MSCCL++'s, and those that inference
/// servers and PyTorch's symmetric memory bring themselves.
const COMMUNICATION: &[&str] = &[
    "nccl",
    "rccl",
    "nvshmem",
    "mscclpp",
    "cross_device_reduce",
    "multimem_all_reduce",
    "one_shot_all_reduce",
    "two_shot_all_reduce",
];

fn contains_ignoring_case(name: &str, part: &str) -> bool {
    name.as_bytes()
        .windows(part.len())
        .any(|window| window.eq_ignore_ascii_case(part.as_bytes()))
}

/// What a call of a runtime or driver asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallClass {
    /// A launch of a kernel.
    Launch,
    /// A launch of a graph.
    GraphLaunch,
    /// A wait of the host for a device.
    Sync,
    /// A copy.
    Copy,
    /// A copy between devices that waits for all work of both, and all work of both for it.
    PeerCopy,
    /// A filling of memory.
    Set,
    /// Memory taken or given back.
    Allocation,
    /// An event recorded in a stream.
    EventRecord,
    /// A stream told to wait for an event.
    StreamWait,
    /// A lock, or a wait for another thread.
    Lock,
    /// Device code loaded or compiled.
    Module,
    /// What is asked of a stream becomes nodes of a graph from here on.
    CaptureBegin,
    /// It is work again.
    CaptureEnd,
    /// Anything else.
    Other,
}

impl CallClass {
    /// The class of a function with this name: of CUDA's runtime and driver, of HIP, or of the operating system.
    pub fn of_function(name: &str) -> Self {
        let bare = bare(name);
        let has = |parts: &[&str]| parts.iter().any(|part| bare.contains(part));
        if has(&["GraphLaunch"]) {
            return Self::GraphLaunch;
        }
        if has(&["LaunchKernel", "LaunchCooperativeKernel", "LaunchGrid"])
            || bare == "Launch"
            || bare == "LaunchAsync"
        {
            return Self::Launch;
        }
        if has(&["StreamBeginCapture"]) {
            return Self::CaptureBegin;
        }
        if has(&["StreamEndCapture"]) {
            return Self::CaptureEnd;
        }
        if has(&["StreamWaitEvent"]) {
            return Self::StreamWait;
        }
        if has(&["EventRecord"]) {
            return Self::EventRecord;
        }
        if has(&["Synchronize"]) {
            return Self::Sync;
        }
        if has(&["Memset"]) {
            return Self::Set;
        }
        if has(&["MemcpyPeer", "Memcpy3DPeer"]) && !has(&["Async"]) {
            return Self::PeerCopy;
        }
        if has(&["Memcpy", "MemPrefetch"]) {
            return Self::Copy;
        }
        if has(&[
            "Malloc",
            "MemAlloc",
            "MemFree",
            "MemCreate",
            "MemRelease",
            "MemMap",
            "MemUnmap",
        ]) || has(&[
            "HostAlloc",
            "HostFree",
            "HostRegister",
            "HostUnregister",
            "MemHost",
        ]) || has(&["MemAddress", "MemPool", "MemSetAccess", "FreeHost"])
            || bare.starts_with("Free")
        {
            return Self::Allocation;
        }
        if has(&[
            "ModuleLoad",
            "LibraryLoad",
            "ModuleUnload",
            "LinkComplete",
            "LibraryUnload",
        ]) {
            return Self::Module;
        }
        let os = [
            "pthread_mutex_",
            "pthread_cond_",
            "pthread_rwlock_",
            "sem_wait",
            "futex",
            "pthread_join",
        ];
        if os.iter().any(|part| name.starts_with(part)) {
            return Self::Lock;
        }
        Self::Other
    }
}

/// A function's name without the interface that it belongs to.
fn bare(name: &str) -> &str {
    ["cuda", "cu", "hip"]
        .into_iter()
        .find_map(|prefix| {
            let rest = name.strip_prefix(prefix)?;
            rest.starts_with(|letter: char| letter.is_ascii_uppercase())
                .then_some(rest)
        })
        .unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_communicate_are_known_by_name() {
        for name in [
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
            "void rcclKernel",
            "NCCLKernel",
            "nvshmemi_put",
        ] {
            assert_eq!(OpClass::of_kernel(name), OpClass::Communication, "{name}");
        }
        for name in ["", "sgemm", "reduce_kernel", "ncc"] {
            assert_eq!(OpClass::of_kernel(name), OpClass::Compute, "{name}");
        }
    }

    #[test]
    fn calls_are_known_by_name() {
        use CallClass::*;
        for (name, class) in [
            ("cudaLaunchKernel", Launch),
            ("cudaLaunchKernelExC_v11060", Launch),
            ("cuLaunchKernelEx", Launch),
            ("hipExtModuleLaunchKernel", Launch),
            ("cuLaunchCooperativeKernel", Launch),
            ("cuLaunch", Launch),
            ("cudaGraphLaunch", GraphLaunch),
            ("cuGraphLaunch_ptsz", GraphLaunch),
            ("cuStreamBeginCapture_v2", CaptureBegin),
            ("cudaStreamBeginCaptureToGraph", CaptureBegin),
            ("cudaStreamEndCapture", CaptureEnd),
            ("cudaStreamSynchronize", Sync),
            ("cuCtxSynchronize", Sync),
            ("hipDeviceSynchronize", Sync),
            ("cudaEventSynchronize", Sync),
            ("cudaMemcpyAsync", Copy),
            ("cuMemcpyHtoDAsync_v2", Copy),
            ("hipMemcpyWithStream", Copy),
            ("cudaMemcpyPeer", PeerCopy),
            ("cuMemcpy3DPeer_ptds", PeerCopy),
            ("cudaMemcpyPeerAsync", Copy),
            ("cudaMemsetAsync", Set),
            ("cuMemsetD8Async", Set),
            ("cudaMalloc", Allocation),
            ("cudaFree", Allocation),
            ("cuMemAlloc_v2", Allocation),
            ("cuMemFreeHost", Allocation),
            ("cudaFreeAsync", Allocation),
            ("hipHostMalloc", Allocation),
            ("cudaEventRecord", EventRecord),
            ("cudaEventRecordWithFlags", EventRecord),
            ("cudaStreamWaitEvent", StreamWait),
            ("cuModuleLoadData", Module),
            ("pthread_mutex_lock", Lock),
            ("cudaGetDevice", Other),
            ("cudaStreamIsCapturing", Other),
            ("cudaLaunchHostFunc", Other),
            ("customer_Synchronize", Other),
            ("", Other),
        ] {
            assert_eq!(CallClass::of_function(name), class, "{name}");
        }
    }
}
