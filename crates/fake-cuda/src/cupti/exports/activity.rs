//! Records: registration, kinds, flushing, reading.
//! <https://docs.nvidia.com/cupti/api/group__CUPTI__ACTIVITY__API.html>

#![allow(unsafe_code, reason = "exports C functions")]

use std::io::Write;

use crate::call;
use crate::clock::{self, TimestampCallback};
use crate::config::{CUPTI_12_5, CUPTI_12_8, config};
use crate::cupti::buffer::{Force, Parcel};
use crate::cupti::code::CuptiCode;
use crate::cupti::delivery::{self, CompleteFunction, RequestFunction};
use crate::cupti::filters::{self, Choice};
use crate::cupti::subscriber::{self, Domain};
use crate::cupti::{activity, announcements, correlation};
use crate::pointer::Out;
use crate::process;

#[unsafe(no_mangle)]
extern "C" fn cuptiActivityRegisterCallbacks(
    request: Option<RequestFunction>,
    complete: Option<CompleteFunction>,
) -> u32 {
    let (Some(request), Some(complete)) = (request, complete) else {
        return CuptiCode::INVALID_PARAMETER.0;
    };
    let error = config().register_error;
    if error != 0 {
        return error;
    }
    delivery::register(request, complete);
    CuptiCode::SUCCESS.0
}

#[unsafe(no_mangle)]
extern "C" fn cuptiActivityEnable(kind: u32) -> u32 {
    CuptiCode::of(activity::enable(kind))
}

#[unsafe(no_mangle)]
extern "C" fn cuptiActivityEnableAndDump(kind: u32) -> u32 {
    CuptiCode::of(activity::enable(kind).map(|()| announcements::announce_existing(kind)))
}

#[unsafe(no_mangle)]
extern "C" fn cuptiActivityDisable(kind: u32) -> u32 {
    CuptiCode::of(activity::disable(kind))
}

#[unsafe(no_mangle)]
extern "C" fn cuptiActivityEnableContext(_context: usize, kind: u32) -> u32 {
    cuptiActivityEnable(kind)
}

#[unsafe(no_mangle)]
extern "C" fn cuptiActivityDisableContext(_context: usize, kind: u32) -> u32 {
    cuptiActivityDisable(kind)
}

#[unsafe(no_mangle)]
extern "C" fn cuptiActivityEnableDriverApi(cbid: u32, enable: u8) -> u32 {
    choose_call(Domain::Driver, cbid, enable)
}

#[unsafe(no_mangle)]
extern "C" fn cuptiActivityEnableRuntimeApi(cbid: u32, enable: u8) -> u32 {
    choose_call(Domain::Runtime, cbid, enable)
}

fn choose_call(domain: Domain, cbid: u32, enable: u8) -> u32 {
    if config().cupti_version < CUPTI_12_5 {
        return CuptiCode::NOT_SUPPORTED.0;
    }
    let choice = if enable == 0 { Choice::Skip } else { Choice::Keep };
    if filters::choose(domain, cbid, choice) {
        CuptiCode::SUCCESS.0
    } else {
        CuptiCode::INVALID_PARAMETER.0
    }
}

/// Flag 1 is CUPTI_ACTIVITY_FLAG_FLUSH_FORCED.
#[unsafe(no_mangle)]
extern "C" fn cuptiActivityFlushAll(flag: u32) -> u32 {
    if !delivery::is_registered() {
        return CuptiCode::INVALID_OPERATION.0;
    }
    delivery::flush(if flag & 1 == 0 {
        Force::LeaveOpen
    } else {
        Force::TakeAll
    });
    CuptiCode::SUCCESS.0
}

/// How often the library looks for buffers that are full and finished. Here those leave at once, so there is nothing to
/// do; a buffer that is not full never leaves by this, as on an H200.
#[unsafe(no_mangle)]
extern "C" fn cuptiActivityFlushPeriod(_millis: u32) -> u32 {
    CuptiCode::SUCCESS.0
}

/// `record` is null for the first, then the last one given.
#[unsafe(no_mangle)]
extern "C" fn cuptiActivityGetNextRecord(buffer: usize, valid: usize, record: Out<usize>) -> u32 {
    let Some(last) = record.get() else {
        return CuptiCode::INVALID_PARAMETER.0;
    };
    let parcel = Parcel {
        base: buffer as u64,
        size: valid,
        valid,
    };
    let next = if last == 0 {
        0
    } else {
        let offset = last.wrapping_sub(buffer);
        match parcel.length_at(offset) {
            Some(length) => offset + length,
            None => return CuptiCode::INVALID_KIND.0,
        }
    };
    if next >= valid {
        return CuptiCode::MAX_LIMIT_REACHED.0;
    }
    if parcel.length_at(next).is_none() {
        return CuptiCode::INVALID_KIND.0;
    }
    record.put_if_wanted(buffer + next);
    CuptiCode::SUCCESS.0
}

#[unsafe(no_mangle)]
extern "C" fn cuptiActivityGetNumDroppedRecords(_context: usize, _stream: u32, dropped: Out<usize>) -> u32 {
    match dropped.put(delivery::take_dropped() as usize) {
        Ok(()) => CuptiCode::SUCCESS.0,
        Err(_) => CuptiCode::INVALID_PARAMETER.0,
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuptiActivityRegisterTimestampCallback(callback: Option<TimestampCallback>) -> u32 {
    if callback.is_none() {
        return CuptiCode::INVALID_PARAMETER.0;
    }
    clock::set_callback(callback);
    CuptiCode::SUCCESS.0
}

#[unsafe(no_mangle)]
extern "C" fn cuptiActivityEnableLatencyTimestamps(enable: u8) -> u32 {
    activity::set_latency_timestamps(enable);
    CuptiCode::SUCCESS.0
}

#[unsafe(no_mangle)]
extern "C" fn cuptiActivityEnableCudaEventDeviceTimestamps(enable: u8) -> u32 {
    if config().cupti_version < CUPTI_12_8 {
        return CuptiCode::NOT_SUPPORTED.0;
    }
    activity::set_event_times(enable);
    CuptiCode::SUCCESS.0
}

#[unsafe(no_mangle)]
extern "C" fn cuptiActivityPushExternalCorrelationId(kind: u32, id: u64) -> u32 {
    correlation::push_external(kind, id);
    CuptiCode::SUCCESS.0
}

#[unsafe(no_mangle)]
extern "C" fn cuptiActivityPopExternalCorrelationId(kind: u32, last: Out<u64>) -> u32 {
    CuptiCode::of(correlation::pop_external(kind).map(|id| last.put_if_wanted(id)))
}

/// Detaches CUPTI: kinds off, subscriber gone, buffers handed back. A client may start again from nothing. What the real
/// one does to other threads within a call is not known, and not good: this one ends the process.
#[unsafe(no_mangle)]
extern "C" fn cuptiFinalize() -> u32 {
    if process::is_forked() {
        return CuptiCode::SUCCESS.0;
    }
    if call::is_another_inside() {
        // The process ends in any case.
        let _ =
            std::io::stderr().write_all(b"fake CUPTI: cuptiFinalize while another thread is within a call\n");
        std::process::abort();
    }
    activity::disable_all();
    if delivery::is_registered() {
        delivery::flush(Force::TakeAll);
    }
    subscriber::release();
    delivery::forget_registration();
    clock::set_callback(None);
    CuptiCode::SUCCESS.0
}
