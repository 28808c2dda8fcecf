//! Why a device had nothing to do.
//!
//! A gap ends with a piece of work, and that was asked for by a call. What the calling thread did from the start of the gap
//! until that call is the host's part of the gap: it waited for a device, took memory, copied, waited for a lock, or did
//! work of its own between calls. The rest, from the call to the start on the device, is the launch's. Time in which the
//! profiler itself held up the calling thread is a cause of its own, whatever the thread was in.

use serde::Serialize;
use serde_json::Value;
use tracesmith_format::DeviceId;

use super::kernels::share;
use super::registry::{Analyzer, Answer, Need, row};
use super::utilization::device_name;
use crate::model::trace::Trace;
use crate::reconstruct::{
    Activity, CallClass, Dependencies, Gap, OpClass, OpId, OpTable, OverheadKind, Timeline,
};

pub(super) const ANALYZER: Analyzer = Analyzer {
    name: "idle",
    aliases: &[],
    description: "Why GPUs and streams were idle, and the longest gaps",
    needs: Need::Ops,
    run: |analysis, _| {
        Ok(Answer::whole(analysis.idle(), |report| {
            Box::new(report.devices.iter().map(with_causes))
        }))
    },
};

/// So many ops of a process are its first.
const FIRST_OPS: usize = 5;

/// A device as a row: each cause is a column, also those that it does not have.
fn with_causes(device: &DeviceIdle) -> Value {
    let mut row = row(device);
    for cause in IdleCause::ALL {
        let total = device.causes.iter().find(|total| total.cause == cause);
        row[format!("idle_{}_ns", cause.name())] = total.map_or(0, |total| total.total_ns).into();
    }
    row
}

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
    /// The profiler held up the host.
    ProfilerOverhead,
    /// The work was being launched: from the start of the call to the start of the work.
    LaunchGap,
    /// The work was launched long before, and the device took this long to begin it.
    Dispatch,
    /// The first work of a stream was launched, and waited for work from before the recording.
    BeforeRecording,
    /// A stream waited for work of another one.
    OtherStream,
    /// A stream waited for communication on another one.
    Communication,
    /// The call is not in the trace.
    Unknown,
    /// Before the first work of this device, while others worked already.
    Start,
    /// After the last work of this device in the analyzed time.
    End,
}

impl IdleCause {
    /// All causes, in the order of their numbers.
    pub const ALL: [Self; 16] = [
        Self::HostBusy,
        Self::HostSync,
        Self::HostAllocation,
        Self::HostCopy,
        Self::HostLock,
        Self::HostModule,
        Self::HostCall,
        Self::ProfilerOverhead,
        Self::LaunchGap,
        Self::Dispatch,
        Self::BeforeRecording,
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
            Self::ProfilerOverhead => "profiler_overhead",
            Self::LaunchGap => "launch_gap",
            Self::Dispatch => "dispatch",
            Self::BeforeRecording => "before_recording",
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
            Self::HostCopy => "CPU in a memcpy or memset call",
            Self::HostLock => "CPU waits for a lock",
            Self::HostModule => "CPU loads a module",
            Self::HostCall => "CPU in another call",
            Self::ProfilerOverhead => "profiler overhead",
            Self::LaunchGap => "launch (call to GPU start)",
            Self::Dispatch => "launched, not started by the GPU",
            Self::BeforeRecording => "work from before the recording",
            Self::OtherStream => "waits for another stream",
            Self::Communication => "waits for communication",
            Self::Unknown => "call not recorded",
            Self::Start => "before its first GPU work",
            Self::End => "after its last GPU work",
        }
    }

    /// Whether the host thread that launched the work was at something in the meantime.
    fn is_of_host(self) -> bool {
        self <= Self::LaunchGap
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
    /// The analyzed time: from the first to the last work of all devices, or the window where one was selected.
    pub span_ns: u64,
    /// Idle time in it.
    pub idle_ns: u64,
    /// Gaps between pieces of work.
    pub gaps: u64,
    /// The causes, the longest first.
    pub causes: Vec<CauseTotal>,
    /// Parts of gaps in which one launch call took 100 µs or more.
    pub slow_launches: u64,
    /// Their time, which is part of `launch_gap`.
    pub slow_launches_ns: u64,
    /// The gap with the slowest of them.
    pub slowest_launch: Option<LongGap>,
    /// Launches in progress in gaps in which the host had waited for a device: part of `launch_gap`.
    pub launches_after_sync_ns: u64,
    /// The longest gaps.
    pub longest: Vec<LongGap>,
    /// For each cause the gap that it had the greatest part in; of launches, a slow one only if all are slow.
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
    /// The same from the start of the trace.
    pub offset_ns: u64,
    /// Where it ends.
    pub to_ns: u64,
    /// Its main cause.
    pub cause: IdleCause,
    /// How much of it had that cause.
    pub cause_ns: u64,
    /// What ended it.
    pub next: String,
    /// The table of that.
    pub next_table: OpTable,
    /// Its row there.
    pub next_row: u32,
    /// How much of it was profiler overhead.
    pub overhead_ns: u64,
    /// How much of it the call took that launched what ended it.
    pub launch_call_ns: u64,
}

