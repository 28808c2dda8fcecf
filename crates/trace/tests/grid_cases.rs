//! The grid of traces made by hand: lanes, extremes, counters, memory, and tracks that are added.

use std::sync::Arc;

use tracesmith_format::tables::*;
use tracesmith_format::{DeviceId, StackId, Timestamp};
use tracesmith_trace::grid::{
    Grid, GridOptions, GroupKey, NO_SHAPE, NamedSlice, RowCells, SpanCells, Track, TrackKey, TrackKind,
    TrackSpec, ValueCells,
};
use tracesmith_trace::overview::Direction;
use tracesmith_trace::{Error, Progress, Trace};

use crate::made::{CLOCK, DEVICE, Made, PROCESS, place};

fn grid_of(trace: &Arc<Trace>) -> Grid {
    Grid::new(trace, GridOptions::default()).unwrap()
}

fn track(grid: &Grid, kind: TrackKind) -> &Track {
    grid.tracks().iter().find(|track| track.kind == kind).unwrap()
}

/// Start, length and name of all slices of a row.
fn named(grid: &Grid, row: u32) -> Vec<(u64, u64, &str)> {
    let slices = grid.slices(row, 0, u64::MAX, usize::MAX);
    let times = slices.starts.into_iter().zip(slices.durations);
    times
        .zip(slices.shapes)
        .map(|((start, nanos), shape)| (start, nanos, grid.shapes()[shape as usize].name.as_str()))
        .collect()
}

fn spans(grid: &Grid, row: u32, level: u8, first: u64, cells: usize) -> SpanCells {
    match grid.cells(row, level, first, cells) {
        RowCells::Spans(spans) => spans,
        RowCells::Values(_) => panic!("row {row} has values"),
    }
}

fn values(grid: &Grid, row: u32, level: u8, first: u64, cells: usize) -> ValueCells {
    match grid.cells(row, level, first, cells) {
        RowCells::Values(values) => values,
        RowCells::Spans(_) => panic!("row {row} has slices"),
    }
}

#[test]
fn an_empty_trace_has_no_tracks() {
    let grid = grid_of(&Made::new().finish());
    assert_eq!((grid.tracks().len(), grid.rows(), grid.span()), (0, 0, 1));
    assert_eq!(spans(&grid, 0, 5, 0, 3).shapes, [NO_SHAPE; 3]);
    assert!(grid.slices(0, 0, 10, 10).starts.is_empty());
    assert!(grid.totals(&[0, 7], 0, 10).is_empty());
}

#[test]
fn one_event_is_seen_at_every_level() {
    let mut made = Made::new();
    made.kernel("saxpy", 3, 1_000, 1_700);
    let grid = grid_of(&made.finish());
    assert_eq!((grid.origin(), grid.span(), grid.rows()), (1_000, 700, 2));
    for row in 0..2 {
        for level in 0..64 {
            let cells = spans(&grid, row, level, 0, 1);
            let share = cells.shares[0][0];
            let exact = (700_u128.min(1 << level) * 255 + ((1 << level) >> 1)) >> level;
            assert_eq!(u128::from(share), exact.max(1), "level {level}");
            assert_eq!((cells.shapes[0], cells.counts[0]), (0, 1));
        }
    }
    assert_eq!(named(&grid, 1), [(0, 700, "saxpy")]);
    assert!(named(&grid, 0).is_empty(), "a device has no slices of its own");
}

