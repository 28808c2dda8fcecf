//! Arguments, categories and flows of an event: its parts that do not depend on other events.

use tracesmith_format::{CorrelationId, ProcessId, StringId};

use crate::perfetto::schema::{annotation, event};
use crate::perfetto::wire::{put_double, put_fixed64, put_message, put_number, put_varint, varint_length};
use crate::perfetto::words::{Argument, Category};

/// Adds an unsigned argument.
#[inline]
pub(super) fn put_unsigned(out: &mut Vec<u8>, name: Argument, value: u64) {
    // Tags of one byte each and a name below 128: the length is known.
    out.extend_from_slice(&[
        (event::DEBUG_ANNOTATIONS << 3 | 2) as u8,
        3 + varint_length(value) as u8,
        (annotation::NAME_IID << 3) as u8,
        name.0,
        (annotation::UINT << 3) as u8,
    ]);
    put_varint(out, value);
}

/// Adds an unsigned argument unless it is 0, which means that it is not known or does not apply.
#[inline]
pub(super) fn put_some(out: &mut Vec<u8>, name: Argument, value: u64) {
    if value != 0 {
        put_unsigned(out, name, value);
    }
}

/// Adds a signed argument.
pub(super) fn put_signed(out: &mut Vec<u8>, name: Argument, value: i64) {
    put_named(out, name, |out| put_number(out, annotation::INT, value as u64));
}

/// Adds a floating-point argument.
pub(super) fn put_float(out: &mut Vec<u8>, name: Argument, value: f64) {
    put_named(out, name, |out| put_double(out, annotation::DOUBLE, value));
}

/// Adds an address.
pub(super) fn put_address(out: &mut Vec<u8>, name: Argument, value: u64) {
    if value != 0 {
        put_named(out, name, |out| put_number(out, annotation::POINTER, value));
    }
}

/// Adds a text, unless it is empty.
pub(super) fn put_text(out: &mut Vec<u8>, name: Argument, text: &str) {
    if !text.is_empty() {
        put_named(out, name, |out| {
            crate::perfetto::wire::put_bytes(out, annotation::STRING, text.as_bytes());
        });
    }
}

/// Adds a text by the number that it is interned by.
pub(super) fn put_interned(out: &mut Vec<u8>, name: Argument, text: StringId) {
    if text.is_some() {
        put_named(out, name, |out| {
            put_number(out, annotation::STRING_IID, u64::from(text.0))
        });
    }
}

fn put_named(out: &mut Vec<u8>, name: Argument, value: impl FnOnce(&mut Vec<u8>)) {
    put_message(out, event::DEBUG_ANNOTATIONS, |out| {
        put_number(out, annotation::NAME_IID, u64::from(name.0));
        value(out);
    });
}

/// Adds three dimensions as one text, unless all are 0.
pub(super) fn put_dimensions(out: &mut Vec<u8>, name: Argument, [x, y, z]: [u32; 3]) {
    if [x, y, z] != [0; 3] {
        put_text(out, name, &format!("{x}x{y}x{z}"));
    }
}

/// Adds what kind of event it is.
pub(super) fn put_category(out: &mut Vec<u8>, category: Category) {
    put_number(out, event::CATEGORY_IIDS, u64::from(category.0));
}

/// Adds a flow. Perfetto links the events of a flow in the order of their times, so that several kernels of one graph
/// launch make a chain; a flow that is marked as ended would lose all but the first.
#[inline]
pub(super) fn put_flow(out: &mut Vec<u8>, id: u64) {
    put_fixed64(out, event::FLOW_IDS, id);
}

/// What a flow's number is made of, so that different kinds never meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlowSpace {
    Launch = 0,
    Event = 1,
    Imported = 2,
}

/// The number of a flow: unique to a process and a kind of flow for numbers below 2^44, and very probably beyond.
#[inline]
pub(super) fn flow_id(space: FlowSpace, process: ProcessId, number: u64) -> u64 {
    let high = (u64::from(process.0) << 2 | space as u64) << 44;
    if number >> 44 == 0 {
        return high | number;
    }
    high ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 << 63
}

/// The flow from a call to the work that it launched.
#[inline]
pub(super) fn launch_flow(process: ProcessId, correlation: CorrelationId) -> u64 {
    flow_id(FlowSpace::Launch, process, correlation.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perfetto::wire::{Fields, Value};

    #[test]
    fn the_short_way_is_the_long_one() {
        for value in [0, 1, 127, 128, u64::MAX] {
            let (mut short, mut long) = (Vec::new(), Vec::new());
            put_unsigned(&mut short, Argument::COUNT, value);
            put_named(&mut long, Argument::COUNT, |out| {
                put_number(out, annotation::UINT, value)
            });
            assert_eq!(short, long);
        }
    }

    #[test]
    fn flows_of_different_origin_differ() {
        let ids = [
            flow_id(FlowSpace::Launch, ProcessId(1), 10),
            flow_id(FlowSpace::Launch, ProcessId(2), 10),
            flow_id(FlowSpace::Event, ProcessId(1), 10),
            flow_id(FlowSpace::Launch, ProcessId(1), 1 << 60),
        ];
        for (at, id) in ids.iter().enumerate() {
            assert!(!ids[at + 1..].contains(id));
        }
    }

    #[test]
    fn empty_values_are_not_written() {
        let mut out = Vec::new();
        put_text(&mut out, Argument::DETAIL, "");
        put_some(&mut out, Argument::BYTES, 0);
        put_address(&mut out, Argument::ADDRESS, 0);
        put_interned(&mut out, Argument::MANGLED, StringId::NONE);
        put_dimensions(&mut out, Argument::CLUSTER, [0; 3]);
        assert!(out.is_empty());
        put_dimensions(&mut out, Argument::GRID, [4, 1, 1]);
        let (_, value) = Fields::new(&out).next().expect("one field").expect("well formed");
        let text = Fields::new(value.bytes()).nth(1).expect("two fields");
        assert_eq!(text, Ok((annotation::STRING, Value::Bytes(b"4x1x1"))));
    }
}
