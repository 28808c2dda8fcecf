//! One thread of a profile: its samples and its markers.

use tracesmith_format::{Bytes, CorrelationId, ProcessId};
use tracesmith_trace::{EventKind, Trace};

use super::stacks::{length, push_option};
use super::{Gathered, category};
use crate::error::Error;
use crate::export::gathered::{Track, track_of};
use crate::export::json_text::{push_format, push_millis, push_number, push_string};
use crate::export::spill::SpillText;
use crate::export::{Out, Weight};

/// The phases of markers, as the format numbers them.
const INSTANT: u8 = 0;
const INTERVAL: u8 = 1;

/// Writes a thread, whose events are the next ones.
pub(super) fn write_thread(
    out: &mut Out<'_>,
    trace: &Trace,
    weight: Weight,
    track: Track,
    gathered: &mut Gathered,
) -> Result<(), Error> {
    push_head(out.buffer(), trace, track);
    write_samples(out, weight, track, gathered)?;
    out.put(b",\n \"markers\":{")?;
    write_marks(out, track, gathered)?;
    out.put(b"}")
}

/// The columns of a table, each written by itself before they are put behind one another.
struct TextColumns<const N: usize> {
    names: [&'static str; N],
    texts: [SpillText; N],
    rows: usize,
}

impl<const N: usize> TextColumns<N> {
    fn new(names: [&'static str; N]) -> Self {
        TextColumns {
            names,
            texts: std::array::from_fn(|_| SpillText::new()),
            rows: 0,
        }
    }

    /// Adds a row: a value to each column.
    fn add(&mut self, push: impl FnOnce([&mut Vec<u8>; N])) -> Result<(), Error> {
        if self.rows > 0 {
            self.texts.iter_mut().for_each(|text| text.buffer().push(b','));
        }
        self.rows += 1;
        push(self.texts.each_mut().map(SpillText::buffer));
        self.texts.iter_mut().try_for_each(SpillText::settle)
    }

    /// Writes the columns, and gives back how many rows they have.
    fn write(self, out: &mut Out<'_>) -> Result<usize, Error> {
        for (name, text) in self.names.into_iter().zip(self.texts) {
            push_format(out.buffer(), format_args!("\"{name}\":["));
            text.write(out)?;
            out.put(b"],")?;
        }
        Ok(self.rows)
    }
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

fn write_samples(
    out: &mut Out<'_>,
    weight: Weight,
    track: Track,
    gathered: &mut Gathered,
) -> Result<(), Error> {
    let zero = gathered.zero;
    let mut columns = TextColumns::new(["stack", "time", "weight"]);
    while let Some(sample) = gathered.samples.next_if(|sample| track_of(sample) == track)? {
        let [_, _, _, time, _, stack, weighed] = sample;
        columns.add(|[stacks, times, weights]| {
            push_option(stacks, stack.checked_sub(1).map(|stack| stack as u32));
            push_millis(times, time - zero);
            match weight {
                Weight::GpuTime => push_millis(weights, weighed),
                _ => push_number(weights, weighed),
            }
        })?;
    }
    let rows = columns.write(out)?;
    let unit = match weight {
        Weight::GpuTime => "tracing-ms",
        Weight::AllocatedBytes => "bytes",
        Weight::Launches | Weight::Samples => "samples",
    };
    push_format(out.buffer(), format_args!("\"weightType\":\"{unit}\","));
    length(out.buffer(), rows);
    out.settle()
}

fn write_marks(out: &mut Out<'_>, track: Track, gathered: &mut Gathered) -> Result<(), Error> {
    let zero = gathered.zero;
    let mut columns = TextColumns::new(["data", "name", "startTime", "endTime", "phase", "category"]);
    while let Some(mark) = gathered.marks.next_if(|mark| track_of(mark) == track)? {
        let [
            _,
            _,
            _,
            start,
            until_end,
            _,
            kind,
            name,
            detail,
            correlation,
            bytes,
        ] = mark;
        let (end, kind) = (!until_end, EventKind::ALL[kind as usize]);
        columns.add(|[data, names, starts, ends, phases, categories]| {
            push_data(data, kind, detail, CorrelationId(correlation), Bytes(bytes));
            push_number(names, name);
            push_millis(starts, start - zero);
            match end > start {
                true => push_millis(ends, end - zero),
                false => push_option(ends, None),
            }
            push_number(phases, if end > start { INTERVAL } else { INSTANT });
            push_number(categories, category(kind));
        })?;
    }
    let rows = columns.write(out)?;
    length(out.buffer(), rows);
    out.settle()
}

fn push_data(out: &mut Vec<u8>, kind: EventKind, detail: u64, correlation: CorrelationId, bytes: Bytes) {
    push_format(
        out,
        format_args!("{{\"type\":\"{}\",\"detail\":{detail}", kind.name()),
    );
    if correlation.is_some() {
        push_format(out, format_args!(",\"correlation\":{}", correlation.0));
    }
    if bytes != Bytes(0) {
        push_format(out, format_args!(",\"bytes\":{}", bytes.0));
    }
    out.push(b'}');
}
