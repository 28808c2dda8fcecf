//! What the host did and marked, with the categories and arguments that Kineto gives it.

use std::ops::Range;

use tracesmith_format::tables::*;

use crate::export::fragments::Fragments;
use crate::export::json::{asks_for_work, is_said_by_rows};
use crate::export::json_members::members;
use crate::export::json_text::{
    push_float, push_format, push_head, push_key, push_number, push_positive, push_string,
};
use crate::export::kineto::Kineto;
use crate::export::kineto::device::LAUNCH;
use crate::export::stage::is_span_of_profiler;
use crate::export::sweep::{Item, LEFT_OUT, Piece};
use crate::export::trace_event::{Arrow, Phase, RowEvent};

/// Categories that mark something in files of PyTorch's profiler.
const MARKS: [&str; 5] = [
    "user_annotation",
    "gpu_user_annotation",
    "cuda_profiler_range",
    "cpu_instant_event",
    "Trace",
];

impl Kineto<'_> {
    pub(super) fn api_calls(&self, piece: &Piece, rows: &ApiCalls, items: Range<usize>, out: &mut Vec<u8>) {
        let mut heads = Fragments::new(&rows.shape.values);
        let launches: Vec<bool> = rows
            .shape
            .values
            .iter()
            .map(|shape| asks_for_work(self.string(shape.name)))
            .collect();
        for at in items {
            let item = &piece.items[at];
            let row = item.row as usize;
            let shape = rows.shape.get(row);
            let head = heads.get(rows.shape.index[row], |out, shape| {
                // PyTorch writes calls of HIP under the category of CUDA's runtime, too.
                let category = match shape.domain {
                    ApiDomain::CUDA_DRIVER => "cuda_driver",
                    _ => "cuda_runtime",
                };
                push_head(out, category, self.string(shape.name));
            });
            let event = self.event(piece, at, head);
            let process = rows.caller.get(row).process;
            let correlation = self.unique(process, rows.correlation[row].0);
            self.text().event(out, &event, |out| {
                let external = piece.external(at);
                self.push_external_id(out, process, external);
                let key = match shape.domain {
                    ApiDomain::HIP | ApiDomain::HSA => "cid",
                    _ => "cbid",
                };
                push_key(out, key);
                push_number(out, shape.function);
                push_format(out, format_args!(",\"correlation\":{correlation},"));
                if shape.result != 0 {
                    push_format(out, format_args!("\"result\":{},", shape.result));
                }
                self.push_stack(out, rows.stack[row]);
                self.push_rest(out, external.rest);
            });
            if correlation > 0 && item.end.is_some() && launches[rows.shape.index[row] as usize] {
                self.text()
                    .arrow(out, Arrow::Start, LAUNCH, format_args!("{correlation}"), item);
            }
        }
    }

    pub(super) fn host_calls(&self, piece: &Piece, rows: &HostCalls, items: Range<usize>, out: &mut Vec<u8>) {
        let mut heads = Fragments::new(&rows.shape.values);
        for at in items {
            let item = &piece.items[at];
            let row = item.row as usize;
            let shape = rows.shape.get(row);
            let head = heads.get(rows.shape.index[row], |out, shape| {
                let category = match (shape.kind, self.string(shape.category)) {
                    (HostCallKind::OPERATOR, _) => "cpu_op",
                    (HostCallKind::PYTHON, _) => "python_function",
                    (HostCallKind::OVERHEAD, _) => "overhead",
                    (kind, "") => kind.name().unwrap_or("host"),
                    (_, category) => category,
                };
                push_head(out, category, self.string(shape.name));
            });
            let phase = match (shape.kind, shape.exit) {
                (HostCallKind::SAMPLE, _) => Phase::Instant,
                (_, CallExit::OPEN) => Phase::Open,
                _ => Phase::of(item),
            };
            let event = RowEvent {
                phase,
                ..self.event(piece, at, head)
            };
            self.text().event(out, &event, |out| {
                let process = rows.caller.get(row).process;
                let correlation = self.unique(process, rows.correlation[row].0);
                let argument = rows.argument[row];
                if shape.kind == HostCallKind::PYTHON {
                    push_positive(out, "Python id", self.unique(process, argument));
                    push_positive(out, "Python parent id", correlation);
                } else {
                    push_positive(out, "External id", correlation);
                }
                if rows.sequence[row] != 0 {
                    push_format(out, format_args!("\"Sequence number\":{},", rows.sequence[row]));
                }
                // The callers of a numbered Python function are events of their own, which it names.
                if shape.kind != HostCallKind::PYTHON || argument == 0 {
                    self.push_stack(out, rows.stack[row]);
                }
                self.push_rest(out, rows.detail[row]);
                match shape.kind {
                    HostCallKind::PYTHON => {}
                    HostCallKind::OPERATOR => self.push_index(out, "Ev Idx", argument),
                    _ => push_positive(out, "argument", argument),
                }
            });
        }
    }

    pub(super) fn markers(&self, piece: &Piece, rows: &Markers, items: Range<usize>, out: &mut Vec<u8>) {
        let mut heads = Fragments::new(&rows.shape.values);
        for at in items {
            let item = &piece.items[at];
            let row = item.row as usize;
            let (shape, caller) = (rows.shape.get(row), rows.caller.get(row));
            let category = self.string(shape.category_name);
            let is_mark = MARKS.contains(&category);
            let head = heads.get(rows.shape.index[row], |out, shape| {
                let category = if is_mark { category } else { "user_annotation" };
                push_head(out, category, self.string(shape.name));
            });
            let phase = match shape.kind {
                MarkerKind::INSTANT => Phase::Instant,
                MarkerKind::OPEN_NESTED_RANGE | MarkerKind::OPEN_FREE_RANGE => Phase::Open,
                _ => Phase::of(item),
            };
            if is_span_of_profiler(self.stage.trace, caller, shape) {
                self.span_of_profiler(out, item, phase, shape, rows.detail[row]);
                continue;
            }
            let event = RowEvent {
                phase,
                ..self.event(piece, at, head)
            };
            self.text().event(out, &event, |out| {
                push_positive(out, "External id", self.unique(caller.process, rows.range[row]));
                if !caller.thread.is_some() {
                    self.push_process(out, caller.process);
                }
                if !is_mark {
                    self.push_label(out, "domain", shape.domain);
                    self.push_label(out, "category", shape.category_name);
                }
                self.push_stack(out, rows.stack[row]);
                self.push_rest(out, rows.detail[row]);
            });
        }
    }

    /// The profiler's own spans stand on processes that are texts.
    fn span_of_profiler(
        &self,
        out: &mut Vec<u8>,
        item: &Item,
        phase: Phase,
        shape: &MarkerShape,
        detail: tracesmith_format::StringId,
    ) {
        let domain = self.string(shape.domain);
        let is_span = phase == Phase::Stretch;
        out.extend_from_slice(if is_span {
            b",\n{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":"
        } else {
            b",\n{\"ph\":\"i\",\"s\":\"g\",\"name\":"
        });
        push_string(out, self.string(shape.name));
        out.extend_from_slice(b",\"pid\":");
        push_string(out, domain);
        let thread = match (is_span, domain) {
            (_, "") => "",
            (true, _) => "PyTorch Profiler",
            (false, _) => "Trace PyTorch Profiler",
        };
        out.extend_from_slice(b",\"tid\":");
        push_string(out, thread);
        self.text().time(out, item.start);
        if is_span {
            out.extend_from_slice(b",\"dur\":");
            crate::export::json_text::push_micros(out, item.end.0 - item.start.0);
        }
        if members(self.string(detail)).is_some() {
            out.extend_from_slice(b",\"args\":");
            out.extend_from_slice(self.string(detail).as_bytes());
        }
        out.push(b'}');
    }

    /// Each allocation as PyTorch's memory profile has it.
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
            let bytes = i128::from(rows.bytes[row].0);
            let bytes = match shape.operation {
                MemoryOperation::FREE | MemoryOperation::RELEASE => -bytes,
                _ => bytes,
            };
            let event = RowEvent {
                phase: Phase::Instant,
                ..self.event(piece, at, b",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\"")
            };
            let device = self.stage.trace.device(place.device);
            self.text().event(out, &event, |out| {
                push_positive(out, "Total Reserved", rows.pool_size[row].0);
                push_positive(out, "Total Allocated", rows.pool_used[row].0);
                push_format(out, format_args!("\"Bytes\":{bytes},"));
                push_positive(out, "Addr", rows.address[row].0);
                match device {
                    Some(device) => {
                        let kind = shape.pool_kind.max(1);
                        let ordinal = self.stage.pids.ordinal(self.stage.trace, device);
                        push_format(
                            out,
                            format_args!("\"Device Id\":{ordinal},\"Device Type\":{kind},"),
                        );
                    }
                    None => out.extend_from_slice(b"\"Device Id\":-1,\"Device Type\":0,"),
                }
                if !matches!(shape.operation, MemoryOperation::ALLOCATE | MemoryOperation::FREE) {
                    push_key(out, "operation");
                    push_string(out, shape.operation.name().unwrap_or("unknown"));
                    out.push(b',');
                }
            });
        }
    }

    pub(super) fn counters(&self, piece: &Piece, rows: &Counters, items: Range<usize>, out: &mut Vec<u8>) {
        for item in piece.items[items].iter().filter(|item| item.track != LEFT_OUT) {
            let row = item.row as usize;
            let track = rows.track.get(row);
            let pid = self.stage.pids.device_or_process(track.device, track.process);
            out.extend_from_slice(b",\n{\"ph\":\"C\",\"name\":");
            push_string(out, self.string(track.name));
            push_format(out, format_args!(",\"pid\":{pid}"));
            if track.instance > 0 {
                push_format(out, format_args!(",\"id\":{}", track.instance));
            }
            self.text().time(out, item.start);
            out.extend_from_slice(b",\"args\":{");
            push_key(
                out,
                match self.string(track.unit) {
                    "" => "value",
                    unit => unit,
                },
            );
            push_float(out, rows.value[row]);
            out.extend_from_slice(b"}}");
        }
    }

    pub(super) fn flows(&self, piece: &Piece, rows: &Flows, items: Range<usize>, out: &mut Vec<u8>) {
        for item in &piece.items[items] {
            let row = item.row as usize;
            let shape = rows.shape.get(row);
            if is_said_by_rows(shape, rows.correlation[row]) {
                continue;
            }
            let kind = match shape.kind {
                FlowKind::FORWARD_BACKWARD => "fwdbwd",
                FlowKind::LAUNCH => "ac2g",
                kind => kind.name().unwrap_or("flow"),
            };
            let name = match self.string(shape.name) {
                "" => kind,
                name => name,
            };
            let mut head = Vec::new();
            push_head(&mut head, kind, name);
            let phase = match shape.phase {
                FlowPhase::START => Arrow::Start,
                FlowPhase::STEP => Arrow::Step,
                _ => Arrow::End,
            };
            let id = self.unique(shape.process, rows.flow[row]);
            self.text().arrow(out, phase, &head, format_args!("{id}"), item);
        }
    }
}
