//! Parts of a window, snapshots, steps, and memory at a place.

use tracesmith_format::tables::{MemoryKind, Moment};
use tracesmith_replay::{Against, Error, Part, Verdict};

use crate::support::window::{
    BASE, Float, KERNELS, Long, Number, Window, allocate, copy, fill, free, launch, set,
};
use crate::support::{assert_same, difference, floats, replayed, under_fake, words};

const A: u64 = 0x100;
const B: u64 = 0x200;
const X: u64 = BASE;
const Y: u64 = BASE + 0x1000;

fn saxpy(factor: f32) -> crate::support::window::Call {
    launch("saxpy", &[Long(Y), Long(X), Float(factor), Number(4)])
}

/// x = 1; y += 2x; y += 3x; x = 0.
fn steps() -> Window {
    let mut window = Window::new();
    window.changed(X, &floats(&[9.0; 4]), &floats(&[0.0; 4]));
    window.changed(Y, &floats(&[0.0; 4]), &floats(&[5.0; 4]));
    window.call(fill(X, 1.0_f32.to_bits(), 4));
    window.call(saxpy(2.0));
    window.call(saxpy(3.0));
    window.call(fill(X, 0, 4));
    window
}

fn part(places: std::ops::Range<usize>) -> Part {
    Part {
        places,
        stream: None,
        order: None,
    }
}

#[test]
fn a_part_is_compared_with_a_run_of_all_calls_up_to_its_end() {
    under_fake(&[], || {
        replayed(&steps(), |replay| {
            let runs = replay.run_part(&part(1..3), 3).unwrap();
            assert_eq!(runs.len(), 3);
            for run in &runs {
                assert_eq!((run.against, run.commands), (Against::Replay, 2));
                assert_same(&run.verdict, 2, 32);
            }
            assert_eq!(replay.read(Y, 16).unwrap(), floats(&[5.0; 4]));
        });
    });
}

#[test]
fn a_part_that_reaches_the_end_is_compared_with_what_was_recorded() {
    under_fake(&[], || {
        let mut window = steps();
        replayed(&window, |replay| {
            let runs = replay.run_part(&part(2..4), 1).unwrap();
            assert_eq!((runs[0].against, runs[0].commands), (Against::Recorded, 2));
            assert_same(&runs[0].verdict, 2, 32);
            // All of it is a plain run.
            let whole = replay.run_part(&Part::whole(4), 2).unwrap();
            assert_eq!((whole.len(), whole[1].commands), (2, 4));
            assert_same(&whole[1].verdict, 2, 32);
        });
        // What was recorded is not what the calls leave: only a part that reaches the end shows it.
        window.calls[2].row.parameters.0[16..20].copy_from_slice(&4.0_f32.to_le_bytes());
        replayed(&window, |replay| {
            assert!(replay.run_part(&part(1..3), 1).unwrap()[0].verdict.is_good());
            let verdict = &replay.run_part(&part(1..4), 1).unwrap()[0].verdict;
            assert_eq!(difference(verdict).address, Y);
        });
    });
}

#[test]
fn one_launch_of_a_kernel_is_found_by_name_and_run() {
    under_fake(&[], || {
        replayed(&steps(), |replay| {
            let place = replay.recording().launch("saxpy", 2).unwrap();
            assert_eq!(place, 2);
            let runs = replay.run_part(&part(place..place + 1), 2).unwrap();
            assert_same(&runs[1].verdict, 2, 32);
            assert_eq!(replay.read(Y, 4).unwrap(), floats(&[5.0]));
        });
    });
}

#[test]
fn a_part_without_calls_is_refused() {
    under_fake(&[], || {
        replayed(&steps(), |replay| {
            for empty in [part(7..9), Part::in_order(Vec::new())] {
                let error = replay.run_part(&empty, 1).unwrap_err();
                assert!(error.to_string().contains("contains no call"), "{error}");
            }
            assert!(replay.run_part(&part(1..2), 0).unwrap().is_empty());
        });
    });
}

