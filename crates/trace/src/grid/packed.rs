//! Slices in 16 bytes, in the order of their start, while a trace is read.
//!
//! Each block brings a run of slices for each of its tracks, in order. A run that starts after all others is only put
//! behind them: its memory is that of the finished row. Where runs overlap, only what overlaps is sorted again.

use std::cmp::Reverse;

/// A slice. Lengths of 4.29 s and more are in a list beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packed {
    /// On the trace's timeline.
    pub(super) start: u64,
    nanos: u32,
    /// A place in the table of shapes.
    pub(super) shape: u32,
}

const _: () = assert!(size_of::<Packed>() == 16);

/// Stands for a length that is in the list.
const LONG: u32 = u32::MAX;

impl Packed {
    /// A slice, and its length if that belongs in the list.
    #[inline]
    pub(super) fn new(start: u64, nanos: u64, shape: u32) -> (Self, Option<u64>) {
        let short = u32::try_from(nanos).ok().filter(|nanos| *nanos != LONG);
        let packed = Packed {
            start,
            nanos: short.unwrap_or(LONG),
            shape,
        };
        (packed, short.is_none().then_some(nanos))
    }

    /// The length; `None` if it is in the list.
    #[inline]
    pub(super) fn nanos(self) -> Option<u64> {
        (self.nanos != LONG).then_some(u64::from(self.nanos))
    }

    /// Of two that start together the longer one comes first, because it can hold the other. All long ones are equal.
    fn order(&self) -> (u64, Reverse<u32>) {
        (self.start, Reverse(self.nanos))
    }
}

/// Slices in order. The lengths of the long ones are in the order in which these come.
#[derive(Debug, Default)]
pub(super) struct Run {
    slices: Vec<Packed>,
    long: Vec<u64>,
    /// Start and length of the last slice.
    last: (u64, u64),
    is_disordered: bool,
}

impl Run {
    pub(super) fn with_capacity(slices: usize) -> Self {
        Run {
            slices: Vec::with_capacity(slices),
            ..Self::default()
        }
    }

    #[inline]
    pub(super) fn push(&mut self, start: u64, nanos: u64, shape: u32) {
        let (packed, long) = Packed::new(start, nanos, shape);
        let (last_start, last_nanos) = self.last;
        let follows = last_start < start || last_start == start && last_nanos >= nanos;
        self.is_disordered |= !follows && !self.slices.is_empty();
        self.slices.push(packed);
        self.long.extend(long);
        self.last = (start, nanos);
    }

    /// All slices, now in order. Equal ones stay as they came.
    pub(super) fn put_in_order(mut self) -> Self {
        if self.is_disordered {
            put_in_order(&mut self.slices, &mut self.long);
            self.is_disordered = false;
            self.last = last_of(&self.slices, &self.long);
        }
        self
    }

    fn first(&self) -> (u64, u64) {
        let first = self.slices.first();
        first.map_or((0, 0), |slice| (slice.start, length(slice, self.long.first())))
    }
}

fn length(slice: &Packed, long: Option<&u64>) -> u64 {
    slice.nanos().or(long.copied()).unwrap_or(0)
}

fn last_of(slices: &[Packed], long: &[u64]) -> (u64, u64) {
    let last = slices.last();
    last.map_or((0, 0), |slice| (slice.start, length(slice, long.last())))
}

/// Sorts slices. `long` has the lengths of the long ones in their order, before and after.
fn put_in_order(slices: &mut [Packed], long: &mut [u64]) {
    let marked = slices.iter().filter(|slice| slice.nanos().is_none());
    let mut by_length: Vec<(u64, Reverse<u64>, u32)> = marked
        .zip(long.iter())
        .map(|(slice, nanos)| (slice.start, Reverse(*nanos), slice.shape))
        .collect();
    // Stable: runs that are in order already are only merged.
    by_length.sort_by_key(|(start, nanos, _)| (*start, *nanos));
    slices.sort_by_key(Packed::order);
    let marked = slices.iter_mut().filter(|slice| slice.nanos().is_none());
    for (((_, nanos, shape), slice), long) in by_length.into_iter().zip(marked).zip(long) {
        slice.shape = shape;
        *long = nanos.0;
    }
}

/// A run that is shorter than this is copied to the end of another one, up to `JOINED` slices.
const SHORT: usize = 512;
const JOINED: usize = 4_096;
/// A run that would move more slices than this many times its own has to wait until all others are there.
const MOST_MOVED: usize = 2;

/// All slices of a track, in order.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) chunks: Vec<Vec<Packed>>,
    pub(super) long: Vec<u64>,
    last: (u64, u64),
    late: Vec<Run>,
}

