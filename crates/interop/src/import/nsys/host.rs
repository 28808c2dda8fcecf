//! What the host did: calls of CUDA, of the operating system and of libraries, samples, and the profiler's own work.

use std::fmt::Write;

use rustc_hash::FxHashMap;
use tracesmith_format::tables::*;
use tracesmith_format::{StackId, StringId};

use super::codes::{self, Codes};
use super::session::Session;
use super::stacks::chains;
use crate::error::Error;
use crate::import::Builder;
use crate::import::sqlite::Column;

/// The classes of calls that mean the runtime and the driver; others tell by their names.
const RUNTIME_CLASS: i64 = 0;
const DRIVER_CLASS: i64 = 1;

pub(super) fn api_calls(session: &mut Session<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let db = session.db;
    let Some(mut query) = db.query("CUPTI_ACTIVITY_KIND_RUNTIME") else {
        return Ok(());
    };
    session.cuda_stacks = chains("CUDA_CALLCHAINS", session, builder)?;
    let (start, end) = (query.column("start"), query.column("end"));
    let (class, thread) = (query.column("eventClass"), query.column("globalTid"));
    let (correlation, name) = (query.column("correlationId"), query.column("nameId"));
    let (result, chain) = (query.column("returnValue"), query.column("callchainId"));
    let mut domains = FxHashMap::default();
    db.read(&query, builder, |row, builder| {
        let (start, end) = session.span(row.integer(start), row.integer(end));
        let name_id = row.integer(name);
        let domain = match row.integer(class) {
            Some(RUNTIME_CLASS) => ApiDomain::CUDA_RUNTIME,
            Some(DRIVER_CLASS) => ApiDomain::CUDA_DRIVER,
            _ => *domains
                .entry(name_id)
                .or_insert_with(|| domain_of(session.text(name_id).unwrap_or_default())),
        };
        let call = ApiCall {
            start,
            end,
            correlation: session.correlation(row.integer(correlation)),
            stack: stack_of(&session.cuda_stacks, row.integer(chain)),
            caller: session.caller(row.integer(thread), builder)?,
            shape: ApiShape {
                name: session.name(name_id, builder)?,
                domain,
                result: session.number(row.integer(result)),
                ..ApiShape::default()
            },
        };
        builder.push(session.clock, &call)
    })
}

/// A table of calls that are neither of CUDA.
pub(super) struct Calls {
    pub(super) table: &'static str,
    kind: HostCallKind,
    category: &'static str,
    /// Columns that are kept as text.
    details: &'static [&'static str],
}

const fn calls(
    table: &'static str,
    kind: HostCallKind,
    category: &'static str,
    details: &'static [&'static str],
) -> Calls {
    Calls {
        table,
        kind,
        category,
        details,
    }
}

/// All such tables.
#[rustfmt::skip]
pub(super) const CALLS: &[Calls] = &[
    calls("OSRT_API", HostCallKind::OS, "OSRT", &[]),
    calls("SYSCALL", HostCallKind::OS, "syscall", &[]),
    calls("CUBLAS_EVENTS", HostCallKind::FUNCTION, "cuBLAS", &[]),
    calls("CUDNN_EVENTS", HostCallKind::FUNCTION, "cuDNN", &[]),
    calls("MPI_P2P_EVENTS", HostCallKind::FUNCTION, "MPI", &["commHandle", "tag", "remoteRank", "size", "requestHandle"]),
    calls("MPI_COLLECTIVES_EVENTS", HostCallKind::FUNCTION, "MPI", &["commHandle", "rootRank", "size", "recvSize", "requestHandle"]),
    calls("MPI_START_WAIT_EVENTS", HostCallKind::FUNCTION, "MPI", &["requestHandle"]),
    calls("MPI_OTHER_EVENTS", HostCallKind::FUNCTION, "MPI", &[]),
    calls("UCP_SUBMIT_EVENTS", HostCallKind::FUNCTION, "UCP", &["bufferAddr", "packedSize", "peerWorkerUid", "tag"]),
    calls("UCP_PROGRESS_EVENTS", HostCallKind::FUNCTION, "UCP", &["bufferAddr", "packedSize", "peerWorkerUid", "tag"]),
    calls("UCP_EVENTS", HostCallKind::FUNCTION, "UCP", &[]),
    calls("CUDA_GRAPH_EVENTS", HostCallKind::CUSTOM, "CUDA graph", &["graphId", "originalGraphId", "graphExecId", "graphNodeId", "originalGraphNodeId"]),
    calls("CUDA_GRAPH_NODE_EVENTS", HostCallKind::CUSTOM, "CUDA graph node", &["graphNodeId", "originalGraphNodeId"]),
    calls("CUPTI_ACTIVITY_KIND_OPENACC_DATA", HostCallKind::FUNCTION, "OpenACC", &["bytes", "lineNo"]),
    calls("CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH", HostCallKind::FUNCTION, "OpenACC", &["numGangs", "numWorkers", "vectorLength", "lineNo"]),
    calls("CUPTI_ACTIVITY_KIND_OPENACC_OTHER", HostCallKind::FUNCTION, "OpenACC", &["lineNo"]),
    calls("PROFILER_OVERHEAD", HostCallKind::OVERHEAD, "profiler", &[]),
    calls("CUPTI_ACTIVITY_KIND_OVERHEAD", HostCallKind::OVERHEAD, "CUPTI", &[]),
];

