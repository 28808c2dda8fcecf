//! The words of our own exports: categories and argument names. The importer knows an export of ours by them and puts
//! everything back where it came from.

use tracesmith_format::tables::ApiDomain;

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($constant:ident = $number:literal $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct $name(pub(crate) u8);

        impl $name {
            $(pub(crate) const $constant: Self = Self($number);)*
            /// All of them with their texts.
            pub(crate) const ALL: &'static [(Self, &'static str)] = &[$((Self($number), $text)),*];
        }
    };
}

words! {
    /// What kind of row an event came from.
    Category {
        KERNEL = 1 "kernel",
        COPY = 2 "copy",
        SET = 3 "set",
        SYNC = 4 "sync",
        API = 5 "api",
        ALLOCATION = 6 "allocation",
        MARKER = 7 "nvtx",
        HOST = 8 "host",
        GRAPH = 9 "graph",
        COLLECTIVE = 10 "collective",
        FLOW = 11 "flow",
    }
}

/// Interfaces of calls: a second category, which takes less room than an argument.
const FIRST_DOMAIN: u64 = 32;

/// The number that an interface is interned by as a category.
pub(crate) fn api_domain(domain: ApiDomain) -> u64 {
    FIRST_DOMAIN + u64::from(domain.0)
}

/// All interfaces that have a name, by number.
pub(crate) fn api_domains() -> impl Iterator<Item = (u64, &'static str)> {
    let known = ApiDomain::ALL
        .iter()
        .filter(|domain| **domain != ApiDomain::UNKNOWN);
    known.filter_map(|domain| Some((api_domain(*domain), domain.name()?)))
}

words! {
    /// An argument's name.
    Argument {
        CORRELATION = 1 "correlation",
        GRID = 2 "grid",
        BLOCK = 3 "block",
        CLUSTER = 4 "cluster",
        REGISTERS = 5 "registers",
        STATIC_SHARED = 6 "static shared memory",
        DYNAMIC_SHARED = 7 "dynamic shared memory",
        LOCAL = 8 "local memory per thread",
        GRAPH = 9 "graph",
        GRAPH_NODE = 10 "graph node",
        BYTES = 11 "bytes",
        BANDWIDTH = 12 "bandwidth (bytes/s)",
        FROM = 13 "from",
        TO = 14 "to",
        STACK = 15 "stack",
        MANGLED = 16 "mangled name",
        RESULT = 17 "result",
        EVENT = 19 "event",
        EVENT_RECORD = 20 "event record",
        ADDRESS = 21 "address",
        MEMORY = 22 "memory",
        ALLOCATOR = 23 "allocator",
        DOMAIN = 24 "domain",
        CATEGORY_NAME = 25 "category",
        PAYLOAD = 26 "payload",
        DETAIL = 27 "detail",
        KIND = 28 "kind",
        SEQUENCE = 29 "sequence",
        ARGUMENT = 30 "argument",
        NODES = 31 "nodes",
        COMMUNICATOR = 32 "communicator",
        RANK = 33 "rank",
        RANKS = 34 "ranks",
        ROOT = 35 "root",
        DATATYPE = 36 "datatype",
        REDUCTION = 37 "reduction",
        ALGORITHM = 38 "algorithm",
        PROTOCOL = 39 "protocol",
        QUEUED = 40 "queued (ns before)",
        VALUE = 41 "value",
        COPIES = 42 "copies",
        EXECUTABLE = 43 "executable graph",
        COUNT = 44 "count",
        THREAD = 45 "thread",
        DEVICE = 46 "device",
    }
}

/// What the description of a stream's track begins with; its place follows as `key number` pairs.
pub(crate) const PLACE: &str = "place:";
/// The description of a track whose values are added up from other events.
pub(crate) const DERIVED: &str = "derived: from allocations";
/// The attribute that names the program that wrote a trace, and our name in it.
pub(crate) const WRITER: &str = "writer";
pub(crate) const OURSELVES: &str = "tracesmith";
/// What attributes with the recording's own metadata begin with.
pub(crate) const METADATA: &str = "metadata.";
