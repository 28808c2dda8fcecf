//! The export's codes: by the names that its own tables give them, by the numbers of all known versions otherwise.

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{
    CopyDirection, HostCallKind, MemoryKind, MemoryOperation, StreamKind, SyncKind,
};

use crate::error::Error;
use crate::import::Builder;
use crate::import::sqlite::Database;

/// A code: its number in the versions that were seen, its name in the export's table, and what it is here.
type Known<T> = (i64, &'static str, T);

/// The codes of one kind.
pub(super) struct Codes<T>(FxHashMap<i64, T>);

impl<T: Copy> Codes<T> {
    /// Reads the export's table of names, if it has one.
    pub(super) fn load(
        db: &Database,
        table: &str,
        known: &[Known<T>],
        builder: &mut Builder<'_, '_>,
    ) -> Result<Self, Error> {
        let mut codes = FxHashMap::default();
        if let Some(mut query) = db.query(table) {
            let (id, name) = (query.column("id"), query.column("name"));
            db.read(&query, builder, |row, _| {
                if let (Some(id), Some(name)) = (row.integer(id), row.text(name))
                    && let Some((_, _, code)) = known.iter().find(|(_, known, _)| *known == name)
                {
                    codes.insert(id, *code);
                }
                Ok(())
            })?;
        }
        if codes.is_empty() {
            codes.extend(known.iter().map(|(number, _, code)| (*number, *code)));
        }
        Ok(Codes(codes))
    }

    /// The numbers of the codes that are wanted, in their order.
    pub(super) fn numbers(&self, wanted: impl Fn(T) -> bool) -> Vec<i64> {
        let mut numbers: Vec<i64> = self
            .0
            .iter()
            .filter(|(_, code)| wanted(**code))
            .map(|(number, _)| *number)
            .collect();
        numbers.sort_unstable();
        numbers
    }

    /// What a number stands for.
    pub(super) fn get(&self, number: Option<i64>) -> Option<T> {
        self.0.get(&number?).copied()
    }
}

/// What a copy does, and whether unified memory did it by itself.
pub(super) const COPIES: &[Known<(CopyDirection, Mover)>] = &[
    (
        1,
        "CUDA_MEMCPY_KIND_HTOD",
        (CopyDirection::HOST_TO_DEVICE, Mover::Program),
    ),
    (
        2,
        "CUDA_MEMCPY_KIND_DTOH",
        (CopyDirection::DEVICE_TO_HOST, Mover::Program),
    ),
    (
        3,
        "CUDA_MEMCPY_KIND_HTOA",
        (CopyDirection::HOST_TO_ARRAY, Mover::Program),
    ),
    (
        4,
        "CUDA_MEMCPY_KIND_ATOH",
        (CopyDirection::ARRAY_TO_HOST, Mover::Program),
    ),
    (
        5,
        "CUDA_MEMCPY_KIND_ATOA",
        (CopyDirection::ARRAY_TO_ARRAY, Mover::Program),
    ),
    (
        6,
        "CUDA_MEMCPY_KIND_ATOD",
        (CopyDirection::ARRAY_TO_DEVICE, Mover::Program),
    ),
    (
        7,
        "CUDA_MEMCPY_KIND_DTOA",
        (CopyDirection::DEVICE_TO_ARRAY, Mover::Program),
    ),
    (
        8,
        "CUDA_MEMCPY_KIND_DTOD",
        (CopyDirection::DEVICE_TO_DEVICE, Mover::Program),
    ),
    (
        9,
        "CUDA_MEMCPY_KIND_HTOH",
        (CopyDirection::HOST_TO_HOST, Mover::Program),
    ),
    (10, "CUDA_MEMCPY_KIND_PTOP", (CopyDirection::PEER, Mover::Program)),
    (
        11,
        "CUDA_MEMCPY_KIND_UVM_HTOD",
        (CopyDirection::HOST_TO_DEVICE, Mover::UnifiedMemory),
    ),
    (
        12,
        "CUDA_MEMCPY_KIND_UVM_DTOH",
        (CopyDirection::DEVICE_TO_HOST, Mover::UnifiedMemory),
    ),
    (
        13,
        "CUDA_MEMCPY_KIND_UVM_DTOD",
        (CopyDirection::DEVICE_TO_DEVICE, Mover::UnifiedMemory),
    ),
];

/// Who moved memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mover {
    Program,
    UnifiedMemory,
}

