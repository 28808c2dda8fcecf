//! Streams, one call after another, the program's pauses, and times of calls.

use std::time::Duration;

use tracesmith_replay::{Order, Pace, Part, Replacement, Replay};

use crate::support::window::{
    BASE, Call, KERNELS, Long, MODULE, Number, VARIABLE, Window, copy, delay, fill, launch, record_event,
    set, synchronize, wait_event,
};
use crate::support::{assert_same, difference, replayed, under_fake, verdict, words};

const A: u64 = 0x100;
const B: u64 = 0x200;
const X: u64 = BASE;
const Y: u64 = BASE + 0x1000;

/// One stream writes late, another one copies what is written. What comes between the two decides what is copied.
fn late(between: impl FnOnce(&mut Window), copied: u32) -> Window {
    let mut window = Window::new();
    window.changed(X, &words(&[1; 16]), &words(&[5; 16]));
    window.changed(Y, &words(&[0; 16]), &words(&[copied; 16]));
    window.call(delay(150).on(A));
    window.call(fill(X, 5, 16).on(A));
    between(&mut window);
    window.call(copy(Y, X, 64).on(B));
    window
}

/// Without a wait between the streams, the copy is first: recorded so.
fn unordered() -> Window {
    late(|_| {}, 1)
}

#[test]
fn streams_run_beside_each_other() {
    under_fake(&[], || {
        assert_same(&verdict(&unordered()), 2, 128);
    });
}

#[test]
fn in_serial_order_each_call_follows_the_one_before() {
    under_fake(&[], || {
        replayed(&unordered(), |replay| {
            replay.set_order(Order::Serial);
            let verdict = replay.run().unwrap().verdict;
            assert_eq!(
                (difference(&verdict).address, difference(&verdict).found[0]),
                (Y, 5)
            );
            replay.set_order(Order::Streams);
            assert_same(&replay.run().unwrap().verdict, 2, 128);
        });
    });
}

#[test]
fn events_between_streams_are_waited_for() {
    under_fake(&[], || {
        let window = late(
            |window| {
                window.call(record_event(0x10).on(A));
                window.call(wait_event(0x10).on(B));
            },
            5,
        );
        replayed(&window, |replay| {
            assert_same(&replay.run().unwrap().verdict, 2, 128);
            replay.set_order(Order::Serial);
            assert_same(&replay.run().unwrap().verdict, 2, 128);
        });
    });
}

/// An event that was recorded before the window is long over: nothing waits for it.
#[test]
fn an_event_that_is_not_recorded_in_the_window_holds_nobody_back() {
    under_fake(&[], || {
        let window = late(
            |window| {
                window.call(wait_event(0x99).on(B));
                window.call(synchronize(2, 0x99));
            },
            1,
        );
        assert_same(&verdict(&window), 2, 128);
    });
}

#[test]
fn the_host_waits_for_all_a_stream_or_an_event() {
    under_fake(&[], || {
        let waits: [fn(&mut Window); 3] = [
            |window| {
                window.call(synchronize(0, 0));
            },
            |window| {
                window.call(synchronize(1, 0).on(A));
            },
            |window| {
                window.call(record_event(0x10).on(A));
                window.call(synchronize(2, 0x10));
            },
        ];
        for wait in waits {
            assert_same(&verdict(&late(wait, 5)), 2, 128);
        }
        // Waiting for the other stream does not help.
        let wait = |window: &mut Window| {
            window.call(synchronize(1, 0).on(B));
        };
        let other = late(wait, 1);
        assert_same(&verdict(&other), 2, 128);
    });
}

