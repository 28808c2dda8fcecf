//! Why a device had nothing to do.
//!
//! A gap ends with a piece of work, and that was asked for by a call. What the calling thread did from the start of the gap
//! until that call is the host's part of the gap: it waited for a device, took memory, copied, waited for a lock, or did
//! work of its own between calls. The rest, from the call to the start on the device, is the launch's.

use serde::Serialize;
use tracesmith_format::DeviceId;

use super::kernels::share;
use super::registry::{Analyzer, Answer, Need, row};
use super::utilization::device_name;
use crate::model::trace::Trace;
use crate::reconstruct::{Activity, CallClass, Dependencies, Gap, OpClass, OpId, OpTable, Timeline};

pub(super) const ANALYZER: Analyzer = Analyzer {
    name: "idle",
    aliases: &[],
    description: "Why GPUs and streams were idle, and the longest gaps",
    needs: Need::Ops,
    run: |analysis, _| {
        Ok(Answer::whole(analysis.idle(), |report| {
            Box::new(report.devices.iter().map(row))
        }))
    },
};

/// Why nothing ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleCause {
    /// The host did work of its own between calls.
    HostBusy,
    /// The host waited for a device.
    HostSync,
    /// The host took memory or gave it back.
    HostAllocation,
    /// The host was in a call that copies or fills memory.
    HostCopy,
    /// The host waited for a lock or another thread.
    HostLock,
    /// The host loaded device code.
    HostModule,
    /// The host was in another call.
    HostCall,
    /// The work was being launched.
    LaunchGap,
    /// The work was launched long before, and the device took this long to begin it.
    Dispatch,
    /// A stream waited for work of another one.
    OtherStream,
    /// A stream waited for communication on another one.
    Communication,
    /// The call is not in the trace.
    Unknown,
    /// Nothing was asked for yet.
    Start,
    /// Everything was done.
    End,
}

impl IdleCause {
    /// All causes, in the order of their numbers.
    pub const ALL: [Self; 14] = [
        Self::HostBusy,
        Self::HostSync,
        Self::HostAllocation,
        Self::HostCopy,
        Self::HostLock,
        Self::HostModule,
        Self::HostCall,
        Self::LaunchGap,
        Self::Dispatch,
        Self::OtherStream,
        Self::Communication,
        Self::Unknown,
        Self::Start,
        Self::End,
    ];

    /// Its name in JSON and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::HostBusy => "host_busy",
            Self::HostSync => "host_sync",
            Self::HostAllocation => "host_allocation",
            Self::HostCopy => "host_copy",
            Self::HostLock => "host_lock",
            Self::HostModule => "host_module",
            Self::HostCall => "host_call",
            Self::LaunchGap => "launch_gap",
            Self::Dispatch => "dispatch",
            Self::OtherStream => "other_stream",
            Self::Communication => "communication",
            Self::Unknown => "unknown",
            Self::Start => "start",
            Self::End => "end",
        }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::HostBusy => "CPU busy between calls",
            Self::HostSync => "CPU waits for the GPU",
            Self::HostAllocation => "CPU in cudaMalloc/cudaFree",
            Self::HostCopy => "CPU in a copy call",
            Self::HostLock => "CPU waits for a lock",
            Self::HostModule => "CPU loads a module",
            Self::HostCall => "CPU in another call",
            Self::LaunchGap => "launch in progress",
            Self::Dispatch => "queued on the GPU",
            Self::OtherStream => "waits for another stream",
            Self::Communication => "waits for communication",
            Self::Unknown => "call not recorded",
            Self::Start => "before the first GPU work",
            Self::End => "after the last GPU work",
        }
    }

    fn of_call(class: CallClass) -> Self {
        match class {
            CallClass::Sync => Self::HostSync,
            CallClass::Allocation => Self::HostAllocation,
            CallClass::Copy | CallClass::PeerCopy | CallClass::Set => Self::HostCopy,
            CallClass::Lock => Self::HostLock,
            CallClass::Module => Self::HostModule,
            CallClass::Launch | CallClass::GraphLaunch => Self::LaunchGap,
            CallClass::EventRecord
            | CallClass::StreamWait
            | CallClass::CaptureBegin
            | CallClass::CaptureEnd
            | CallClass::Other => Self::HostCall,
        }
    }
}

