//! The tables of an export: names, columns and types as nsys 2026.2 (schema 3.25.0) writes them, so that queries made for
//! its files run here; tables of our own, with a prefix, for what it has no place for.

/// The schema version whose columns these are.
pub(super) const VERSION: &str = "3.25.0";

/// A table to write.
pub(super) struct Table {
    pub(super) name: &'static str,
    /// Its columns as they are declared.
    pub(super) columns: &'static str,
}

impl Table {
    /// How many values a row has.
    pub(super) fn width(&self) -> usize {
        self.columns.split(',').count()
    }
}

const fn table(name: &'static str, columns: &'static str) -> Table {
    Table { name, columns }
}

pub(super) const STRINGS: Table = table(
    "StringIds",
    "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
);

pub(super) const KERNELS: Table = table(
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, \
     greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, \
     demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER, \
     cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, \
     gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, \
     staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, \
     localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, \
     sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER, \
     qmdBulkReleaseDone INTEGER, qmdPreexitDone INTEGER, qmdLastCtaDone INTEGER, graphId INTEGER, \
     clusterX INTEGER, clusterY INTEGER, clusterZ INTEGER, clusterSchedulingPolicy INTEGER, \
     maxPotentialClusterSize INTEGER, maxActiveClusters INTEGER, sharedMemoryRequestedPercentage INTEGER, \
     tensorSizeMinusOneElements TEXT NOT NULL",
);

pub(super) const COPIES: Table = table(
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, \
     greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, \
     bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, deprecatedSrcId INTEGER, srcKind INTEGER, dstKind INTEGER, \
     srcDeviceId INTEGER, srcContextId INTEGER, dstDeviceId INTEGER, dstContextId INTEGER, migrationCause INTEGER, \
     graphNodeId INTEGER, virtualAddress INTEGER, copyCount INTEGER",
);

pub(super) const SETS: Table = table(
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, \
     greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, \
     value INTEGER NOT NULL, bytes INTEGER NOT NULL, graphNodeId INTEGER, memKind INTEGER",
);

pub(super) const SYNCS: Table = table(
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, \
     greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, \
     deprecatedSyncType INTEGER, syncType INTEGER NOT NULL, eventId INTEGER NOT NULL, eventSyncId INTEGER",
);

pub(super) const EVENT_RECORDS: Table = table(
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
    "timestamp INTEGER, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER, \
     streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, eventId INTEGER NOT NULL, \
     eventSyncId INTEGER",
);

pub(super) const GRAPH_LAUNCHES: Table = table(
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, \
     greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, \
     graphId INTEGER NOT NULL, graphExecId INTEGER NOT NULL",
);

pub(super) const API_CALLS: Table = table(
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, \
     correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER",
);

pub(super) const ALLOCATIONS: Table = table(
    "CUDA_GPU_MEMORY_USAGE_EVENTS",
    "start INTEGER NOT NULL, globalPid INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, \
     address INTEGER NOT NULL, pc INTEGER NOT NULL, bytes INTEGER NOT NULL, memKind INTEGER NOT NULL, \
     memoryOperationType INTEGER NOT NULL, name TEXT, correlationId INTEGER, localMemoryPoolAddress INTEGER, \
     localMemoryPoolReleaseThreshold INTEGER, localMemoryPoolSize INTEGER, localMemoryPoolUtilizedSize INTEGER",
);

pub(super) const POOLS: Table = table(
    "CUDA_GPU_MEMORY_POOL_EVENTS",
    "start INTEGER NOT NULL, globalPid INTEGER NOT NULL, deviceId INTEGER NOT NULL, address INTEGER NOT NULL, \
     operationType INTEGER NOT NULL, poolType INTEGER NOT NULL, correlationId INTEGER, \
     localMemoryPoolReleaseThreshold INTEGER, localMemoryPoolSize INTEGER, localMemoryPoolUtilizedSize INTEGER",
);

pub(super) const OTHER_MEMORY: Table = table(
    "TRACESMITH_MEMORY_EVENTS",
    "start INTEGER NOT NULL, globalPid INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, \
     address INTEGER NOT NULL, bytes INTEGER NOT NULL, operation TEXT NOT NULL, memory TEXT NOT NULL, \
     correlationId INTEGER",
);

