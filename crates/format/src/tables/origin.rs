//! Where a trace comes from: metadata, hosts, processes, threads, devices, contexts, streams.

use crate::ids::{
    Bytes, ContextId, DeviceId, HostId, Ordinal, ProcessId, StreamId, StringId, ThreadId, Timestamp, codes,
};
use crate::table::table;

table! {
    /// A fact about the recording. A later row with the same key replaces an earlier one.
    Metadata, MetadataRows, METADATA, times();
    /// What it is about, such as `command` or `env.CUDA_VISIBLE_DEVICES`.
    1 key: StringId, plain;
    /// The fact.
    2 value: StringId, plain;
}

table! {
    /// A machine.
    Host, Hosts, HOSTS, times();
    /// Its id.
    1 id: HostId, delta;
    /// Its name.
    2 name: StringId, plain;
    /// Operating system and version.
    3 os: StringId, plain;
    /// Processor model.
    4 cpu: StringId, plain;
    /// Logical processors.
    5 cpus: u32, plain;
    /// Memory.
    6 memory: Bytes, plain;
    /// A number that stays the same from boot to boot.
    7 machine_id: StringId, plain;
    /// A number that changes with every boot. Monotonic clocks of two traces compare only when it is the same.
    8 boot_id: StringId, plain;
}

table! {
    /// A process.
    Process, Processes, PROCESSES, times();
    /// Its id.
    1 id: ProcessId, delta;
    /// The machine it ran on.
    2 host: HostId, plain;
    /// The operating system's number of it.
    3 pid: u32, plain;
    /// The operating system's number of its parent.
    4 parent_pid: u32, plain;
    /// The program.
    5 name: StringId, plain;
    /// The command line.
    6 command: StringId, plain;
    /// When it started.
    7 started: Timestamp, plain;
    /// When it ended.
    8 ended: Timestamp, plain;
    /// How it ended.
    9 end: ProcessEnd, plain;
    /// Exit code, or the number of the signal that ended it.
    10 end_code: i32, plain;
    /// Its rank in a distributed job; may be none.
    11 rank: Ordinal, plain;
    /// Its rank on this host; may be none.
    12 local_rank: Ordinal, plain;
    /// Ranks in the job; 0 is none.
    13 world_size: u32, plain;
}

table! {
    /// A thread.
    Thread, Threads, THREADS, times();
    /// Its process.
    1 process: ProcessId, plain;
    /// The operating system's number of it.
    2 thread: ThreadId, delta;
    /// Its name.
    3 name: StringId, plain;
}

table! {
    /// A GPU.
    Device, Devices, DEVICES, times();
    /// Its id.
    1 id: DeviceId, delta;
    /// The machine it is in.
    2 host: HostId, plain;
    /// The number that the driver gives it when all are visible.
    3 ordinal: u32, plain;
    /// A number that tells it from all others.
    4 uuid: StringId, plain;
    /// Its name.
    5 name: StringId, plain;
    /// Who made it.
    6 vendor: StringId, plain;
    /// Its architecture.
    7 architecture: StringId, plain;
    /// Compute capability, first number.
    8 capability_major: u32, plain;
    /// Compute capability, second number.
    9 capability_minor: u32, plain;
    /// Memory.
    10 memory: Bytes, plain;
    /// Multiprocessors or compute units.
    11 multiprocessors: u32, plain;
    /// Threads in a warp or wavefront.
    12 warp_size: u32, plain;
    /// Most threads on a multiprocessor.
    13 threads_per_multiprocessor: u32, plain;
    /// Most blocks on a multiprocessor.
    14 blocks_per_multiprocessor: u32, plain;
    /// Registers of a multiprocessor.
    15 registers_per_multiprocessor: u32, plain;
    /// Shared memory of a multiprocessor.
    16 shared_per_multiprocessor: Bytes, plain;
    /// Shared memory that a block may take.
    17 shared_per_block: Bytes, plain;
    /// Second-level cache.
    18 cache: Bytes, plain;
    /// Top clock of the multiprocessors in kHz.
    19 clock_khz: u32, plain;
    /// Top clock of the memory in kHz.
    20 memory_clock_khz: u32, plain;
    /// Peak bandwidth of the memory in bytes a second.
    21 memory_bandwidth: u64, plain;
    /// PCI address.
    22 pci: StringId, plain;
    /// Driver version.
    23 driver: StringId, plain;
    /// Copy engines.
    24 copy_engines: u32, plain;
    /// NUMA node that it is attached to; may be none.
    25 numa_node: Ordinal, plain;
    /// Best generation of PCIe that it and its slot can do.
    26 pcie_generation: u32, plain;
    /// Most lanes of PCIe that they can do.
    27 pcie_width: u32, plain;
    /// NVLinks that are up.
    28 nvlinks: u32, plain;
    /// Bytes a second that all its NVLinks carry in each direction.
    29 nvlink_bandwidth: u64, plain;
}

table! {
    /// A context.
    Context, Contexts, CONTEXTS, times();
    /// Its process.
    1 process: ProcessId, plain;
    /// The runtime's number of it.
    2 context: ContextId, delta;
    /// Its device.
    3 device: DeviceId, plain;
    /// The runtime's number of its default stream.
    4 default_stream: StreamId, plain;
    /// The context that it is a part of.
    5 parent: ContextId, plain;
    /// Multiprocessors it may use; 0 is all.
    6 multiprocessors: u32, plain;
    /// When it was made.
    7 created: Timestamp, plain;
    /// When it was destroyed.
    8 destroyed: Timestamp, plain;
}

table! {
    /// A stream.
    Stream, Streams, STREAMS, times();
    /// Its process.
    1 process: ProcessId, plain;
    /// Its context.
    2 context: ContextId, plain;
    /// The runtime's number of it.
    3 stream: StreamId, delta;
    /// Its device.
    4 device: DeviceId, plain;
    /// What orders it against other streams.
    5 kind: StreamKind, plain;
    /// Its priority; lower runs first.
    6 priority: i32, plain;
    /// Its name, if the program gave it one.
    7 name: StringId, plain;
    /// When it was made.
    8 created: Timestamp, plain;
    /// When it was destroyed.
    9 destroyed: Timestamp, plain;
}

codes! {
    /// How a process ended.
    ProcessEnd {
        /// Not seen.
        UNKNOWN = 0 "unknown",
        /// By itself.
        EXITED = 1 "exited",
        /// By a signal.
        KILLED = 2 "killed",
        /// It was still running when the recording ended.
        RUNNING = 3 "running",
        /// It became another program.
        REPLACED = 4 "replaced",
    }

    /// What orders a stream against others.
    StreamKind {
        /// Not known.
        UNKNOWN = 0 "unknown",
        /// The default stream that waits for all others.
        LEGACY_DEFAULT = 1 "legacy default",
        /// A default stream of a thread.
        PER_THREAD_DEFAULT = 2 "per-thread default",
        /// Waits for the default stream.
        BLOCKING = 3 "blocking",
        /// Does not.
        NON_BLOCKING = 4 "non-blocking",
    }
}
