//! `tracesmith analyze`.

mod answers;
mod host;
mod people;
mod tables;

use std::sync::Arc;

use anyhow::{Context, bail};
use serde::Serialize;
use serde_json::Value;
use tracesmith_format::DeviceId;
use tracesmith_trace::analysis::{
    Analysis, AnalysisOptions, Analyzer, HostWaits, KernelKey, KernelsReport, Need, PatternTarget, Rows,
    Scale, StreamCount, SummaryReport, WhatIf, WhatIfReport, device_name,
};
use tracesmith_trace::reconstruct::{DataQuality, Window};
use tracesmith_trace::{NamePattern, Selection, Trace, time_range, units};

use crate::args::{AnalyzeArgs, Format, KernelKeyArg, StreamsArg, TimeRangeArgs};
use crate::input::{open_trace, repair_hint};
use crate::output::table::{Align, TextTable};
use crate::output::{Names, Output};
use crate::select::selection;

/// Rows of a table, unless chosen otherwise.
const ROWS: usize = 10;

/// Rows of each list of CPU places in the summary.
const HOST_ROWS: usize = 5;

pub(crate) fn run(args: &AnalyzeArgs, output: &mut Output) -> anyhow::Result<()> {
    if args.lean {
        output.make_lean(limit_of(args.limit, ROWS))?;
    }
    if output.format == Format::Csv && args.only.is_none() {
        bail!("csv needs one table; choose it with --only");
    }
    if args.wide {
        output.show_names(Names::Whole);
    }
    let trace = Arc::new(open_trace(&args.file)?);
    let selection = selection(&args.select, &trace)?;
    let analysis = analysis(&args.select.stretch, &selection, &trace)?;
    let limit = match output.format {
        Format::Json | Format::Csv if !args.lean => limit_of(args.limit, usize::MAX),
        _ => limit_of(args.limit, ROWS),
    };
    let asks_what_if = !args.scale.is_empty() || args.streams.is_some() || args.without_sync.is_some();
    match args.only {
        None if asks_what_if => {
            let what_if = Analyzer::find("what-if").context("there is no analysis what-if")?;
            one(what_if, args, &analysis, limit, output)?;
        }
        None => summary(args, &analysis, limit, output)?,
        Some(only) => one(only, args, &analysis, limit, output)?,
    }
    if output.format != Format::Json {
        show_doubts(&analysis.activity.doubts, output);
        if analysis.activity.doubts.damaged_blocks > 0 {
            output.note(&repair_hint(&args.file));
        }
    }
    Ok(())
}

/// The chosen number of rows; 0 stands for all.
pub(crate) fn limit_of(chosen: Option<usize>, default: usize) -> usize {
    match chosen {
        Some(0) => usize::MAX,
        Some(limit) => limit,
        None => default,
    }
}

/// Analyzes the selected time range or step.
pub(crate) fn analysis(
    stretch: &TimeRangeArgs,
    selection: &Selection,
    trace: &Arc<Trace>,
) -> anyhow::Result<Analysis> {
    match stretch.step {
        Some(number) => Ok(Analysis::selected_step(trace, number, selection)?),
        None => Ok(Analysis::selected(trace, window(stretch, trace)?, selection)?),
    }
}

/// The selected time range.
pub(crate) fn window(stretch: &TimeRangeArgs, trace: &Arc<Trace>) -> anyhow::Result<Window> {
    if stretch.step.is_some() {
        return Ok(analysis(stretch, &Selection::default(), trace)?.activity.window);
    }
    let span = trace.span();
    let range = time_range(stretch.from, stretch.to, span)?;
    Ok(Window {
        from: range.from.map(|time| time.0),
        to: range.to.map(|time| time.0),
    })
}

fn key(arg: KernelKeyArg) -> KernelKey {
    match arg {
        KernelKeyArg::Name => KernelKey::Name,
        KernelKeyArg::Short => KernelKey::ShortName,
        KernelKeyArg::Shape => KernelKey::Shape,
        KernelKeyArg::Line => KernelKey::Stack,
        KernelKeyArg::Nvtx => KernelKey::Ranges,
        KernelKeyArg::Operator => KernelKey::Operator,
        KernelKeyArg::Process => KernelKey::Process,
        KernelKeyArg::Rank => KernelKey::Rank,
        KernelKeyArg::Step => KernelKey::Step,
    }
}

