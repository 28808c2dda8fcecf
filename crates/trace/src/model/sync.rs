//! Synchronisations as events.

use tracesmith_format::tables::Synchronizations;

use crate::model::event::{Event, EventKind, EventName, event_columns};
use crate::model::strings::Strings;

fn event(syncs: &Synchronizations, row: usize) -> Event {
    Event {
        name: EventName::Word(syncs.shape.get(row).kind.name().unwrap_or("sync")),
        correlation: syncs.correlation[row],
        stack: syncs.stack[row],
        ..Event::new(EventKind::Sync, syncs.start[row], syncs.end[row]).at(syncs.place.get(row))
    }
}

fn detail(syncs: &Synchronizations, row: usize, _: &Strings) -> String {
    match syncs.event[row] {
        0 => String::new(),
        event => format!("event {event}"),
    }
}

event_columns!(Synchronizations, event, detail);