#[test]
fn events_without_length_are_seen() {
    let mut made = Made::new();
    made.kernel("long", 0, 1_000, 2_000_000);
    for at in 0..3_000 {
        made.range("mark", (1_500 + at, 1_500 + at));
        made.copy(1, (5_000, 5_000), 1, CopyShape::default());
    }
    let grid = grid_of(&made.finish());
    let marks = track(&grid, TrackKind::Markers);
    assert_eq!(marks.rows, 1);
    let copies = grid
        .tracks()
        .iter()
        .find(|track| track.label == "stream 1")
        .unwrap();
    assert_eq!((copies.rows, copies.slices), (1, 3_000), "moments need no lanes");
    for level in [0, 6, 12, 20, 40] {
        let cells = spans(&grid, marks.first_row, level, 1_000 >> level, 1);
        assert_ne!(cells.shapes[0], NO_SHAPE);
        assert!((cells.shares[0][0], cells.counts[0]) >= (1, 1));
        // The device shows them beside the kernel that takes all of the cell.
        let device = track(&grid, TrackKind::Device).first_row;
        let cells = spans(&grid, device, level, 4_000 >> level, 1);
        assert_eq!(cells.shares[2][0], 1, "level {level}");
        let kernel = u64::from(cells.shares[0][0]);
        assert!(level > 12 || kernel == 254, "level {level}: {kernel}");
    }
}

#[test]
fn overlapping_work_gets_lanes_and_nothing_is_cut() {
    let mut made = Made::new();
    // Kernels of a stream that overlap, as programmatic launches make them.
    made.kernel("a", 0, 100, 200);
    made.kernel("b", 0, 150, 300);
    made.kernel("c", 0, 200, 250);
    made.kernel("d", 0, 300, 310);
    let grid = grid_of(&made.finish());
    let stream = track(&grid, TrackKind::Stream);
    assert_eq!((stream.rows, stream.slices), (2, 4));
    assert_eq!(
        named(&grid, stream.first_row),
        [(0, 100, "a"), (100, 50, "c"), (200, 10, "d")]
    );
    assert_eq!(named(&grid, stream.first_row + 1), [(50, 150, "b")]);
}

#[test]
fn ranges_within_ranges_get_a_row_for_each_level() {
    let mut made = Made::new();
    // Written when they end: the inner ones first.
    made.range("inner", (20, 30));
    made.range("middle", (10, 40));
    made.range("other", (50, 60));
    made.range("outer", (10, 100));
    let grid = grid_of(&made.finish());
    let ranges = track(&grid, TrackKind::Markers);
    let rows: Vec<_> = (0..ranges.rows)
        .map(|lane| named(&grid, ranges.first_row + lane))
        .collect();
    assert_eq!(rows[0], [(0, 90, "outer")]);
    assert_eq!(rows[1], [(0, 30, "middle"), (40, 10, "other")]);
    assert_eq!(rows[2], [(10, 10, "inner")]);
}

#[test]
fn a_thousand_overlapping_events_get_a_thousand_lanes() {
    let mut made = Made::new();
    for at in 0..1_000 {
        made.range("nested", (1 + at, 5_000 - at));
    }
    let grid = grid_of(&made.finish());
    let ranges = track(&grid, TrackKind::Markers);
    assert_eq!((ranges.rows, ranges.slices), (1_000, 1_000));
    assert_eq!(named(&grid, ranges.first_row + 999), [(999, 3_001, "nested")]);
}

#[test]
fn the_longest_and_latest_times_are_kept() {
    let mut made = Made::new();
    let end = u64::MAX;
    made.kernel("all of it", 0, 1, end);
    made.kernel("within", 1, 5, 6 + u64::from(u32::MAX));
    made.kernel("last", 1, end, end);
    made.kernel("late", 2, end - 1, end);
    let grid = grid_of(&made.finish());
    assert_eq!((grid.origin(), grid.span()), (1, end - 1));
    let rows: Vec<_> = grid
        .tracks()
        .iter()
        .map(|track| named(&grid, track.first_row))
        .collect();
    assert_eq!(rows[1], [(0, end - 1, "all of it")]);
    assert_eq!(
        rows[2],
        [(4, 1 + u64::from(u32::MAX), "within"), (end - 1, 0, "last")]
    );
    assert_eq!(rows[3], [(end - 2, 1, "late")]);
    for level in 0..64_u8 {
        let last = (end - 2) >> level;
        let cells = spans(&grid, 1, level, last.saturating_sub(1), 2);
        assert!(cells.shares[0][0] >= 254, "level {level}");
        let cells = spans(&grid, 3, level, last, 1);
        assert_eq!(
            (cells.shares[0][0] > 0, cells.counts[0]),
            (true, 1),
            "level {level}"
        );
    }
    assert_eq!(
        spans(&grid, 0, 63, 0, 2).shares[0],
        [255, 255],
        "the device is busy all the time"
    );
}

