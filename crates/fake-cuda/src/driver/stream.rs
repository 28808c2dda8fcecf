//! Streams.

#![allow(unsafe_code, reason = "exports C functions")]

use std::time::Duration;

use super::event::{self, EVENTS};
use super::state::check_initialised;
use crate::call::{api, correlation_id};
use crate::clock;
use crate::code::Code;
use crate::cupti::callbacks::{self, resource, synchronize};
use crate::cupti::{announcements, memory_use, waits};
use crate::engine::context::{self, STREAMS, stream_by_handle};
use crate::engine::memory::View;
use crate::engine::registry::Registry;
use crate::engine::stream::StreamRole;
use crate::pointer::Out;

const NON_BLOCKING: u32 = 1;

api! { Driver:
    fn cuStreamCreate = 124 (phStream: Out<usize>, Flags: u32) => create(phStream, Flags, 0);
    fn cuStreamCreateWithPriority = 367 (phStream: Out<usize>, flags: u32, priority: i32)
        => create(phStream, flags, priority.clamp(-5, 0));
    fn cuStreamDestroy_v2 = 326 (hStream: usize) => destroy(hStream);
    fn cuStreamSynchronize = 126 (hStream: usize) => synchronise(hStream);
    fn cuStreamQuery = 125 (hStream: usize) => {
        let (context, stream) = stream_by_handle(hStream)?;
        context.check()?;
        match stream.tail() {
            None => Ok(()),
            Some(_) => Err(Code::NOT_READY),
        }
    };
    fn cuStreamWaitEvent = 295 (hStream: usize, hEvent: usize, _Flags: u32) => {
        let (context, stream) = stream_by_handle(hStream)?;
        event::wait_in_stream(&context, &stream, &EVENTS.get(hEvent)?)
    };
    fn cuStreamWaitValue32_v2 = 659 (hStream: usize, addr: u64, value: u32, _flags: u32) => {
        let (context, stream) = stream_by_handle(hStream)?;
        let word = View::<u32>::new(addr, 1)?;
        context.submit(&stream, Vec::new(), move || {
            while word.get(0) < value {
                std::thread::sleep(Duration::from_micros(20));
            }
            Ok(())
        });
        Ok(())
    };
    fn cuStreamGetPriority = 368 (hStream: usize, priority: Out<i32>)
        => stream_by_handle(hStream).and_then(|(_, stream)| priority.put(stream.priority));
    fn cuStreamGetFlags = 369 (hStream: usize, flags: Out<u32>) => stream_by_handle(hStream)
        .and_then(|(_, stream)| flags.put(u32::from(stream.role == StreamRole::NonBlocking)));
    fn cuStreamGetCtx = 483 (hStream: usize, pctx: Out<usize>)
        => stream_by_handle(hStream).and_then(|(context, _)| pctx.put(context.handle()));
    fn cuStreamGetId = 693 (hStream: usize, streamId: Out<u64>)
        => stream_by_handle(hStream).and_then(|(_, stream)| streamId.put(stream.id.into()));
}

pub(crate) fn create(handle: Out<usize>, flags: u32, priority: i32) -> Result<(), Code> {
    check_initialised()?;
    let context = context::current()?;
    let role = match flags {
        0 => StreamRole::Blocking,
        NON_BLOCKING => StreamRole::NonBlocking,
        _ => return Err(Code::INVALID_VALUE),
    };
    let stream = context.add_stream(role, priority);
    announcements::announce_stream(&stream, correlation_id());
    callbacks::about_stream(resource::STREAM_CREATED, &context, &stream);
    handle.put(Registry::handle_of(&stream))
}

pub(crate) fn destroy(handle: usize) -> Result<(), Code> {
    check_initialised()?;
    let (context, stream) = stream_by_handle(handle)?;
    callbacks::about_stream(resource::STREAM_DESTROY_STARTING, &context, &stream);
    STREAMS.remove(handle)?;
    context.remove_stream(&stream);
    Ok(())
}

pub(crate) fn synchronise(handle: usize) -> Result<(), Code> {
    check_initialised()?;
    let (context, stream) = stream_by_handle(handle)?;
    if stream.is_capturing() {
        return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
    }
    let start = clock::now();
    stream.wait();
    memory_use::record_trimmed_pools();
    waits::record_stream_wait(&context, &stream, start);
    callbacks::synchronized(synchronize::STREAM, &context, handle);
    context.check()
}
