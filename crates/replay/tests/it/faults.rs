//! Runs that fail, and how far a run has come.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tracesmith_fake_cuda::variable;
use tracesmith_replay::{Error, Replay};

use crate::support::window::{BASE, Window, copy, fill, launch};
use crate::support::{planned, replayed, under_fake, words};

const X: u64 = BASE;

fn window() -> Window {
    let mut window = Window::new();
    window.changed(X, &words(&[0; 4]), &words(&[1; 4]));
    window.call(launch("noop", &[]));
    window.call(fill(X, 1, 4));
    window.call(copy(X, X + 4, 4));
    window
}

#[test]
fn a_kernel_that_faults_is_named_when_calls_are_made_one_by_one() {
    under_fake(&[(variable::FAULTING_KERNEL, "fill")], || {
        replayed(&window(), |replay| {
            let error = replay.run_one_by_one().err().unwrap();
            assert!(error.is_fault(), "{error:?}");
            assert!(matches!(error, Error::Device { call: Some(2), .. }), "{error:?}");
            assert!(
                error
                    .to_string()
                    .starts_with("#2 fill: synchronizing the device: "),
                "{error}"
            );
            assert!(!replay.words(&error).is_empty());
            // What is no error of the device has no words.
            assert_eq!(replay.words(&Error::NoRecording), "");
        });
    });
}

#[test]
fn a_run_with_a_kernel_that_faults_has_no_verdict() {
    under_fake(&[(variable::FAULTING_KERNEL, "fill")], || {
        replayed(&window(), |replay| {
            let error = replay.run().err().unwrap();
            assert!(error.is_fault(), "{error:?}");
            // Nothing of this process can be done there now.
            assert!(replay.run().is_err() && replay.read(X, 4).is_err());
        });
    });
}

#[test]
fn a_kernel_that_reaches_beyond_its_memory_faults() {
    under_fake(&[], || {
        let mut window = window();
        window.call(fill(X + (32 << 20), 1, 1));
        replayed(&window, |replay| {
            let error = replay.run_one_by_one().err().unwrap();
            assert!(
                error.is_fault() && matches!(error, Error::Device { call: Some(4), .. }),
                "{error:?}"
            );
        });
    });
}

#[test]
fn a_launch_that_the_driver_refuses_is_named() {
    under_fake(&[(variable::LAUNCH_FAILURE_EVERY, "2")], || {
        replayed(&window(), |replay| {
            let error = replay.run().err().unwrap();
            assert!(
                !error.is_fault() && matches!(error, Error::Device { call: Some(2), .. }),
                "{error:?}"
            );
            assert!(
                error.to_string().contains("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
                "{error}"
            );
        });
    });
}

/// Other threads see which call a replay is at, and that it comes no further.
#[test]
fn a_kernel_that_does_not_end_is_seen_from_outside() {
    under_fake(&[(variable::HANGING_KERNEL, "fill")], || {
        let (sender, receiver) = mpsc::channel();
        // It waits until the process ends.
        std::thread::spawn(move || {
            let mut recording = window().open();
            let plan = planned(&mut recording);
            let mut replay = Replay::prepare(&mut recording, &plan, 0).unwrap();
            sender.send(replay.watch()).unwrap();
            let _ = replay.run_one_by_one();
        });
        let watch = receiver.recv().unwrap();
        let begun = Instant::now();
        let mut last = watch.pulse();
        let mut since = Instant::now();
        while since.elapsed() < Duration::from_millis(500) || last.call != 2 {
            assert!(begun.elapsed() < Duration::from_secs(30), "{last:?}");
            std::thread::sleep(Duration::from_millis(20));
            let now = watch.pulse();
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        assert!(last.is_working);
    });
}

#[test]
fn a_replay_that_rests_is_not_working() {
    under_fake(&[], || {
        replayed(&window(), |replay| {
            let watch = replay.watch();
            let before = watch.pulse();
            replay.run().unwrap();
            let after = watch.pulse();
            assert!(after.beats > before.beats);
            assert_eq!((after.call, after.is_working), (3, false));
        });
    });
}

#[test]
fn progress_covers_both_ends_of_the_window() {
    under_fake(&[], || {
        let mut window = window();
        window.kept(X + 0x100, &[0; 100]);
        replayed(&window, |replay| {
            let seen = Rc::new(Cell::new(0));
            let counted = seen.clone();
            replay.on_progress(Box::new(move |bytes| counted.set(counted.get() + bytes)));
            replay.run().unwrap();
            let recording = replay.recording();
            assert_eq!(seen.get(), recording.begin_bytes() + recording.end_bytes());
        });
    });
}

#[test]
fn the_clocks_are_read_where_the_management_library_is() {
    under_fake(&[], || {
        replayed(&window(), |replay| {
            let clocks = replay.clocks().unwrap();
            assert!(clocks.sm_mhz.is_some() && clocks.memory_mhz.is_some());
        });
    });
}