/// Why devices had nothing to do.
#[derive(Clone, Debug, Default, Serialize)]
pub struct IdleReport {
    /// The devices.
    pub devices: Vec<DeviceIdle>,
    /// The streams, where they were asked for.
    pub streams: Vec<StreamIdle>,
}

/// Why one device had nothing to do.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceIdle {
    /// The trace's number of it.
    pub device: u32,
    /// Its name.
    pub name: String,
    /// The whole stretch: from the first to the last event of the trace, or of the window.
    pub span_ns: u64,
    /// Idle time in it, with start and end.
    pub idle_ns: u64,
    /// Gaps between pieces of work.
    pub gaps: u64,
    /// The causes, the longest first.
    pub causes: Vec<CauseTotal>,
    /// The longest gaps.
    pub longest: Vec<LongGap>,
    /// For each cause the gap that it had the greatest part in.
    pub by_cause: Vec<LongGap>,
}

/// Why one stream had nothing to do, between its first and its last work.
#[derive(Clone, Debug, Serialize)]
pub struct StreamIdle {
    /// The device.
    pub device: u32,
    /// The process.
    pub process: u32,
    /// The context.
    pub context: u32,
    /// The stream.
    pub stream: u64,
    /// From its first to its last work.
    pub span_ns: u64,
    /// Idle time in it.
    pub idle_ns: u64,
    /// Gaps between pieces of work.
    pub gaps: u64,
    /// The causes, the longest first.
    pub causes: Vec<CauseTotal>,
}

impl StreamIdle {
    /// Of all streams.
    pub fn of(activity: &Activity, dependencies: &Dependencies) -> Vec<Self> {
        let ops = &activity.ops;
        activity
            .lane_ids()
            .filter_map(|id| {
                let (lane, work) = (activity.lane(id), activity.ops_of(id));
                let mut sums = Sums::default();
                let (first, mut until) = activity.window.clipped(ops.start[work.first()?.index()], 0);
                until = until.max(first);
                for op in work {
                    let (start, end) = activity
                        .window
                        .clipped(ops.start[op.index()], ops.end[op.index()]);
                    if start > until {
                        let gap = Gap {
                            device: lane.device,
                            from: until,
                            to: start,
                            next: *op,
                        };
                        sums.add(activity, gap, held_up(activity, dependencies, *op));
                    }
                    until = until.max(end);
                }
                Some(StreamIdle {
                    device: lane.device.0,
                    process: lane.process.0,
                    context: lane.context.0,
                    stream: lane.stream.0,
                    span_ns: until - first,
                    idle_ns: sums.nanos.iter().sum(),
                    gaps: sums.gaps,
                    causes: sums.causes(until - first),
                })
            })
            .collect()
    }
}

/// The work of another stream that held up a piece of work longest.
fn held_up(activity: &Activity, dependencies: &Dependencies, op: OpId) -> Option<Held> {
    let edges = dependencies.edges_to(op).iter();
    let last = edges.max_by_key(|edge| activity.ops.end[edge.from.index()])?;
    Some(Held {
        until: activity.ops.end[last.from.index()],
        cause: match activity.ops.class(last.from) {
            OpClass::Communication => IdleCause::Communication,
            _ => IdleCause::OtherStream,
        },
    })
}

/// One cause of idle time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CauseTotal {
    /// The cause.
    pub cause: IdleCause,
    /// All together.
    pub total_ns: u64,
    /// Share of the stretch.
    pub share: f64,
    /// Gaps that it had a part in.
    pub gaps: u64,
}

