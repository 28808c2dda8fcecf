//! What it took to get work to the device: latency of launches, how much stood in line, and where the device outran the host.

use serde::Serialize;

use super::distribution::{Counted, Distribution, Ranked};
use super::kernels::share;
use super::registry::{Analyzer, Answer, Need};
use super::utilization::device_name;
use crate::model::trace::Trace;
use crate::reconstruct::{
    Activity, CallClass, CallId, OpId, OpTable, Steps, launches_into_full_queues, sort_nearly_sorted,
};

pub(super) const ANALYZER: Analyzer = Analyzer {
    name: "launches",
    aliases: &[],
    description: "Launch calls, their latency, and the depth of the queues",
    needs: Need::Ops,
    run: |analysis, _| Ok(Answer::several_tables(analysis.launches())),
};

/// What it took to get work to the device. Only work whose call is in the trace counts. A call counts once, however
/// much work it launches: a graph is one launch.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LaunchesReport {
    /// From the start of the call to the start of its first work on the device.
    pub latency: Distribution,
    /// From the end of the call to the start of its first work on the device; 0 for work that started before.
    pub delay: Distribution,
    /// Time in the call.
    pub call: Distribution,
    /// Calls that launch graphs.
    pub graph_launches: u64,
    /// Kernels that came out of graphs.
    pub graph_kernels: u64,
    /// Kernels that took less time than the call that launched them.
    pub short_kernels: ShortKernels,
    /// Work that was asked for and had not started, device by device.
    pub queues: Vec<Queue>,
    /// Stretches in which the device waited for every launch, the longest first.
    pub launch_bound: Vec<LaunchBound>,
}

/// Kernels that took less time than the call that launched them.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ShortKernels {
    /// How many.
    pub count: u64,
    /// Kernels that took less time than a call that blocked on a full queue. They do not count: the GPU held up the
    /// call.
    pub blocked: u64,
    /// All kernels with a call of their own: those of graphs have none.
    pub launched: u64,
    /// Share of these.
    pub share: f64,
    /// Their time on the device.
    pub kernel_ns: u64,
    /// The time in their calls, without profiler overhead. A call counts once.
    pub call_ns: u64,
    /// Share of the analyzed time that the thread with the most of these calls spent in them.
    pub call_share: f64,
    /// The same of the steps that count in statistics; none without such calls in them.
    pub step_call_share: Option<f64>,
    /// The row of the one whose call took most more than itself, in the table of kernels. Calls with profiler overhead
    /// in them do not count.
    pub worst_row: Option<u32>,
    /// When it started.
    pub worst_start_ns: u64,
    /// When it ended.
    pub worst_end_ns: u64,
}

/// How much stood in line for a device.
#[derive(Clone, Debug, Serialize)]
pub struct Queue {
    /// The device.
    pub device: u32,
    /// Its name.
    pub name: String,
    /// The most that stood in line.
    pub max: u64,
    /// When that was first so.
    pub max_at_ns: u64,
    /// On average over the analyzed time.
    pub mean: f64,
    /// Share of the analyzed time in which nothing stood in line.
    pub empty_share: f64,
    /// Over time: for each of even stretches where it starts, the average and the most.
    pub series: Vec<QueuePoint>,
}

/// How much stood in line in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct QueuePoint {
    /// Where the stretch starts.
    pub start_ns: u64,
    /// On average.
    pub mean: f64,
    /// At most.
    pub max: u64,
}

/// A stretch in which a device waited for every launch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LaunchBound {
    /// The device.
    pub device: u32,
    /// Its name.
    pub device_name: String,
    /// Where it starts.
    pub from_ns: u64,
    /// The same from the start of the trace.
    pub offset_ns: u64,
    /// Where it ends.
    pub to_ns: u64,
    /// Launches in it that the device waited for.
    pub ops: u64,
    /// Idle time in it.
    pub idle_ns: u64,
}

/// Pieces of work in a row that make a stretch.
const STRETCH: u64 = 10;
/// Idle share from which on a stretch is held up by its launches: every GPU needs some time from one op to the next.
const STRETCH_IDLE: f64 = 0.1;
/// Stretches that are listed.
const STRETCHES: usize = 10;
/// Points of a series.
const POINTS: u64 = 200;

