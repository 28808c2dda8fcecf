//! Field numbers of Perfetto's trace schema, by message (protos/perfetto/trace/perfetto_trace.proto, v59).

pub(crate) mod trace {
    pub(crate) const PACKET: u32 = 1;
}

pub(crate) mod packet {
    pub(crate) const CHROME_EVENTS: u32 = 5;
    pub(crate) const CLOCK_SNAPSHOT: u32 = 6;
    pub(crate) const TIMESTAMP: u32 = 8;
    pub(crate) const SEQUENCE_ID: u32 = 10;
    pub(crate) const TRACK_EVENT: u32 = 11;
    pub(crate) const INTERNED_DATA: u32 = 12;
    pub(crate) const SEQUENCE_FLAGS: u32 = 13;
    pub(crate) const INCREMENTAL_STATE_CLEARED: u32 = 41;
    pub(crate) const PREVIOUS_PACKET_DROPPED: u32 = 42;
    pub(crate) const PROCESS_DESCRIPTOR: u32 = 43;
    pub(crate) const THREAD_DESCRIPTOR: u32 = 44;
    pub(crate) const SYSTEM_INFO: u32 = 45;
    pub(crate) const COMPRESSED_PACKETS: u32 = 50;
    pub(crate) const GPU_COUNTER_EVENT: u32 = 52;
    pub(crate) const GPU_RENDER_STAGE_EVENT: u32 = 53;
    pub(crate) const TIMESTAMP_CLOCK_ID: u32 = 58;
    pub(crate) const DEFAULTS: u32 = 59;
    pub(crate) const TRACK_DESCRIPTOR: u32 = 60;
    pub(crate) const PERF_SAMPLE: u32 = 66;
    pub(crate) const FIRST_ON_SEQUENCE: u32 = 87;
    pub(crate) const TRACE_UUID: u32 = 89;
    pub(crate) const MACHINE_ID: u32 = 98;
    pub(crate) const REMOTE_CLOCK_SYNC: u32 = 107;
    pub(crate) const TRACE_ATTRIBUTES: u32 = 126;
    pub(crate) const GPU_INFO: u32 = 128;
    pub(crate) const ZSTD_PACKETS: u32 = 133;
}

/// Values of `sequence_flags`.
pub(crate) mod flags {
    pub(crate) const CLEARED: u64 = 1;
    pub(crate) const NEEDED: u64 = 2;
}

/// Clock numbers that are the same in all traces; 64 to 127 belong to a sequence.
pub(crate) mod clock {
    pub(crate) const REALTIME: u64 = 1;
    pub(crate) const MONOTONIC: u64 = 3;
    pub(crate) const BOOTTIME: u64 = 6;
    pub(crate) const OF_SEQUENCE: u64 = 64;
    pub(crate) const GLOBAL: u64 = 128;
}

pub(crate) mod clock_snapshot {
    pub(crate) const CLOCKS: u32 = 1;
    pub(crate) const PRIMARY: u32 = 2;
    pub(crate) const ID: u32 = 1;
    pub(crate) const TIMESTAMP: u32 = 2;
    pub(crate) const IS_INCREMENTAL: u32 = 3;
    pub(crate) const UNIT_MULTIPLIER: u32 = 4;
}

/// Clocks of two machines, read one right after the other.
pub(crate) mod remote_clock_sync {
    pub(crate) const ROUNDS: u32 = 1;
    /// A round's fields, both of them clock snapshots: of the packet's machine, and of the one that recorded.
    pub(crate) const CLIENT_CLOCKS: u32 = 2;
    pub(crate) const HOST_CLOCKS: u32 = 3;
}

pub(crate) mod defaults {
    pub(crate) const TRACK_EVENT: u32 = 11;
    pub(crate) const PERF_SAMPLE: u32 = 12;
    pub(crate) const TIMESTAMP_CLOCK_ID: u32 = 58;
    pub(crate) const TRACK_UUID: u32 = 11;
    pub(crate) const EXTRA_COUNTERS: u32 = 31;
}

pub(crate) mod descriptor {
    pub(crate) const UUID: u32 = 1;
    pub(crate) const NAME: u32 = 2;
    pub(crate) const PROCESS: u32 = 3;
    pub(crate) const THREAD: u32 = 4;
    pub(crate) const PARENT: u32 = 5;
    pub(crate) const COUNTER: u32 = 8;
    pub(crate) const STATIC_NAME: u32 = 10;
    pub(crate) const CHILD_ORDERING: u32 = 11;
    pub(crate) const ORDER_RANK: u32 = 12;
    pub(crate) const ATRACE_NAME: u32 = 13;
    pub(crate) const DESCRIPTION: u32 = 14;
    pub(crate) const MERGE_BEHAVIOR: u32 = 15;
    /// Values of `child_ordering` and `sibling_merge_behavior`.
    pub(crate) const EXPLICIT: u64 = 3;
    pub(crate) const NO_MERGING: u64 = 2;
}

