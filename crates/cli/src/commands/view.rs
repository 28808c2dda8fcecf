//! `tracesmith view`.

mod rows;
mod stacks;
mod stats;
mod timeline;

use std::ops::ControlFlow;
use std::sync::Arc;

use tracesmith_trace::{EventKind, NamePattern, Query, QueryRun, SortKey, Trace, units};

use crate::args::{Format, ViewArgs};
use crate::commands::analyze::limit_of;
use crate::input::{open_trace, warn_of_damage};
use crate::output::Output;
use crate::progress::{Bar, Progress};
use crate::select::{range_of, selection};
use crate::timeline::Charset;
use rows::RowWriter;
use stacks::Stacks;
use timeline::Picture;

/// Default number of rows of a table: a screen or two.
const DEFAULT_TABLE_ROWS: usize = 100;

pub(crate) fn run(args: ViewArgs, output: &mut Output) -> anyhow::Result<()> {
    if args.lean {
        output.make_lean(limit_of(args.limit, DEFAULT_TABLE_ROWS))?;
    }
    let trace = Arc::new(open_trace(&args.file)?);
    let mut query = query(&args, &trace)?;
    // Rows that come one by one on the same terminal are progress enough.
    let come_at_once = args.stats || args.timeline || args.sort != SortKey::Start || output.width().is_none();
    let bar = if come_at_once { output.bar() } else { Bar::Hidden };
    let progress = Progress::new("reading", trace.file_bytes(), bar).into_fn();
    let limit = match output.format {
        Format::Json | Format::Csv if !args.lean => limit_of(args.limit, usize::MAX),
        _ => limit_of(args.limit, DEFAULT_TABLE_ROWS),
    };
    if args.timeline {
        let charset = if args.ascii {
            Charset::Ascii
        } else {
            Charset::of_locale()
        };
        let picture = Picture {
            width: args.width.map(usize::from),
            charset,
            limit,
        };
        timeline::show(&trace, &mut query, &progress, &picture, output)?;
    } else if args.stats {
        stats::show(&trace, query.with_progress(&progress), limit, output)?;
    } else {
        if args.stacks && trace.stack_nodes().next().is_none() {
            output.note("this trace has no stacks; 'tracesmith profile --stacks native,python' records them");
        }
        let stacks = if args.stacks {
            Stacks::Shown
        } else {
            Stacks::Hidden
        };
        if !args.row.is_empty() {
            show_chosen(&trace, &args, stacks, output)?;
            warn_of_damage(&trace, &args.file, output);
            return Ok(());
        }
        show_rows(
            &trace,
            query.with_progress(&progress),
            args.sort,
            limit,
            stacks,
            output,
        )?;
    }
    warn_of_damage(&trace, &args.file, output);
    Ok(())
}

/// Totals of a trace, the longest first.
pub(crate) fn show_totals(
    trace: &Trace,
    query: &Query,
    limit: usize,
    output: &mut Output,
) -> anyhow::Result<()> {
    stats::show(trace, query.into(), limit, output)
}

/// Shows the rows that were chosen one by one.
fn show_chosen(trace: &Trace, args: &ViewArgs, stacks: Stacks, output: &mut Output) -> anyhow::Result<()> {
    let mut kinds: Vec<EventKind> = args.row.iter().map(|row| row.kind).collect();
    kinds.dedup();
    let query = Query {
        kinds: Some(kinds),
        ..Query::default()
    };
    let mut writer = RowWriter::new(trace, &query, stacks, output)?;
    for row in &args.row {
        row.find(trace, |found| writer.row(found))??;
    }
    writer.finish()
}

fn show_rows(
    trace: &Trace,
    query: QueryRun<'_>,
    sort: SortKey,
    limit: usize,
    stacks: Stacks,
    output: &mut Output,
) -> anyhow::Result<()> {
    let mut writer = RowWriter::new(trace, &query, stacks, output)?;
    let mut result = Ok(());
    let mut count = 0;
    let mut more = false;
    let mut show = |found: &tracesmith_trace::Found<'_>| {
        if count == limit {
            more = true;
            return ControlFlow::Break(());
        }
        count += 1;
        result = writer.row(found);
        if result.is_err() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let total = if sort == SortKey::Start {
        trace.for_each_event_by_time(query, &mut show);
        None
    } else {
        Some(trace.for_each_event_sorted(query, sort, limit, &mut show))
    };
    result?;
    writer.finish()?;
    let hidden = total
        .map(|total| total - count as u64)
        .filter(|hidden| *hidden > 0);
    match hidden {
        Some(hidden) => output.note(&format!(
            "{} more rows; --limit 0 shows all",
            units::count(hidden)
        )),
        None if more => output.note("there are more rows; --limit 0 shows all"),
        None => {}
    }
    Ok(())
}

fn query(args: &ViewArgs, trace: &Arc<Trace>) -> anyhow::Result<Query> {
    let selection = selection(&args.select, trace)?;
    let range = range_of(&args.select.stretch, &selection, trace)?;
    Ok(Query {
        kinds: (!args.kind.is_empty()).then(|| args.kind.clone()),
        name: args.name.as_deref().map(NamePattern::new).transpose()?,
        streams: selection.streams,
        devices: selection.devices,
        processes: selection.processes,
        from: range.from,
        to: range.to,
    })
}
