//! Device work, with the arguments that Kineto gives it.

use std::ops::Range;

use tracesmith_format::tables::*;
use tracesmith_format::{CorrelationId, DeviceId, ProcessId};

use crate::export::fragments::Fragments;
use crate::export::json_members::members;
use crate::export::json_text::{
    push_float, push_format, push_head, push_key, push_members, push_positive, push_string, push_word,
};
use crate::export::kineto::Kineto;
use crate::export::kineto::occupancy::Occupancy;
use crate::export::stage::has_stream;
use crate::export::sweep::{External, Item, Piece};
use crate::export::trace_event::{Arrow, Phase, RowEvent};

/// What begins the arrow between a launch and the work.
pub(super) const LAUNCH: &[u8] = b",\"cat\":\"ac2g\",\"name\":\"ac2g\"";

impl Kineto<'_> {
    pub(super) fn kernels(&self, piece: &Piece, rows: &Kernels, items: Range<usize>, out: &mut Vec<u8>) {
        let mut heads = Fragments::new(&rows.shape.values);
        let mut shapes = Fragments::new(&rows.shape.values);
        let mut places = Fragments::new(&rows.place.values);
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
            let event = self.event(piece, at, head);
            self.text().event(out, &event, |out| {
                let external = piece.external(at);
                let process = rows.place.get(row).process;
                self.push_external_id(out, process, external);
                push_key(out, "queued");
                match rows.queued[row] {
                    time if time.is_some() => {
                        let time = self.stage.trace.clock_map.convert(piece.clock, time).time;
                        self.text().micros(out, time);
                    }
                    _ => out.push(b'0'),
                }
                out.push(b',');
                out.extend_from_slice(places.get(place, |out, place| self.push_place(out, place)));
                self.push_correlation(out, process, rows.correlation[row]);
                let device = rows.place.get(row).device;
                // One shape runs on devices of one kind, but for traces of mixed machines: made afresh there.
                if self.stage.trace.devices.len() > 1 {
                    self.push_kernel_shape(out, device, rows.shape.get(row));
                } else {
                    out.extend_from_slice(shapes.get(shape, |out, shape| {
                        self.push_kernel_shape(out, device, shape);
                    }));
                }
                push_positive(out, "graph node id", rows.graph_node[row].0);
                self.push_stack(out, rows.stack[row]);
                self.push_rest(out, external.rest);
            });
            self.launched(out, item, rows.place.get(row).process, rows.correlation[row]);
        }
    }

    pub(super) fn event<'e>(&self, piece: &'e Piece, at: usize, head: &'e [u8]) -> RowEvent<'e> {
        let item = &piece.items[at];
        RowEvent {
            phase: Phase::of(item),
            item,
            number: piece.first_number + at as u64,
            head,
            stack: tracesmith_format::StackId::NONE,
        }
    }

    /// How well a kernel fills its device, unless that is not known or is among the rest of its arguments.
    fn occupancy(&self, device: DeviceId, shape: &KernelShape) -> Option<Occupancy> {
        if shape.registers == 0 || self.stage.trace.metadata.contains_key("import.occupancy") {
            return None;
        }
        Occupancy::of(self.stage.trace.device(device)?, shape)
    }

    fn push_kernel_shape(&self, out: &mut Vec<u8>, device: DeviceId, shape: &KernelShape) {
        if shape.block_x == 0 {
            return; // how it was launched is not known
        }
        // No kernel does without registers: 0 is a tool that does not tell, and that says nothing of what follows either.
        if shape.registers > 0 {
            let shared = shape.static_shared.0.saturating_add(shape.dynamic_shared.0);
            push_format(
                out,
                format_args!(
                    "\"registers per thread\":{},\"shared memory\":{shared},",
                    shape.registers
                ),
            );
        }
        let occupancy = self.occupancy(device, shape);
        if let Some(occupancy) = occupancy {
            for (key, number) in [
                ("blocks per SM", occupancy.blocks_per_sm),
                ("warps per SM", occupancy.warps_per_sm),
            ] {
                push_key(out, key);
                push_float(out, (number * 1e6).round() / 1e6);
                out.push(b',');
            }
        }
        push_format(
            out,
            format_args!(
                "\"grid\":[{},{},{}],\"block\":[{},{},{}],",
                shape.grid_x, shape.grid_y, shape.grid_z, shape.block_x, shape.block_y, shape.block_z
            ),
        );
        if let Some(percent) = occupancy.and_then(|occupancy| occupancy.percent) {
            push_format(out, format_args!("\"est. achieved occupancy %\":{percent},"));
        }
        push_positive(out, "graph id", shape.graph.0);
        if shape.priority != 0 {
            push_format(out, format_args!("\"priority\":{},", shape.priority));
        }
    }

    fn push_place(&self, out: &mut Vec<u8>, place: &Place) {
        self.push_device_of(out, place);
        push_format(out, format_args!("\"stream\":{},", place.stream.0));
    }

    fn push_device_of(&self, out: &mut Vec<u8>, place: &Place) {
        if let Some(device) = self.stage.trace.device(place.device) {
            let ordinal = self.stage.pids.ordinal(self.stage.trace, device);
            push_format(out, format_args!("\"device\":{ordinal},"));
        }
        push_positive(out, "context", u64::from(place.context.0));
        self.push_process(out, place.process);
    }

    fn push_correlation(&self, out: &mut Vec<u8>, process: ProcessId, correlation: CorrelationId) {
        let correlation = self.unique(process, correlation.0);
        push_format(out, format_args!("\"correlation\":{correlation},"));
    }

    fn launched(&self, out: &mut Vec<u8>, item: &Item, process: ProcessId, correlation: CorrelationId) {
        if correlation.is_some() && item.end.is_some() {
            let id = self.unique(process, correlation.0);
            self.text()
                .arrow(out, Arrow::End, LAUNCH, format_args!("{id}"), item);
        }
    }

    pub(super) fn copies(&self, piece: &Piece, rows: &MemoryCopies, items: Range<usize>, out: &mut Vec<u8>) {
        for at in items {
            let item = &piece.items[at];
            let row = item.row as usize;
            let external = piece.external(at);
            let rest = members(self.string(external.rest)).unwrap_or_default();
            let mut head = Vec::new();
            push_named_head(&mut head, "gpu_memcpy", &rest, &copy_name(rows.shape.get(row)));
            let event = self.event(piece, at, &head);
            self.text().event(out, &event, |out| {
                let process = rows.place.get(row).process;
                self.push_external_id(out, process, external);
                self.push_place(out, rows.place.get(row));
                self.push_correlation(out, process, rows.correlation[row]);
                push_bytes(out, rows.bytes[row].0, item);
                push_positive(out, "graph id", rows.shape.get(row).graph.0);
                push_positive(out, "graph node id", rows.graph_node[row].0);
                self.push_stack(out, rows.stack[row]);
                self.push_unnamed(out, external, &rest);
            });
            self.launched(out, item, rows.place.get(row).process, rows.correlation[row]);
        }
    }

    pub(super) fn sets(&self, piece: &Piece, rows: &MemorySets, items: Range<usize>, out: &mut Vec<u8>) {
        for at in items {
            let item = &piece.items[at];
            let row = item.row as usize;
            let external = piece.external(at);
            let rest = members(self.string(external.rest)).unwrap_or_default();
            let name = format!("Memset ({})", memory_word(rows.shape.get(row).memory));
            let mut head = Vec::new();
            push_named_head(&mut head, "gpu_memset", &rest, &name);
            let event = self.event(piece, at, &head);
            self.text().event(out, &event, |out| {
                let process = rows.place.get(row).process;
                self.push_external_id(out, process, external);
                self.push_place(out, rows.place.get(row));
                self.push_correlation(out, process, rows.correlation[row]);
                push_bytes(out, rows.bytes[row].0, item);
                push_positive(out, "value", u64::from(rows.value[row]));
                push_positive(out, "graph id", rows.shape.get(row).graph.0);
                push_positive(out, "graph node id", rows.graph_node[row].0);
                self.push_stack(out, rows.stack[row]);
                self.push_unnamed(out, external, &rest);
            });
            self.launched(out, item, rows.place.get(row).process, rows.correlation[row]);
        }
    }

    /// Adds the rest but for the name, which stands where it belongs.
    fn push_unnamed(&self, out: &mut Vec<u8>, external: External, rest: &[(&str, &str)]) {
        if rest.is_empty() {
            self.push_rest(out, external.rest);
            return;
        }
        let others: Vec<(&str, &str)> = rest.iter().copied().filter(|(key, _)| *key != "name").collect();
        push_members(out, &others);
    }

    pub(super) fn syncs(
        &self,
        piece: &Piece,
        rows: &Synchronizations,
        items: Range<usize>,
        out: &mut Vec<u8>,
    ) {
        for at in items {
            let item = &piece.items[at];
            let row = item.row as usize;
            let (kind, place) = (rows.shape.get(row).kind, rows.place.get(row));
            let word = sync_word(kind);
            let mut head = Vec::new();
            push_head(&mut head, "cuda_sync", word);
            let event = self.event(piece, at, &head);
            self.text().event(out, &event, |out| {
                let external = piece.external(at);
                let process = rows.place.get(row).process;
                self.push_external_id(out, process, external);
                push_word(out, "cuda_sync_kind", word);
                push_positive(out, "wait_on_stream", rows.event_stream[row].0);
                let record = self.unique(process, rows.event_record[row]);
                push_positive(out, "wait_on_cuda_event_record_corr_id", record);
                push_positive(out, "wait_on_cuda_event_id", rows.event[row]);
                if has_stream(place) || kind == SyncKind::STREAM_WAIT {
                    push_format(out, format_args!("\"stream\":{},", place.stream.0));
                } else {
                    out.extend_from_slice(b"\"stream\":-1,");
                }
                self.push_correlation(out, process, rows.correlation[row]);
                if !place.device.is_some() {
                    // Without it a reader would take the track's process for the device.
                    out.extend_from_slice(b"\"device\":-1,");
                }
                self.push_device_of(out, place);
                self.push_stack(out, rows.stack[row]);
                self.push_rest(out, external.rest);
            });
        }
    }

    /// Kineto has no such event; a range on the stream is what comes nearest. Without `stream` among its arguments readers do
    /// not take it for a kernel.
    pub(super) fn graph_launches(
        &self,
        piece: &Piece,
        rows: &GraphLaunches,
        items: Range<usize>,
        out: &mut Vec<u8>,
    ) {
        for at in items {
            let row = piece.items[at].row as usize;
            let shape = rows.shape.get(row);
            let mut head = Vec::new();
            push_head(
                &mut head,
                "gpu_user_annotation",
                &format!("graph {}", shape.graph.0),
            );
            let event = self.event(piece, at, &head);
            self.text().event(out, &event, |out| {
                push_positive(out, "graph id", shape.graph.0);
                push_positive(out, "nodes", u64::from(shape.nodes));
                let process = rows.place.get(row).process;
                let correlation = self.unique(process, rows.correlation[row].0);
                push_positive(out, "correlation", correlation);
                self.push_process(out, process);
            });
        }
    }

    /// The same for collectives that no kernel stands for.
    pub(super) fn collectives(
        &self,
        piece: &Piece,
        rows: &Collectives,
        items: Range<usize>,
        out: &mut Vec<u8>,
    ) {
        for at in items {
            if piece.items[at].track == crate::export::stage::SAID {
                continue;
            }
            let row = piece.items[at].row as usize;
            let shape = rows.shape.get(row);
            let name = self.string(shape.name);
            let mut head = Vec::new();
            push_head(&mut head, "gpu_user_annotation", &format!("nccl:{name}"));
            let event = self.event(piece, at, &head);
            self.text().event(out, &event, |out| {
                push_word(out, "Collective name", name);
                push_positive(out, "In msg nelems", rows.count[row]);
                push_positive(out, "Group size", u64::from(shape.ranks));
                self.push_label(out, "dtype", shape.datatype);
                self.push_label(out, "Process Group Name", shape.communicator_name);
                push_positive(out, "Seq", rows.sequence[row]);
                push_positive(out, "bytes", rows.bytes[row].0);
                let process = rows.place.get(row).process;
                let correlation = self.unique(process, rows.correlation[row].0);
                push_positive(out, "correlation", correlation);
                self.push_process(out, process);
            });
        }
    }
}