#[test]
fn an_hour_without_events_is_empty() {
    const HOUR: u64 = 3_600_000_000_000;
    let mut made = Made::new();
    for begin in [1_000, HOUR] {
        for at in 0..3_000 {
            made.kernel("k", 0, begin + at * 1_000, begin + at * 1_000 + 600);
        }
    }
    let grid = grid_of(&made.finish());
    for row in 0..2 {
        for level in [10, 20, 25, 30, 35] {
            let (first, last) = (2_999_600_u64 >> level, (HOUR - 1_000) >> level);
            let between = last.saturating_sub(first + 1).min(2_000) as usize;
            let cells = spans(&grid, row, level, first + 1, between);
            assert!(
                cells.shapes.iter().all(|shape| *shape == NO_SHAPE),
                "level {level}"
            );
            assert!(cells.counts.iter().all(|count| *count == 0));
            assert_ne!(spans(&grid, row, level, last, 1).shapes[0], NO_SHAPE);
        }
    }
}

#[test]
fn odd_times_are_counted_as_doubtful() {
    let mut made = Made::new();
    made.kernel("fine", 0, 100, 200);
    made.kernel("backwards", 0, 300, 250);
    made.kernel("endless", 0, 400, 0);
    made.kernel("timeless", 0, 0, 0);
    // A block in which nothing has a time.
    made.range("nowhere", (0, 0));
    let grid = grid_of(&made.finish());
    let doubtful = grid.doubtful();
    assert_eq!(
        (doubtful.without_time, doubtful.without_end, doubtful.backwards),
        (2, 1, 1)
    );
    let stream = track(&grid, TrackKind::Stream).first_row;
    assert_eq!(
        named(&grid, stream),
        [(0, 100, "fine"), (200, 0, "backwards"), (300, 0, "endless")]
    );
    assert_eq!(grid.tracks().len(), 2, "no track without slices");
}

#[test]
fn categories_follow_from_what_is_done() {
    let mut made = Made::new();
    made.kernel("gemm", 0, 100, 200);
    made.kernel("ncclDevKernel_AllReduce", 0, 200, 300);
    made.copy(0, (300, 400), 8, CopyShape::default());
    for (at, name) in [
        "cudaLaunchKernel",
        "cudaStreamSynchronize",
        "cudaMemcpyAsync",
        "cudaMalloc",
        "cudaGetDevice",
    ]
    .iter()
    .enumerate()
    {
        made.call(name, (100 + at as u64 * 10, 105 + at as u64 * 10));
    }
    made.sync(
        SyncKind::CONTEXT_WAIT,
        0,
        (410, 420),
        tracesmith_format::CorrelationId::NONE,
        (0, 0),
    );
    let grid = grid_of(&made.finish());
    let category = |kind: TrackKind, name: &str| {
        let track = track(&grid, kind);
        let shapes = grid.slices(track.first_row, 0, u64::MAX, 100).shapes;
        let shape = shapes.iter().map(|shape| &grid.shapes()[*shape as usize]);
        let mut shape = shape.filter(|shape| shape.name.starts_with(name));
        track.categories[usize::from(shape.next().unwrap().category)].clone()
    };
    assert_eq!(category(TrackKind::Stream, "gemm"), "compute");
    assert_eq!(category(TrackKind::Stream, "nccl"), "communication");
    assert_eq!(category(TrackKind::Stream, ""), "compute");
    assert_eq!(category(TrackKind::Calls, "cudaLaunchKernel"), "launch");
    assert_eq!(category(TrackKind::Calls, "cudaStreamSynchronize"), "wait");
    assert_eq!(category(TrackKind::Calls, "cudaMemcpyAsync"), "memory");
    assert_eq!(category(TrackKind::Calls, "cudaMalloc"), "memory");
    assert_eq!(category(TrackKind::Calls, "cudaGetDevice"), "call");
    assert_eq!(category(TrackKind::Waits, "context wait"), "wait");
}

