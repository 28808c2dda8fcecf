//! Host and device as one graph of moments, each a fixed time after those that it waited for.
//!
//! A moment is the end of a piece of work, the start of a call that launched something, or the end of a call in which the
//! host waited. Every dependency has a weight: the time that passed between what was waited for last and the moment. So
//! the graph, walked with nothing changed, gives back the times that were measured; walked with other durations or without
//! some of its dependencies, it says what the times would have been, as far as the recorded dependencies are all
//! there are.
//!
//! Threads of the host wait for each other in ways that no trace tells. A thread that made no call for a while is taken to have waited for
//! the thread of its process that called last.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;
use tracesmith_format::ProcessId;

use super::activity::{Activity, LaneId};
use super::calls::CallId;
use super::dependencies::{Dependencies, EdgeWhy};
use super::ops::OpId;

/// What a moment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The end of a piece of work.
    Work(OpId),
    /// The start of a call that launched something.
    Launch(CallId),
    /// The end of a call in which the host waited.
    Wait(CallId),
}

/// Why a moment comes after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Because {
    /// The work stands behind the other on its stream.
    Stream,
    /// The call launched it.
    Launched,
    /// Its stream waited for the other.
    Waited(EdgeWhy),
    /// The host waited for the work.
    HostWaited,
    /// The same thread did the other before.
    Host,
    /// Another thread of the process called last.
    OtherThread,
}

/// One dependency of a moment.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// What it waits for: a place in the plan.
    pub from: u32,
    /// Nanoseconds between the two, at least; may be negative where times overlap.
    pub weight: i64,
    /// Why.
    pub because: Because,
}

/// Host and device as one graph of moments, in an order in which everything comes after what it waits for.
#[derive(Debug)]
pub struct Plan {
    /// The moments.
    pub moments: Vec<Moment>,
    /// When each was measured.
    pub measured: Vec<u64>,
    /// For work its duration, else 0.
    duration: Vec<u64>,
    links: Vec<Link>,
    first: Vec<u32>,
    /// Where the plan begins.
    pub start: u64,
}

/// A thread without a call for this long is taken to have waited for another one.
const SILENCE: u64 = 50_000;
/// What a wait takes at most to return once its work is over, where that is not seen.
const RETURN: u64 = 5_000;

impl Plan {
    /// Puts everything together.
    pub fn of(activity: &Activity, dependencies: &Dependencies) -> Self {
        Builder::new(activity, dependencies).build()
    }

    /// What a moment waits for.
    pub fn links_of(&self, at: usize) -> &[Link] {
        &self.links[self.first[at] as usize..self.first[at + 1] as usize]
    }

    /// How many moments there are.
    pub fn len(&self) -> usize {
        self.moments.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.moments.is_empty()
    }

    /// When the last moment is.
    pub fn end(&self) -> u64 {
        self.measured.iter().copied().max().unwrap_or(self.start)
    }

    /// The times of all moments, with durations and dependencies as `change` has them.
    pub fn replayed(&self, activity: &Activity, change: &mut dyn Change) -> Vec<u64> {
        let mut times: Vec<u64> = Vec::with_capacity(self.len());
        for at in 0..self.len() {
            let moment = self.moments[at];
            let duration = match moment {
                Moment::Work(op) => change.duration(activity, op, self.duration[at]),
                _ => 0,
            };
            let mut ready: Option<i128> = None;
            for link in self.links_of(at) {
                if change.keeps(activity, moment, link) {
                    let time = i128::from(times[link.from as usize]) + i128::from(link.weight);
                    ready = Some(ready.map_or(time, |ready| ready.max(time)));
                }
            }
            if let Moment::Work(op) = moment
                && let Some(time) = change.lane_free(activity, op)
            {
                ready = Some(ready.map_or(time.into(), |ready| ready.max(time.into())));
            }
            // What waits for nothing is where it was.
            let begin = ready.unwrap_or_else(|| i128::from(self.measured[at] - self.duration[at]));
            let time = u64::try_from(begin.max(self.start.into()))
                .unwrap_or(u64::MAX)
                .saturating_add(duration);
            if let Moment::Work(op) = moment {
                change.done(activity, op, time);
            }
            times.push(time);
        }
        times
    }

    /// For every moment how much later it could have been without making the end any later.
    pub fn slack(&self) -> Vec<u64> {
        let end = self.end();
        let mut latest = vec![i128::from(end); self.len()];
        for at in (0..self.len()).rev() {
            let begin = latest[at] - i128::from(self.duration[at]);
            for link in self.links_of(at) {
                let from = link.from as usize;
                latest[from] = latest[from].min(begin - i128::from(link.weight));
            }
        }
        latest
            .iter()
            .zip(&self.measured)
            .map(|(latest, measured)| u64::try_from(latest - i128::from(*measured)).unwrap_or(0))
            .collect()
    }

    /// The dependency that held a moment up longest; none for one that waited for nothing.
    pub fn binding(&self, at: usize) -> Option<Link> {
        let links = self.links_of(at).iter().copied();
        links.max_by_key(|link| {
            let ready = i128::from(self.measured[link.from as usize]) + i128::from(link.weight);
            (ready, Reverse(link.because))
        })
    }

