//! Graphs: launched whole, node by node, and in parts.

use tracesmith_format::tables::CommandKind;
use tracesmith_replay::{Determinism, Order, Part, Replacement};

use crate::support::window::{
    BASE, Call, Float, KERNELS, Long, Number, Window, allocate, copy, delay, fill, free, graph, launch, set,
};
use crate::support::{assert_same, difference, floats, replayed, under_fake, verdict, words};

const A: u64 = 0x100;
const X: u64 = BASE;
const Y: u64 = BASE + 0x1000;

/// x = 1; y += 2x, y[3] = copied from x; in a graph that is launched once or twice.
fn window(launches: u32) -> Window {
    let mut window = Window::new();
    let sum = 2.0 * launches as f32;
    window.changed(X, &floats(&[0.0; 4]), &floats(&[1.0; 4]));
    window.changed(Y, &floats(&[0.0; 5]), &floats(&[sum, sum, sum, sum, 1.0]));
    for _ in 0..launches {
        let launched = window.call(graph(4).on(A));
        let first = window.call(fill(X, 1.0_f32.to_bits(), 4).on(A).node(launched, &[]));
        let saxpy = launch("saxpy", &[Long(Y), Long(X), Float(2.0), Number(4)]).on(A);
        let second = window.call(saxpy.node(launched, &[first]));
        let third = window.call(copy(Y + 16, X, 4).on(A).node(launched, &[first]));
        window.call(set(X, 0, 1, 0).on(A).node(launched, &[second, third]));
    }
    window
}

#[test]
fn a_graph_is_launched_whole_or_node_by_node_with_the_same_result() {
    under_fake(&[], || {
        for launches in [1, 2] {
            replayed(&window(launches), |replay| {
                for _ in 0..2 {
                    assert_same(&replay.run().unwrap().verdict, 2, 16 + 20);
                }
                replay.set_order(Order::Serial);
                assert_same(&replay.run().unwrap().verdict, 2, 16 + 20);
                assert!(matches!(replay.check(2).unwrap(), Determinism::Repeats { .. }));
            });
        }
    });
}

/// The nodes are in one stream; whether they are one graph shows in the memory that a function of the host writes.
#[test]
fn a_node_follows_those_that_it_names() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.changed(X, &words(&[1]), &words(&[5]));
        window.changed(Y, &words(&[0]), &words(&[5]));
        let launched = window.call(graph(3).on(A));
        let first = window.call(delay(50).node(launched, &[]));
        let second = window.call(fill(X, 5, 1).node(launched, &[first]));
        window.call(copy(Y, X, 4).node(launched, &[second]));
        assert_same(&verdict(&window), 2, 8);
    });
}

#[test]
fn a_graph_with_a_function_of_the_host_is_made_node_by_node() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.changed(X, &words(&[1]), &words(&[6]));
        window.changed(Y, &words(&[0]), &words(&[6]));
        let launched = window.call(graph(2).on(A));
        let function = Call::of(CommandKind::HOST_FUNCTION).on(A).node(launched, &[]);
        let first = window.bring(function, X, &words(&[6]));
        window.call(copy(Y, X, 4).on(A).node(launched, &[first]));
        assert_same(&verdict(&window), 2, 8);
    });
}

#[test]
fn a_graph_allocates_and_frees_memory() {
    under_fake(&[], || {
        let temporary = Y + 0x1000;
        let mut window = Window::new();
        window.changed(Y, &words(&[0]), &words(&[6]));
        let launched = window.call(graph(4).on(A));
        let taken = window.call(allocate(temporary, 64).node(launched, &[]));
        let filled = window.call(fill(temporary, 6, 1).node(launched, &[taken]));
        let copied = window.call(copy(Y, temporary, 4).node(launched, &[filled]));
        window.call(free(temporary).node(launched, &[copied]));
        let nothing = Replacement {
            kernel: "fill".to_owned(),
            nth: None,
            code: KERNELS.replace("exit;", "ret;").into_bytes(),
            symbol: None,
        };
        replayed(&window, |replay| {
            assert_same(&replay.run().unwrap().verdict, 1, 4);
            replay.replace(&nothing).unwrap();
            for run in replay.run_part(&Part::whole(5), 2).unwrap() {
                assert_eq!(
                    (
                        difference(&run.verdict).address,
                        difference(&run.verdict).found[0]
                    ),
                    (Y, 0xA5)
                );
            }
        });
    });
}

#[test]
fn a_part_may_begin_or_end_within_a_graph() {
    under_fake(&[], || {
        let window = window(2);
        replayed(&window, |replay| {
            for places in [0..3, 2..5, 3..8, 5..10, 7..10] {
                let mut part = Part::whole(window.calls.len());
                part.places = places.clone();
                let run = replay.run_part(&part, 1).unwrap().remove(0);
                assert!(run.verdict.is_good(), "{places:?} {:?}", run.verdict);
            }
        });
    });
}

/// Graphs that were made hold the old kernels: they are made anew, and again when the old kernels are back.
#[test]
fn another_kernel_takes_a_place_within_a_graph() {
    under_fake(&[], || {
        let window = window(1);
        let near = Replacement {
            kernel: "saxpy".to_owned(),
            nth: None,
            code: KERNELS.as_bytes().to_vec(),
            symbol: Some("saxpy_near".to_owned()),
        };
        replayed(&window, |replay| {
            assert_same(&replay.run().unwrap().verdict, 2, 36);
            assert_eq!(replay.replace(&near).unwrap(), [3]);
            let verdict = replay.run_part(&Part::whole(5), 1).unwrap().remove(0).verdict;
            assert_eq!(difference(&verdict).address, Y);
            let left = replay.time_replaced(1).unwrap();
            assert_eq!(difference(&left[0].verdict).address, Y);
            // What comes before a part is run with the recorded kernel again.
            let mut part = Part::whole(5);
            part.places = 3..5;
            assert!(replay.run_part(&part, 1).unwrap()[0].verdict.is_good());
            assert!(!replay.run_part(&Part::whole(5), 1).unwrap()[0].verdict.is_good());
        });
    });
}

/// The nodes of which some are missing in the file are made one by one: what is missing shows in the memory.
#[test]
fn a_graph_that_lacks_nodes_is_not_launched_whole() {
    under_fake(&[], || {
        let mut window = window(1);
        window.calls.remove(3);
        for (place, call) in window.calls.iter_mut().enumerate() {
            call.row.number = place as u64 + 1;
        }
        let verdict = verdict(&window);
        assert_eq!(
            (difference(&verdict).address, difference(&verdict).offset),
            (Y, 18)
        );
    });
}
