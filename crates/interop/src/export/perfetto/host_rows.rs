//! What the host did as items: calls, host work, markers, flows; and counters and allocations.

use tracesmith_format::tables::{
    Allocations, ApiCalls, ApiDomain, Caller, Counters, FlowKind, FlowPhase, Flows, HostCallKind, HostCalls,
    MarkerKind, Markers, MemoryOperation, PayloadKind,
};
use tracesmith_format::{Block, Columns, StackId, StringId};
use tracesmith_trace::EventName;
use tracesmith_trace::units::name_or_unknown;

use super::GpuForm;
use super::argument::{
    FlowSpace, flow_id, launch_flow, put_address, put_category, put_float, put_flow, put_interned,
    put_signed, put_some, put_text, put_unsigned,
};
use super::item::{Change, CounterKey, Form, Head, Item, Name, OPEN, Piece, StreamKey, StreamRole, TrackKey};
use super::rows::{Rows, Stretch};
use crate::perfetto::schema::{event, gpu, legacy};
use crate::perfetto::wire::{put_bytes, put_double, put_message, put_number};
use crate::perfetto::words::{Argument, Category, api_domain};

fn item(form: Form, time: Stretch, track: u32, name: Name, stack: StackId) -> Item {
    Item {
        start: time.start,
        end: time.end,
        track,
        form,
        name,
        text: StringId::NONE,
        stack,
        head: Head::NONE,
        body: 0,
        body_length: 0,
    }
}

