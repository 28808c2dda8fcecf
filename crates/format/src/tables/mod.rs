//! The tables of a trace, one subject per file. docs/reference/format.md lists all columns.

mod allocation;
mod code;
mod collective;
mod copy;
mod graph;
mod host;
mod kernel;
mod marker;
mod origin;
mod place;
mod recording;
mod state;
mod sync;

pub use allocation::*;
pub use code::*;
pub use collective::*;
pub use copy::*;
pub use graph::*;
pub use host::*;
pub use kernel::*;
pub use marker::*;
pub use origin::*;
pub use place::*;
pub use recording::*;
pub use state::*;
pub use sync::*;

/// Calls a macro with every table that rows are pushed to: field name, row type. Adding a table here gives it a place in
/// the writer, the schema, the model and all commands that walk rows. The three dictionaries (strings, frames, stacks)
/// are not here: their rows get their ids by being interned.
#[macro_export]
macro_rules! for_each_table {
    ($callback:ident) => {
        $callback! {
            metadata: Metadata,
            hosts: Host,
            processes: Process,
            threads: Thread,
            devices: Device,
            contexts: Context,
            streams: Stream,
            images: Image,
            symbols: Symbol,
            clocks: Clock,
            clock_pairs: ClockPair,
            health: Health,
            modules: Module,
            commands: Command,
            buffers: Buffer,
            pieces: Piece,
            contents: Content,
            graph_edges: GraphEdge,
            kernels: Kernel,
            copies: MemoryCopy,
            sets: MemorySet,
            syncs: Synchronization,
            api_calls: ApiCall,
            allocations: Allocation,
            counters: Counter,
            markers: Marker,
            flows: Flow,
            host_calls: HostCall,
            graph_launches: GraphLaunch,
            collectives: Collective,
        }
    };
}

/// The twelve tables whose rows are events, for code that treats them alike.
#[macro_export]
macro_rules! for_each_event_table {
    ($callback:ident) => {
        $callback! {
            kernels: Kernel,
            copies: MemoryCopy,
            sets: MemorySet,
            syncs: Synchronization,
            api_calls: ApiCall,
            allocations: Allocation,
            counters: Counter,
            markers: Marker,
            flows: Flow,
            host_calls: HostCall,
            graph_launches: GraphLaunch,
            collectives: Collective,
        }
    };
}