    /// The chain of moments that held each other up until the last one, in the order of time.
    pub fn critical(&self) -> Vec<(usize, Option<Link>)> {
        let last = (0..self.len()).max_by_key(|at| (self.measured[*at], Reverse(*at)));
        let mut chain = Vec::new();
        let mut next = last;
        while let Some(at) = next {
            let link = self.binding(at);
            chain.push((at, link));
            next = link.map(|link| link.from as usize);
        }
        chain.reverse();
        chain
    }

    /// A work's duration as measured.
    pub fn duration(&self, at: usize) -> u64 {
        self.duration[at]
    }
}

/// What is different in a replay on paper.
pub trait Change {
    /// How long a piece of work takes.
    fn duration(&mut self, activity: &Activity, op: OpId, measured: u64) -> u64;
    /// Whether a dependency is still there.
    fn keeps(&mut self, activity: &Activity, moment: Moment, link: &Link) -> bool;
    /// When the place is free that a piece of work is to run at, if places are few.
    fn lane_free(&mut self, activity: &Activity, op: OpId) -> Option<u64>;
    /// A piece of work is done.
    fn done(&mut self, activity: &Activity, op: OpId, time: u64);
}

/// Nothing is different.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unchanged;

impl Change for Unchanged {
    fn duration(&mut self, _: &Activity, _: OpId, measured: u64) -> u64 {
        measured
    }

    fn keeps(&mut self, _: &Activity, _: Moment, _: &Link) -> bool {
        true
    }

    fn lane_free(&mut self, _: &Activity, _: OpId) -> Option<u64> {
        None
    }

    fn done(&mut self, _: &Activity, _: OpId, _: u64) {}
}

struct Builder<'a> {
    activity: &'a Activity,
    dependencies: &'a Dependencies,
    plan: Plan,
    /// The place of each piece of work, once it has one.
    of_op: Vec<u32>,
    of_call: FxHashMap<u32, u32>,
    last_of_lane: Vec<Option<u32>>,
    last_of_thread: Vec<Option<u32>>,
    /// The last moment of the host, and its thread.
    last_of_process: FxHashMap<ProcessId, (u32, usize)>,
}

impl<'a> Builder<'a> {
    fn new(activity: &'a Activity, dependencies: &'a Dependencies) -> Self {
        Builder {
            activity,
            dependencies,
            plan: Plan {
                moments: Vec::new(),
                measured: Vec::new(),
                duration: Vec::new(),
                links: Vec::new(),
                first: vec![0],
                start: activity.span.map_or(0, |(start, _)| start),
            },
            of_op: vec![u32::MAX; activity.ops.len()],
            of_call: FxHashMap::default(),
            last_of_lane: vec![None; activity.lanes.len()],
            last_of_thread: vec![None; activity.calls.threads.len()],
            last_of_process: FxHashMap::default(),
        }
    }

    /// Takes calls of all threads and work by time: a launch at its start, work at its start, a wait at its end.
    fn build(mut self) -> Plan {
        let calls = self.host_moments();
        let ops = &self.activity.ops;
        let mut waiting: BinaryHeap<Reverse<(u64, u8, usize)>> = BinaryHeap::new();
        let mut next = vec![0usize; calls.len()];
        let push = |heap: &mut BinaryHeap<_>, thread: usize, at: usize| {
            if let Some((time, moment)) = calls[thread].get(at) {
                let rank = if matches!(moment, Moment::Launch(_)) { 0 } else { 2 };
                heap.push(Reverse((*time, rank, thread)));
            }
        };
        for thread in 0..calls.len() {
            push(&mut waiting, thread, 0);
        }
        let mut op = 0;
        loop {
            let host = waiting.peek().map(|Reverse((time, rank, ..))| (*time, *rank));
            let work = (op < ops.len()).then(|| (ops.start[op], 1u8));
            match (host, work) {
                (Some(host), work) if work.is_none_or(|work| host < work) => {
                    let Some(Reverse((_, _, thread))) = waiting.pop() else {
                        break;
                    };
                    let (time, moment) = calls[thread][next[thread]];
                    self.add_call(thread, time, moment);
                    next[thread] += 1;
                    push(&mut waiting, thread, next[thread]);
                }
                (_, Some(_)) => {
                    self.add_work(OpId(op as u32));
                    op += 1;
                }
                _ => break,
            }
        }
        self.plan
    }

    /// The calls of each thread that matter: those that launched something, at their start, and those that waited, at
    /// their end.
    fn host_moments(&self) -> Vec<Vec<(u64, Moment)>> {
        let calls = &self.activity.calls;
        let mut launching = vec![false; calls.len()];
        for call in self.activity.ops.call.iter().filter(|call| call.is_some()) {
            launching[call.index()] = true;
        }
        let of_thread = |thread: &super::calls::HostThread| {
            let mut moments: Vec<(u64, Moment)> = Vec::new();
            for at in thread.calls.clone() {
                let call = CallId(at as u32);
                if launching[at] {
                    moments.push((calls.start[at], Moment::Launch(call)));
                }
                if self.dependencies.waited_for(call).is_some() {
                    moments.push((calls.end[at], Moment::Wait(call)));
                }
            }
            moments.sort_by_key(|(time, moment)| (*time, matches!(moment, Moment::Wait(_))));
            moments
        };
        calls.threads.iter().map(of_thread).collect()
    }

