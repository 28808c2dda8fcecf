//! Profiles for the Firefox Profiler, in its processed format
//! (<https://github.com/firefox-devtools/profiler/blob/main/docs-developer/processed-profile-format.md>).
//!
//! A thread of the profile is a thread of the host or a stream of a GPU. What happened there are its markers. Device work is
//! also a sample of the thread that launched it, at the time of the launch: its stack ends in the kernel's name, and its
//! weight is what was asked for. Work whose launch is not known is a sample of its stream. The format wants a thread's
//! events one behind the other and column by column: they are put in order and written outside of memory first.

mod stacks;
mod thread;

use tracesmith_format::tables::{Allocation, HostCall, HostCallKind, MemoryOperation};
use tracesmith_format::{ProcessId, StackId};
use tracesmith_trace::{EventKind, Found, Trace};

use crate::error::Error;
use crate::export::gathered::{PLACE_WORDS, TRACK_WORDS, Track, spilled, track_of};
use crate::export::json_text::{push_format, push_millis, push_string};
use crate::export::nesting::{Keep, Nesting};
use crate::export::row_value::RowValue;
use crate::export::spill::{Sorted, Spill};
use crate::export::weights::Names;
use crate::export::{ExportOptions, ExportReport, Exporter, Out, Way, Weight, timeline};
use stacks::{Stacks, Texts};
use thread::write_thread;

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
    let mut gathered = Gathered::of(trace, options)?;
    let Some(mut track) = gathered.next_track() else {
        return Err(Error::Export {
            format: EXPORTER.name,
            problem: "there are no events".to_owned(),
        });
    };
    push_meta(out.buffer(), trace, gathered.zero);
    out.put(b",\n\"libs\":[],\n\"threads\":[\n")?;
    loop {
        write_thread(out, trace, options.weight, track, &mut gathered)?;
        match gathered.next_track() {
            Some(next) => track = next,
            None => break,
        }
        out.put(b",\n")?;
    }
    out.put(b"\n],\n\"shared\":")?;
    gathered.stacks.push(out.buffer(), &gathered.texts);
    out.put(b"}\n")?;
    Ok(gathered.report)
}

/// A marker: its place, kind, name, detail, correlation and bytes.
const MARK_WORDS: usize = PLACE_WORDS + 5;
/// A sample: its track, time, which of all it is, stack and weight.
const SAMPLE_WORDS: usize = TRACK_WORDS + 4;
/// Work that weighs something: process and correlation, which of all it is, track, start, stack, name and weight.
const WORK_WORDS: usize = 7 + TRACK_WORDS;

/// Everything that the profile will hold.
struct Gathered {
    marks: Sorted<MARK_WORDS>,
    samples: Sorted<SAMPLE_WORDS>,
    /// The profile's time 0.
    zero: u64,
    stacks: Stacks,
    texts: Texts,
    report: ExportReport,
}

impl Gathered {
    fn of(trace: &Trace, options: &ExportOptions) -> Result<Self, Error> {
        let scales = Scales::new(options.weight);
        let (mut texts, mut names) = (Texts::default(), Names::default());
        let mut work = Spill::default();
        let (mut zero, mut weighed) = (u64::MAX, 0);
        let (marks, report) = spilled(
            trace,
            options,
            |found, [owner, device, row, start, end, number]| {
                let event = &found.event;
                if let Some(weight) = scales.weight(found) {
                    // A sample of the host has all its names in its stack.
                    let name = match event.kind {
                        EventKind::HostCall => 0,
                        _ => names.number(event.name) + 1,
                    };
                    let (process, stack) = (u64::from(event.process.0), u64::from(event.stack.0));
                    weighed += 1;
                    work.push([
                        process,
                        event.correlation.0,
                        weighed,
                        owner,
                        device,
                        row,
                        start,
                        stack,
                        name,
                        weight,
                    ]);
                }
                // A counter has no place among markers, and an arrow no length.
                let kind = EventKind::ALL.iter().position(|kind| *kind == event.kind)?;
                (!matches!(event.kind, EventKind::Counter | EventKind::Flow)).then(|| {
                    zero = zero.min(start);
                    let name = texts.index(trace.event_name(event));
                    let detail = texts.index(&found.columns.detail(found.row, &trace.strings));
                    let what = [
                        kind as u64,
                        name.into(),
                        detail.into(),
                        event.correlation.0,
                        event.bytes.0,
                    ];
                    let mut words = [owner, device, row, start, end, number, 0, 0, 0, 0, 0];
                    words[PLACE_WORDS..].copy_from_slice(&what);
                    words
                })
            },
        );
        let mut gathered = Gathered {
            marks: marks.sorted()?,
            samples: Spill::default().sorted()?,
            zero,
            stacks: Stacks::default(),
            texts,
            report,
        };
        gathered.launch(trace, work, &names)?;
        Ok(gathered)
    }

    /// Makes samples of work, at the time and on the thread that asked for it.
    fn launch(&mut self, trace: &Trace, work: Spill<WORK_WORDS>, known: &Names) -> Result<(), Error> {
        let mut samples = Spill::default();
        let mut nesting = Nesting::of(trace, Keep::All);
        let mut asked = nesting.asked(work)?;
        while let Some((work, launch)) = asked.next()? {
            let [process, _, number, owner, device, row, start, stack, name, weight] = work;
            let stack = StackId(stack as u32);
            let (mut place, mut below) = ([owner, device, row, start], Vec::new());
            if let Some(launch) = launch {
                if !stack.is_some() {
                    below = nesting.names(launch.path);
                }
                let [owner, device, row] = Track::Thread(ProcessId(process as u32), launch.thread).words();
                place = [owner, device, row, launch.time.0];
                self.zero = self.zero.min(launch.time.0);
            }
            below.extend(name.checked_sub(1).map(|name| known.name(name)));
            let stack = self.stacks.index(trace, &mut self.texts, stack, &below);
            let stack = stack.map_or(0, |stack| u64::from(stack) + 1);
            let [owner, device, row, time] = place;
            samples.push([owner, device, row, time, number, stack, weight]);
        }
        self.samples = samples.sorted()?;
        Ok(())
    }

    /// The track that comes next.
    fn next_track(&self) -> Option<Track> {
        let mark = self.marks.peek().map(track_of);
        let sample = self.samples.peek().map(track_of);
        mark.into_iter().chain(sample).min()
    }
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
