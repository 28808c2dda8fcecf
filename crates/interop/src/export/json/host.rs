//! What the host did: API calls, host work and markers.

use std::ops::Range;

use tracesmith_format::tables::*;

use crate::export::fragments::Fragments;
use crate::export::json::Json;
use crate::export::json::device::LAUNCH;
use crate::export::json_text::{
    push_address, push_float, push_format, push_head, push_key, push_positive, push_word,
};
use crate::export::sweep::Piece;
use crate::export::trace_event::{Arrow, Phase, RowEvent};

impl Json<'_> {
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
            let shape = rows.shape.index[row];
            let head = heads.get(shape, |out, shape| {
                push_head(
                    out,
                    shape.domain.name().unwrap_or("unknown"),
                    self.string(shape.name),
                );
            });
            let event = RowEvent {
                phase: Phase::of(item),
                item,
                number: piece.first_number + at as u64,
                head,
                stack: rows.stack[row],
            };
            let correlation = rows.correlation[row];
            self.text().event(out, &event, |out| {
                push_positive(out, "correlation", correlation.0);
                let result = rows.shape.get(row).result;
                if result != 0 {
                    push_format(out, format_args!("\"result\":{result},"));
                }
                self.push_external(out, piece.external(at));
            });
            if correlation.is_some() && item.end.is_some() && launches[shape as usize] {
                let id = self.stage.launch_id(rows.caller.get(row).process, correlation);
                self.text()
                    .arrow(out, Arrow::Start, LAUNCH, format_args!("{id}"), item);
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
                let category = match self.string(shape.category) {
                    "" => shape.kind.name().unwrap_or("host"),
                    category => category,
                };
                let name = match self.string(shape.name) {
                    "" => shape.kind.name().unwrap_or("host"),
                    name => name,
                };
                push_head(out, category, name);
            });
            let phase = match (shape.kind, shape.exit) {
                (HostCallKind::SAMPLE, _) => Phase::Instant,
                (_, CallExit::OPEN) => Phase::Open,
                _ => Phase::of(item),
            };
            let event = RowEvent {
                phase,
                item,
                number: piece.first_number + at as u64,
                head,
                stack: rows.stack[row],
            };
            self.text().event(out, &event, |out| {
                push_positive(out, "correlation", rows.correlation[row].0);
                if rows.sequence[row] != 0 {
                    push_format(out, format_args!("\"sequence\":{},", rows.sequence[row]));
                }
                push_positive(out, "cpu", u64::from(rows.cpu[row]));
                push_positive(out, "argument", rows.argument[row]);
                self.push_detail(out, rows.detail[row]);
            });
        }
    }

    pub(super) fn markers(&self, piece: &Piece, rows: &Markers, items: Range<usize>, out: &mut Vec<u8>) {
        let mut heads = Fragments::new(&rows.shape.values);
        for at in items {
            let item = &piece.items[at];
            let row = item.row as usize;
            let shape = rows.shape.get(row);
            let head = heads.get(rows.shape.index[row], |out, shape| {
                let category = match self.string(shape.category_name) {
                    "" => "nvtx",
                    category => category,
                };
                push_head(out, category, self.string(shape.name));
            });
            let phase = match shape.kind {
                MarkerKind::INSTANT => Phase::Instant,
                MarkerKind::OPEN_NESTED_RANGE | MarkerKind::OPEN_FREE_RANGE => Phase::Open,
                _ => Phase::of(item),
            };
            let event = RowEvent {
                phase,
                item,
                number: piece.first_number + at as u64,
                head,
                stack: rows.stack[row],
            };
            self.text().event(out, &event, |out| {
                push_word(out, "marker", shape.kind.name().unwrap_or("unknown"));
                push_positive(out, "thread", rows.caller.get(row).thread.0);
                self.push_label(out, "domain", shape.domain);
                push_positive(out, "range", rows.range[row]);
                push_positive(out, "category", u64::from(shape.category));
                push_address(out, "color", u64::from(shape.color));
                push_payload(out, shape.payload_kind, rows.payload[row]);
                self.push_detail(out, rows.detail[row]);
            });
        }
    }
}

/// Whether a call of this name asks a device for work, so that an arrow may start at it. An arrow without an end is no harm,
/// but most calls ask for nothing, and a file twice as large is.
pub(in crate::export) fn asks_for_work(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "launch", "memcpy", "memset", "copy", "fill", "graph", "record", "wait", "synchron", "prefetch",
        "dispatch", "submit", "enqueue", "commit", "malloc", "free",
    ]
    .iter()
    .any(|word| name.contains(word))
}

fn push_payload(out: &mut Vec<u8>, kind: PayloadKind, bits: u64) {
    let float = match kind {
        PayloadKind::U64 | PayloadKind::U32 => {
            return push_format(out, format_args!("\"payload\":{bits},"));
        }
        PayloadKind::I64 => return push_format(out, format_args!("\"payload\":{},", bits as i64)),
        PayloadKind::I32 => return push_format(out, format_args!("\"payload\":{},", bits as i32)),
        PayloadKind::F64 => f64::from_bits(bits),
        PayloadKind::F32 => f64::from(f32::from_bits(bits as u32)),
        _ => return,
    };
    if float.is_finite() {
        push_key(out, "payload");
        push_float(out, float);
        out.push(b',');
    } else {
        push_word(out, "payload", &float.to_string());
    }
}
