//! What is done with each function of the driver while a window is recorded.

use tracesmith_cuda::cupti::{ApiDomain, Cupti};

use super::textures::TextureKind;
use crate::cuda::kinds;

/// What a function does, as far as replay capture is concerned.
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
    CopyRows(Order),
    CopyPlanes(Order),
    /// So many bytes an element.
    SetRows(u8, Order),
    HostFunction,
    RecordEvent,
    WaitEvent,
    Synchronize(Wait),
    FunctionAttribute,
    KernelAttribute,
    /// Gives out a module.
    LoadModule,
    /// Gives out a library, whose modules are loaded later unless the program wants them at once.
    LoadLibrary,
    /// Takes a function or a kernel, at this place among its arguments, and loads it if need be.
    AskFunction(usize),
    /// Gives out a function of a module.
    FindFunction,
    /// Gives out the function of a kernel.
    LoadKernel,
    /// Gives out the address of a variable.
    FindVariable,
    /// Makes a graph ready to be launched.
    Instantiate,
    /// Makes it do what another graph does.
    UpdateGraph,
    /// Changes a kernel of a graph that is ready.
    SetKernelNode,
    SetCopyNode,
    SetSetNode,
    /// Changes a graph that is ready in a way that is not followed.
    ChangeGraph,
    DestroyGraph,
    LaunchGraph,
    /// Gives out a texture or a surface, which a kernel knows by its handle.
    MakeTexture(TextureKind),
    DropTexture,
    DropArray,
    /// Gives out memory of another process.
    OpenForeign,
    CloseForeign,
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

