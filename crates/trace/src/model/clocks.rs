//! Bringing times of several clocks to one timeline.
//!
//! A trace keeps every record on the clock that it was taken with, and stores simultaneous readings of two clocks beside
//! them. Here these pairs become conversions to one *reference* clock: a straight line between two neighbouring
//! pairs, so that drift is followed, and the same slope beyond the first and last one.
//!
//! Where several ways lead to the reference, the most certain one is taken: between hosts that is a PTP clock rather than
//! the time of day.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use tracesmith_format::tables::{Clock, ClockKind, ClockPair};
use tracesmith_format::{ClockId, Timestamp};

/// A moment on the reference clock, and how far off it can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockTime {
    /// The moment.
    pub time: Timestamp,
    /// At most this many nanoseconds off, from the readings' own uncertainty.
    pub uncertainty: u64,
}

/// How the clocks of a trace hang together.
#[derive(Clone, Debug, Default)]
pub struct ClockMap {
    reference: ClockId,
    paths: BTreeMap<ClockId, Vec<Step>>,
}

/// Two clocks read at one moment: what each showed, and how far apart the readings can have been.
type Reading = (u64, u64, u64);

/// From one clock to the next on the way to the reference.
#[derive(Clone, Debug)]
struct Step {
    /// In the order of the clock that is converted from, no time of it twice.
    pairs: Vec<Reading>,
}

impl ClockMap {
    /// Builds the conversions from what a trace stores. The reference is the first monotonic clock, else the first one,
    /// unless nobody knows what that counts from and a realtime clock is there.
    pub fn new(clocks: &[Clock], pairs: &[ClockPair]) -> Self {
        let reference = clocks
            .iter()
            .find(|clock| clock.kind == ClockKind::MONOTONIC)
            .or_else(|| clocks.first().filter(|clock| clock.kind != ClockKind::UNKNOWN))
            .or_else(|| clocks.iter().find(|clock| clock.kind == ClockKind::REALTIME))
            .or(clocks.first())
            .map(|clock| clock.id)
            .or(pairs.first().map(|pair| pair.first))
            .unwrap_or_default();

        let mut links: BTreeMap<ClockId, BTreeMap<ClockId, Vec<Reading>>> = BTreeMap::new();
        for pair in pairs {
            let (a, b) = (pair.first_time.0, pair.second_time.0);
            links
                .entry(pair.first)
                .or_default()
                .entry(pair.second)
                .or_default()
                .push((a, b, pair.uncertainty));
            links
                .entry(pair.second)
                .or_default()
                .entry(pair.first)
                .or_default()
                .push((b, a, pair.uncertainty));
        }

        let mut paths: BTreeMap<ClockId, Vec<Step>> = BTreeMap::new();
        // By uncertainty, then by steps, then by id: the same input gives the same paths.
        let mut queue = BinaryHeap::from([Reverse((0, 0, reference, reference))]);
        while let Some(Reverse((uncertainty, steps, from, over))) = queue.pop() {
            if paths.contains_key(&from) {
                continue;
            }
            let mut path = Vec::new();
            if from != over {
                path.push(Step::new(links[&from][&over].clone()));
                path.extend(paths[&over].iter().cloned());
            }
            paths.insert(from, path);
            for (next, readings) in links.get(&from).into_iter().flatten() {
                let uncertainty = typical_uncertainty(readings).saturating_add(uncertainty);
                queue.push(Reverse((uncertainty, steps + 1, *next, from)));
            }
        }
        ClockMap { reference, paths }
    }

    /// The clock that all times are brought to.
    pub fn reference(&self) -> ClockId {
        self.reference
    }

    /// Whether times of this clock can be converted. Those of an unlinked clock are shown as they are.
    pub fn is_linked(&self, clock: ClockId) -> bool {
        self.paths.contains_key(&clock)
    }

