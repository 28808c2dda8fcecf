//! What ran when: busy time as the union of everything that ran, by kind, and how much ran at once.
//!
//! One sweep over the starts, with the ends of what runs in a heap, gives for every set of classes the time during which
//! exactly these ran. All else follows by adding up: busy time of a class, overlap of two, what is exposed, idle time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tracesmith_format::DeviceId;

use super::activity::Activity;
use super::class::OpClass;
use super::ops::OpId;

/// A set of classes of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassSet(u8);

impl ClassSet {
    /// The sets that there are.
    pub const COUNT: usize = 1 << OpClass::ALL.len();

    /// All sets.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT as u8).map(ClassSet)
    }

    /// The set of these.
    pub fn of(classes: &[OpClass]) -> Self {
        ClassSet(classes.iter().fold(0, |set, class| set | 1 << *class as u8))
    }

    /// Whether a class is in it.
    pub fn has(self, class: OpClass) -> bool {
        self.0 & 1 << class as u8 != 0
    }

    /// Whether it shares a class with another.
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether nothing is in it.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// How long exactly which classes ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    by_set: [u64; ClassSet::COUNT],
}

impl Span {
    /// Nanoseconds during which exactly these ran.
    pub fn exactly(&self, set: ClassSet) -> u64 {
        self.by_set[set.0 as usize]
    }

    /// Nanoseconds during which at least one of these ran.
    pub fn any_of(&self, classes: ClassSet) -> u64 {
        self.sum(|set| set.meets(classes))
    }

    /// Nanoseconds during which one of the first and one of the second ran.
    pub fn both(&self, first: ClassSet, second: ClassSet) -> u64 {
        self.sum(|set| set.meets(first) && set.meets(second))
    }

    /// Nanoseconds during which one of the first and none of the second ran.
    pub fn first_only(&self, first: ClassSet, second: ClassSet) -> u64 {
        self.sum(|set| set.meets(first) && !set.meets(second))
    }

    /// Nanoseconds during which anything ran.
    pub fn busy(&self) -> u64 {
        self.sum(|set| !set.is_empty())
    }

    /// Nanoseconds during which nothing ran.
    pub fn idle(&self) -> u64 {
        self.by_set[0]
    }

    /// All nanoseconds.
    pub fn total(&self) -> u64 {
        self.by_set.iter().sum()
    }

    fn sum(&self, is_wanted: impl Fn(ClassSet) -> bool) -> u64 {
        ClassSet::all()
            .filter(|set| is_wanted(*set))
            .map(|set| self.exactly(set))
            .sum()
    }

    fn minus(&self, earlier: &Span) -> Span {
        let mut by_set = self.by_set;
        for (set, before) in by_set.iter_mut().zip(earlier.by_set) {
            *set -= before;
        }
        Span { by_set }
    }
}

/// What one device did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceTimeline {
    /// The device.
    pub device: DeviceId,
    /// When its first work started.
    pub first: u64,
    /// When its last work ended.
    pub last: u64,
    /// Pieces of work.
    pub ops: u64,
    /// What ran between the two.
    pub span: Span,
    /// For each number of pieces that ran at once the nanoseconds of it.
    pub concurrency: Vec<u64>,
    /// The most that ran at once.
    pub max_concurrency: usize,
    /// When that was first so.
    pub max_at: u64,
    /// What ran between each two of the moments that were asked for.
    pub between: Vec<Span>,
    /// How much ran over time: even stretches from the start of the activity to its end.
    pub load: Vec<Load>,
}

/// How much ran in a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Where it starts.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
    /// Nanoseconds in which anything ran.
    pub busy: u64,
    /// Nanoseconds of all that ran; what ran at once counts each.
    pub work: u64,
}

/// Stretches that the load is told of.
const LOADS: u64 = 200;

fn loads(span: (u64, u64)) -> Vec<Load> {
    let width = (span.1 - span.0).div_ceil(LOADS).max(1);
    (0..(span.1 - span.0).div_ceil(width))
        .map(|at| Load {
            start: span.0 + at * width,
            end: (span.0 + (at + 1) * width).min(span.1),
            ..Load::default()
        })
        .collect()
}

/// What all devices did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// The devices, sorted.
    pub devices: Vec<DeviceTimeline>,
    /// The lanes, by their numbers.
    pub lanes: Vec<StreamTimeline>,
}

/// What one lane did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamTimeline {
    /// Nanoseconds during which it had something running.
    pub busy: u64,
    /// When its last work ended, be it after the window.
    pub last: u64,
}

impl Timeline {
    /// Sweeps over all work.
    pub fn of(activity: &Activity) -> Self {
        Self::swept(activity, &[], |_| {})
    }

