//! The GPUs determine the time: nothing is wrong, and only faster kernels save time.

use super::{Facts, shown};
use crate::analysis::kernels::share;
use crate::reconstruct::OpTable;

/// Share of the time from which on a device is busy all the time.
const BUSY: f64 = 0.8;
/// And share of the time in which it computes.
const COMPUTES: f64 = 0.5;

/// Share of the time of all kernels from which on one is named.
const WORTH: f64 = 0.1;
/// So many are named.
const MOST: usize = 3;
/// With so many letters of their names.
const LONGEST: usize = 60;

/// Which kernels take the time, if all devices that do a good part of the work are busy with them.
pub(super) fn sentence(facts: &Facts<'_>) -> Option<String> {
    let of_span = |nanos: u64| share(nanos, facts.span_ns);
    let mut least: Option<f64> = None;
    for device in facts.devices() {
        let breakdown = &device.utilization.breakdown;
        let busy = of_span(breakdown.busy_ns);
        if busy < BUSY || of_span(breakdown.compute_ns) < COMPUTES {
            return None;
        }
        least = Some(least.map_or(busy, |least: f64| least.min(busy)));
    }
    let busy = 100.0 * least?;
    let rows = &facts.summary.kernels.rows;
    let most = rows.first()?;
    let main: Vec<String> = rows
        .iter()
        .take_while(|row| row.share >= WORTH)
        .take(MOST)
        .map(|row| {
            let mut name = shown(OpTable::Kernels, &row.name);
            if let Some((end, _)) = name.char_indices().nth(LONGEST) {
                name.truncate(end);
                name.push('…');
            }
            format!("{name} takes {:.0} %", 100.0 * row.share)
        })
        .collect();
    let kernels = match main.is_empty() {
        true => format!("no kernel takes more than {:.1} %", 100.0 * most.share),
        false => main.join(", "),
    };
    Some(format!(
        "GPU-bound: busy {busy:.0} % of the time; {kernels} of the kernel time"
    ))
}