#[test]
fn compute_hides_communication_and_copies_in_the_row_of_a_device() {
    let mut made = Made::new();
    made.kernel("gemm", 0, 64, 64 + 32);
    made.kernel("ncclAllReduce", 1, 64 + 16, 64 + 48);
    made.copy(2, (64, 64 + 64), 8, CopyShape::default());
    // A wait is no work.
    let none = tracesmith_format::CorrelationId::NONE;
    made.sync(SyncKind::EVENT_RECORD, 3, (64, 64 + 128), none, (0, 0));
    let grid = grid_of(&made.finish());
    let device = track(&grid, TrackKind::Device).first_row;
    let cells = spans(&grid, device, 6, 0, 2);
    let shares: Vec<u8> = cells.shares.iter().map(|plane| plane[0]).collect();
    assert_eq!(shares, [128, 63, 64, 0]);
    assert_eq!(cells.shapes[1], NO_SHAPE);
}

#[test]
fn names_are_shown_short_and_kept_long() {
    let mut made = Made::new();
    let long = format!("void ns::kernel<{}>(float*)", "int, ".repeat(1_000));
    made.kernel(&long, 0, 10, 20);
    made.range("step 41 (warm up)", (10, 20));
    let grid = grid_of(&made.finish());
    let short: Vec<&str> = grid
        .shapes()
        .iter()
        .map(|shape| shape.short_name.as_str())
        .collect();
    assert_eq!(short, ["ns::kernel", "step 41 (warm up)"]);
    assert_eq!(grid.shapes()[0].name, long);
}

#[test]
fn the_next_slice_is_found_in_both_directions() {
    let mut made = Made::new();
    for at in 0..10 {
        made.kernel(["a", "b"][at as usize % 2], 0, 100 + at * 10, 105 + at * 10);
    }
    let grid = grid_of(&made.finish());
    let row = track(&grid, TrackKind::Stream).first_row;
    let start = |time, direction, shape| {
        let found = grid.neighbor(row, time, direction, shape)?;
        assert_eq!((found.row, found.duration), (row, 5));
        Some(found.start)
    };
    assert_eq!(start(20, Direction::Forward, None), Some(30));
    assert_eq!(start(20, Direction::Back, None), Some(10));
    assert_eq!(start(20, Direction::Forward, Some(0)), Some(40));
    assert_eq!(start(20, Direction::Back, Some(1)), Some(10));
    assert_eq!(start(25, Direction::Back, Some(0)), Some(20));
    assert_eq!(start(0, Direction::Back, None), None);
    assert_eq!(start(90, Direction::Forward, None), None);
    assert_eq!(start(u64::MAX, Direction::Forward, None), None);
    assert_eq!(start(u64::MAX, Direction::Back, None), Some(90));
    assert!(
        grid.neighbor(0, 0, Direction::Forward, None).is_none(),
        "a device"
    );
}

fn counter(made: &mut Made, time: u64, value: f64) {
    let name = made.writer.string("power").unwrap();
    let row = Counter {
        time: Timestamp(time),
        value,
        track: CounterTrack {
            name,
            device: DEVICE,
            ..CounterTrack::default()
        },
    };
    made.writer.push(CLOCK, &row).unwrap();
}