impl Rows<'_> {
    pub(super) fn api_calls(&self, block: &Block, rows: ApiCalls) -> Piece {
        let mut piece = Piece::default();
        let tracks = thread_tracks(&mut piece, &rows.caller.values);
        let shapes: Vec<(Name, Head)> = rows
            .shape
            .values
            .iter()
            .map(|shape| {
                let mut out = Vec::new();
                put_category(&mut out, Category::API);
                if shape.domain != ApiDomain::UNKNOWN && shape.domain.name().is_some() {
                    put_number(&mut out, event::CATEGORY_IIDS, api_domain(shape.domain));
                }
                if shape.result != 0 {
                    put_signed(&mut out, Argument::RESULT, i64::from(shape.result));
                }
                (Name::of_string(shape.name), piece.add_head(out))
            })
            .collect();
        piece.items.reserve(rows.len());
        piece.bodies.reserve(rows.len() * 24);
        for row in 0..rows.len() {
            let Some(time) = self.stretch(block, rows.start[row], rows.end[row], &mut piece) else {
                continue;
            };
            let (name, head) = shapes[rows.shape.index[row] as usize];
            let caller = rows.caller.index[row] as usize;
            let from = piece.bodies.len();
            let correlation = rows.correlation[row];
            if correlation.is_some() {
                let out = &mut piece.bodies;
                put_unsigned(out, Argument::CORRELATION, correlation.0);
                let process = rows.caller.values[caller].process;
                let flow = launch_flow(process, correlation);
                put_flow(out, flow);
                if let Some(flow) = self.event_flows.of_call(process, correlation) {
                    put_flow(out, flow);
                }
                if self.gpu_form != GpuForm::Tracks {
                    put_message(out, event::GPU_CORRELATION, |out| {
                        put_number(out, gpu::SUBMITTED_EVENTS, flow);
                    });
                }
            }
            let call = Item {
                head,
                ..item(Form::Slice, time, tracks[caller], name, rows.stack[row])
            };
            piece.push(call, from);
        }
        piece
    }

    pub(super) fn host_calls(&self, block: &Block, rows: HostCalls) -> Piece {
        let mut piece = Piece::default();
        let tracks = thread_tracks(&mut piece, &rows.caller.values);
        for row in 0..rows.len() {
            let Some(time) = self.stretch(block, rows.start[row], rows.end[row], &mut piece) else {
                continue;
            };
            let shape = rows.shape.get(row);
            let from = piece.bodies.len();
            let out = &mut piece.bodies;
            put_category(out, Category::HOST);
            let own_category = self.trace.string(shape.category);
            if !own_category.is_empty() {
                put_bytes(out, event::CATEGORIES, own_category.as_bytes());
            }
            put_text(out, Argument::KIND, name_or_unknown(shape.kind.name()));
            put_some(out, Argument::CORRELATION, rows.correlation[row].0);
            if rows.sequence[row] != 0 {
                put_signed(out, Argument::SEQUENCE, rows.sequence[row]);
            }
            put_some(out, Argument::ARGUMENT, rows.argument[row]);
            put_text(out, Argument::DETAIL, self.trace.string(rows.detail[row]));
            let form = match shape.kind {
                HostCallKind::SAMPLE => Form::Instant,
                _ => Form::Slice,
            };
            let track = tracks[rows.caller.index[row] as usize];
            piece.push(
                item(form, time, track, Name::of_string(shape.name), rows.stack[row]),
                from,
            );
        }
        piece
    }

    /// Every domain of a thread has a track for nested ranges and instants; free ranges may cross others and stand below
    /// their process.
    pub(super) fn markers(&self, block: &Block, rows: Markers) -> Piece {
        let mut piece = Piece::default();
        for row in 0..rows.len() {
            let Some(mut time) = self.stretch(block, rows.start[row], rows.end[row], &mut piece) else {
                continue;
            };
            let shape = rows.shape.get(row);
            let (form, is_free) = match shape.kind {
                MarkerKind::INSTANT => (Form::Instant, false),
                MarkerKind::FREE_RANGE | MarkerKind::OPEN_FREE_RANGE => (Form::Slice, true),
                _ => (Form::Slice, false),
            };
            if matches!(
                shape.kind,
                MarkerKind::OPEN_NESTED_RANGE | MarkerKind::OPEN_FREE_RANGE
            ) {
                time.end = OPEN;
            }
            let caller = rows.caller.get(row);
            let track = piece.track(if is_free {
                TrackKey::FreeRanges(caller.process, shape.domain)
            } else {
                TrackKey::Ranges(caller.process, caller.thread, shape.domain)
            });
            let from = piece.bodies.len();
            let out = &mut piece.bodies;
            put_category(out, Category::MARKER);
            put_text(out, Argument::DOMAIN, self.trace.string(shape.domain));
            put_text(
                out,
                Argument::CATEGORY_NAME,
                self.trace.string(shape.category_name),
            );
            put_payload(out, shape.payload_kind, rows.payload[row]);
            put_text(out, Argument::DETAIL, self.trace.string(rows.detail[row]));
            piece.push(
                item(form, time, track, Name::of_string(shape.name), rows.stack[row]),
                from,
            );
        }
        piece
    }

    /// Flows that the trace holds as such. Those of launches are not written again where correlations say the same.
    pub(super) fn flows(&self, block: &Block, rows: Flows) -> Piece {
        let mut piece = Piece::default();
        for row in 0..rows.len() {
            let shape = rows.shape.get(row);
            if shape.kind == FlowKind::LAUNCH && rows.correlation[row].is_some() {
                continue;
            }
            let Some(time) = self.moment(block, rows.time[row], &mut piece) else {
                continue;
            };
            let key = if shape.device.is_some() {
                let stream = StreamKey {
                    device: shape.device,
                    process: shape.process,
                    // A flow does not say; streams of one device seldom share a number.
                    context: self.context_of(shape.process, shape.stream),
                    stream: shape.stream,
                };
                TrackKey::Stream(stream, StreamRole::Work)
            } else if shape.thread.is_some() {
                TrackKey::Thread(shape.process, shape.thread)
            } else {
                piece.left_out += 1;
                continue;
            };
            let track = piece.track(key);
            let from = piece.bodies.len();
            let phase = match shape.phase {
                FlowPhase::START => b's',
                FlowPhase::END => b'f',
                _ => b't',
            };
            // The kind is part of the number: ends of different kinds never meet.
            let number = rows.flow[row] ^ u64::from(shape.kind.0) << 40;
            put_category(&mut piece.bodies, Category::FLOW);
            put_message(&mut piece.bodies, event::LEGACY_EVENT, |out| {
                put_number(out, legacy::PHASE, u64::from(phase));
                put_number(
                    out,
                    legacy::UNSCOPED_ID,
                    flow_id(FlowSpace::Imported, shape.process, number),
                );
                put_number(out, legacy::BIND_TO_ENCLOSING, 1);
            });
            let name = if shape.name.is_some() {
                Name::of_string(shape.name)
            } else {
                Name::NONE
            };
            piece.push(item(Form::Arrow, time, track, name, StackId::NONE), from);
        }
        piece
    }

    pub(super) fn counters(&self, block: &Block, rows: Counters) -> Piece {
        let mut piece = Piece::default();
        let key = |track: &tracesmith_format::tables::CounterTrack| {
            TrackKey::Counter(CounterKey {
                device: track.device,
                process: track.process,
                thread: track.thread,
                name: track.name,
                unit: track.unit,
                instance: track.instance,
            })
        };
        let tracks: Vec<u32> = rows
            .track
            .values
            .iter()
            .map(|track| piece.track(key(track)))
            .collect();
        for row in 0..rows.len() {
            let Some(time) = self.moment(block, rows.time[row], &mut piece) else {
                continue;
            };
            let from = piece.bodies.len();
            put_double(&mut piece.bodies, event::DOUBLE_COUNTER_VALUE, rows.value[row]);
            let track = tracks[rows.track.index[row] as usize];
            piece.push(item(Form::Count, time, track, Name::NONE, StackId::NONE), from);
        }
        piece
    }

    /// Each allocation is a moment with its arguments, and a step of the live bytes of its kind of memory.
    pub(super) fn allocations(&self, block: &Block, rows: Allocations) -> Piece {
        let mut piece = Piece::default();
        for row in 0..rows.len() {
            let place = rows.place.get(row);
            let Some(time) = self.moment(block, rows.time[row], &mut piece) else {
                continue;
            };
            let shape = rows.shape.get(row);
            let track = piece.track(TrackKey::Allocations(place.process));
            let from = piece.bodies.len();
            let out = &mut piece.bodies;
            put_category(out, Category::ALLOCATION);
            put_some(out, Argument::BYTES, rows.bytes[row].0);
            put_address(out, Argument::ADDRESS, rows.address[row].0);
            put_text(out, Argument::MEMORY, name_or_unknown(shape.memory.name()));
            put_some(out, Argument::CORRELATION, rows.correlation[row].0);
            put_some(out, Argument::THREAD, shape.thread.0);
            if let Some(device) = self.trace.device(place.device) {
                put_unsigned(out, Argument::DEVICE, u64::from(device.ordinal));
            }
            put_interned(out, Argument::ALLOCATOR, shape.allocator);
            let name = EventName::Word(shape.operation.name().unwrap_or("allocation"));
            let moment = Item {
                text: shape.allocator,
                ..item(Form::Instant, time, track, Name::new(name), rows.stack[row])
            };
            piece.push(moment, from);
            let taken = match shape.operation {
                MemoryOperation::ALLOCATE => true,
                MemoryOperation::FREE => false,
                _ => continue,
            };
            let track = piece.track(TrackKey::Memory(place.process, place.device, shape.memory));
            let from = piece.bodies.len();
            let change = Change {
                address: rows.address[row].0,
                bytes: rows.bytes[row].0,
                taken,
            };
            change.put(&mut piece.bodies);
            piece.push(item(Form::Change, time, track, Name::NONE, StackId::NONE), from);
        }
        piece
    }
}

/// The thread's track of every caller of a block.
fn thread_tracks(piece: &mut Piece, callers: &[Caller]) -> Vec<u32> {
    callers
        .iter()
        .map(|caller| piece.track(TrackKey::Thread(caller.process, caller.thread)))
        .collect()
}

fn put_payload(out: &mut Vec<u8>, kind: PayloadKind, bits: u64) {
    match kind {
        PayloadKind::U64 | PayloadKind::U32 => put_unsigned(out, Argument::PAYLOAD, bits),
        PayloadKind::I64 => put_signed(out, Argument::PAYLOAD, bits as i64),
        PayloadKind::I32 => put_signed(out, Argument::PAYLOAD, i64::from(bits as i32)),
        PayloadKind::F64 => put_float(out, Argument::PAYLOAD, f64::from_bits(bits)),
        PayloadKind::F32 => put_float(out, Argument::PAYLOAD, f64::from(f32::from_bits(bits as u32))),
        _ => {}
    }
}
