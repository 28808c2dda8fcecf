//! The row of a table that a slice shows, with all its columns.

use std::ops::ControlFlow;

use serde_json::Value;
use tracesmith_format::Timestamp;
use tracesmith_interop::export::EventJson;
use tracesmith_trace::grid::TrackKind;
use tracesmith_trace::overview::{DEVICE_KINDS, HOST_KINDS};
use tracesmith_trace::{Event as Row, EventKind, Found, Query, Trace};

use super::{Event, Picked, stacks};
use crate::places::thread_of;
use crate::reply::Failure;

/// Fields that are elsewhere in the answer, or of no use to people.
const LEFT_OUT: [&str; 4] = ["start", "end", "name", "demangled"];
/// Larger numbers lose digits in a browser.
const MOST_EXACT: u64 = 1 << 53;

/// A row with its columns.
pub(super) struct FoundRow {
    pub(super) event: Row,
    fields: Vec<(String, Value)>,
}

impl FoundRow {
    pub(super) fn of(trace: &Trace, found: &Found<'_>) -> Self {
        let mut text = Vec::new();
        EventJson::new(trace).push(&mut text, found);
        FoundRow {
            event: found.event,
            fields: fields(&text),
        }
    }
}

/// The columns of an event in JSON: what all events have, then its own.
fn fields(text: &[u8]) -> Vec<(String, Value)> {
    let Ok(Value::Object(mut common)) = serde_json::from_slice(text) else {
        return Vec::new();
    };
    let own = common.remove("fields");
    let own = own
        .as_ref()
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let common = common.into_iter().filter(|(name, _)| {
        ["pid", "thread", "device", "stream", "correlation", "bytes"].contains(&name.as_str())
    });
    let own = own.into_iter().map(|(name, value)| {
        let short = name.rsplit('.').next().unwrap_or(&name).to_owned();
        (short, value)
    });
    let mut fields: Vec<(String, Value)> = Vec::new();
    for (name, value) in common.chain(own) {
        let is_known = fields.iter().any(|(known, _)| *known == name);
        if !value.is_null() && !is_known && !LEFT_OUT.contains(&name.as_str()) {
            fields.push((name, exact(value)));
        }
    }
    fields
}

/// A number that a browser reads exactly, or its digits.
fn exact(value: Value) -> Value {
    match value.as_u64() {
        Some(number) if number > MOST_EXACT => number.to_string().into(),
        _ => value,
    }
}

/// Looks for the row among those that start at the same moment.
pub(super) fn find(picked: &Picked<'_>) -> Option<FoundRow> {
    let trace = picked.places.trace;
    let kinds: Vec<EventKind> = match picked.track.kind {
        TrackKind::Stream | TrackKind::Waits | TrackKind::Collectives => DEVICE_KINDS.to_vec(),
        _ => HOST_KINDS.to_vec(),
    };
    let start = picked.start();
    let key = &picked.track.key;
    let query = Query {
        kinds: Some(kinds),
        devices: key.device().map(|device| vec![device]),
        processes: key.process().map(|process| vec![process]),
        from: Some(Timestamp(start)),
        to: Some(Timestamp(start.saturating_add(1))),
        ..Query::default()
    };
    let thread = thread_of(picked.track).map(|(_, thread, _)| thread);
    let stream = crate::places::stream_of(picked.track).map(|(.., stream)| stream);
    let mut row = None;
    trace.for_each_event(&query, |found| {
        let event = &found.event;
        let is_meant = event.start.0 == start
            && event.end.0.max(start) == picked.end()
            && trace.event_name(event) == picked.name
            && thread.is_none_or(|thread| thread == event.thread)
            && stream.is_none_or(|stream| Some(stream) == event.stream);
        if !is_meant {
            return ControlFlow::Continue(());
        }
        row = Some(FoundRow::of(trace, found));
        ControlFlow::Break(())
    });
    row
}

/// Tells what a row says of itself, with its stacks.
pub(super) fn describe(picked: &Picked<'_>, row: &FoundRow, event: &mut Event) -> Result<(), Failure> {
    event.table = row.event.kind.table().name();
    event.fields.clone_from(&row.fields);
    stacks::describe(picked.subject, &row.event, event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_told_once_and_exactly() {
        let text = br#"{"kind":"kernel","start_ns":1,"name":"a","pid":7,"stream":3,"bytes":null,
            "fields":{"start":1,"end":2,"place.stream":3,"shape.name":"a","shape.grid_x":4,"argument":9007199254740993}}"#;
        let expected: Vec<(String, Value)> = [
            ("pid", Value::from(7)),
            ("stream", 3.into()),
            ("grid_x", 4.into()),
            ("argument", "9007199254740993".into()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        assert_eq!(fields(text), expected);
    }
}