#[test]
fn counters_have_the_extremes_and_the_last_value_of_every_cell() {
    for samples in [50_u64, 5_000] {
        let mut made = Made::new();
        let mut known: Vec<(u64, f64)> = Vec::new();
        made.kernel("k", 0, 1_000, 1_000 + samples * 100 + 5_000);
        for at in 0..samples {
            // Out of order, two at once, and holes.
            let time = 2_000 + (at ^ 3) * 100 + at * 7 % 60;
            let value = if at % 97 == 5 {
                f64::NAN
            } else {
                ((at * 37) % 101) as f64 - 20.0
            };
            counter(&mut made, time, value);
            known.push((time - 1_000, value));
            if at % 50 == 0 {
                counter(&mut made, time, 7.0);
                known.push((time - 1_000, 7.0));
            }
        }
        known.sort_by_key(|(time, _)| *time);
        let grid = grid_of(&made.finish());
        let track = track(&grid, TrackKind::Counter);
        let (min, max, _) = held(&known, 0, u64::MAX);
        assert_eq!(
            (track.label.as_str(), track.min, track.max),
            ("power", Some(f64::from(min)), Some(f64::from(max)))
        );
        for level in 0..40_u8 {
            let whole = (grid.span() >> level) + 1;
            let first = (whole / 3).min(whole - 1);
            let count = (whole - first).min(700) as usize + 2;
            let found = values(&grid, track.first_row, level, first, count);
            for at in 0..count {
                let (from, to) = ((first + at as u64) << level, (first + at as u64 + 1) << level);
                let wanted = held(&known, from, to.min(grid.span() + 1));
                let cell = (found.min[at], found.max[at], found.last[at]);
                let bits = |cell: (f32, f32, f32)| [cell.0, cell.1, cell.2].map(f32::to_bits);
                assert_eq!(
                    bits(cell),
                    bits(wanted),
                    "level {level}, {from}..{to}: {cell:?} {wanted:?}"
                );
            }
        }
    }
}

/// The values that a counter has in a stretch of time.
fn held(samples: &[(u64, f64)], from: u64, to: u64) -> (f32, f32, f32) {
    let (mut min, mut max, mut last) = (f32::NAN, f32::NAN, f32::NAN);
    for (at, (time, value)) in samples.iter().enumerate() {
        let until = samples.get(at + 1).map_or(u64::MAX, |next| next.0);
        if *time < to && until > from && until > *time && from < to {
            last = *value as f32;
            (min, max) = (min.min(last), max.max(last));
        }
    }
    (min, max, last)
}

#[test]
fn memory_is_a_track_of_bytes_over_time() {
    let mut made = Made::new();
    made.kernel("k", 0, 1_000, 9_000);
    let bytes = 1_u64 << 30;
    for (operation, time, address) in [
        (MemoryOperation::ALLOCATE, 1_024, 0x1000),
        (MemoryOperation::ALLOCATE, 2_048, 0x2000),
        (MemoryOperation::FREE, 3_072, 0x1000),
    ] {
        made.memory(operation, time, address, bytes, StackId::NONE);
    }
    let grid = grid_of(&made.finish());
    let memory = track(&grid, TrackKind::Memory);
    assert_eq!(
        (memory.label.as_str(), memory.unit.as_deref()),
        ("device memory", Some("bytes"))
    );
    assert_eq!((memory.group, memory.slices), (GroupKey::Device(DEVICE), 3));
    assert_eq!(memory.max, Some(2.0 * bytes as f64));
    let cells = values(&grid, memory.first_row, 10, 0, 5);
    let gigabytes = |plane: Vec<f32>| {
        plane
            .into_iter()
            .map(|value| value / bytes as f32)
            .collect::<Vec<_>>()
    };
    let last = gigabytes(cells.last);
    assert_eq!(last[..4], [1.0, 2.0, 1.0, 1.0]);
    assert_eq!(gigabytes(cells.max)[..3], [1.0, 2.0, 2.0]);
}

