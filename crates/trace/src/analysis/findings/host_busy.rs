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

/// The share of the CPU's time in which it loads data, by the names of its ranges and functions, if that is most of it.
fn loading_share(facts: &Facts<'_>) -> Option<f64> {
    let host = &facts.summary.host;
    let lists = [&host.ranges, &host.functions, &host.lines];
    let main = lists.into_iter().filter_map(|rows| rows.first());
    let loading = main.filter(|row| row.share >= MAIN && is_of_loading(&row.name));
    loading.map(|row| row.share).max_by(f64::total_cmp)
}

fn is_of_loading(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words = [
        "dataloader",
        "load_batch",
        "next_batch",
        "get_batch",
        "data_loading",
    ];
    words.iter().any(|word| name.contains(word))
        || ["load", "data", "dataloading", "fetch"].contains(&name.as_str())
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
    let loading = loading_share(facts);
    vec![Finding {
        rule: "host_busy",
        sentence,
        advice: match loading {
            Some(_) => LOAD_AHEAD.into(),
            None => facts.program.less_host_work(),
        },
        assumption: "the launching thread computes between its CUDA calls, and does not wait there for data, a lock or a process",
        // The advice is for that place alone.
        saves_ns: Some(match loading {
            Some(share) => (idle as f64 * share.min(1.0)) as u64,
            None => idle,
        }),
        saves_share: None,
        evidence: device.gaps_of(IdleCause::HostBusy),
    }]
}
