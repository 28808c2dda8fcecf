//! The IDs that other tools use for devices, processes and threads.
//!
//! A trace numbers its devices and processes itself. Queries that people wrote for nsys compare with the GPU's number and
//! take a process ID out of `globalPid`, so the views with nsys' names have those.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use tracesmith_trace::Trace;

use crate::error::Error;
use crate::relation::Shared;

/// The IDs of one trace.
#[derive(Default)]
struct Ids {
    /// The CUDA index of each device.
    devices: HashMap<i64, i64>,
    /// nsys' `globalPid` of each process: the machine, the pid, and 24 bits for a thread.
    processes: HashMap<i64, i64>,
}

/// Bits of `globalTid` that hold the thread ID.
const THREAD_BITS: u32 = 24;
const LOW_BITS: i64 = (1 << THREAD_BITS) - 1;

impl Ids {
    fn of(trace: &Trace) -> Self {
        let devices = trace
            .devices
            .iter()
            .map(|device| (i64::from(device.id.0), i64::from(device.ordinal)));
        let processes = trace.processes.iter().map(|process| {
            let machine = i64::from(process.host.0.max(1) & 0x7fff) << 48;
            let pid = i64::from(process.pid) & LOW_BITS;
            (i64::from(process.id.0), machine | pid << THREAD_BITS)
        });
        Ids {
            devices: devices.collect(),
            processes: processes.collect(),
        }
    }
}

/// Registers `gpu_number`, `nsys_pid` and `nsys_tid`. With several traces, their first argument is the trace's name.
pub(crate) fn register(connection: &Connection, shared: &Arc<Shared>) -> Result<(), Error> {
    let traces = shared.traces.iter();
    let ids: Vec<(String, Ids)> = traces
        .map(|named| (named.name.clone(), Ids::of(&named.trace)))
        .collect();
    let ids = Arc::new(ids);
    // Views may call innocuous functions only.
    let flags =
        FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    let of = Arc::clone(&ids);
    connection.create_scalar_function("gpu_number", -1, flags, move |context| {
        let (ids, first) = trace_of(&of, context);
        let device: Option<i64> = argument(context, first)?;
        Ok(device.and_then(|device| ids?.devices.get(&device).copied()))
    })?;
    let of = Arc::clone(&ids);
    connection.create_scalar_function("nsys_pid", -1, flags, move |context| {
        let (ids, first) = trace_of(&of, context);
        let process: Option<i64> = argument(context, first)?;
        Ok(process.and_then(|process| ids?.processes.get(&process).copied()))
    })?;
    connection.create_scalar_function("nsys_tid", -1, flags, move |context| {
        let (trace, first) = trace_of(&ids, context);
        let process: Option<i64> = argument(context, first)?;
        let thread: Option<i64> = argument(context, first + 1)?;
        let process = process.and_then(|process| trace?.processes.get(&process).copied());
        Ok(process
            .zip(thread)
            .map(|(process, thread)| process | thread & LOW_BITS))
    })?;
    Ok(())
}

/// The IDs of the trace that a call is about, and the position of the first argument after the trace's name.
fn trace_of<'i>(ids: &'i [(String, Ids)], context: &Context<'_>) -> (Option<&'i Ids>, usize) {
    match ids {
        [(_, ids)] => (Some(ids), 0),
        several if context.is_empty() => (several.first().map(|(_, ids)| ids), 0),
        several => {
            let name = context.get_raw(0).as_str().unwrap_or_default();
            let found = several.iter().find(|(known, _)| known == name);
            (found.map(|(_, ids)| ids), 1)
        }
    }
}

fn argument(context: &Context<'_>, position: usize) -> rusqlite::Result<Option<i64>> {
    if position >= context.len() {
        return Ok(None);
    }
    context.get(position)
}
