//! Records of waiting: for a context, a stream, an event; and of events being recorded.

use std::sync::Arc;

use super::activity::{self, Open};
use super::record::{EventRecord, Synchronization, kind};
use crate::call;
use crate::clock;
use crate::engine::context::Context;
use crate::engine::event::Event;
use crate::engine::stream::Stream;

/// `CUpti_ActivitySynchronizationType`.
const EVENT_SYNCHRONIZE: u32 = 1;
const STREAM_WAIT_EVENT: u32 = 2;
const STREAM_SYNCHRONIZE: u32 = 3;
const CONTEXT_SYNCHRONIZE: u32 = 4;
/// In place of a stream or event where the wait has none.
const NO_ID: u32 = u32::MAX;

/// `start` is when the wait began; it has just ended.
pub(crate) fn record_context_wait(context: &Arc<Context>, start: u64) {
    record(CONTEXT_SYNCHRONIZE, start, context.id, NO_ID, None);
}

pub(crate) fn record_stream_wait(context: &Arc<Context>, stream: &Arc<Stream>, start: u64) {
    record(STREAM_SYNCHRONIZE, start, context.id, stream.id, None);
}

pub(crate) fn record_event_wait(event: &Event, start: u64) {
    record(EVENT_SYNCHRONIZE, start, event.context_id, NO_ID, Some(event));
}

pub(crate) fn record_stream_wait_event(
    context: &Arc<Context>,
    stream: &Arc<Stream>,
    event: &Event,
    start: u64,
) {
    record(STREAM_WAIT_EVENT, start, context.id, stream.id, Some(event));
}

fn record(kind: u32, start: u64, context_id: u32, stream_id: u32, event: Option<&Event>) {
    if !activity::is_enabled(kind::SYNCHRONIZATION) {
        return;
    }
    let record = Synchronization {
        kind: kind::SYNCHRONIZATION,
        wait: kind,
        start,
        end: clock::now().max(start + 1),
        correlation_id: call::correlation_id(),
        context_id,
        stream_id,
        event_id: event.map_or(NO_ID, |event| event.id),
        event_sync_id: event.map_or(0, |event| event.recorded().sync_id),
        return_value: 0,
        pad0: 0,
    };
    activity::emit(&record, kind::SYNCHRONIZATION);
}

/// Begins the record of an event being recorded in a stream; its time is when the stream gets there.
pub(crate) fn begin_event(
    context: &Arc<Context>,
    stream: &Arc<Stream>,
    event: &Event,
    sync_id: u64,
) -> Option<Open<EventRecord>> {
    if !activity::is_enabled(kind::CUDA_EVENT) {
        return None;
    }
    let record = EventRecord {
        kind: kind::CUDA_EVENT,
        correlation_id: call::correlation_id(),
        context_id: context.id,
        stream_id: stream.id,
        event_id: event.id,
        device_id: context.device.ordinal,
        event_sync_id: sync_id,
        ..EventRecord::default()
    };
    Some(Open::begin(record, kind::CUDA_EVENT))
}
