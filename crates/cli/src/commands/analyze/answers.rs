//! Prints findings, critical path, what-if and memory as text.

use tracesmith_trace::analysis::{
    FindingsReport, MemoryPool, MemoryReport, PathAndHost, PathTotal, SlackReport, WhatIfReport,
};
use tracesmith_trace::units;

use super::host;
use super::tables::{heading, more, percent};
use crate::output::table::{Align, TextTable};
use crate::output::{CAREFUL, FAINT, GOOD, Output};

pub(super) fn findings(
    report: &FindingsReport,
    has_work: bool,
    limit: usize,
    span: Option<(u64, u64)>,
    output: &mut Output,
) -> anyhow::Result<()> {
    heading("Findings", output)?;
    if report.findings.is_empty() && has_work {
        let line = match &report.gpu_bound {
            Some(sentence) => format!("{GOOD}no idle time worth fixing{GOOD:#}. {sentence}"),
            None => format!("{GOOD}no problems found{GOOD:#}"),
        };
        return Ok(output.line(&line)?);
    }
    if let Some(sentence) = &report.gpu_bound {
        output.line(sentence)?;
    }
    if report.findings.is_empty() {
        return Ok(output.line("nothing to check: no GPU work")?);
    }
    for (number, finding) in report.findings.iter().enumerate().take(limit) {
        let saves = match (finding.saves_ns, finding.saves_share) {
            (Some(nanos), Some(share)) if nanos > 0 => {
                format!(
                    "; a fix saves at most {} ({})",
                    units::nanos(nanos),
                    percent(share)
                )
            }
            _ => String::new(),
        };
        output.line(&format!(
            "{}. {CAREFUL}{}{CAREFUL:#}{saves}",
            number + 1,
            finding.sentence
        ))?;
        output.line(&format!("   {}", finding.advice))?;
        output.line(&format!("   {FAINT}assumes that {}{FAINT:#}", finding.assumption))?;
        for evidence in &finding.evidence {
            let row = evidence
                .row
                .map_or(String::new(), |row| format!(", row {row} of {}", evidence.table));
            let length = evidence.end_ns - evidence.start_ns;
            let time = match evidence.cause_ns {
                Some(nanos) if nanos < length => {
                    format!("{} of a gap of {}", units::nanos(nanos), units::nanos(length))
                }
                _ => units::nanos(length),
            };
            output.line(&format!(
                "   {FAINT}{} at {}, {time}{row}{FAINT:#}",
                output.name_in_text(&evidence.what),
                units::offset(span, evidence.start_ns)
            ))?;
        }
    }
    more(report.findings.len().saturating_sub(limit), "finding", output);
    Ok(())
}

pub(super) fn critical_path(
    PathAndHost { path: report, host }: &PathAndHost,
    limit: usize,
    output: &mut Output,
) -> anyhow::Result<()> {
    if report.segments.is_empty() {
        output.note("no critical path: no GPU work and no waiting calls in this time range");
        return Ok(());
    }
    let text = format!(
        "Critical path: {} of {}",
        units::nanos(report.path_ns),
        units::nanos(report.span_ns)
    );
    heading(&text, output)?;
    path_totals(&report.totals, limit, output)?;
    output.line("")?;
    host::on_path(host, limit, output)?;
    heading(
        "Slack: how much later each kernel could end without delaying the end",
        output,
    )?;
    let mut table = TextTable::new(&[
        ("min slack", Align::Right),
        ("mean", Align::Right),
        ("count", Align::Right),
        ("with no slack", Align::Right),
        ("name", Align::Name),
    ]);
    for row in report.slack.iter().take(limit) {
        table.row([
            units::nanos(row.min_slack_ns).into(),
            units::nanos(row.mean_slack_ns as u64).into(),
            units::count(row.count).into(),
            units::count(row.on_path).into(),
            row.name.clone().into(),
        ]);
    }
    output.table(&table)?;
    more(report.slack.len().saturating_sub(limit), "row of slack", output);
    unsure(
        &Unsure {
            assumed_records: report.assumed_records,
            unknown_records: report.unknown_records,
            unknown_waits: report.unknown_waits,
            unordered_graphs: report.unordered_graphs,
            blocked_launches: report.blocked_launches,
            assumed_waits: report.assumed_waits,
            assumed_edges: report.assumed_edges,
            cpu_ahead_ns: report.cpu_ahead_ns,
        },
        output,
    );
    if report.contradicted > 0 {
        output.warning(&format!(
            "{} the recorded times: ignored",
            units::counted(
                report.contradicted,
                "dependency contradicts",
                "dependencies contradict"
            )
        ));
    }
    Ok(())
}

