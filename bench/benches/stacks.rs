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

/// Stacks of several depths, each walked again and again.
fn native() {
    figure::print_head("a stack that was taken before: walk, hash, number; median / best of 101 runs");
    let images = Images::learn(None);
    let mut walker = Walker::of_this_thread();
    let mut known = Interned::default();
    for depth in [10, 20, 40, 70] {
        at_depth(depth, &mut || {
            let mut frames = [0; 256];
            let walk = walker.walk(&images, &mut frames);
            let ours = nanos(1000, &mut || {
                let walk = walker.walk(&images, black_box(&mut frames));
                black_box(known.find(&frames[..walk.depth], || 1));
            });
            let system = nanos(50, &mut || {
                backtrace::trace(|frame| !black_box(frame.ip()).is_null());
            });
            let name = format!("{} native frames", walk.depth);
            let asked = if depth == 40 {
                "at most 1,000 with CUPTI's callback"
            } else {
                ""
            };
            figure::print(&name, format!("{ours} ns"), asked);
            figure::print(
                &format!("{name}, by the system's unwinder"),
                format!("{system} ns"),
                "",
            );
        });
    }
}

/// Does `work` below so many calls.
#[inline(never)]
fn at_depth(calls: u32, work: &mut dyn FnMut()) {
    if calls == 0 {
        work();
    } else {
        at_depth(calls - 1, work);
    }
    black_box(calls);
}

/// The median and the best of many short runs of so many rounds: others may use the machine.
fn nanos(rounds: u32, work: &mut dyn FnMut()) -> String {
    let mut times: Vec<f64> = (0..101)
        .map(|_| {
            let start = Instant::now();
            (0..rounds).for_each(|_| work());
            start.elapsed().as_nanos() as f64 / f64::from(rounds)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    format!("{:.0} / {:.0}", times[times.len() / 2], times[0])
}

fn python() {
    let library = probe();
    figure::print_head("a walk over 15 Python frames: median, best of 501 runs of 1,000");
    let interpreters = interpreters::find();
    let known = || interpreters.iter().filter(|interpreter| interpreter.is_known());
    if known().next().is_none() {
        println!("SKIPPED: no interpreter of 3.9 to 3.14 on this machine");
    }
    for interpreter in known() {
        let Times { median, best, frames } = times(interpreter, &library);
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

fn times(interpreter: &Interpreter, library: &Path) -> Times {
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