#[test]
fn calls_in_another_order_differ_where_the_order_counts() {
    under_fake(&[], || {
        replayed(&steps(), |replay| {
            let verdict = |order: &[usize]| Part::in_order(order.to_vec());
            let same = replay.run_part(&verdict(&[1, 2]), 1).unwrap();
            assert_eq!((same[0].against, same[0].commands), (Against::Replay, 2));
            assert_same(&same[0].verdict, 2, 32);
            // Before x is set, it holds something else.
            let swapped = replay.run_part(&verdict(&[1, 0]), 1).unwrap();
            assert_eq!(difference(&swapped[0].verdict).address, Y);
            // One call twice.
            let twice = replay.run_part(&verdict(&[1, 1]), 1).unwrap();
            assert_eq!(difference(&twice[0].verdict).address, Y);
            assert_eq!(replay.read(Y, 4).unwrap(), floats(&[4.0]));
            // Places that are not there are left out.
            assert_eq!(replay.run_part(&verdict(&[2, 30]), 1).unwrap()[0].commands, 1);
        });
    });
}

/// The sums commute: they leave the same at the end, and not in between.
#[test]
fn calls_in_another_order_are_compared_after_each() {
    under_fake(&[], || {
        replayed(&steps(), |replay| {
            let verdict = replay.run_part(&Part::in_order(vec![2, 1]), 1).unwrap()[0]
                .verdict
                .clone();
            let difference = difference(&verdict);
            assert_eq!((difference.address, difference.call), (Y, Some(3)));
            assert_eq!(difference.offset, 2);
            assert_eq!(difference.found[..2], 3.0_f32.to_le_bytes()[2..]);
            assert_eq!(difference.expected[..2], 5.0_f32.to_le_bytes()[2..]);
            assert!(difference.to_string().starts_with("after #3: 0x24000001000: "));
        });
    });
}

#[test]
fn a_stream_alone_lacks_what_another_one_does() {
    under_fake(&[], || {
        let mut window = steps();
        window.calls[0].row.stream = A;
        for call in &mut window.calls[1..] {
            call.row.stream = B;
        }
        replayed(&window, |replay| {
            let mut alone = Part::whole(4);
            alone.stream = Some(B);
            let run = replay.run_part(&alone, 1).unwrap().remove(0);
            assert_eq!((run.against, run.commands), (Against::Replay, 3));
            assert_eq!(difference(&run.verdict).address, Y);
            // With the memory that it had before, it needs nobody.
            alone.places = 1..4;
            assert!(replay.run_part(&alone, 1).unwrap()[0].verdict.is_good());
        });
    });
}

/// The end does not show it: the memory is freed, and allocated again. And the difference is in a last byte that is no
/// whole word.
#[test]
fn a_difference_in_the_last_byte_of_freed_memory_is_seen() {
    under_fake(&[], || {
        for (address, bytes, last) in [(X, 7, 6), (X + 1, 5, 4), (X + 3, 1, 0)] {
            let mut window = Window::new();
            window.kept(Y, &[4; 8]);
            window.call(allocate(address, bytes).on(A));
            window.call(set(address, 1, 1, bytes).on(A));
            window.call(set(address + last, 9, 1, 1).on(B));
            window.call(free(address).on(A));
            window.call(allocate(address, bytes).on(A));
            replayed(&window, |replay| {
                let all = replay.run_part(&part(0..5), 1).unwrap();
                assert_same(&all[0].verdict, 1, 8);
                let mut alone = Part::whole(5);
                alone.stream = Some(A);
                let verdict = replay.run_part(&alone, 1).unwrap().remove(0).verdict;
                let difference = difference(&verdict);
                assert_eq!((difference.address, difference.call), (address, Some(4)));
                assert_eq!((difference.offset, difference.count), (last, 1));
                assert_eq!((difference.expected[0], difference.found[0]), (9, 1));
            });
        }
    });
}