pub(super) fn slack(
    report: &SlackReport,
    limit: usize,
    span: Option<(u64, u64)>,
    output: &mut Output,
) -> anyhow::Result<()> {
    let mut table = TextTable::new(&[
        ("slack", Align::Right),
        ("at", Align::Right),
        ("time", Align::Right),
        ("table", Align::Left),
        ("row", Align::Right),
        ("name", Align::Name),
    ]);
    for op in report.iter().take(limit) {
        table.row([
            units::nanos(op.slack_ns).into(),
            units::offset(span, op.start_ns).into(),
            units::nanos(op.end_ns - op.start_ns).into(),
            op.table.name().into(),
            op.row.to_string().into(),
            (*op.name).into(),
        ]);
    }
    if report.iter().len() == 0 {
        output.note("no GPU work in this time range");
        return Ok(());
    }
    output.table(&table)?;
    more(report.iter().len().saturating_sub(limit), "GPU operation", output);
    Ok(())
}

/// What a critical path goes to.
fn path_totals(totals: &[PathTotal], limit: usize, output: &mut Output) -> anyhow::Result<()> {
    let mut table = TextTable::new(&[
        ("share", Align::Right),
        ("time", Align::Right),
        ("count", Align::Right),
        ("kind", Align::Left),
        ("name", Align::Name),
    ]);
    for total in totals.iter().take(limit) {
        table.row([
            percent(total.share).into(),
            units::nanos(total.total_ns).into(),
            units::count(total.count).into(),
            total.part.words().into(),
            total.name.clone().into(),
        ]);
    }
    output.table(&table)?;
    more(
        totals.len().saturating_sub(limit),
        "part of the critical path",
        output,
    );
    Ok(())
}

/// What the dependencies of a trace leave open.
struct Unsure {
    assumed_records: u64,
    unknown_records: u64,
    unknown_waits: u64,
    unordered_graphs: u64,
    blocked_launches: u64,
    assumed_waits: u64,
    assumed_edges: u64,
    cpu_ahead_ns: u64,
}

fn unsure(unsure: &Unsure, output: &mut Output) {
    if unsure.blocked_launches > 0 {
        output.note(&format!(
            "{} blocked because the queue of their stream was full: the CPU waits for the GPU there",
            units::counted(unsure.blocked_launches, "launch", "launches")
        ));
    }
    if unsure.assumed_edges > 0 {
        output.note(&format!(
            "the trace does not state which stream waits for which: {} of another stream. These waits were assumed",
            units::counted(
                unsure.assumed_edges,
                "GPU operation started right after one",
                "GPU operations started right after one"
            )
        ));
    }
    if unsure.cpu_ahead_ns > 0 {
        output.warning(&format!(
            "in {} of the CPU code on the critical path, launched work had not started on the GPU. If the CPU waited there, \
             in calls that the trace lacks, the GPU determines that time",
            units::nanos(unsure.cpu_ahead_ns)
        ));
    }
    if unsure.assumed_waits > 0 {
        output.warning(&format!(
            "the CPU goes on right after its GPU work ends, {} times without a call that waits: these times count as waits \
             for the GPU",
            units::count(unsure.assumed_waits)
        ));
    }
    if unsure.assumed_records > 0 {
        output.note(&format!(
            "{} CUDA events were recorded on unknown streams; the thread's last used stream was assumed",
            units::count(unsure.assumed_records)
        ));
    }
    if unsure.unknown_records > 0 {
        output.warning(&format!(
            "{} waits are for CUDA events that were recorded before the trace",
            units::count(unsure.unknown_records)
        ));
    }
    if unsure.unknown_waits > 0 {
        output.warning(&format!(
            "{} CPU waits name no GPU and were ignored",
            units::count(unsure.unknown_waits)
        ));
    }
    if unsure.unordered_graphs > 0 {
        output.note(&format!(
            "{} graph launches ran on several streams, and the order of their nodes is unknown",
            units::count(unsure.unordered_graphs)
        ));
    }
}

