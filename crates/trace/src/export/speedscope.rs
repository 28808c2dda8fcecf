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
use crate::export::json_text::{push_format, push_number, push_string};
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
    let mut report = weights.report.clone();
    let has_stacks = weights.sums.keys().any(Weighed::has_stack);
    let mut profiles = Profiles::begin(out)?;
    sampled_profiles(trace, options, weights, &mut profiles)?;
    if !has_stacks {
        report = evented_profiles(trace, options, &mut profiles)?;
    }
    if profiles.count == 0 {
        return Err(Error::Export {
            format: EXPORTER.name,
            problem: "no event has such a weight".to_owned(),
        });
    }
    profiles.finish(trace)?;
    Ok(report)
}

/// The file on its way: profiles as they come, and behind them the frames that they share.
struct Profiles<'o, 'w> {
    out: &'o mut Out<'w>,
    frames: Frames,
    count: usize,
}

impl<'o, 'w> Profiles<'o, 'w> {
    fn begin(out: &'o mut Out<'w>) -> Result<Self, Error> {
        out.put(b"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n")?;
        let exporter = concat!("\"exporter\":\"tracesmith@", env!("CARGO_PKG_VERSION"), "\",\n");
        out.put(exporter.as_bytes())?;
        out.put(b"\"profiles\":[")?;
        Ok(Profiles {
            out,
            frames: Frames::default(),
            count: 0,
        })
    }

    /// Begins a profile, up to its own lists.
    fn begin_profile(&mut self, kind: &str, name: &str, unit: &str, end: u64) -> Result<(), Error> {
        self.out.put(if self.count == 0 { b"\n" } else { b",\n" })?;
        self.count += 1;
        let text = self.out.buffer();
        push_format(text, format_args!("{{\"type\":\"{kind}\",\"name\":"));
        push_string(text, name);
        push_format(
            text,
            format_args!(",\"unit\":\"{unit}\",\"startValue\":0,\"endValue\":{end},"),
        );
        Ok(())
    }

    /// Writes a list, item by item.
    fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut push: impl FnMut(&mut Frames, &mut Vec<u8>, T),
    ) -> Result<(), Error> {
        self.out.put(b"[")?;
        for (at, item) in items.into_iter().enumerate() {
            let text = self.out.buffer();
            if at > 0 {
                text.push(b',');
            }
            push(&mut self.frames, text, item);
            self.out.settle()?;
        }
        self.out.put(b"]")
    }

    fn finish(self, trace: &Trace) -> Result<(), Error> {
        self.out.put(b"\n],\n\"shared\":{\"frames\":[")?;
        for (at, frame) in self.frames.list.iter().enumerate() {
            self.out.put(if at == 0 { b"\n" } else { b",\n" })?;
            push_frame(self.out.buffer(), trace, frame);
            self.out.settle()?;
        }
        self.out.put(b"\n]}}\n")
    }
}

/// The frames that profiles share, each once.
#[derive(Default)]
struct Frames {
    list: Vec<FrameText>,
    known: FxHashMap<FrameText, usize>,
    events: FxHashMap<EventName, usize>,
}

impl Frames {
    fn index(&mut self, frame: FrameText) -> usize {
        let list = &mut self.list;
        *self.known.entry(frame).or_insert_with_key(|frame| {
            list.push(frame.clone());
            list.len() - 1
        })
    }

    /// The frame that an event is.
    fn of_event(&mut self, trace: &Trace, name: EventName) -> usize {
        if let Some(index) = self.events.get(&name) {
            return *index;
        }
        let index = self.index(FrameText {
            name: match name {
                EventName::Id(id) => trace.string(id).to_owned(),
                EventName::Word(word) => word.to_owned(),
            },
            file: StringId::NONE,
            line: 0,
            origin: FrameOrigin::Work,
        });
        self.events.insert(name, index);
        index
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

fn sampled_profiles(
    trace: &Trace,
    options: &ExportOptions,
    weights: Weights<'_>,
    profiles: &mut Profiles<'_, '_>,
) -> Result<(), Error> {
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
    for (process, weighed) in by_process {
        let total = weighed
            .iter()
            .fold(0, |sum: u64, (_, weight)| sum.saturating_add(*weight));
        let name = format!("{}: {what}", process_name(trace, process));
        profiles.begin_profile("sampled", &name, unit, total)?;
        profiles.out.put(b"\"samples\":")?;
        profiles.list(&weighed, |frames, text, (weighed, _)| {
            text.push(b'[');
            for (at, frame) in weights.frames(weighed).into_iter().enumerate() {
                if at > 0 {
                    text.push(b',');
                }
                push_number(text, frames.index(frame));
            }
            text.push(b']');
        })?;
        profiles.out.put(b",\"weights\":")?;
        profiles.list(&weighed, |_, text, (_, weight)| push_number(text, *weight))?;
        profiles.out.put(b"}")?;
    }
    Ok(())
}

fn evented_profiles(
    trace: &Trace,
    options: &ExportOptions,
    profiles: &mut Profiles<'_, '_>,
) -> Result<ExportReport, Error> {
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
    for (track, stretches) in tracks {
        let name = format!("{}, {}", process_name(trace, track.process()), track.name(trace));
        for (lane, stretches) in lanes(&stretches).iter().enumerate() {
            let name = match lane {
                0 => name.clone(),
                _ => format!("{name}, overlapping {lane}"),
            };
            let end = stretches.iter().map(|stretch| stretch.end).max().unwrap_or(zero);
            profiles.begin_profile("evented", &name, "nanoseconds", end - zero)?;
            profiles.out.put(b"\"events\":")?;
            profiles.list(Brackets::of(stretches), |frames, text, bracket| {
                let (kind, name, at) = match bracket {
                    Bracket::Open(stretch) => ('O', stretch.what, stretch.start),
                    Bracket::Close(stretch) => ('C', stretch.what, stretch.end),
                };
                let frame = frames.of_event(trace, name);
                let at = at - zero;
                push_format(
                    text,
                    format_args!("{{\"type\":\"{kind}\",\"frame\":{frame},\"at\":{at}}}"),
                );
            })?;
            profiles.out.put(b"}")?;
        }
    }
    Ok(report)
}

/// One end of a stretch.
enum Bracket<'s> {
    Open(&'s Stretch<EventName>),
    Close(&'s Stretch<EventName>),
}

/// Opens and closes stretches that nest, in the order of time.
struct Brackets<'s> {
    open: Vec<&'s Stretch<EventName>>,
    rest: std::iter::Peekable<std::slice::Iter<'s, &'s Stretch<EventName>>>,
}

impl<'s> Brackets<'s> {
    fn of(stretches: &'s [&'s Stretch<EventName>]) -> Self {
        Brackets {
            open: Vec::new(),
            rest: stretches.iter().peekable(),
        }
    }
}

impl<'s> Iterator for Brackets<'s> {
    type Item = Bracket<'s>;

    fn next(&mut self) -> Option<Bracket<'s>> {
        let next_start = self.rest.peek().map_or(u64::MAX, |stretch| stretch.start);
        let is_over = |stretch: &&Stretch<EventName>| self.rest.len() == 0 || stretch.end <= next_start;
        if self.open.last().is_some_and(is_over) {
            return self.open.pop().map(Bracket::Close);
        }
        let stretch = self.rest.next()?;
        self.open.push(stretch);
        Some(Bracket::Open(stretch))
    }
}