pub(super) const NVTX: Table = table(
    "NVTX_EVENTS",
    "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, \
     color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, \
     uint64Value INTEGER, int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, \
     floatValue REAL, jsonTextId INTEGER, jsonText TEXT, binaryData TEXT",
);

pub(super) const OS_CALLS: Table = table(
    "OSRT_API",
    "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, \
     nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, nestingLevel INTEGER, callchainId INTEGER NOT NULL",
);

pub(super) const OVERHEADS: Table = table(
    "PROFILER_OVERHEAD",
    "start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER, nameId INTEGER NOT NULL, \
     overheadType INTEGER NOT NULL",
);

pub(super) const SAMPLES: Table = table(
    "COMPOSITE_EVENTS",
    "id INTEGER NOT NULL PRIMARY KEY, start INTEGER NOT NULL, cpu INTEGER, threadState INTEGER, \
     globalTid INTEGER, cpuCycles INTEGER NOT NULL",
);

pub(super) const SCHEDULING: Table = table(
    "SCHED_EVENTS",
    "start INTEGER NOT NULL, cpu INTEGER NOT NULL, isSchedIn INTEGER NOT NULL, globalTid INTEGER",
);

pub(super) const HOST_CALLS: Table = table(
    "TRACESMITH_HOST_CALLS",
    "start INTEGER NOT NULL, end INTEGER, globalTid INTEGER, nameId INTEGER NOT NULL, kind TEXT NOT NULL, \
     categoryId INTEGER NOT NULL, correlationId INTEGER, sequence INTEGER, depth INTEGER, cpu INTEGER, \
     argument INTEGER, detail TEXT, callchainId INTEGER",
);

/// The columns of a call chain. The comma of a common key would count as a column, so there is none.
const CHAIN: &str = "id INTEGER NOT NULL, symbol INTEGER NOT NULL, module INTEGER NOT NULL, unresolved INTEGER, \
                     originalIP INTEGER, stackDepth INTEGER NOT NULL";

pub(super) const CUDA_CHAINS: Table = table("CUDA_CALLCHAINS", CHAIN);
pub(super) const HOST_CHAINS: Table = table("TRACESMITH_CALLCHAINS", CHAIN);
pub(super) const OS_CHAINS: Table = table("OSRT_CALLCHAINS", CHAIN);
pub(super) const SAMPLE_CHAINS: Table = table("SAMPLING_CALLCHAINS", CHAIN);

pub(super) const METRICS: Table = table(
    "GPU_METRICS",
    "timestamp INTEGER NOT NULL, typeId INTEGER NOT NULL, metricId INTEGER NOT NULL, value REAL NOT NULL",
);

pub(super) const METRIC_NAMES: Table = table(
    "TARGET_INFO_GPU_METRICS",
    "typeId INTEGER NOT NULL, sourceId INTEGER NOT NULL, typeName TEXT NOT NULL, metricId INTEGER NOT NULL, \
     metricName TEXT NOT NULL",
);

pub(super) const COUNTERS: Table = table(
    "TRACESMITH_COUNTERS",
    "timestamp INTEGER NOT NULL, name TEXT NOT NULL, unit TEXT, globalPid INTEGER, instance INTEGER, value REAL",
);

pub(super) const COLLECTIVES: Table = table(
    "TRACESMITH_COLLECTIVES",
    "start INTEGER NOT NULL, end INTEGER, globalPid INTEGER, deviceId INTEGER, streamId INTEGER, \
     correlationId INTEGER, nameId INTEGER NOT NULL, kind TEXT NOT NULL, communicator INTEGER, sequence INTEGER, \
     rank INTEGER, ranks INTEGER, root INTEGER, count INTEGER, bytes INTEGER, datatype TEXT",
);

pub(super) const FLOWS: Table = table(
    "TRACESMITH_FLOWS",
    "timestamp INTEGER NOT NULL, flow INTEGER NOT NULL, kind TEXT NOT NULL, phase TEXT NOT NULL, name TEXT, \
     globalTid INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER",
);

