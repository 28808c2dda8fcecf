//! Other kernels in the place of recorded ones.

use tracesmith_replay::{Error, Float, Part, Replacement, Tolerance, Verdict};

use crate::support::window::{
    BASE, Call, Float as Real, KERNELS, Long, Number, Window, allocate, attribute, copy, fill, free, launch,
};
use crate::support::{assert_same, difference, floats, replayed, under_fake, words};

const X: u64 = BASE;
const Y: u64 = BASE + 0x1000;
const Q: u64 = BASE + 0x2000;

fn saxpy(factor: f32) -> Call {
    launch("saxpy", &[Long(Y), Long(X), Real(factor), Number(4)])
}

/// y += 2x, twice.
fn sums() -> Window {
    let mut window = Window::new();
    window.kept(X, &floats(&[1.0; 4]));
    window.changed(Y, &floats(&[0.0; 4]), &floats(&[4.0; 4]));
    window.call(saxpy(2.0));
    window.call(saxpy(2.0));
    window
}

/// Memory that is allocated, written, used and freed within the window.
fn temporary() -> Window {
    let mut window = Window::new();
    window.changed(Y, &words(&[0; 4]), &words(&[7; 4]));
    window.call(allocate(Q, 16));
    window.call(fill(Q, 7, 4));
    window.call(copy(Y, Q, 16));
    window.call(free(Q));
    window
}

fn by(kernel: &str, code: &str, symbol: Option<&str>) -> Replacement {
    Replacement {
        kernel: kernel.to_owned(),
        nth: None,
        code: code.as_bytes().to_vec(),
        symbol: symbol.map(str::to_owned),
    }
}

/// All kernels do nothing.
fn nothing() -> String {
    KERNELS.replace("exit;", "ret;")
}

fn whole(window: &Window) -> Part {
    Part::whole(window.calls.len())
}

#[test]
fn a_kernel_that_does_the_same_leaves_the_same() {
    under_fake(&[], || {
        let window = sums();
        replayed(&window, |replay| {
            assert_eq!(replay.replace(&by("saxpy", KERNELS, None)).unwrap(), [1, 2]);
            let runs = replay.run_part(&whole(&window), 2).unwrap();
            assert_same(&runs[1].verdict, 2, 32);
            let compared = replay.time_replaced(3).unwrap();
            assert_eq!(compared.len(), 2);
            for (comparison, number) in compared.iter().zip([1, 2]) {
                assert_eq!(
                    (comparison.old.command, comparison.old.name.as_str()),
                    (number, "saxpy")
                );
                assert_eq!((comparison.old.runs.len(), comparison.new.len()), (3, 3));
                assert_same(&comparison.verdict, 2, 32);
            }
        });
    });
}

#[test]
fn a_kernel_that_is_a_little_off_differs_or_is_within_tolerance() {
    under_fake(&[], || {
        let window = sums();
        replayed(&window, |replay| {
            replay.replace(&by("saxpy", KERNELS, Some("saxpy_near"))).unwrap();
            let verdict = replay.run_part(&whole(&window), 1).unwrap().remove(0).verdict;
            assert_eq!(difference(&verdict).address, Y);
            let left = &replay.time_replaced(1).unwrap()[0].verdict;
            assert_eq!(difference(left).address, Y);

            let near = Tolerance {
                float: Float::F32,
                absolute: 0.0,
                relative: 1e-5,
            };
            replay.set_tolerances(&[near]);
            let verdict = replay.run_part(&whole(&window), 1).unwrap().remove(0).verdict;
            let Verdict::Within { close, .. } = &verdict else {
                panic!("{verdict:?}")
            };
            assert!(
                verdict.is_good()
                    && close
                        .iter()
                        .all(|close| (close.address, close.elements) == (Y, 4))
            );
            assert!(matches!(
                replay.time_replaced(1).unwrap()[1].verdict,
                Verdict::Within { .. }
            ));
            // Too little room.
            replay.set_tolerances(&[Tolerance {
                relative: 1e-9,
                ..near
            }]);
            assert!(!replay.run_part(&whole(&window), 1).unwrap()[0].verdict.is_good());
        });
    });
}

#[test]
fn one_launch_alone_is_replaced() {
    under_fake(&[], || {
        let window = sums();
        replayed(&window, |replay| {
            let mut second = by("saxpy", &nothing(), None);
            second.nth = Some(2);
            assert_eq!(replay.replace(&second).unwrap(), [2]);
            let mut part = whole(&window);
            part.places = 0..1;
            assert!(replay.run_part(&part, 1).unwrap()[0].verdict.is_good());
            part.places = 1..2;
            let verdict = replay.run_part(&part, 1).unwrap().remove(0).verdict;
            assert_eq!(difference(&verdict).found[..2], 2.0_f32.to_le_bytes()[2..]);
            let compared = replay.time_replaced(1).unwrap();
            assert_eq!((compared.len(), compared[0].old.command), (1, 2));
            assert_eq!(
                difference(&compared[0].verdict).expected[..2],
                4.0_f32.to_le_bytes()[2..]
            );
        });
    });
}

