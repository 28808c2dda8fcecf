//! Profiles for speedscope (<https://github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources>).
//!
//! One sampled profile for each process: its stacks, weighed. When no stack was recorded, the timeline follows as one
//! evented profile for each thread and stream; what overlaps there without nesting goes to further profiles of the
//! same thread or stream, since speedscope wants events that open and close like brackets. Times count from the first event:
//! JavaScript would round larger numbers.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use tracesmith_format::StringId;

use crate::error::Error;
use crate::export::gathered::{Stretch, lanes, process_name, tracks};
use crate::export::json_text::{push_number, push_string};
use crate::export::nesting::Nests;
use crate::export::weights::{FrameOrigin, FrameText, Weighed, Weights};
use crate::export::{ExportOptions, ExportReport, Exporter, Out, Way, Weight};
use crate::model::event::{EventKind, EventName};
use crate::model::trace::Trace;

pub(super) const EXPORTER: Exporter = Exporter {
    name: "speedscope",
    aliases: &[],
    title: "weighed stacks, or the timeline where there are none, for speedscope",
    extension: "speedscope.json",
    way: Way::Stream(write),
};

fn write(trace: &Trace, options: &ExportOptions, out: &mut Out<'_>) -> Result<ExportReport, Error> {
    let weights = Weights::of(trace, options);
    let mut frames = Frames::default();
    let mut profiles: Vec<Vec<u8>> = sampled_profiles(trace, options, &weights, &mut frames);
    let mut report = weights.report.clone();
    if !weights.sums.keys().any(Weighed::has_stack) {
        report = evented_profiles(trace, options, &mut frames, &mut profiles);
    }
    if profiles.is_empty() {
        return Err(Error::Export {
            format: EXPORTER.name,
            problem: "no event has such a weight".to_owned(),
        });
    }
    out.put(b"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n")?;
    let exporter = concat!("\"exporter\":\"tracesmith@", env!("CARGO_PKG_VERSION"), "\",\n");
    out.put(exporter.as_bytes())?;
    out.put(b"\"shared\":{\"frames\":[")?;
    for (at, frame) in frames.list.iter().enumerate() {
        out.put(if at == 0 { b"\n" } else { b",\n" })?;
        push_frame(out.buffer(), trace, frame);
        out.settle()?;
    }
    out.put(b"\n]},\n\"profiles\":[")?;
    for (at, profile) in profiles.iter().enumerate() {
        out.put(if at == 0 { b"\n" } else { b",\n" })?;
        out.put(profile)?;
    }
    out.put(b"\n]}\n")?;
    Ok(report)
}

/// The frames that profiles share, each once.
#[derive(Default)]
struct Frames {
    list: Vec<FrameText>,
    known: FxHashMap<FrameText, usize>,
}

impl Frames {
    fn index(&mut self, frame: FrameText) -> usize {
        let list = &mut self.list;
        *self.known.entry(frame).or_insert_with_key(|frame| {
            list.push(frame.clone());
            list.len() - 1
        })
    }
}

fn push_frame(out: &mut Vec<u8>, trace: &Trace, frame: &FrameText) {
    out.extend_from_slice(b"{\"name\":");
    push_string(out, &frame.name);
    if frame.file.is_some() {
        out.extend_from_slice(b",\"file\":");
        push_string(out, trace.string(frame.file));
    }
    if frame.line > 0 {
        out.extend_from_slice(b",\"line\":");
        push_number(out, frame.line);
    }
    out.push(b'}');
}

/// The head of a profile, up to its own lists.
fn profile_head(kind: &str, name: &str, unit: &str, end: u64) -> Vec<u8> {
    let mut head = format!("{{\"type\":\"{kind}\",\"name\":").into_bytes();
    push_string(&mut head, name);
    head.extend_from_slice(format!(",\"unit\":\"{unit}\",\"startValue\":0,\"endValue\":{end},").as_bytes());
    head
}