fn summary(args: &AnalyzeArgs, analysis: &Analysis, limit: usize, output: &mut Output) -> anyhow::Result<()> {
    let mut report = analysis.summary()?;
    // On a GPU with work that is not selected, nobody can tell idle time from the time of that work.
    let findings = match analysis.activity.selected.shared_device() {
        None => Some(analysis.findings(&report)?),
        Some(device) => {
            note_shared_device(&analysis.trace, device, output);
            None
        }
    };
    if args.by != KernelKeyArg::Name {
        report.kernels = (*analysis.kernels(key(args.by))).clone();
    }
    warn_of_places(&report.kernels, &analysis.trace, output);
    if output.format == Format::Json {
        let mut answer = value(&report)?;
        answer["findings"] = value(&findings.as_ref().map(|report| &report.findings))?;
        answer["gpu_bound"] = value(&findings.as_ref().and_then(|report| report.gpu_bound.as_deref()))?;
        if findings.is_none() {
            answer["idle"] = Value::Null;
            answer["host"] = Value::Null;
        }
        return Ok(output.json(&answer)?);
    }
    note_no_work(analysis, output);
    note_collectives(&report, &analysis.trace, output);
    let hidden = report.kernels.rows.len().saturating_sub(limit);
    report.kernels.rows.truncate(limit);
    if !analysis.activity.ops.is_empty() {
        tables::analyzed_time(&analysis.activity, output)?;
        tables::devices(&report.utilization, output)?;
        if findings.is_some() {
            tables::idle(&report.idle, output)?;
            host::in_gaps(&report.host, HOST_ROWS.min(limit), output)?;
        }
    }
    tables::step_line(&report.steps, output)?;
    let devices = analysis.activity.devices().len();
    tables::kernels(&report.kernels, hidden, devices, output)?;
    tables::copies(&report.copies, output)?;
    tables::launches(&report.launches, output)?;
    let Some(findings) = findings else {
        return Ok(());
    };
    output.line("")?;
    answers::findings(
        &findings,
        !analysis.activity.ops.is_empty(),
        limit,
        whole_span(&analysis.trace),
        output,
    )
}

fn note_shared_device(trace: &Trace, device: DeviceId, output: &mut Output) {
    output.note(&format!(
        "{} has work that is not selected: idle causes and findings are left out, and busy time is that of the \
         selected work",
        device_name(trace, device)
    ));
}

/// Prints why kernels have no operators or lines: they could not be read, or the trace has none.
fn warn_of_places(kernels: &KernelsReport, trace: &Trace, output: &mut Output) {
    if let Some(problem) = &kernels.places_problem {
        output.warning(&format!("operators and ranges could not be read: {problem}"));
    } else if kernels.has_no_places() {
        let missing = match kernels.by {
            KernelKey::Operator => "operators",
            _ => "stacks and no operators",
        };
        let instead = match trace.markers.rows() {
            0 => "--by short or --by shape",
            _ => "--by nvtx",
        };
        output.note(&format!(
            "the trace has no {missing}, so all kernels are in one row; use {instead}"
        ));
    }
}

/// Prints a note about collectives that were recorded without kernels: they are busy time in the timeline alone.
fn note_collectives(report: &SummaryReport, trace: &Trace, output: &mut Output) {
    let collectives = trace.collectives.rows();
    let mut devices = report.utilization.devices.iter();
    if collectives > 0 && devices.all(|device| device.breakdown.communication_ns == 0) {
        output.note(&format!(
            "{} in the trace: no GPU work here, but busy time in `view --timeline`",
            units::counted(
                collectives,
                "collective has no kernel",
                "collectives have no kernels"
            )
        ));
    }
}

/// Prints a note that there is no GPU work, instead of an empty table.
fn note_no_work(analysis: &Analysis, output: &mut Output) {
    if analysis.activity.ops.is_empty() {
        let (window, selected) = (&analysis.activity.window, &analysis.activity.selected);
        output.note(match (*window == Window::default(), selected.is_all()) {
            (true, true) => "no GPU work: the trace has no kernels, memcpys or memsets",
            (false, true) => "no GPU work in this time range",
            (true, false) => "the selection has no GPU work",
            (false, false) => "the selection has no GPU work in this time range",
        });
    }
}

fn one(
    analyzer: &Analyzer,
    args: &AnalyzeArgs,
    analysis: &Analysis,
    limit: usize,
    output: &mut Output,
) -> anyhow::Result<()> {
    if output.format == Format::Table && analyzer.needs == Need::Ops {
        note_no_work(analysis, output);
    }
    let options = AnalysisOptions {
        by: key(args.by),
        limit: Some(limit),
        what_if: what_if(args)?,
    };
    let answer = analyzer.run(analysis, &options)?;
    if let Some(report) = answer.report::<KernelsReport>() {
        warn_of_places(report, &analysis.trace, output);
    }
    if let Some(report) = answer.report::<WhatIfReport>() {
        note_what_if(args, report, analysis, &options.what_if, output);
    }
    match (output.format, answer.rows()) {
        (Format::Json, _) => Ok(output.json_of(|out| answer.write_json(&analysis.activity.doubts, out))?),
        (Format::Csv, Some(rows)) => csv(rows, output),
        (Format::Csv, None) => bail!("--only {} has several tables; use --format json", analyzer.name),
        (Format::Table, rows) => {
            let has_table = people::show(
                analyzer,
                &answer,
                &Chosen {
                    analysis,
                    options: &options,
                    limit,
                },
                output,
            )?;
            match rows.filter(|_| !has_table) {
                Some(rows) => plain_table(rows, limit, output),
                None => Ok(()),
            }
        }
    }
}