impl LaunchesReport {
    /// Of all work that started in the window.
    pub fn of(trace: &Trace, activity: &Activity, steps: Option<&Steps>) -> Self {
        let (ops, calls) = (&activity.ops, &activity.calls);
        let is_wanted =
            |op: &OpId| ops.call[op.index()].is_some() && activity.window.holds(ops.start[op.index()]);
        // Latency, delay and time in the call.
        let from = activity.window.from.unwrap_or(0);
        let durations = |op: OpId| {
            let (start, call) = (ops.start[op.index()], ops.call[op.index()].index());
            let (called, returned) = (calls.start[call], calls.end[call]);
            [
                start.saturating_sub(called),
                start.saturating_sub(returned),
                // A call that began before the time range counts from there on.
                returned.saturating_sub(called.max(from)),
            ]
        };
        let mut counted: [Counted; 3] = Default::default();
        let mut short_kernels = ShortKernels::default();
        // The time in the calls of short kernels, by thread.
        let mut in_calls: Vec<u64> = vec![0; calls.threads.len()];
        let mut in_steps = in_calls.clone();
        let blocked = launches_into_full_queues(activity);
        let mut worst = 0;
        let (mut graph_launches, mut graph_kernels) = (0, 0);
        let mut seen = SeenCalls::of(calls.len());
        for op in ops.ids() {
            let (call, kind) = (ops.call[op.index()], ops.kind(op));
            let is_kernel = kind.table == OpTable::Kernels;
            let is_of_graph =
                kind.graph.is_some() || call.is_some() && calls.class(call.index()) == CallClass::GraphLaunch;
            if is_kernel && is_of_graph && activity.window.holds(ops.start[op.index()]) {
                graph_kernels += 1;
            }
            if !is_wanted(&op) {
                continue;
            }
            let durations = durations(op);
            let is_first = seen.is_new(call);
            if is_first {
                counted
                    .iter_mut()
                    .zip(durations)
                    .for_each(|(counted, nanos)| counted.add(nanos));
                graph_launches += u64::from(is_of_graph);
            }
            if !is_kernel || is_of_graph {
                continue;
            }
            short_kernels.launched += 1;
            let (called, returned) = (calls.start[call.index()], calls.end[call.index()]);
            let nanos = ops.duration(op);
            if nanos >= returned - called {
                continue;
            }
            let thread = calls.thread_of(call);
            let overhead = activity.overheads.profiler_nanos(thread, called, returned);
            let call_ns = returned - called - overhead;
            if nanos >= call_ns {
                continue;
            }
            if blocked.binary_search(&call).is_ok() {
                short_kernels.blocked += 1;
                continue;
            }
            short_kernels.count += 1;
            short_kernels.kernel_ns += nanos;
            if is_first {
                short_kernels.call_ns += call_ns;
                let base = activity.base;
                let inside = returned.min(base.1).saturating_sub(called.max(base.0));
                in_calls[thread] += inside.min(call_ns);
                if steps.is_some_and(|steps| steps.settled_of(activity, op).is_some()) {
                    in_steps[thread] += inside.min(call_ns);
                }
            }
            if overhead == 0 && call_ns - nanos > worst {
                worst = call_ns - nanos;
                short_kernels.worst_row = Some(ops.row[op.index()]);
                short_kernels.worst_start_ns = ops.start[op.index()];
                short_kernels.worst_end_ns = ops.end[op.index()];
            }
        }
        let mut ranked = counted.map(Counted::ranked);
        let mut seen = SeenCalls::of(calls.len());
        for op in ops.ids().filter(is_wanted) {
            if seen.is_new(ops.call[op.index()]) {
                ranked
                    .iter_mut()
                    .zip(durations(op))
                    .for_each(|(ranked, nanos)| ranked.add(nanos));
            }
        }
        let [latency, delay, call] = ranked.map(Ranked::distribution);
        short_kernels.share = share(short_kernels.count, short_kernels.launched);
        let in_calls = in_calls.into_iter().max().unwrap_or(0);
        short_kernels.call_share = share(in_calls, activity.base.1 - activity.base.0);
        let of_steps = in_steps.into_iter().zip(&calls.threads);
        short_kernels.step_call_share = of_steps
            .filter(|(nanos, _)| *nanos > 0)
            .filter_map(|(nanos, thread)| Some((nanos, steps?.settled_nanos(thread.process))))
            .map(|(nanos, all)| share(nanos.min(all), all))
            .reduce(f64::max);
        LaunchesReport {
            latency,
            delay,
            call,
            graph_launches,
            graph_kernels,
            short_kernels,
            queues: queues(trace, activity),
            launch_bound: launch_bound(trace, activity),
        }
    }
}

