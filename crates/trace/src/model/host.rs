//! API calls and host work as events.

use tracesmith_format::tables::{ApiCalls, HostCalls};

use crate::model::event::{Event, EventKind, EventName, event_columns};
use crate::model::strings::Strings;
use crate::units::name_or_unknown;

fn api_event(calls: &ApiCalls, row: usize) -> Event {
    Event {
        name: EventName::Id(calls.shape.get(row).name),
        correlation: calls.correlation[row],
        stack: calls.stack[row],
        ..Event::new(EventKind::ApiCall, calls.start[row], calls.end[row]).by(calls.caller.get(row))
    }
}

fn api_detail(calls: &ApiCalls, row: usize, _: &Strings) -> String {
    let shape = calls.shape.get(row);
    match shape.result {
        0 => name_or_unknown(shape.domain.name()).to_owned(),
        error => format!("{}, error {error}", name_or_unknown(shape.domain.name())),
    }
}

event_columns!(ApiCalls, api_event, api_detail);

fn host_event(calls: &HostCalls, row: usize) -> Event {
    Event {
        name: EventName::Id(calls.shape.get(row).name),
        correlation: calls.correlation[row],
        stack: calls.stack[row],
        ..Event::new(EventKind::HostCall, calls.start[row], calls.end[row]).by(calls.caller.get(row))
    }
}

fn host_detail(calls: &HostCalls, row: usize, strings: &Strings) -> String {
    let shape = calls.shape.get(row);
    let parts = [
        name_or_unknown(shape.kind.name()),
        strings.get(shape.category),
        strings.get(calls.detail[row]),
    ];
    parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(", ")
}

event_columns!(HostCalls, host_event, host_detail);
