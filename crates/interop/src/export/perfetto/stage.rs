//! Device work as GPU render stages: the form that newer versions of Perfetto know launches, kernels and GPUs by.

use tracesmith_format::tables::{KernelShape, Place};
use tracesmith_format::{ContextId, CorrelationId, ProcessId};

use super::argument::launch_flow;
use crate::perfetto::schema::render_stage;
use crate::perfetto::wire::{put_bytes, put_message, put_number};

/// Arguments of a launch that have no field of their own, by the numbers that their names are interned by.
pub(super) const LAUNCH_ARGUMENTS: &[(u64, &str)] = &[
    (1, "registers_per_thread"),
    (2, "shared_mem_static"),
    (3, "shared_mem_dynamic"),
    (4, "local_mem_per_thread"),
];

/// The number of a context in the trace.
pub(super) fn context_id(process: ProcessId, context: ContextId) -> u64 {
    u64::from(process.0) << 32 | u64::from(context.0)
}

/// The number of the work in the trace: its flow's, so that the call that launched it can name it. Work without a
/// call is numbered in a range of its own.
pub(super) fn event_id(place: &Place, correlation: CorrelationId, row: u64) -> u64 {
    if correlation.is_some() {
        launch_flow(place.process, correlation)
    } else {
        1 << 62 | row
    }
}

/// Adds the part of a render stage that tells which work it is.
pub(super) fn put_work(out: &mut Vec<u8>, place: &Place, correlation: CorrelationId, row: u64) {
    put_number(out, render_stage::EVENT_ID, event_id(place, correlation, row));
    put_number(
        out,
        render_stage::CONTEXT,
        context_id(place.process, place.context),
    );
    put_number(
        out,
        render_stage::GPU_ID,
        u64::from(place.device.0.saturating_sub(1)),
    );
    // The field has 32 bits; what is larger could only mislead.
    if let Ok(submission) = u32::try_from(correlation.0)
        && submission > 0
    {
        put_number(out, render_stage::SUBMISSION_ID, u64::from(submission));
    }
}

/// Adds a fact in words.
pub(super) fn put_extra(out: &mut Vec<u8>, name: &str, value: &str) {
    put_message(out, render_stage::EXTRA_DATA, |out| {
        put_bytes(out, render_stage::EXTRA_NAME, name.as_bytes());
        put_bytes(out, render_stage::EXTRA_VALUE, value.as_bytes());
    });
}

/// How a kernel was launched.
pub(super) fn launch(shape: &KernelShape) -> Vec<u8> {
    let mut out = Vec::new();
    put_message(&mut out, render_stage::LAUNCH, |out| {
        put_dimensions(
            out,
            render_stage::GRID,
            [shape.grid_x, shape.grid_y, shape.grid_z],
        );
        put_dimensions(
            out,
            render_stage::BLOCK,
            [shape.block_x, shape.block_y, shape.block_z],
        );
        let values = [
            u64::from(shape.registers),
            shape.static_shared.0,
            shape.dynamic_shared.0,
            shape.local_per_thread.0,
        ];
        for ((iid, _), value) in LAUNCH_ARGUMENTS.iter().zip(values) {
            put_message(out, render_stage::ARGUMENTS, |out| {
                put_number(out, render_stage::ARGUMENT_NAME_IID, *iid);
                put_number(out, render_stage::ARGUMENT_UINT, value);
            });
        }
    });
    out
}

fn put_dimensions(out: &mut Vec<u8>, field: u32, dimensions: [u32; 3]) {
    put_message(out, field, |out| {
        for (axis, size) in (1..).zip(dimensions) {
            put_number(out, axis, u64::from(size));
        }
    });
}
