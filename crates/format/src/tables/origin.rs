//! Where a trace comes from: metadata, hosts, processes, threads, devices, contexts, streams.

use crate::ids::{
    Bytes, ContextId, DeviceId, HostId, Ordinal, ProcessId, StreamId, StringId, ThreadId, Timestamp, codes,
};
use crate::table::table;

table! {
    /// One metadata entry. A later row with the same key replaces an earlier one.
    Metadata, MetadataRows, METADATA, times();
    /// The key, such as `command` or `env.CUDA_VISIBLE_DEVICES`.
    1 key: StringId, plain;
    /// The value.
    2 value: StringId, plain;
}

table! {
    /// A machine.
    Host, Hosts, HOSTS, times();
    /// The ID of the row.
    1 id: HostId, delta;
    /// The name.
    2 name: StringId, plain;
    /// Operating system and version.
    3 os: StringId, plain;
    /// The processor model.
    4 cpu: StringId, plain;
    /// The number of logical processors.
    5 cpus: u32, plain;
    /// The amount of memory.
    6 memory: Bytes, plain;
    /// The machine ID, which does not change between boots.
    7 machine_id: StringId, plain;
    /// The boot ID, which changes with every boot. Monotonic clocks of two traces are comparable only if it is the
    /// same.
    8 boot_id: StringId, plain;
}

table! {
    /// A process.
    Process, Processes, PROCESSES, times();
    /// The ID of the row.
    1 id: ProcessId, delta;
    /// The host.
    2 host: HostId, plain;
    /// The ID that the operating system uses.
    3 pid: u32, plain;
    /// The pid of the parent.
    4 parent_pid: u32, plain;
    /// The name of the program.
    5 name: StringId, plain;
    /// The command line.
    6 command: StringId, plain;
    /// The start time.
    7 started: Timestamp, plain;
    /// The end time.
    8 ended: Timestamp, plain;
    /// How the process ended.
    9 end: ProcessEnd, plain;
    /// The exit code, or the number of the signal that killed it.
    10 end_code: i32, plain;
    /// The rank in a distributed job, if any.
    11 rank: Ordinal, plain;
    /// The rank on this host, if any.
    12 local_rank: Ordinal, plain;
    /// The number of ranks in the job; 0 is none.
    13 world_size: u32, plain;
}

table! {
    /// A thread.
    Thread, Threads, THREADS, times();
    /// The process.
    1 process: ProcessId, plain;
    /// The ID that the operating system uses.
    2 thread: ThreadId, delta;
    /// The name.
    3 name: StringId, plain;
}

table! {
    /// A GPU.
    Device, Devices, DEVICES, times();
    /// The ID of the row.
    1 id: DeviceId, delta;
    /// The host.
    2 host: HostId, plain;
    /// The driver's number if all devices are visible.
    3 ordinal: u32, plain;
    /// The UUID.
    4 uuid: StringId, plain;
    /// The name.
    5 name: StringId, plain;
    /// The vendor.
    6 vendor: StringId, plain;
    /// The architecture.
    7 architecture: StringId, plain;
    /// Compute capability, first number.
    8 capability_major: u32, plain;
    /// Compute capability, second number.
    9 capability_minor: u32, plain;
    /// The amount of memory.
    10 memory: Bytes, plain;
    /// The number of multiprocessors or compute units.
    11 multiprocessors: u32, plain;
    /// The number of threads in a warp or wavefront.
    12 warp_size: u32, plain;
    /// The most threads per multiprocessor.
    13 threads_per_multiprocessor: u32, plain;
    /// The most blocks per multiprocessor.
    14 blocks_per_multiprocessor: u32, plain;
    /// Registers per multiprocessor.
    15 registers_per_multiprocessor: u32, plain;
    /// Shared memory per multiprocessor.
    16 shared_per_multiprocessor: Bytes, plain;
    /// The most shared memory per block.
    17 shared_per_block: Bytes, plain;
    /// The size of the L2 cache.
    18 cache: Bytes, plain;
    /// The highest multiprocessor clock in kHz.
    19 clock_khz: u32, plain;
    /// The highest memory clock in kHz.
    20 memory_clock_khz: u32, plain;
    /// The peak memory bandwidth in bytes per second.
    21 memory_bandwidth: u64, plain;
    /// The PCI address.
    22 pci: StringId, plain;
    /// The driver version.
    23 driver: StringId, plain;
    /// The number of copy engines.
    24 copy_engines: u32, plain;
    /// The NUMA node, if any.
    25 numa_node: Ordinal, plain;
    /// The best PCIe generation that the device and its slot support.
    26 pcie_generation: u32, plain;
    /// The most PCIe lanes that both support.
    27 pcie_width: u32, plain;
    /// The number of active NVLinks.
    28 nvlinks: u32, plain;
    /// The bandwidth of all NVLinks in one direction, in bytes per second.
    29 nvlink_bandwidth: u64, plain;
}

table! {
    /// A context.
    Context, Contexts, CONTEXTS, times();
    /// The process.
    1 process: ProcessId, plain;
    /// The ID that the runtime uses.
    2 context: ContextId, delta;
    /// The device.
    3 device: DeviceId, plain;
    /// The runtime's ID of the default stream.
    4 default_stream: StreamId, plain;
    /// The parent context.
    5 parent: ContextId, plain;
    /// The number of multiprocessors it may use; 0 is all.
    6 multiprocessors: u32, plain;
    /// The time of creation.
    7 created: Timestamp, plain;
    /// The time of destruction.
    8 destroyed: Timestamp, plain;
}

table! {
    /// A stream.
    Stream, Streams, STREAMS, times();
    /// The process.
    1 process: ProcessId, plain;
    /// The context.
    2 context: ContextId, plain;
    /// The ID that the runtime uses.
    3 stream: StreamId, delta;
    /// The device.
    4 device: DeviceId, plain;
    /// The kind of stream.
    5 kind: StreamKind, plain;
    /// The priority; lower values run first.
    6 priority: i32, plain;
    /// The name, if the program set one.
    7 name: StringId, plain;
    /// The time of creation.
    8 created: Timestamp, plain;
    /// The time of destruction.
    9 destroyed: Timestamp, plain;
}

codes! {
    /// How a process ended.
    ProcessEnd {
        /// Unknown.
        UNKNOWN = 0 "unknown",
        /// The process exited.
        EXITED = 1 "exited",
        /// A signal killed the process.
        KILLED = 2 "killed",
        /// The process was still running at the end of the recording.
        RUNNING = 3 "running",
        /// The process executed another program (`exec`).
        REPLACED = 4 "replaced",
    }

    /// How a stream synchronizes with the default stream.
    StreamKind {
        /// Unknown.
        UNKNOWN = 0 "unknown",
        /// The legacy default stream, which synchronizes with all blocking streams.
        LEGACY_DEFAULT = 1 "legacy default",
        /// The default stream of a thread.
        PER_THREAD_DEFAULT = 2 "per-thread default",
        /// A stream that synchronizes with the legacy default stream.
        BLOCKING = 3 "blocking",
        /// A stream that does not.
        NON_BLOCKING = 4 "non-blocking",
    }
}
