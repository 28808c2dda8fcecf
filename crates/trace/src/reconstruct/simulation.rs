//! An execution graph walked with something changed: when every node would have been, and what would have held it up.

use std::cmp::Reverse;

use super::activity::{Activity, StreamIndex};
use super::execution_graph::{ExecutionGraph, Link, LinkKind, Node};
use super::ops::OpId;
use crate::error::Error;

/// What is different in a simulation.
pub trait Change {
    /// How long an op takes.
    fn duration(&mut self, activity: &Activity, op: OpId, measured: u64) -> u64;
    /// Whether a dependency is still there.
    fn keeps(&mut self, activity: &Activity, node: Node, link: &Link) -> bool;
    /// When the place is free at which an op is to run, if places are few, and the node that frees it.
    fn lane_free(&mut self, activity: &Activity, op: OpId) -> Option<(u64, u32)>;
    /// An op ends at this time. It is the node with this number.
    fn done(&mut self, activity: &Activity, op: OpId, time: u64, at: u32);
}

/// Nothing is different.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unchanged;

impl Change for Unchanged {
    fn duration(&mut self, _: &Activity, _: OpId, measured: u64) -> u64 {
        measured
    }

    fn keeps(&mut self, _: &Activity, _: Node, _: &Link) -> bool {
        true
    }

    fn lane_free(&mut self, _: &Activity, _: OpId) -> Option<(u64, u32)> {
        None
    }

    fn done(&mut self, _: &Activity, _: OpId, _: u64, _: u32) {}
}

/// Called now and then during long work with the share that is done, from 0 to 1. An error ends the work.
pub type Watch<'a> = dyn Fn(f64) -> Result<(), Error> + Sync + 'a;

/// Nodes between two calls of a [`Watch`].
const WATCHED: usize = 1 << 16;
/// Stands for no node.
const NOTHING: u32 = u32::MAX;

/// The times of all nodes, and what held each of them up: thirteen bytes a node.
#[derive(Debug)]
pub struct Simulated {
    times: Vec<u64>,
    /// The node that held each node up longest; `NOTHING` for one that waited for nothing.
    held_by: Vec<u32>,
    why: Vec<LinkKind>,
}

impl Simulated {
    /// Computes the times of all nodes, with durations and dependencies as `change` has them.
    pub fn of(graph: &ExecutionGraph, change: &mut dyn Change, watch: &Watch<'_>) -> Result<Self, Error> {
        let mut simulated = Simulated {
            times: Vec::with_capacity(graph.len()),
            held_by: Vec::with_capacity(graph.len()),
            why: Vec::with_capacity(graph.len()),
        };
        for at in 0..graph.len() {
            if at % WATCHED == 0 {
                watch(at as f64 / graph.len() as f64)?;
            }
            simulated.add(graph, at, change);
        }
        Ok(simulated)
    }

    fn add(&mut self, graph: &ExecutionGraph, at: usize, change: &mut dyn Change) {
        let (activity, node) = (&**graph.activity(), graph.nodes[at]);
        let duration = match node {
            Node::Op(op) => change.duration(activity, op, graph.duration(at)),
            _ => 0,
        };
        let mut ready: Option<i128> = None;
        let mut held: Option<((i128, Reverse<LinkKind>), u32)> = None;
        for link in graph.links_of(at) {
            if !change.keeps(activity, node, &link) {
                continue;
            }
            let time = i128::from(self.times[link.from as usize]) + i128::from(link.weight);
            ready = Some(ready.map_or(time, |ready| ready.max(time)));
            let rank = (time, Reverse(link.kind));
            if !link.is_early() && held.is_none_or(|(highest, _)| rank >= highest) {
                held = Some((rank, link.from));
            }
        }
        let mut held = held.map(|((_, Reverse(kind)), from)| (from, kind));
        // What waits for nothing is where it was.
        let mut begin = ready.unwrap_or_else(|| i128::from(graph.measured(at) - graph.duration(at)));
        if let Node::Op(op) = node
            && let Some((free, before)) = change.lane_free(activity, op)
            && i128::from(free) > begin
        {
            begin = free.into();
            held = Some((before, LinkKind::Stream));
        }
        let time = u64::try_from(begin.max(graph.start.into()))
            .unwrap_or(u64::MAX)
            .saturating_add(duration);
        if let Node::Op(op) = node {
            change.done(activity, op, time, at as u32);
        }
        let (from, why) = held.unwrap_or((NOTHING, LinkKind::Host));
        self.times.push(time);
        self.held_by.push(from);
        self.why.push(why);
    }

    /// The memory that they take.
    pub fn memory_bytes(&self) -> usize {
        let of_node = size_of::<u64>() + size_of::<u32>() + size_of::<LinkKind>();
        self.times.capacity() * of_node
    }

    /// The times of all nodes.
    pub fn times(&self) -> &[u64] {
        &self.times
    }

    /// The node that held a node up longest, and why; none for one that waited for nothing.
    pub fn held_by(&self, at: usize) -> Option<(u32, LinkKind)> {
        let from = self.held_by[at];
        (from != NOTHING).then(|| (from, self.why[at]))
    }
}

/// Which place each op is to run at when streams are few: those of a device share the places in turn.
#[derive(Debug)]
pub(crate) struct StreamLimit {
    place_of: Vec<usize>,
    free: Vec<Option<(u64, u32)>>,
}

impl StreamLimit {
    pub(crate) fn new(activity: &Activity, per_device: usize) -> Self {
        let devices = activity.devices();
        // More places than streams are never used. The number can be any that somebody typed.
        let per_device = per_device.min(activity.lanes.len().max(1));
        let mut used = vec![0usize; devices.len()];
        let place_of = activity
            .lane_ids()
            .map(|id: StreamIndex| {
                let device = activity.lane(id).device;
                let device = devices.partition_point(|other| *other < device);
                let place = device * per_device + used[device] % per_device;
                used[device] += 1;
                place
            })
            .collect();
        StreamLimit {
            place_of,
            free: vec![None; devices.len() * per_device],
        }
    }

    /// When the place of an op is free, and the node that frees it; none if nothing has run there.
    pub(crate) fn free_at(&self, activity: &Activity, op: OpId) -> Option<(u64, u32)> {
        self.free[self.place_of[activity.ops.lane[op.index()].index()]]
    }

    pub(crate) fn done(&mut self, activity: &Activity, op: OpId, time: u64, at: u32) {
        let free = &mut self.free[self.place_of[activity.ops.lane[op.index()].index()]];
        *free = (*free).max(Some((time, at)));
    }
}
