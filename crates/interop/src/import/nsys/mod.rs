//! Exports of NVIDIA Nsight Systems (`nsys export --type sqlite`), of all versions since 2021.
//!
//! Tables and columns differ between versions and with what was recorded, so everything is probed and nothing is
//! required. Rows keep their stored order. docs/reference/interop/sqlite.md lists what each table becomes. Other tables
//! are counted by name.

mod codes;
mod device;
mod host;
mod memory;
mod nvtx;
mod own;
pub(crate) mod session;
mod stacks;
mod target;

use crate::error::Error;
use crate::import::sqlite::{Database, MAGIC};
use crate::import::{Builder, ImportOptions, Importer, Input, rocpd};
use session::Session;

pub(super) const IMPORTER: Importer = Importer {
    name: "nsys",
    title: "nsys SQLite export",
    sniff,
    read,
};

/// Tables of events, with the columns that hold their earliest times.
const EVENTS: &[(&str, &str)] = &[
    ("CUPTI_ACTIVITY_KIND_KERNEL", "start"),
    ("CUPTI_ACTIVITY_KIND_MEMCPY", "start"),
    ("CUPTI_ACTIVITY_KIND_MEMSET", "start"),
    ("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "start"),
    ("CUPTI_ACTIVITY_KIND_CUDA_EVENT", "timestamp"),
    ("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "start"),
    ("CUPTI_ACTIVITY_KIND_RUNTIME", "start"),
    ("CUDA_GPU_MEMORY_USAGE_EVENTS", "start"),
    ("CUDA_GPU_MEMORY_POOL_EVENTS", "start"),
    ("NVTX_EVENTS", "start"),
    ("COMPOSITE_EVENTS", "start"),
    ("SCHED_EVENTS", "start"),
    ("GPU_METRICS", "timestamp"),
    ("TRACESMITH_HOST_CALLS", "start"),
    ("TRACESMITH_COLLECTIVES", "start"),
    ("TRACESMITH_COUNTERS", "timestamp"),
    ("TRACESMITH_MEMORY_EVENTS", "start"),
];

/// Tables that events point into, or that hold facts.
const FACTS: &[&str] = &[
    "StringIds",
    "CUDA_CALLCHAINS",
    "OSRT_CALLCHAINS",
    "SAMPLING_CALLCHAINS",
    "TRACESMITH_CALLCHAINS",
    "MPI_RANKS",
    "PROCESSES",
    "ThreadNames",
    "ProcessStreams",
    "DIAGNOSTIC_EVENT",
    "EXPORT_META_DATA",
    "UnwindMethodType",
];

/// What tables of names and facts begin with.
const FACT_PREFIXES: &[&str] = &["ENUM_", "META_DATA_", "TARGET_INFO_", "ANALYSIS_"];

/// Every SQLite file: which tables it has cannot be seen from its beginning.
fn sniff(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

fn read(input: &mut Input, _: &ImportOptions, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let name = input.name().to_owned();
    let db = Database::open(input, IMPORTER.name)?;
    if rocpd::is_rocpd(&db) {
        // Its schema did not stand at the beginning, where it would have been noticed.
        return rocpd::read_database(&db, builder);
    }
    check(&db)?;
    db.note_truncation(builder);
    let columns: Vec<(&str, &str)> = EVENTS
        .iter()
        .copied()
        .chain(host::CALLS.iter().map(|calls| (calls.table, "start")))
        .collect();
    let session = &mut Session::new(&db, &name, &columns, builder)?;
    target::machines(session, builder)?;
    target::capture(session, builder)?;
    target::session_start(session, builder)?;
    target::analysis(session, builder)?;
    host::api_calls(session, builder)?;
    device::kernels(session, builder)?;
    device::copies(session, builder)?;
    device::sets(session, builder)?;
    device::synchronizations(session, builder)?;
    device::event_records(session, builder)?;
    device::graph_launches(session, builder)?;
    memory::allocations(session, builder)?;
    memory::pools(session, builder)?;
    nvtx::markers(session, builder)?;
    for calls in host::CALLS {
        host::host_calls(calls, session, builder)?;
    }
    host::samples(session, builder)?;
    host::scheduling(session, builder)?;
    host::gpu_metrics(session, builder)?;
    own::host_calls(session, builder)?;
    own::collectives(session, builder)?;
    own::counters(session, builder)?;
    own::memory_events(session, builder)?;
    target::gpus(session, builder)?;
    target::processes(session, builder)?;
    target::streams(session, builder)?;
    target::diagnostics(session, builder)?;
    session.note_doubts(builder);
    for table in db.tables().filter(|table| !is_read(table)) {
        let rows = db.count(table, builder)?;
        builder.skip(&format!("rows of {table}"), rows);
    }
    Ok(())
}

/// A database of something else gets a line that says so.
fn check(db: &Database) -> Result<(), Error> {
    if EVENTS.iter().any(|(table, _)| db.has(table)) || db.has("StringIds") {
        return Ok(());
    }
    let tables: Vec<&str> = db.tables().take(5).collect();
    let problem = match tables[..] {
        [] => "it is a SQLite database without a table".to_owned(),
        _ => format!(
            "it is a SQLite database, but no nsys export: it has {}, and no StringIds, NVTX_EVENTS or \
             CUPTI_ACTIVITY_KIND_KERNEL",
            tables.join(", ")
        ),
    };
    Err(Error::Foreign {
        format: IMPORTER.name,
        problem,
        position: "schema".to_owned(),
    })
}

fn is_read(table: &str) -> bool {
    EVENTS.iter().any(|(known, _)| *known == table)
        || host::CALLS.iter().any(|calls| calls.table == table)
        || FACTS.contains(&table)
        || table.starts_with("sqlite_")
        || FACT_PREFIXES.iter().any(|prefix| table.starts_with(prefix))
}