/// Memory of the host that could not be mapped is compared as well: only a copy to it shows what a stream left out.
#[test]
fn a_stream_that_lacks_a_copy_to_host_memory_differs() {
    under_fake(&[], || {
        let mut window = Window::new();
        // It begins on a page of the device's, so it is not mapped. The copy goes to the other page.
        let (host, other) = (BASE + (2 << 20) - 32, BASE + (2 << 20));
        window.changed(X, &words(&[0]), &words(&[5]));
        window.add(Moment::BEGIN, MemoryKind::PINNED, host, &[0; 64]);
        let after = [vec![0; 32], words(&[5]), vec![0; 28]].concat();
        window.add(Moment::END, MemoryKind::PINNED, host, &after);
        window.call(fill(X, 5, 1).on(A));
        window.call(copy(other, X, 4).on(A));
        window.call(launch("noop", &[]).on(B));
        replayed(&window, |replay| {
            assert_same(&replay.run().unwrap().verdict, 2, 68);
            let mut alone = Part::whole(3);
            alone.stream = Some(A);
            assert!(replay.run_part(&alone, 1).unwrap()[0].verdict.is_good());
            // Only the copy is missing.
            let without = Part::in_order(vec![0, 2]);
            let verdict = replay.run_part(&without, 1).unwrap().remove(0).verdict;
            let difference = difference(&verdict);
            assert_eq!((difference.address, difference.offset), (host, 32));
            assert_eq!((difference.expected[0], difference.found[0]), (5, 0));
        });
    });
}

#[test]
fn memory_is_read_as_it_is_before_a_call() {
    under_fake(&[], || {
        replayed(&steps(), |replay| {
            for (place, x, y) in [
                (0, 9.0, 0.0),
                (1, 1.0, 0.0),
                (2, 1.0, 2.0),
                (3, 1.0, 5.0),
                (4, 0.0, 5.0),
            ] {
                replay.go_to(place).unwrap();
                assert_eq!(replay.read(X, 16).unwrap(), floats(&[x; 4]), "{place}");
                assert_eq!(replay.read(Y + 4, 8).unwrap(), floats(&[y; 2]), "{place}");
                replay.run_until(place).unwrap();
                assert_eq!(replay.read(Y, 4).unwrap(), floats(&[y]), "{place}");
            }
            // Beyond the end is the end.
            replay.go_to(100).unwrap();
            assert_eq!(replay.read(X, 4).unwrap(), floats(&[0.0]));
        });
    });
}

#[test]
fn memory_that_is_not_the_recordings_is_not_read() {
    under_fake(&[], || {
        replayed(&steps(), |replay| {
            for (address, bytes) in [(BASE + (64 << 20), 4), (0, 4), (X, 1 << 40), (X, u64::MAX)] {
                let error = replay.read(address, bytes).err().unwrap();
                assert!(matches!(error, Error::Device { .. }), "{error:?}");
                assert!(
                    error
                        .to_string()
                        .starts_with("reading memory: there is no memory at "),
                    "{error}"
                );
            }
        });
    });
}

#[test]
fn steps_go_forth_and_back_from_snapshots() {
    under_fake(&[], || {
        replayed(&steps(), |replay| {
            assert_eq!(replay.snapshot_count(), 0);
            replay.keep_snapshots(1).unwrap();
            replay.go_to(1).unwrap();
            replay.go_on(1..4).unwrap();
            assert_eq!(replay.snapshot_count(), 5);
            for (place, x, y) in [
                (3, 1.0, 5.0),
                (1, 1.0, 0.0),
                (4, 0.0, 5.0),
                (2, 1.0, 2.0),
                (0, 9.0, 0.0),
            ] {
                replay.go_to(place).unwrap();
                assert_eq!(replay.read(X, 4).unwrap(), floats(&[x]), "{place}");
                assert_eq!(replay.read(Y, 4).unwrap(), floats(&[y]), "{place}");
            }
            // Parts begin at snapshots and come out the same.
            for places in [1..2, 2..3, 3..4, 0..3] {
                assert!(replay.run_part(&part(places), 2).unwrap()[1].verdict.is_good());
            }
            assert_same(&replay.run().unwrap().verdict, 2, 32);
            // From now on none are kept.
            replay.keep_snapshots(0).unwrap();
            replay.go_to(4).unwrap();
            assert_eq!(replay.snapshot_count(), 0);
        });
    });
}