/// Which calls were seen: one bit for each.
struct SeenCalls(Vec<u64>);

impl SeenCalls {
    fn of(calls: usize) -> Self {
        SeenCalls(vec![0; calls.div_ceil(64)])
    }

    /// Whether a call is seen for the first time.
    fn is_new(&mut self, call: CallId) -> bool {
        let (word, bit) = (call.index() / 64, 1u64 << (call.index() % 64));
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }
}

fn queues(trace: &Trace, activity: &Activity) -> Vec<Queue> {
    let ops = &activity.ops;
    let mut asked: Vec<u64> = Vec::with_capacity(ops.len());
    activity
        .devices()
        .into_iter()
        .filter_map(|device| {
            let is_here: Vec<bool> = activity.lanes.iter().map(|lane| lane.device == device).collect();
            let stood_in_line =
                |op: &OpId| ops.call[op.index()].is_some() && is_here[ops.lane[op.index()].index()];
            asked.clear();
            // A start before its call is the clocks' doing: it never stood in line.
            asked.extend(ops.ids().filter(stood_in_line).map(|op| activity.asked(op)));
            sort_nearly_sorted(&mut asked, |time| *time);
            let begun = ops.ids().filter(stood_in_line).map(|op| ops.start[op.index()]);
            let mut queue = queue_of(&asked, begun, activity.base)?;
            queue.device = device.0;
            queue.name = device_name(trace, device);
            Some(queue)
        })
        .collect()
}

/// How many operations were queued over time: launched, but not yet started.
///
/// `asked` holds the times of the launches and `begun` those of the starts. Both are sorted. Returns `None` without launches.
fn queue_of(asked: &[u64], begun: impl Iterator<Item = u64>, (first, last): (u64, u64)) -> Option<Queue> {
    asked.first()?;
    let width = (last - first).div_ceil(POINTS).max(1);
    let mut series: Vec<(u128, u64)> = vec![(0, 0); (last - first).div_ceil(width).max(1) as usize];
    let (mut time, mut depth, mut empty) = (first, 0u64, 0u64);
    let (mut max, mut max_at) = (0, first);
    let (mut asked, mut begun) = (asked.iter().copied().peekable(), begun.peekable());
    while let Some(begins) = begun.peek().copied() {
        let is_asked = asked.peek().is_some_and(|asks| *asks <= begins);
        let to = if is_asked { asked.next() } else { begun.next() }.unwrap_or(begins);
        let to = to.clamp(first, last);
        if depth == 0 {
            empty += to - time;
        }
        while time < to {
            let bucket = ((time - first) / width) as usize;
            let until = to.min(first + (bucket as u64 + 1) * width);
            series[bucket].0 += u128::from(depth) * u128::from(until - time);
            series[bucket].1 = series[bucket].1.max(depth);
            time = until;
        }
        if is_asked {
            depth += 1;
            if depth > max {
                (max, max_at) = (depth, to);
            }
        } else {
            depth -= 1;
        }
    }
    empty += last - time;
    let area: u128 = series.iter().map(|(area, _)| area).sum();
    let points = series.iter().enumerate().map(|(bucket, (area, most))| {
        let start_ns = first + bucket as u64 * width;
        let nanos = width.min(last - start_ns).max(1);
        QueuePoint {
            start_ns,
            mean: *area as f64 / nanos as f64,
            max: *most,
        }
    });
    Some(Queue {
        device: 0,
        name: String::new(),
        max,
        max_at_ns: max_at,
        mean: area as f64 / (last - first).max(1) as f64,
        empty_share: share(empty, last - first),
        series: points.collect(),
    })
}

