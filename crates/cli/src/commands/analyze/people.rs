//! Which tables show a report to people.

use tracesmith_trace::analysis::{
    Analyzer, Answer, CopiesReport, FindingsReport, HostActivityReport, IdleReport, KernelsReport,
    LaunchesReport, MemoryReport, PathAndHost, SlackReport, StepsReport, UtilizationReport, WhatIfReport,
};

use super::{Chosen, answers, host, tables, whole_span};
use crate::output::Output;

/// Shows a report in tables of its own. False for one that has none: its rows are shown as they are.
pub(super) fn show(
    analyzer: &Analyzer,
    answer: &Answer,
    chosen: &Chosen<'_>,
    output: &mut Output,
) -> anyhow::Result<bool> {
    let (trace, limit) = (&chosen.analysis.trace, chosen.limit);
    let span = whole_span(trace);
    let has_work = !chosen.analysis.activity.ops.is_empty();
    if let Some(report) = answer.report::<UtilizationReport>() {
        match analyzer.name {
            "streams" => tables::streams(&report.streams, limit, output)?,
            _ => {
                tables::analyzed_time(&chosen.analysis.activity, output)?;
                tables::devices(report, output)?;
            }
        }
    } else if let Some(report) = answer.report::<IdleReport>() {
        tables::analyzed_time(&chosen.analysis.activity, output)?;
        tables::idle(report, output)?;
        tables::stream_idle(report, limit, output)?;
        tables::gaps(report, span, limit, output)?;
    } else if let Some(report) = answer.report::<StepsReport>() {
        tables::steps(trace, report, limit, output)?;
    } else if let Some(report) = answer.report::<KernelsReport>() {
        let all = chosen.analysis.kernels(chosen.options.by).rows.len();
        let devices = chosen.analysis.activity.devices().len();
        tables::kernels(report, all.saturating_sub(limit), devices, output)?;
    } else if let Some(report) = answer.report::<CopiesReport>() {
        tables::copies(report, output)?;
    } else if let Some(report) = answer.report::<LaunchesReport>() {
        tables::analyzed_time(&chosen.analysis.activity, output)?;
        tables::launches(report, output)?;
        tables::launch_bound(report, span, limit, output)?;
    } else if let Some(report) = answer.report::<MemoryReport>() {
        answers::memory(report, limit, span, output)?;
    } else if let Some(report) = answer.report::<HostActivityReport>() {
        host::activity(report, limit, output)?;
    } else if let Some(report) = answer.report::<PathAndHost>() {
        answers::critical_path(report, limit, output)?;
    } else if let Some(report) = answer.report::<SlackReport>() {
        answers::slack(report, limit, span, output)?;
    } else if let Some(report) = answer.report::<WhatIfReport>() {
        answers::what_if(report, limit, output)?;
    } else if let Some(report) = answer.report::<FindingsReport>() {
        tables::analyzed_time(&chosen.analysis.activity, output)?;
        answers::findings(report, has_work, limit, span, output)?;
    } else {
        return Ok(false);
    }
    Ok(true)
}
