//! Device work: kernels, copies, sets, waits, graphs and collectives.

use std::ops::Range;

use tracesmith_format::tables::*;
use tracesmith_format::{Bytes, CorrelationId, ProcessId};

use crate::export::fragments::Fragments;
use crate::export::json::Json;
use crate::export::json_text::{
    push_address, push_float, push_format, push_head, push_key, push_number, push_positive, push_string,
    push_word,
};
use crate::export::sweep::{Item, LEFT_OUT, Piece};
use crate::export::trace_event::{Arrow, Phase, RowEvent};

/// What begins the arrow between a launch and the work.
pub(super) const LAUNCH: &[u8] = b",\"cat\":\"launch\",\"name\":\"launch\"";
const EVENT: &[u8] = b",\"cat\":\"event\",\"name\":\"event\"";

impl Json<'_> {
    pub(super) fn kernels(&self, piece: &Piece, rows: &Kernels, items: Range<usize>, out: &mut Vec<u8>) {
        let mut heads = Fragments::new(&rows.shape.values);
        let mut shapes = Fragments::new(&rows.shape.values);
        let mut places = Fragments::new(&rows.place.values);
        let convert = |time| self.stage.trace.clock_map.convert(piece.clock, time).time;
        for at in items {
            let item = &piece.items[at];
            let row = item.row as usize;
            let (shape, place) = (rows.shape.index[row], rows.place.index[row]);
            let head = heads.get(shape, |out, shape| {
                let name = if shape.demangled.is_some() {
                    shape.demangled
                } else {
                    shape.name
                };
                push_head(out, "kernel", self.string(name));
            });
            let event = RowEvent {
                phase: Phase::of(item),
                item,
                number: piece.first_number + at as u64,
                head,
                stack: rows.stack[row],
            };
            self.text().event(out, &event, |out| {
                push_positive(out, "correlation", rows.correlation[row].0);
                out.extend_from_slice(places.get(place, |out, place| self.push_place(out, place)));
                out.extend_from_slice(shapes.get(shape, |out, shape| self.push_kernel_shape(out, shape)));
                push_positive(out, "graph node", rows.graph_node[row].0);
                for (key, time) in [("queued", rows.queued[row]), ("submitted", rows.submitted[row])] {
                    if time.is_some() {
                        push_key(out, key);
                        self.text().micros(out, convert(time));
                        out.push(b',');
                    }
                }
                self.push_external(out, piece.external(at));
            });
            self.launched(out, item, rows.place.get(row).process, rows.correlation[row]);
        }
    }

    fn push_kernel_shape(&self, out: &mut Vec<u8>, shape: &KernelShape) {
        push_format(
            out,
            format_args!(
                "\"grid\":[{},{},{}],\"block\":[{},{},{}],\"registers per thread\":{},",
                shape.grid_x,
                shape.grid_y,
                shape.grid_z,
                shape.block_x,
                shape.block_y,
                shape.block_z,
                shape.registers
            ),
        );
        if shape.cluster_x > 0 {
            push_format(
                out,
                format_args!(
                    "\"cluster\":[{},{},{}],",
                    shape.cluster_x, shape.cluster_y, shape.cluster_z
                ),
            );
        }
        push_positive(out, "static shared memory", shape.static_shared.0);
        push_positive(out, "dynamic shared memory", shape.dynamic_shared.0);
        push_positive(out, "local memory per thread", shape.local_per_thread.0);
        push_positive(out, "graph", shape.graph.0);
        if shape.launch != LaunchKind::REGULAR
            && let Some(word) = shape.launch.name()
        {
            push_word(out, "launch", word);
        }
        if shape.name.is_some() && shape.demangled.is_some() && shape.name != shape.demangled {
            push_word(out, "mangled name", self.string(shape.name));
        }
    }

    pub(super) fn push_place(&self, out: &mut Vec<u8>, place: &Place) {
        match self.stage.trace.device(place.device) {
            Some(device) => {
                let ordinal = self.stage.pids.ordinal(self.stage.trace, device);
                push_format(out, format_args!("\"device\":{ordinal},"));
            }
            None => out.extend_from_slice(b"\"device\":-1,"),
        }
        push_format(
            out,
            format_args!("\"context\":{},\"stream\":{},", place.context.0, place.stream.0),
        );
        // The event is on the device's track, so this is the only place for it.
        if place.process.is_some() {
            push_positive(out, "process", self.stage.pids.process(place.process));
        }
    }

    fn launched(&self, out: &mut Vec<u8>, item: &Item, process: ProcessId, correlation: CorrelationId) {
        if correlation.is_some() && item.end.is_some() {
            let id = self.stage.launch_id(process, correlation);
            self.text()
                .arrow(out, Arrow::End, LAUNCH, format_args!("{id}"), item);
        }
    }

    pub(super) fn copies(&self, piece: &Piece, rows: &MemoryCopies, items: Range<usize>, out: &mut Vec<u8>) {
        let mut heads = Fragments::new(&rows.shape.values);
        for at in items {
            let item = &piece.items[at];
            let row = item.row as usize;
            let shape = rows.shape.get(row);
            let head = heads.get(rows.shape.index[row], |out, shape| {
                let name = shape
                    .direction
                    .name()
                    .filter(|_| shape.direction != CopyDirection::UNKNOWN);
                push_head(
                    out,
                    "copy",
                    &name.map_or("copy".to_owned(), |name| format!("copy {name}")),
                );
            });
            let event = RowEvent {
                phase: Phase::of(item),
                item,
                number: piece.first_number + at as u64,
                head,
                stack: rows.stack[row],
            };
            self.text().event(out, &event, |out| {
                push_bytes(out, rows.bytes[row], item);
                push_positive(out, "correlation", rows.correlation[row].0);
                self.push_place(out, rows.place.get(row));
                push_word(out, "from", shape.source_memory.name().unwrap_or("unknown"));
                push_word(out, "to", shape.destination_memory.name().unwrap_or("unknown"));
                push_positive(out, "copies", rows.copies[row]);
                push_address(out, "source", rows.source[row].0);
                push_address(out, "destination", rows.destination[row].0);
                push_positive(out, "graph", shape.graph.0);
                push_positive(out, "graph node", rows.graph_node[row].0);
                self.push_external(out, piece.external(at));
            });
            self.launched(out, item, rows.place.get(row).process, rows.correlation[row]);
        }
    }

    pub(super) fn sets(&self, piece: &Piece, rows: &MemorySets, items: Range<usize>, out: &mut Vec<u8>) {
        for at in items {
            let item = &piece.items[at];
            let row = item.row as usize;
            let event = RowEvent {
                phase: Phase::of(item),
                item,
                number: piece.first_number + at as u64,
                head: b",\"cat\":\"set\",\"name\":\"set memory\"",
                stack: rows.stack[row],
            };
            let shape = rows.shape.get(row);
            self.text().event(out, &event, |out| {
                push_bytes(out, rows.bytes[row], item);
                push_format(out, format_args!("\"value\":{},", rows.value[row]));
                push_word(out, "memory", shape.memory.name().unwrap_or("unknown"));
                push_positive(out, "correlation", rows.correlation[row].0);
                self.push_place(out, rows.place.get(row));
                push_address(out, "address", rows.address[row].0);
                push_positive(out, "graph", shape.graph.0);
                push_positive(out, "graph node", rows.graph_node[row].0);
                self.push_external(out, piece.external(at));
            });
            self.launched(out, item, rows.place.get(row).process, rows.correlation[row]);
        }
    }

    /// Waits and event records; an arrow leads from a record to the waits for it.
    pub(super) fn syncs(
        &self,
        piece: &Piece,
        rows: &Synchronizations,
        items: Range<usize>,
        out: &mut Vec<u8>,
    ) {
        let mut heads = Fragments::new(&rows.shape.values);
        for at in items {
            let item = &piece.items[at];
            let row = item.row as usize;
            let (shape, place) = (rows.shape.get(row), rows.place.get(row));
            let head = heads.get(rows.shape.index[row], |out, shape| {
                push_head(out, "sync", shape.kind.name().unwrap_or("sync"));
            });
            let event = RowEvent {
                phase: Phase::of(item),
                item,
                number: piece.first_number + at as u64,
                head,
                stack: rows.stack[row],
            };
            self.text().event(out, &event, |out| {
                push_positive(out, "correlation", rows.correlation[row].0);
                self.push_place(out, place);
                push_positive(out, "event", rows.event[row]);
                push_positive(out, "event record", rows.event_record[row]);
                if shape.result != 0 {
                    push_format(out, format_args!("\"result\":{},", shape.result));
                }
                self.push_external(out, piece.external(at));
            });
            let arrow = match shape.kind {
                // Perfetto draws no arrow from an event without a duration.
                SyncKind::EVENT_RECORD if item.end == item.start => continue,
                SyncKind::EVENT_RECORD => Arrow::Start,
                SyncKind::EVENT_WAIT | SyncKind::STREAM_WAIT_EVENT => Arrow::End,
                _ => continue,
            };
            if rows.event[row] > 0 {
                let id = mixed([
                    u64::from(place.process.0),
                    rows.event[row],
                    rows.event_record[row],
                ]);
                self.text()
                    .arrow(out, arrow, EVENT, format_args!("\"0x{id:x}\""), item);
            }
        }
    }

    pub(super) fn graph_launches(
        &self,
        piece: &Piece,
        rows: &GraphLaunches,
        items: Range<usize>,
        out: &mut Vec<u8>,
    ) {
        for at in items {
            let item = &piece.items[at];
            let row = item.row as usize;
            let shape = rows.shape.get(row);
            let mut head = Vec::new();
            push_head(&mut head, "graph", &format!("graph {}", shape.graph.0));
            let event = RowEvent {
                phase: Phase::of(item),
                item,
                number: piece.first_number + at as u64,
                head: &head,
                stack: rows.stack[row],
            };
            self.text().event(out, &event, |out| {
                push_positive(out, "correlation", rows.correlation[row].0);
                self.push_place(out, rows.place.get(row));
                push_positive(out, "graph", shape.graph.0);
                push_positive(out, "executable graph", shape.executable.0);
                push_positive(out, "nodes", u64::from(shape.nodes));
            });
            self.launched(out, item, rows.place.get(row).process, rows.correlation[row]);
        }
    }

    pub(super) fn collectives(
        &self,
        piece: &Piece,
        rows: &Collectives,
        items: Range<usize>,
        out: &mut Vec<u8>,
    ) {
        let mut heads = Fragments::new(&rows.shape.values);
        for at in items.filter(|at| piece.items[*at].track != LEFT_OUT) {
            let item = &piece.items[at];
            let row = item.row as usize;
            let shape = rows.shape.get(row);
            let head = heads.get(rows.shape.index[row], |out, shape| {
                push_head(out, "collective", self.string(shape.name));
            });
            let event = RowEvent {
                phase: Phase::of(item),
                item,
                number: piece.first_number + at as u64,
                head,
                stack: rows.stack[row],
            };
            self.text().event(out, &event, |out| {
                push_positive(out, "bytes", rows.bytes[row].0);
                push_positive(out, "count", rows.count[row]);
                push_positive(out, "sequence", rows.sequence[row]);
                push_positive(out, "correlation", rows.correlation[row].0);
                self.push_place(out, rows.place.get(row));
                push_word(out, "kind", shape.kind.name().unwrap_or("unknown"));
                // As text: a communicator's number takes all 64 bits.
                push_address(out, "communicator", shape.communicator);
                for (key, number) in [("rank", shape.rank.get()), ("root", shape.root.get())] {
                    if let Some(number) = number {
                        push_key(out, key);
                        push_number(out, number);
                        out.push(b',');
                    }
                }
                push_positive(out, "ranks", u64::from(shape.ranks));
                for (key, label) in [
                    ("communicator name", shape.communicator_name),
                    ("datatype", shape.datatype),
                    ("reduction", shape.reduction),
                    ("algorithm", shape.algorithm),
                    ("protocol", shape.protocol),
                ] {
                    self.push_label(out, key, label);
                }
                push_positive(out, "channels", u64::from(shape.channels));
            });
        }
    }
}

/// Bytes, and how fast they moved.
fn push_bytes(out: &mut Vec<u8>, bytes: Bytes, item: &Item) {
    push_format(out, format_args!("\"bytes\":{},", bytes.0));
    let nanos = item.end.0.saturating_sub(item.start.0);
    if nanos > 0 {
        push_string(out, "GB/s");
        out.push(b':');
        push_float(out, bytes.0 as f64 / nanos as f64);
        out.push(b',');
    }
}

/// One number made of several, so that no other numbers give the same: an arrow has only one.
pub(super) fn mixed(numbers: [u64; 3]) -> u64 {
    numbers.into_iter().fold(0, |mixed, number| {
        // The finaliser of splitmix64.
        let mut z = (mixed ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}