    fn add_call(&mut self, thread: usize, time: u64, moment: Moment) {
        let process = self.activity.calls.threads[thread].process;
        let before = self.last_of_thread[thread];
        let mut links = Vec::new();
        let since = |place: u32, plan: &Plan| time as i64 - plan.measured[place as usize] as i64;
        let other = self
            .last_of_process
            .get(&process)
            .filter(|(_, other)| *other != thread);
        match (before, other) {
            (Some(before), Some((other, _)))
                if since(before, &self.plan) > SILENCE as i64
                    && self.plan.measured[*other as usize] > self.plan.measured[before as usize] =>
            {
                links.push(self.link(*other, since(*other, &self.plan), Because::OtherThread));
            }
            (Some(before), _) => links.push(self.link(before, since(before, &self.plan), Because::Host)),
            (None, Some((other, _))) => {
                links.push(self.link(*other, since(*other, &self.plan), Because::OtherThread));
            }
            (None, None) => {}
        }
        if let Moment::Wait(call) = moment
            && let Some(op) = self.dependencies.waited_for(call)
            && self.of_op[op.index()] != u32::MAX
        {
            let start = self.activity.calls.start[call.index()];
            let over = self.activity.ops.end[op.index()];
            let late = time as i64 - over as i64;
            if over > start {
                // The wait was for this: without it the call would have come back at once.
                for link in &mut links {
                    link.weight -= (time - start) as i64;
                }
                links.push(self.link(self.of_op[op.index()], late, Because::HostWaited));
            } else {
                let weight = late.min(RETURN as i64);
                links.push(self.link(self.of_op[op.index()], weight, Because::HostWaited));
            }
        }
        let place = self.add(moment, time, 0, links);
        if let Moment::Launch(call) = moment {
            self.of_call.insert(call.0, place);
        }
        self.last_of_thread[thread] = Some(place);
        self.last_of_process.insert(process, (place, thread));
    }

    fn add_work(&mut self, op: OpId) {
        let ops = &self.activity.ops;
        let at = op.index();
        let (start, end) = (ops.start[at], ops.end[at]);
        let mut from: Vec<(u32, Because)> = Vec::new();
        if ops.call[at].is_some()
            && let Some(place) = self.of_call.get(&ops.call[at].0)
        {
            from.push((*place, Because::Launched));
        }
        if let Some(place) = self.last_of_lane[ops.lane[at].index()] {
            from.push((place, Because::Stream));
        }
        for edge in self.dependencies.edges_to(op) {
            let place = self.of_op[edge.from.index()];
            if place != u32::MAX {
                from.push((place, Because::Waited(edge.why)));
            }
        }
        // The work began this long after the last of them; that much stays, whichever is the last.
        let ready = from
            .iter()
            .map(|(place, _)| self.plan.measured[*place as usize])
            .max();
        let weight = ready.map_or(0, |ready| start as i64 - ready as i64);
        let links = from
            .into_iter()
            .map(|(place, because)| self.link(place, weight, because))
            .collect();
        let place = self.add(Moment::Work(op), end, end - start, links);
        self.of_op[at] = place;
        self.last_of_lane[ops.lane[at].index()] = Some(place);
    }

    fn link(&self, from: u32, weight: i64, because: Because) -> Link {
        Link {
            from,
            weight,
            because,
        }
    }

    fn add(&mut self, moment: Moment, time: u64, duration: u64, links: Vec<Link>) -> u32 {
        let plan = &mut self.plan;
        plan.moments.push(moment);
        plan.measured.push(time);
        plan.duration.push(duration);
        plan.links.extend(links);
        plan.first.push(plan.links.len() as u32);
        plan.moments.len() as u32 - 1
    }
}

/// Which lane each piece of work is to run on when lanes are few: those of a device share the places in turn.
#[derive(Debug)]
pub(crate) struct FewLanes {
    place_of: Vec<usize>,
    free: Vec<u64>,
}

impl FewLanes {
    pub(crate) fn new(activity: &Activity, per_device: usize) -> Self {
        let devices = activity.devices();
        let mut used = vec![0usize; devices.len()];
        let place_of = activity
            .lane_ids()
            .map(|id: LaneId| {
                let device = activity.lane(id).device;
                let device = devices.partition_point(|other| *other < device);
                let place = device * per_device + used[device] % per_device;
                used[device] += 1;
                place
            })
            .collect();
        FewLanes {
            place_of,
            free: vec![0; devices.len() * per_device],
        }
    }

    pub(crate) fn free_at(&self, activity: &Activity, op: OpId) -> u64 {
        self.free[self.place_of[activity.ops.lane[op.index()].index()]]
    }

    pub(crate) fn done(&mut self, activity: &Activity, op: OpId, time: u64) {
        let free = &mut self.free[self.place_of[activity.ops.lane[op.index()].index()]];
        *free = (*free).max(time);
    }
}
