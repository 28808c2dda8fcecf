//! Waits and records of events, joined with the calls that made them.

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{Place, SyncKind, Synchronization};
use tracesmith_format::{CorrelationId, Projection, StreamId};

use super::activity::StreamKey;
use super::calls::CallId;
use super::joins::Joins;
use super::ops::times_on;
use crate::error::Error;
use crate::model::trace::Trace;
use crate::selection::Selected;

/// One wait, or one record of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncRecord {
    /// What it is.
    pub kind: SyncKind,
    /// When it began.
    pub start: u64,
    /// When it was over.
    pub end: u64,
    /// The stream that was recorded in, or that waited or was waited for.
    pub lane: StreamKey,
    /// The event.
    pub event: u64,
    /// Which of its records.
    pub record: u64,
    /// For a wait, the stream that its event was recorded in, where the wait says so.
    pub event_stream: Option<StreamId>,
    /// The call that made it.
    pub call: CallId,
    /// The call that recorded the event, where `record` is its correlation, as PyTorch's profiler writes it.
    pub record_call: CallId,
}

/// Reads the selected ones, by time. CUPTI does not say which device a wait is of: that of its context's stream is, where work ran on it.
pub(super) fn read(
    trace: &Trace,
    selected: &Selected,
    lanes: &[StreamKey],
    joins: &Joins,
) -> Result<Vec<SyncRecord>, Error> {
    let key = |lane: &StreamKey| (lane.process, lane.context, lane.stream);
    let known: FxHashMap<_, &StreamKey> = lanes.iter().map(|lane| (key(lane), lane)).collect();
    let lane_of = |place: &Place| {
        let lane = StreamKey::of(place);
        match known.get(&key(&lane)) {
            Some(known) if !lane.device.is_some() => **known,
            _ => lane,
        }
    };
    let mut syncs = Vec::new();
    let columns = [
        "start",
        "end",
        "correlation",
        "event",
        "event_record",
        "event_stream",
        "place",
        "shape.kind",
    ];
    trace.syncs.stream_wanted(
        &Projection::of::<Synchronization>(&columns)?,
        |block, rows| {
            (
                times_on(trace.clock_map.line(block.header.clock), &rows.start, &rows.end),
                rows,
            )
        },
        |((start, end), rows)| {
            for row in 0..start.len() {
                let place: &Place = rows.place.get(row);
                if !selected.wants_sync(place.process, place.device, place.stream) {
                    continue;
                }
                let find = |correlation| joins.find(place.process, correlation);
                syncs.push(SyncRecord {
                    kind: rows.shape.get(row).kind,
                    start: start[row],
                    end: end[row].max(start[row]),
                    lane: lane_of(place),
                    event: rows.event[row],
                    record: rows.event_record[row],
                    event_stream: Some(rows.event_stream[row]).filter(|stream| stream.0 != 0),
                    call: find(rows.correlation[row]),
                    record_call: find(CorrelationId(rows.event_record[row])),
                });
            }
        },
    );
    syncs.sort_by_key(|sync| (sync.start, sync.end, sync.lane, sync.event));
    Ok(syncs)
}
