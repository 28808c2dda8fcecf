//! How moments move between two times of the same graph: the ends of a time range, and of steps.
//!
//! A moment moves with the last node at or before it: a node of the host where the CPU determines the time, else the end
//! of an op. Few moments are asked for, so they are collected first, and one pass over the nodes finds all their anchors.

use crate::reconstruct::{ExecutionGraph, Node};

/// What moments move with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    /// With calls.
    Host = 0,
    /// With ops.
    Op = 1,
}

/// The last node before each of some moments.
pub(super) struct Moments {
    times: Vec<u64>,
    /// For each kind of anchor and each moment the measured time and the number of the node.
    last: [Vec<Option<(u64, u32)>>; 2],
    /// Whether there are nodes of each kind at all.
    has: [bool; 2],
}

impl Moments {
    /// Finds the anchors of some moments.
    pub(super) fn of(graph: &ExecutionGraph, times: impl Iterator<Item = u64>) -> Self {
        let mut times: Vec<u64> = times.collect();
        times.sort_unstable();
        times.dedup();
        let mut moments = Moments {
            last: [vec![None; times.len()], vec![None; times.len()]],
            times,
            has: [false; 2],
        };
        for (at, node) in graph.nodes.iter().enumerate() {
            let measured = graph.measured(at);
            let kind = usize::from(matches!(node, Node::Op(_)));
            moments.has[kind] = true;
            let first = moments.times.partition_point(|time| *time < measured);
            if let Some(last) = moments.last[kind].get_mut(first) {
                *last = (*last).max(Some((measured, at as u32)));
            }
        }
        for last in &mut moments.last {
            let mut before = None;
            for last in last {
                before = before.max(*last);
                *last = before;
            }
        }
        moments
    }

    /// When a moment is in times that were simulated. Before the first anchor nothing moves. It must be one of those that
    /// were asked for.
    pub(super) fn moved(&self, time: u64, anchor: Anchor, simulated: &[u64]) -> u64 {
        let kind = match self.has[anchor as usize] {
            true => anchor as usize,
            false => 1 - anchor as usize,
        };
        let place = self.times.partition_point(|other| *other < time);
        debug_assert_eq!(
            self.times.get(place),
            Some(&time),
            "a moment that was not asked for"
        );
        match self.last[kind].get(place).copied().flatten() {
            Some((measured, at)) => {
                let moved = i128::from(time) + i128::from(simulated[at as usize]) - i128::from(measured);
                u64::try_from(moved).unwrap_or(if moved < 0 { 0 } else { u64::MAX })
            }
            None => time,
        }
    }

    /// How long a time range is in times that were simulated.
    pub(super) fn length(&self, (from, to): (u64, u64), anchor: Anchor, simulated: &[u64]) -> u64 {
        let moved = |time| self.moved(time, anchor, simulated);
        moved(to).saturating_sub(moved(from))
    }
}