pub(super) const MEMORY: &[Known<MemoryKind>] = &[
    (0, "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", MemoryKind::PAGEABLE),
    (1, "CUDA_MEMOPR_MEMORY_KIND_PINNED", MemoryKind::PINNED),
    (2, "CUDA_MEMOPR_MEMORY_KIND_DEVICE", MemoryKind::DEVICE),
    (3, "CUDA_MEMOPR_MEMORY_KIND_ARRAY", MemoryKind::ARRAY),
    (4, "CUDA_MEMOPR_MEMORY_KIND_MANAGED", MemoryKind::MANAGED),
    (
        5,
        "CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC",
        MemoryKind::DEVICE_STATIC,
    ),
    (
        6,
        "CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC",
        MemoryKind::MANAGED_STATIC,
    ),
];

pub(super) const SYNCS: &[Known<SyncKind>] = &[
    (
        1,
        "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE",
        SyncKind::EVENT_WAIT,
    ),
    (
        2,
        "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT",
        SyncKind::STREAM_WAIT_EVENT,
    ),
    (
        3,
        "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE",
        SyncKind::STREAM_WAIT,
    ),
    (
        4,
        "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE",
        SyncKind::CONTEXT_WAIT,
    ),
];

pub(super) const STREAMS: &[Known<StreamKind>] = &[
    (
        1,
        "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT",
        StreamKind::BLOCKING,
    ),
    (
        2,
        "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING",
        StreamKind::NON_BLOCKING,
    ),
    (
        3,
        "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL",
        StreamKind::LEGACY_DEFAULT,
    ),
];

pub(super) const MEMORY_OPERATIONS: &[Known<MemoryOperation>] = &[
    (0, "CUDA_DEV_MEM_EVENT_OPR_ALLOCATION", MemoryOperation::ALLOCATE),
    (1, "CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION", MemoryOperation::FREE),
];

pub(super) const POOL_OPERATIONS: &[Known<MemoryOperation>] = &[
    (
        1,
        "CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED",
        MemoryOperation::POOL_CREATE,
    ),
    (
        2,
        "CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED",
        MemoryOperation::POOL_DESTROY,
    ),
    (
        3,
        "CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED",
        MemoryOperation::POOL_TRIM,
    ),
];

/// Of overheads only compilation is told apart.
pub(super) const OVERHEADS: &[Known<HostCallKind>] =
    &[(2, "OVERHEAD_DRIVER_COMPILER", HostCallKind::COMPILE)];

/// What an NVTX row is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NvtxEvent {
    Category,
    Mark,
    ThreadName,
    PushPop,
    StartEnd,
    Domain,
    DomainEnd,
}

pub(super) const NVTX: &[Known<NvtxEvent>] = &[
    (33, "NvtxCategory", NvtxEvent::Category),
    (34, "NvtxMark", NvtxEvent::Mark),
    (35, "NvtxPushRange", NvtxEvent::PushPop),
    (37, "NvtxStartRange", NvtxEvent::StartEnd),
    (39, "NvtxThread", NvtxEvent::ThreadName),
    (59, "NvtxPushPopRange", NvtxEvent::PushPop),
    (60, "NvtxStartEndRange", NvtxEvent::StartEnd),
    (64, "NvtxtCategory", NvtxEvent::Category),
    (65, "NvtxtMark", NvtxEvent::Mark),
    (70, "NvtxtPushPopRange", NvtxEvent::PushPop),
    (71, "NvtxtStartEndRange", NvtxEvent::StartEnd),
    (75, "NvtxDomainCreate", NvtxEvent::Domain),
    (76, "NvtxDomainDestroy", NvtxEvent::DomainEnd),
];

/// How urgent a message of the profiler is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Severity {
    Talk,
    Warning,
    Error,
}

pub(super) const SEVERITIES: &[Known<Severity>] = &[
    (1, "Info", Severity::Talk),
    (2, "Warning", Severity::Warning),
    (3, "Error", Severity::Error),
    (4, "Verbose", Severity::Talk),
];
