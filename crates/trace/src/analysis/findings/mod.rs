//! What is wrong, in plain sentences: one rule a file, each with what it could save and where to look.
//!
//! A rule reports only what is worth the attention: its threshold is in its file. Of the devices that do a
//! good part of the work, each rule reports the one that loses most time to its cause. Shares are of the analyzed time, as
//! those of utilization and idle time. A rule does not advise what the program does already ([`program`]), and states what
//! it assumes.

mod allocations;
mod bad_frees;
mod before_recording;
mod copies_alone;
mod exposed_communication;
mod gpu_bound;
mod host_busy;
mod host_waits;
mod launch_gaps;
mod leaks;
mod pageable_copies;
mod profiler_overhead;
mod program;
mod queued_idle;
mod short_kernels;
mod slow_launches;
mod small_copies;
mod uneven_steps;
mod unknown_idle;

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use tracesmith_format::ProcessId;

use self::program::Program;
use super::copies::CopyRow;
use super::idle::{DeviceIdle, IdleCause, LongGap};
use super::kernels::share;
use super::memory::MemoryReport;
use super::registry::{Analyzer, Answer, Need};
use super::short_name::short_name;
use super::summary::SummaryReport;
use super::utilization::DeviceUtilization;
use crate::model::trace::Trace;
use crate::reconstruct::{Activity, OpClass, OpId, OpTable};
use crate::units;

pub(super) const ANALYZER: Analyzer = Analyzer {
    name: "findings",
    aliases: &[],
    description: "Problems, with advice and what a fix saves at most",
    needs: Need::Nothing,
    run: |analysis, _| {
        let report = Arc::new(analysis.findings(&analysis.summary()?)?);
        Ok(Answer::list("findings", report, |report: &FindingsReport| {
            &report.findings
        }))
    },
};

/// What is wrong, what matters most first.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FindingsReport {
    /// The time that shares are of: the analyzed time, from the first to the last GPU work or as selected.
    pub span_ns: u64,
    /// What was found.
    pub findings: Vec<Finding>,
    /// Which kernels take the time, if the GPUs are busy with them nearly all the time.
    pub gpu_bound: Option<String>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The rule that found it.
    pub rule: &'static str,
    /// What is wrong.
    pub sentence: String,
    /// What may help.
    pub advice: Cow<'static, str>,
    /// What must be so for the finding to be right.
    pub assumption: &'static str,
    /// What it could save at most; none when that cannot be said.
    pub saves_ns: Option<u64>,
    /// The same as a share of that time.
    pub saves_share: Option<f64>,
    /// Where to look.
    pub evidence: Vec<Evidence>,
}

/// Where to look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// What is there.
    pub what: String,
    /// The table.
    pub table: &'static str,
    /// The row in it, where it is one.
    pub row: Option<u64>,
    /// Where it starts.
    pub start_ns: u64,
    /// The same from the start of the trace. Rules leave it to the report.
    pub offset_ns: u64,
    /// Where it ends.
    pub end_ns: u64,
    /// How much of it has the cause that the finding is about; none if all of it has.
    pub cause_ns: Option<u64>,
}

/// What rules look at.
pub(crate) struct Facts<'a> {
    trace: &'a Trace,
    activity: &'a Activity,
    summary: &'a SummaryReport,
    memory: &'a MemoryReport,
    program: Program,
    /// The analyzed time.
    span: (u64, u64),
    span_ns: u64,
}

/// The share of the busiest device's busy time from which on rules look at a device.
const GOOD_PART: f64 = 0.5;