/// A head with the name that the file of origin had, where ours would be another.
fn push_named_head(head: &mut Vec<u8>, category: &str, rest: &[(&str, &str)], name: &str) {
    match rest
        .iter()
        .find(|(key, value)| *key == "name" && value.starts_with('"'))
    {
        Some((_, name)) => {
            head.extend_from_slice(b",\"cat\":");
            push_string(head, category);
            head.extend_from_slice(b",\"name\":");
            head.extend_from_slice(name.as_bytes());
        }
        None => push_head(head, category, name),
    }
}

fn push_bytes(out: &mut Vec<u8>, bytes: u64, item: &Item) {
    push_format(out, format_args!("\"bytes\":{bytes},"));
    let nanos = item.end.0.saturating_sub(item.start.0);
    if nanos > 0 {
        push_key(out, "memory bandwidth (GB/s)");
        push_float(out, bytes as f64 / nanos as f64);
        out.push(b',');
    }
}

fn copy_name(shape: &CopyShape) -> String {
    let direction = match shape.direction {
        CopyDirection::HOST_TO_DEVICE => "HtoD",
        CopyDirection::DEVICE_TO_HOST => "DtoH",
        CopyDirection::HOST_TO_ARRAY => "HtoA",
        CopyDirection::ARRAY_TO_HOST => "AtoH",
        CopyDirection::ARRAY_TO_ARRAY => "AtoA",
        CopyDirection::ARRAY_TO_DEVICE => "AtoD",
        CopyDirection::DEVICE_TO_ARRAY => "DtoA",
        CopyDirection::DEVICE_TO_DEVICE => "DtoD",
        CopyDirection::HOST_TO_HOST => "HtoH",
        CopyDirection::PEER => "PtoP",
        _ => "Unknown",
    };
    let (source, destination) = (
        memory_word(shape.source_memory),
        memory_word(shape.destination_memory),
    );
    format!("Memcpy {direction} ({source} -> {destination})")
}

fn memory_word(memory: MemoryKind) -> &'static str {
    match memory {
        MemoryKind::PAGEABLE => "Pageable",
        MemoryKind::PINNED => "Pinned",
        MemoryKind::DEVICE => "Device",
        MemoryKind::ARRAY => "Array",
        MemoryKind::MANAGED => "Managed",
        MemoryKind::DEVICE_STATIC => "Device Static",
        MemoryKind::MANAGED_STATIC => "Managed Static",
        _ => "Unknown",
    }
}

fn sync_word(kind: SyncKind) -> &'static str {
    match kind {
        SyncKind::EVENT_WAIT => "Event Sync",
        SyncKind::STREAM_WAIT_EVENT => "Stream Wait Event",
        SyncKind::STREAM_WAIT => "Stream Sync",
        SyncKind::CONTEXT_WAIT => "Context Sync",
        SyncKind::DEVICE_WAIT => "Device Sync",
        SyncKind::EVENT_RECORD => "Event Record",
        _ => "Unknown Sync",
    }
}
