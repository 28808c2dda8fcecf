//! One launch taken out, and what is refused.

use std::fs;

use tracesmith_replay::{Error, Extracted};

use crate::support::window::{
    BASE, Float, Long, MODULE, Number, VARIABLE, Window, copy, fill, launch, texture,
};
use crate::support::{assert_same, floats, replayed, under_fake, words};

const X: u64 = BASE;
const Y: u64 = BASE + 0x1000;

#[test]
fn a_launch_is_written_with_the_memory_before_and_after_it() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.changed(X, &floats(&[0.0; 4]), &floats(&[1.0; 4]));
        window.changed(Y, &floats(&[0.5; 4]), &floats(&[2.5; 4]));
        // Nothing points to it.
        window.kept(Y + 0x1000, &floats(&[9.0; 4]));
        window.call(fill(X, 1.0_f32.to_bits(), 4));
        window.call(launch("saxpy", &[Long(Y), Long(X), Float(2.0), Number(4)]));
        replayed(&window, |replay| {
            let folder = tempfile::tempdir().unwrap();
            let extracted = replay.extract(1, folder.path()).unwrap();
            let expected = Extracted {
                command: 2,
                function: "saxpy".to_owned(),
                buffers: 2,
                bytes: 32,
                changed: 1,
                unknown: 0,
            };
            assert_eq!(extracted, expected);
            let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
            assert_eq!(read("buffers/0.before"), floats(&[1.0; 4]));
            assert_eq!(read("buffers/1.before"), floats(&[0.5; 4]));
            assert_eq!(read("buffers/1.after"), floats(&[2.5; 4]));
            assert!(!folder.path().join("buffers/0.after").exists());
            let manifest = String::from_utf8(read("launch.txt")).unwrap();
            assert!(
                manifest.contains("kernel saxpy\n") && manifest.contains("block 256 1 1\n"),
                "{manifest}"
            );
            for name in [
                "reproduce.cpp",
                "reproduce.py",
                "README.md",
                "parameters.bin",
                "kernel.cubin",
            ] {
                assert!(!read(name).is_empty(), "{name}");
            }
            assert_same(&replay.run().unwrap().verdict, 3, 48);
        });
    });
}

#[test]
fn a_call_that_is_no_launch_is_not_extracted() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.kept(X, &words(&[0; 2]));
        window.call(copy(X, X + 4, 4));
        replayed(&window, |replay| {
            let folder = tempfile::tempdir().unwrap();
            for place in [0, 1] {
                let error = replay.extract(place, folder.path()).err().unwrap();
                assert!(matches!(error, Error::Missing(_)), "{error:?}");
            }
        });
    });
}

#[test]
fn a_kernel_with_a_texture_is_not_extracted() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.kept(X, &floats(&[2.0; 4]));
        window.changed(Y, &floats(&[0.0; 4]), &floats(&[2.0; 4]));
        window.call(texture(1, X, 16));
        window.call(launch("look", &[Long(Y), Long(1), Number(4)]));
        replayed(&window, |replay| {
            let folder = tempfile::tempdir().unwrap();
            let error = replay.extract(1, folder.path()).err().unwrap();
            assert!(matches!(error, Error::Obstacle(_)), "{error:?}");
            assert!(error.to_string().contains("texture"), "{error}");
        });
    });
}

#[test]
fn a_kernel_with_a_parameter_that_points_to_a_variable_is_not_extracted() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.variable(MODULE, "counter", VARIABLE, &words(&[0]), &words(&[2]));
        window.call(fill(VARIABLE, 2, 1));
        replayed(&window, |replay| {
            let folder = tempfile::tempdir().unwrap();
            let error = replay.extract(0, folder.path()).err().unwrap();
            assert!(matches!(error, Error::Obstacle(_)), "{error:?}");
            assert!(error.to_string().contains("counter"), "{error}");
        });
    });
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error() {
    under_fake(&[], || {
        let mut window = Window::new();
        window.changed(X, &words(&[0]), &words(&[2]));
        window.call(fill(X, 2, 1));
        replayed(&window, |replay| {
            let file = tempfile::NamedTempFile::new().unwrap();
            let error = replay.extract(0, &file.path().join("folder")).err().unwrap();
            assert!(matches!(error, Error::Write(_)), "{error:?}");
            assert!(
                error.to_string().starts_with("cannot write the file: "),
                "{error}"
            );
        });
    });
}