    /// Sweeps over all work, counting apart what lies between each two of `moments` (sorted), and reports every gap: a
    /// time in which a device did nothing between two ops, or before its first op of a selected time range.
    pub fn swept(activity: &Activity, moments: &[u64], mut on_gap: impl FnMut(Gap)) -> Self {
        let devices = activity.devices();
        let device_of: Vec<usize> = activity
            .lanes
            .iter()
            .map(|lane| devices.partition_point(|device| *device < lane.device))
            .collect();
        let span = activity.span.unwrap_or((0, 0));
        let mut sweeps: Vec<Sweep<'_>> = devices
            .iter()
            .map(|device| Sweep::new(*device, moments, span))
            .collect();
        let ops = &activity.ops;
        let mut lanes = vec![StreamTimeline::default(); activity.lanes.len()];
        for op in ops.ids() {
            let at = op.index();
            let (start, end) = activity.window.clipped(ops.start[at], ops.end[at]);
            let lane = &mut lanes[ops.lane[at].index()];
            lane.busy += end.saturating_sub(start.max(lane.last));
            lane.last = lane.last.max(ops.end[at]);
            let sweep = &mut sweeps[device_of[ops.lane[at].index()]];
            let from = activity.base.0;
            if sweep.timeline.ops == 0 && activity.window.from.is_some() && start > from {
                on_gap(Gap {
                    device: sweep.timeline.device,
                    from,
                    to: start,
                    next: op,
                });
            }
            if let Some(gap) = sweep.add(op, start, end, ops.class(op)) {
                on_gap(gap);
            }
        }
        Timeline {
            devices: sweeps.into_iter().map(Sweep::finish).collect(),
            lanes,
        }
    }
}

/// A stretch in which a device did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The device.
    pub device: DeviceId,
    /// Where it starts.
    pub from: u64,
    /// Where it ends.
    pub to: u64,
    /// What ended it.
    pub next: OpId,
}

struct Sweep<'m> {
    timeline: DeviceTimeline,
    time: u64,
    running: BinaryHeap<Reverse<(u64, u8)>>,
    counts: [u32; 4],
    set: u8,
    moments: &'m [u64],
    passed: Vec<Span>,
    /// The stretch of the load that the time is in.
    load: usize,
}

impl<'m> Sweep<'m> {
    fn new(device: DeviceId, moments: &'m [u64], span: (u64, u64)) -> Self {
        Sweep {
            timeline: DeviceTimeline {
                device,
                first: 0,
                last: 0,
                ops: 0,
                span: Span::default(),
                concurrency: Vec::new(),
                max_concurrency: 0,
                max_at: 0,
                between: Vec::new(),
                load: loads(span),
            },
            time: 0,
            load: 0,
            running: BinaryHeap::new(),
            counts: [0; 4],
            set: 0,
            moments,
            passed: Vec::new(),
        }
    }

    fn add(&mut self, op: OpId, start: u64, end: u64, class: OpClass) -> Option<Gap> {
        if self.timeline.ops == 0 {
            self.timeline.first = start;
            self.time = start;
        }
        self.timeline.ops += 1;
        self.end_before(start);
        let gap = (self.running.is_empty() && start > self.time).then_some(Gap {
            device: self.timeline.device,
            from: self.time,
            to: start,
            next: op,
        });
        self.advance(start);
        self.running.push(Reverse((end, class as u8)));
        self.counts[class as usize] += 1;
        self.set |= 1 << class as u8;
        if self.running.len() > self.timeline.max_concurrency {
            self.timeline.max_concurrency = self.running.len();
            self.timeline.max_at = start;
        }
        gap
    }

    fn end_before(&mut self, time: u64) {
        while let Some(&Reverse((end, class))) = self.running.peek()
            && end <= time
        {
            self.advance(end);
            self.running.pop();
            self.counts[class as usize] -= 1;
            if self.counts[class as usize] == 0 {
                self.set &= !(1 << class);
            }
        }
    }

    fn advance(&mut self, to: u64) {
        while let Some(moment) = self.moments.get(self.passed.len())
            && *moment <= to
        {
            self.count_until((*moment).max(self.time));
            self.passed.push(self.timeline.span);
        }
        self.count_until(to);
    }

    fn count_until(&mut self, to: u64) {
        let nanos = to - self.time;
        let running = self.running.len();
        if self.timeline.concurrency.len() <= running {
            self.timeline.concurrency.resize(running + 1, 0);
        }
        self.timeline.concurrency[running] += nanos;
        self.timeline.span.by_set[self.set as usize] += nanos;
        self.load_until(to, running as u64);
        self.time = to;
    }

    fn load_until(&mut self, to: u64, running: u64) {
        let mut time = self.time;
        while time < to
            && let Some(load) = self.timeline.load.get_mut(self.load)
        {
            if time >= load.end {
                self.load += 1;
                continue;
            }
            let until = to.min(load.end);
            if running > 0 {
                load.busy += until - time;
                load.work += (until - time) * running;
            }
            time = until;
        }
    }

    fn finish(mut self) -> DeviceTimeline {
        self.end_before(u64::MAX);
        self.timeline.last = self.time;
        self.passed.resize(self.moments.len(), self.timeline.span);
        self.timeline.between = self
            .passed
            .windows(2)
            .map(|pair| pair[1].minus(&pair[0]))
            .collect();
        self.timeline
    }
}