/// Chrome's events, of which only the metadata is of use.
pub(crate) mod chrome {
    pub(crate) const METADATA: u32 = 2;
    pub(crate) const METADATA_NAME: u32 = 1;
    pub(crate) const METADATA_TEXT: u32 = 2;
}

pub(crate) mod process {
    pub(crate) const PID: u32 = 1;
    pub(crate) const COMMAND: u32 = 2;
    pub(crate) const NAME: u32 = 6;
}

pub(crate) mod thread {
    pub(crate) const PID: u32 = 1;
    pub(crate) const TID: u32 = 2;
    pub(crate) const NAME: u32 = 5;
}

pub(crate) mod counter {
    pub(crate) const UNIT: u32 = 3;
    pub(crate) const UNIT_MULTIPLIER: u32 = 4;
    pub(crate) const IS_INCREMENTAL: u32 = 5;
    pub(crate) const UNIT_NAME: u32 = 6;
    pub(crate) const UNIT_TIME_NS: u64 = 1;
    pub(crate) const UNIT_COUNT: u64 = 2;
    pub(crate) const UNIT_BYTES: u64 = 3;
}

pub(crate) mod event {
    pub(crate) const TIMESTAMP_DELTA_US: u32 = 1;
    pub(crate) const CATEGORY_IIDS: u32 = 3;
    pub(crate) const DEBUG_ANNOTATIONS: u32 = 4;
    pub(crate) const LEGACY_EVENT: u32 = 6;
    pub(crate) const TYPE: u32 = 9;
    pub(crate) const NAME_IID: u32 = 10;
    pub(crate) const TRACK_UUID: u32 = 11;
    pub(crate) const EXTRA_COUNTER_VALUES: u32 = 12;
    pub(crate) const TIMESTAMP_ABSOLUTE_US: u32 = 16;
    pub(crate) const CATEGORIES: u32 = 22;
    pub(crate) const NAME: u32 = 23;
    pub(crate) const COUNTER_VALUE: u32 = 30;
    pub(crate) const FLOW_IDS_OLD: u32 = 36;
    pub(crate) const TERMINATING_FLOW_IDS_OLD: u32 = 42;
    pub(crate) const DOUBLE_COUNTER_VALUE: u32 = 44;
    pub(crate) const FLOW_IDS: u32 = 47;
    pub(crate) const TERMINATING_FLOW_IDS: u32 = 48;
    pub(crate) const CALLSTACK: u32 = 55;
    pub(crate) const CALLSTACK_IID: u32 = 56;
    pub(crate) const GPU_CORRELATION: u32 = 3000;
    /// Values of `type`.
    pub(crate) const BEGIN: u64 = 1;
    pub(crate) const END: u64 = 2;
    pub(crate) const INSTANT: u64 = 3;
    pub(crate) const COUNTER: u64 = 4;
}

pub(crate) mod legacy {
    pub(crate) const PHASE: u32 = 2;
    pub(crate) const DURATION_US: u32 = 3;
    pub(crate) const UNSCOPED_ID: u32 = 6;
    pub(crate) const BIND_ID: u32 = 8;
    pub(crate) const LOCAL_ID: u32 = 10;
    pub(crate) const GLOBAL_ID: u32 = 11;
    pub(crate) const BIND_TO_ENCLOSING: u32 = 12;
    pub(crate) const FLOW_DIRECTION: u32 = 13;
}

pub(crate) mod annotation {
    pub(crate) const NAME_IID: u32 = 1;
    pub(crate) const BOOL: u32 = 2;
    pub(crate) const UINT: u32 = 3;
    pub(crate) const INT: u32 = 4;
    pub(crate) const DOUBLE: u32 = 5;
    pub(crate) const STRING: u32 = 6;
    pub(crate) const POINTER: u32 = 7;
    pub(crate) const LEGACY_JSON: u32 = 9;
    pub(crate) const NAME: u32 = 10;
    pub(crate) const DICT: u32 = 11;
    pub(crate) const ARRAY: u32 = 12;
    pub(crate) const STRING_IID: u32 = 17;
}

pub(crate) mod interned {
    pub(crate) const CATEGORIES: u32 = 1;
    pub(crate) const EVENT_NAMES: u32 = 2;
    pub(crate) const ANNOTATION_NAMES: u32 = 3;
    pub(crate) const FUNCTION_NAMES: u32 = 5;
    pub(crate) const FRAMES: u32 = 6;
    pub(crate) const CALLSTACKS: u32 = 7;
    pub(crate) const BUILD_IDS: u32 = 16;
    pub(crate) const MAPPING_PATHS: u32 = 17;
    pub(crate) const SOURCE_PATHS: u32 = 18;
    pub(crate) const MAPPINGS: u32 = 19;
    pub(crate) const GRAPHICS_CONTEXTS: u32 = 23;
    pub(crate) const GPU_SPECIFICATIONS: u32 = 24;
    pub(crate) const ANNOTATION_STRINGS: u32 = 29;
    pub(crate) const GPU_COUNTER_DESCRIPTORS: u32 = 47;
    pub(crate) const COMPUTE_KERNELS: u32 = 1000;
    pub(crate) const COMPUTE_ARGUMENT_NAMES: u32 = 1001;
    /// Every interned message begins so.
    pub(crate) const IID: u32 = 1;
    pub(crate) const TEXT: u32 = 2;
}

