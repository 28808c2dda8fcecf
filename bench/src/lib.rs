//! Workloads for the benches: traces that look like real ones, made from a seed.

pub mod figure;
pub mod kineto;
pub mod memory;
pub mod training_trace;
pub mod workload;