fn sampled_profiles(
    trace: &Trace,
    options: &ExportOptions,
    weights: &Weights<'_>,
    frames: &mut Frames,
) -> Vec<Vec<u8>> {
    let (what, unit) = match options.weight {
        Weight::GpuTime => ("GPU time", "nanoseconds"),
        Weight::Launches => ("launches", "none"),
        Weight::AllocatedBytes => ("allocated bytes", "bytes"),
        Weight::Samples => ("samples", "none"),
    };
    let mut by_process: BTreeMap<_, Vec<(&Weighed, u64)>> = BTreeMap::new();
    for (weighed, weight) in &weights.sums {
        by_process
            .entry(weighed.process)
            .or_default()
            .push((weighed, *weight));
    }
    let profile = |(process, weighed): (_, Vec<(&Weighed, u64)>)| {
        let total = weighed
            .iter()
            .fold(0, |sum: u64, (_, weight)| sum.saturating_add(*weight));
        let name = format!("{}: {what}", process_name(trace, process));
        let mut text = profile_head("sampled", &name, unit, total);
        text.extend_from_slice(b"\"samples\":");
        push_list(&mut text, &weighed, |text, (weighed, _)| {
            let stack: Vec<usize> = weights
                .frames(weighed)
                .into_iter()
                .map(|frame| frames.index(frame))
                .collect();
            push_list(text, &stack, |text, index| push_number(text, *index));
        });
        text.extend_from_slice(b",\"weights\":");
        push_list(&mut text, &weighed, |text, (_, weight)| {
            push_number(text, *weight)
        });
        text.push(b'}');
        text
    };
    by_process.into_iter().map(profile).collect()
}

fn push_list<T>(out: &mut Vec<u8>, list: &[T], mut push: impl FnMut(&mut Vec<u8>, &T)) {
    out.push(b'[');
    for (at, item) in list.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        push(out, item);
    }
    out.push(b']');
}

fn evented_profiles(
    trace: &Trace,
    options: &ExportOptions,
    frames: &mut Frames,
    profiles: &mut Vec<Vec<u8>>,
) -> ExportReport {
    let nests = Nests::new();
    let (tracks, report) = tracks(trace, options, |found| {
        let is_work = matches!(
            found.event.kind,
            EventKind::Kernel | EventKind::Copy | EventKind::Set
        );
        (is_work || nests.has_parts(found)).then_some(found.event.name)
    });
    let first = |stretches: &Vec<Stretch<EventName>>| stretches.first().map(|stretch| stretch.start);
    let zero = tracks.values().filter_map(first).min().unwrap_or_default();
    for (track, stretches) in &tracks {
        let name = format!("{}, {}", process_name(trace, track.process()), track.name(trace));
        for (lane, stretches) in lanes(stretches).iter().enumerate() {
            let name = match lane {
                0 => name.clone(),
                _ => format!("{name}, overlapping {lane}"),
            };
            let end = stretches.iter().map(|stretch| stretch.end).max().unwrap_or(zero);
            let mut text = profile_head("evented", &name, "nanoseconds", end - zero);
            push_events(&mut text, trace, frames, stretches, zero);
            text.push(b'}');
            profiles.push(text);
        }
    }
    report
}

/// Opens and closes stretches that nest, in the order of time.
fn push_events(
    out: &mut Vec<u8>,
    trace: &Trace,
    frames: &mut Frames,
    stretches: &[&Stretch<EventName>],
    zero: u64,
) {
    let mut events: Vec<(char, usize, u64)> = Vec::with_capacity(stretches.len() * 2);
    let mut open: Vec<(u64, usize)> = Vec::new();
    for stretch in stretches {
        while let Some(&(end, frame)) = open.last()
            && end <= stretch.start
        {
            events.push(('C', frame, end));
            open.pop();
        }
        let name = match stretch.what {
            EventName::Id(id) => trace.string(id),
            EventName::Word(word) => word,
        };
        let frame = frames.index(FrameText {
            name: name.to_owned(),
            file: StringId::NONE,
            line: 0,
            origin: FrameOrigin::Work,
        });
        events.push(('O', frame, stretch.start));
        open.push((stretch.end, frame));
    }
    events.extend(open.into_iter().rev().map(|(end, frame)| ('C', frame, end)));
    out.extend_from_slice(b"\"events\":");
    push_list(out, &events, |out, (kind, frame, at)| {
        let at = at - zero;
        out.extend_from_slice(format!("{{\"type\":\"{kind}\",\"frame\":{frame},\"at\":{at}}}").as_bytes());
    });
}
