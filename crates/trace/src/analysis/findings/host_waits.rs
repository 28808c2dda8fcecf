//! The host waits for the device, and the device then waits for the host.

use rustc_hash::FxHashMap;
use tracesmith_format::StackId;

use super::{DeviceFacts, Evidence, Facts, Finding, many, percent};
use crate::analysis::idle::IdleCause;
use crate::analysis::source_line::source_line;
use crate::reconstruct::{CallClass, CallId, Window};

/// Share of the time in such calls from which on it is said.
const WORTH: f64 = 0.05;
/// And share of the time that it could save. A host that waits for a busy device holds nothing up.
const WORTH_IDLE: f64 = 0.02;

/// Waits in one function from one line of code.
#[derive(Default)]
struct Waits {
    count: u64,
    nanos: u64,
    /// The longest without profiler overhead, else the first.
    longest: usize,
    longest_nanos: u64,
    /// The thread that was looked at last, and its time.
    thread: usize,
    of_thread: u64,
    /// The time of the thread that waits most. Threads wait at the same time, so the sum may be more than there is.
    most: u64,
}

impl Waits {
    fn add(&mut self, thread: usize, nanos: u64) {
        if thread != self.thread {
            (self.thread, self.of_thread) = (thread, 0);
        }
        self.count += 1;
        self.nanos += nanos;
        self.of_thread += nanos;
        self.most = self.most.max(self.of_thread);
    }
}

/// The time that a device is idle because of waits. A launch is seen in full only because the wait emptied the queue.
fn idle_of(device: &DeviceFacts<'_>) -> u64 {
    let after = device.idle.map_or(0, |idle| idle.launches_after_sync_ns);
    device.idle_of(IdleCause::HostSync).0 + after
}

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let Some(device) = facts.worst(idle_of) else {
        return Vec::new();
    };
    let activity = facts.activity;
    let calls = &activity.calls;
    let mut groups: FxHashMap<(u32, StackId), Waits> = FxHashMap::default();
    let window = Window {
        from: Some(facts.span.0),
        to: Some(facts.span.1),
    };
    let mut all = 0;
    // Other processes wait at the same time, for devices of their own.
    let processes = device.processes(activity);
    let threads = calls
        .threads
        .iter()
        .filter(|thread| processes.contains(&thread.process));
    let all_calls = threads
        .enumerate()
        .flat_map(|(number, thread)| thread.calls.clone().map(move |at| (number, at)));
    for (thread, at) in all_calls {
        if calls.class(at) != CallClass::Sync
            || calls.is_nested(at)
            || !window.touches(calls.start[at], calls.end[at])
        {
            continue;
        }
        let (start, end) = window.clipped(calls.start[at], calls.end[at]);
        let stack = calls.stack.get(at).copied().unwrap_or(StackId::NONE);
        let overhead = match activity.overheads.is_empty() {
            true => 0,
            false => activity.overheads.profiler_nanos(
                calls.thread_of(CallId(at as u32)),
                calls.start[at],
                calls.end[at],
            ),
        };
        let nanos = (end - start).saturating_sub(overhead);
        let waits = groups.entry((calls.function[at], stack)).or_insert(Waits {
            longest: at,
            thread,
            ..Waits::default()
        });
        waits.add(thread, nanos);
        // A wait in which the profiler flushed its buffers is no evidence.
        let length = calls.end[at] - calls.start[at];
        if overhead == 0 && length > waits.longest_nanos {
            (waits.longest, waits.longest_nanos) = (at, length);
        }
        all += nanos;
    }
    // The device stood idle for some of that time: the waits share it by their length.
    let idle = idle_of(&device);
    let mut findings: Vec<Finding> = groups
        .into_iter()
        .filter(|(_, waits)| waits.most > 0 && waits.most as f64 >= WORTH * facts.span_ns as f64)
        .map(|((function, stack), waits)| {
            let Waits {
                count,
                nanos,
                longest,
                most,
                ..
            } = waits;
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
                    percent(most, facts.span_ns),
                    many(count, &format!("{name} call"))
                ),
                advice: "Wait later or less often: read results back asynchronously, and only when they are needed".into(),
                assumption: "the waits share the idle time after them by their length",
                saves_ns: Some(((idle as f64 * part) as u64).min(nanos)),
                saves_share: None,
                evidence: vec![Evidence {
                    what: format!("the longest {name}"),
                    table: "api_calls",
                    row: calls.row_of(facts.trace, CallId(longest as u32)),
                    start_ns: call.start,
                    offset_ns: 0,
                    end_ns: call.end,
                    cause_ns: None,
                }],
            }
        })
        .filter(|finding| finding.saves_ns.unwrap_or(0) as f64 >= WORTH_IDLE * facts.span_ns as f64)
        .collect();
    findings.sort_by(|a, b| a.sentence.cmp(&b.sentence));
    findings
}
