//! Counters in cells, compared with a loop over all samples.

#![allow(clippy::unwrap_used, reason = "a test may stop on any error")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use tracesmith_format::tables::{Counter, CounterTrack, Kernel};
use tracesmith_format::*;
use tracesmith_trace::overview::{
    Browser, CounterKey, CounterOverview, Direction, Position, RowKey, TimeSpan,
};
use tracesmith_trace::{EventKind, NamePattern, Progress, ProgressFn, Query, Trace};

/// Time, counter and value of a sample.
type Sample = (u64, u32, f64);

/// Counters 0 to 2 are of devices, others of processes, and every third has a process and a device.
fn track(counter: u32, name: StringId) -> CounterTrack {
    CounterTrack {
        name,
        device: DeviceId(if counter < 3 { counter + 1 } else { 0 }),
        process: ProcessId(if counter >= 3 || counter % 3 == 2 {
            counter + 1
        } else {
            0
        }),
        ..CounterTrack::default()
    }
}

fn trace_of(samples: &[Sample], rows_per_block: u32, kernel: Option<(u64, u64)>) -> Arc<Trace> {
    let options = WriterOptions {
        rows_per_block,
        ..WriterOptions::default()
    };
    let mut writer = Writer::new(Vec::new(), options).unwrap();
    for (time, counter, value) in samples {
        let name = writer.string(&format!("counter {counter}")).unwrap();
        let sample = Counter {
            time: Timestamp(*time),
            value: *value,
            track: track(*counter, name),
        };
        writer.push(ClockId(1), &sample).unwrap();
    }
    if let Some((start, end)) = kernel {
        let kernel = Kernel {
            start: Timestamp(start),
            end: Timestamp(end),
            ..Kernel::default()
        };
        writer.push(ClockId(1), &kernel).unwrap();
    }
    Arc::new(Trace::from_bytes(writer.finish().unwrap()).unwrap())
}

fn window(from: u64, to: u64) -> TimeSpan {
    TimeSpan::new(Timestamp(from), Timestamp(to))
}

fn number(trace: &Trace, key: CounterKey) -> u32 {
    let name = trace.string(key.name).strip_prefix("counter ").unwrap();
    name.parse().unwrap()
}

/// The value of a counter at a time: that of the last sample until then.
fn value_at(samples: &[Sample], counter: u32, time: u64) -> Option<f64> {
    let until = samples
        .iter()
        .filter(|sample| sample.0 != 0 && sample.1 == counter && sample.0 <= time);
    // Of equal times, `max_by_key` returns the last one.
    let last = until.max_by_key(|sample| sample.0)?;
    Some(last.2).filter(|value| value.is_finite())
}

/// Mean, least and greatest value of a stretch of time, nanosecond by nanosecond.
fn naive(samples: &[Sample], counter: u32, from: u64, to: u64) -> Option<(f64, f64, f64)> {
    let values: Vec<f64> = (from..to)
        .filter_map(|time| value_at(samples, counter, time))
        .collect();
    let (first, count) = (*values.first()?, values.len() as f64);
    let mean = values.iter().sum::<f64>() / count;
    let (min, max) = values.iter().fold((first, first), |(min, max), value| {
        (min.min(*value), max.max(*value))
    });
    Some((mean, min, max))
}

fn check(overview: &CounterOverview, trace: &Trace, samples: &[Sample]) {
    for row in &overview.rows {
        for cell in 0..overview.cells() {
            let (from, to) = overview.cell(cell);
            let found = row.cell(cell).map(|values| (values.mean, values.min, values.max));
            let expected = naive(samples, number(trace, row.key), from.0, to.0);
            match (found, expected) {
                (Some(found), Some(expected)) => {
                    assert_eq!((found.1, found.2), (expected.1, expected.2), "cell {cell}");
                    assert!((found.0 - expected.0).abs() < 1e-9, "{found:?} {expected:?}");
                }
                (found, expected) => assert_eq!(found, expected, "{:?} cell {cell}", row.key),
            }
        }
    }
}

/// The cells of the only counter: mean, least and greatest value.
fn cells(samples: &[Sample], window: TimeSpan, cells: usize) -> Vec<Option<(f64, f64, f64)>> {
    let trace = trace_of(samples, 1, None);
    let overview = CounterOverview::new(&trace, &Query::default(), window, cells);
    check(&overview, &trace, samples);
    let [row] = &overview.rows[..] else {
        panic!("one counter: {overview:?}")
    };
    (0..cells)
        .map(|cell| row.cell(cell).map(|values| (values.mean, values.min, values.max)))
        .collect()
}