/// Runs of work that was each asked for only when the device had nothing left to do.
fn launch_bound(trace: &Trace, activity: &Activity) -> Vec<LaunchBound> {
    let ops = &activity.ops;
    let devices = activity.devices();
    let mut open: Vec<Option<LaunchBound>> = vec![None; devices.len()];
    let mut until: Vec<u64> = vec![0; devices.len()];
    let mut last_call: Vec<CallId> = vec![CallId::NONE; devices.len()];
    let mut found = Vec::new();
    let is_held_up = |stretch: &LaunchBound| {
        let length = stretch.to_ns.saturating_sub(stretch.from_ns);
        stretch.ops >= STRETCH && share(stretch.idle_ns, length) >= STRETCH_IDLE
    };
    let mut close = |stretch: Option<LaunchBound>| found.extend(stretch.filter(is_held_up));
    for op in ops.ids() {
        let at = op.index();
        let device = activity.lane(ops.lane[at]).device;
        let place = devices.partition_point(|other| *other < device);
        let call = ops.call[at];
        let (start, end) = activity.window.clipped(ops.start[at], ops.end[at]);
        // The work of a graph is launched once: what follows its first work waits for no launch.
        let is_launched = std::mem::replace(&mut last_call[place], call) == call && call.is_some();
        if is_launched {
            if let Some(stretch) = &mut open[place] {
                stretch.to_ns = stretch.to_ns.max(end);
            }
            until[place] = until[place].max(end);
            continue;
        }
        let is_bound = call.is_some() && until[place] > 0 && activity.calls.end[call.index()] > until[place];
        if is_bound && start > until[place] {
            let stretch = open[place].get_or_insert(LaunchBound {
                device: device.0,
                device_name: device_name(trace, device),
                from_ns: until[place],
                offset_ns: until[place].saturating_sub(activity.begin),
                to_ns: 0,
                ops: 0,
                idle_ns: 0,
            });
            stretch.ops += 1;
            stretch.idle_ns += start - until[place];
            stretch.to_ns = end;
        } else {
            close(open[place].take());
        }
        until[place] = until[place].max(end);
    }
    open.into_iter().for_each(&mut close);
    found.sort_by_key(|stretch| {
        (
            std::cmp::Reverse(stretch.idle_ns),
            stretch.from_ns,
            stretch.device,
        )
    });
    found.truncate(STRETCHES);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_what_was_asked_for_and_not_begun() {
        // Two asked at 0, one begins at 100, the other at 300; one more from 400 to 1000.
        let queue = queue_of(&[0, 0, 400], [100, 300, 1_000].into_iter(), (0, 1_000)).unwrap();
        assert_eq!((queue.max, queue.max_at_ns), (2, 0));
        assert_eq!(queue.mean, (2.0 * 100.0 + 200.0 + 600.0) / 1_000.0);
        assert_eq!(queue.empty_share, 0.1);
        assert_eq!(queue.series.len(), POINTS as usize);
        let point = |start, mean, max| QueuePoint {
            start_ns: start,
            mean,
            max,
        };
        assert_eq!(queue.series[19], point(95, 2.0, 2));
        assert_eq!(queue.series[20], point(100, 1.0, 1));
        assert_eq!(queue.series[60], point(300, 0.0, 0));
        let at_once = queue_of(&[5], std::iter::once(5), (5, 5)).unwrap();
        assert!(queue_of(&[], std::iter::empty(), (0, 0)).is_none());
        assert_eq!((at_once.max, at_once.mean, at_once.series.len()), (1, 0.0, 1));
        // Of a shorter stretch, and of a longer one: both ends count.
        let queue = queue_of(&[0, 400], [100, 1_000].into_iter(), (50, 550)).unwrap();
        assert_eq!((queue.mean, queue.empty_share), (0.4, 0.6));
        let queue = queue_of(&[100], [200].into_iter(), (0, 1_000)).unwrap();
        assert_eq!((queue.mean, queue.empty_share), (0.1, 0.9));
    }
}
