//! Trace-event JSON as Chrome and Perfetto read it.
//!
//! Times are microseconds after the trace's first event, with as many decimals as nanoseconds take. Readers hold them as
//! doubles, in which microseconds since 1970 would lose everything below a quarter of a microsecond; after a base, a
//! nanosecond stays one for 100 days. The base is in `otherData`.
//!
//! Events that overlap on one track go to further lanes, since readers drop what begins inside another event and ends behind it.

mod device;
mod host;
mod points;
mod stack_frames;

use std::ops::Range;

use tracesmith_format::StringId;
use tracesmith_trace::Trace;

use crate::error::Error;
use crate::export::json_members::members;
use crate::export::json_text::{push_key, push_members, push_number, push_positive, push_string};
use crate::export::stage::{Dialect, Stage};
use crate::export::sweep::{External, Piece, Rows, Score, sweep};
use crate::export::trace_event::EventText;
use crate::export::{ExportOptions, ExportReport, Exporter, Out, Way};
pub(super) use host::asks_for_work;
pub(super) use points::is_said_by_rows;

pub(super) const EXPORTER: Exporter = Exporter {
    name: "json",
    aliases: &["chrome"],
    title: "trace-event JSON, for Perfetto and chrome://tracing",
    extension: "json",
    way: Way::Stream(write),
};

fn write(trace: &Trace, options: &ExportOptions, out: &mut Out<'_>) -> Result<ExportReport, Error> {
    let base = trace.span().map_or(0, |(first, _)| first.0);
    write_head(trace, base, out)?;
    let mut json = Json {
        stage: Stage::new(trace, Dialect::Chrome, None),
        base,
    };
    let report = sweep(trace, options, &mut json, out)?;
    out.put(b"\n]")?;
    stack_frames::write(trace, out)?;
    out.put(b"}\n")?;
    Ok(report)
}

fn write_head(trace: &Trace, base: u64, out: &mut Out<'_>) -> Result<(), Error> {
    let mut head = br#"{"displayTimeUnit":"ns","otherData":{"tool":"tracesmith","base_time_ns":""#.to_vec();
    // As text: a reader would make a double of it.
    push_number(&mut head, base);
    head.extend_from_slice(b"\"");
    let clock = trace
        .clocks
        .iter()
        .find(|clock| clock.id == trace.clock_map.reference())
        .and_then(|clock| clock.kind.name());
    for (key, value) in [("clock", clock.unwrap_or("unknown"))]
        .into_iter()
        .chain(trace.metadata.iter().map(|(key, value)| (&key[..], &value[..])))
    {
        head.push(b',');
        push_key(&mut head, key);
        push_string(&mut head, value);
    }
    head.extend_from_slice(b"},\"traceEvents\":[");
    out.put(&head)
}

/// The export on its way.
struct Json<'t> {
    stage: Stage<'t>,
    base: u64,
}

impl Score for Json<'_> {
    fn place(&mut self, piece: &mut Piece, item: usize) -> u32 {
        self.stage.place(piece, item)
    }

    fn take_definitions(&mut self) -> Vec<u8> {
        self.stage.tracks.take_definitions()
    }

    fn write(&self, piece: &Piece, items: Range<usize>, out: &mut Vec<u8>) {
        match &piece.rows {
            Rows::Kernel(rows) => self.kernels(piece, rows, items, out),
            Rows::MemoryCopy(rows) => self.copies(piece, rows, items, out),
            Rows::MemorySet(rows) => self.sets(piece, rows, items, out),
            Rows::Synchronization(rows) => self.syncs(piece, rows, items, out),
            Rows::GraphLaunch(rows) => self.graph_launches(piece, rows, items, out),
            Rows::Collective(rows) => self.collectives(piece, rows, items, out),
            Rows::ApiCall(rows) => self.api_calls(piece, rows, items, out),
            Rows::HostCall(rows) => self.host_calls(piece, rows, items, out),
            Rows::Marker(rows) => self.markers(piece, rows, items, out),
            Rows::Allocation(rows) => self.allocations(piece, rows, items, out),
            Rows::Counter(rows) => self.counters(piece, rows, items, out),
            Rows::Flow(rows) => self.flows(piece, rows, items, out),
        }
    }
}

impl Json<'_> {
    fn text(&self) -> EventText<'_> {
        EventText {
            tracks: &self.stage.tracks,
            base: self.base,
        }
    }

    fn string(&self, id: StringId) -> &str {
        self.stage.trace.string(id)
    }

    /// Adds a member unless its text is empty.
    fn push_label(&self, out: &mut Vec<u8>, key: &str, label: StringId) {
        if label.is_some() {
            push_key(out, key);
            push_string(out, self.string(label));
            out.push(b',');
        }
    }

    /// Adds what a framework says of a row.
    fn push_external(&self, out: &mut Vec<u8>, external: External) {
        push_positive(out, "external id", external.id);
        self.push_detail(out, external.rest);
    }

    /// Adds a text of the source: its members, when it is an object in JSON.
    fn push_detail(&self, out: &mut Vec<u8>, detail: StringId) {
        match members(self.string(detail)) {
            Some(members) => push_members(out, &members),
            None => self.push_label(out, "detail", detail),
        }
    }
}