#[test]
fn a_value_holds_until_the_next_sample() {
    let samples = [(100, 0, 4.0), (150, 0, 8.0), (350, 0, 2.0)];
    assert_eq!(
        cells(&samples, window(0, 400), 4),
        [
            None,
            Some((6.0, 4.0, 8.0)),
            Some((8.0, 8.0, 8.0)),
            Some((5.0, 2.0, 8.0))
        ]
    );
}

#[test]
fn a_sample_that_is_no_number_is_a_hole() {
    let samples = [
        (10, 0, 1.0),
        (20, 0, f64::NAN),
        (40, 0, f64::INFINITY),
        (50, 0, 3.0),
    ];
    assert_eq!(
        cells(&samples, window(10, 60), 5),
        [Some((1.0, 1.0, 1.0)), None, None, None, Some((3.0, 3.0, 3.0))]
    );
}

#[test]
fn one_sample_lasts_to_the_end() {
    assert_eq!(
        cells(&[(25, 0, 7.0)], window(10, 40), 3),
        [None, Some((7.0, 7.0, 7.0)), Some((7.0, 7.0, 7.0))]
    );
}

#[test]
fn negative_values_have_extremes_too() {
    let samples = [(10, 0, -4.0), (15, 0, -2.0)];
    assert_eq!(cells(&samples, window(10, 20), 1), [Some((-3.0, -4.0, -2.0))]);
}

#[test]
fn a_window_between_two_samples_has_the_value_of_the_first() {
    let samples = [(10, 0, 5.0), (1_000, 0, 9.0)];
    let expected = [Some((5.0, 5.0, 5.0)); 2];
    assert_eq!(cells(&samples, window(500, 600), 2), expected);
    let trace = trace_of(&samples, 1, Some((1, 2_000)));
    let browser = Browser::new(&trace, &Query::default(), None).unwrap();
    let picture = browser.picture(window(500, 510), 10);
    assert_eq!(picture.counters.rows[0].window().unwrap().max, 5.0);
}

#[test]
fn counters_of_processes_and_devices_are_kept_apart() {
    let samples: Vec<Sample> = (0..60)
        .map(|at| (1 + u64::from(at), at % 6, f64::from(at)))
        .collect();
    let trace = trace_of(&samples, 7, Some((1, 100)));
    let numbers = |query: &Query| -> Vec<u32> {
        let overview = CounterOverview::new(&trace, query, window(1, 80), 10);
        check(&overview, &trace, &samples);
        overview.rows.iter().map(|row| number(&trace, row.key)).collect()
    };
    assert_eq!(numbers(&Query::default()), [0, 1, 2, 3, 4, 5]);
    let devices = Query {
        devices: Some(vec![DeviceId(2), DeviceId(3)]),
        ..Query::default()
    };
    assert_eq!(numbers(&devices), [1, 2]);
    let processes = Query {
        processes: Some(vec![ProcessId(3), ProcessId(5)]),
        ..Query::default()
    };
    assert_eq!(numbers(&processes), [2, 4]);
    let named = Query {
        name: Some(NamePattern::new("counter 4").unwrap()),
        ..Query::default()
    };
    assert_eq!(numbers(&named), [4]);
    let kernels = Query {
        kinds: Some(vec![EventKind::Kernel]),
        ..Query::default()
    };
    assert_eq!(numbers(&kernels), [] as [u32; 0]);
    assert!(
        Browser::new(&trace, &kernels, None)
            .unwrap()
            .counters()
            .rows
            .is_empty()
    );
    let rows = Browser::new(&trace, &Query::default(), None).unwrap().rows();
    let groups: Vec<&str> = rows.iter().map(|row| row.group.as_str()).collect();
    assert!(
        groups.contains(&"gpu #2") && groups.contains(&"process #5"),
        "{groups:?}"
    );
}

#[test]
fn times_of_the_query_bound_the_values_but_not_the_search_for_them() {
    let samples = [(10, 0, 5.0), (100, 0, 9.0)];
    let trace = trace_of(&samples, 1, None);
    let query = Query {
        from: Some(Timestamp(50)),
        to: Some(Timestamp(80)),
        ..Query::default()
    };
    let overview = CounterOverview::new(&trace, &query, window(0, 120), 12);
    let filled: Vec<usize> = (0..12)
        .filter(|cell| overview.rows[0].cell(*cell).is_some())
        .collect();
    assert_eq!(filled, [5, 6, 7]);
    assert_eq!(overview.rows[0].window().unwrap().nanos, 30);
}

