//! The device waits for single launches that take very long.

use tracesmith_format::Projection;
use tracesmith_format::tables::Kernel;

use super::{Evidence, Facts, Finding, idle_before, many, percent};
use crate::analysis::idle::{DeviceIdle, LongGap};
use crate::reconstruct::OpTable;
use crate::units;

/// Share of the time from which on it is reported.
const WORTH: f64 = 0.05;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let Some(device) = facts.worst(|device| device.slow_launches().1) else {
        return Vec::new();
    };
    let (calls, nanos) = device.slow_launches();
    if !facts.is_worth(nanos, WORTH) {
        return Vec::new();
    }
    let slowest: Vec<&LongGap> = device.idle.map(slowest).unwrap_or_default();
    let nanos_of =
        |gaps: &mut dyn Iterator<Item = &&LongGap>| gaps.map(|gap| gap.launch_call_ns).sum::<u64>();
    let first = nanos_of(&mut slowest.iter().filter(|gap| is_first_launch(facts, gap)));
    let are_first = 2 * first > nanos_of(&mut slowest.iter());
    let (advice, assumption) = match are_first {
        true => (
            "A first launch loads or compiles device code: launch each kernel once before the part that you measure, or \
             set CUDA_MODULE_LOADING=EAGER",
            "the calls are slow because they load code or set up the device, and later launches are fast",
        ),
        false => (
            "The kernels had been launched before, so the calls load no code: the CPU was held up inside them. Look for \
             other load on the CPU cores, and for threads that call CUDA at the same time and share the driver's locks",
            "launches of these kernels are fast unless the CPU is held up",
        ),
    };
    vec![Finding {
        rule: "slow_launches",
        sentence: format!(
            "{} of the time {} is idle during {} of more than 100 µs ({} in total)",
            percent(nanos, facts.span_ns),
            device.name(),
            many(calls, "launch call"),
            units::nanos(nanos)
        ),
        advice: advice.into(),
        assumption,
        saves_ns: Some(nanos),
        saves_share: None,
        evidence: slowest
            .into_iter()
            .map(|gap| Evidence {
                cause_ns: Some(gap.launch_call_ns),
                ..idle_before(gap)
            })
            .collect(),
    }]
}

/// The longest gaps with such a call.
fn slowest(idle: &DeviceIdle) -> Vec<&LongGap> {
    let long = idle.longest.iter();
    let long = long.filter(|gap| gap.is_slow_launch() && gap.overhead_ns == 0);
    let long: Vec<&LongGap> = long.take(3).collect();
    match long.is_empty() {
        true => idle.slowest_launch.iter().collect(),
        false => long,
    }
}

/// Whether the kernel that ends a gap is the first of its name and process in the whole trace, of which only a part may
/// be analyzed.
fn is_first_launch(facts: &Facts<'_>, gap: &LongGap) -> bool {
    let (trace, ops) = (facts.trace, &facts.activity.ops);
    let is_it = |at: &usize| {
        ops.row[*at] == gap.next_row && ops.kinds[ops.kind[*at] as usize].table == OpTable::Kernels
    };
    let op = (0..ops.len()).find(is_it);
    let Some(op) = op.filter(|_| gap.next_table == OpTable::Kernels) else {
        return false;
    };
    let process = facts.activity.lane(ops.lane[op]).process;
    let columns = ["start", "place.process", "shape.name", "shape.demangled"];
    let Ok(wanted) = Projection::of::<Kernel>(&columns) else {
        return false;
    };
    let earlier = trace.kernels.find_row(
        &wanted,
        |block| trace.block_span(block).0.0 < ops.start[op],
        |block, rows, row| {
            let shape = rows.shape.get(row);
            let name = match shape.demangled.is_some() {
                true => shape.demangled,
                false => shape.name,
            };
            let start = trace.clock_map.convert(block.header.clock, rows.start[row]);
            rows.place.get(row).process == process
                && start.time.0 < ops.start[op]
                && trace.string(name) == gap.next
        },
    );
    earlier.is_none()
}