    /// The way of one clock's times to the reference, for many of them.
    pub(crate) fn line(&self, clock: ClockId) -> ClockLine<'_> {
        let path = self.paths.get(&clock);
        ClockLine {
            steps: path.into_iter().flatten().map(|step| (step, 0)).collect(),
        }
    }

    /// A time of `clock` on the reference clock. An unknown time stays unknown.
    pub fn convert(&self, clock: ClockId, time: Timestamp) -> ClockTime {
        let mut converted = ClockTime { time, uncertainty: 0 };
        if time == Timestamp::NONE {
            return converted;
        }
        for step in self.paths.get(&clock).into_iter().flatten() {
            let (time, uncertainty) = step.convert(converted.time.0);
            converted.time = Timestamp(time);
            converted.uncertainty = converted.uncertainty.saturating_add(uncertainty);
        }
        converted
    }
}

/// Converts times of one clock, most of them close to the one before: the segment that was found last is tried first.
pub(crate) struct ClockLine<'m> {
    steps: Vec<(&'m Step, usize)>,
}

impl ClockLine<'_> {
    /// The time on the reference clock. An unknown time stays unknown.
    #[inline]
    pub(crate) fn convert(&mut self, time: Timestamp) -> u64 {
        if self.steps.is_empty() || !time.is_some() {
            return time.0;
        }
        let mut time = time.0;
        for (step, at) in &mut self.steps {
            time = step.convert_near(time, at);
        }
        time
    }
}

impl Step {
    /// As [`Step::convert`], with a guess of the segment. Within a segment whose numbers are small enough 64 bits do.
    fn convert_near(&self, time: u64, at: &mut usize) -> u64 {
        let is_in = |at: usize| {
            self.pairs.get(at).is_some_and(|pair| pair.0 <= time)
                && self.pairs.get(at + 1).is_some_and(|next| time < next.0)
        };
        if !is_in(*at) {
            *at = self
                .pairs
                .partition_point(|(from, ..)| *from <= time)
                .saturating_sub(1);
        }
        if is_in(*at) {
            let ((from, to, _), (next_from, next_to, _)) = (self.pairs[*at], self.pairs[*at + 1]);
            let (offset, run) = (time - from, next_from - from);
            if let Some(rise) = next_to.checked_sub(to)
                && let Some(product) = offset.checked_mul(rise)
                && let Some(rounded) = product.checked_add(run / 2)
            {
                return to.saturating_add(rounded / run).max(1);
            }
        }
        self.convert(time).0
    }

    /// Of several readings at the same moment the most certain one counts.
    fn new(mut pairs: Vec<Reading>) -> Self {
        pairs.sort_unstable_by_key(|(from, to, uncertainty)| (*from, *uncertainty, *to));
        pairs.dedup_by_key(|pair| pair.0);
        Step { pairs }
    }

    fn convert(&self, time: u64) -> (u64, u64) {
        let behind = self.pairs.partition_point(|(from, ..)| *from <= time);
        // The segment that the time lies in; the first or last one for a time outside.
        let second = behind.clamp(1, self.pairs.len().max(2) - 1);
        let (from, to, uncertainty) = self.pairs[second - 1];
        let offset = i128::from(time) - i128::from(from);
        let Some(&(next_from, next_to, next_uncertainty)) = self.pairs.get(second) else {
            return (clamp(i128::from(to) + offset), uncertainty);
        };
        let (run, rise) = (i128::from(next_from - from), i128::from(next_to) - i128::from(to));
        let scaled = scaled(offset, rise, run);
        let outside = (from.saturating_sub(time)).max(time.saturating_sub(next_from));
        let beyond = grown(
            uncertainty.saturating_add(next_uncertainty),
            outside,
            next_from - from,
        );
        (
            clamp(i128::from(to).saturating_add(scaled)),
            uncertainty.max(next_uncertainty).saturating_add(beyond),
        )
    }
}

/// That of the reading in the middle: one that was interrupted says little of the others.
fn typical_uncertainty(readings: &[Reading]) -> u64 {
    let mut all: Vec<u64> = readings.iter().map(|(.., uncertainty)| *uncertainty).collect();
    let middle = all.len() / 2;
    if all.is_empty() {
        return u64::MAX;
    }
    *all.select_nth_unstable(middle).1
}

