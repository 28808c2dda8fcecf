//! The grid against what plain loops over the same events give.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use tracesmith_format::tables::*;
use tracesmith_format::{DeviceId, Timestamp, Writer, WriterOptions};
use tracesmith_trace::grid::{
    CATEGORIES, Grid, GridOptions, NO_SHAPE, RowCells, RowSlices, SpanCells, Track, TrackKind,
};
use tracesmith_trace::overview::{ActivityKind, Overview, RowKey, TimeSpan};
use tracesmith_trace::{Query, Trace};

use crate::made::{Made, PROCESS, THREAD, place};

/// Numbers from a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }
}

/// An event of a made-up trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Made1 {
    start: u64,
    end: u64,
    what: u64,
    stream: u64,
}

const KERNELS: [&str; 4] = [
    "gemm",
    "softmax<float>(float*)",
    "ncclDevKernel_AllReduce",
    "relu",
];

/// Kinds of time in which events are spread.
#[derive(Clone, Copy, Debug)]
enum Spread {
    /// Close together: much overlaps.
    Dense,
    /// One after the other, with jitter.
    Streams,
    /// Bursts, hours apart, some events longer than 4.29 s.
    Bursts,
}

fn events(seed: u64, count: u64, spread: Spread) -> Vec<Made1> {
    let mut numbers = Numbers(seed);
    let mut events: Vec<Made1> = (0..count)
        .map(|at| {
            let (start, length) = match spread {
                Spread::Dense => (1 + numbers.below(count * 2), numbers.below(40)),
                Spread::Streams => (1_000 + at * 100 + numbers.below(30), numbers.below(220)),
                Spread::Bursts => {
                    let burst = numbers.below(4) * 3_600_000_000_000;
                    let long = [0, 1, 500, 5_000_000_000][numbers.below(4) as usize];
                    (
                        1 + burst + numbers.below(3_000_000),
                        numbers.below(2_000) + long * u64::from(numbers.below(50) == 0),
                    )
                }
            };
            let length = if numbers.below(9) == 0 { 0 } else { length };
            Made1 {
                start,
                end: start + length,
                what: numbers.below(8),
                stream: numbers.below(3),
            }
        })
        .collect();
    // Blocks come in any order.
    if seed.is_multiple_of(2) {
        for at in (1..events.len()).rev() {
            events.swap(at, numbers.below(at as u64 + 1) as usize);
        }
    }
    events
}

fn trace_of(events: &[Made1], rows_per_block: u32) -> Arc<Trace> {
    let options = WriterOptions {
        rows_per_block,
        ..WriterOptions::default()
    };
    let mut made = Made::with(Writer::new(Vec::new(), options).unwrap());
    for event in events {
        let (times, stream) = ((event.start, event.end), event.stream);
        match event.what {
            0..4 => made.kernel(KERNELS[event.what as usize], stream, times.0, times.1),
            4 => made.copy(stream, times, 64, CopyShape::default()),
            5 => {
                let row = MemorySet {
                    start: Timestamp(times.0),
                    end: Timestamp(times.1),
                    place: place(stream),
                    ..MemorySet::default()
                };
                made.writer.push(crate::made::CLOCK, &row).unwrap();
            }
            6 => {
                let none = tracesmith_format::CorrelationId::NONE;
                made.sync(SyncKind::EVENT_RECORD, stream, times, none, (0, 0));
            }
            _ => made.range("step", times),
        }
    }
    made.finish()
}

fn grid_of(trace: &Arc<Trace>) -> Grid {
    Grid::new(trace, GridOptions::default()).unwrap()
}

fn all(grid: &Grid, row: u32) -> RowSlices {
    grid.slices(row, 0, u64::MAX, usize::MAX)
}

fn rows_of(track: &Track) -> std::ops::Range<u32> {
    track.first_row..track.first_row + track.rows
}

/// A slice as the loops see it.
#[derive(Clone, Copy, Debug)]
struct Plain {
    start: u64,
    end: u64,
    shape: u32,
    category: usize,
    is_work: bool,
}

/// The slices of some rows, by start and then by row.
fn plain(grid: &Grid, rows: impl Iterator<Item = u32>) -> Vec<Plain> {
    let mut found = Vec::new();
    for row in rows {
        let slices = all(grid, row);
        for at in 0..slices.starts.len() {
            let shape = &grid.shapes()[slices.shapes[at] as usize];
            found.push(Plain {
                start: slices.starts[at],
                end: slices.starts[at] + slices.durations[at],
                shape: slices.shapes[at],
                category: usize::from(shape.category),
                is_work: shape.kind.is_some_and(ActivityKind::is_work),
            });
        }
    }
    found.sort_by_key(|slice| slice.start);
    found
}