/// What the user chose to look at.
struct Chosen<'a> {
    analysis: &'a Analysis,
    options: &'a AnalysisOptions,
    limit: usize,
}

fn note_what_if(
    args: &AnalyzeArgs,
    report: &WhatIfReport,
    analysis: &Analysis,
    what_if: &WhatIf,
    output: &mut Output,
) {
    for unmatched in what_if.unmatched_patterns(analysis, report.left_waits) {
        let (pattern, similar) = (&unmatched.pattern, &unmatched.suggestion);
        output.warning(&match unmatched.target {
            PatternTarget::Work => format!("no GPU work matches --scale '{pattern}'{similar}"),
            PatternTarget::Waits => {
                format!("no CPU wait matches --without-sync '{pattern}'; none was removed{similar}")
            }
        });
    }
    if args.scale.is_empty() && args.streams.is_none() && args.without_sync.is_none() {
        output.note("no change to simulate: use --scale 'name*=0.5', --streams or --without-sync");
    }
    if args.streams == Some(StreamsArg::Unlimited) {
        output.note(
            "this is an upper bound: it assumes that kernels beside each other are as fast as alone, and that none needs \
             the result of the one before it on its stream",
        );
    }
}

fn what_if(args: &AnalyzeArgs) -> anyhow::Result<WhatIf> {
    let mut scales = Vec::new();
    for text in &args.scale {
        let factor = text.rsplit_once('=').and_then(|(pattern, factor)| {
            let factor: f64 = factor.trim().parse().ok()?;
            (factor.is_finite() && factor >= 0.0).then_some((pattern, factor))
        });
        let (pattern, factor) =
            factor.with_context(|| format!("{text} is not a pattern and a factor, such as 'flash*=0.5'"))?;
        scales.push(Scale {
            name: NamePattern::new(pattern)?,
            factor,
        });
    }
    Ok(WhatIf {
        scales,
        streams: match args.streams {
            None => StreamCount::AsRecorded,
            Some(StreamsArg::Unlimited) => StreamCount::Unlimited,
            Some(StreamsArg::AtMost(count)) => StreamCount::AtMost(count),
        },
        host_waits: match &args.without_sync {
            None => HostWaits::Kept,
            Some(None) => HostWaits::Left,
            Some(Some(pattern)) => HostWaits::LeftIn(NamePattern::new(pattern)?),
        },
    })
}

fn value(report: &impl Serialize) -> anyhow::Result<Value> {
    serde_json::to_value(report).context("writing JSON")
}

/// Rows as CSV, with the names of their scalar members as header.
fn csv(rows: Rows<'_>, output: &mut Output) -> anyhow::Result<()> {
    for (number, row) in rows.enumerate() {
        let members: Vec<(&String, &Value)> = plain_members(&row).collect();
        if number == 0 {
            output.csv(members.iter().map(|(key, _)| key))?;
        }
        output.csv(members.iter().map(|(_, value)| text(value)))?;
    }
    Ok(())
}

/// Rows as a table, for an analysis that has no table of its own.
fn plain_table(rows: Rows<'_>, limit: usize, output: &mut Output) -> anyhow::Result<()> {
    let rows: Vec<Value> = rows.collect();
    let Some(first) = rows.first() else {
        output.note("no rows in this time range");
        return Ok(());
    };
    let columns: Vec<(String, Align)> = plain_members(first)
        .map(|(key, value)| match value.is_number() {
            true => (key.clone(), Align::Right),
            false => (key.clone(), Align::Left),
        })
        .collect();
    let mut table = TextTable::with_columns(columns);
    for row in rows.iter().take(limit) {
        table.row_of(plain_members(row).map(|(_, value)| text(value).into()).collect());
    }
    output.table(&table)?;
    tables::more(rows.len().saturating_sub(limit), "row", output);
    Ok(())
}

/// The members of a row that are no lists and no objects.
fn plain_members(row: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let members = row.as_object().into_iter().flatten();
    members.filter(|(_, value)| !value.is_array() && !value.is_object())
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Prints data-quality warnings.
pub(crate) fn show_doubts(doubts: &DataQuality, output: &mut Output) {
    for sentence in doubts.sentences() {
        output.warning(&sentence);
    }
}

/// The first and last timestamp of the trace. Times on the command line are relative to them.
pub(crate) fn whole_span(trace: &Trace) -> Option<(u64, u64)> {
    trace.span().map(|(first, last)| (first.0, last.0))
}