#[test]
fn a_trace_of_counters_alone_can_be_looked_at() {
    let samples = [(10, 0, 5.0), (100, 4, 9.0), (200, 0, 1.0)];
    let trace = trace_of(&samples, 2, None);
    let browser = Browser::new(&trace, &Query::default(), None).unwrap();
    assert_eq!(browser.summary().window(), window(10, 200));
    assert_eq!(browser.rows().len(), 2);
    check(&browser.picture(window(10, 200), 19).counters, &trace, &samples);
}

/// Only the blocks of the window are read for a picture.
#[test]
fn progress_is_reported_for_each_block_that_is_read() {
    let samples: Vec<Sample> = (0..1_000).map(|at| (1 + at, 0, at as f64)).collect();
    let trace = trace_of(&samples, 10, None);
    let (bytes, last) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(None)));
    let progress: ProgressFn = {
        let (bytes, last) = (Arc::clone(&bytes), Arc::clone(&last));
        Arc::new(move |progress| {
            if let Progress::Read(more) = progress {
                bytes.fetch_add(more, Ordering::Relaxed);
            }
            *last.lock().unwrap() = Some(progress);
        })
    };
    let query = Query::default();
    let read_until = |end: u64| {
        bytes.store(0, Ordering::Relaxed);
        CounterOverview::new(&trace, query.with_progress(&progress), window(1, end), 10);
        assert_eq!(*last.lock().unwrap(), Some(Progress::Done));
        bytes.load(Ordering::Relaxed)
    };
    let (half, all) = (read_until(500), read_until(1_000));
    assert!(half > 0 && half < all * 6 / 10, "{half} of {all}");
}

#[test]
fn counters_beyond_the_first_thousand_are_counted() {
    let samples: Vec<Sample> = (0..1_200).map(|at| (1 + u64::from(at), at, 1.0)).collect();
    let trace = trace_of(&samples, 64, None);
    let overview = CounterOverview::new(&trace, &Query::default(), window(1, 1_300), 1 << 14);
    assert_eq!((overview.rows.len(), overview.left_out), (1_000, 200));
    assert!(overview.cells() * overview.rows.len() <= 1 << 20 && overview.cells() > 500);
    let browser = Browser::new(&trace, &Query::default(), None).unwrap();
    assert_eq!(browser.picture(window(5, 20), 3).counters.left_out, 200);
}

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let value = prop_oneof![
        8 => (-1_000..1_000i32).prop_map(f64::from),
        1 => Just(f64::NAN),
    ];
    // In any order, some without a time, and some at the same time.
    prop::collection::vec((0..400u64, 0..5u32, value), 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_cell_holds_what_a_loop_finds(
        samples in samples(), rows_per_block in 1..20u32, cells in 1..30usize, from in 1..400u64, length in 1..400u64,
        start in 1..300u64, span in 1..200u64,
    ) {
        let trace = trace_of(&samples, rows_per_block, Some((start, start + span)));
        let query = Query::default();
        check(&CounterOverview::new(&trace, &query, window(from, from + length), cells), &trace, &samples);
        // The browser knows what comes before a window from its first reading.
        let browser = Browser::new(&trace, &query, None).unwrap();
        let whole = browser.summary().window();
        let from = from.clamp(whole.from.0, whole.to.0 - 1);
        let part = window(from, (from + length).min(whole.to.0));
        check(&browser.picture(part, part.nanos() as usize).counters, &trace, &samples);
        for row in &browser.counters().rows {
            let at = browser.counter_at(row.key, Timestamp(from));
            prop_assert_eq!(at, value_at(&samples, number(&trace, row.key), from));
        }
    }

    #[test]
    fn samples_are_walked_in_the_order_of_their_times(samples in samples(), rows_per_block in 1..20u32) {
        let trace = trace_of(&samples, rows_per_block, Some((50, 350)));
        let browser = Browser::new(&trace, &Query::default(), None).unwrap();
        let mut expected: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for (time, counter, _) in samples.iter().filter(|sample| (50..=350).contains(&sample.0)) {
            expected.entry(*counter).or_default().push(*time);
        }
        for row in &browser.counters().rows {
            let mut times = expected.remove(&number(&trace, row.key)).unwrap_or_default();
            times.sort_unstable();
            let walk = |mut from: Position, direction| {
                let mut found = Vec::new();
                while let Some(picked) = browser.seek(Some(RowKey::Counter(row.key)), from, direction) {
                    from = picked.position;
                    assert_eq!(picked.event.kind, EventKind::Counter);
                    found.push(from.start.0);
                }
                found
            };
            prop_assert_eq!(&walk(Position::before(Timestamp(50)), Direction::Forward), &times);
            let mut back = walk(Position::behind(Timestamp(350)), Direction::Back);
            back.reverse();
            prop_assert_eq!(back, times);
        }
        prop_assert!(expected.is_empty());
    }
}
