//! Copies and sets as events.

use tracesmith_format::tables::{CopyDirection, MemoryCopies, MemorySets};

use crate::model::event::{Event, EventKind, EventName, event_columns};
use crate::model::strings::Strings;
use crate::units;
use crate::units::name_or_unknown;

fn copy_event(copies: &MemoryCopies, row: usize) -> Event {
    let direction = copies.shape.get(row).direction;
    Event {
        name: EventName::Word(copy_name(direction)),
        correlation: copies.correlation[row],
        bytes: copies.bytes[row],
        stack: copies.stack[row],
        ..Event::new(EventKind::Copy, copies.start[row], copies.end[row]).at(copies.place.get(row))
    }
}

/// The word for a copy in this direction.
pub(crate) fn copy_name(direction: CopyDirection) -> &'static str {
    match direction {
        CopyDirection::UNKNOWN => "copy",
        other => other.name().unwrap_or("copy"),
    }
}

fn copy_detail(copies: &MemoryCopies, row: usize, _: &Strings) -> String {
    let shape = copies.shape.get(row);
    let event = copy_event(copies, row);
    let mut detail = format!(
        "{} {} → {}",
        units::bytes(event.bytes.0),
        name_or_unknown(shape.source_memory.name()),
        name_or_unknown(shape.destination_memory.name())
    );
    let rate = units::rate(event.bytes.0, event.duration());
    if !rate.is_empty() {
        detail += &format!(", {rate}");
    }
    if copies.copies[row] > 1 {
        detail += &format!(", {} copies", copies.copies[row]);
    }
    detail
}

event_columns!(MemoryCopies, copy_event, copy_detail);

fn set_event(sets: &MemorySets, row: usize) -> Event {
    Event {
        name: EventName::Word("set"),
        correlation: sets.correlation[row],
        bytes: sets.bytes[row],
        stack: sets.stack[row],
        ..Event::new(EventKind::Set, sets.start[row], sets.end[row]).at(sets.place.get(row))
    }
}

fn set_detail(sets: &MemorySets, row: usize, _: &Strings) -> String {
    let memory = name_or_unknown(sets.shape.get(row).memory.name());
    format!(
        "{} {memory} to {:#x}",
        units::bytes(sets.bytes[row].0),
        sets.value[row]
    )
}

event_columns!(MemorySets, set_event, set_detail);
