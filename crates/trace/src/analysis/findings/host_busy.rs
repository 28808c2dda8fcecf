//! The device waits for the host's own work between calls.

use super::{Facts, Finding, many, percent};
use crate::analysis::idle::IdleCause;

/// Share of the time from which on it is said.
const WORTH: f64 = 0.1;

/// What helps if the time goes to loading data.
const LOAD_AHEAD: &str = "Prepare data ahead of time, in other processes or threads. With PyTorch, use DataLoader with \
                          num_workers > 0 and pin_memory=True";

/// Share of the CPU's time from which on a place is the main one.
const MAIN: f64 = 0.5;

/// Whether the CPU mostly loads data, by the names of its ranges and functions.
fn loads_data(facts: &Facts<'_>) -> bool {
    let host = &facts.summary.host;
    let lists = [&host.ranges, &host.functions, &host.lines];
    lists.into_iter().any(|rows| {
        let main = rows.first().filter(|row| row.share >= MAIN);
        main.is_some_and(|row| {
            let name = row.name.to_ascii_lowercase();
            [
                "dataloader",
                "load_batch",
                "next_batch",
                "get_batch",
                "data_loading",
            ]
            .iter()
            .any(|word| name.contains(word))
                || ["load", "data", "dataloading", "fetch"].contains(&name.as_str())
        })
    })
}

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let Some((device, idle, gaps)) = facts.idle_worth(IdleCause::HostBusy, WORTH) else {
        return Vec::new();
    };
    let mut sentence = format!(
        "{} of the time {} is idle, waiting for the CPU to launch work ({})",
        percent(idle, facts.span_ns),
        device.name(),
        many(gaps, "gap")
    );
    let places = facts.summary.host.main_places();
    if !places.is_empty() {
        let whose = match facts.summary.idle.devices.len() {
            0 | 1 => "this CPU time",
            _ => "the CPU time that all GPUs wait for",
        };
        // The same time is listed by range or operator and by line.
        let overlap = if places.len() > 1 { "; these overlap" } else { "" };
        sentence = format!("{sentence}. Of {whose}, {}{overlap}", places.join(", and "));
    }
    vec![Finding {
        rule: "host_busy",
        sentence,
        advice: match loads_data(facts) {
            true => LOAD_AHEAD.into(),
            false => facts.program.less_host_work(),
        },
        assumption: "the launching thread computes between its CUDA calls, and does not wait there for data, a lock or a process",
        saves_ns: Some(idle),
        saves_share: None,
        evidence: device.gaps_of(IdleCause::HostBusy),
    }]
}
