//! Whether a window repeats itself, and why not.

use tracesmith_fake_cuda::variable;
use tracesmith_format::tables::CommandKind;
use tracesmith_replay::{Cause, Determinism, FirstDivergence};

use crate::support::window::{
    BASE, Call, Float, Long, Number, Window, allocate, copy, delay, fill, free, launch, record_event, set,
    wait_event,
};
use crate::support::{assert_same, floats, replayed, under_fake, words};

const A: u64 = 0x100;
const B: u64 = 0x200;
const X: u64 = BASE;
const Y: u64 = BASE + 0x1000;
const Q: u64 = BASE + 0x2000;

fn checked(window: &Window, runs: u32) -> Determinism {
    replayed(window, |replay| replay.check(runs).unwrap())
}

#[track_caller]
fn culprit(window: &Window, runs: u32) -> FirstDivergence {
    match checked(window, runs) {
        Determinism::Differs(culprit) => *culprit,
        repeats => panic!("{repeats:?}"),
    }
}

/// sum += x, in no promised order.
fn sum() -> Window {
    let numbers: Vec<f32> = (0..200).map(|n| 1.0 + 1.0 / (n as f32 + 0.3)).collect();
    let mut window = Window::new();
    window.kept(X, &floats(&numbers));
    window.changed(Y, &floats(&[0.0; 2]), &floats(&[0.0; 2]));
    window.call(fill(Y, 0, 2));
    window.call(launch("accumulate", &[Long(Y), Long(X), Number(200)]));
    window.call(copy(Y + 4, Y, 4));
    window
}

#[test]
fn a_window_that_repeats_itself_is_looked_at_after_each_call() {
    under_fake(&[], || {
        // Two calls that write, one that only waits, and the end.
        let mut window = sum();
        window.call(record_event(1));
        assert_eq!(checked(&window, 3), Determinism::Repeats { runs: 3, calls: 4 });
        // One run has nothing to be compared with.
        assert_eq!(checked(&window, 1), Determinism::Repeats { runs: 2, calls: 4 });
    });
}

#[test]
fn a_sum_in_another_order_is_named_with_two_values() {
    under_fake(&[(variable::RACY, "1")], || {
        let culprit = culprit(&sum(), 8);
        assert_eq!((culprit.command, culprit.name.as_str()), (Some(2), "accumulate"));
        assert_eq!((culprit.cause, culprit.buffer), (Cause::Within, Some(Y)));
        let difference = culprit.difference.unwrap();
        assert_eq!((difference.address, difference.bytes), (Y, 8));
        assert!(difference.offset < 4 && difference.count > 0 && difference.expected != difference.found);
        assert_eq!(
            culprit.cause.to_string(),
            "the order of its atomic operations, or a race within it"
        );
    });
}

/// What differs by chance is not put down to memory that nobody wrote.
#[test]
fn chance_is_no_other_cause() {
    under_fake(&[(variable::RACY, "2")], || {
        let mut window = sum();
        window.call(allocate(Q, 64));
        window.call(set(Q, 1, 1, 64));
        window.call(free(Q));
        for _ in 0..8 {
            // By chance all runs may be alike.
            if let Determinism::Differs(culprit) = checked(&window, 2) {
                assert_eq!(culprit.cause, Cause::Within);
            }
        }
    });
}

/// y += 0 * q, of memory that nobody wrote.
fn unwritten() -> Window {
    let mut window = Window::new();
    window.changed(Y, &floats(&[0.0; 4]), &floats(&[0.0; 4]));
    window.call(allocate(Q, 16));
    window.call(launch("saxpy", &[Long(Y), Long(Q), Float(1.0), Number(4)]));
    window.call(free(Q));
    window
}

#[test]
fn a_read_of_memory_that_nobody_wrote_is_named() {
    under_fake(&[], || {
        let culprit = culprit(&unwritten(), 2);
        assert_eq!((culprit.command, culprit.name.as_str()), (Some(2), "saxpy"));
        assert_eq!((culprit.cause, culprit.buffer), (Cause::Uninitialised, Some(Y)));
        let difference = culprit.difference.unwrap();
        // With zeros, and with 0x7F in each byte.
        assert_eq!(
            (difference.expected, difference.found),
            (vec![0; 8], vec![0x7F; 8])
        );
        assert_eq!(culprit.cause.to_string(), "it reads memory that nobody wrote");
    });
}

/// The result is itself in memory that the window allocates.
#[test]
fn a_result_in_fresh_memory_is_told_from_what_nobody_wrote() {
    under_fake(&[], || {
        let mut window = unwritten();
        let other = Q + 0x1000;
        window.calls.clear();
        window.call(allocate(Q, 16));
        window.call(allocate(other, 64));
        // Only a part of the other one is written: that the rest differs is no result.
        window.call(fill(other, 1, 2));
        window.call(free(Q));
        assert!(matches!(
            checked(&window, 4),
            Determinism::Repeats { runs: 4, .. }
        ));
        // A sum of fresh memory, in fresh memory.
        window.call(allocate(Q, 16));
        window.call(launch("vector_add", &[Long(other), Long(Q), Long(Q), Number(4)]));
        let found = culprit(&window, 2);
        assert_eq!((found.command, found.cause), (Some(6), Cause::Uninitialised));
        assert_eq!(found.buffer, Some(other));
    });
}

