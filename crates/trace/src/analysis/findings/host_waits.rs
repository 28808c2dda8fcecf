//! The host waits for the device, and the device then waits for the host.

use rustc_hash::FxHashMap;
use tracesmith_format::StackId;

use super::{Evidence, Facts, Finding, many, percent};
use crate::analysis::idle::IdleCause;
use crate::analysis::source_line::source_line;
use crate::reconstruct::{CallClass, CallId, Window};

/// Share of the time in such calls from which on it is said.
const WORTH: f64 = 0.05;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let calls = &facts.activity.calls;
    let mut groups: FxHashMap<(u32, StackId), (u64, u64, usize)> = FxHashMap::default();
    let window = Window {
        from: Some(facts.span.0),
        to: Some(facts.span.1),
    };
    let mut all = 0;
    // Other processes wait at the same time, for devices of their own.
    let processes = facts.processes();
    let threads = calls
        .threads
        .iter()
        .filter(|thread| processes.contains(&thread.process));
    for at in threads.flat_map(|thread| thread.calls.clone()) {
        if calls.class(at) != CallClass::Sync
            || calls.is_nested(at)
            || !window.touches(calls.start[at], calls.end[at])
        {
            continue;
        }
        let (start, end) = window.clipped(calls.start[at], calls.end[at]);
        let stack = calls.stack.get(at).copied().unwrap_or(StackId::NONE);
        let group = groups.entry((calls.function[at], stack)).or_insert((0, 0, at));
        *group = (group.0 + 1, group.1 + end - start, group.2);
        if calls.end[at] - calls.start[at] > calls.end[group.2] - calls.start[group.2] {
            group.2 = at;
        }
        all += end - start;
    }
    // The device stood idle for some of that time: the waits share it by their length.
    let (idle, _) = facts.idle_of(IdleCause::HostSync);
    let (busy_after, _) = facts.idle_of(IdleCause::LaunchGap);
    let mut findings: Vec<Finding> = groups
        .into_iter()
        .filter(|(_, (_, nanos, _))| *nanos as f64 >= WORTH * facts.span_ns as f64 && *nanos > 0)
        .map(|((function, stack), (count, nanos, longest))| {
            let name = facts.trace.string(calls.functions[function as usize].0);
            let from = match stack.is_some() {
                true => format!(" from {}", source_line(facts.trace, stack)),
                false => String::new(),
            };
            let part = nanos as f64 / all.max(1) as f64;
            let call = calls.get(CallId(longest as u32));
            Finding {
                rule: "host_waits",
                sentence: format!(
                    "{} of the time the CPU waits in {}{from}",
                    percent(nanos, facts.span_ns),
                    many(count, &format!("{name} call"))
                ),
                advice: "Wait later or less often: read results back asynchronously, and only when they are needed",
                saves_ns: Some((((idle + busy_after) as f64 * part) as u64).min(nanos)),
                saves_share: None,
                evidence: vec![Evidence {
                    what: format!("the longest {name}"),
                    table: "api_calls",
                    row: calls.row_of(facts.trace, CallId(longest as u32)),
                    start_ns: call.start,
                    end_ns: call.end,
                }],
            }
        })
        .collect();
    findings.sort_by(|a, b| a.sentence.cmp(&b.sentence));
    findings
}
