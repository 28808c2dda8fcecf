//! One thread of a profile: its samples and its markers.

use tracesmith_format::{Bytes, CorrelationId, ProcessId};

use super::category;
use super::stacks::{column, length, push_option};
use crate::export::Weight;
use crate::export::gathered::{Stretch, Track};
use crate::export::json_text::{push_format, push_millis, push_number, push_string};
use crate::model::event::EventKind;
use crate::model::trace::Trace;

/// An event as a marker. Texts are numbers of the profile's strings.
pub(super) struct Mark {
    pub(super) kind: EventKind,
    pub(super) name: u32,
    pub(super) detail: u32,
    pub(super) correlation: CorrelationId,
    pub(super) bytes: Bytes,
}

/// A weighed stack at a moment.
pub(super) struct Sample {
    pub(super) time: u64,
    pub(super) stack: Option<u32>,
    pub(super) weight: u64,
}

/// The phases of markers, as the format numbers them.
const INSTANT: u8 = 0;
const INTERVAL: u8 = 1;

/// Adds a thread.
pub(super) fn push_thread(
    out: &mut Vec<u8>,
    trace: &Trace,
    weight: Weight,
    track: Track,
    zero: u64,
    marks: &[Stretch<Mark>],
    samples: &[Sample],
) {
    push_head(out, trace, track);
    push_samples(out, weight, zero, samples);
    out.extend_from_slice(b",\n \"markers\":{");
    let time = |out: &mut Vec<u8>, time: u64| push_millis(out, time - zero);
    column(out, "data", marks, |out, _, mark| push_data(out, &mark.what));
    column(out, "name", marks, |out, _, mark| {
        push_number(out, mark.what.name)
    });
    column(out, "startTime", marks, |out, _, mark| time(out, mark.start));
    column(out, "endTime", marks, |out, _, mark| {
        match mark.end > mark.start {
            true => time(out, mark.end),
            false => push_option(out, None),
        }
    });
    column(out, "phase", marks, |out, _, mark| {
        push_number(out, if mark.end > mark.start { INTERVAL } else { INSTANT });
    });
    column(out, "category", marks, |out, _, mark| {
        push_number(out, category(mark.what.kind))
    });
    length(out, marks.len());
    out.push(b'}');
}

/// Processes of two hosts may have the same number: the trace's own id tells them apart.
fn push_head(out: &mut Vec<u8>, trace: &Trace, track: Track) {
    let process = trace.process(track.process());
    let pid = process.map_or(0, |process| process.pid);
    let is_unique = trace.processes.iter().filter(|other| other.pid == pid).count() < 2;
    let pid_text = match track.process() {
        ProcessId(id) if !is_unique => format!("{pid}.{id}"),
        _ => pid.to_string(),
    };
    let is_main = matches!(track, Track::Thread(_, thread) if thread.0 == u64::from(pid));
    out.extend_from_slice(b"{\"name\":");
    push_string(out, &track.name(trace));
    out.extend_from_slice(b",\"processName\":");
    push_string(out, process.map_or("", |process| trace.string(process.name)));
    push_format(
        out,
        format_args!(
            ",\"pid\":\"{pid_text}\",\"isMainThread\":{is_main},\"processType\":\"default\",\
             \"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":0,\"unregisterTime\":null,\
             \"pausedRanges\":[],\"showMarkersInTimeline\":true,\"tid\":"
        ),
    );
    match track {
        Track::Thread(_, thread) => push_number(out, thread.0),
        Track::Stream(_, device, stream) => {
            push_format(out, format_args!("\"gpu-{}-{}\"", device.0, stream.0))
        }
    }
    out.extend_from_slice(b",\n \"samples\":{");
}

fn push_samples(out: &mut Vec<u8>, weight: Weight, zero: u64, samples: &[Sample]) {
    column(out, "stack", samples, |out, _, sample| {
        push_option(out, sample.stack)
    });
    column(out, "time", samples, |out, _, sample| {
        push_millis(out, sample.time - zero)
    });
    column(out, "weight", samples, |out, _, sample| match weight {
        Weight::GpuTime => push_millis(out, sample.weight),
        _ => push_number(out, sample.weight),
    });
    let unit = match weight {
        Weight::GpuTime => "tracing-ms",
        Weight::AllocatedBytes => "bytes",
        Weight::Launches | Weight::Samples => "samples",
    };
    push_format(out, format_args!("\"weightType\":\"{unit}\","));
    length(out, samples.len());
}

fn push_data(out: &mut Vec<u8>, mark: &Mark) {
    push_format(
        out,
        format_args!("{{\"type\":\"{}\",\"detail\":{}", mark.kind.name(), mark.detail),
    );
    if mark.correlation.is_some() {
        push_format(out, format_args!(",\"correlation\":{}", mark.correlation.0));
    }
    if mark.bytes != Bytes(0) {
        push_format(out, format_args!(",\"bytes\":{}", mark.bytes.0));
    }
    out.push(b'}');
}