/// `offset * rise / run`, rounded to the nearest, so that a reading's own time comes back exactly. The product of a made-up
/// trace's times can take more bits than there are: whole runs are taken out first, and what is left fits.
fn scaled(offset: i128, rise: i128, run: i128) -> i128 {
    let (whole, rest) = (offset.div_euclid(run), offset.rem_euclid(run));
    let product = rest.unsigned_abs() * rise.unsigned_abs();
    let run = run.unsigned_abs();
    // A half goes up, whichever the sign.
    let part = if rise >= 0 {
        ((product + run / 2) / run) as i128
    } else {
        -(((product + (run - 1) / 2) / run) as i128)
    };
    rise.saturating_mul(whole).saturating_add(part)
}

/// What the uncertainty of two readings becomes so far outside them: the slope between them can be off by that much over
/// `run`.
fn grown(both: u64, outside: u64, run: u64) -> u64 {
    let product = u128::from(both) * u128::from(outside);
    u64::try_from(product / u128::from(run.max(1))).unwrap_or(u64::MAX)
}

/// 0 would mean "not known".
fn clamp(time: i128) -> u64 {
    u64::try_from(time.max(1)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(id: u32, kind: ClockKind) -> Clock {
        Clock {
            id: ClockId(id),
            kind,
            ..Default::default()
        }
    }

    fn pair(first: u32, a: u64, second: u32, b: u64, uncertainty: u64) -> ClockPair {
        ClockPair {
            first: ClockId(first),
            second: ClockId(second),
            first_time: Timestamp(a),
            second_time: Timestamp(b),
            uncertainty,
        }
    }

    fn at(map: &ClockMap, clock: u32, time: u64) -> (u64, u64) {
        let converted = map.convert(ClockId(clock), Timestamp(time));
        (converted.time.0, converted.uncertainty)
    }

    #[test]
    fn one_pair_gives_an_offset() {
        let clocks = [clock(1, ClockKind::DEVICE), clock(2, ClockKind::MONOTONIC)];
        let map = ClockMap::new(&clocks, &[pair(1, 1_000, 2, 5_000, 7)]);
        assert_eq!(map.reference(), ClockId(2));
        assert_eq!(at(&map, 1, 1_500), (5_500, 7));
        assert_eq!(at(&map, 1, 900), (4_900, 7));
        assert_eq!(at(&map, 2, 900), (900, 0));
    }

    #[test]
    fn a_clock_that_counts_from_1970_beats_one_of_an_unknown_zero() {
        let clocks = [clock(1, ClockKind::UNKNOWN), clock(2, ClockKind::REALTIME)];
        let map = ClockMap::new(&clocks, &[pair(1, 1, 2, 5_001, 0)]);
        assert_eq!((map.reference(), at(&map, 1, 100)), (ClockId(2), (5_100, 0)));
    }

    #[test]
    fn drift_is_followed_between_pairs_and_beyond() {
        let clocks = [clock(1, ClockKind::MONOTONIC)];
        let pairs = [
            pair(2, 1_000, 1, 1_000, 1),
            pair(2, 2_000, 1, 3_000, 2),
            pair(2, 3_000, 1, 4_000, 3),
        ];
        let map = ClockMap::new(&clocks, &pairs);
        assert_eq!(at(&map, 2, 1_500), (2_000, 2));
        assert_eq!(at(&map, 2, 2_500), (3_500, 3));
        assert_eq!(
            at(&map, 2, 500),
            (1, 3),
            "before the first pair its slope goes on, down to the clock's zero, and gets less certain"
        );
        assert_eq!(at(&map, 2, 4_000), (5_000, 8));
        assert_eq!(at(&map, 2, 3_000), (4_000, 3));
        for pair in pairs {
            assert_eq!(at(&map, 2, pair.first_time.0).0, pair.second_time.0);
        }
    }

    #[test]
    fn many_times_are_converted_as_one_is() {
        let clocks = [clock(1, ClockKind::MONOTONIC)];
        let pairs = [
            pair(2, 1_000, 1, 1_000, 1),
            pair(2, 2_000, 1, 3_001, 2),
            pair(2, 3_000, 1, 2_000, 3),
            pair(2, 1 << 62, 1, 1 << 63, 3),
            pair(3, 700, 2, 900, 0),
        ];
        let map = ClockMap::new(&clocks, &pairs);
        for id in 1..5 {
            let mut line = map.line(ClockId(id));
            for time in [
                0,
                1,
                999,
                1_000,
                1_001,
                1_777,
                2_500,
                999,
                3_500,
                1 << 61,
                1 << 63,
                u64::MAX,
            ] {
                assert_eq!(
                    line.convert(Timestamp(time)),
                    at(&map, id, time).0,
                    "clock {id}, {time}"
                );
            }
        }
    }

    #[test]
    fn clocks_are_reached_over_others_and_uncertainty_adds_up() {
        let clocks = [clock(1, ClockKind::MONOTONIC)];
        let map = ClockMap::new(&clocks, &[pair(1, 100, 2, 200, 5), pair(3, 50, 2, 250, 6)]);
        assert_eq!(at(&map, 3, 50), (150, 11));
        assert!(map.is_linked(ClockId(3)));
        assert!(!map.is_linked(ClockId(4)));
        assert_eq!(at(&map, 4, 42), (42, 0));
    }

    #[test]
    fn of_two_ways_the_more_certain_one_is_taken() {
        let clocks = [clock(1, ClockKind::MONOTONIC)];
        let by_time_of_day = [pair(1, 100, 2, 500, 1_000), pair(3, 100, 2, 400, 1_000)];
        let by_ptp = [
            pair(1, 100, 4, 900, 3),
            pair(3, 100, 5, 950, 3),
            pair(4, 900, 6, 900, 0),
            pair(5, 950, 6, 950, 0),
        ];
        let map = ClockMap::new(&clocks, &by_time_of_day);
        assert_eq!(at(&map, 3, 101), (1, 2_000));
        let map = ClockMap::new(&clocks, &[&by_time_of_day[..], &by_ptp[..]].concat());
        assert_eq!(at(&map, 3, 101), (151, 6), "four steps, and better than two");
    }

    #[test]
    fn extremes_and_unknown_times_do_not_overflow() {
        let clocks = [clock(1, ClockKind::MONOTONIC)];
        let pairs = [
            pair(2, 1, 1, u64::MAX, 0),
            pair(2, u64::MAX, 1, 1, 0),
            pair(2, 5, 1, 5, u64::MAX),
        ];
        let map = ClockMap::new(&clocks, &pairs);
        assert_eq!(at(&map, 2, 0), (0, 0));
        for time in [1, 2, 1 << 63, u64::MAX] {
            at(&map, 2, time);
        }
        let steep = [pair(2, 1, 1, 1, 0), pair(2, 2, 1, u64::MAX, 0)];
        assert_eq!(at(&ClockMap::new(&clocks, &steep), 2, u64::MAX), (u64::MAX, 0));
        let doubtful = [pair(2, 1, 1, 1, u64::MAX), pair(2, 2, 1, 2, u64::MAX)];
        let map = ClockMap::new(&clocks, &doubtful);
        assert_eq!(at(&map, 2, u64::MAX), (u64::MAX, u64::MAX));
        let falling = [pair(2, 1, 1, u64::MAX, 0), pair(2, u64::MAX, 1, 1, 0)];
        let map = ClockMap::new(&clocks, &falling);
        assert_eq!(at(&map, 2, u64::MAX - 5), (6, 0));
        assert_eq!(at(&map, 2, 1 << 63), (1 << 63, 0));
        assert_eq!(
            [
                scaled(1, 3, 2),
                scaled(1, -3, 2),
                scaled(-1, 3, 2),
                scaled(3, -1, 2),
                scaled(2, 5, 3)
            ],
            [2, -1, -1, -1, 3],
            "a half goes up"
        );
        assert_eq!(
            ClockMap::new(&[], &[]).convert(ClockId(9), Timestamp(3)).time,
            Timestamp(3)
        );
    }
}