type Rule = fn(&Facts<'_>) -> Vec<Finding>;

/// All rules, with their names.
const RULES: &[(&str, Rule)] = &[
    ("host_waits", host_waits::find),
    ("exposed_communication", exposed_communication::find),
    ("launch_gaps", launch_gaps::find),
    ("slow_launches", slow_launches::find),
    ("profiler_overhead", profiler_overhead::find),
    ("host_busy", host_busy::find),
    ("before_recording", before_recording::find),
    ("queued_idle", queued_idle::find),
    ("unknown_idle", unknown_idle::find),
    ("short_kernels", short_kernels::find),
    ("allocations", allocations::find),
    ("pageable_copies", pageable_copies::find),
    ("small_copies", small_copies::find),
    ("copies_alone", copies_alone::find),
    ("uneven_steps", uneven_steps::find),
    ("leaks", leaks::find),
    ("bad_frees", bad_frees::find),
];

impl FindingsReport {
    /// The names of all rules.
    pub fn rules() -> impl Iterator<Item = &'static str> {
        RULES.iter().map(|(name, _)| *name)
    }

    /// Asks all rules.
    pub fn of(trace: &Trace, activity: &Activity, summary: &SummaryReport, memory: &MemoryReport) -> Self {
        let facts = Facts {
            trace,
            activity,
            summary,
            memory,
            program: Program::of(trace, activity, summary),
            span: activity.base,
            span_ns: activity.base.1 - activity.base.0,
        };
        let span_ns = facts.span_ns;
        let mut findings: Vec<Finding> = RULES.iter().flat_map(|(_, rule)| rule(&facts)).collect();
        for finding in &mut findings {
            finding.saves_ns = finding.saves_ns.map(|nanos| nanos.min(span_ns));
            finding.saves_share = finding.saves_ns.map(|nanos| share(nanos, span_ns));
            for evidence in &mut finding.evidence {
                evidence.offset_ns = evidence.start_ns.saturating_sub(activity.begin);
            }
        }
        findings.sort_by(|a, b| {
            let key = |finding: &Finding| std::cmp::Reverse(finding.saves_ns.unwrap_or(0));
            key(a).cmp(&key(b)).then_with(|| a.sentence.cmp(&b.sentence))
        });
        FindingsReport {
            span_ns,
            findings,
            gpu_bound: gpu_bound::sentence(&facts),
        }
    }
}

impl Facts<'_> {
    /// The devices that do a good part of the work, with their idle time. One that hardly does anything is idle all the
    /// time, and holds nothing up.
    fn devices(&self) -> impl Iterator<Item = DeviceFacts<'_>> {
        let idle = &self.summary.idle.devices;
        let devices = self.summary.utilization.devices.iter();
        let busy = |device: &DeviceUtilization| device.breakdown.busy_ns;
        let most = devices.clone().map(busy).max().unwrap_or(0);
        let devices = devices.filter(move |device| busy(device) as f64 >= GOOD_PART * most as f64);
        devices.map(|device| DeviceFacts {
            utilization: device,
            idle: idle.iter().find(|idle| idle.device == device.device),
        })
    }

    /// The device that something costs most time; of equal ones the one that did most. None if it costs nothing.
    fn worst(&self, cost: impl Fn(&DeviceFacts<'_>) -> u64) -> Option<DeviceFacts<'_>> {
        let devices = self.devices().filter(|device| cost(device) > 0);
        devices.max_by_key(|device| {
            let did = device.utilization.breakdown.busy_ns;
            (cost(device), did, std::cmp::Reverse(device.utilization.device))
        })
    }

    /// The device with most idle time of a cause, where that is at least such a share of the time: with that time and the
    /// gaps that the cause had a part in.
    fn idle_worth(&self, cause: IdleCause, share: f64) -> Option<(DeviceFacts<'_>, u64, u64)> {
        let device = self.worst(|device| device.idle_of(cause).0)?;
        let (idle, gaps) = device.idle_of(cause);
        self.is_worth(idle, share).then_some((device, idle, gaps))
    }

    /// Whether a time is at least such a share of the analyzed time.
    fn is_worth(&self, nanos: u64, share: f64) -> bool {
        nanos > 0 && nanos as f64 >= share * self.span_ns as f64
    }

    /// The time in copies that were counted together. Some may run at once, so it is never more than the time in which
    /// their device copies at all.
    fn copy_time(&self, row: &CopyRow) -> u64 {
        let devices = &self.summary.utilization.devices;
        let device = devices.iter().find(|device| device.device == row.device);
        let most = device.map_or(self.span_ns, |device| device.breakdown.copy_ns);
        row.durations.total_ns.min(most)
    }
}

/// What rules look at of one device.
#[derive(Clone, Copy)]
struct DeviceFacts<'a> {
    utilization: &'a DeviceUtilization,
    idle: Option<&'a DeviceIdle>,
}