#[test]
fn snapshots_are_kept_on_a_raster() {
    under_fake(&[], || {
        replayed(&steps(), |replay| {
            replay.keep_snapshots(2).unwrap();
            replay.go_to(3).unwrap();
            // At the start, and before call 2.
            assert_eq!(replay.snapshot_count(), 2);
            replay.go_to(4).unwrap();
            assert_eq!(replay.snapshot_count(), 3);
        });
    });
}

/// Snapshots hold what the recorded kernels left, and other kernels leave something else.
#[test]
fn snapshots_and_other_kernels_do_not_mix() {
    under_fake(&[], || {
        let replacement = tracesmith_replay::Replacement {
            kernel: "saxpy".to_owned(),
            nth: Some(1),
            code: KERNELS.replace("exit;", "ret;").into_bytes(),
            symbol: None,
        };
        replayed(&steps(), |replay| {
            replay.keep_snapshots(1).unwrap();
            replay.go_to(4).unwrap();
            replay.replace(&replacement).unwrap();
            // The first sum is not made now.
            replay.go_to(3).unwrap();
            assert_eq!(replay.read(Y, 4).unwrap(), floats(&[3.0]));
        });
        replayed(&steps(), |replay| {
            replay.keep_snapshots(1).unwrap();
            replay.replace(&replacement).unwrap();
            replay.go_to(4).unwrap();
            // What comes before a part is run with the recorded kernels.
            assert!(replay.run_part(&part(2..3), 1).unwrap()[0].verdict.is_good());
            assert_eq!(replay.read(Y, 4).unwrap(), floats(&[5.0]));
        });
    });
}

#[test]
fn a_snapshot_has_the_hosts_memory_too() {
    under_fake(&[], || {
        let mut window = Window::new();
        // Its first page is the device's, so it is not mapped.
        let host = BASE + (2 << 20);
        window.kept(X, &words(&[5]));
        window.add(Moment::BEGIN, MemoryKind::PINNED, host - 32, &[0; 64]);
        let after = [vec![0; 32], words(&[5, 5]), vec![0; 24]].concat();
        window.add(Moment::END, MemoryKind::PINNED, host - 32, &after);
        window.call(copy(host, X, 4));
        window.call(copy(host + 4, X, 4));
        replayed(&window, |replay| {
            replay.keep_snapshots(1).unwrap();
            replay.go_to(2).unwrap();
            assert_eq!(replay.read(host, 8).unwrap(), words(&[5, 5]));
            replay.go_to(1).unwrap();
            assert_eq!(replay.read(host, 8).unwrap(), words(&[5, 0]));
            assert_same(&replay.run().unwrap().verdict, 2, 68);
        });
    });
}

#[test]
fn a_part_of_a_window_without_end_memory_has_nothing_to_compare_but_its_calls() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.call(allocate(X, 64));
        window.call(fill(X, 1, 16));
        window.call(free(X));
        replayed(&window, |replay| {
            let run = replay.run_part(&part(0..2), 1).unwrap().remove(0);
            assert!(
                matches!(
                    run.verdict,
                    Verdict::Same {
                        buffers: 1,
                        bytes: 64
                    }
                ),
                "{run:?}"
            );
        });
    });
}
