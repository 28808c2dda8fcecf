//! Events: recorded in one stream, waited for in another or on the host.

#![allow(unsafe_code, reason = "exports C functions")]

use std::sync::Arc;

use super::state::check_initialised;
use super::work;
use crate::call::api;
use crate::clock;
use crate::code::Code;
use crate::cupti::waits;
use crate::engine::context::{self, Context, stream_by_handle};
use crate::engine::event::{Event, Timing};
use crate::engine::operation::Operation;
use crate::engine::registry::Registry;
use crate::engine::stream::Stream;
use crate::pointer::Out;

pub(crate) static EVENTS: Registry<Event> = Registry::new();

/// `CU_EVENT_DISABLE_TIMING`.
const DISABLE_TIMING: u32 = 2;

api! { Driver:
    fn cuEventCreate = 118 (phEvent: Out<usize>, Flags: u32) => {
        check_initialised()?;
        let context = context::current()?;
        let timing = if Flags & DISABLE_TIMING == 0 { Timing::On } else { Timing::Off };
        let event = Event::new(context.id, timing);
        phEvent.put(EVENTS.add(Arc::new(event)))
    };
    fn cuEventRecord = 119 (hEvent: usize, hStream: usize) => record(hEvent, hStream);
    fn cuEventRecordWithFlags = 587 (hEvent: usize, hStream: usize, _flags: u32) => record(hEvent, hStream);
    fn cuEventSynchronize = 121 (hEvent: usize) => synchronise(hEvent);
    fn cuEventQuery = 120 (hEvent: usize) => match EVENTS.get(hEvent)?.recorded().ticket {
        Some(ticket) if !ticket.is_done() => Err(Code::NOT_READY),
        _ => Ok(()),
    };
    fn cuEventElapsedTime = 123 (pMilliseconds: Out<f32>, hStart: usize, hEnd: usize)
        => elapsed(hStart, hEnd).and_then(|millis| pMilliseconds.put(millis));
    fn cuEventElapsedTime_v2 = 780 (pMilliseconds: Out<f32>, hStart: usize, hEnd: usize)
        => elapsed(hStart, hEnd).and_then(|millis| pMilliseconds.put(millis));
    fn cuEventDestroy_v2 = 325 (hEvent: usize) => EVENTS.remove(hEvent).map(|_| ());
}

fn record(event: usize, stream: usize) -> Result<(), Code> {
    check_initialised()?;
    let event = EVENTS.get(event)?;
    let (context, stream) = stream_by_handle(stream)?;
    if stream.is_capturing() {
        return work::submit(&context, &stream, Operation::Empty).map(|_| ());
    }
    let sync_id = Event::next_sync_id();
    let record = waits::begin_event(&context, &stream, &event, sync_id);
    let done = context.submit(&stream, Vec::new(), move || {
        if let Some(record) = record {
            let now = clock::now();
            record.finish(now, now);
        }
        Ok(())
    });
    event.record(done, sync_id);
    Ok(())
}

fn synchronise(event: usize) -> Result<(), Code> {
    check_initialised()?;
    let event = EVENTS.get(event)?;
    let start = clock::now();
    if let Some(ticket) = event.recorded().ticket {
        ticket.wait();
    }
    waits::record_event_wait(&event, start);
    Context::by_id(event.context_id)?.check()
}

/// Lets a stream go on only when an event has happened.
pub(crate) fn wait_in_stream(
    context: &Arc<Context>,
    stream: &Arc<Stream>,
    event: &Arc<Event>,
) -> Result<(), Code> {
    if stream.is_capturing() {
        return work::submit(context, stream, Operation::Empty).map(|_| ());
    }
    let now = clock::now();
    waits::record_stream_wait_event(context, stream, event, now);
    let after = event.recorded().ticket.into_iter().collect();
    context.submit(stream, after, || Ok(()));
    Ok(())
}

fn elapsed(start: usize, end: usize) -> Result<f32, Code> {
    let (start, end) = (EVENTS.get(start)?, EVENTS.get(end)?);
    if start.timing == Timing::Off || end.timing == Timing::Off {
        return Err(Code::INVALID_HANDLE);
    }
    let (Some(start), Some(end)) = (start.recorded().ticket, end.recorded().ticket) else {
        return Err(Code::INVALID_HANDLE);
    };
    if !start.is_done() || !end.is_done() {
        return Err(Code::NOT_READY);
    }
    Ok((end.done_nanos() as f64 - start.done_nanos() as f64) as f32 / 1e6)
}
