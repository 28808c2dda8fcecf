//! What has one moment: counters, allocations and the ends of arrows.

use std::ops::Range;

use tracesmith_format::CorrelationId;
use tracesmith_format::tables::*;

use crate::export::json::Json;
use crate::export::json_text::{
    push_address, push_float, push_format, push_head, push_key, push_number, push_positive, push_string,
    push_word,
};
use crate::export::sweep::{Item, LEFT_OUT, Piece};
use crate::export::trace_event::{Arrow, Phase, RowEvent};

impl Json<'_> {
    pub(super) fn counters(&self, piece: &Piece, rows: &Counters, items: Range<usize>, out: &mut Vec<u8>) {
        for item in piece.items[items].iter().filter(|item| item.track != LEFT_OUT) {
            let row = item.row as usize;
            let track = rows.track.get(row);
            let mut name = self.string(track.name).to_owned();
            if track.instance > 0 {
                name += &format!(" {}", track.instance);
            }
            if track.thread.is_some() {
                name += &format!(" of thread {}", track.thread.0);
            } else if track.device.is_some() && track.process.is_some() {
                name += &format!(" of process {}", self.stage.pids.process(track.process));
            }
            let pid = self.stage.pids.device_or_process(track.device, track.process);
            let unit = match self.string(track.unit) {
                "" => "value",
                unit => unit,
            };
            self.counter(out, pid, &name, unit, item, |out| {
                push_float(out, rows.value[row])
            });
        }
    }

    /// Readers call a counter by its name and the key of its value together, so the key is the unit.
    fn counter(
        &self,
        out: &mut Vec<u8>,
        pid: u64,
        name: &str,
        unit: &str,
        item: &Item,
        value: impl FnOnce(&mut Vec<u8>),
    ) {
        out.extend_from_slice(b",\n{\"ph\":\"C\",\"name\":");
        push_string(out, name);
        out.extend_from_slice(b",\"pid\":");
        push_number(out, pid);
        self.text().time(out, item.start);
        out.extend_from_slice(b",\"args\":{");
        push_key(out, unit);
        value(out);
        out.extend_from_slice(b"}}");
    }

    /// Each allocation as an instant, and what is in use after it as a counter.
    pub(super) fn allocations(
        &self,
        piece: &Piece,
        rows: &Allocations,
        items: Range<usize>,
        out: &mut Vec<u8>,
    ) {
        for at in items {
            let item = &piece.items[at];
            let row = item.row as usize;
            let (shape, place) = (rows.shape.get(row), rows.place.get(row));
            let mut head = Vec::new();
            push_head(&mut head, "memory", shape.operation.name().unwrap_or("unknown"));
            let event = RowEvent {
                phase: Phase::Instant,
                item,
                number: piece.first_number + at as u64,
                head: &head,
                stack: rows.stack[row],
            };
            let memory = shape.memory.name().unwrap_or("unknown");
            self.text().event(out, &event, |out| {
                push_format(out, format_args!("\"bytes\":{},", rows.bytes[row].0));
                push_word(out, "memory", memory);
                push_address(out, "address", rows.address[row].0);
                push_positive(out, "correlation", rows.correlation[row].0);
                push_positive(out, "thread", shape.thread.0);
                self.push_place(out, place);
                push_address(out, "pool", rows.pool[row].0);
                push_positive(out, "pool size", rows.pool_size[row].0);
                push_positive(out, "pool used", rows.pool_used[row].0);
                for (key, label) in [
                    ("name", shape.name),
                    ("allocator", shape.allocator),
                    ("category", shape.category),
                ] {
                    self.push_label(out, key, label);
                }
            });
            if matches!(
                shape.operation,
                MemoryOperation::ALLOCATE
                    | MemoryOperation::FREE
                    | MemoryOperation::CREATE
                    | MemoryOperation::RELEASE
            ) {
                let pid = self.stage.pids.device_or_process(place.device, place.process);
                let level = piece.levels[at];
                self.counter(
                    out,
                    pid,
                    &format!("memory in use ({memory})"),
                    "bytes",
                    item,
                    |out| {
                        push_number(out, level);
                    },
                );
            }
        }
    }

    pub(super) fn flows(&self, piece: &Piece, rows: &Flows, items: Range<usize>, out: &mut Vec<u8>) {
        for item in &piece.items[items] {
            let row = item.row as usize;
            let shape = rows.shape.get(row);
            if is_said_by_rows(shape, rows.correlation[row]) {
                continue;
            }
            let kind = shape.kind.name().unwrap_or("flow");
            let mut head = Vec::new();
            let name = match self.string(shape.name) {
                "" => kind,
                name => name,
            };
            push_head(&mut head, kind, name);
            let phase = match shape.phase {
                FlowPhase::START => Arrow::Start,
                FlowPhase::STEP => Arrow::Step,
                _ => Arrow::End,
            };
            self.text()
                .arrow(out, phase, &head, format_args!("{}", rows.flow[row]), item);
        }
    }
}

/// Whether an arrow stands with the rows that it belongs to: what a framework says of a row, and launches, which follow from
/// correlations.
pub(in crate::export) fn is_said_by_rows(shape: &FlowShape, correlation: CorrelationId) -> bool {
    shape.kind == FlowKind::EXTERNAL || (shape.kind == FlowKind::LAUNCH && correlation.is_some())
}
