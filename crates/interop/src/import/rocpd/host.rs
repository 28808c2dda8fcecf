//! Calls, markers, and calls that took no time.

use tracesmith_format::tables::*;
use tracesmith_format::{ClockId, CorrelationId, Timestamp};

use super::run::{EventColumns, Run};
use crate::error::Error;
use crate::import::Builder;

/// A stretch or moment on the host, however it is stored.
struct Call<'r> {
    clock: ClockId,
    start: Timestamp,
    end: Timestamp,
    caller: Caller,
    correlation: CorrelationId,
    category: &'r str,
    name: &'r str,
    message: &'r str,
}

pub(super) fn regions(run: &mut Run<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let Some(mut query) = run.query("rocpd_region") else {
        return Ok(());
    };
    let event = EventColumns::of(&mut query, run);
    let (start, end, name) = (
        query.column("start"),
        query.column("end"),
        query.column("name_id"),
    );
    let message = query.other_json_text("extdata", "message");
    run.db().read(&query, builder, |row, builder| {
        let (start, end) = run.span(row.integer(start), row.integer(end));
        let correlation = event.correlation(row, run);
        let message = row.any_text(message).unwrap_or_default();
        let call = Call {
            clock: event.clock(row, run),
            start,
            end,
            caller: event.caller(row, run),
            correlation,
            category: event.category(row, run),
            name: run.text(row.integer(name)),
            message: &message,
        };
        push(&call, builder)
    })
}

/// Calls whose start and end are the same; the track has the name of their category.
pub(super) fn samples(run: &mut Run<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let Some(mut query) = run.query("rocpd_sample") else {
        return Ok(());
    };
    let event = EventColumns::of(&mut query, run);
    let (time, track) = (query.column("timestamp"), query.column("track_id"));
    let message = query.other_json_text("extdata", "message");
    run.db().read(&query, builder, |row, builder| {
        let time = run.time(row.integer(time));
        let correlation = event.correlation(row, run);
        let message = row.any_text(message).unwrap_or_default();
        let track = row
            .integer(track)
            .and_then(|track| run.tracks.get(&track).copied());
        let caller = track
            .and_then(|(_, thread)| run.thread(thread))
            .unwrap_or_default();
        let category = event.category(row, run);
        let call = Call {
            clock: run.clock(track.map(|(node, _)| node)),
            start: time,
            end: time,
            caller,
            correlation,
            category,
            name: category,
            message: &message,
        };
        push(&call, builder)
    })
}

/// Puts a call where its category belongs.
fn push(call: &Call<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let domain = match call.category {
        category if category.starts_with("HIP") => Some(ApiDomain::HIP),
        category if category.starts_with("HSA") => Some(ApiDomain::HSA),
        _ => None,
    };
    if let Some(domain) = domain {
        let row = ApiCall {
            start: call.start,
            end: call.end,
            correlation: call.correlation,
            caller: call.caller,
            shape: ApiShape {
                name: builder.string(call.name)?,
                domain,
                ..ApiShape::default()
            },
            ..ApiCall::default()
        };
        return builder.push(call.clock, &row);
    }
    if call.category.starts_with("MARKER") && !call.message.is_empty() {
        let row = Marker {
            start: call.start,
            end: call.end,
            caller: call.caller,
            shape: MarkerShape {
                name: builder.string(call.message)?,
                domain: builder.string("roctx")?,
                kind: match call.name {
                    _ if call.start == call.end => MarkerKind::INSTANT,
                    name if name.contains("Start") || name.contains("Process") => MarkerKind::FREE_RANGE,
                    _ => MarkerKind::NESTED_RANGE,
                },
                ..MarkerShape::default()
            },
            ..Marker::default()
        };
        return builder.push(call.clock, &row);
    }
    let row = HostCall {
        start: call.start,
        end: call.end,
        correlation: call.correlation,
        detail: builder.string(call.message)?,
        caller: call.caller,
        shape: HostShape {
            name: builder.string(call.name)?,
            kind: HostCallKind::FUNCTION,
            category: builder.string(call.category)?,
            ..HostShape::default()
        },
        ..HostCall::default()
    };
    builder.push(call.clock, &row)
}