/// A way of running calls.
type Way = fn(&mut Replay<'_>);

/// Everything that makes calls one after another puts the order back.
#[test]
fn calls_go_in_streams_again_after_each_way_of_running_them_serially() {
    under_fake(&[], || {
        let ways: [(&str, Way); 7] = [
            ("check", |replay| drop(replay.check(2).unwrap())),
            ("time", |replay| drop(replay.time(0..3, 1).unwrap())),
            ("time_each", |replay| drop(replay.time_each().unwrap())),
            ("time_replaced", |replay| {
                let replacement = Replacement {
                    kernel: "fill".to_owned(),
                    nth: None,
                    code: KERNELS.as_bytes().to_vec(),
                    symbol: None,
                };
                replay.replace(&replacement).unwrap();
                drop(replay.time_replaced(1).unwrap());
            }),
            ("extract", |replay| {
                let folder = tempfile::tempdir().unwrap();
                replay.extract(1, folder.path()).unwrap();
            }),
            ("run_one_by_one", |replay| replay.run_one_by_one().unwrap()),
            ("run_part", |replay| {
                let mut part = Part::whole(3);
                part.places = 0..2;
                drop(replay.run_part(&part, 1).unwrap());
            }),
        ];
        for (name, way) in ways {
            replayed(&unordered(), |replay| {
                way(replay);
                let verdict = replay.run().unwrap().verdict;
                assert!(verdict.is_good(), "{name}: {verdict:?}");
                // And the other way round.
                replay.set_order(Order::Serial);
                way(replay);
                let verdict = replay.run().unwrap().verdict;
                assert!(!verdict.is_good(), "{name}: {verdict:?}");
            });
        }
    });
}

#[test]
fn an_error_puts_the_order_back_too() {
    under_fake(&[], || {
        let mut window = unordered();
        // Its bytes are missing, so every run fails here.
        window.call(copy(X, 0x5000, 4));
        replayed(&window, |replay| {
            assert!(
                replay.check(2).is_err() && replay.time(0..4, 1).is_err() && replay.run_one_by_one().is_err()
            );
            assert!(replay.run().is_err());
            // The copy to Y was made before that, beside the other stream.
            assert_eq!(replay.read(Y, 4).unwrap(), words(&[1]));
        });
    });
}

#[test]
fn pauses_are_kept_when_calls_are_made_as_recorded() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.changed(X, &words(&[0]), &words(&[2]));
        window.call(fill(X, 1, 1).at(0));
        window.call(fill(X, 2, 1).at(200_000_000));
        window.call(synchronize(0, 0).at(400_000_000));
        let pause = Duration::from_millis(400);
        replayed(&window, |replay| {
            replay.set_pace(Pace::AsRecorded);
            // The clock starts with the first call of each run.
            for _ in 0..2 {
                let run = replay.run().unwrap();
                assert!(run.host_time >= pause, "{:?}", run.host_time);
                assert_same(&run.verdict, 1, 4);
            }
            replay.set_pace(Pace::Fast);
            let run = replay.run().unwrap();
            assert!(run.host_time < pause, "{:?}", run.host_time);
            assert_same(&run.verdict, 1, 4);
        });
    });
}

#[test]
fn each_call_that_works_is_timed_with_the_memory_that_it_had() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.variable(MODULE, "counter", VARIABLE, &words(&[3]), &words(&[7]));
        window.changed(X, &words(&[0; 4]), &words(&[3, 9, 9, 9]));
        window.kept(Y, &words(&[9; 4]));
        window.call(launch("bump", &[Long(X), Number(4)]));
        window.call(record_event(1));
        window.call(copy(X + 4, Y, 8));
        window.call(set(X + 12, 9, 4, 4));
        window.call(delay(5));
        window.kernels.push((1, "bump".to_owned(), 1_500));
        replayed(&window, |replay| {
            let timings = replay.time(0..5, 3).unwrap();
            let names: Vec<_> = timings
                .iter()
                .map(|timing| (timing.command, timing.name.as_str()))
                .collect();
            assert_eq!(names, [(1, "bump"), (3, "copy"), (4, "set"), (5, "delay")]);
            assert!(timings.iter().all(|timing| timing.runs.len() == 3));
            assert_eq!(timings[0].recorded, Some(Duration::from_nanos(1_500)));
            assert_eq!((timings[1].recorded, timings[1].bytes), (None, 8));
            let (shortest, longest) = timings[3].spread();
            assert!(shortest >= Duration::from_millis(5), "{shortest:?}");
            assert!((shortest..=longest).contains(&timings[3].median()));
            // The counter was raised three times, each time from where it was before.
            assert_eq!(replay.read(VARIABLE, 4).unwrap(), words(&[7]));
            assert_eq!(replay.read(X, 16).unwrap(), words(&[3, 9, 9, 9]));

            let some = replay.time(3..4, 2).unwrap();
            assert_eq!((some.len(), some[0].command, some[0].runs.len()), (1, 4, 2));
            assert!(replay.time(5..9, 2).unwrap().is_empty());

            let each = replay.time_each().unwrap();
            assert_eq!(
                each.iter().map(|timing| timing.runs.len()).collect::<Vec<_>>(),
                [1; 4]
            );
            assert!(each[3].runs[0] >= Duration::from_millis(5));
            assert_same(&replay.run().unwrap().verdict, 3, 4 + 16 + 16);
        });
    });
}

/// Time on the device counts from the first call to the last one of all streams.
#[test]
fn a_run_lasts_as_long_as_its_slowest_stream() {
    under_fake(&[], || {
        replayed(&unordered(), |replay| {
            let run = replay.run().unwrap();
            // The mark at the beginning is in a stream of its own, and may be late on a busy machine.
            assert!(run.device_time >= Duration::from_millis(75), "{run:?}");
            assert!(run.host_time >= Duration::from_millis(150), "{run:?}");
        });
    });
}

#[test]
fn the_default_stream_is_a_stream_too() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.changed(X, &words(&[0]), &words(&[2]));
        window.call(fill(X, 1, 1).on(0));
        window.call(fill(X, 2, 1).on(1));
        window.call(Call::of(tracesmith_format::tables::CommandKind::STREAM).on(A));
        assert_same(&verdict(&window), 1, 4);
    });
}