/// Reads one of them.
pub(super) fn host_calls(
    calls: &Calls,
    session: &mut Session<'_>,
    builder: &mut Builder<'_, '_>,
) -> Result<(), Error> {
    let db = session.db;
    let Some(mut query) = db.query(calls.table) else {
        return Ok(());
    };
    let overheads = Codes::load(db, "ENUM_CUPTI_OVERHEAD_TYPE", codes::OVERHEADS, builder)?;
    let stacks = match calls.kind {
        HostCallKind::OS => chains("OSRT_CALLCHAINS", session, builder)?,
        _ => FxHashMap::default(),
    };
    let (start, end) = (query.column("start"), query.column("end"));
    let (thread, correlation) = (query.column("globalTid"), query.column("correlationId"));
    let name = query.column(if query.has("nameId") { "nameId" } else { "textId" });
    let (depth, chain) = (query.column("nestingLevel"), query.column("callchainId"));
    let (result, overhead) = (query.column("returnValue"), query.column("overheadType"));
    let details: Vec<(&str, Column)> = calls
        .details
        .iter()
        .map(|name| (*name, query.column(name)))
        .collect();
    let category = builder.string(calls.category)?;
    db.read(&query, builder, |row, builder| {
        let (start, end) = session.open_span(row.integer(start), row.integer(end));
        let mut detail = String::new();
        for (name, column) in &details {
            if let Some(value) = row.integer(*column) {
                let gap = if detail.is_empty() { "" } else { " " };
                // A string takes everything.
                let _ = write!(detail, "{gap}{name}={value}");
            }
        }
        let call = HostCall {
            start,
            end,
            correlation: session.correlation(row.integer(correlation)),
            depth: session.number(row.integer(depth)),
            argument: row.integer(result).unwrap_or(0) as u64,
            stack: stack_of(&stacks, row.integer(chain)),
            detail: builder.string(&detail)?,
            caller: session.caller(row.integer(thread), builder)?,
            shape: HostShape {
                name: session.name(row.integer(name), builder)?,
                kind: overheads.get(row.integer(overhead)).unwrap_or(calls.kind),
                category,
                ..HostShape::default()
            },
            ..HostCall::default()
        };
        builder.push(session.clock, &call)
    })
}

/// Samples of threads, each with the stack that has its number.
pub(super) fn samples(session: &mut Session<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let db = session.db;
    let Some(mut query) = db.query("COMPOSITE_EVENTS") else {
        return Ok(());
    };
    let stacks = chains("SAMPLING_CALLCHAINS", session, builder)?;
    let (id, time, cpu) = (query.column("id"), query.column("start"), query.column("cpu"));
    let (thread, cycles) = (query.column("globalTid"), query.column("cpuCycles"));
    let name = builder.string("sample")?;
    db.read(&query, builder, |row, builder| {
        let time = session.time(row.integer(time));
        let call = HostCall {
            start: time,
            end: time,
            cpu: session.number(row.integer(cpu)),
            argument: session.number(row.integer(cycles)),
            stack: stack_of(&stacks, row.integer(id)),
            caller: session.caller(row.integer(thread), builder)?,
            shape: HostShape {
                name,
                kind: HostCallKind::SAMPLE,
                ..HostShape::default()
            },
            ..HostCall::default()
        };
        builder.push(session.clock, &call)
    })
}