fn with_two_devices() -> Arc<Trace> {
    let mut made = Made::new();
    made.kernel("a", 0, 1_000, 1_500);
    made.kernel_row(
        "b",
        (1_200, 2_000),
        tracesmith_format::CorrelationId::NONE,
        Place {
            device: DeviceId(2),
            ..place(0)
        },
    );
    made.call("cudaLaunchKernel", (1_000, 1_100));
    made.range("step", (1_000, 1_900));
    made.finish()
}

#[test]
fn tracks_are_grouped_by_device_and_process() {
    let grid = grid_of(&with_two_devices());
    let tracks: Vec<(&str, String)> = grid
        .tracks()
        .iter()
        .map(|track| (track.address.as_str(), track.group.to_string()))
        .collect();
    let wanted = [
        ("device:1", "device:1"),
        ("stream:1.1.1.0", "device:1"),
        ("device:2", "device:2"),
        ("stream:2.1.1.0", "device:2"),
        ("markers:1.7", "process:1"),
        ("calls:1.7", "process:1"),
    ];
    assert_eq!(tracks, wanted.map(|(address, group)| (address, group.to_owned())));
    let groups: Vec<GroupKey> = grid.groups().iter().map(|group| group.key).collect();
    let wanted = [
        GroupKey::Device(DEVICE),
        GroupKey::Device(DeviceId(2)),
        GroupKey::Process(PROCESS),
    ];
    assert_eq!(groups, wanted);
    for row in 0..grid.rows() {
        assert_eq!(grid.track_of(row).unwrap().first_row, row);
    }
    assert!(grid.track_of(grid.rows()).is_none());
}

#[test]
fn an_added_track_is_under_its_device_and_leaves_all_else_as_it_is() {
    let grid = grid_of(&with_two_devices());
    let spec = |device| TrackSpec {
        key: TrackKey::Idle { device },
        label: "idle".to_owned(),
        categories: vec!["host busy".to_owned(), "other causes".to_owned()],
    };
    let gap = |start, end, name: &str, category| NamedSlice {
        start,
        end,
        name: name.to_owned(),
        category,
    };
    let gaps = vec![
        gap(1_500, 1_900, "host busy", 0),
        gap(900, 1_000, "launch", 1),
        gap(1_950, 9_000, "launch", 1),
    ];
    let more = grid.with_track(spec(DEVICE), gaps.clone());
    let place = more
        .tracks()
        .iter()
        .position(|track| track.kind == TrackKind::Idle)
        .unwrap();
    assert_eq!(place, 1, "after the device");
    let idle = &more.tracks()[place];
    assert_eq!((idle.first_row, idle.rows, idle.slices), (grid.rows(), 1, 3));
    assert_eq!(idle.categories, ["host busy", "other causes"]);
    assert_eq!(
        named(&more, idle.first_row),
        [(0, 0, "launch"), (500, 400, "host busy"), (950, 50, "launch")],
        "nothing lies outside the trace"
    );
    let cells = spans(&more, idle.first_row, 9, 1, 1);
    assert_eq!((cells.shares[0][0], cells.shares[1][0]), (193, 25));
    assert_eq!(more.shapes()[..grid.shapes().len()], *grid.shapes());
    assert_eq!(more.shapes()[grid.shapes().len()].kind, None);
    for track in grid.tracks() {
        assert!(more.tracks().contains(track));
        assert_eq!(named(&more, track.first_row), named(&grid, track.first_row));
    }
    assert_eq!(more.groups(), grid.groups());
    assert!(more.memory_bytes() > grid.memory_bytes());
    let twice = more
        .with_track(spec(DeviceId(2)), Vec::new())
        .with_track(spec(DEVICE), gaps);
    let idle = twice
        .tracks()
        .iter()
        .filter(|track| track.kind == TrackKind::Idle);
    assert_eq!(
        idle.map(|track| track.slices).collect::<Vec<_>>(),
        [3, 0],
        "replaced"
    );
}