impl DeviceFacts<'_> {
    fn name(&self) -> &str {
        &self.utilization.name
    }

    /// The processes that used it.
    fn processes(&self, activity: &Activity) -> Vec<ProcessId> {
        let lanes = activity.lanes.iter();
        let lanes = lanes.filter(|lane| lane.device.0 == self.utilization.device);
        lanes.map(|lane| lane.process).collect()
    }

    /// Idle time of a cause, and the gaps that it had a part in.
    fn idle_of(&self, cause: IdleCause) -> (u64, u64) {
        let mut causes = self.idle.into_iter().flat_map(|idle| &idle.causes);
        causes
            .find(|total| total.cause == cause)
            .map_or((0, 0), |total| (total.total_ns, total.gaps))
    }

    /// Launches of 100 µs or more: how many gaps have one, and how long.
    fn slow_launches(&self) -> (u64, u64) {
        self.idle
            .map_or((0, 0), |idle| (idle.slow_launches, idle.slow_launches_ns))
    }

    /// The longest gaps of a cause.
    fn gaps_of(&self, cause: IdleCause) -> Vec<Evidence> {
        let gaps = self.idle.into_iter().flat_map(|idle| &idle.longest);
        let mostly: Vec<Evidence> = gaps
            .filter(|gap| gap.cause == cause)
            .filter(|gap| gap.overhead_ns == 0 || cause == IdleCause::ProfilerOverhead)
            .filter(|gap| cause != IdleCause::LaunchGap || !gap.is_slow_launch())
            .take(3)
            .map(idle_before)
            .collect();
        if !mostly.is_empty() {
            return mostly;
        }
        // None of the longest gaps is mostly of this cause, which may have many short ones.
        let greatest = self.idle.into_iter().flat_map(|idle| &idle.by_cause);
        greatest
            .filter(|gap| gap.cause == cause)
            .map(idle_before)
            .collect()
    }
}

/// A gap to look at.
fn idle_before(gap: &LongGap) -> Evidence {
    Evidence {
        what: format!("idle before {}", shown(gap.next_table, &gap.next)),
        table: gap.next_table.name(),
        row: Some(u64::from(gap.next_row)),
        start_ns: gap.from_ns,
        offset_ns: 0,
        end_ns: gap.to_ns,
        cause_ns: Some(gap.cause_ns),
    }
}

/// Work of a class and a device, and how much of its time nothing computed beside it: the longest three.
fn longest_alone(facts: &Facts<'_>, device: u32, is_meant: impl Fn(OpClass) -> bool) -> Vec<Evidence> {
    let activity = facts.activity;
    let ops = &activity.ops;
    let is_here = |op: &OpId| activity.lane(ops.lane[op.index()]).device.0 == device;
    let mut computed: Vec<(u64, u64)> = Vec::new();
    for op in ops.ids().filter(is_here) {
        let (start, end) = (ops.start[op.index()], ops.end[op.index()]);
        match computed.last_mut() {
            _ if ops.class(op) != OpClass::Compute => {}
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => computed.push((start, end)),
        }
    }
    let alone = |op: OpId| {
        let (start, end) = (ops.start[op.index()], ops.end[op.index()]);
        let first = computed.partition_point(|(_, until)| *until <= start);
        let beside = computed[first..].iter().take_while(|(from, _)| *from < end);
        let beside: u64 = beside
            .map(|(from, until)| end.min(*until) - start.max(*from))
            .sum();
        end - start - beside
    };
    let mut longest: Vec<(u64, OpId)> = Vec::new();
    // As the tables of copies and kernels count them: what started in the window.
    let is_counted = |op: &OpId| is_meant(ops.class(*op)) && activity.window.holds(ops.start[op.index()]);
    for op in ops.ids().filter(is_counted).filter(is_here) {
        longest.push((alone(op), op));
        longest.sort_by_key(|(nanos, op)| (std::cmp::Reverse(*nanos), *op));
        longest.truncate(3);
    }
    let evidence = |(_, op): (u64, OpId)| Evidence {
        what: shown(ops.kind(op).table, activity.name(facts.trace, op)),
        table: ops.kind(op).table.name(),
        row: Some(u64::from(ops.row[op.index()])),
        start_ns: ops.start[op.index()],
        offset_ns: 0,
        end_ns: ops.end[op.index()],
        cause_ns: None,
    };
    let is_some = |(nanos, _): &(u64, OpId)| *nanos > 0;
    longest.into_iter().filter(is_some).map(evidence).collect()
}

/// A name in a few words: those of kernels come with all their arguments.
fn shown(table: OpTable, name: &str) -> String {
    match table {
        OpTable::Kernels => short_name(name),
        _ => name.to_owned(),
    }
}

/// The longest of copies that were counted together.
fn longest_copy(row: &CopyRow) -> Evidence {
    Evidence {
        what: format!("the longest copy {}", row.direction),
        table: "copies",
        row: Some(row.longest_row),
        start_ns: row.longest_start_ns,
        offset_ns: 0,
        end_ns: row.longest_start_ns + row.durations.max_ns,
        cause_ns: None,
    }
}

/// So many of something.
fn many(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{} {what}s", units::count(count)),
    }
}

/// A share as whole percents.
fn percent(part: u64, whole: u64) -> String {
    format!("{:.0} %", 100.0 * share(part, whole))
}