/// What a cell holds, by going through its moments.
#[derive(Debug, Default)]
struct Expected {
    busy: [u64; CATEGORIES],
    present: [bool; CATEGORIES],
    shape: Option<u32>,
    count: u64,
}

fn expected(slices: &[Plain], from: u64, to: u64) -> Expected {
    let mut cell = Expected::default();
    let started: Vec<&Plain> = slices
        .iter()
        .filter(|slice| (from..to).contains(&slice.start))
        .collect();
    cell.count = started.len() as u64;
    for slice in started.iter().filter(|slice| slice.start == slice.end) {
        cell.present[slice.category] = true;
    }
    let inside: Vec<&Plain> = slices
        .iter()
        .filter(|slice| slice.start < to && slice.end > from && slice.start < slice.end)
        .collect();
    let mut bounds: Vec<u64> = inside
        .iter()
        .flat_map(|slice| [slice.start.max(from), slice.end.min(to)])
        .collect();
    bounds.sort_unstable();
    bounds.dedup();
    let (mut longest, mut current): ((u64, Option<u32>), (u64, usize)) = ((0, None), (0, usize::MAX));
    let mut until = from;
    let mut coming = inside.iter().copied().enumerate().peekable();
    let mut open: Vec<(usize, &Plain)> = Vec::new();
    for pair in bounds.windows(2) {
        open.retain(|(_, slice)| slice.end > pair[0]);
        while let Some(next) = coming.next_if(|(_, slice)| slice.start <= pair[0]) {
            open.push(next);
        }
        let Some(category) = open.iter().map(|(_, slice)| slice.category).min() else {
            continue;
        };
        let of_category = open.iter().filter(|(_, slice)| slice.category == category);
        // The one that ends last, the first of equals.
        let (at, owner) = of_category
            .max_by_key(|(at, slice)| (slice.end, std::cmp::Reverse(*at)))
            .unwrap();
        let nanos = pair[1] - pair[0];
        cell.busy[category] += nanos;
        cell.present[category] = true;
        let goes_on = current.1 == *at && until == pair[0];
        current = (if goes_on { current.0 } else { 0 } + nanos, *at);
        until = pair[1];
        if current.0 > longest.0 {
            longest = (current.0, Some(owner.shape));
        }
    }
    cell.shape = longest.1.or_else(|| started.first().map(|slice| slice.shape));
    cell
}

fn check_cells(cells: &SpanCells, first: u64, level: u8, slices: &[Plain]) -> Result<(), TestCaseError> {
    for at in 0..cells.shapes.len() {
        let (from, to) = ((first + at as u64) << level, (first + at as u64 + 1) << level);
        let wanted = expected(slices, from, to);
        let place = format!("level {level} cell {} {wanted:?}", first + at as u64);
        let shape = (cells.shapes[at] != NO_SHAPE).then_some(u32::from(cells.shapes[at]));
        prop_assert_eq!(shape, wanted.shape, "{}", place);
        let count = wanted.count.checked_ilog2().map_or(0, |log| log as u8 + 1);
        prop_assert_eq!(cells.counts[at], count, "{}", place);
        let shares: [u8; CATEGORIES] = std::array::from_fn(|category| cells.shares[category][at]);
        let sum: u32 = shares.iter().map(|share| u32::from(*share)).sum();
        prop_assert!(sum <= 255, "{} {:?}", place, shares);
        let exact = wanted.busy.map(|nanos| nanos as f64 * 255.0 / (to - from) as f64);
        // What is there is seen, even if another one has to give up a 255th for it.
        let small = (0..CATEGORIES).filter(|category| wanted.present[*category] && exact[*category] < 1.5);
        let tolerance = 1.0 + small.count() as f64;
        for category in 0..CATEGORIES {
            prop_assert_eq!(
                shares[category] > 0,
                wanted.present[category],
                "{} {:?}",
                place,
                shares
            );
            let error = (f64::from(shares[category]) - exact[category]).abs();
            prop_assert!(error <= tolerance, "{} {:?} {:?}", place, shares, exact);
        }
        let unlifted = (0..CATEGORIES).all(|category| !wanted.present[category] || exact[category] >= 1.5);
        let total: f64 = exact.iter().sum();
        prop_assert!(
            !unlifted || (f64::from(sum) - total).abs() <= 0.5 + 1e-9,
            "{} {:?}",
            place,
            shares
        );
    }
    Ok(())
}

