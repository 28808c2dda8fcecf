//! Versions, times and the numbers of things.

#![allow(unsafe_code, reason = "exports C functions")]

use std::{ffi::c_char, process};

use crate::clock;
use crate::code::Code;
use crate::config::config;
use crate::cupti::activity;
use crate::cupti::code::CuptiCode;
use crate::engine::context::{self, CONTEXTS};
use crate::engine::graph::{EXECUTABLES, GRAPHS, NODES};
use crate::pointer::Out;

#[unsafe(no_mangle)]
extern "C" fn cuptiGetVersion(version: Out<u32>) -> u32 {
    answer(version.put(config().cupti_version), CuptiCode::INVALID_PARAMETER)
}

#[unsafe(no_mangle)]
extern "C" fn cuptiGetResultString(result: u32, text: Out<*const c_char>) -> u32 {
    let name = CuptiCode(result).c_name();
    answer(text.put(name.as_ptr().cast()), CuptiCode::INVALID_PARAMETER)
}

#[unsafe(no_mangle)]
extern "C" fn cuptiGetTimestamp(timestamp: Out<u64>) -> u32 {
    answer(timestamp.put(clock::now()), CuptiCode::INVALID_PARAMETER)
}

#[unsafe(no_mangle)]
extern "C" fn cuptiGetStreamIdEx(context: usize, stream: usize, _per_thread: u8, id: Out<u32>) -> u32 {
    let found = match stream {
        0 | 1 if context != 0 => CONTEXTS.get(context).map(|context| context.legacy.clone()),
        _ => context::stream_by_handle(stream).and_then(|(own, stream)| match context {
            0 => Ok(stream),
            _ if own.handle() == context => Ok(stream),
            _ => Err(Code::INVALID_HANDLE),
        }),
    };
    answer(
        found.and_then(|stream| id.put(stream.id)),
        CuptiCode::INVALID_STREAM,
    )
}

#[unsafe(no_mangle)]
extern "C" fn cuptiGetContextId(context: usize, id: Out<u32>) -> u32 {
    let found = CONTEXTS.get(context);
    answer(
        found.and_then(|context| id.put(context.id)),
        CuptiCode::INVALID_CONTEXT,
    )
}

#[unsafe(no_mangle)]
extern "C" fn cuptiGetDeviceId(context: usize, id: Out<u32>) -> u32 {
    let found = if context == 0 {
        context::current()
    } else {
        CONTEXTS.get(context)
    };
    answer(
        found.and_then(|context| id.put(context.device.ordinal)),
        CuptiCode::INVALID_CONTEXT,
    )
}

#[unsafe(no_mangle)]
extern "C" fn cuptiGetGraphId(graph: usize, id: Out<u32>) -> u32 {
    let found = GRAPHS.get(graph);
    answer(
        found.and_then(|graph| id.put(graph.id)),
        CuptiCode::INVALID_PARAMETER,
    )
}

#[unsafe(no_mangle)]
extern "C" fn cuptiGetGraphExecId(executable: usize, id: Out<u32>) -> u32 {
    let found = EXECUTABLES.get(executable);
    answer(
        found.and_then(|executable| id.put(executable.id)),
        CuptiCode::INVALID_PARAMETER,
    )
}

/// The real one follows the handle: to ask about a node that is gone ends the program, or worse.
#[unsafe(no_mangle)]
extern "C" fn cuptiGetGraphNodeId(node: usize, id: Out<u64>) -> u32 {
    let found = NODES.get(node);
    if found.is_err() && node != 0 {
        process::abort();
    }
    answer(
        found.and_then(|node| id.put(node.id)),
        CuptiCode::INVALID_PARAMETER,
    )
}

#[unsafe(no_mangle)]
extern "C" fn cuptiGetThreadIdType(kind: Out<u32>) -> u32 {
    answer(kind.put(activity::thread_id_type()), CuptiCode::INVALID_PARAMETER)
}

#[unsafe(no_mangle)]
extern "C" fn cuptiSetThreadIdType(kind: u32) -> u32 {
    if kind > 1 {
        return CuptiCode::NOT_SUPPORTED.0;
    }
    activity::set_thread_id_type(kind);
    CuptiCode::SUCCESS.0
}

fn answer(outcome: Result<(), Code>, otherwise: CuptiCode) -> u32 {
    match outcome {
        Ok(()) => CuptiCode::SUCCESS.0,
        Err(_) => otherwise.0,
    }
}
