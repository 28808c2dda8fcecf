//! Profiles for the Firefox Profiler, in its processed format
//! (<https://github.com/firefox-devtools/profiler/blob/main/docs-developer/processed-profile-format.md>).
//!
//! A thread of the profile is a thread of the host or a stream of a GPU. What happened there are its markers. Device work is
//! also a sample of the thread that launched it, at the time of the launch: its stack ends in the kernel's name, and its
//! weight is what was asked for. Work whose launch is not known is a sample of its stream. Everything is gathered in
//! memory before it is written, as the profiler's front end does when it reads it.

mod stacks;
mod thread;

use std::collections::BTreeMap;

use tracesmith_format::Timestamp;
use tracesmith_format::tables::{Allocation, HostCall, HostCallKind, MemoryOperation};

use crate::error::Error;
use crate::export::gathered::{Stretch, Track, tracks};
use crate::export::json_text::{push_format, push_millis, push_string};
use crate::export::nesting::{Keep, Nesting};
use crate::export::row_value::RowValue;
use crate::export::{ExportOptions, ExportReport, Exporter, Out, Way, Weight, timeline};
use crate::model::event::{Event, EventKind, EventName};
use crate::model::trace::Trace;
use crate::query::Found;
use stacks::{Stacks, Texts};
use thread::{Mark, Sample, push_thread};

pub(super) const EXPORTER: Exporter = Exporter {
    name: "firefox",
    aliases: &["firefox-profiler"],
    title: "for the Firefox Profiler (profiler.firefox.com)",
    extension: "firefox.json",
    way: Way::Stream(write),
};

/// The version of the processed format that is written; the profiler reads it and all earlier ones.
const PROCESSED_VERSION: u32 = 70;
/// The version of the unprocessed format that goes with it. Nothing of it is here, but the field must be.
const GECKO_VERSION: u32 = 36;

/// Categories, with the colours that the profiler knows. The grey one must be there.
const CATEGORIES: &[(&str, &str)] = &[
    ("Other", "grey"),
    ("Kernel", "green"),
    ("Memory", "orange"),
    ("Synchronization", "red"),
    ("API", "blue"),
    ("Host", "lightblue"),
    ("Marker", "purple"),
];

/// The category of a kind of event, by its place in the list.
fn category(kind: EventKind) -> usize {
    match kind {
        EventKind::Kernel | EventKind::GraphLaunch | EventKind::Collective => 1,
        EventKind::Copy | EventKind::Set | EventKind::Allocation => 2,
        EventKind::Sync => 3,
        EventKind::ApiCall => 4,
        EventKind::HostCall => 5,
        EventKind::Marker => 6,
        EventKind::Counter | EventKind::Flow => 0,
    }
}

fn write(trace: &Trace, options: &ExportOptions, out: &mut Out<'_>) -> Result<ExportReport, Error> {
    let mut gathered = Gathered::of(trace, options);
    if gathered.marks.is_empty() && gathered.samples.is_empty() {
        return Err(Error::Export {
            format: EXPORTER.name,
            problem: "there are no events".to_owned(),
        });
    }
    let zero = gathered.zero();
    let text = out.buffer();
    push_meta(text, trace, zero);
    text.extend_from_slice(b",\n\"libs\":[],\n\"threads\":[");
    let mut all: Vec<Track> = gathered
        .marks
        .keys()
        .chain(gathered.samples.keys())
        .copied()
        .collect();
    all.sort_unstable();
    all.dedup();
    for (at, track) in all.into_iter().enumerate() {
        out.put(if at == 0 { b"\n" } else { b",\n" })?;
        let marks = gathered.marks.remove(&track).unwrap_or_default();
        let samples = gathered.samples.remove(&track).unwrap_or_default();
        push_thread(out.buffer(), trace, options.weight, track, zero, &marks, &samples);
        out.settle()?;
    }
    out.put(b"\n],\n\"shared\":")?;
    gathered.stacks.push(out.buffer(), &gathered.texts);
    out.put(b"}\n")?;
    Ok(gathered.report)
}

/// Everything that the profile will hold.
struct Gathered {
    marks: BTreeMap<Track, Vec<Stretch<Mark>>>,
    samples: BTreeMap<Track, Vec<Sample>>,
    stacks: Stacks,
    texts: Texts,
    report: ExportReport,
}

impl Gathered {
    fn of(trace: &Trace, options: &ExportOptions) -> Self {
        let nesting = Nesting::of(trace, Keep::All);
        let scales = Scales::new(options.weight);
        let mut texts = Texts::default();
        let mut stacks = Stacks::default();
        let mut samples: BTreeMap<Track, Vec<Sample>> = BTreeMap::new();
        let (marks, report) = tracks(trace, options, |found| {
            if let Some(weight) = scales.weight(found) {
                let (track, time, names) = launch(&nesting, &found.event);
                let stack = stacks.index(trace, &mut texts, found.event.stack, &names);
                samples.entry(track).or_default().push(Sample {
                    time: time.0,
                    stack,
                    weight,
                });
            }
            // A counter has no place among markers, and an arrow no length.
            (!matches!(found.event.kind, EventKind::Counter | EventKind::Flow)).then(|| Mark {
                kind: found.event.kind,
                name: texts.index(trace.event_name(&found.event)),
                detail: texts.index(&found.columns.detail(found.row, &trace.strings)),
                correlation: found.event.correlation,
                bytes: found.event.bytes,
            })
        });
        for samples in samples.values_mut() {
            samples.sort_by_key(|sample| sample.time);
        }
        Gathered {
            marks,
            samples,
            stacks,
            texts,
            report,
        }
    }

