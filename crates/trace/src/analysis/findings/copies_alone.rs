//! Copies that nothing runs beside.

use super::{Facts, Finding, longest_alone, percent};
use crate::analysis::copies::CopyRow;
use crate::reconstruct::OpClass;
use crate::units;

/// Share of the time from which on it is said.
const WORTH: f64 = 0.05;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let Some(device) = facts.device() else {
        return Vec::new();
    };
    let alone = device.breakdown.copy_exposed_ns;
    if alone == 0 || (alone as f64) < WORTH * facts.span_ns as f64 {
        return Vec::new();
    }
    vec![Finding {
        rule: "copies_alone",
        sentence: format!(
            "{} of the time {} copies or sets memory while no kernel runs ({})",
            percent(alone, facts.span_ns),
            device.name,
            units::nanos(alone)
        ),
        advice: advice(facts, device.device).into(),
        assumption: "kernels that do not need the data could run in the meantime",
        saves_ns: Some(alone),
        saves_share: None,
        evidence: longest_alone(facts, device.device, |class| {
            matches!(class, OpClass::Copy | OpClass::Set)
        }),
    }]
}

/// What is left to do: copies may be on a stream of their own, or from pinned memory, already.
fn advice(facts: &Facts<'_>, device: u32) -> String {
    let activity = facts.activity;
    let mut computes = vec![false; activity.lanes.len()];
    let mut copies = vec![false; activity.lanes.len()];
    for op in activity.ops.ids() {
        let lane = activity.ops.lane[op.index()].index();
        match activity.ops.class(op) {
            OpClass::Compute => computes[lane] = true,
            OpClass::Copy | OpClass::Set => copies[lane] = true,
            OpClass::Communication => {}
        }
    }
    let lanes = activity.lanes.iter().zip(copies.iter().zip(&computes));
    let mut here = lanes.filter(|(lane, (copies, _))| lane.device.0 == device && **copies);
    let is_apart = here.all(|(_, (_, computes))| !computes);
    let rows = facts.summary.copies.rows.iter();
    let rows = rows.filter(|row| row.device == device);
    let nanos = |is_counted: fn(&CopyRow) -> bool| -> u64 {
        let rows = rows.clone().filter(|row| is_counted(row));
        rows.map(|row| row.durations.total_ns).sum()
    };
    let is_pageable = 2 * nanos(|row| row.is_pageable) > nanos(|_| true);
    let mut advice = "Start copies earlier, so that they run beside kernels".to_owned();
    if !is_apart {
        advice += ": on a separate stream";
    }
    if is_pageable {
        advice += match is_apart {
            true => ": from pinned memory",
            false => ", from pinned memory",
        };
    }
    advice
}
