//! Records that say what exists: devices, contexts, streams. They are written when the thing is made; for what is there
//! already, only when the kind is turned on by `cuptiActivityEnableAndDump`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::activity;
use super::record::{ContextRecord, DeviceRecord, StreamRecord, kind};
use crate::driver::state;
use crate::engine::context::{CONTEXTS, Context};
use crate::engine::device::{self, Device};
use crate::engine::stream::{Stream, StreamRole};

const DEVICE_NAME: &std::ffi::CStr = c"TraceSmith Fake GPU";

/// Writes records of what exists of a kind.
pub(crate) fn announce_existing(kind: u32) {
    match kind {
        kind::DEVICE if state::is_initialised() => {
            state::devices()
                .iter()
                .for_each(|&device| announce_device(device));
        }
        kind::CONTEXT => CONTEXTS.all().iter().for_each(announce_context),
        kind::STREAM => {
            for context in CONTEXTS.all() {
                announce_own_streams(&context, 0);
                let made = context.streams();
                made[1..].iter().for_each(|stream| announce_stream(stream, 0));
            }
        }
        _ => {}
    }
}

/// The driver has got to know its devices: writes their records if they are wanted.
pub(crate) fn announce_devices() {
    static IS_DONE: AtomicBool = AtomicBool::new(false);
    let is_due = activity::is_enabled(kind::DEVICE) && state::is_initialised();
    if is_due && !IS_DONE.swap(true, Ordering::AcqRel) {
        state::devices()
            .iter()
            .for_each(|&device| announce_device(device));
    }
}

fn announce_device(device: Device) {
    let attribute = |number: u32| device.attribute(number) as u32;
    let record = DeviceRecord {
        kind: kind::DEVICE,
        flags: 1,
        memory_bandwidth: u64::from(attribute(36)) * u64::from(attribute(37)) / 8 * 2,
        memory_size: device::MEMORY_BYTES,
        constant_memory: attribute(9),
        l2_size: attribute(38),
        warp_size: attribute(10),
        core_clock: attribute(13),
        copy_engines: attribute(40),
        multiprocessors: attribute(16),
        max_ipc: 4,
        max_warps: 64,
        max_blocks: 32,
        shared_per_multiprocessor: attribute(81),
        registers_per_multiprocessor: attribute(82),
        registers_per_block: attribute(12),
        shared_per_block: attribute(8),
        threads_per_block: attribute(1),
        max_block: [attribute(2), attribute(3), attribute(4)],
        max_grid: [attribute(5), attribute(6), attribute(7)],
        capability: [attribute(75), attribute(76)],
        id: device.ordinal,
        ecc_enabled: 1,
        uuid: device.uuid(),
        name: DEVICE_NAME.as_ptr() as u64,
        is_cuda_visible: 1,
        numa_id: u32::MAX,
        tpcs: attribute(16) / 2,
        ..DeviceRecord::default()
    };
    activity::emit(&record, kind::DEVICE);
}

pub(crate) fn announce_context(context: &Arc<Context>) {
    if !activity::is_enabled(kind::CONTEXT) {
        return;
    }
    let record = ContextRecord {
        kind: kind::CONTEXT,
        context_id: context.id,
        device_id: context.device.ordinal,
        compute_api: 1,
        null_stream_id: context.legacy.id as u16,
        parent_context_id: u32::MAX,
        multiprocessors: device::MULTIPROCESSORS as u16,
        process_id: std::process::id().into(),
        ..ContextRecord::default()
    };
    activity::emit(&record, kind::CONTEXT);
}

/// Writes the records of the streams that a context comes with: the default one and some of the driver's own.
pub(crate) fn announce_own_streams(context: &Context, correlation_id: u32) {
    let first = context.legacy.id - 1;
    let flags_and_priorities = [
        (DEFAULT, 0),
        (NULL, 0),
        (NON_BLOCKING, 0),
        (NON_BLOCKING, 0),
        (NON_BLOCKING, 0),
        (NON_BLOCKING, 0),
        (DEFAULT, -5),
    ];
    for (id, (flag, priority)) in (first..).zip(flags_and_priorities) {
        emit_stream(context.id, id, priority, flag, correlation_id);
    }
}

/// Writes the record of a stream that the program made.
pub(crate) fn announce_stream(stream: &Arc<Stream>, correlation_id: u32) {
    let flag = match stream.role {
        StreamRole::Blocking => DEFAULT,
        StreamRole::NonBlocking => NON_BLOCKING,
        StreamRole::Legacy => NULL,
    };
    emit_stream(
        stream.context_id,
        stream.id,
        stream.priority,
        flag,
        correlation_id,
    );
}

/// `CUpti_ActivityStreamFlag`.
const DEFAULT: u32 = 1;
const NON_BLOCKING: u32 = 2;
const NULL: u32 = 3;

fn emit_stream(context_id: u32, stream_id: u32, priority: i32, flag: u32, correlation_id: u32) {
    if !activity::is_enabled(kind::STREAM) {
        return;
    }
    let record = StreamRecord {
        kind: kind::STREAM,
        context_id,
        stream_id,
        priority: priority as u32,
        flag,
        correlation_id,
    };
    activity::emit(&record, kind::STREAM);
}
