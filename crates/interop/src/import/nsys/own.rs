//! Tables that only our own exports have: what nsys has no table for.

use tracesmith_format::Address;
use tracesmith_format::tables::*;
use tracesmith_format::{Bytes, Ordinal};

use super::host::stack_of;
use super::session::{PlaceKey, Session};
use super::stacks::chains;
use crate::error::Error;
use crate::import::{Builder, code};

pub(super) fn host_calls(session: &mut Session<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let db = session.db;
    let Some(mut query) = db.query("TRACESMITH_HOST_CALLS") else {
        return Ok(());
    };
    let stacks = chains("TRACESMITH_CALLCHAINS", session, builder)?;
    let (start, end) = (query.column("start"), query.column("end"));
    let (thread, correlation) = (query.column("globalTid"), query.column("correlationId"));
    let (name, category) = (query.column("nameId"), query.column("categoryId"));
    let (kind, detail) = (query.column("kind"), query.column("detail"));
    let (sequence, depth, cpu) = (
        query.column("sequence"),
        query.column("depth"),
        query.column("cpu"),
    );
    let (argument, chain) = (query.column("argument"), query.column("callchainId"));
    db.read(&query, builder, |row, builder| {
        let (start, end) = session.open_span(row.integer(start), row.integer(end));
        let call = HostCall {
            start,
            end,
            correlation: session.correlation(row.integer(correlation)),
            sequence: row.integer(sequence).unwrap_or(0),
            depth: session.number(row.integer(depth)),
            cpu: session.number(row.integer(cpu)),
            argument: row.integer(argument).unwrap_or(0) as u64,
            stack: stack_of(&stacks, row.integer(chain)),
            detail: builder.string(&row.text(detail).unwrap_or_default())?,
            caller: session.caller(row.integer(thread), builder)?,
            shape: HostShape {
                name: session.name(row.integer(name), builder)?,
                kind: code(
                    HostCallKind::ALL,
                    HostCallKind::name,
                    &row.text(kind).unwrap_or_default(),
                ),
                category: session.name(row.integer(category), builder)?,
                ..HostShape::default()
            },
        };
        builder.push(session.clock, &call)
    })
}

pub(super) fn collectives(session: &mut Session<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let db = session.db;
    let Some(mut query) = db.query("TRACESMITH_COLLECTIVES") else {
        return Ok(());
    };
    let (start, end) = (query.column("start"), query.column("end"));
    let (process, device, stream) = (
        query.column("globalPid"),
        query.column("deviceId"),
        query.column("streamId"),
    );
    let (name, correlation) = (query.column("nameId"), query.column("correlationId"));
    let (kind, datatype) = (query.column("kind"), query.column("datatype"));
    let (communicator, sequence) = (query.column("communicator"), query.column("sequence"));
    let (rank, ranks, root) = (query.column("rank"), query.column("ranks"), query.column("root"));
    let (count, bytes) = (query.column("count"), query.column("bytes"));
    db.read(&query, builder, |row, builder| {
        let (start, end) = session.open_span(row.integer(start), row.integer(end));
        let ordinal = |number: Option<i64>| {
            let number = number.and_then(|number| u32::try_from(number).ok());
            number.map_or(Ordinal::NONE, Ordinal::new)
        };
        let collective = Collective {
            start,
            end,
            sequence: session.number(row.integer(sequence)),
            count: session.number(row.integer(count)),
            bytes: Bytes(session.number(row.integer(bytes))),
            correlation: session.correlation(row.integer(correlation)),
            place: Place {
                process: session.process(row.integer(process), builder)?,
                device: session.device(row.integer(process), row.integer(device), builder)?,
                stream: tracesmith_format::StreamId(session.number(row.integer(stream))),
                ..Place::default()
            },
            shape: CollectiveShape {
                name: session.name(row.integer(name), builder)?,
                kind: code(
                    CollectiveKind::ALL,
                    CollectiveKind::name,
                    &row.text(kind).unwrap_or_default(),
                ),
                // All 64 bits of it are used.
                communicator: row.integer(communicator).unwrap_or(0).cast_unsigned(),
                rank: ordinal(row.integer(rank)),
                ranks: session.number(row.integer(ranks)),
                root: ordinal(row.integer(root)),
                datatype: builder.string(&row.text(datatype).unwrap_or_default())?,
                ..CollectiveShape::default()
            },
            ..Collective::default()
        };
        builder.push(session.clock, &collective)
    })
}

/// Counters that belong to no device.
pub(super) fn counters(session: &mut Session<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let db = session.db;
    let Some(mut query) = db.query("TRACESMITH_COUNTERS") else {
        return Ok(());
    };
    let (time, value) = (query.column("timestamp"), query.column("value"));
    let (name, unit) = (query.column("name"), query.column("unit"));
    let (process, instance) = (query.column("globalPid"), query.column("instance"));
    db.read(&query, builder, |row, builder| {
        let Some(value) = row.number(value) else {
            builder.skip("counters without a value", 1);
            return Ok(());
        };
        let track = CounterTrack {
            name: builder.string(&row.text(name).unwrap_or_default())?,
            unit: builder.string(&row.text(unit).unwrap_or_default())?,
            process: match row.integer(process) {
                Some(process) => session.process(Some(process), builder)?,
                None => tracesmith_format::ProcessId::NONE,
            },
            instance: session.number(row.integer(instance)),
            ..CounterTrack::default()
        };
        let time = session.time(row.integer(time));
        builder.push(session.clock, &Counter { time, value, track })
    })
}

/// Reservations, mappings and page locks.
pub(super) fn memory_events(session: &mut Session<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let db = session.db;
    let Some(mut query) = db.query("TRACESMITH_MEMORY_EVENTS") else {
        return Ok(());
    };
    let (time, process) = (query.column("start"), query.column("globalPid"));
    let (device, context) = (query.column("deviceId"), query.column("contextId"));
    let (address, bytes) = (query.column("address"), query.column("bytes"));
    let (operation, memory) = (query.column("operation"), query.column("memory"));
    let correlation = query.column("correlationId");
    db.read(&query, builder, |row, builder| {
        let place = session.place(
            PlaceKey {
                process: row.integer(process),
                device: row.integer(device),
                context: row.integer(context),
                stream: Some(super::session::NO_NUMBER),
            },
            builder,
        )?;
        let allocation = Allocation {
            time: session.time(row.integer(time)),
            address: Address(row.integer(address).unwrap_or(0).cast_unsigned()),
            bytes: Bytes(session.number(row.integer(bytes))),
            correlation: session.correlation(row.integer(correlation)),
            place,
            shape: AllocationShape {
                operation: code(
                    MemoryOperation::ALL,
                    MemoryOperation::name,
                    &row.text(operation).unwrap_or_default(),
                ),
                memory: code(
                    MemoryKind::ALL,
                    MemoryKind::name,
                    &row.text(memory).unwrap_or_default(),
                ),
                ..AllocationShape::default()
            },
            ..Allocation::default()
        };
        builder.push(session.clock, &allocation)
    })
}
