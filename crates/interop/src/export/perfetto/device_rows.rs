//! Device work as items: kernels, copies, sets, synchronisations, graph launches, collectives.

use tracesmith_format::tables::{
    Collectives, GraphLaunches, KernelShape, Kernels, MemoryCopies, MemorySets, Place, SyncKind,
    Synchronizations,
};
use tracesmith_format::{Block, Columns, DeviceId, StringId, Timestamp};
use tracesmith_trace::EventName;
use tracesmith_trace::units::name_or_unknown;

use super::GpuForm;
use super::argument::{
    put_address, put_category, put_dimensions, put_flow, put_interned, put_some, put_text, put_unsigned,
};
use super::item::{Form, Head, Name, Piece, StreamRole, TrackKey};
use super::rows::Rows;
use super::stage;
use super::work::{Work, bandwidth, stream_of};
use crate::export::stage::has_stream;
use crate::perfetto::words::{Argument, Category};

impl Rows<'_> {
    pub(super) fn kernels(&self, block: &Block, rows: Kernels) -> Piece {
        let mut piece = Piece::default();
        let tracks = self.stream_tracks(&mut piece, &rows.place.values, StreamRole::Work);
        let shapes: Vec<KernelParts> = rows
            .shape
            .values
            .iter()
            .map(|shape| self.kernel_parts(&mut piece, shape))
            .collect();
        piece.items.reserve(rows.len());
        piece.bodies.reserve(rows.len() * 24);
        for row in 0..rows.len() {
            let at = rows.place.index[row] as usize;
            let place = rows.place.values[at];
            let Some(time) = self.work_time(block, rows.start[row], rows.end[row], &place, &mut piece) else {
                continue;
            };
            let shape = &shapes[rows.shape.index[row] as usize];
            let work = Work {
                time,
                place,
                correlation: rows.correlation[row],
                stack: rows.stack[row],
                name: shape.name,
                text: shape.mangled,
                track: tracks[at],
                head: shape.head,
            };
            if self.gpu_form != GpuForm::RenderStages {
                let from = piece.bodies.len();
                put_some(&mut piece.bodies, Argument::GRAPH_NODE, rows.graph_node[row].0);
                if rows.queued[row].is_some() {
                    let waited = rows.start[row].0.saturating_sub(rows.queued[row].0);
                    put_unsigned(&mut piece.bodies, Argument::QUEUED, waited);
                }
                work.put_slice(&mut piece, from);
            }
            if self.gpu_form != GpuForm::Tracks {
                let from = piece.bodies.len();
                stage::put_work(&mut piece.bodies, &work.place, work.correlation, row as u64);
                piece.bodies.extend_from_slice(&shape.launch);
                work.put_stage(&mut piece, Form::KernelStage, from);
            }
        }
        piece
    }

    fn kernel_parts(&self, piece: &mut Piece, shape: &KernelShape) -> KernelParts {
        let name = if shape.demangled.is_some() {
            shape.demangled
        } else {
            shape.name
        };
        let mangled = if shape.name != name {
            shape.name
        } else {
            StringId::NONE
        };
        let mut arguments = Vec::new();
        let out = &mut arguments;
        put_category(out, Category::KERNEL);
        put_dimensions(out, Argument::GRID, [shape.grid_x, shape.grid_y, shape.grid_z]);
        put_dimensions(
            out,
            Argument::BLOCK,
            [shape.block_x, shape.block_y, shape.block_z],
        );
        put_dimensions(
            out,
            Argument::CLUSTER,
            [shape.cluster_x, shape.cluster_y, shape.cluster_z],
        );
        put_some(out, Argument::REGISTERS, u64::from(shape.registers));
        put_some(out, Argument::STATIC_SHARED, shape.static_shared.0);
        put_some(out, Argument::DYNAMIC_SHARED, shape.dynamic_shared.0);
        put_some(out, Argument::LOCAL, shape.local_per_thread.0);
        put_some(out, Argument::GRAPH, shape.graph.0);
        put_interned(out, Argument::MANGLED, mangled);
        KernelParts {
            name: Name::of_string(name),
            mangled,
            head: piece.add_head(arguments),
            launch: stage::launch(shape),
        }
    }

    pub(super) fn copies(&self, block: &Block, rows: MemoryCopies) -> Piece {
        let mut piece = Piece::default();
        let tracks = self.stream_tracks(&mut piece, &rows.place.values, StreamRole::Work);
        for row in 0..rows.len() {
            let at = rows.place.index[row] as usize;
            let place = rows.place.values[at];
            let Some(time) = self.work_time(block, rows.start[row], rows.end[row], &place, &mut piece) else {
                continue;
            };
            let shape = rows.shape.get(row);
            let name = shape.direction.name().filter(|_| shape.direction.0 != 0);
            let work = Work {
                time,
                place,
                correlation: rows.correlation[row],
                stack: rows.stack[row],
                name: Name::new(EventName::Word(name.unwrap_or("copy"))),
                text: StringId::NONE,
                track: tracks[at],
                head: Head::NONE,
            };
            let bytes = rows.bytes[row].0;
            self.put_memory_work(&mut piece, &work, Category::COPY, bytes, row, |out| {
                put_text(out, Argument::FROM, name_or_unknown(shape.source_memory.name()));
                put_text(
                    out,
                    Argument::TO,
                    name_or_unknown(shape.destination_memory.name()),
                );
                put_some(out, Argument::COPIES, rows.copies[row]);
                put_some(out, Argument::GRAPH, shape.graph.0);
                put_some(out, Argument::GRAPH_NODE, rows.graph_node[row].0);
            });
        }
        piece
    }

    pub(super) fn sets(&self, block: &Block, rows: MemorySets) -> Piece {
        let mut piece = Piece::default();
        let tracks = self.stream_tracks(&mut piece, &rows.place.values, StreamRole::Work);
        for row in 0..rows.len() {
            let at = rows.place.index[row] as usize;
            let place = rows.place.values[at];
            let Some(time) = self.work_time(block, rows.start[row], rows.end[row], &place, &mut piece) else {
                continue;
            };
            let shape = rows.shape.get(row);
            let work = Work {
                time,
                place,
                correlation: rows.correlation[row],
                stack: rows.stack[row],
                name: Name::new(EventName::Word("set")),
                text: StringId::NONE,
                track: tracks[at],
                head: Head::NONE,
            };
            let bytes = rows.bytes[row].0;
            self.put_memory_work(&mut piece, &work, Category::SET, bytes, row, |out| {
                put_text(out, Argument::MEMORY, name_or_unknown(shape.memory.name()));
                put_unsigned(out, Argument::VALUE, u64::from(rows.value[row]));
                put_some(out, Argument::GRAPH, shape.graph.0);
                put_some(out, Argument::GRAPH_NODE, rows.graph_node[row].0);
            });
        }
        piece
    }

    fn put_memory_work(
        &self,
        piece: &mut Piece,
        work: &Work,
        category: Category,
        bytes: u64,
        row: usize,
        more: impl FnOnce(&mut Vec<u8>),
    ) {
        if self.gpu_form != GpuForm::RenderStages {
            let from = piece.bodies.len();
            let out = &mut piece.bodies;
            put_category(out, category);
            put_unsigned(out, Argument::BYTES, bytes);
            put_some(out, Argument::BANDWIDTH, bandwidth(bytes, &work.time));
            more(out);
            work.put_slice(piece, from);
        }
        if self.gpu_form != GpuForm::Tracks {
            let from = piece.bodies.len();
            stage::put_work(&mut piece.bodies, &work.place, work.correlation, row as u64);
            stage::put_extra(&mut piece.bodies, "bytes", &bytes.to_string());
            work.put_stage(piece, Form::Stage, from);
        }
    }

    /// Synchronisations. An event that was recorded without a time of its own stands where the device passed it.
    pub(super) fn syncs(&self, block: &Block, rows: Synchronizations) -> Piece {
        let mut piece = Piece::default();
        let of_streams = self.stream_tracks(&mut piece, &rows.place.values, StreamRole::Syncs);
        let of_none = self.stream_tracks(&mut piece, &rows.place.values, StreamRole::OtherSyncs);
        for row in 0..rows.len() {
            let at = rows.place.index[row] as usize;
            let place = rows.place.values[at];
            let (mut start, mut end) = (rows.start[row], rows.end[row]);
            if start == Timestamp::NONE {
                (start, end) = (rows.device_time[row], rows.device_time[row]);
            }
            let Some(time) = self.work_time(block, start, end, &place, &mut piece) else {
                continue;
            };
            let shape = rows.shape.get(row);
            let track = match shape.kind {
                SyncKind::CONTEXT_WAIT | SyncKind::DEVICE_WAIT => of_none[at],
                SyncKind::EVENT_WAIT if !has_stream(&place) => of_none[at],
                _ => of_streams[at],
            };
            let work = Work {
                time,
                place,
                correlation: rows.correlation[row],
                stack: rows.stack[row],
                name: Name::new(EventName::Word(shape.kind.name().unwrap_or("sync"))),
                text: StringId::NONE,
                track,
                head: Head::NONE,
            };
            let from = piece.bodies.len();
            let out = &mut piece.bodies;
            put_category(out, Category::SYNC);
            put_some(out, Argument::EVENT, rows.event[row]);
            if rows.event[row] != 0 {
                put_some(out, Argument::EVENT_RECORD, rows.event_record[row]);
            }
            let (event, record) = (rows.event[row], rows.event_record[row]);
            if let Some(flow) = self.event_flows.of_sync(shape.kind, place.process, event, record) {
                put_flow(out, flow);
            }
            put_some(out, Argument::RESULT, shape.result as u64);
            work.put_slice(&mut piece, from);
        }
        piece
    }

    pub(super) fn graph_launches(&self, block: &Block, rows: GraphLaunches) -> Piece {
        let mut piece = Piece::default();
        let tracks = self.stream_tracks(&mut piece, &rows.place.values, StreamRole::Graphs);
        for row in 0..rows.len() {
            let at = rows.place.index[row] as usize;
            let place = rows.place.values[at];
            let Some(time) = self.work_time(block, rows.start[row], rows.end[row], &place, &mut piece) else {
                continue;
            };
            let shape = rows.shape.get(row);
            let work = Work {
                time,
                place,
                correlation: rows.correlation[row],
                stack: rows.stack[row],
                name: Name::new(EventName::Word("graph launch")),
                text: StringId::NONE,
                track: tracks[at],
                head: Head::NONE,
            };
            let from = piece.bodies.len();
            let out = &mut piece.bodies;
            put_category(out, Category::GRAPH);
            put_some(out, Argument::GRAPH, shape.graph.0);
            put_some(out, Argument::EXECUTABLE, shape.executable.0);
            put_some(out, Argument::NODES, u64::from(shape.nodes));
            work.put_slice(&mut piece, from);
        }
        piece
    }

    pub(super) fn collectives(&self, block: &Block, rows: Collectives) -> Piece {
        let mut piece = Piece::default();
        let tracks = self.stream_tracks(&mut piece, &rows.place.values, StreamRole::Collectives);
        for row in 0..rows.len() {
            let at = rows.place.index[row] as usize;
            let place = rows.place.values[at];
            let Some(time) = self.work_time(block, rows.start[row], rows.end[row], &place, &mut piece) else {
                continue;
            };
            let shape = rows.shape.get(row);
            let name = if shape.name.is_some() {
                EventName::Id(shape.name)
            } else {
                EventName::Word("collective")
            };
            let work = Work {
                time,
                place,
                correlation: rows.correlation[row],
                stack: rows.stack[row],
                name: Name::new(name),
                text: StringId::NONE,
                track: tracks[at],
                head: Head::NONE,
            };
            let from = piece.bodies.len();
            let out = &mut piece.bodies;
            put_category(out, Category::COLLECTIVE);
            put_text(out, Argument::KIND, name_or_unknown(shape.kind.name()));
            put_some(out, Argument::BYTES, rows.bytes[row].0);
            put_some(out, Argument::BANDWIDTH, bandwidth(rows.bytes[row].0, &work.time));
            put_some(out, Argument::COUNT, rows.count[row]);
            put_some(out, Argument::SEQUENCE, rows.sequence[row]);
            put_address(out, Argument::COMMUNICATOR, shape.communicator);
            for (argument, number) in [(Argument::RANK, shape.rank), (Argument::ROOT, shape.root)] {
                if let Some(number) = number.get() {
                    put_unsigned(out, argument, u64::from(number));
                }
            }
            put_some(out, Argument::RANKS, u64::from(shape.ranks));
            for (argument, text) in [
                (Argument::DATATYPE, shape.datatype),
                (Argument::REDUCTION, shape.reduction),
                (Argument::ALGORITHM, shape.algorithm),
                (Argument::PROTOCOL, shape.protocol),
            ] {
                put_text(out, argument, self.trace.string(text));
            }
            work.put_slice(&mut piece, from);
        }
        piece
    }

    /// The track of every place of a block.
    fn stream_tracks(&self, piece: &mut Piece, places: &[Place], role: StreamRole) -> Vec<u32> {
        places
            .iter()
            .map(|place| {
                let mut stream = stream_of(place);
                if stream.device == DeviceId::NONE {
                    stream.device = self.device_of(place.process, place.context);
                }
                piece.track(TrackKey::Stream(stream, role))
            })
            .collect()
    }
}

/// What all launches of one shape have in common, encoded once.
struct KernelParts {
    name: Name,
    mangled: StringId,
    head: Head,
    launch: Vec<u8>,
}