pub(super) const PROCESSES: Table = table("PROCESSES", "globalPid INTEGER, pid INTEGER, name TEXT");

pub(super) const THREADS: Table = table(
    "ThreadNames",
    "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER",
);

pub(super) const LONG_THREADS: Table = table(
    "TRACESMITH_THREADS",
    "globalTid INTEGER NOT NULL, tid INTEGER NOT NULL",
);

pub(super) const GPUS: Table = table(
    "TARGET_INFO_GPU",
    "vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, isDiscrete INTEGER, \
     l2CacheSize INTEGER, totalMemory INTEGER, memoryBandwidth INTEGER, clockRate INTEGER, smCount INTEGER, \
     uuid TEXT, chipName TEXT, cuDevice INTEGER, maxShmemPerBlock INTEGER, maxShmemPerSm INTEGER, \
     maxRegistersPerSm INTEGER, threadsPerWarp INTEGER, asyncEngines INTEGER, maxWarpsPerSm INTEGER, \
     maxBlocksPerSm INTEGER, computeMajor INTEGER, computeMinor INTEGER",
);

pub(super) const CONTEXTS: Table = table(
    "TARGET_INFO_CUDA_CONTEXT_INFO",
    "nullStreamId INTEGER NOT NULL, hwId INTEGER NOT NULL, vmId INTEGER NOT NULL, processId INTEGER NOT NULL, \
     deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, parentContextId INTEGER, isGreenContext INTEGER",
);

pub(super) const STREAMS: Table = table(
    "TARGET_INFO_CUDA_STREAM",
    "streamId INTEGER NOT NULL, hwId INTEGER NOT NULL, vmId INTEGER NOT NULL, processId INTEGER NOT NULL, \
     contextId INTEGER NOT NULL, priority INTEGER NOT NULL, flag INTEGER NOT NULL",
);

pub(super) const SESSION: Table = table(
    "TARGET_INFO_SESSION_START_TIME",
    "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT, systemClockNs INTEGER",
);

pub(super) const SYSTEM: Table = table(
    "TARGET_INFO_SYSTEM_ENV",
    "globalVid INTEGER, devStateName TEXT NOT NULL, name TEXT NOT NULL, nameEnum INTEGER NOT NULL, \
     value TEXT NOT NULL",
);

pub(super) const ANALYSIS: Table = table(
    "ANALYSIS_DETAILS",
    "globalVid INTEGER NOT NULL, duration INTEGER NOT NULL, startTime INTEGER NOT NULL, stopTime INTEGER NOT NULL",
);

pub(super) const EXPORT_FACTS: Table = table("META_DATA_EXPORT", "name TEXT NOT NULL, value TEXT");
pub(super) const CAPTURE_FACTS: Table = table("META_DATA_CAPTURE", "name TEXT NOT NULL, value TEXT");
pub(super) const HEALTH: Table = table(
    "TRACESMITH_HEALTH",
    "cause TEXT NOT NULL, count INTEGER NOT NULL, bytes INTEGER NOT NULL, detail TEXT",
);

/// The columns of a table of codes.
pub(super) const CODES: &str = "id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT";

/// A code: its number, its name, and what people call it.
type Code = (i64, &'static str, &'static str);

