//! `tracesmith analyze`.

mod answers;
mod tables;

use anyhow::{Context, bail};
use serde::Serialize;
use serde_json::{Value, json};
use tracesmith_trace::analysis::{
    Analysis, HostWaits, KernelKey, KernelsReport, MemoryReport, Scale, SlackReport, StreamCount, WhatIf,
};
use tracesmith_trace::reconstruct::{Doubts, Window};
use tracesmith_trace::{Trace, units};

use crate::args::{AnalysisArg, AnalyzeArgs, Format, KernelKeyArg, StreamsArg, TimeRangeArgs};
use crate::input::{open_trace, repair_hint};
use crate::name_pattern::name_filter;
use crate::output::{Names, Output};
use crate::time_arg::time_range;

pub(crate) fn run(args: &AnalyzeArgs, output: &mut Output) -> anyhow::Result<()> {
    if output.format == Format::Csv && args.only.is_none() {
        bail!("csv needs one table; choose it with --only");
    }
    if args.wide {
        output.show_names(Names::Whole);
    }
    let trace = open_trace(&args.file)?;
    let analysis = analysis(&args.stretch, &trace)?;
    let limit = match (args.limit, output.format) {
        (Some(0), _) | (None, Format::Json | Format::Csv) => usize::MAX,
        (Some(limit), _) => limit,
        (None, Format::Table) => 10,
    };
    let asks_what_if = !args.scale.is_empty() || args.streams.is_some() || args.without_sync.is_some();
    match args.only {
        None if asks_what_if => one(AnalysisArg::WhatIf, args, &analysis, limit, output)?,
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

/// Analyzes the selected time range or step.
pub(crate) fn analysis<'t>(stretch: &TimeRangeArgs, trace: &'t Trace) -> anyhow::Result<Analysis<'t>> {
    let Some(number) = stretch.step else {
        return Ok(Analysis::of(trace, window(stretch, trace)?)?);
    };
    let whole = Analysis::of(trace, Window::default())?;
    whole
        .only_step(number)?
        .with_context(|| match whole.steps.steps.len() {
            0 => format!("there is no step {number}: no steps were found in the trace"),
            count => format!("there is no step {number}; the trace has {count}, counted from 0"),
        })
}

/// The selected time range.
pub(crate) fn window(stretch: &TimeRangeArgs, trace: &Trace) -> anyhow::Result<Window> {
    if stretch.step.is_some() {
        return Ok(analysis(stretch, trace)?.activity.window);
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
        KernelKeyArg::Stack => KernelKey::Stack,
        KernelKeyArg::Nvtx => KernelKey::Ranges,
    }
}

fn kernels(args: &AnalyzeArgs, analysis: &Analysis<'_>, limit: usize) -> (KernelsReport, usize) {
    let mut report = analysis.kernels(key(args.by));
    let hidden = report.rows.len().saturating_sub(limit);
    report.rows.truncate(limit);
    (report, hidden)
}

fn summary(
    args: &AnalyzeArgs,
    analysis: &Analysis<'_>,
    limit: usize,
    output: &mut Output,
) -> anyhow::Result<()> {
    let mut report = analysis.summary()?;
    if args.by != KernelKeyArg::Name {
        report.kernels = analysis.kernels(key(args.by));
    }
    let findings = analysis.findings(&report)?;
    if output.format == Format::Json {
        let mut answer = value(&report)?;
        answer["findings"] = value(&findings.findings)?;
        return Ok(output.json(&answer)?);
    }
    note_no_work(analysis, output);
    let hidden = report.kernels.rows.len().saturating_sub(limit);
    report.kernels.rows.truncate(limit);
    if !analysis.activity.ops.is_empty() {
        tables::devices(&report.utilization, output)?;
        tables::idle(&report.idle, output)?;
    }
    tables::step_line(&report.steps, output)?;
    tables::kernels(&report.kernels, hidden, output)?;
    tables::copies(&report.copies, output)?;
    tables::launches(&report.launches, output)?;
    output.line("")?;
    answers::findings(&findings, limit, whole_span(analysis.trace), output)
}