/// Parts of the predicted critical path that are named beside a step.
const LIMITS: usize = 3;

/// One thing that a predicted critical path goes to.
fn limit_words(total: &PathTotal) -> String {
    let what = match total.name.as_str() {
        "" => total.part.words(),
        name => name,
    };
    format!("{what} {}", percent(total.share))
}

pub(super) fn what_if(report: &WhatIfReport, limit: usize, output: &mut Output) -> anyhow::Result<()> {
    if report.measured_ns == 0 {
        output.note("nothing to simulate: no GPU work and no calls in this time range");
        return Ok(());
    }
    let change = |nanos: u64| units::change(nanos as f64 / report.measured_ns.max(1) as f64 - 1.0);
    output.line(&format!(
        "measured             {}",
        units::nanos(report.measured_ns)
    ))?;
    output.line(&format!(
        "simulated, unchanged {} ({})",
        units::nanos(report.unchanged_ns),
        change(report.unchanged_ns)
    ))?;
    output.line(&format!(
        "with the changes     {} ({}, {:.2} times as fast)",
        units::nanos(report.changed_ns),
        change(report.changed_ns),
        report.speedup
    ))?;
    if let Some(step) = &report.step {
        output.line(&format!(
            "a step               {} measured, {} with the changes (median of {})",
            units::nanos(step.measured_ns),
            units::nanos(step.changed_ns),
            units::counted(step.count, "step", "steps")
        ))?;
        let parts: Vec<String> = step.path.iter().take(LIMITS).map(limit_words).collect();
        if !parts.is_empty() {
            output.line(&format!("then critical        {}", parts.join(", ")))?;
        }
    }
    if let Some(explanation) = &report.explanation {
        output.line(explanation)?;
    }
    if !report.path.totals.is_empty() {
        output.line("")?;
        heading(
            &format!(
                "Critical path with the changes: {}",
                units::nanos(report.path.path_ns)
            ),
            output,
        )?;
        path_totals(&report.path.totals, limit, output)?;
        let places = report.path.host.main_places();
        if !places.is_empty() {
            output.line(&format!("of the CPU code, {}", places.join("; ")))?;
        }
    }
    if report.left_waits > 0 {
        output.note(&format!(
            "{} removed from the simulation",
            units::counted(report.left_waits, "CPU wait", "CPU waits")
        ));
    }
    if report.scaled_ops > 0 {
        output.note(&format!(
            "{} scaled",
            units::counted(report.scaled_ops, "GPU operation", "GPU operations")
        ));
    }
    if report.unchanged_ns.abs_diff(report.measured_ns) as f64 > 0.02 * report.measured_ns as f64 {
        output.warning(
            "the simulation without changes is more than 2 % off: the trace lacks some dependencies, so the result with \
             changes can be off as well",
        );
    }
    unsure(
        &Unsure {
            assumed_records: report.assumed_records,
            unknown_records: report.unknown_records,
            unknown_waits: report.unknown_waits,
            unordered_graphs: report.unordered_graphs,
            blocked_launches: report.blocked_launches,
            assumed_waits: report.assumed_waits,
            assumed_edges: report.assumed_edges,
            cpu_ahead_ns: report.cpu_ahead_ns,
        },
        output,
    );
    Ok(())
}

/// Whose memory it is: the rank, or else the process.
fn process(pool: &MemoryPool) -> String {
    match pool.rank {
        Some(rank) => format!("rank {rank} ({})", pool.pid),
        None => pool.pid.to_string(),
    }
}

