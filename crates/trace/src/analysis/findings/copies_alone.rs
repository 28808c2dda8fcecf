//! Copies that nothing runs beside.

use super::{DeviceFacts, Facts, Finding, longest_alone, percent};
use crate::analysis::copies::CopyRow;
use crate::reconstruct::OpClass;
use crate::units;

/// Share of the time from which on it is said.
const WORTH: f64 = 0.05;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let alone = |device: &DeviceFacts<'_>| device.utilization.breakdown.copy_exposed_ns;
    let Some(device) = facts.worst(alone) else {
        return Vec::new();
    };
    let (alone, device) = (alone(&device), device.utilization);
    if !facts.is_worth(alone, WORTH) {
        return Vec::new();
    }
    // Copies can be hidden only by kernels that run without copies beside them.
    let breakdown = &device.breakdown;
    let kernels_alone = breakdown.busy_ns - alone;
    let kernels_alone = kernels_alone.saturating_sub(breakdown.copy_hidden_ns);
    let is_mostly_copies = kernels_alone < alone / 2;
    vec![Finding {
        rule: "copies_alone",
        sentence: format!(
            "{} of the time {} copies or sets memory while no kernel runs ({})",
            percent(alone, facts.span_ns),
            device.name,
            units::nanos(alone)
        ),
        advice: match is_mostly_copies {
            true => format!(
                "{}. Overlap with kernels saves at most {}",
                move_less(facts, device.device),
                units::nanos(kernels_alone)
            )
            .into(),
            false => advice(facts, device.device).into(),
        },
        assumption: match is_mostly_copies {
            true => "none of the data has to be copied each time",
            false => "kernels that do not need the data could run in the meantime",
        },
        saves_ns: Some(match is_mostly_copies {
            true => alone,
            false => alone.min(kernels_alone),
        }),
        saves_share: None,
        evidence: longest_alone(facts, device.device, |class| {
            matches!(class, OpClass::Copy | OpClass::Set)
        }),
    }]
}

/// What to do if there are too few kernels to hide the copies: which data to move less of.
fn move_less(facts: &Facts<'_>, device: u32) -> String {
    let rows = facts.summary.copies.rows.iter();
    let rows = rows.filter(|row| row.device == device);
    let of = |direction: &str| -> (u64, u64) {
        let rows = rows.clone().filter(|row| row.direction == direction);
        rows.fold((0, 0), |(nanos, bytes), row| {
            (nanos + row.durations.total_ns, bytes + row.bytes)
        })
    };
    let all: u64 = rows.clone().map(|row| row.durations.total_ns).sum();
    let (to_device, from_device) = (of("host to device"), of("device to host"));
    if 2 * (to_device.0 + from_device.0) <= all {
        return "Move less data: let kernels read the data where it is, and set or copy only what is used"
            .to_owned();
    }
    let ways: Vec<String> = [(to_device, "to the GPU"), (from_device, "to the host")]
        .into_iter()
        // A few bytes are results, not data that could stay where it is.
        .filter(|((nanos, _), _)| *nanos >= all / 100)
        .map(|((_, bytes), way)| format!("{} {way}", units::bytes(bytes)))
        .collect();
    let offload = match facts.program.is_torch {
        true => ", for example without CPU offload of parameters or optimizer state",
        false => "",
    };
    format!(
        "Move less data ({}): keep on the GPU what is used again{offload}, or use a smaller data type",
        ways.join(", ")
    )
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
