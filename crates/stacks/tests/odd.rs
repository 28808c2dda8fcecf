//! Stacks in odd moments: within a signal's handler, and while libraries come and go.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(
    clippy::unwrap_used,
    unsafe_code,
    clippy::print_stdout,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]

use std::ffi::{CStr, CString, c_int, c_void};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant};

use tracesmith_stacks::{Images, StackEnd, Walk, Walker};

static INTERRUPTED: Mutex<Vec<(Vec<u64>, Walk)>> = Mutex::new(Vec::new());

extern "C" fn handler(_: c_int) {
    let images = Images::list(None);
    let mut frames = [0; 256];
    let walk = Walker::of_this_thread().walk(&images, &mut frames);
    INTERRUPTED
        .lock()
        .unwrap()
        .push((frames[..walk.depth].to_vec(), walk));
}

#[inline(never)]
fn is_interrupted() {
    // SAFETY: the handler is ours, and the signal is for this thread.
    unsafe { libc::raise(libc::SIGUSR1) };
    std::hint::black_box(());
}

#[test]
fn whoever_a_signal_interrupted_is_on_the_stack() {
    // SAFETY: a handler that may do all this, since the signal is raised by ourselves.
    unsafe { libc::signal(libc::SIGUSR1, handler as *const () as usize) };
    let images = Images::list(None);
    let mut frames = [0; 256];
    let plain = Walker::of_this_thread().walk(&images, &mut frames);
    is_interrupted();
    let (interrupted, walk) = INTERRUPTED.lock().unwrap().pop().unwrap();
    assert_eq!(walk.end, StackEnd::Root, "{walk:?}");
    // The outermost frames are those of the same stack; the innermost of these is this test, at another line.
    let common = plain.depth - 1;
    let outer = &frames[plain.depth - common + 1..plain.depth];
    assert_eq!(&interrupted[interrupted.len() - outer.len()..], outer);
    assert!(
        interrupted.len() > plain.depth + 2,
        "handler, frame of the signal, raise, and its callers"
    );
}

/// `ld.so program` is a program whose file is not the one that the system tells.
#[test]
fn a_program_that_a_loader_was_told_to_run_is_walked_too() {
    const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";
    if !std::path::Path::new(LOADER).exists() {
        return tracesmith_skip::without("x86-64", LOADER);
    }
    let run = Command::new(LOADER)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "whoever_a_signal_interrupted_is_on_the_stack"])
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && words.contains("1 passed"), "{words}");
}

/// A library with a function that calls back; none without a C compiler.
fn library(folder: &std::path::Path, name: &str, padding: usize) -> Option<CString> {
    let source = folder.join(format!("{name}.c"));
    let library = folder.join(format!("lib{name}.so"));
    let padding: String = (0..padding)
        .map(|number| format!("int {name}{number}(int a) {{ return a * {number}; }}\n"))
        .collect();
    let code = format!(
        "{padding}void through(void (*back)(void *), void *data) {{ back(data); __asm__ volatile(\"\"); }}\n"
    );
    std::fs::write(&source, code).unwrap();
    let status = Command::new("cc")
        .args(["-O2", "-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status();
    status
        .ok()?
        .success()
        .then(|| CString::new(library.to_str().unwrap()).unwrap())
}

type Through = unsafe extern "C" fn(unsafe extern "C" fn(*mut c_void), *mut c_void);

/// Loads a library, has it call `back`, and unloads it.
fn call_through(library: &CStr, back: unsafe extern "C" fn(*mut c_void), data: *mut c_void) {
    // SAFETY: a library of ours.
    let handle = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW) };
    assert!(!handle.is_null());
    // SAFETY: as above; the name ends in a zero.
    let symbol = unsafe { libc::dlsym(handle, c"through".as_ptr()) };
    assert!(!symbol.is_null());
    // SAFETY: the function of this name has this type.
    let through = unsafe { std::mem::transmute::<*mut c_void, Through>(symbol) };
    // SAFETY: as the caller says.
    unsafe { through(back, data) };
    // SAFETY: nothing of it is in use any more.
    unsafe { libc::dlclose(handle) };
}

