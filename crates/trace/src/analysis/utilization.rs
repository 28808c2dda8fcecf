//! How busy devices were, with what, and what ran at once.

use std::sync::Arc;

use serde::Serialize;
use tracesmith_format::DeviceId;

use super::kernels::share;
use super::registry::{Analyzer, Answer, Need};
use crate::model::trace::Trace;
use crate::reconstruct::{Activity, ClassSet, DeviceTimeline, Load, OpClass, Span, Timeline};

pub(super) const ANALYZER: Analyzer = Analyzer {
    name: "utilization",
    aliases: &["gpu-util"],
    description: "How busy each GPU was",
    needs: Need::Ops,
    run: |analysis, _| {
        let report = Arc::new(analysis.swept().utilization.clone());
        Ok(Answer::list("devices", report, |report: &UtilizationReport| {
            &report.devices
        }))
    },
};

pub(super) const STREAMS: Analyzer = Analyzer {
    name: "streams",
    aliases: &[],
    description: "How busy each stream was",
    needs: Need::Ops,
    run: |analysis, _| {
        let report = Arc::new(analysis.swept().utilization.clone());
        Ok(Answer::list("streams", report, |report: &UtilizationReport| {
            &report.streams
        }))
    },
};

/// How busy devices were.
#[derive(Clone, Debug, Default, Serialize)]
pub struct UtilizationReport {
    /// The devices.
    pub devices: Vec<DeviceUtilization>,
    /// The streams.
    pub streams: Vec<StreamUtilization>,
}

/// How busy one device was in the analyzed time.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceUtilization {
    /// The trace's number of it.
    pub device: u32,
    /// Its name.
    pub name: String,
    /// Pieces of work.
    pub ops: u64,
    /// When its first work started.
    pub first_ns: u64,
    /// When its last work ended.
    pub last_ns: u64,
    /// What it did in the analyzed time. That is the same for all devices.
    #[serde(flatten)]
    pub breakdown: Breakdown,
    /// Nanoseconds during which so many pieces of work ran at once, from none on.
    pub concurrency_ns: Vec<u64>,
    /// The most that ran at once.
    pub max_concurrency: usize,
    /// When that was first so.
    pub max_concurrency_at_ns: u64,
    /// Over time: even stretches of what was looked at.
    pub load: Vec<LoadPoint>,
}

/// How much ran in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LoadPoint {
    /// Where it starts.
    pub start_ns: u64,
    /// Share of it in which anything ran.
    pub utilization: f64,
    /// Pieces of work that ran at once, on average.
    pub concurrency: f64,
}

impl LoadPoint {
    fn of(load: &Load) -> Self {
        let length = load.end - load.start;
        LoadPoint {
            start_ns: load.start,
            utilization: share(load.busy, length),
            concurrency: share(load.work, length),
        }
    }
}

/// What a device did in a stretch of time. Times are unions: what ran at once counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Breakdown {
    /// All of it.
    pub span_ns: u64,
    /// Anything ran.
    pub busy_ns: u64,
    /// Nothing ran.
    pub idle_ns: u64,
    /// Share of the time in which anything ran.
    pub utilization: f64,
    /// Kernels that compute ran.
    pub compute_ns: u64,
    /// Kernels that communicate ran.
    pub communication_ns: u64,
    /// Copies ran.
    pub copy_ns: u64,
    /// Sets ran.
    pub set_ns: u64,
    /// Communication ran, and computation beside it.
    pub communication_hidden_ns: u64,
    /// Communication ran, and no computation.
    pub communication_exposed_ns: u64,
    /// Copies or sets ran, and computation beside them.
    pub copy_hidden_ns: u64,
    /// Copies or sets ran, and neither computation nor communication.
    pub copy_exposed_ns: u64,
    /// Share of the communication that ran beside computation; none without communication.
    pub communication_overlap: Option<f64>,
}

impl Breakdown {
    /// Adds up what ran.
    pub fn of(span: &Span) -> Self {
        let one = |class| ClassSet::of(&[class]);
        let (compute, communication) = (one(OpClass::Compute), one(OpClass::Communication));
        let copies = ClassSet::of(&[OpClass::Copy, OpClass::Set]);
        let kernels = ClassSet::of(&[OpClass::Compute, OpClass::Communication]);
        let communication_ns = span.any_of(communication);
        let hidden = span.both(communication, compute);
        Breakdown {
            span_ns: span.total(),
            busy_ns: span.busy(),
            idle_ns: span.idle(),
            utilization: share(span.busy(), span.total()),
            compute_ns: span.any_of(compute),
            communication_ns,
            copy_ns: span.any_of(one(OpClass::Copy)),
            set_ns: span.any_of(one(OpClass::Set)),
            communication_hidden_ns: hidden,
            communication_exposed_ns: span.first_only(communication, compute),
            copy_hidden_ns: span.both(copies, compute),
            copy_exposed_ns: span.first_only(copies, kernels),
            communication_overlap: (communication_ns > 0).then(|| share(hidden, communication_ns)),
        }
    }
}

