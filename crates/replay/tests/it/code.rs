//! Which code runs, with which variables and limits.

use tracesmith_replay::Plan;

use crate::support::window::{
    BASE, KERNELS, Long, MODULE, Number, VARIABLE, Window, attribute, fill, launch,
};
use crate::support::{assert_same, difference, replayed, under_fake, verdict, words};

const X: u64 = BASE;
const OTHER: u64 = 0x8000;

/// Two handles of the same code are two modules.
#[test]
fn two_handles_of_the_same_code_have_variables_of_their_own() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.load(OTHER, KERNELS.as_bytes());
        let other = VARIABLE + 0x1000;
        window.variable(MODULE, "counter", VARIABLE, &words(&[3]), &words(&[4]));
        window.variable(OTHER, "counter", other, &words(&[50]), &words(&[70]));
        window.changed(X, &words(&[0; 2]), &words(&[3, 50]));
        window.call(launch("bump", &[Long(X), Number(1)]));
        window.call(launch("bump", &[Long(X + 4), Number(20)]).of_module(OTHER));
        assert_eq!(window.open().code().0, 1, "the code is stored once");
        replayed(&window, |replay| {
            for _ in 0..2 {
                assert_same(&replay.run().unwrap().verdict, 3, 4 + 4 + 8);
            }
            assert_eq!(replay.read(VARIABLE, 4).unwrap(), words(&[4]));
            assert_eq!(replay.read(other, 4).unwrap(), words(&[70]));
        });
    });
}

/// Kernels of one name in two modules: the handle decides.
#[test]
fn a_kernel_is_that_of_its_module() {
    under_fake(&[], || {
        let mut window = Window::new();
        // Here fill does nothing.
        window.load(OTHER, KERNELS.replace("exit;", "ret;").as_bytes());
        window.changed(X, &words(&[0; 2]), &words(&[1, 0]));
        window.call(fill(X, 1, 1));
        window.call(fill(X + 4, 1, 1).of_module(OTHER));
        assert_same(&verdict(&window), 1, 8);
        window.calls[1].row.module = MODULE;
        assert_eq!(difference(&verdict(&window)).offset, 4);
    });
}

#[test]
fn a_handle_that_is_given_out_again_stands_for_the_code_that_was_loaded_last() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.load(OTHER, KERNELS.as_bytes());
        window.load(OTHER, KERNELS.replace("exit;", "ret;").as_bytes());
        window.kept(X, &words(&[0]));
        window.call(fill(X, 1, 1).of_module(OTHER));
        assert_same(&verdict(&window), 1, 4);
    });
}

#[test]
fn a_handle_that_is_not_known_stands_for_the_only_code_with_the_kernel() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.changed(X, &words(&[0]), &words(&[1]));
        window.call(fill(X, 1, 1).of_module(0x9000));
        // A name within another one does not count.
        window.load(
            OTHER,
            b".version 7.0\n.entry refill() { ret; }\n.entry fill_more() { ret; }",
        );
        assert_same(&verdict(&window), 1, 4);
    });
}

/// A long module is stored in several rows of the same hash.
#[test]
fn code_is_put_together_from_its_rows() {
    under_fake(&[], || {
        let mut window = Window::new();
        let mut rest = window.modules[0].clone();
        rest.code.0 = window.modules[0].code.0.split_off(100);
        window.modules.insert(1, rest);
        window.changed(X, &words(&[0]), &words(&[1]));
        window.call(fill(X, 1, 1));
        assert_eq!(window.open().code(), (1, KERNELS.len() as u64));
        assert_same(&verdict(&window), 1, 4);
    });
}

/// The limit falls from launch to launch, and the fake driver refuses a launch above it as a real one does.
#[test]
fn launches_with_less_and_less_shared_memory_are_made() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.changed(X, &words(&[0]), &words(&[3]));
        window.call(attribute("fill", 8, 100 << 10));
        window.call(fill(X, 1, 1).shared(100 << 10));
        window.call(attribute("fill", 8, 60 << 10));
        window.call(fill(X, 2, 1).shared(60 << 10));
        window.call(fill(X, 3, 1));
        assert_same(&verdict(&window), 1, 4);
    });
}

#[test]
fn a_launch_with_more_shared_memory_than_there_is_fails() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.kept(X, &words(&[0]));
        window.call(fill(X, 1, 1).shared(300 << 10));
        replayed(&window, |replay| {
            let error = replay.run().err().unwrap();
            assert!(error.to_string().contains("#1 fill: launching: "), "{error}");
            assert!(error.to_string().contains("CUDA_ERROR_INVALID_VALUE"), "{error}");
            assert!(!error.is_fault());
        });
    });
}

/// A variable of code that nothing launches is memory like any other.
#[test]
fn a_variable_of_code_that_is_not_loaded_is_plain_memory() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.load(OTHER, KERNELS.replace("counter", "total").as_bytes());
        window.variable(OTHER, "total", VARIABLE, &words(&[1]), &words(&[2]));
        window.call(fill(VARIABLE, 2, 1));
        let mut recording = window.open();
        let plan = Plan::of(&mut recording).unwrap();
        let memory: Vec<_> = std::iter::once(VARIABLE..VARIABLE + 4).collect();
        assert_eq!(plan.memory, memory);
        assert_same(&verdict(&window), 1, 4);
    });
}
