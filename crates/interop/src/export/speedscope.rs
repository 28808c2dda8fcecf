//! Profiles for speedscope (<https://github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources>).
//!
//! One sampled profile for each process: its stacks, weighed. When no stack was recorded, the timeline follows as one
//! evented profile for each thread and stream; what overlaps there without nesting goes to further profiles of the
//! same thread or stream, since speedscope wants events that open and close like brackets. Times count from the first event:
//! JavaScript would round larger numbers.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use tracesmith_format::StringId;
use tracesmith_trace::{EventKind, EventName, Trace};

use crate::error::Error;
use crate::export::gathered::{PLACE_WORDS, process_name, spilled, track_of};
use crate::export::json_text::{push_format, push_number, push_string};
use crate::export::nesting::Nests;
use crate::export::spill::{Sorted, SpillText};
use crate::export::weights::{FrameOrigin, FrameText, Names, Weighed, Weights};
use crate::export::{ExportOptions, ExportReport, Exporter, Out, Way, Weight};

pub(super) const EXPORTER: Exporter = Exporter {
    name: "speedscope",
    aliases: &[],
    title: "weighted stacks for speedscope; the timeline if the trace has no stacks",
    extension: "speedscope.json",
    way: Way::Stream(write),
};

fn write(trace: &Trace, options: &ExportOptions, out: &mut Out<'_>) -> Result<ExportReport, Error> {
    let weights = Weights::of(trace, options)?;
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

/// A stretch of a row: its place and the number of its name.
const STRETCH_WORDS: usize = PLACE_WORDS + 1;

fn evented_profiles(
    trace: &Trace,
    options: &ExportOptions,
    profiles: &mut Profiles<'_, '_>,
) -> Result<ExportReport, Error> {
    let nests = Nests::new();
    let (mut names, mut zero) = (Names::default(), u64::MAX);
    let (stretches, report) = spilled(
        trace,
        options,
        |found, [owner, device, row, start, end, number]| {
            let is_work = matches!(
                found.event.kind,
                EventKind::Kernel | EventKind::Copy | EventKind::Set
            );
            (is_work || nests.has_parts(found)).then(|| {
                zero = zero.min(start);
                [
                    owner,
                    device,
                    row,
                    start,
                    end,
                    number,
                    names.number(found.event.name),
                ]
            })
        },
    );
    let mut stretches: Sorted<STRETCH_WORDS> = stretches.sorted()?;
    while let Some(track) = stretches.peek().map(track_of) {
        let mut lanes: Vec<Lane> = Vec::new();
        while let Some(stretch) = stretches.next_if(|stretch| track_of(stretch) == track)? {
            let [_, _, _, start, until_end, _, name] = stretch;
            let frame = profiles.frames.of_event(trace, names.name(name));
            let stretch = Stretch {
                start: start - zero,
                end: !until_end - zero,
                frame,
            };
            let fits = lanes.iter_mut().position(|lane| lane.fits(&stretch));
            let at = fits.unwrap_or_else(|| {
                lanes.push(Lane::new());
                lanes.len() - 1
            });
            lanes[at].open(stretch)?;
        }
        let name = format!("{}, {}", process_name(trace, track.process()), track.name(trace));
        for (at, lane) in lanes.into_iter().enumerate() {
            let name = match at {
                0 => name.clone(),
                _ => format!("{name}, overlapping {at}"),
            };
            lane.write(&name, profiles)?;
        }
    }
    Ok(report)
}

struct Stretch {
    start: u64,
    end: u64,
    frame: usize,
}

/// Stretches that nest: each is within the one before, or behind its end. They open and close like brackets.
struct Lane {
    text: SpillText,
    open: Vec<Stretch>,
    end: u64,
    is_empty: bool,
}

impl Lane {
    fn new() -> Self {
        Lane {
            text: SpillText::new(),
            open: Vec::new(),
            end: 0,
            is_empty: true,
        }
    }

    /// Whether a stretch that starts behind all others nests with them; those that are over by then are closed.
    fn fits(&mut self, stretch: &Stretch) -> bool {
        while let Some(last) = self.open.pop_if(|open| open.end <= stretch.start) {
            self.push('C', last.frame, last.end);
        }
        self.open.last().is_none_or(|open| open.end >= stretch.end)
    }

    fn open(&mut self, stretch: Stretch) -> Result<(), Error> {
        self.push('O', stretch.frame, stretch.start);
        self.end = self.end.max(stretch.end);
        self.open.push(stretch);
        self.text.settle()
    }

    fn push(&mut self, kind: char, frame: usize, at: u64) {
        let text = self.text.buffer();
        if !std::mem::take(&mut self.is_empty) {
            text.push(b',');
        }
        push_format(
            text,
            format_args!("{{\"type\":\"{kind}\",\"frame\":{frame},\"at\":{at}}}"),
        );
    }

    fn write(mut self, name: &str, profiles: &mut Profiles<'_, '_>) -> Result<(), Error> {
        while let Some(last) = self.open.pop() {
            self.push('C', last.frame, last.end);
        }
        profiles.begin_profile("evented", name, "nanoseconds", self.end)?;
        profiles.out.put(b"\"events\":[")?;
        self.text.write(profiles.out)?;
        profiles.out.put(b"]}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_without_nesting_gets_a_lane_of_its_own() {
        let mut lanes: Vec<(Lane, Vec<(u64, u64)>)> = Vec::new();
        for (start, end) in [(0, 10), (1, 5), (1, 1), (4, 8), (10, 12), (11, 20), (11, 12)] {
            let stretch = Stretch { start, end, frame: 0 };
            let fits = lanes.iter_mut().position(|(lane, _)| lane.fits(&stretch));
            let at = fits.unwrap_or_else(|| {
                lanes.push((Lane::new(), Vec::new()));
                lanes.len() - 1
            });
            lanes[at].0.open(stretch).unwrap();
            lanes[at].1.push((start, end));
        }
        let spans: Vec<Vec<(u64, u64)>> = lanes.into_iter().map(|(_, spans)| spans).collect();
        assert_eq!(
            spans,
            [
                vec![(0, 10), (1, 5), (1, 1), (10, 12), (11, 12)],
                vec![(4, 8), (11, 20)]
            ]
        );
    }
}
