//! Contexts: primary ones, made ones, and which is current.

#![allow(unsafe_code, reason = "exports C functions")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::state::{check_initialised, device};
use crate::call::{api, correlation_id};
use crate::clock;
use crate::code::Code;
use crate::config::config;
use crate::cupti::callbacks::{self, resource, synchronize};
use crate::cupti::{announcements, memory_use, overhead, waits};
use crate::engine::context::{self, CONTEXTS, Context};
use crate::pointer::{In, Out};

/// A primary context and how often it was retained, by device.
static PRIMARY: Mutex<BTreeMap<u32, (Arc<Context>, usize)>> = Mutex::new(BTreeMap::new());

api! { Driver:
    fn cuDevicePrimaryCtxRetain = 386 (pctx: Out<usize>, dev: i32)
        => retain_primary(dev).and_then(|context| pctx.put(context.handle()));
    fn cuDevicePrimaryCtxRelease_v2 = 544 (dev: i32) => release_primary(dev);
    fn cuDevicePrimaryCtxReset_v2 = 545 (dev: i32) => reset_primary(dev);
    fn cuDevicePrimaryCtxGetState = 392 (dev: i32, flags: Out<u32>, active: Out<i32>) => {
        let device = device(dev)?;
        let is_active = lock().contains_key(&device.ordinal);
        flags.put_if_wanted(0);
        active.put(i32::from(is_active))
    };
    fn cuDevicePrimaryCtxSetFlags_v2 = 546 (dev: i32, _flags: u32) => device(dev).map(|_| ());
    fn cuCtxCreate_v2 = 235 (pctx: Out<usize>, _flags: u32, dev: i32) => create(pctx, dev);
    fn cuCtxCreate_v4 = 757 (pctx: Out<usize>, _ctxCreateParams: In<u8>, _flags: u32, dev: i32) => create(pctx, dev);
    fn cuCtxDestroy_v2 = 322 (ctx: usize) => destroy(ctx);
    fn cuCtxSetCurrent = 303 (ctx: usize) => set_current(ctx);
    fn cuCtxGetCurrent = 304 (pctx: Out<usize>) => {
        check_initialised()?;
        pctx.put(context::current_or_none().map_or(0, |context| context.handle()))
    };
    fn cuCtxPushCurrent_v2 = 323 (ctx: usize) => {
        check_initialised()?;
        context::push_current(CONTEXTS.get(ctx).map_err(|_| Code::INVALID_CONTEXT)?);
        Ok(())
    };
    fn cuCtxPopCurrent_v2 = 324 (pctx: Out<usize>) => {
        check_initialised()?;
        let popped = context::pop_current().ok_or(Code::INVALID_CONTEXT)?;
        pctx.put_if_wanted(popped.handle());
        Ok(())
    };
    fn cuCtxSynchronize = 17 () => synchronise();
    fn cuCtxGetDevice = 16 (dev: Out<i32>)
        => context::current().and_then(|context| dev.put(context.device.ordinal as i32));
    fn cuCtxGetStreamPriorityRange = 370 (leastPriority: Out<i32>, greatestPriority: Out<i32>) => {
        context::current()?;
        leastPriority.put_if_wanted(0);
        greatestPriority.put_if_wanted(-5);
        Ok(())
    };
    fn cuCtxGetApiVersion = 296 (_ctx: usize, version: Out<u32>) => version.put(config().driver_version as u32);
    fn cuCtxGetFlags = 391 (flags: Out<u32>) => context::current().and_then(|_| flags.put(0));
    fn cuCtxGetId = 695 (ctx: usize, ctxId: Out<u64>) => {
        let found = if ctx == 0 { context::current()? } else { CONTEXTS.get(ctx)? };
        ctxId.put(found.id.into())
    };
    fn cuCtxGetLimit = 137 (pvalue: Out<usize>, _limit: u32) => context::current().and_then(|_| pvalue.put(1024));
    fn cuCtxSetLimit = 136 (_limit: u32, _value: usize) => context::current().map(|_| ());
}

/// The primary context of a device, made when it is first asked for.
pub(crate) fn retain_primary(ordinal: i32) -> Result<Arc<Context>, Code> {
    let device = device(ordinal)?;
    let mut primary = lock();
    if let Some((context, count)) = primary.get_mut(&device.ordinal) {
        *count += 1;
        return Ok(context.clone());
    }
    let context = Context::create(device);
    primary.insert(device.ordinal, (context.clone(), 1));
    drop(primary);
    announce(&context);
    Ok(context)
}

fn release_primary(ordinal: i32) -> Result<(), Code> {
    let device = device(ordinal)?;
    let mut primary = lock();
    let Some((_, count)) = primary.get_mut(&device.ordinal) else {
        return Err(Code::INVALID_CONTEXT);
    };
    *count -= 1;
    if *count > 0 {
        return Ok(());
    }
    let gone = primary.remove(&device.ordinal);
    drop(primary);
    gone.map_or(Ok(()), |(context, _)| tear_down(&context))
}

fn reset_primary(ordinal: i32) -> Result<(), Code> {
    let device = device(ordinal)?;
    let gone = lock().remove(&device.ordinal);
    gone.map_or(Ok(()), |(context, _)| tear_down(&context))
}

fn create(pctx: Out<usize>, ordinal: i32) -> Result<(), Code> {
    let context = Context::create(device(ordinal)?);
    context::push_current(context.clone());
    announce(&context);
    pctx.put(context.handle())
}

fn announce(context: &Arc<Context>) {
    let start = clock::now();
    announcements::announce_own_streams(context, correlation_id());
    announcements::announce_context(context);
    overhead::record(overhead::RESOURCE, start, clock::now());
    callbacks::about_context(resource::CONTEXT_CREATED, context);
}

fn destroy(handle: usize) -> Result<(), Code> {
    check_initialised()?;
    let context = CONTEXTS.get(handle).map_err(|_| Code::INVALID_CONTEXT)?;
    tear_down(&context)
}

fn tear_down(context: &Arc<Context>) -> Result<(), Code> {
    callbacks::about_context(resource::CONTEXT_DESTROY_STARTING, context);
    context.wait();
    for stream in context.streams() {
        context.remove_stream(&stream);
    }
    context::forget_current(context);
    CONTEXTS.remove(context.handle()).map(|_| ())
}

fn set_current(handle: usize) -> Result<(), Code> {
    check_initialised()?;
    let context = match handle {
        0 => None,
        _ => Some(CONTEXTS.get(handle).map_err(|_| Code::INVALID_CONTEXT)?),
    };
    context::pop_current();
    if let Some(context) = context {
        context::push_current(context);
    }
    Ok(())
}

pub(crate) fn synchronise() -> Result<(), Code> {
    check_initialised()?;
    let context = context::current()?;
    let start = clock::now();
    context.wait();
    memory_use::record_trimmed_pools();
    waits::record_context_wait(&context, start);
    callbacks::synchronized(synchronize::CONTEXT, &context, 0);
    context.check()
}

fn lock() -> std::sync::MutexGuard<'static, BTreeMap<u32, (Arc<Context>, usize)>> {
    PRIMARY.lock().unwrap_or_else(PoisonError::into_inner)
}