#[test]
fn memory_that_is_written_before_it_is_read_is_no_cause() {
    under_fake(&[], || {
        let mut window = unwritten();
        window.calls.clear();
        window.call(allocate(Q, 16));
        window.call(set(Q, 0, 1, 16));
        window.call(launch("saxpy", &[Long(Y), Long(Q), Float(1.0), Number(4)]));
        window.call(free(Q));
        assert!(matches!(checked(&window, 4), Determinism::Repeats { .. }));
        replayed(&window, |replay| {
            assert_same(&replay.run().unwrap().verdict, 1, 16)
        });
    });
}

/// The upper two bytes of an address are what nobody wrote: with zeros it is one, with others it is none.
#[test]
fn a_call_that_fails_with_what_nobody_wrote_is_named() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.changed(Y, &words(&[0; 2]), &words(&[9; 2]));
        window.kept(X, &words(&[9; 2]));
        window.call(allocate(Q, 8));
        window.bring(copy(Q, 0x5000, 6), Q, &X.to_le_bytes()[..6]);
        window.call(launch("follow", &[Long(Y), Long(Q), Number(2)]));
        let culprit = culprit(&window, 2);
        assert_eq!((culprit.command, culprit.name.as_str()), (Some(3), "follow"));
        assert_eq!(
            (culprit.cause, culprit.buffer, culprit.difference),
            (Cause::Fails, None, None)
        );
        assert!(
            culprit
                .cause
                .to_string()
                .contains("fails with other values in it")
        );
    });
}

/// One stream writes, the other one reads.
fn two_streams(between: impl FnOnce(&mut Window)) -> Window {
    let mut window = Window::new();
    window.changed(X, &words(&[1; 4]), &words(&[5; 4]));
    window.changed(Y, &words(&[0; 4]), &words(&[5; 4]));
    window.call(fill(X, 5, 4).on(A));
    between(&mut window);
    window.call(copy(Y, X, 16).on(B));
    window.call(launch("noop", &[]).on(B));
    window
}

#[test]
fn a_missing_wait_is_named_with_both_streams() {
    under_fake(&[], || {
        let culprit = culprit(&two_streams(|_| {}), 2);
        assert_eq!((culprit.command, culprit.name.as_str()), (Some(2), "copy"));
        assert_eq!(culprit.cause, Cause::Stream { own: B, other: A });
        assert_eq!(culprit.buffer, Some(Y));
        let difference = culprit.difference.unwrap();
        assert_eq!((difference.expected[0], difference.found[0]), (5, 1));
        assert_eq!(
            culprit.cause.to_string(),
            "in stream 0x200 it does not wait for stream 0x100"
        );
    });
}

#[test]
fn a_wait_between_streams_is_enough() {
    under_fake(&[], || {
        let window = two_streams(|window| {
            window.call(record_event(1).on(A));
            window.call(wait_event(1).on(B));
        });
        assert!(matches!(checked(&window, 2), Determinism::Repeats { .. }));
    });
}

/// What the host writes does not wait for the other stream either. It is no call of a stream that could be held back.
#[test]
fn a_race_that_no_slower_stream_explains_is_an_overlap() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.changed(X, &words(&[1; 4]), &words(&[6; 4]));
        window.changed(Y, &words(&[0; 4]), &words(&[1; 4]));
        window.kept(Q, &words(&[2]));
        for stream in [A, B] {
            // Such streams do not wait for the default stream.
            let mut made = Call::of(CommandKind::STREAM).on(stream);
            made.row.value = 1;
            window.call(made);
        }
        window.call(delay(100).on(A));
        window.call(copy(Y, X, 16).on(A));
        window.call(fill(Q, 2, 1).on(B));
        let function = Call::of(CommandKind::HOST_FUNCTION).on(B);
        window.bring(function, X, &words(&[6; 4]));
        let culprit = culprit(&window, 2);
        assert_eq!(culprit.cause, Cause::Overlap);
        assert_eq!(culprit.buffer, Some(Y));
        assert!(
            culprit
                .cause
                .to_string()
                .contains("how the work of several streams overlaps")
        );
    });
}

/// The check sees bytes that are no whole word, and memory that begins at no multiple of four.
#[test]
fn a_last_byte_that_does_not_repeat_is_seen() {
    under_fake(&[], || {
        for (address, bytes) in [(Y, 7), (Y + 1, 6), (Y + 3, 1)] {
            let mut window = Window::new();
            window.changed(address, &vec![0; bytes], &vec![0; bytes]);
            window.call(allocate(Q, 4));
            let last = address + bytes as u64 - 1;
            window.call(copy(last, Q, 1));
            let culprit = culprit(&window, 2);
            assert_eq!((culprit.command, culprit.cause), (Some(2), Cause::Uninitialised));
            let difference = culprit.difference.unwrap();
            assert_eq!((difference.offset, difference.count), (bytes as u64 - 1, 1));
        }
    });
}

/// The check leaves no pattern behind.
#[test]
fn a_run_after_a_check_is_as_before() {
    under_fake(&[], || {
        let mut window = unwritten();
        // What was recorded is what the pattern of a plain run gives.
        let pattern = f32::from_le_bytes([0xA5; 4]);
        window.memory.clear();
        window.pieces.clear();
        window.changed(Y, &floats(&[0.0; 4]), &floats(&[pattern; 4]));
        replayed(&window, |replay| {
            assert_same(&replay.run().unwrap().verdict, 1, 16);
            assert!(matches!(replay.check(4).unwrap(), Determinism::Differs(_)));
            assert_same(&replay.run().unwrap().verdict, 1, 16);
        });
    });
}