fn spans(grid: &Grid, row: u32, level: u8, first: u64, cells: usize) -> SpanCells {
    match grid.cells(row, level, first, cells) {
        RowCells::Spans(spans) => spans,
        RowCells::Values(_) => panic!("row {row} has values"),
    }
}

fn spread() -> impl Strategy<Value = Spread> {
    prop_oneof![Just(Spread::Dense), Just(Spread::Streams), Just(Spread::Bursts)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn cells_of_every_level_equal_those_counted_from_the_events(
        seed in any::<u64>(), count in prop_oneof![1 => 0..80_u64, 2 => 7_000..12_000_u64],
        spread in spread(), rows_per_block in prop_oneof![Just(7_u32), Just(300), Just(50_000)],
    ) {
        let trace = trace_of(&events(seed, count, spread), if count > 100 { rows_per_block.max(300) } else { rows_per_block });
        let grid = grid_of(&trace);
        let mut numbers = Numbers(seed);
        for track in grid.tracks() {
            let streams = grid.tracks().iter().filter(|other| other.kind == TrackKind::Stream);
            let union: Vec<Plain> = match track.kind {
                TrackKind::Device => {
                    let mut all = plain(&grid, streams.flat_map(rows_of));
                    all.retain(|slice| slice.is_work);
                    all
                }
                _ => Vec::new(),
            };
            for row in rows_of(track) {
                let slices = match track.kind {
                    TrackKind::Device => union.clone(),
                    _ => plain(&grid, row..row + 1),
                };
                let finest = (grid.span() / 2_000_000).checked_ilog2().unwrap_or(0) as u8;
                for level in (finest..=60).chain([0, 63]) {
                    // Around one of the slices: most of a trace may be empty.
                    let near = numbers.below(slices.len() as u64) as usize;
                    let near = slices.get(near).map_or(0, |slice| slice.start >> level);
                    let first = near.saturating_sub(numbers.below(4));
                    let (first, cells) = if level > 58 { (0, 1) } else { (first, 6) };
                    let found = spans(&grid, row, level, first, cells);
                    check_cells(&found, first, level.min(62), &slices)?;
                }
            }
        }
    }

    #[test]
    fn rows_together_have_every_event_once_and_lanes_never_overlap(
        seed in any::<u64>(), count in 0..3_000_u64, spread in spread(), rows_per_block in 5..400_u32,
    ) {
        let events = events(seed, count, spread);
        let grid = grid_of(&trace_of(&events, rows_per_block));
        let mut found: Vec<Made1> = Vec::new();
        for track in grid.tracks().iter().filter(|track| track.kind != TrackKind::Device) {
            let mut of_track = 0;
            for row in rows_of(track) {
                let slices = all(&grid, row);
                prop_assert!(!slices.starts.is_empty() && !slices.has_more);
                of_track += slices.starts.len() as u64;
                let mut free = 0;
                for at in 0..slices.starts.len() {
                    prop_assert!(slices.starts[at] >= free, "{} row {}", track.label, row);
                    free = slices.starts[at] + slices.durations[at];
                    let shape = &grid.shapes()[slices.shapes[at] as usize];
                    let what = match shape.kind.unwrap() {
                        ActivityKind::Kernel | ActivityKind::Communication => {
                            KERNELS.iter().position(|name| *name == shape.name).unwrap() as u64
                        }
                        ActivityKind::Copy => 4,
                        ActivityKind::Set => 5,
                        ActivityKind::Sync => 6,
                        _ => 7,
                    };
                    let stream = match track.key {
                        tracesmith_trace::grid::TrackKey::Row(RowKey::Stream { stream, .. }) => stream.0,
                        _ => 0,
                    };
                    let start = slices.starts[at] + grid.origin();
                    found.push(Made1 { start, end: start + slices.durations[at], what, stream });
                }
            }
            prop_assert_eq!(of_track, track.slices);
        }
        let mut wanted: Vec<Made1> = events
            .iter()
            .map(|event| Made1 { stream: if event.what == 7 { 0 } else { event.stream }, ..*event })
            .collect();
        wanted.sort_unstable();
        found.sort_unstable();
        prop_assert_eq!(found, wanted);
    }

    #[test]
    fn the_busy_share_of_rows_is_that_of_an_overview(seed in any::<u64>(), count in 2_500..6_000_u64) {
        let trace = trace_of(&events(seed, count, Spread::Streams), 1_000);
        let grid = grid_of(&trace);
        for level in [3_u8, 7, 9, 12, 15] {
            let cells = 40;
            let first = (grid.span() >> level).saturating_sub(cells) / 2;
            let window = TimeSpan::new(
                Timestamp(grid.origin() + (first << level)),
                Timestamp(grid.origin() + ((first + cells) << level)),
            );
            let overview = Overview::new(&trace, &Query::default(), window, cells as usize);
            let device = grid.tracks().iter().find(|track| track.kind == TrackKind::Device).unwrap();
            // A row that has nothing in the window is left out.
            let row = overview.row(RowKey::Device { device: DeviceId(1) });
            let found = spans(&grid, device.first_row, level, first, cells as usize);
            for cell in 0..cells as usize {
                let sum: u32 = (0..CATEGORIES).map(|category| u32::from(found.shares[category][cell])).sum();
                let exact = row.map_or(0, |row| row.busy_nanos_of(cell)) as f64 * 255.0 / (1_u64 << level) as f64;
                // Categories of which there is less than a 255th have one.
                prop_assert!((f64::from(sum) - exact).abs() <= 3.0, "level {} cell {}: {} {}", level, cell, sum, exact);
            }
        }
    }
}

#[test]
fn the_same_trace_makes_the_same_grid_on_any_number_of_threads() {
    let trace = trace_of(&events(4, 5_000, Spread::Dense), 100);
    let grids: Vec<Grid> = [1, 2, 5]
        .into_iter()
        .map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| grid_of(&trace))
        })
        .collect();
    for other in &grids[1..] {
        assert_eq!(other.shapes(), grids[0].shapes());
        assert_eq!(other.tracks(), grids[0].tracks());
        assert_eq!(other.groups(), grids[0].groups());
        for row in 0..grids[0].rows() {
            assert_eq!(all(other, row), all(&grids[0], row), "row {row}");
        }
    }
}