#[test]
fn a_library_in_anothers_place_is_noticed() {
    struct Data {
        images: Images,
        walker: Walker,
        replaced: usize,
        calls: usize,
    }
    unsafe extern "C" fn back(data: *mut c_void) {
        // SAFETY: what was handed to the library.
        let data = unsafe { &mut *data.cast::<Data>() };
        let mut frames = [0; 128];
        let mut walk = data.walker.walk(&data.images, &mut frames);
        while let Some(images) = walk
            .stranger
            .and_then(|stranger| data.images.with_image_at(stranger))
        {
            data.images = images;
            walk = data.walker.walk(&data.images, &mut frames);
        }
        if let Some(address) = data.images.first_replaced(&frames[..walk.depth]) {
            data.replaced += 1;
            data.images = data.images.with_image_at(address).unwrap();
            walk = data.walker.walk(&data.images, &mut frames);
        }
        assert_eq!(data.images.first_replaced(&frames[..walk.depth]), None);
        assert_eq!(walk.end, StackEnd::Root, "{walk:?}");
        data.calls += 1;
    }
    let folder = tempfile::tempdir().unwrap();
    let (Some(one), Some(other)) = (
        library(folder.path(), "one", 1),
        library(folder.path(), "other", 40),
    ) else {
        return tracesmith_skip::without("cc", "");
    };
    let images = Images::list(None);
    if images.with_image_at(library as *const () as u64).is_none() {
        return tracesmith_skip::without("glibc 2.35", "_dl_find_object");
    }
    let mut data = Data {
        images,
        walker: Walker::of_this_thread(),
        replaced: 0,
        calls: 0,
    };
    for _ in 0..10 {
        call_through(&one, back, (&raw mut data).cast());
        call_through(&other, back, (&raw mut data).cast());
    }
    assert_eq!(data.calls, 20);
    println!("{} of 20 took another's place", data.replaced);
}

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn walks_go_on_while_libraries_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = library(folder.path(), "third", 3) else {
        return tracesmith_skip::without("cc", "");
    };
    unsafe extern "C" fn nothing(_: *mut c_void) {}
    static DONE: AtomicBool = AtomicBool::new(false);
    static WALKS: AtomicUsize = AtomicUsize::new(0);
    let images = RwLock::new(std::sync::Arc::new(Images::list(None)));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut walker = Walker::of_this_thread();
                while !DONE.load(Ordering::Relaxed) {
                    let images = std::sync::Arc::clone(&images.read().unwrap());
                    let mut frames = [0; 128];
                    assert_eq!(walker.walk(&images, &mut frames).end, StackEnd::Root);
                    WALKS.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // Walks that really fall between: threads take a while to start where others use the machine.
        let begun = Instant::now();
        let mut rounds = 0;
        while rounds < 300 || (WALKS.load(Ordering::Relaxed) < 300 && begun.elapsed() < PATIENCE) {
            rounds += 1;
            call_through(&library, nothing, std::ptr::null_mut());
            let before = std::sync::Arc::clone(&images.read().unwrap());
            *images.write().unwrap() = std::sync::Arc::new(Images::list(Some(&before)));
        }
        DONE.store(true, Ordering::Relaxed);
    });
    assert!(WALKS.load(Ordering::Relaxed) >= 300);
}

#[test]
fn a_library_that_comes_again_and_again_is_mapped_once_issue_26() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = library(folder.path(), "again", 3) else {
        return tracesmith_skip::without("cc", "");
    };
    unsafe extern "C" fn learn(images: *mut c_void) {
        // SAFETY: what was handed to the library.
        let images = unsafe { &mut *images.cast::<Images>() };
        *images = Images::list(Some(images));
    }
    let mut images = Images::list(None);
    for _ in 0..20 {
        // It is learned while it is there, and again when it has gone.
        call_through(&library, learn, (&raw mut images).cast());
        images = Images::list(Some(&images));
    }
    unsafe extern "C" fn learn_anew(_: *mut c_void) {
        // As if it had come to another place.
        drop(Images::list(None));
    }
    for _ in 0..20 {
        call_through(&library, learn_anew, std::ptr::null_mut());
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let name = library.to_str().unwrap();
    let mapped = maps.lines().filter(|line| line.ends_with(name)).count();
    assert_eq!(mapped, 1, "{maps}");
}