/// Before the part the recorded kernels run, also where memory is compared after each call.
#[test]
fn a_launch_that_is_replaced_before_the_part_is_not_replaced() {
    under_fake(&[], || {
        let window = sums();
        replayed(&window, |replay| {
            let mut first = by("saxpy", &nothing(), None);
            first.nth = Some(1);
            replay.replace(&first).unwrap();
            let mut part = whole(&window);
            part.places = 1..2;
            assert_same(&replay.run_part(&part, 1).unwrap()[0].verdict, 2, 32);
        });
    });
}

/// Issue 26, item 1: the memory is gone at the end, and so was the difference.
#[test]
fn a_launch_that_leaves_memory_unwritten_differs_though_that_memory_is_freed() {
    under_fake(&[], || {
        let window = temporary();
        replayed(&window, |replay| {
            replay.replace(&by("fill", &nothing(), None)).unwrap();
            let mut part = whole(&window);
            part.places = 1..2;
            let verdict = replay.run_part(&part, 1).unwrap().remove(0).verdict;
            assert_eq!(difference(&verdict).address, Q);
            assert_eq!(difference(&verdict).count, 16);
            let left = &replay.time_replaced(1).unwrap()[0].verdict;
            assert_eq!(difference(left).address, Q);
        });
    });
}

/// Issue 26, item 1: what the end shows is right, and a buffer that is freed before was not.
#[test]
fn a_whole_window_differs_when_freed_memory_differed() {
    under_fake(&[], || {
        let mut window = temporary();
        // The copy that carries the difference to the end is not made.
        window.calls[2] = launch("noop", &[]);
        window.calls[2].row.number = 3;
        window.memory.clear();
        window.pieces.clear();
        window.kept(Y, &words(&[7; 4]));
        replayed(&window, |replay| {
            assert_same(&replay.run().unwrap().verdict, 1, 16);
            replay.replace(&by("fill", &nothing(), None)).unwrap();
            let verdict = replay.run_part(&whole(&window), 1).unwrap().remove(0).verdict;
            let difference = difference(&verdict);
            assert_eq!((difference.address, difference.call), (Q, Some(2)));
            assert_eq!((difference.expected[0], difference.found[0]), (7, 0xA5));
        });
    });
}

/// Issue 26, item 2: the second run found the first one's result in memory that the window allocates.
#[test]
fn a_run_inherits_nothing_from_the_run_before() {
    under_fake(&[], || {
        let window = temporary();
        replayed(&window, |replay| {
            assert_same(&replay.run().unwrap().verdict, 1, 16);
            replay.go_to(1).unwrap();
            assert_eq!(replay.read(Q, 16).unwrap(), [0xA5; 16]);
            replay.replace(&by("fill", &nothing(), None)).unwrap();
            for run in replay.run_part(&whole(&window), 3).unwrap() {
                let difference = difference(&run.verdict);
                assert_eq!((difference.address, difference.found[0]), (Y, 0xA5));
            }
        });
    });
}

/// An address that is allocated twice: the second allocation does not inherit what the first one left.
#[test]
fn memory_that_is_allocated_again_is_fresh() {
    under_fake(&[], || {
        let mut window = temporary();
        window.call(allocate(Q, 16));
        window.call(fill(Q, 7, 4));
        window.call(free(Q));
        replayed(&window, |replay| {
            let mut second = by("fill", &nothing(), None);
            second.nth = Some(2);
            replay.replace(&second).unwrap();
            let verdict = replay.run_part(&whole(&window), 1).unwrap().remove(0).verdict;
            assert_eq!(
                (difference(&verdict).address, difference(&verdict).call),
                (Q, Some(6))
            );
            let left = &replay.time_replaced(1).unwrap()[0].verdict;
            assert_eq!(difference(left).found[0], 0xA5);
        });
    });
}