#[test]
fn totals_are_those_of_the_slices() {
    let grid = grid_of(&trace_of(&events(9, 4_000, Spread::Streams), 500));
    let device = grid
        .tracks()
        .iter()
        .find(|track| track.kind == TrackKind::Device)
        .unwrap();
    let streams: Vec<u32> = grid
        .tracks()
        .iter()
        .filter(|track| track.kind == TrackKind::Stream)
        .flat_map(rows_of)
        .collect();
    for (from, to) in [(0, u64::MAX), (100_000, 250_033), (7, 8), (9_000, 9_000)] {
        let mut wanted: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for slice in plain(&grid, streams.iter().copied()) {
            let is_inside = slice.start < to && (slice.end > from || slice.start >= from);
            if is_inside {
                let sum = wanted.entry(slice.shape).or_default();
                *sum = (sum.0 + 1, sum.1 + slice.end.min(to) - slice.start.max(from));
            }
        }
        let twice: Vec<u32> = streams.iter().chain(&streams).copied().collect();
        for rows in [vec![device.first_row], streams.clone(), twice] {
            let totals = grid.totals(&rows, from, to);
            let found: BTreeMap<u32, (u64, u64)> = totals
                .iter()
                .map(|total| (total.shape, (total.count, total.busy_nanos)))
                .collect();
            assert_eq!(found, wanted, "{from}..{to}");
            assert!(
                totals
                    .windows(2)
                    .all(|pair| pair[0].busy_nanos >= pair[1].busy_nanos)
            );
        }
    }
}

#[test]
fn slices_of_a_stretch_are_those_that_overlap_it() {
    let grid = grid_of(&trace_of(&events(11, 3_000, Spread::Streams), 200));
    for row in 0..grid.rows() {
        let slices = plain(&grid, row..row + 1);
        for from in (0..grid.span()).step_by(9_973) {
            let to = from + 1_777;
            let wanted: Vec<u64> = slices
                .iter()
                .filter(|slice| slice.start < to && (slice.end > from || slice.start >= from))
                .map(|slice| slice.start)
                .collect();
            let found = grid.slices(row, from, to, usize::MAX);
            assert_eq!((&found.starts, found.has_more), (&wanted, false));
            let few = grid.slices(row, from, to, 2);
            assert_eq!(few.starts, wanted[..wanted.len().min(2)]);
            assert_eq!(few.has_more, wanted.len() > 2);
        }
    }
    let thread = grid
        .tracks()
        .iter()
        .find(|track| track.kind == TrackKind::Markers)
        .unwrap();
    assert_eq!(thread.address, format!("markers:{}.{}", PROCESS.0, THREAD.0));
}
