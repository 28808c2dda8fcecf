//! Replays, for the tests of them.

#![allow(dead_code, reason = "not every test file needs all of it")]

use serde_json::Value;

use super::stage::{Place, run};

/// Records what lies between cuProfilerStart and cuProfilerStop.
pub const WINDOW: &str = "--record --capture-range cuda-profiler-api";

/// What a replay of t.sbt answers.
pub fn replayed(place: &Place, options: &str) -> (Option<i32>, Value) {
    let run = run(&mut place.tracesmith(&format!("replay t.sbt --format json {options}")));
    let value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}{}", run.stdout, run.stderr));
    (run.code, value)
}

/// The planned calls.
pub fn planned(place: &Place) -> Vec<Value> {
    let (_, plan) = replayed(place, "--mode dry-run");
    plan["commands"].as_array().unwrap().clone()
}
