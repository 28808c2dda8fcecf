//! Kernels that take less time than the calls that launch them.

use super::{DeviceFacts, Evidence, Facts, Finding, many};
use crate::analysis::idle::IdleCause;
use crate::units;

/// Share of all kernels from which on it is said.
const WORTH: f64 = 0.3;
/// And share of the time, or of the time of steps, in their calls.
const WORTH_TIME: f64 = 0.05;
/// And share of the time in which the device waits for the host. Launches of a device that is busy hold nothing up.
const WORTH_IDLE: f64 = 0.05;
/// Fewer are not worth fusing.
const FEWEST: u64 = 10;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let short = &facts.summary.launches.short_kernels;
    let waits = |device: DeviceFacts<'_>| {
        device.idle_of(IdleCause::LaunchGap).0 + device.idle_of(IdleCause::HostBusy).0
    };
    let idle = facts.devices().map(waits).max().unwrap_or(0);
    // A start or a warm-up outside of steps hides nothing.
    let (call_share, of) = match short.step_call_share {
        Some(share) if share > short.call_share => (share, "the time of a step"),
        _ => (short.call_share, "the time"),
    };
    let is_worth = short.share >= WORTH && call_share >= WORTH_TIME && facts.is_worth(idle, WORTH_IDLE);
    if short.count < FEWEST || !is_worth {
        return Vec::new();
    }
    let worst = short.worst_row.map(|row| Evidence {
        what: "kernel with the largest difference to its launch call".to_owned(),
        table: "kernels",
        row: Some(u64::from(row)),
        start_ns: short.worst_start_ns,
        offset_ns: 0,
        end_ns: short.worst_end_ns,
        cause_ns: None,
    });
    vec![Finding {
        rule: "short_kernels",
        sentence: format!(
            "{} ({:.0} %) take less time than their launch calls: {} of GPU work for {} of launch calls. A thread \
             spends {:.0} % of {of} in them",
            many(short.count, "kernel"),
            100.0 * short.share,
            units::nanos(short.kernel_ns),
            units::nanos(short.call_ns),
            100.0 * call_share
        ),
        advice: match facts.program.uses_graphs {
            true => "Fuse them, or add them to the graphs that the program launches",
            false => "Fuse them, or launch them together in a CUDA graph",
        }
        .into(),
        assumption: "the kernels do not depend on results that the CPU reads in between",
        saves_ns: None,
        saves_share: None,
        evidence: worst.into_iter().collect(),
    }]
}
