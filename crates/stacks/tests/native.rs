//! Native stacks against the system's own unwinder, and stacks that are odd.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(
    clippy::unwrap_used,
    unsafe_code,
    clippy::print_stdout,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]

use std::hint::black_box;

use tracesmith_stacks::{Images, StackEnd, Walk, Walker};

/// Both unwinders from one place; addresses of the frames that they share, the innermost first.
#[inline(never)]
fn both(walker: &mut Walker, images: &Images) -> (Vec<u64>, Vec<u64>, Walk) {
    let mut frames = [0; 512];
    let walk = walker.walk(images, &mut frames);
    let mut system = Vec::new();
    backtrace::trace(|frame| {
        system.push(frame.ip() as u64);
        true
    });
    (frames[..walk.depth].to_vec(), system, walk)
}

/// Everything above the function that took both: there the addresses are the same.
fn assert_same((ours, system, walk): (Vec<u64>, Vec<u64>, Walk)) -> usize {
    assert_eq!(walk.end, StackEnd::Root, "{walk:?}");
    assert_eq!(walk.stranger, None);
    let above = &ours[1..];
    let at = system.iter().position(|address| Some(address) == above.first());
    let at = at.unwrap_or_else(|| panic!("{ours:x?}\n{system:x?}"));
    // The system's unwinder also lists the zero, or the start, that a stack ends in.
    let rest: Vec<u64> = system[at..]
        .iter()
        .copied()
        .filter(|address| *address != 0)
        .collect();
    assert_eq!(above, rest);
    above.len()
}

#[inline(never)]
fn recurse(depth: u32, walker: &mut Walker, images: &Images) -> (Vec<u64>, Vec<u64>, Walk) {
    if depth == 0 {
        return both(walker, images);
    }
    let found = recurse(depth - 1, walker, images);
    black_box(depth);
    found
}

#[test]
fn stacks_are_those_of_the_systems_unwinder() {
    let images = Images::list(None);
    let mut walker = Walker::of_this_thread();
    for depth in [0, 1, 7, 50, 300] {
        let frames = assert_same(recurse(depth, &mut walker, &images));
        assert!(frames > depth as usize);
    }
}

#[test]
fn what_calls_back_through_c_is_walked_too() {
    unsafe extern "C" fn compare(_: *const libc::c_void, _: *const libc::c_void) -> libc::c_int {
        let images = Images::list(None);
        let mut walker = Walker::of_this_thread();
        assert_same(both(&mut walker, &images));
        CALLED.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        0
    }
    static CALLED: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let mut numbers = [3u32, 1, 2];
    // SAFETY: three numbers of four bytes.
    unsafe { libc::qsort(numbers.as_mut_ptr().cast(), 3, 4, Some(compare)) };
    assert!(CALLED.load(std::sync::atomic::Ordering::Relaxed) > 0);
}

#[test]
fn a_deep_stack_is_cut_at_the_room_that_there_is() {
    #[inline(never)]
    fn deep(depth: u32, walker: &mut Walker, images: &Images, frames: &mut [u64]) -> Walk {
        if depth == 0 {
            return walker.walk(images, frames);
        }
        let walk = deep(depth - 1, walker, images, frames);
        black_box(depth);
        walk
    }
    let thread = std::thread::Builder::new().stack_size(64 << 20);
    let thread = thread.spawn(|| {
        let images = Images::list(None);
        let mut walker = Walker::of_this_thread();
        let mut frames = [0; 64];
        let walk = deep(10_000, &mut walker, &images, &mut frames);
        assert_eq!((walk.depth, walk.end), (64, StackEnd::Limit));
        let mut frames = vec![0; 20_000];
        let walk = deep(10_000, &mut walker, &images, &mut frames);
        assert!(walk.depth > 10_000 && walk.end == StackEnd::Root, "{walk:?}");
    });
    thread.unwrap().join().unwrap();
}

#[test]
fn an_image_is_learned_when_it_is_met() {
    // Nothing is known but the program itself, as if all libraries had been loaded since.
    let all = Images::list(None);
    let nothing = Images::default();
    let here = nothing.with_image_at(an_image_is_learned_when_it_is_met as *const () as u64);
    let Some(mut images) = here else {
        return tracesmith_skip::without("glibc 2.35", "_dl_find_object");
    };
    let mut walker = Walker::of_this_thread();
    let mut learned = 1;
    loop {
        let mut frames = [0; 128];
        let walk = walker.walk(&images, &mut frames);
        let Some(stranger) = walk.stranger else {
            assert_eq!(walk.end, StackEnd::Root);
            break;
        };
        images = images.with_image_at(stranger).unwrap();
        learned += 1;
    }
    assert!(learned >= 2, "the C library at least");
    for image in images.iter() {
        let known = all.find(image.start).unwrap();
        assert_eq!(
            (image.start, image.end, &image.build_id),
            (known.start, known.end, &known.build_id)
        );
    }
    assert_same(both(&mut walker, &images));
    assert!(images.with_image_at(8).is_none());
}

#[test]
fn many_threads_walk_at_once() {
    let images = Images::list(None);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut walker = Walker::of_this_thread();
                for depth in 0..200 {
                    assert_same(recurse(depth % 20, &mut walker, &images));
                }
            });
        }
    });
}

#[test]
fn images_have_names_numbers_and_tables() {
    let images = Images::list(None);
    let here = images
        .find(images_have_names_numbers_and_tables as *const () as u64)
        .unwrap();
    assert!(here.path.is_empty(), "the program itself has no name: {here:?}");
    assert!(!here.build_id.is_empty() || cfg!(target_env = "musl"), "{here:?}");
    let libc = images.find(libc::qsort as *const () as u64).unwrap();
    assert!(libc.path.to_str().unwrap().contains("libc"), "{libc:?}");
    assert_eq!(libc.build_id.len(), 20);
    assert!(images.find(8).is_none());
    assert!(images.find(u64::MAX).is_none());
}

/// What a program is told that stacks take counts so many bytes for each thread. Runs in a process of its own.
#[test]
#[cfg(target_env = "gnu")]
fn what_a_thread_keeps_to_begin_with_is_small() {
    let taken = || {
        // SAFETY: it has no conditions.
        let info = unsafe { libc::mallinfo2() };
        info.uordblks + info.hblkhd
    };
    let before = taken();
    let (walker, stacks) = (Walker::of_this_thread(), tracesmith_stacks::Interned::default());
    let kept = taken() - before;
    drop((walker, stacks));
    assert!((64 << 10..160 << 10).contains(&kept), "{kept} bytes");
}