/// A long gap, to go and look.
#[derive(Clone, Debug, Serialize)]
pub struct LongGap {
    /// Where it starts.
    pub from_ns: u64,
    /// Where it ends.
    pub to_ns: u64,
    /// Its main cause.
    pub cause: IdleCause,
    /// What ended it.
    pub next: String,
    /// The table of that.
    pub next_table: OpTable,
    /// Its row there.
    pub next_row: u32,
}

/// Long gaps that are listed.
const LONGEST: usize = 10;

/// Adds up causes while a timeline is swept.
#[derive(Debug, Default)]
pub(crate) struct IdleSums {
    devices: Vec<(DeviceId, Sums)>,
}

#[derive(Clone, Debug, Default)]
struct Sums {
    gaps: u64,
    nanos: [u64; IdleCause::ALL.len()],
    counts: [u64; IdleCause::ALL.len()],
    longest: Vec<(Gap, IdleCause)>,
    /// For each cause its greatest part in a gap.
    greatest: [Option<(u64, Gap)>; IdleCause::ALL.len()],
}

impl IdleSums {
    pub(crate) fn add(&mut self, activity: &Activity, gap: Gap) {
        let at = match self.devices.iter().position(|(device, _)| *device == gap.device) {
            Some(at) => at,
            None => {
                self.devices.push((gap.device, Sums::default()));
                self.devices.len() - 1
            }
        };
        self.devices[at].1.add(activity, gap, None);
    }

    pub(crate) fn report(self, trace: &Trace, activity: &Activity, timeline: &Timeline) -> IdleReport {
        let span = activity.span.unwrap_or((0, 0));
        let devices = timeline.devices.iter().map(|device| {
            let mut sums = self
                .devices
                .iter()
                .find(|(id, _)| *id == device.device)
                .map_or_else(Sums::default, |(_, sums)| sums.clone());
            for (cause, nanos) in [
                (IdleCause::Start, device.first.saturating_sub(span.0)),
                // A device without work in the window has a last moment of 0.
                (IdleCause::End, span.1.saturating_sub(device.last.max(span.0))),
            ] {
                sums.nanos[cause as usize] += nanos;
                sums.counts[cause as usize] += u64::from(nanos > 0);
            }
            let span_ns = span.1 - span.0;
            DeviceIdle {
                device: device.device.0,
                name: device_name(trace, device.device),
                span_ns,
                idle_ns: sums.nanos.iter().sum(),
                gaps: sums.gaps,
                causes: sums.causes(span_ns),
                longest: sums
                    .longest
                    .iter()
                    .map(|(gap, cause)| long_gap(trace, activity, gap, *cause))
                    .collect(),
                by_cause: IdleCause::ALL
                    .into_iter()
                    .filter_map(|cause| Some((cause, sums.greatest[cause as usize]?.1)))
                    .map(|(cause, gap)| long_gap(trace, activity, &gap, cause))
                    .collect(),
            }
        });
        IdleReport {
            devices: devices.collect(),
            streams: Vec::new(),
        }
    }
}

impl Sums {
    fn add(&mut self, activity: &Activity, gap: Gap, held: Option<Held>) {
        let mut parts = [0u64; IdleCause::ALL.len()];
        split(activity, gap, held, &mut |cause, nanos| {
            parts[cause as usize] += nanos
        });
        self.gaps += 1;
        let mut main = (0, IdleCause::Unknown);
        for cause in IdleCause::ALL {
            let nanos = parts[cause as usize];
            if nanos > 0 {
                self.nanos[cause as usize] += nanos;
                self.counts[cause as usize] += 1;
                let greatest = &mut self.greatest[cause as usize];
                if greatest.is_none_or(|(other, _)| nanos > other) {
                    *greatest = Some((nanos, gap));
                }
            }
            if nanos > main.0 {
                main = (nanos, cause);
            }
        }
        let length = |gap: &Gap| gap.to - gap.from;
        if self.longest.len() < LONGEST
            || self
                .longest
                .last()
                .is_some_and(|(last, _)| length(&gap) > length(last))
        {
            let place = self
                .longest
                .partition_point(|(other, _)| length(other) >= length(&gap));
            self.longest.insert(place, (gap, main.1));
            self.longest.truncate(LONGEST);
        }
    }