/// Prints a note that there is no GPU work, instead of an empty table.
fn note_no_work(analysis: &Analysis<'_>, output: &mut Output) {
    if analysis.activity.ops.is_empty() {
        output.note(match analysis.activity.window == Window::default() {
            true => "no GPU work: the trace has no kernels, memcpys or memsets",
            false => "no GPU work in this time range",
        });
    }
}

/// Whether an analysis does not need GPU work, or reports itself that there is none.
fn has_own_note(only: AnalysisArg) -> bool {
    use AnalysisArg::{CriticalPath, Findings, Memory, Slack, Steps, WhatIf};
    matches!(only, CriticalPath | Findings | Memory | Slack | Steps | WhatIf)
}

fn one(
    only: AnalysisArg,
    args: &AnalyzeArgs,
    analysis: &Analysis<'_>,
    limit: usize,
    output: &mut Output,
) -> anyhow::Result<()> {
    let format = output.format;
    let doubts = &analysis.activity.doubts;
    if format == Format::Table && !has_own_note(only) {
        note_no_work(analysis, output);
    }
    match only {
        AnalysisArg::Utilization => {
            let (report, ..) = analysis.swept();
            match format {
                Format::Table => tables::devices(&report, output),
                _ => rows(&report.devices, "devices", doubts, output),
            }
        }
        AnalysisArg::Streams => {
            let (report, ..) = analysis.swept();
            match format {
                Format::Table => tables::streams(analysis.trace, &report.streams, limit, output),
                _ => rows(&report.streams, "streams", doubts, output),
            }
        }
        AnalysisArg::Idle => {
            let report = analysis.idle();
            match format {
                Format::Table => {
                    tables::idle(&report, output)?;
                    tables::stream_idle(&report, limit, output)?;
                    tables::gaps(&report, whole_span(analysis.trace), output)
                }
                Format::Csv => rows(&report.devices, "devices", doubts, output),
                Format::Json => Ok(output.json(&with_doubts(value(&report)?, doubts)?)?),
            }
        }
        AnalysisArg::Steps => {
            let (.., report) = analysis.swept();
            match format {
                Format::Table => tables::steps(analysis.trace, &report, limit, output),
                Format::Csv => rows(&report.steps, "steps", doubts, output),
                Format::Json => Ok(output.json(&with_doubts(value(&report)?, doubts)?)?),
            }
        }
        AnalysisArg::Kernels => {
            let (report, hidden) = kernels(args, analysis, limit);
            match format {
                Format::Table => tables::kernels(&report, hidden, output),
                Format::Csv => rows(&report.rows, "rows", doubts, output),
                Format::Json => Ok(output.json(&with_doubts(value(&report)?, doubts)?)?),
            }
        }
        AnalysisArg::Copies => {
            let report = analysis.copies()?;
            match format {
                Format::Table => tables::copies(&report, output),
                _ => rows(&report.rows, "rows", doubts, output),
            }
        }
        AnalysisArg::Launches => {
            let report = analysis.launches();
            match format {
                Format::Table => {
                    tables::launches(&report, output)?;
                    tables::launch_bound(&report, whole_span(analysis.trace), output)
                }
                Format::Csv => bail!("--only launches has several tables; use --format json"),
                Format::Json => Ok(output.json(&with_doubts(value(&report)?, doubts)?)?),
            }
        }
        AnalysisArg::Memory => {
            let report = MemoryReport::of(analysis.trace, analysis.activity.window)?;
            match format {
                Format::Table => answers::memory(&report, limit, whole_span(analysis.trace), output),
                Format::Csv => rows(&report.pools, "pools", doubts, output),
                Format::Json => Ok(output.json(&with_doubts(value(&report)?, doubts)?)?),
            }
        }
        AnalysisArg::CriticalPath => {
            let report = analysis.critical_path();
            match format {
                Format::Table => answers::critical_path(&report, limit, output),
                Format::Csv => csv(report.segments.iter(), output),
                Format::Json => Ok(output.json(&Doubtful { report, doubts })?),
            }
        }
        AnalysisArg::Slack => {
            let report = analysis.slack();
            match format {
                Format::Table => answers::slack(&report, limit, whole_span(analysis.trace), output),
                Format::Csv => csv(report.iter(), output),
                Format::Json => Ok(output.json(&SlackAnswer {
                    slack: &report,
                    doubts,
                })?),
            }
        }
        AnalysisArg::WhatIf => {
            let report = analysis.what_if(&what_if(args)?);
            if !args.scale.is_empty() && report.scaled_ops == 0 {
                output.warning("no GPU work matches --scale; nothing was scaled");
            }
            if args.scale.is_empty() && args.streams.is_none() && args.without_sync.is_none() {
                output.note("no change to simulate: use --scale 'name*=0.5', --streams or --without-sync");
            }
            if matches!(args.without_sync, Some(Some(_))) && report.left_waits == 0 {
                output.warning("no CPU wait matches --without-sync; none was removed");
            }
            match format {
                Format::Table => answers::what_if(&report, output),
                _ => rows(std::slice::from_ref(&report), "what_if", doubts, output),
            }
        }
        AnalysisArg::Findings => {
            let report = analysis.findings(&analysis.summary()?)?;
            match format {
                Format::Table => answers::findings(&report, limit, whole_span(analysis.trace), output),
                _ => rows(&report.findings, "findings", doubts, output),
            }
        }
    }
}