/// What the host waits for. The numbers are those of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    All = 0,
    Stream = 1,
    Event = 2,
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
const ACTIONS: [(&str, Action); 101] = [
    ("cuLaunchKernelEx", Action::LaunchEx),
    ("cuLaunchKernel", Action::Launch),
    (
        "cuLaunchCooperativeKernelMultiDevice",
        Action::Refuse("one launch on several devices"),
    ),
    ("cuLaunchCooperativeKernel", Action::LaunchCooperative),
    ("cuLaunchHostFunc", Action::HostFunction),
    ("cuStreamAddCallback", Action::HostFunction),
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
    ("cuMemcpy2DAsync", Action::CopyRows(Order::InStream)),
    ("cuMemcpy2D", Action::CopyRows(Order::Now)),
    ("cuMemcpy3DPeer", Action::Refuse("a copy to another device")),
    ("cuMemcpy3DBatch", Action::Refuse("several copies at once")),
    ("cuMemcpy3DAsync", Action::CopyPlanes(Order::InStream)),
    ("cuMemcpy3D", Action::CopyPlanes(Order::Now)),
    ("cuMemcpyAto", Action::Refuse("a copy from an array")),
    ("cuMemcpyHtoA", Action::Refuse("a copy to an array")),
    ("cuMemcpyDtoA", Action::Refuse("a copy to an array")),
    ("cuMemcpyBatch", Action::Refuse("several copies at once")),
    ("cuMemcpyAsync", Action::Copy(Order::InStream)),
    ("cuMemcpy", Action::Copy(Order::Now)),
    ("cuMemsetD8Async", Action::Set(1, Order::InStream)),
    ("cuMemsetD16Async", Action::Set(2, Order::InStream)),
    ("cuMemsetD32Async", Action::Set(4, Order::InStream)),
    ("cuMemsetD2D8Async", Action::SetRows(1, Order::InStream)),
    ("cuMemsetD2D16Async", Action::SetRows(2, Order::InStream)),
    ("cuMemsetD2D32Async", Action::SetRows(4, Order::InStream)),
    ("cuMemsetD2D8", Action::SetRows(1, Order::Now)),
    ("cuMemsetD2D16", Action::SetRows(2, Order::Now)),
    ("cuMemsetD2D32", Action::SetRows(4, Order::Now)),
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
    (
        "cuMemMapArray",
        Action::Refuse("an array that is mapped in parts"),
    ),
    ("cuMemMap", Action::Map),
    ("cuMemUnmap", Action::Unmap),
    ("cuEventRecord", Action::RecordEvent),
    ("cuStreamWaitEvent", Action::WaitEvent),
    ("cuCtxSynchronize", Action::Synchronize(Wait::All)),
    ("cuStreamSynchronize", Action::Synchronize(Wait::Stream)),
    ("cuEventSynchronize", Action::Synchronize(Wait::Event)),
    ("cuFuncSetAttribute", Action::FunctionAttribute),
    ("cuKernelSetAttribute", Action::KernelAttribute),
    ("cuFuncGetAttribute", Action::AskFunction(2)),
    ("cuKernelGetAttribute", Action::AskFunction(2)),
    ("cuFuncSetCacheConfig", Action::AskFunction(0)),
    ("cuKernelSetCacheConfig", Action::AskFunction(0)),
    ("cuFuncSetSharedMemConfig", Action::AskFunction(0)),
    ("cuFuncLoad", Action::AskFunction(0)),
    ("cuOccupancyMaxPotentialBlockSize", Action::AskFunction(2)),
    ("cuOccupancy", Action::AskFunction(1)),
    ("cuLibraryLoad", Action::LoadLibrary),
    ("cuModuleLoad", Action::LoadModule),
    ("cuLibraryGetModule", Action::LoadModule),
    ("cuModuleGetFunction", Action::FindFunction),
    ("cuKernelGetFunction", Action::LoadKernel),
    ("cuModuleGetGlobal", Action::FindVariable),
    ("cuLibraryGetGlobal", Action::FindVariable),
    ("cuGraphInstantiate", Action::Instantiate),
    ("cuGraphExecUpdate", Action::UpdateGraph),
    ("cuGraphExecKernelNodeSetParams", Action::SetKernelNode),
    ("cuGraphExecMemcpyNodeSetParams", Action::SetCopyNode),
    ("cuGraphExecMemsetNodeSetParams", Action::SetSetNode),
    ("cuGraphExecDestroy", Action::DestroyGraph),
    ("cuGraphExecGet", Action::Nothing),
    ("cuGraphExec", Action::ChangeGraph),
    ("cuGraphNodeSetEnabled", Action::ChangeGraph),
    ("cuGraphLaunch", Action::LaunchGraph),
    ("cuGraphicsMap", Action::Refuse("memory of a graphics interface")),
    ("cuTexObjectCreate", Action::MakeTexture(TextureKind::Texture)),
    ("cuSurfObjectCreate", Action::MakeTexture(TextureKind::Surface)),
    ("cuTexObjectDestroy", Action::DropTexture),
    ("cuSurfObjectDestroy", Action::DropTexture),
    ("cuIpcOpenMemHandle", Action::OpenForeign),
    ("cuIpcCloseMemHandle", Action::CloseForeign),
    (
        "cuIpcOpen",
        Action::Refuse("memory or an event of another process"),
    ),
    (
        "cuImportExternal",
        Action::Refuse("memory or a semaphore of another interface"),
    ),
    (
        "cuMemImport",
        Action::Refuse("memory or an event of another process"),
    ),
    ("cuMulticast", Action::Refuse("memory that several devices share")),
    (
        "cuStreamWaitValue",
        Action::Refuse("a stream that waits for a value in memory"),
    ),
    (
        "cuStreamWriteValue",
        Action::Refuse("a value that a stream writes to memory"),
    ),
    (
        "cuStreamBatchMemOp",
        Action::Refuse("a stream that waits for a value in memory"),
    ),
    ("cuArrayDestroy", Action::DropArray),
    ("cuArrayGetPlane", Action::Refuse("an array of several planes")),
    ("cuMipmappedArrayDestroy", Action::DropArray),
];