#[test]
fn a_grid_of_a_trace_that_has_grown_keeps_numbers() {
    let first_events = |made: &mut Made| {
        made.kernel("a", 7, 1_000, 1_100);
        made.kernel("b", 7, 1_200, 1_300);
        made.range("range", (1_050, 1_060));
    };
    let mut made = Made::new();
    first_events(&mut made);
    let spec = TrackSpec {
        key: TrackKey::Idle { device: DEVICE },
        label: "idle".to_owned(),
        categories: vec!["host busy".to_owned()],
    };
    let gap = |start, end| NamedSlice {
        start,
        end,
        name: "host busy".to_owned(),
        category: 0,
    };
    let first = Arc::new(grid_of(&made.finish()).with_track(spec.clone(), vec![gap(1_100, 1_200)]));
    let like = |made: Made| {
        let options = GridOptions {
            like: Some(Arc::clone(&first)),
            ..GridOptions::default()
        };
        Grid::new(&made.finish(), options).unwrap()
    };
    let of_stream = |grid: &Grid, stream: &str| {
        let found = grid.tracks().iter().find(|track| track.label == stream);
        let found = found.unwrap();
        (found.first_row, found.rows)
    };

    let mut made = Made::new();
    first_events(&mut made);
    made.kernel("c", 1, 1_250, 1_400);
    made.kernel("d", 7, 1_290, 1_500);
    let grown = like(made);
    assert!(grown.continues(&first) && !first.continues(&grown));
    assert_eq!((grown.origin(), grown.span()), (1_000, 500));
    // A stream that is shown before another one comes after it in number; one with a lane more has new numbers.
    let old = of_stream(&first, "stream 7");
    assert_eq!(old.1, 1);
    assert_eq!(of_stream(&grown, "stream 1"), (first.rows(), 1));
    assert_eq!(of_stream(&grown, "stream 7"), (first.rows() + 1, 2));
    let kinds: Vec<&str> = grown.tracks().iter().map(|track| track.label.as_str()).collect();
    assert_eq!(kinds[1..4], ["idle", "stream 1", "stream 7"]);
    // The old number still shows the lane, and so do the names.
    assert_eq!(named(&grown, old.0), [(0, 100, "a"), (200, 100, "b")]);
    assert_eq!(grown.shapes()[..first.shapes().len()], *first.shapes());
    // Idle times stay until they are found again, under their number.
    let idle = track(&grown, TrackKind::Idle).first_row;
    assert_eq!(idle, track(&first, TrackKind::Idle).first_row);
    let again = grown.with_track(spec, vec![gap(1_100, 1_200), gap(1_450, 1_460)]);
    assert_eq!(track(&again, TrackKind::Idle).first_row, idle);
    assert_eq!(again.rows(), grown.rows());
    assert_eq!(again.shapes().len(), grown.shapes().len());
    assert_eq!(
        named(&again, idle),
        [(100, 100, "host busy"), (450, 10, "host busy")]
    );

    // Something that begins before the origin: all times are others.
    let mut made = Made::new();
    first_events(&mut made);
    made.kernel("e", 1, 900, 950);
    let moved = like(made);
    assert!(!moved.continues(&first));
    assert_eq!(moved.origin(), 900);
    assert_eq!(named(&moved, of_stream(&moved, "stream 1").0), [(0, 50, "e")]);
    assert!(!moved.tracks().iter().any(|track| track.kind == TrackKind::Idle));
}

#[test]
fn reading_reports_progress_and_can_be_ended() {
    let trace = with_two_devices();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let notes = Arc::clone(&seen);
    let options = GridOptions {
        progress: Some(Arc::new(move |progress| notes.lock().unwrap().push(progress))),
        ..GridOptions::default()
    };
    Grid::new(&trace, options).unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.last(), Some(&Progress::Done));
    assert_eq!(seen.len(), 4, "three blocks");
    let options = GridOptions::default();
    options.cancel.cancel();
    assert!(matches!(Grid::new(&trace, options), Err(Error::Cancelled)));
}