fn what_if(args: &AnalyzeArgs) -> anyhow::Result<WhatIf<'static>> {
    let mut scales = Vec::new();
    for text in &args.scale {
        let factor = text.rsplit_once('=').and_then(|(pattern, factor)| {
            let factor: f64 = factor.trim().parse().ok()?;
            (factor.is_finite() && factor >= 0.0).then_some((pattern, factor))
        });
        let (pattern, factor) =
            factor.with_context(|| format!("{text} is not a pattern and a factor, such as 'flash*=0.5'"))?;
        scales.push(Scale {
            is_meant: name_filter(pattern)?,
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
            Some(Some(pattern)) => HostWaits::LeftIn(name_filter(pattern)?),
        },
    })
}

fn value(report: &impl Serialize) -> anyhow::Result<Value> {
    serde_json::to_value(report).context("writing JSON")
}

fn with_doubts(mut report: Value, doubts: &Doubts) -> anyhow::Result<Value> {
    report["doubts"] = value(doubts)?;
    Ok(report)
}

/// A report with its data-quality warnings. It can be long, so it is serialized without an intermediate value.
#[derive(Serialize)]
struct Doubtful<'a, R> {
    #[serde(flatten)]
    report: R,
    doubts: &'a Doubts,
}

#[derive(Serialize)]
struct SlackAnswer<'a> {
    slack: &'a SlackReport<'a>,
    doubts: &'a Doubts,
}

/// Rows as a named JSON array, or as CSV.
fn rows<T: Serialize>(rows: &[T], name: &str, doubts: &Doubts, output: &mut Output) -> anyhow::Result<()> {
    if output.format == Format::Json {
        return Ok(output.json(&with_doubts(json!({ name: value(&rows)? }), doubts)?)?);
    }
    csv(rows.iter(), output)
}

/// Rows as CSV, with the names of their scalar members as header.
fn csv<T: Serialize>(rows: impl Iterator<Item = T>, output: &mut Output) -> anyhow::Result<()> {
    for (number, row) in rows.enumerate() {
        let row = value(&row)?;
        let members = row
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(_, value)| !value.is_array() && !value.is_object());
        if number == 0 {
            output.csv(members.clone().map(|(key, _)| key))?;
        }
        output.csv(members.map(|(_, value)| match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        }))?;
    }
    Ok(())
}

/// Prints data-quality warnings.
pub(crate) fn show_doubts(doubts: &Doubts, output: &mut Output) {
    for sentence in doubts.sentences() {
        output.warning(&sentence);
    }
}

/// The first and last timestamp of the trace. Times on the command line are relative to them.
pub(crate) fn whole_span(trace: &Trace) -> Option<(u64, u64)> {
    trace.span().map(|(first, last)| (first.0, last.0))
}

/// A time as an offset from the start of the trace, as `--from`, `--to` and `--at` accept it.
pub(crate) fn offset(span: Option<(u64, u64)>, time: u64) -> String {
    match span {
        Some((start, _)) if time >= start => format!("+{}", units::nanos(time - start)),
        _ => format!("@{time}"),
    }
}