pub(super) fn memory(
    report: &MemoryReport,
    limit: usize,
    span: Option<(u64, u64)>,
    output: &mut Output,
) -> anyhow::Result<()> {
    if report.pools.is_empty() {
        output.note("no allocations in this trace");
        return Ok(());
    }
    let mut table = TextTable::new(&[
        ("process", Align::Left),
        ("device", Align::Left),
        ("memory", Align::Left),
        ("allocator", Align::Left),
        ("allocations", Align::Right),
        ("frees", Align::Right),
        ("peak", Align::Right),
        ("at", Align::Right),
        ("live at the end", Align::Right),
        ("kept on purpose", Align::Right),
        ("reserved", Align::Right),
        ("unused", Align::Right),
    ]);
    for pool in report.pools.iter().take(limit) {
        table.row([
            process(pool).into(),
            pool.device_name.clone().into(),
            pool.memory.into(),
            pool.allocator.clone().into(),
            units::count(pool.allocations).into(),
            units::count(pool.frees).into(),
            units::bytes(pool.peak_bytes).into(),
            units::offset(span, pool.peak_at_ns).into(),
            units::bytes(pool.live_bytes).into(),
            match pool.kept_bytes {
                0 => String::new(),
                bytes => units::bytes(bytes),
            }
            .into(),
            pool.reserved_peak_bytes
                .map_or(String::new(), units::bytes)
                .into(),
            pool.fragmentation.map_or(String::new(), percent).into(),
        ]);
    }
    output.table(&table)?;
    let first = report.pools.first().map(|pool| pool.process);
    let is_one = report.pools.iter().all(|pool| Some(pool.process) == first);
    let of = |pool: &MemoryPool| match is_one {
        true => String::new(),
        false => format!(" of {}", process(pool)),
    };
    for pool in report.pools.iter().take(limit) {
        let lists = [
            ("held at the peak", &pool.holders),
            ("in use at the end", &pool.never_freed),
        ];
        for (what, holders) in lists.into_iter().filter(|(_, holders)| !holders.is_empty()) {
            output.line("")?;
            heading(
                &format!("{} {} memory{}: {what}", pool.device_name, pool.memory, of(pool)),
                output,
            )?;
            let mut table = TextTable::new(&[
                ("bytes", Align::Right),
                ("allocations", Align::Right),
                ("allocated at", Align::Flexible),
            ]);
            for holder in holders.iter().take(limit) {
                table.row([
                    units::bytes(holder.bytes).into(),
                    units::count(holder.count).into(),
                    match holder.kept_by {
                        Some(by) => format!("{}, kept by: {by}", holder.stack),
                        None => holder.stack.clone(),
                    }
                    .into(),
                ]);
            }
            output.table(&table)?;
        }
        if !pool.churn.is_empty() {
            output.line("")?;
            heading(
                &format!(
                    "{} {} memory{}: allocated and freed repeatedly",
                    pool.device_name,
                    pool.memory,
                    of(pool)
                ),
                output,
            )?;
            let mut table = TextTable::new(&[
                ("times", Align::Right),
                ("bytes", Align::Right),
                ("kept for", Align::Right),
                ("by", Align::Flexible),
            ]);
            for churn in pool.churn.iter().take(limit) {
                table.row([
                    units::count(churn.count).into(),
                    units::bytes(churn.bytes).into(),
                    units::nanos(churn.held_ns / churn.count.max(1)).into(),
                    churn.stack.clone().into(),
                ]);
            }
            output.table(&table)?;
        }
    }
    for (frees, what) in [
        (&report.double_frees, "freed before"),
        (&report.unknown_frees, "not allocated while recording"),
    ] {
        if let Some(first) = frees.first() {
            output.warning(&format!(
                "{} {what}, first {:#x} at {} by {}",
                units::counted(
                    frees.len() as u64,
                    "free is of an address that was",
                    "frees are of addresses that were"
                ),
                first.address,
                units::offset(span, first.time_ns),
                first.stack
            ));
        }
    }
    if report.without_address > 0 {
        output.warning(&format!(
            "{} no address: the bytes count, but their owner is unknown",
            units::counted(
                report.without_address,
                "allocation or free has",
                "allocations and frees have"
            )
        ));
    }
    if report.without_time > 0 {
        output.warning(&format!(
            "{} no time: ignored",
            units::counted(report.without_time, "allocation has", "allocations have")
        ));
    }
    Ok(())
}
