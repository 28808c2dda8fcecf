//! `tracesmith diff`.

mod tables;

use std::sync::Arc;

use anyhow::Context;
use serde_json::json;
use tracesmith_trace::analysis::{Analysis, DiffKey, DiffReport, Fate, KernelDiff};
use tracesmith_trace::reconstruct::Window;

use crate::args::{DiffArgs, DiffKeyArg, Format};
use crate::commands::analyze::{limit_of, show_doubts};
use crate::exit::Exit;
use crate::input::open_trace;
use crate::output::Output;

/// Kernels of a table, unless chosen otherwise.
const ROWS: usize = 20;

pub(crate) fn run(args: &DiffArgs, output: &mut Output) -> anyhow::Result<Exit> {
    if args.lean {
        output.make_lean(limit_of(args.limit, ROWS))?;
    }
    let (before, after) = (
        Arc::new(open_trace(&args.before)?),
        Arc::new(open_trace(&args.after)?),
    );
    let a = Analysis::of(&before, Window::default())?;
    let b = Analysis::of(&after, Window::default())?;
    let report = DiffReport::of(&a, &b, key(args.by))?;
    let limit = match output.format {
        Format::Table => limit_of(args.limit, ROWS),
        _ => limit_of(args.limit, usize::MAX),
    };
    let is_over = args.fail_over.is_some_and(|limit| report.is_slower_by(limit.0));
    match output.format {
        Format::Table => tables::show(&report, limit, output)?,
        Format::Json => {
            let mut answer = serde_json::to_value(&report).context("writing JSON")?;
            answer["is_over"] = json!(args.fail_over.map(|_| is_over));
            answer["doubts_a"] = json!(a.activity.doubts);
            answer["doubts_b"] = json!(b.activity.doubts);
            output.json(&answer)?;
        }
        Format::Csv => {
            output.csv([
                "name",
                "renamed_to",
                "fate",
                "count_a",
                "count_b",
                "a_ns",
                "b_ns",
                "change_ns",
                "p",
                "p_adjusted",
                "is_in_every_step",
                "is_significant",
            ])?;
            for kernel in report.kernels.iter().take(limit) {
                output.csv(csv_row(kernel))?;
            }
        }
    }
    if output.format != Format::Json {
        show_doubts(&a.activity.doubts, output);
        show_doubts(&b.activity.doubts, output);
    }
    if let Some(allowed) = args.fail_over.filter(|_| is_over) {
        output.note(&format!(
            "the time increased by more than {:.1} %",
            100.0 * allowed.0
        ));
    }
    Ok(Exit::from_check(!is_over))
}

fn key(arg: DiffKeyArg) -> DiffKey {
    match arg {
        DiffKeyArg::Name => DiffKey::Name,
        DiffKeyArg::Short => DiffKey::Short,
    }
}

fn csv_row(kernel: &KernelDiff) -> [String; 12] {
    let time = &kernel.time;
    let number = |p: Option<f64>| p.map_or(String::new(), |p| p.to_string());
    [
        kernel.name.clone(),
        kernel.renamed_to.clone().unwrap_or_default(),
        fate(kernel.fate).to_owned(),
        kernel.count_a.to_string(),
        kernel.count_b.to_string(),
        time.a_ns.to_string(),
        time.b_ns.to_string(),
        time.change_ns.to_string(),
        number(time.p),
        number(time.p_adjusted),
        time.is_in_every_step.to_string(),
        time.is_significant.to_string(),
    ]
}

fn fate(fate: Fate) -> &'static str {
    match fate {
        Fate::Kept => "kept",
        Fate::Renamed => "renamed",
        Fate::New => "new",
        Fate::Gone => "gone",
    }
}
