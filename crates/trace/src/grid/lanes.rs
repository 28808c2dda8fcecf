//! Slices that overlap are put in lanes: each in the first one that is free when it starts.
//!
//! Ranges and operators come with the outer ones first, so that their lane is the number of others around them. Nothing
//! is left out, however many lanes it takes.

use super::packed::{Gathered, Packed};

/// Slices that do not overlap, in order.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) chunks: Vec<Vec<Packed>>,
    /// Start and length of the long ones.
    pub(super) long: Vec<(u64, u64)>,
}

/// The most slices of a chunk that is filled one by one.
const CHUNK: usize = 4_096;
const FIRST_CHUNK: usize = 16;

impl Lane {
    fn push(&mut self, slice: Packed) {
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < chunk.capacity() => chunk.push(slice),
            last => {
                let capacity = last.map_or(FIRST_CHUNK, |full| (full.len() * 2).min(CHUNK));
                let mut chunk = Vec::with_capacity(capacity);
                chunk.push(slice);
                self.chunks.push(chunk);
            }
        }
    }
}

/// Divides the slices of a track into lanes. The numbers of their shapes become those of a table.
pub(super) fn lanes_of(mut gathered: Gathered, shapes: &[u32]) -> Vec<Lane> {
    let (mut free, mut overlaps) = (0, false);
    let mut long = Vec::with_capacity(gathered.long.len());
    let mut lengths = gathered.long.iter();
    for slice in gathered.chunks.iter_mut().flatten() {
        slice.shape = shapes[slice.shape as usize];
        overlaps |= slice.start < free;
        let nanos = slice.nanos().unwrap_or_else(|| {
            let nanos = lengths.next().copied().unwrap_or(0);
            long.push((slice.start, nanos));
            nanos
        });
        free = slice.start.saturating_add(nanos);
    }
    if overlaps {
        return divide(gathered);
    }
    vec![Lane {
        chunks: gathered.chunks,
        long,
    }]
}

fn divide(gathered: Gathered) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    let mut ends = FirstFree::default();
    let mut lengths = gathered.long.into_iter();
    // A chunk goes before the next one is read, so that the slices are in memory once.
    for slice in gathered.chunks.into_iter().flatten() {
        let long = match slice.nanos() {
            Some(_) => None,
            None => lengths.next(),
        };
        let nanos = slice.nanos().or(long).unwrap_or(0);
        let number = ends.take(slice.start, slice.start.saturating_add(nanos));
        if number == lanes.len() {
            lanes.push(Lane::default());
        }
        lanes[number].push(slice);
        lanes[number].long.extend(long.map(|nanos| (slice.start, nanos)));
    }
    for chunk in lanes.iter_mut().filter_map(|lane| lane.chunks.last_mut()) {
        chunk.shrink_to_fit();
    }
    lanes
}

/// When lanes become free: a tree of the earliest ends, so that thousands of lanes cost no more than their logarithm.
#[derive(Debug, Default)]
struct FirstFree {
    /// The root is at 1, and the lanes are the second half. A lane that was never used is free at once.
    earliest: Vec<u64>,
}

impl FirstFree {
    /// The first lane that is free at `start`; it is taken until `end`.
    fn take(&mut self, start: u64, end: u64) -> usize {
        if self.earliest.get(1).is_none_or(|earliest| *earliest > start) {
            self.grow();
        }
        let lanes = self.earliest.len() / 2;
        let mut node = 1;
        while node < lanes {
            node *= 2;
            if self.earliest[node] > start {
                node += 1;
            }
        }
        let lane = node - lanes;
        self.earliest[node] = end;
        while node > 1 {
            node /= 2;
            self.earliest[node] = self.earliest[2 * node].min(self.earliest[2 * node + 1]);
        }
        lane
    }

    /// Twice as many lanes.
    fn grow(&mut self) {
        let old = std::mem::take(&mut self.earliest);
        let lanes = old.len().max(1);
        self.earliest = vec![0; 2 * lanes];
        self.earliest[lanes..lanes + old.len() / 2].copy_from_slice(&old[old.len() / 2..]);
        for node in (1..lanes).rev() {
            self.earliest[node] = self.earliest[2 * node].min(self.earliest[2 * node + 1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_free_lane_is_taken() {
        let (mut tree, mut ends): (FirstFree, Vec<u64>) = Default::default();
        for at in 1..3_000_u64 {
            let (start, end) = (at, at + at * 7_919 % 400);
            let free = ends.iter().position(|until| *until <= start);
            let expected = free.unwrap_or(ends.len());
            if expected == ends.len() {
                ends.push(0);
            }
            ends[expected] = end;
            assert_eq!(tree.take(start, end), expected);
        }
        assert!(ends.len() > 100);
    }
}