#[test]
fn what_cannot_take_a_kernels_place_is_refused() {
    under_fake(&[], || {
        replayed(&sums(), |replay| {
            let mut words = |replacement: &Replacement| {
                let error = replay.replace(replacement).err().unwrap();
                assert!(matches!(error, Error::Replacement(_)), "{error:?}");
                error.to_string()
            };
            assert_eq!(
                words(&by("matmul", KERNELS, None)),
                "cannot replace the kernel: the recording has no launch of kernel \"matmul\""
            );
            let mut third = by("saxpy", KERNELS, None);
            third.nth = Some(3);
            assert_eq!(
                words(&third),
                "cannot replace the kernel: the recording has no launch 3 of kernel \"saxpy\""
            );
            let two = ".version 7.0\n.entry fill(.param .u64 a) { exit; }\n.entry noop() { exit; }";
            assert_eq!(
                words(&by("saxpy", two, None)),
                "cannot replace the kernel: the new module has no kernel \"saxpy\"; it has fill, noop"
            );
            assert_eq!(
                words(&by("saxpy", two, Some("gone"))),
                "cannot replace the kernel: the new module has no kernel \"gone\"; it has fill, noop"
            );
            assert!(words(&by("saxpy", KERNELS, Some("gone"))).ends_with(", …"));
            assert_eq!(
                words(&by("saxpy", KERNELS, Some("fill"))),
                "cannot replace the kernel: the parameters of fill differ from those of saxpy: 3 of 8 + 4 + 4 bytes instead of 4 of 8 + 8 + 4 + 4 \
                 bytes"
            );
            assert_eq!(
                words(&by("saxpy", ".version 7.0", None)),
                "cannot replace the kernel: the new module has no kernel \"saxpy\""
            );
        });
    });
}

#[test]
fn code_that_does_not_load_is_refused() {
    under_fake(&[], || {
        replayed(&sums(), |replay| {
            let error = replay
                .replace(&by("saxpy", "no code .entry saxpy()", None))
                .err()
                .unwrap();
            assert!(
                error.to_string().starts_with("loading the new module: "),
                "{error}"
            );
        });
    });
}

/// A part of a name that fits two kernels with other parameters: none of their launches is replaced.
#[test]
fn a_refused_replacement_changes_nothing() {
    under_fake(&[], || {
        let mut window = sums();
        window.calls.insert(0, fill(X, 1.0_f32.to_bits(), 4));
        for (place, call) in window.calls.iter_mut().enumerate() {
            call.row.number = place as u64 + 1;
        }
        window.memory.retain(|memory| memory.address != X);
        window.pieces.retain(|piece| piece.address.0 != X);
        window.changed(X, &floats(&[0.0; 4]), &floats(&[1.0; 4]));
        replayed(&window, |replay| {
            // "fill" and "saxpy" have no letter run in common but the empty one.
            let error = replay.replace(&by("", &nothing(), Some("fill"))).err().unwrap();
            assert!(matches!(error, Error::Replacement(_)), "{error:?}");
            assert_same(&replay.run().unwrap().verdict, 2, 32);
            assert!(replay.time_replaced(1).unwrap().is_empty());
        });
    });
}

/// A limit that follows the last launch alone is too low for the first.
#[test]
fn another_kernel_may_use_as_much_shared_memory_as_each_launch_does() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.changed(X, &words(&[0]), &words(&[2]));
        window.call(attribute("fill", 8, 90 << 10));
        window.call(fill(X, 1, 1).shared(90 << 10));
        window.call(attribute("fill", 8, 60 << 10));
        window.call(fill(X, 2, 1).shared(60 << 10));
        replayed(&window, |replay| {
            replay.replace(&by("fill", KERNELS, None)).unwrap();
            assert_same(&replay.run_part(&whole(&window), 1).unwrap()[0].verdict, 1, 4);
        });
    });
}

/// The memory held the result before: a kernel that does nothing would come out the same.
#[test]
fn a_launch_that_changes_nothing_proves_nothing() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.kept(Y, &words(&[7; 4]));
        window.call(fill(Y, 7, 4));
        replayed(&window, |replay| {
            replay.replace(&by("fill", &nothing(), None)).unwrap();
            let compared = replay.time_replaced(1).unwrap();
            let verdict = &compared[0].verdict;
            assert!(matches!(verdict, Verdict::Unproven { .. }), "{verdict:?}");
            assert!(!verdict.is_good());
        });
    });
}

/// The stage maps whole pages: what lies beside a buffer is nobody's, and a kernel that writes there writes too much.
#[test]
fn a_kernel_that_writes_beyond_a_buffer_differs() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.changed(Y, &words(&[1; 4]), &words(&[7; 4]));
        window.call(fill(Y, 7, 4));
        window.call(fill(Y, 7, 4));
        replayed(&window, |replay| {
            // One that takes the same and fills a word more than it should.
            replay
                .replace(&by(
                    "fill",
                    &KERNELS.replace(".entry fill(", ".entry fill_beyond("),
                    Some("fill_beyond"),
                ))
                .unwrap();
            let compared = replay.time_replaced(1).unwrap();
            assert_eq!(difference(&compared[0].verdict).address, Y + 16);
        });
    });
}

#[test]
fn a_window_without_memory_to_compare_proves_nothing() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.call(allocate(Q, 16));
        window.call(fill(Q, 7, 4));
        window.call(free(Q));
        replayed(&window, |replay| {
            let verdict = replay.run().unwrap().verdict;
            assert!(matches!(verdict, Verdict::Unproven { .. }), "{verdict:?}");
        });
    });
}