impl LongGap {
    /// Whether one launch call took 100 µs or more of it.
    pub fn is_slow_launch(&self) -> bool {
        self.launch_call_ns >= SLOW_LAUNCH
    }
}

/// Time in one launch call, or from its return to the start of its work, from which on it counts as slow: both take 2 µs
/// to 20 µs as a rule.
const SLOW_LAUNCH: u64 = 100_000;
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
    longest: Vec<(Gap, GapCause)>,
    /// For each cause its greatest part in a gap. Gaps with profiler overhead are evidence of nothing else.
    greatest: [Option<(u64, Gap)>; IdleCause::ALL.len()],
    slow_launches: u64,
    slow_launches_ns: u64,
    slowest_launch: Option<(u64, Gap)>,
    launches_after_sync_ns: u64,
}

/// The main cause of a gap.
#[derive(Clone, Copy, Debug)]
struct GapCause {
    cause: IdleCause,
    nanos: u64,
    /// The profiler's part.
    overhead: u64,
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
        let span = activity.base;
        let devices = timeline.devices.iter().map(|device| {
            let mut sums = self
                .devices
                .iter()
                .find(|(id, _)| *id == device.device)
                .map_or_else(Sums::default, |(_, sums)| sums.clone());
            // What a device waited for at the start of a selected time range is a gap like any other.
            let start = match activity.window.from {
                Some(_) => 0,
                None => device.first.saturating_sub(span.0),
            };
            for (cause, nanos) in [
                (IdleCause::Start, start),
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
                slow_launches: sums.slow_launches,
                slow_launches_ns: sums.slow_launches_ns,
                slowest_launch: sums.slowest_launch.map(|(nanos, gap)| {
                    let cause = IdleCause::LaunchGap;
                    long_gap(
                        trace,
                        activity,
                        &gap,
                        GapCause {
                            cause,
                            nanos,
                            overhead: 0,
                        },
                    )
                }),
                launches_after_sync_ns: sums.launches_after_sync_ns,
                longest: sums
                    .longest
                    .iter()
                    .map(|(gap, cause)| long_gap(trace, activity, gap, *cause))
                    .collect(),
                by_cause: IdleCause::ALL
                    .into_iter()
                    .filter_map(|cause| {
                        let slowest = sums.slowest_launch.filter(|_| cause == IdleCause::LaunchGap);
                        Some((cause, sums.greatest[cause as usize].or(slowest)?))
                    })
                    .map(|(cause, (nanos, gap))| {
                        let overhead = match cause {
                            IdleCause::ProfilerOverhead => nanos,
                            _ => 0,
                        };
                        let cause = GapCause {
                            cause,
                            nanos,
                            overhead,
                        };
                        long_gap(trace, activity, &gap, cause)
                    })
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
        let of = |cause: IdleCause| parts[cause as usize];
        let overhead = of(IdleCause::ProfilerOverhead);
        let is_slow = of(IdleCause::LaunchGap) > 0 && in_its_call(activity, &gap) >= SLOW_LAUNCH;
        if of(IdleCause::LaunchGap) > 0 {
            let nanos = of(IdleCause::LaunchGap);
            if is_slow {
                self.slow_launches += 1;
                self.slow_launches_ns += nanos;
                if overhead == 0 && self.slowest_launch.is_none_or(|(other, _)| nanos > other) {
                    self.slowest_launch = Some((nanos, gap));
                }
            } else if of(IdleCause::HostSync) > 0 {
                self.launches_after_sync_ns += of(IdleCause::LaunchGap);
            }
        }
        let mut main = (0, IdleCause::Unknown);
        for cause in IdleCause::ALL {
            let nanos = parts[cause as usize];
            if nanos > 0 {
                self.nanos[cause as usize] += nanos;
                self.counts[cause as usize] += 1;
                let greatest = &mut self.greatest[cause as usize];
                let is_evidence = match cause {
                    IdleCause::ProfilerOverhead => true,
                    IdleCause::LaunchGap => overhead == 0 && !is_slow,
                    _ => overhead == 0,
                };
                if is_evidence && greatest.is_none_or(|(other, _)| nanos > other) {
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
            let (nanos, cause) = main;
            self.longest.insert(
                place,
                (
                    gap,
                    GapCause {
                        cause,
                        nanos,
                        overhead,
                    },
                ),
            );
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

/// How much of a gap the call that launched its end took.
fn in_its_call(activity: &Activity, gap: &Gap) -> u64 {
    let call = activity.ops.call[gap.next.index()];
    if !call.is_some() {
        return 0;
    }
    let (start, end) = (
        activity.calls.start[call.index()],
        activity.calls.end[call.index()],
    );
    end.min(gap.to).saturating_sub(start.max(gap.from))
}

fn long_gap(trace: &Trace, activity: &Activity, gap: &Gap, cause: GapCause) -> LongGap {
    LongGap {
        from_ns: gap.from,
        offset_ns: gap.from.saturating_sub(activity.begin),
        to_ns: gap.to,
        cause: cause.cause,
        cause_ns: cause.nanos,
        next: activity.name(trace, gap.next).to_owned(),
        next_table: activity.ops.kind(gap.next).table,
        next_row: activity.ops.row[gap.next.index()],
        overhead_ns: cause.overhead,
        launch_call_ns: in_its_call(activity, gap),
    }
}

/// Work of another stream that held up what ended a gap.
#[derive(Clone, Copy)]
struct Held {
    until: u64,
    cause: IdleCause,
}

/// The cause with the largest part in a gap of a device.
pub fn main_cause(activity: &Activity, gap: &Gap) -> IdleCause {
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

/// Splits a gap by what caused it; the parts add up to the gap. Overhead comes before what the host was in.
fn split(activity: &Activity, gap: Gap, held: Option<Held>, take: &mut dyn FnMut(IdleCause, u64)) {
    let call = activity.ops.call[gap.next.index()];
    if activity.overheads.is_empty() || !call.is_some() {
        return split_by_call(activity, gap, held, &mut |cause, from, to| take(cause, to - from));
    }
    let thread = activity.calls.thread_of(call);
    split_by_call(activity, gap, held, &mut |cause, from, to| {
        if !cause.is_of_host() {
            return take(cause, to - from);
        }
        activity.overheads.split(thread, from, to, |overhead, from, to| {
            let cause = match overhead {
                Some(OverheadKind::Profiler) => IdleCause::ProfilerOverhead,
                Some(OverheadKind::Module) => IdleCause::HostModule,
                None => cause,
            };
            take(cause, to - from);
        });
    });
}

/// The same by the calls alone. Parts come with their start and end.
fn split_by_call(
    activity: &Activity,
    gap: Gap,
    held: Option<Held>,
    take: &mut dyn FnMut(IdleCause, u64, u64),
) {
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
    let dispatch = match is_after_earlier_work(activity, next, at, to) {
        true => IdleCause::BeforeRecording,
        false => IdleCause::Dispatch,
    };
    let launch = match launch {
        IdleCause::Dispatch => dispatch,
        other => other,
    };
    if let Some(held) = held
        && held.until.min(to) > at
    {
        take(held.cause, at, held.until.min(to));
        at = held.until.min(to);
    }
    // A launch that returned long before its work began was not what held the work up.
    if launch == IdleCause::LaunchGap {
        let returned = activity.calls.end[call.index()].max(at);
        if to > returned + SLOW_LAUNCH {
            if returned > at {
                take(launch, at, returned);
            }
            return take(dispatch, returned, to);
        }
    }
    if to > at {
        take(launch, at, to);
    }
}

/// Whether work waits for something that the trace does not have: it is the first of its stream and among the first of its
/// process, and begins long after it was launched. What was launched before a recording began is not in it, and streams
/// run in order. A stream that is used first in the middle of a recording waits for something else.
fn is_after_earlier_work(activity: &Activity, op: OpId, from: u64, to: u64) -> bool {
    let ops = &activity.ops;
    let lane = ops.lane[op.index()];
    let process = activity.lane(lane).process;
    let is_earlier = |at: &usize| activity.lane(ops.lane[*at]).process == process;
    // The work before a selected time is not in the activity either, but it is in the trace.
    activity.window.from.is_none()
        && to - from >= SLOW_LAUNCH
        && activity.ops_of(lane).first() == Some(&op)
        && (0..op.index()).filter(is_earlier).take(FIRST_OPS).count() < FIRST_OPS
}

/// What the thread that asked for a piece of work did before, by its calls. They stand in the order of their start, so
/// those that count are found going back from the call that asked. Calls within calls are the outer one's.
fn split_host(
    activity: &Activity,
    next: OpId,
    from: u64,
    to: u64,
    take: &mut dyn FnMut(IdleCause, u64, u64),
) {
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
                take(IdleCause::HostBusy, end, until);
            }
            take(IdleCause::of_call(calls.class(at)), start, end);
            until = start;
        } else if calls.end[at] <= from {
            break;
        }
    }
    if until > from {
        take(IdleCause::HostBusy, from, until);
    }
}
