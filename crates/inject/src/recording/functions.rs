//! What is done with each function of the driver while a window is recorded.

use tracesmith_cuda::cupti::{ApiDomain, Cupti};

use crate::cuda::kinds;

/// What a function does, as far as a recording is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Launch,
    LaunchEx,
    LaunchCooperative,
    Copy(Order),
    /// So many bytes an element.
    Set(u8, Order),
    Allocate(Taking),
    Free(Order),
    RegisterHost,
    Map,
    Unmap,
    RecordEvent,
    WaitEvent,
    Synchronize,
    FunctionAttribute,
    KernelAttribute,
    /// Gives out a module.
    LoadModule,
    /// Gives out a function of a module.
    FindFunction,
    /// Gives out the function of a kernel.
    LoadKernel,
    /// Changes nothing that a replay must do too.
    Nothing,
    /// A replay cannot do it.
    Refuse(&'static str),
}

/// Whether a call waits for its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// It does, and takes no stream.
    Now,
    /// Its work waits for its turn in a stream.
    InStream,
}

/// How memory is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taking {
    Plain,
    Pitched,
    Managed,
    Host,
    InStream,
    FromPool,
}

/// Functions by the beginning of their names; the first that fits counts.
const ACTIONS: [(&str, Action); 56] = [
    ("cuLaunchKernelEx", Action::LaunchEx),
    ("cuLaunchKernel", Action::Launch),
    (
        "cuLaunchCooperativeKernelMultiDevice",
        Action::Refuse("one launch on several devices"),
    ),
    ("cuLaunchCooperativeKernel", Action::LaunchCooperative),
    (
        "cuLaunchHostFunc",
        Action::Refuse("a function of the host within a stream"),
    ),
    (
        "cuLaunch",
        Action::Refuse("a launch of the interface before CUDA 4"),
    ),
    ("cuMemcpyHtoDAsync", Action::Copy(Order::InStream)),
    ("cuMemcpyDtoHAsync", Action::Copy(Order::InStream)),
    ("cuMemcpyDtoDAsync", Action::Copy(Order::InStream)),
    ("cuMemcpyHtoD", Action::Copy(Order::Now)),
    ("cuMemcpyDtoH", Action::Copy(Order::Now)),
    ("cuMemcpyDtoD", Action::Copy(Order::Now)),
    ("cuMemcpyPeer", Action::Refuse("a copy to another device")),
    ("cuMemcpy2D", Action::Refuse("a copy of rows")),
    ("cuMemcpy3D", Action::Refuse("a copy of planes")),
    ("cuMemcpyAto", Action::Refuse("a copy from an array")),
    ("cuMemcpyHtoA", Action::Refuse("a copy to an array")),
    ("cuMemcpyDtoA", Action::Refuse("a copy to an array")),
    ("cuMemcpyBatch", Action::Refuse("several copies at once")),
    ("cuMemcpyAsync", Action::Copy(Order::InStream)),
    ("cuMemcpy", Action::Copy(Order::Now)),
    ("cuMemsetD8Async", Action::Set(1, Order::InStream)),
    ("cuMemsetD16Async", Action::Set(2, Order::InStream)),
    ("cuMemsetD32Async", Action::Set(4, Order::InStream)),
    ("cuMemsetD2D", Action::Refuse("setting rows")),
    ("cuMemsetD8", Action::Set(1, Order::Now)),
    ("cuMemsetD16", Action::Set(2, Order::Now)),
    ("cuMemsetD32", Action::Set(4, Order::Now)),
    ("cuMemAllocAsync", Action::Allocate(Taking::InStream)),
    ("cuMemAllocFromPoolAsync", Action::Allocate(Taking::FromPool)),
    ("cuMemAllocManaged", Action::Allocate(Taking::Managed)),
    ("cuMemAllocPitch", Action::Allocate(Taking::Pitched)),
    ("cuMemAllocHost", Action::Allocate(Taking::Host)),
    ("cuMemHostAlloc", Action::Allocate(Taking::Host)),
    ("cuMemAlloc", Action::Allocate(Taking::Plain)),
    ("cuMemFreeAsync", Action::Free(Order::InStream)),
    ("cuMemFree", Action::Free(Order::Now)),
    ("cuMemHostRegister", Action::RegisterHost),
    ("cuMemHostUnregister", Action::Free(Order::Now)),
    ("cuMemMap", Action::Map),
    ("cuMemUnmap", Action::Unmap),
    ("cuEventRecord", Action::RecordEvent),
    ("cuStreamWaitEvent", Action::WaitEvent),
    ("cuCtxSynchronize", Action::Synchronize),
    ("cuStreamSynchronize", Action::Synchronize),
    ("cuEventSynchronize", Action::Synchronize),
    ("cuFuncSetAttribute", Action::FunctionAttribute),
    ("cuKernelSetAttribute", Action::KernelAttribute),
    ("cuModuleLoad", Action::LoadModule),
    ("cuLibraryGetModule", Action::LoadModule),
    ("cuModuleGetFunction", Action::FindFunction),
    ("cuKernelGetFunction", Action::LoadKernel),
    ("cuGraphLaunch", Action::Refuse("a launch of a graph")),
    ("cuGraphicsMap", Action::Refuse("memory of a graphics interface")),
    (
        "cuIpcOpen",
        Action::Refuse("memory or an event of another process"),
    ),
    (
        "cuImportExternal",
        Action::Refuse("memory or a semaphore of another interface"),
    ),
];