/// How busy one stream was.
#[derive(Clone, Debug, Serialize)]
pub struct StreamUtilization {
    /// The device.
    pub device: u32,
    /// Its name.
    pub device_name: String,
    /// The process.
    pub process: u32,
    /// The context.
    pub context: u32,
    /// The stream.
    pub stream: u64,
    /// What orders it against others, as far as known.
    pub kind: &'static str,
    /// Pieces of work.
    pub ops: u64,
    /// When the first started.
    pub first_ns: u64,
    /// When the last ended.
    pub last_ns: u64,
    /// Nanoseconds in which something ran.
    pub busy_ns: u64,
}

impl UtilizationReport {
    /// Of a timeline and the streams of the activity that it was swept from.
    pub fn of(trace: &Trace, activity: &Activity, timeline: &Timeline) -> Self {
        UtilizationReport {
            devices: timeline
                .devices
                .iter()
                .map(|device| of_device(trace, device, activity.base))
                .collect(),
            streams: streams(trace, activity, timeline),
        }
    }
}

fn of_device(trace: &Trace, timeline: &DeviceTimeline, base: (u64, u64)) -> DeviceUtilization {
    let breakdown = Breakdown::of(&timeline.span);
    let outside = (base.1 - base.0).saturating_sub(breakdown.span_ns);
    let mut concurrency_ns = timeline.concurrency.clone();
    if let Some(none) = concurrency_ns.first_mut() {
        *none += outside;
    }
    DeviceUtilization {
        device: timeline.device.0,
        name: device_name(trace, timeline.device),
        ops: timeline.ops,
        first_ns: timeline.first,
        last_ns: timeline.last,
        breakdown: breakdown.over(base.1 - base.0),
        concurrency_ns,
        max_concurrency: timeline.max_concurrency,
        max_concurrency_at_ns: timeline.max_at,
        load: timeline.load.iter().map(LoadPoint::of).collect(),
    }
}

/// A device's name with its number, which tells those of one kind apart.
pub fn device_name(trace: &Trace, id: DeviceId) -> String {
    match trace.device(id) {
        Some(device) if device.name.is_some() => {
            format!("GPU {} {}", device.ordinal, trace.string(device.name))
        }
        Some(device) => format!("GPU {}", device.ordinal),
        None => format!("GPU #{}", id.0),
    }
}

fn streams(trace: &Trace, activity: &Activity, timeline: &Timeline) -> Vec<StreamUtilization> {
    let ops = &activity.ops;
    activity
        .lane_ids()
        .filter_map(|id| {
            let lane = activity.lane(id);
            let work = activity.ops_of(id);
            let first = work.first()?;
            Some(StreamUtilization {
                device: lane.device.0,
                device_name: device_name(trace, lane.device),
                process: lane.process.0,
                context: lane.context.0,
                stream: lane.stream.0,
                kind: activity.stream_kind(id).name().unwrap_or("unknown"),
                ops: work.len() as u64,
                first_ns: ops.start[first.index()],
                last_ns: timeline.lanes[id.index()].last,
                busy_ns: timeline.lanes[id.index()].busy,
            })
        })
        .collect()
}

impl Breakdown {
    /// Both together, one after the other.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let mut sum = Breakdown {
            span_ns: self.span_ns + other.span_ns,
            busy_ns: self.busy_ns + other.busy_ns,
            idle_ns: self.idle_ns + other.idle_ns,
            compute_ns: self.compute_ns + other.compute_ns,
            communication_ns: self.communication_ns + other.communication_ns,
            copy_ns: self.copy_ns + other.copy_ns,
            set_ns: self.set_ns + other.set_ns,
            communication_hidden_ns: self.communication_hidden_ns + other.communication_hidden_ns,
            communication_exposed_ns: self.communication_exposed_ns + other.communication_exposed_ns,
            copy_hidden_ns: self.copy_hidden_ns + other.copy_hidden_ns,
            copy_exposed_ns: self.copy_exposed_ns + other.copy_exposed_ns,
            ..Breakdown::default()
        };
        sum.utilization = share(sum.busy_ns, sum.span_ns);
        sum.communication_overlap =
            (sum.communication_ns > 0).then(|| share(sum.communication_hidden_ns, sum.communication_ns));
        sum
    }

    /// The same within a longer stretch: what is more of it was idle.
    pub(super) fn over(self, span_ns: u64) -> Self {
        let more = span_ns.saturating_sub(self.span_ns);
        Breakdown {
            span_ns: self.span_ns + more,
            idle_ns: self.idle_ns + more,
            utilization: share(self.busy_ns, self.span_ns + more),
            ..self
        }
    }
}