    /// The profile's time 0.
    fn zero(&self) -> u64 {
        let marks = self
            .marks
            .values()
            .filter_map(|marks| marks.first())
            .map(|mark| mark.start);
        let samples = self.samples.values().filter_map(|samples| samples.first());
        marks
            .chain(samples.map(|sample| sample.time))
            .min()
            .unwrap_or_default()
    }
}

/// Where and when a piece of work was asked for, and the names below its stack.
fn launch(nesting: &Nesting, event: &Event) -> (Track, Timestamp, Vec<EventName>) {
    let mut names = Vec::new();
    let (track, time) = match nesting.launch(event.process, event.correlation) {
        Some(launch) => {
            if !event.stack.is_some() {
                names = nesting.names(launch.path);
            }
            (Track::Thread(event.process, launch.thread), launch.time)
        }
        None => (Track::of(event), event.start),
    };
    if event.kind != EventKind::HostCall {
        names.push(event.name);
    }
    (track, time, names)
}

/// Tells what events weigh.
struct Scales {
    weight: Weight,
    operation: RowValue,
    host_kind: RowValue,
    argument: RowValue,
}

impl Scales {
    fn new(weight: Weight) -> Self {
        Scales {
            weight,
            operation: RowValue::of::<Allocation>("shape.operation"),
            host_kind: RowValue::of::<HostCall>("shape.kind"),
            argument: RowValue::of::<HostCall>("argument"),
        }
    }

    /// What an event weighs; `None` for one that is no sample.
    fn weight(&self, found: &Found<'_>) -> Option<u64> {
        let event = &found.event;
        let is_work = matches!(event.kind, EventKind::Kernel | EventKind::Copy | EventKind::Set);
        match self.weight {
            Weight::GpuTime if is_work => Some(event.duration()),
            Weight::Launches if is_work => Some(1),
            Weight::AllocatedBytes if event.kind == EventKind::Allocation => {
                let is_taken = self.operation.number(found) == Some(u64::from(MemoryOperation::ALLOCATE.0));
                is_taken.then_some(event.bytes.0)
            }
            Weight::Samples if event.kind == EventKind::HostCall && event.stack.is_some() => {
                let is_sample = self.host_kind.number(found) == Some(u64::from(HostCallKind::SAMPLE.0));
                is_sample.then(|| self.argument.number(found).unwrap_or(0).max(1))
            }
            _ => None,
        }
    }
}

/// What the profile is, up to its threads.
fn push_meta(out: &mut Vec<u8>, trace: &Trace, zero: u64) {
    out.extend_from_slice(b"{\"meta\":{\"product\":");
    push_string(
        out,
        trace.metadata.get("command").map_or("TraceSmith", String::as_str),
    );
    // The profile's time 0 in milliseconds since 1970; unknown, it is 1970 itself.
    let start = timeline::epoch_nanos(trace).map_or(0, |epoch| epoch + i128::from(zero));
    out.extend_from_slice(b",\"startTime\":");
    push_millis(out, u64::try_from(start).unwrap_or(0));
    push_format(
        out,
        format_args!(
            ",\"interval\":1,\"processType\":0,\"stackwalk\":1,\"debug\":false,\"version\":{GECKO_VERSION},\
             \"preprocessedProfileVersion\":{PROCESSED_VERSION},\"symbolicated\":true,\
             \"symbolicationNotSupported\":true,\"usesOnlyOneStackType\":true,\
             \"sourceCodeIsNotOnSearchfox\":true,\"keepProfileThreadOrder\":true,\
             \"importedFrom\":\"TraceSmith\",\"categories\":["
        ),
    );
    for (at, (name, color)) in CATEGORIES.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        push_format(
            out,
            format_args!(
                "{comma}{{\"name\":\"{name}\",\"color\":\"{color}\",\"subcategories\":[\"Other\"]}}"
            ),
        );
    }
    out.extend_from_slice(b"],\"markerSchema\":[");
    for (at, kind) in EventKind::ALL.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let name = kind.name();
        push_format(
            out,
            format_args!(
                "{comma}{{\"name\":\"{name}\",\"tooltipLabel\":\"{{marker.name}}\",\
                 \"tableLabel\":\"{{marker.data.detail}}\",\"chartLabel\":\"{{marker.name}}\",\
                 \"display\":[\"marker-chart\",\"marker-table\",\"timeline-overview\"],\"fields\":[\
                 {{\"key\":\"detail\",\"label\":\"Detail\",\"format\":\"unique-string\"}},\
                 {{\"key\":\"correlation\",\"label\":\"Correlation\",\"format\":\"integer\"}},\
                 {{\"key\":\"bytes\",\"label\":\"Bytes\",\"format\":\"bytes\"}}]}}"
            ),
        );
    }
    out.extend_from_slice(b"]}");
}