pub(crate) mod frame {
    pub(crate) const FUNCTION: u32 = 2;
    pub(crate) const MAPPING: u32 = 3;
    pub(crate) const RELATIVE_ADDRESS: u32 = 4;
    pub(crate) const SOURCE_PATH: u32 = 5;
    pub(crate) const LINE: u32 = 6;
    /// Frames of a callstack, and of one that is given inline.
    pub(crate) const CALLSTACK_FRAMES: u32 = 2;
    pub(crate) const INLINE_FRAMES: u32 = 1;
    /// An inline frame's own fields.
    pub(crate) const INLINE_FUNCTION: u32 = 1;
    pub(crate) const INLINE_FILE: u32 = 2;
    pub(crate) const INLINE_LINE: u32 = 3;
}

/// A sample of a thread's stack, and the defaults of a sequence's samples.
pub(crate) mod sample {
    pub(crate) const PID: u32 = 2;
    pub(crate) const TID: u32 = 3;
    pub(crate) const CALLSTACK_IID: u32 = 4;
    pub(crate) const TIMEBASE: u32 = 1;
    pub(crate) const TIMEBASE_NAME: u32 = 10;
}

pub(crate) mod mapping {
    pub(crate) const BUILD_ID: u32 = 2;
    pub(crate) const PATHS: u32 = 7;
}

pub(crate) mod render_stage {
    pub(crate) const EVENT_ID: u32 = 1;
    pub(crate) const DURATION: u32 = 2;
    pub(crate) const OLD_QUEUE: u32 = 3;
    pub(crate) const OLD_STAGE: u32 = 4;
    pub(crate) const CONTEXT: u32 = 5;
    pub(crate) const EXTRA_DATA: u32 = 6;
    pub(crate) const SUBMISSION_ID: u32 = 10;
    pub(crate) const GPU_ID: u32 = 11;
    pub(crate) const QUEUE: u32 = 13;
    pub(crate) const STAGE: u32 = 14;
    pub(crate) const NAME: u32 = 17;
    pub(crate) const KERNEL: u32 = 19;
    pub(crate) const NAME_IID: u32 = 20;
    pub(crate) const LAUNCH: u32 = 21;
    /// A launch's fields.
    pub(crate) const GRID: u32 = 1;
    pub(crate) const BLOCK: u32 = 2;
    pub(crate) const ARGUMENTS: u32 = 3;
    /// An argument's fields.
    pub(crate) const ARGUMENT_NAME_IID: u32 = 1;
    pub(crate) const ARGUMENT_NAME: u32 = 2;
    pub(crate) const ARGUMENT_UINT: u32 = 4;
    /// An extra datum's fields.
    pub(crate) const EXTRA_NAME: u32 = 1;
    pub(crate) const EXTRA_VALUE: u32 = 2;
}

pub(crate) mod gpu {
    /// Fields of an interned specification, context and kernel.
    pub(crate) const CATEGORY: u32 = 4;
    pub(crate) const COMPUTE: u64 = 2;
    pub(crate) const CONTEXT_PID: u32 = 2;
    pub(crate) const CONTEXT_API: u32 = 3;
    pub(crate) const CUDA: u64 = 4;
    pub(crate) const HIP: u64 = 5;
    pub(crate) const KERNEL_NAME: u32 = 2;
    pub(crate) const KERNEL_DEMANGLED: u32 = 3;
    /// Fields of `GpuInfo` and of a GPU in it.
    pub(crate) const GPUS: u32 = 1;
    pub(crate) const NAME: u32 = 1;
    pub(crate) const VENDOR: u32 = 2;
    pub(crate) const ARCHITECTURE: u32 = 4;
    pub(crate) const UUID: u32 = 5;
    pub(crate) const PCI: u32 = 7;
    /// Fields of a GPU counter event and of what it refers to.
    pub(crate) const COUNTER_DESCRIPTOR: u32 = 1;
    pub(crate) const COUNTERS: u32 = 2;
    pub(crate) const COUNTER_GPU: u32 = 3;
    pub(crate) const COUNTER_DESCRIPTOR_IID: u32 = 4;
    pub(crate) const COUNTER_DESCRIPTOR_IN_INTERNED: u32 = 2;
    pub(crate) const COUNTER_SPECS: u32 = 1;
    pub(crate) const VALUE_ID: u32 = 1;
    pub(crate) const VALUE_INT: u32 = 2;
    pub(crate) const VALUE_DOUBLE: u32 = 3;
    /// What a GPU correlation of a track event holds.
    pub(crate) const SUBMITTED_EVENTS: u32 = 1;
}
