//! The critical path: what held what up, from the last moment back to the first, and how much room everything else had.

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::kernels::share;
use crate::model::trace::Trace;
use crate::reconstruct::{Activity, Because, Dependencies, Link, Moment, Plan};

/// What held what up.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CriticalPathReport {
    /// From the start of the path to its end.
    pub path_ns: u64,
    /// From the first to the last moment of the trace.
    pub span_ns: u64,
    /// What the time went to, the most first.
    pub totals: Vec<PathTotal>,
    /// The path itself, in the order of time.
    pub segments: Vec<Segment>,
    /// Kernels that were not on the path, by name, with the least room first.
    pub slack: Vec<SlackRow>,
    /// Waits for events whose stream was assumed.
    pub assumed_records: u64,
    /// Waits for events that were not found.
    pub unknown_records: u64,
    /// Dependencies that the times contradict.
    pub contradicted: u64,
}

/// What a stretch of the path went to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PathPart {
    /// Work on a device.
    Work,
    /// From the call to the start on the device.
    Launch,
    /// From the end of the work before it on the stream to the start.
    Dispatch,
    /// From the end of work on another stream to the start.
    StreamWait,
    /// The host, between and in calls.
    Host,
    /// From the end of work to the return of the call that waited for it.
    HostWait,
}

impl PathPart {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Work => "work on the device",
            Self::Launch => "from call to start",
            Self::Dispatch => "from one work to the next",
            Self::StreamWait => "from another stream's work to the next",
            Self::Host => "host",
            Self::HostWait => "return from a wait",
        }
    }
}

/// The time that the path spent with one thing.
#[derive(Clone, Debug, Serialize)]
pub struct PathTotal {
    /// What kind of thing.
    pub part: PathPart,
    /// Its name: a kernel's, or nothing.
    pub name: String,
    /// The time.
    pub total_ns: u64,
    /// Share of the path.
    pub share: f64,
    /// How often.
    pub count: u64,
}

/// A stretch of the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Segment {
    /// What it went to.
    pub part: PathPart,
    /// Where it starts.
    pub from_ns: u64,
    /// Where it ends.
    pub to_ns: u64,
    /// The work or call that it ends with.
    pub name: String,
    /// The row of the work in its table.
    pub row: Option<u32>,
}

/// How much later kernels of a name could have ended without making the end any later.
#[derive(Clone, Debug, Serialize)]
pub struct SlackRow {
    /// The name.
    pub name: String,
    /// How many there are.
    pub count: u64,
    /// How many are on the path, without any room.
    pub on_path: u64,
    /// The least room.
    pub min_slack_ns: u64,
    /// On average.
    pub mean_slack_ns: f64,
}

impl CriticalPathReport {
    /// Works it out.
    pub fn of(trace: &Trace, activity: &Activity) -> Self {
        let dependencies = Dependencies::of(activity);
        let plan = Plan::of(activity, &dependencies);
        let mut segments = Vec::new();
        for (at, link) in plan.critical() {
            add_segments(trace, activity, &plan, at, link, &mut segments);
        }
        let path_ns = match (segments.first(), segments.last()) {
            (Some(first), Some(last)) => last.to_ns.saturating_sub(first.from_ns),
            _ => 0,
        };
        CriticalPathReport {
            path_ns,
            span_ns: activity.span.map_or(0, |(start, end)| end - start),
            totals: totals(&segments, path_ns),
            segments,
            slack: slack(trace, activity, &plan),
            assumed_records: dependencies.assumed_records,
            unknown_records: dependencies.unknown_records,
            contradicted: dependencies.contradicted,
        }
    }
}

/// The stretch between a moment and what held it up, and for work its own time.
fn add_segments(
    trace: &Trace,
    activity: &Activity,
    plan: &Plan,
    at: usize,
    link: Option<Link>,
    segments: &mut Vec<Segment>,
) {
    let time = plan.measured[at];
    let begin = time - plan.duration(at);
    let (name, row) = match plan.moments[at] {
        Moment::Work(op) => (activity.name(trace, op), Some(activity.ops.row[op.index()])),
        Moment::Launch(call) | Moment::Wait(call) => (trace.string(activity.calls.get(call).name), None),
    };
    if let Some(link) = link {
        let from = plan.measured[link.from as usize].min(begin);
        let part = match link.because {
            Because::Launched => PathPart::Launch,
            Because::Stream => PathPart::Dispatch,
            Because::Waited(_) => PathPart::StreamWait,
            Because::HostWaited => PathPart::HostWait,
            Because::Host | Because::OtherThread => PathPart::Host,
        };
        if begin > from {
            segments.push(Segment {
                part,
                from_ns: from,
                to_ns: begin,
                name: name.to_owned(),
                row,
            });
        }
    }
    if let Moment::Work(_) = plan.moments[at] {
        // Work that began before the one that held it up ended, as overlapping launches do, counts from there on.
        let from = segments
            .last()
            .map_or(begin, |last: &Segment| last.to_ns.clamp(begin, time));
        segments.push(Segment {
            part: PathPart::Work,
            from_ns: from,
            to_ns: time,
            name: name.to_owned(),
            row,
        });
    }
}

fn totals(segments: &[Segment], path_ns: u64) -> Vec<PathTotal> {
    let mut sums: FxHashMap<(PathPart, &str), (u64, u64)> = FxHashMap::default();
    for segment in segments {
        let name = if segment.part == PathPart::Work {
            segment.name.as_str()
        } else {
            ""
        };
        let sum = sums.entry((segment.part, name)).or_default();
        *sum = (sum.0 + segment.to_ns - segment.from_ns, sum.1 + 1);
    }
    let mut totals: Vec<PathTotal> = sums
        .into_iter()
        .map(|((part, name), (total_ns, count))| PathTotal {
            part,
            name: name.to_owned(),
            total_ns,
            share: share(total_ns, path_ns),
            count,
        })
        .collect();
    totals.sort_by(|a, b| (b.total_ns, a.part, &a.name).cmp(&(a.total_ns, b.part, &b.name)));
    totals
}

fn slack(trace: &Trace, activity: &Activity, plan: &Plan) -> Vec<SlackRow> {
    let slack = plan.slack();
    let mut sums: FxHashMap<&str, (u64, u64, u64, u128)> = FxHashMap::default();
    for (at, moment) in plan.moments.iter().enumerate() {
        if let Moment::Work(op) = moment {
            let sum = sums
                .entry(activity.name(trace, *op))
                .or_insert((0, 0, u64::MAX, 0));
            sum.0 += 1;
            sum.1 += u64::from(slack[at] == 0);
            sum.2 = sum.2.min(slack[at]);
            sum.3 += u128::from(slack[at]);
        }
    }
    let mut rows: Vec<SlackRow> = sums
        .into_iter()
        .map(|(name, (count, on_path, min_slack_ns, sum))| SlackRow {
            name: name.to_owned(),
            count,
            on_path,
            min_slack_ns,
            mean_slack_ns: sum as f64 / count as f64,
        })
        .collect();
    rows.sort_by(|a, b| (a.min_slack_ns, b.on_path, &a.name).cmp(&(b.min_slack_ns, a.on_path, &b.name)));
    rows
}
