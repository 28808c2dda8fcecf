//! What stacks cost: walks over native frames beside the system's unwinder, and over Python frames inside every
//! interpreter of the machine.
//!
//! A native walk is repeated on one stack, with what a launch does besides: its words are hashed and found again. A Python
//! walk runs where it is meant to: in a library that Python code has called. It is repeated there on one stack of 15
//! frames, so what is printed is a walk over memory that the caches hold; a program's own work may have driven it out.
//! `cargo bench -p tracesmith-bench --bench stacks`
#![allow(clippy::print_stdout, reason = "the table is what this program is for")]

#[path = "../../crates/stacks/tests/python/interpreters.rs"]
mod interpreters;

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use interpreters::Interpreter;
use tracesmith_bench::figure;
use tracesmith_stacks::{Images, Interned, Walker};

const ASKED: &str = "at most 500 ns (191 for 3.8 frames before)";

fn main() {
    native();
    python();
}

/// Stacks of several depths.
///
/// A walk goes the way of the last one as long as that leads anywhere, so what it costs depends on what came before: the
/// same stack, one that shares all but the innermost frames, one that shares nothing but `main`. And it depends on what the
/// program did meanwhile: real ones drive a good part of it out of the caches.
fn native() {
    figure::print_head("a stack that was taken before: walk, hash, number; median / best of 101 runs");
    let images = Images::list(None);
    let mut taker = Taker {
        images: &images,
        walker: Walker::of_this_thread(),
        known: Interned::default(),
        frames: [0; 256],
        depth: 0,
    };
    let mut others = vec![0u8; 4 << 20];
    for depth in [10, 20, 40, 70] {
        at_depth::<0>(depth, &mut || taker.measure(depth, &mut others));
        let mut taken = || {
            at_depth::<0>(depth, &mut || taker.take());
            at_depth::<1>(depth, &mut || taker.take());
        };
        let both = median(&mut times(500, &mut taken));
        let mut empty = || {
            at_depth::<0>(depth, &mut || {});
            at_depth::<1>(depth, &mut || {});
        };
        let calls = median(&mut times(500, &mut empty));
        let name = format!("{} native frames, nothing in common with the last", taker.depth);
        figure::print(&name, format!("{:.0} ns", (both - calls) / 2.0), "");
    }
}

struct Taker<'a> {
    images: &'a Images,
    walker: Walker,
    known: Interned,
    frames: [u64; 256],
    /// Of the last stack.
    depth: usize,
}

impl Taker<'_> {
    #[inline(never)]
    fn take(&mut self) {
        let walk = self.walker.walk(self.images, black_box(&mut self.frames));
        black_box(self.known.find(walk.hash, || 1));
        self.depth = walk.depth;
    }

    fn measure(&mut self, depth: u32, others: &mut [u8]) {
        self.take();
        let name = format!("{} native frames", self.depth);
        let asked = if depth == 40 {
            "at most 1,000 with CUPTI's callback"
        } else {
            ""
        };
        let same = shown(times(1000, &mut || self.take()));
        figure::print(&format!("{name}, the same as the last"), same, asked);
        let mut places = (2..12).cycle();
        let mut one_of_ten = || at_depth::<1>(places.next().unwrap_or(2), &mut || self.take());
        let in_turn = shown(times(1000, &mut one_of_ten));
        figure::print(
            &format!("{name} and 2 to 11 of ten places in turn"),
            in_turn,
            asked,
        );
        let mut cold = || {
            others
                .iter_mut()
                .step_by(64)
                .for_each(|byte| *byte = byte.wrapping_add(1));
            let start = Instant::now();
            at_depth::<1>(places.next().unwrap_or(2), &mut || self.take());
            start.elapsed().as_nanos() as f64
        };
        let cold = (0..501).map(|_| cold()).collect();
        figure::print(
            &format!("{name}, of ten places, 4 MiB of other memory touched before"),
            shown(cold),
            asked,
        );
        let system = shown(times(50, &mut || {
            backtrace::trace(|frame| !black_box(frame.ip()).is_null());
        }));
        figure::print(&format!("{name}, by the system's unwinder"), system, "");
    }
}

/// Does `work` below so many calls, of one function for each `WAY`.
#[inline(never)]
fn at_depth<const WAY: u32>(calls: u32, work: &mut dyn FnMut()) {
    if calls == 0 {
        work();
    } else {
        at_depth::<WAY>(calls - 1, work);
    }
    black_box(calls + WAY);
}

/// Nanoseconds of many short runs of so many rounds: others may use the machine.
fn times(rounds: u32, work: &mut dyn FnMut()) -> Vec<f64> {
    let run = |_| {
        let start = Instant::now();
        (0..rounds).for_each(|_| work());
        start.elapsed().as_nanos() as f64 / f64::from(rounds)
    };
    (0..101).map(run).collect()
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The median and the best.
fn shown(mut times: Vec<f64>) -> String {
    format!("{:.0} / {:.0} ns", median(&mut times), times[0])
}

fn python() {
    let library = probe();
    figure::print_head("a walk over 15 Python frames: median, best of 501 runs of 1,000");
    let interpreters = interpreters::find();
    let known = || interpreters.iter().filter(|interpreter| interpreter.is_known());
    if known().next().is_none() {
        println!("SKIPPED: {} on this machine", interpreters::KNOWN);
    }
    for interpreter in known() {
        let Times { median, best, frames } = times_of(interpreter, &library);
        assert_eq!(frames, 15, "the script was changed");
        let name = format!("CPython {}", interpreter.version);
        figure::print(&name, format!("{median:.0} / {best:.0} ns"), ASKED);
    }
}

/// The library that walks, built as a release is.
fn probe() -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--release", "--quiet", "--locked"])
        .args(["-p", "tracesmith-stacks", "--example", "probe"])
        .status()
        .expect("cargo runs this bench, so it can be started");
    assert!(built.success(), "the probe cannot be built");
    let bench = std::env::current_exe().expect("a running program has a path");
    // Whatever profile the bench itself is built in, the library is a release.
    let target = bench.ancestors().nth(3);
    let target = target.expect("benches are in a folder of a profile of the target folder");
    target.join("release/examples/libprobe.so")
}

struct Times {
    median: f64,
    best: f64,
    frames: u64,
}

fn times_of(interpreter: &Interpreter, library: &Path) -> Times {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/stacks/tests/python/cases.py");
    let output = Command::new(&interpreter.program)
        .arg("-B")
        .arg(script)
        .arg(library)
        .arg("bench")
        .output()
        .expect("it was started before");
    let answer = String::from_utf8_lossy(&output.stdout);
    let mut numbers = answer.split_whitespace();
    let mut number = || {
        let number = numbers.next().and_then(|number| number.parse::<f64>().ok());
        number.unwrap_or_else(|| panic!("{}: {answer}", interpreter.program.display()))
    };
    Times {
        median: number(),
        best: number(),
        frames: number() as u64,
    }
}
