//! Switching callbacks off under loom: every interleaving and every value that
//! the memory model lets a load return, over the code that ships.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p tracesmith-cuda --release --test loom`
//!
//! A model that cannot fail says nothing. Each of these weakenings was tried
//! and is reported by the model named behind it:
//!
//! - No fence in `CallbackSwitches::begins`, or none in `CallbackSwitches::turn_off`; or the former
//!   does not look whether the callback is on, or the latter looks for threads
//!   before it takes the function out of those that are on: all models.
//! - `CallbackSwitches::turn_off` does not look whether the callback is on, and counts one as
//!   on that is off because a thread is about to switch it on:
//!   `what_is_turned_off_twice_is_as_off_as_before`.
//! - `CallbackSwitches::turn_on` counts a callback as on before it is:
//!   `what_is_turned_on_again_meanwhile_stays_on`.
//! - `CallbackSwitches::settle` looks what waits before it has the client, and not again:
//!   `what_is_wanted_again_while_it_is_settled_stays_on`.
#![cfg(loom)]
#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    missing_docs,
    reason = "a test may stop on any error, and nobody uses it from outside"
)]

use std::convert::Infallible;

use loom::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};
use tracesmith_cuda::cupti::{
    ApiDomain,
    callback_switches::{CallbackSwitches, Function, ThreadCallStack},
};

const WAIT: Function = (ApiDomain::Driver, 1);

/// CUPTI, with one function.
#[derive(Default)]
struct Model {
    switches: CallbackSwitches<()>,
    stack: ThreadCallStack,
    is_on: AtomicBool,
}

impl Model {
    fn new() -> Arc<Self> {
        let model = Self::default();
        let Ok(()) = model.switches.attach(|| Ok::<(), Infallible>(()));
        let Ok(()) = model.switches.turn_on(WAIT, |()| model.set(true));
        Arc::new(model)
    }

    fn set(&self, is_on: bool) -> Result<(), Infallible> {
        self.is_on.store(is_on, Ordering::SeqCst);
        Ok(())
    }

    /// A call of the one thread that makes some: gives back whether it was told.
    fn call(&self) -> bool {
        let is_told = self.is_on.load(Ordering::SeqCst);
        if is_told {
            // CUPTI has noted the call. What happens here is not in our hands.
            self.switches.begins(&self.stack, WAIT, |()| {
                let Ok(()) = self.set(true);
            });
        }
        let end_is_told = self.is_on.load(Ordering::SeqCst);
        assert!(end_is_told || !is_told, "a call stays on CUPTI's list for ever");
        if end_is_told {
            self.stack.ends(WAIT);
        }
        is_told
    }

    fn turn_off(&self) {
        let Ok(()) = self.switches.turn_off(
            WAIT,
            |function| self.stack.is_within(function),
            |()| self.set(false),
        );
    }

    fn settle(&self) {
        self.switches.settle(
            |function| self.stack.is_within(function),
            |(), _| {
                let Ok(()) = self.set(false);
            },
            |()| {},
        );
    }
}

/// A call, on a thread of its own.
fn start_call(model: &Arc<Model>) -> thread::JoinHandle<bool> {
    let model = Arc::clone(model);
    thread::spawn(move || model.call())
}

#[test]
fn the_end_of_a_call_is_told_if_its_beginning_was() {
    loom::model(|| {
        let model = Model::new();
        let caller = thread::spawn({
            let model = Arc::clone(&model);
            move || {
                model.call();
                model.call();
            }
        });
        model.turn_off();
        caller.join().unwrap();
    });
}

#[test]
fn a_call_that_is_told_late_is_told_to_its_end() {
    loom::model(|| {
        let model = Model::new();
        let caller = start_call(&model);
        model.turn_off();
        caller.join().unwrap();
        model.settle();
        assert!(!model.is_on.load(Ordering::SeqCst) && model.switches.is_settled());
        assert!(!model.call(), "it is off for good");
    });
}

#[test]
fn what_is_turned_off_twice_is_as_off_as_before() {
    loom::model(|| {
        let model = Model::new();
        let caller = start_call(&model);
        model.turn_off();
        model.turn_off();
        caller.join().unwrap();
    });
}

#[test]
fn what_is_turned_on_again_meanwhile_stays_on() {
    loom::model(|| {
        let model = Model::new();
        let caller = start_call(&model);
        model.turn_off();
        let Ok(()) = model.switches.turn_on(WAIT, |()| model.set(true));
        model.settle();
        caller.join().unwrap();
        model.settle();
        assert!(model.is_on.load(Ordering::SeqCst));
    });
}

/// Another profiler of the program's switches on what our window has just left.
#[test]
fn what_is_wanted_again_while_it_is_settled_stays_on() {
    loom::model(|| {
        let model = Model::new();
        model.switches.begins(&model.stack, WAIT, |()| {});
        model.turn_off();
        model.stack.ends(WAIT);
        let other = thread::spawn({
            let model = Arc::clone(&model);
            move || {
                let Ok(()) = model.switches.turn_on(WAIT, |()| model.set(true));
            }
        });
        model.settle();
        other.join().unwrap();
        assert!(model.is_on.load(Ordering::SeqCst));
    });
}