impl Gathered {
    /// Adds a run. It is in order.
    pub(super) fn add(&mut self, run: Run) {
        if run.slices.is_empty() {
            return;
        }
        let (start, nanos) = run.first();
        let follows = self.last.0 < start || self.last.0 == start && self.last.1 >= nanos;
        if follows || self.chunks.is_empty() {
            self.append(run);
        } else if self.after(start) > MOST_MOVED * run.slices.len() + SHORT {
            self.late.push(run);
        } else {
            self.merge(run);
        }
    }

    /// All slices, once there are no more runs.
    pub(super) fn finish(mut self) -> Self {
        let mut late = Run::default();
        for run in std::mem::take(&mut self.late) {
            // One by one, so that nothing is in memory twice.
            late.slices.extend(run.slices);
            late.long.extend(run.long);
        }
        if !late.slices.is_empty() {
            late.is_disordered = true;
            self.merge(late.put_in_order());
        }
        for chunk in &mut self.chunks {
            chunk.shrink_to_fit();
        }
        self
    }

    fn append(&mut self, run: Run) {
        self.last = run.last;
        self.long.extend(run.long);
        match self.chunks.last_mut() {
            Some(chunk) if run.slices.len() < SHORT && chunk.len() < JOINED => chunk.extend(run.slices),
            _ => self.chunks.push(run.slices),
        }
    }

    /// How many slices do not start before a moment.
    fn after(&self, start: u64) -> usize {
        let mut count = 0;
        for chunk in self.chunks.iter().rev() {
            let before = chunk.partition_point(|slice| slice.start < start);
            count += chunk.len() - before;
            if before > 0 {
                break;
            }
        }
        count
    }

    /// Puts a run among the slices that do not start before it.
    fn merge(&mut self, run: Run) {
        let (start, _) = run.first();
        let mut parts: Vec<Vec<Packed>> = Vec::new();
        while let Some(mut chunk) = self.chunks.pop() {
            let before = chunk.partition_point(|slice| slice.start < start);
            parts.push(chunk.split_off(before));
            if before > 0 {
                self.chunks.push(chunk);
                break;
            }
        }
        let mut tail = Run::default();
        for part in parts.into_iter().rev() {
            tail.slices.extend(part);
        }
        let marked = tail.slices.iter().filter(|slice| slice.nanos().is_none());
        let kept = self.long.len() - marked.count();
        tail.long = self.long.split_off(kept);
        tail.slices.extend(run.slices);
        tail.long.extend(run.long);
        tail.is_disordered = true;
        self.append(tail.put_in_order());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Plain = (u64, u64, u32);

    fn run(slices: &[Plain]) -> Run {
        let mut run = Run::with_capacity(slices.len());
        for (start, nanos, shape) in slices {
            run.push(*start, *nanos, *shape);
        }
        run.put_in_order()
    }

    fn plain(gathered: &Gathered) -> Vec<Plain> {
        let mut long = gathered.long.iter();
        let slices = gathered.chunks.iter().flatten();
        let plain = slices.map(|slice| {
            let nanos = slice.nanos().or_else(|| long.next().copied());
            (slice.start, nanos.unwrap(), slice.shape)
        });
        plain.collect()
    }

    #[test]
    fn runs_in_any_order_become_one_in_order() {
        let mut numbers = 7_u64;
        let mut number = |limit: u64| {
            numbers = numbers.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (numbers >> 33) % limit
        };
        for round in 0..200_u64 {
            let spread = [1, 50, 10_000][round as usize % 3];
            let (mut gathered, mut expected) = (Gathered::default(), Vec::new());
            for block in 0..number(12) {
                let slices: Vec<Plain> = (0..number(900))
                    .map(|at| {
                        let nanos = [number(40), 0, u64::from(u32::MAX), 6_000_000_000 + number(3)];
                        let nanos = nanos[number(4) as usize];
                        (block * 400 + number(spread), nanos, at as u32)
                    })
                    .collect();
                gathered.add(run(&slices));
                expected.extend(slices);
            }
            let gathered = gathered.finish();
            let mut found = plain(&gathered);
            assert!(
                found
                    .windows(2)
                    .all(|pair| (pair[0].0, Reverse(pair[0].1)) <= (pair[1].0, Reverse(pair[1].1)))
            );
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "round {round}");
        }
    }

    #[test]
    fn a_late_run_waits_when_it_would_move_much() {
        let mut gathered = Gathered::default();
        gathered.add(run(&(10..5_000).map(|at| (at, 1, 0)).collect::<Vec<_>>()));
        gathered.add(run(&[(1, 1, 1)]));
        assert_eq!((gathered.late.len(), gathered.chunks.len()), (1, 1));
        gathered.add(run(&[(4_990, 1, 2)]));
        assert_eq!(gathered.late.len(), 1);
        let slices = plain(&gathered.finish());
        assert_eq!((slices.len(), slices[0]), (4_992, (1, 1, 1)));
    }
}