    fn causes(&self, span_ns: u64) -> Vec<CauseTotal> {
        let mut causes: Vec<CauseTotal> = IdleCause::ALL
            .into_iter()
            .filter(|cause| self.nanos[*cause as usize] > 0)
            .map(|cause| CauseTotal {
                cause,
                total_ns: self.nanos[cause as usize],
                share: share(self.nanos[cause as usize], span_ns),
                gaps: self.counts[cause as usize],
            })
            .collect();
        causes.sort_by_key(|total| (std::cmp::Reverse(total.total_ns), total.cause));
        causes
    }
}

fn long_gap(trace: &Trace, activity: &Activity, gap: &Gap, cause: IdleCause) -> LongGap {
    LongGap {
        from_ns: gap.from,
        to_ns: gap.to,
        cause,
        next: activity.name(trace, gap.next).to_owned(),
        next_table: activity.ops.kind(gap.next).table,
        next_row: activity.ops.row[gap.next.index()],
    }
}

/// Work of another stream that held up what ended a gap.
#[derive(Clone, Copy)]
struct Held {
    until: u64,
    cause: IdleCause,
}

/// The cause with the largest part in a gap of a device.
pub(crate) fn main_cause(activity: &Activity, gap: &Gap) -> IdleCause {
    let mut nanos = [0; IdleCause::ALL.len()];
    split(activity, *gap, None, &mut |cause, part| {
        nanos[cause as usize] += part
    });
    let causes = IdleCause::ALL.into_iter();
    causes
        .rev()
        .max_by_key(|cause| nanos[*cause as usize])
        .unwrap_or(IdleCause::Unknown)
}

/// Splits a gap of a device, or a part of one, by what caused it.
pub(super) fn causes_of(activity: &Activity, gap: Gap, take: &mut dyn FnMut(IdleCause, u64)) {
    split(activity, gap, None, take);
}

/// Splits a gap by what caused it; the parts add up to the gap.
fn split(activity: &Activity, gap: Gap, held: Option<Held>, take: &mut dyn FnMut(IdleCause, u64)) {
    let Gap { from, to, next, .. } = gap;
    let call = activity.ops.call[next.index()];
    let (mut at, launch) = if call.is_some() {
        let (start, end) = (
            activity.calls.start[call.index()],
            activity.calls.end[call.index()],
        );
        let asked = start.clamp(from, to);
        if asked > from {
            split_host(activity, next, from, asked, take);
        }
        let launch = if end <= from {
            IdleCause::Dispatch
        } else {
            IdleCause::LaunchGap
        };
        (asked, launch)
    } else {
        (from, IdleCause::Unknown)
    };
    if let Some(held) = held
        && held.until.min(to) > at
    {
        take(held.cause, held.until.min(to) - at);
        at = held.until.min(to);
    }
    if to > at {
        take(launch, to - at);
    }
}

/// What the thread that asked for a piece of work did before, by its calls. They stand in the order of their start, so
/// those that count are found going back from the call that asked. Calls within calls are the outer one's.
fn split_host(activity: &Activity, next: OpId, from: u64, to: u64, take: &mut dyn FnMut(IdleCause, u64)) {
    let calls = &activity.calls;
    let asking = activity.ops.call[next.index()];
    let first = calls.threads[calls.thread_of(asking)].calls.start;
    let mut until = to;
    let mut at = asking.index();
    while until > from && at > first {
        at -= 1;
        if calls.is_nested(at) {
            continue;
        }
        let (start, end) = (calls.start[at].max(from), calls.end[at].min(until));
        if end > start {
            if until > end {
                take(IdleCause::HostBusy, until - end);
            }
            take(IdleCause::of_call(calls.class(at)), end - start);
            until = start;
        } else if calls.end[at] <= from {
            break;
        }
    }
    if until > from {
        take(IdleCause::HostBusy, until - from);
    }
}
