//! Timing and printing of figures.

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

use std::time::{Duration, Instant};

/// Runs `work` a few times and gives the median time. One run more comes first to warm up.
pub fn median_time(runs: usize, mut work: impl FnMut()) -> Duration {
    work();
    let mut times: Vec<Duration> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// Prints the head of a table of figures.
pub fn print_head(title: &str) {
    println!("\n{title}");
    println!("{:<58} {:>14}   asked", "figure", "measured");
}

/// Prints one figure beside what was asked.
pub fn print(name: &str, measured: String, asked: &str) {
    println!("{name:<58} {measured:>14}   {asked}");
}

/// Millions of rows a second.
pub fn millions_per_second(rows: usize, time: Duration) -> f64 {
    rows as f64 / time.as_secs_f64() / 1e6
}
