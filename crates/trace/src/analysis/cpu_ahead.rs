//! When the CPU was ahead of the GPU: launched work had not started.
//!
//! A critical path of CPU code alone is right only if the GPU starts work soon after its launch. If much work waits on
//! the GPU meanwhile, either the CPU had nothing to wait for, or it waited in calls that the trace does not have.

use crate::reconstruct::Activity;

/// From the return of a launch to the start of its work a GPU takes some microseconds. From here on it had other work.
const LONG: u64 = 100_000;

/// Share of the path in CPU code from which on the path consists of it.
const MAIN: f64 = 0.5;

/// Share of that code in which the CPU was ahead from which on the path is doubtful. A program that loads data while the
/// GPU computes reaches half of it.
const AHEAD: f64 = 2.0 / 3.0;

/// When launched work of a process had not started, in order and without overlaps.
pub(super) struct CpuAhead {
    times: Vec<(u64, u64)>,
}

impl CpuAhead {
    pub(super) fn of(activity: &Activity) -> Self {
        let (ops, calls) = (&activity.ops, &activity.calls);
        let mut times: Vec<(u64, u64)> = Vec::new();
        for lane in activity.lane_ids() {
            let first = times.len();
            for op in activity.ops_of(lane) {
                let call = ops.call[op.index()];
                let start = ops.start[op.index()];
                if !call.is_some() || calls.end[call.index()].saturating_add(LONG) > start {
                    continue;
                }
                let launched = calls.end[call.index()];
                match times[first..].last_mut() {
                    Some(last) if launched <= last.1 => last.1 = last.1.max(start),
                    _ => times.push((launched, start)),
                }
            }
        }
        times.sort_unstable();
        times.dedup_by(|next, last| {
            let overlaps = next.0 <= last.1;
            if overlaps {
                last.1 = last.1.max(next.1);
            }
            overlaps
        });
        CpuAhead { times }
    }

    /// How much of some stretches of time lies in these.
    pub(super) fn within(&self, stretches: impl Iterator<Item = (u64, u64)>) -> u64 {
        let mut nanos = 0;
        for (from, to) in stretches {
            let first = self.times.partition_point(|time| time.1 <= from);
            let touched = self.times[first..].iter().take_while(|time| time.0 < to);
            nanos += touched
                .map(|time| time.1.min(to).saturating_sub(time.0.max(from)))
                .sum::<u64>();
        }
        nanos
    }
}

/// Whether a path of CPU code is doubtful: most of the path is CPU code, and the CPU was ahead in most of that.
pub(super) fn is_doubtful(path_ns: u64, host_ns: u64, ahead_ns: u64) -> bool {
    host_ns as f64 >= MAIN * path_ns as f64 && ahead_ns as f64 >= AHEAD * host_ns as f64 && ahead_ns > 0
}