/// The codes that are used, with the names that queries join by.
#[rustfmt::skip]
pub(super) const CODE_TABLES: &[(&str, &[Code])] = &[
    ("ENUM_CUDA_MEMCPY_OPER", &[
        (0, "CUDA_MEMCPY_KIND_UNKNOWN", "Unknown"),
        (1, "CUDA_MEMCPY_KIND_HTOD", "Host-to-Device"),
        (2, "CUDA_MEMCPY_KIND_DTOH", "Device-to-Host"),
        (3, "CUDA_MEMCPY_KIND_HTOA", "Host-to-Array"),
        (4, "CUDA_MEMCPY_KIND_ATOH", "Array-to-Host"),
        (5, "CUDA_MEMCPY_KIND_ATOA", "Array-to-Array"),
        (6, "CUDA_MEMCPY_KIND_ATOD", "Array-to-Device"),
        (7, "CUDA_MEMCPY_KIND_DTOA", "Device-to-Array"),
        (8, "CUDA_MEMCPY_KIND_DTOD", "Device-to-Device"),
        (9, "CUDA_MEMCPY_KIND_HTOH", "Host-to-Host"),
        (10, "CUDA_MEMCPY_KIND_PTOP", "Peer-to-Peer"),
        (11, "CUDA_MEMCPY_KIND_UVM_HTOD", "Unified Host-to-Device"),
        (12, "CUDA_MEMCPY_KIND_UVM_DTOH", "Unified Device-to-Host"),
        (13, "CUDA_MEMCPY_KIND_UVM_DTOD", "Unified Device-to-Device"),
    ]),
    ("ENUM_CUDA_MEM_KIND", &[
        (0, "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", "Pageable"),
        (1, "CUDA_MEMOPR_MEMORY_KIND_PINNED", "Pinned"),
        (2, "CUDA_MEMOPR_MEMORY_KIND_DEVICE", "Device"),
        (3, "CUDA_MEMOPR_MEMORY_KIND_ARRAY", "Array"),
        (4, "CUDA_MEMOPR_MEMORY_KIND_MANAGED", "Managed"),
        (5, "CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC", "Device Static"),
        (6, "CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC", "Managed Static"),
        (7, "CUDA_MEMOPR_MEMORY_KIND_UNKNOWN", "Unknown"),
    ]),
    ("ENUM_CUDA_DEV_MEM_EVENT_OPER", &[
        (0, "CUDA_DEV_MEM_EVENT_OPR_ALLOCATION", "Allocation"),
        (1, "CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION", "Deallocation"),
    ]),
    ("ENUM_CUDA_MEMPOOL_OPER", &[
        (0, "CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_INVALID", "Invalid"),
        (1, "CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED", "Created"),
        (2, "CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED", "Destroyed"),
        (3, "CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED", "Trimmed"),
    ]),
    ("ENUM_CUDA_KERNEL_LAUNCH_TYPE", &[
        (0, "CUDA_KERNEL_LAUNCH_TYPE_UNKNOWN", "Unknown"),
        (1, "CUDA_KERNEL_LAUNCH_TYPE_REGULAR", "Regular"),
        (2, "CUDA_KERNEL_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE", "Coop Single Device"),
        (3, "CUDA_KERNEL_LAUNCH_TYPE_COOPERATIVE_MULTI_DEVICE", "Coop Multi Device"),
    ]),
    ("ENUM_CUPTI_SYNC_TYPE", &[
        (0, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN", "Unknown"),
        (1, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE", "Event sync"),
        (2, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT", "Stream wait sync"),
        (3, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE", "Stream sync"),
        (4, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE", "Context sync"),
    ]),
    ("ENUM_CUPTI_STREAM_TYPE", &[
        (0, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_UNKNOWN", "Unknown stream type"),
        (1, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT", "Default stream"),
        (2, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING", "Non-blocking stream"),
        (3, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL", "Null stream"),
    ]),
    ("ENUM_CUPTI_OVERHEAD_TYPE", &[
        (0, "OVERHEAD_UNDEFINED", "Undefined"),
        (1, "OVERHEAD_UNKNOWN", "Unknown"),
        (2, "OVERHEAD_DRIVER_COMPILER", "Driver JIT compiler (CUDA)"),
    ]),
    ("ENUM_NSYS_EVENT_CLASS", &[
        (0, "TRACE_PROCESS_EVENT_CUDA_RUNTIME", "CUDA runtime"),
        (1, "TRACE_PROCESS_EVENT_CUDA_DRIVER", "CUDA driver"),
        (27, "TRACE_PROCESS_EVENT_OS_RUNTIME", "OSRT runtime"),
    ]),
    ("ENUM_NSYS_EVENT_TYPE", &[
        (33, "NvtxCategory", "NvtxCategory"),
        (34, "NvtxMark", "NvtxMark"),
        (59, "NvtxPushPopRange", "NvtxPushPopRange"),
        (60, "NvtxStartEndRange", "NvtxStartEndRange"),
        (75, "NvtxDomainCreate", "NvtxDomainCreate"),
    ]),
];