/// Moments at which a thread got a processor or lost it.
pub(super) fn scheduling(session: &mut Session<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let db = session.db;
    let Some(mut query) = db.query("SCHED_EVENTS") else {
        return Ok(());
    };
    let (time, cpu) = (query.column("start"), query.column("cpu"));
    let (into, thread) = (query.column("isSchedIn"), query.column("globalTid"));
    let (scheduled_in, scheduled_out) = (builder.string("scheduled in")?, builder.string("scheduled out")?);
    let category = builder.string("scheduling")?;
    db.read(&query, builder, |row, builder| {
        let time = session.time(row.integer(time));
        let call = HostCall {
            start: time,
            end: time,
            cpu: session.number(row.integer(cpu)),
            caller: session.caller(row.integer(thread), builder)?,
            shape: HostShape {
                name: match row.integer(into) {
                    Some(0) => scheduled_out,
                    _ => scheduled_in,
                },
                kind: HostCallKind::CUSTOM,
                category,
                ..HostShape::default()
            },
            ..HostCall::default()
        };
        builder.push(session.clock, &call)
    })
}

/// Samples of GPU counters. A metric's source tells the GPU by its lowest byte.
pub(super) fn gpu_metrics(session: &mut Session<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let db = session.db;
    let Some(mut query) = db.query("GPU_METRICS") else {
        return Ok(());
    };
    let metrics = metric_names(session, builder)?;
    let (time, source) = (query.column("timestamp"), query.column("typeId"));
    let (metric, value) = (query.column("metricId"), query.column("value"));
    let mut tracks: FxHashMap<(i64, i64), CounterTrack> = FxHashMap::default();
    db.read(&query, builder, |row, builder| {
        let (Some(metric), Some(value)) = (row.integer(metric), row.number(value)) else {
            builder.skip("samples of GPU metrics without a metric or value", 1);
            return Ok(());
        };
        let source = row.integer(source).unwrap_or(0);
        let track = match tracks.get(&(source, metric)) {
            Some(track) => *track,
            None => {
                let name = metrics
                    .get(&(source, metric))
                    .or_else(|| metrics.get(&(0, metric)));
                let name = match name {
                    Some(name) => *name,
                    None => builder.string(&format!("metric {metric}"))?,
                };
                let track = CounterTrack {
                    name,
                    device: session.device(Some(source), Some(source & 0xff), builder)?,
                    ..CounterTrack::default()
                };
                tracks.insert((source, metric), track);
                track
            }
        };
        let time = session.time(row.integer(time));
        builder.push(session.clock, &Counter { time, value, track })
    })
}

fn metric_names(
    session: &mut Session<'_>,
    builder: &mut Builder<'_, '_>,
) -> Result<FxHashMap<(i64, i64), StringId>, Error> {
    let mut names = FxHashMap::default();
    if let Some(mut query) = session.db.query("TARGET_INFO_GPU_METRICS") {
        let (source, metric) = (query.column("typeId"), query.column("metricId"));
        let name = query.column("metricName");
        session.db.read(&query, builder, |row, builder| {
            if let (Some(metric), Some(name)) = (row.integer(metric), row.text(name)) {
                let name = builder.string(&name)?;
                names.insert((row.integer(source).unwrap_or(0), metric), name);
                names.entry((0, metric)).or_insert(name);
            }
            Ok(())
        })?;
    }
    Ok(names)
}

pub(super) fn stack_of(stacks: &FxHashMap<i64, StackId>, id: Option<i64>) -> StackId {
    id.and_then(|id| stacks.get(&id))
        .copied()
        .unwrap_or(StackId::NONE)
}

/// The interface that a function of this name belongs to.
fn domain_of(name: &str) -> ApiDomain {
    if name.starts_with("cuda") {
        ApiDomain::CUDA_RUNTIME
    } else if name.starts_with("cu") {
        ApiDomain::CUDA_DRIVER
    } else {
        ApiDomain::UNKNOWN
    }
}