/// Beginnings of the names of functions that a replay need not make: they make or
/// end what it makes by itself when it is used, or are about the host alone.
const HARMLESS: [&str; 35] = [
    "cuArray",
    "cuMipmappedArray",
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
    "cuStreamBeginCapture",
    "cuStreamEndCapture",
    "cuStreamUpdateCaptureDependencies",
    "cuStreamCopyAttributes",
    "cuStreamSetAttribute",
    "cuTensorMap",
    "cuPointerSetAttribute",
    "cuUserObject",
    "cuGreenCtx",
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

/// The functions that are watched during replay capture, with what they do.
pub(super) fn watched(cupti: &Cupti) -> Vec<(u32, Action)> {
    (1..kinds::LAST_FUNCTION)
        .filter_map(|id| {
            let name = cupti.function_name(ApiDomain::Driver, id)?;
            Some((id, action(kinds::plain_name(name))))
        })
        .filter(|(_, action)| *action != Action::Nothing)
        .collect()
}

impl Action {
    /// Whether a call that records a command changes memory, by itself or by the work that it begins.
    pub(super) fn changes_memory(self) -> bool {
        matches!(
            self,
            Self::Launch
                | Self::LaunchEx
                | Self::LaunchCooperative
                | Self::LaunchGraph
                | Self::Copy(_)
                | Self::CopyRows(_)
                | Self::CopyPlanes(_)
                | Self::Set(..)
                | Self::SetRows(..)
                | Self::HostFunction
        )
    }

    /// Whether it must be known before the window begins: what memory, code and
    /// graphs there are.
    pub(super) fn is_watched_before(self) -> bool {
        matches!(
            self,
            Self::Allocate(_)
                | Self::Free(_)
                | Self::RegisterHost
                | Self::Map
                | Self::Unmap
                | Self::FunctionAttribute
                | Self::KernelAttribute
                | Self::LoadModule
                | Self::LoadLibrary
                | Self::AskFunction(_)
                | Self::FindFunction
                | Self::LoadKernel
                | Self::FindVariable
                | Self::Instantiate
                | Self::UpdateGraph
                | Self::SetKernelNode
                | Self::SetCopyNode
                | Self::SetSetNode
                | Self::ChangeGraph
                | Self::DestroyGraph
                | Self::MakeTexture(_)
                | Self::DropTexture
                | Self::DropArray
                | Self::OpenForeign
                | Self::CloseForeign
        )
    }
}

/// What a function does. One that nobody has thought of is refused rather than
/// passed over.
pub(super) fn action(name: &str) -> Action {
    if let Some((_, action)) = ACTIONS.iter().find(|(beginning, _)| name.starts_with(beginning)) {
        return *action;
    }
    if kinds::is_query_call(name) || HARMLESS.iter().any(|beginning| name.starts_with(beginning)) {
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
        assert_eq!(action("cuMemsetD2D32"), Action::SetRows(4, Order::Now));
        assert_eq!(action("cuGraphInstantiateWithFlags"), Action::Instantiate);
        assert_eq!(action("cuGraphExecDestroy"), Action::DestroyGraph);
        assert_eq!(action("cuGraphExecEventRecordNodeSetEvent"), Action::ChangeGraph);
        assert_eq!(action("cuGraphAddKernelNode"), Action::Nothing);
        assert_eq!(action("cuModuleLoadData"), Action::LoadModule);
        assert_eq!(action("cuModuleUnload"), Action::Nothing);
        assert_eq!(action("cuLibraryLoadData"), Action::LoadLibrary);
        assert_eq!(
            action("cuOccupancyMaxPotentialClusterSize"),
            Action::AskFunction(1)
        );
        assert_eq!(
            action("cuOccupancyMaxPotentialBlockSizeWithFlags"),
            Action::AskFunction(2)
        );
        assert_eq!(action("cuStreamBeginCapture"), Action::Nothing);
        assert_eq!(action("cuTensorMapEncodeTiled"), Action::Nothing);
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