/// Beginnings of the names of functions that a replay need not make: they make or
/// end what it makes by itself when it is used, or are about the host alone.
const HARMLESS: [&str; 24] = [
    "cuInit",
    "cuCtx",
    "cuDevice",
    "cuModule",
    "cuLibrary",
    "cuLink",
    "cuKernel",
    "cuFunc",
    "cuStreamCreate",
    "cuStreamDestroy",
    "cuStreamAttachMemAsync",
    "cuEventCreate",
    "cuEventDestroy",
    "cuMemAddress",
    "cuMemCreate",
    "cuMemRelease",
    "cuMemSetAccess",
    "cuMemRetain",
    "cuMemPool",
    "cuMemAdvise",
    "cuMemPrefetch",
    "cuProfiler",
    "cuGraph",
    "cuThread",
];

/// The functions that are watched while recording, with what they do.
pub(super) fn watched(cupti: &Cupti) -> Vec<(u32, Action)> {
    kinds::work(cupti)
        .into_iter()
        .filter(|(domain, _)| *domain == ApiDomain::Driver)
        .filter_map(|(_, id)| {
            Some((
                id,
                action(kinds::plain_name(cupti.function_name(ApiDomain::Driver, id)?)),
            ))
        })
        .filter(|(_, action)| *action != Action::Nothing)
        .collect()
}

/// What a function does. One that nobody has thought of is refused rather than
/// passed over.
pub(super) fn action(name: &str) -> Action {
    if let Some((_, action)) = ACTIONS.iter().find(|(beginning, _)| name.starts_with(beginning)) {
        return *action;
    }
    if HARMLESS.iter().any(|beginning| name.starts_with(beginning)) {
        return Action::Nothing;
    }
    Action::Refuse("a function that recordings do not know")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_names_are_not_taken_for_shorter_ones() {
        assert_eq!(action("cuLaunchKernel"), Action::Launch);
        assert_eq!(action("cuLaunchKernelEx"), Action::LaunchEx);
        assert_eq!(action("cuMemcpyAsync"), Action::Copy(Order::InStream));
        assert_eq!(action("cuMemcpy"), Action::Copy(Order::Now));
        assert_eq!(action("cuMemAllocHost"), Action::Allocate(Taking::Host));
        assert_eq!(action("cuMemAllocAsync"), Action::Allocate(Taking::InStream));
        assert_eq!(action("cuMemsetD8"), Action::Set(1, Order::Now));
        assert!(matches!(action("cuMemsetD2D32"), Action::Refuse(_)));
        assert_eq!(action("cuGraphInstantiate"), Action::Nothing);
        assert!(matches!(action("cuGraphLaunch"), Action::Refuse(_)));
        assert_eq!(action("cuModuleLoadData"), Action::LoadModule);
        assert_eq!(action("cuModuleUnload"), Action::Nothing);
        assert!(matches!(action("cuSomethingNew"), Action::Refuse(_)));
    }

    #[test]
    fn no_entry_hides_behind_a_shorter_one() {
        for (at, (name, _)) in ACTIONS.iter().enumerate() {
            let hiding = ACTIONS[..at]
                .iter()
                .find(|(beginning, _)| name.starts_with(beginning));
            assert_eq!(hiding, None, "{name}");
        }
    }
}
