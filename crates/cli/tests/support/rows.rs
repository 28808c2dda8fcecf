//! Rows of a trace as tests ask for them.

#![allow(dead_code, reason = "not every test file needs all of it")]

use std::collections::BTreeMap;

use tracesmith_format::tables::{ApiCall, HealthCause, Kernel};
use tracesmith_format::{Columns, ProcessId, Table};
use tracesmith_trace::{HealthItem, TableView, Trace};

/// All rows of a table, in the order of the file.
pub fn rows<T: Table>(table: &TableView<T>) -> Vec<T> {
    let blocks = table.columns().map(|(_, columns)| columns);
    blocks
        .flat_map(|columns| (0..columns.len()).map(|row| columns.row(row)))
        .collect()
}

/// The calls by what joins them with their work.
pub fn calls(trace: &Trace) -> BTreeMap<(ProcessId, u64), ApiCall> {
    rows(&trace.api_calls)
        .into_iter()
        .map(|call| ((call.caller.process, call.correlation.0), call))
        .collect()
}

/// How often each function was called.
pub fn call_counts(trace: &Trace) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for call in rows(&trace.api_calls) {
        *counts.entry(trace.string(call.shape.name)).or_default() += 1;
    }
    counts
}

/// Kernels, each of which must have times, a name, and a call that launched it before it began.
pub fn joined_kernels(trace: &Trace) -> Vec<Kernel> {
    let calls = calls(trace);
    let kernels = rows(&trace.kernels);
    for kernel in &kernels {
        let call = &calls[&(kernel.place.process, kernel.correlation.0)];
        assert!(
            call.start <= kernel.start && kernel.start <= kernel.end,
            "{kernel:?}"
        );
        assert!(
            kernel.shape.name.is_some() && kernel.place.device.is_some(),
            "{kernel:?}"
        );
    }
    kernels
}

/// What the trace's health says of a cause.
pub fn health(trace: &Trace, cause: HealthCause) -> Vec<HealthItem> {
    let recorded = trace.health().recorded;
    recorded.into_iter().filter(|item| item.cause == cause).collect()
}

/// Nothing was lost.
pub fn assert_whole(trace: &Trace) {
    let health = trace.health();
    assert!(health.is_good(), "{health:?}");
}
