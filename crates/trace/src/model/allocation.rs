//! Allocations as events.

use tracesmith_format::tables::Allocations;

use crate::model::event::{Event, EventKind, EventName, event_columns};
use crate::model::strings::Strings;
use crate::units;
use crate::units::name_or_unknown;

fn event(allocations: &Allocations, row: usize) -> Event {
    let shape = allocations.shape.get(row);
    Event {
        name: EventName::Word(name_or_unknown(shape.operation.name())),
        thread: shape.thread,
        correlation: allocations.correlation[row],
        bytes: allocations.bytes[row],
        stack: allocations.stack[row],
        ..Event::new(
            EventKind::Allocation,
            allocations.time[row],
            allocations.time[row],
        )
        .at(allocations.place.get(row))
    }
}

fn detail(allocations: &Allocations, row: usize, strings: &Strings) -> String {
    let shape = allocations.shape.get(row);
    let mut detail = format!(
        "{} {} at {:#x}",
        units::bytes(allocations.bytes[row].0),
        name_or_unknown(shape.memory.name()),
        allocations.address[row].0
    );
    for label in [shape.name, shape.allocator, shape.category] {
        if label.is_some() {
            detail += &format!(", {}", strings.get(label));
        }
    }
    detail
}

event_columns!(Allocations, event, detail);
