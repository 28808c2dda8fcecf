//! `tracesmith view --timeline`: what every stream was busy with, as a picture of characters.

use anstyle::Style;
use anyhow::bail;
use serde_json::{Value, json};
use tracesmith_trace::overview::{
    ActivityKind, Axis, DEVICE_KINDS, Doubtful, HOST_KINDS, Labels, Overview, OverviewRow, RowKey,
    ThreadRole, TimeSpan,
};
use tracesmith_trace::{ProgressFn, Query, Trace, units};
use unicode_width::UnicodeWidthStr;

use crate::args::Format;
use crate::output::table::clipped;
use crate::output::{Colors, FAINT, HEADING, Output};
use crate::timeline::{Charset, color, percent};

/// Columns where there is no terminal to say so.
const DEFAULT_WIDTH: usize = 100;
/// Columns of a row's percentage, with the space before it.
const PERCENT_WIDTH: usize = 9;
/// Columns of a row's label: a part of the width within these bounds, so that the number of cells is known before the rows.
const LABEL_PART: usize = 4;
const LABEL_WIDTHS: (usize, usize) = (14, 28);

/// How the picture shall be.
pub(super) struct Picture {
    /// Columns of a line; for programs, cells.
    pub(super) width: Option<usize>,
    pub(super) charset: Charset,
    /// The most rows.
    pub(super) limit: usize,
}

pub(super) fn show(
    trace: &Trace,
    query: &mut Query,
    progress: &ProgressFn,
    picture: &Picture,
    output: &mut Output,
) -> anyhow::Result<()> {
    let kinds = query.kinds.get_or_insert_with(|| DEVICE_KINDS.to_vec());
    if let Some(kind) = kinds
        .iter()
        .find(|kind| !DEVICE_KINDS.contains(kind) && !HOST_KINDS.contains(kind))
    {
        bail!(
            "a timeline cannot show the kind {}: its events have no duration",
            kind.name()
        );
    }
    let is_of_devices = kinds.iter().all(|kind| DEVICE_KINDS.contains(kind));
    let width = picture.width.or(output.width()).unwrap_or(DEFAULT_WIDTH).max(1);
    let cells = match output.format {
        Format::Table => width.saturating_sub(label_width(width) + PERCENT_WIDTH).max(1),
        Format::Json | Format::Csv => width,
    };
    let overview = match TimeSpan::of(trace, query) {
        Some(window) => Overview::new(trace, query.with_progress(progress), window, cells),
        None => Overview::default(),
    };
    match output.format {
        Format::Table if overview.rows.is_empty() && is_of_devices && trace.span().is_some() => {
            output.note("no GPU work matches; --kind api,marker,host shows the CPU threads");
        }
        Format::Table if overview.rows.is_empty() => output.note("no events"),
        Format::Table => Drawing {
            overview: &overview,
            labels: Labels::new(trace, &overview),
            zero: trace.span().map_or(0, |(first, _)| first.0),
            label_width: label_width(width),
            charset: picture.charset,
            colors: output.colors(),
        }
        .draw(picture.limit, output)?,
        Format::Json => output.json(&json_of(trace, &overview, picture.limit))?,
        Format::Csv => write_csv(trace, &overview, picture.limit, output)?,
    }
    let collectives = trace.collectives.rows();
    let is_drawn = |row: &OverviewRow| row.nanos_of(ActivityKind::Communication) > 0;
    if output.format == Format::Table && collectives > 0 && overview.rows.iter().any(is_drawn) {
        output.note(&format!(
            "{} as communication here; `analyze` counts only kernels, memcpys and memsets",
            units::counted(collectives, "collective counts", "collectives count")
        ));
    }
    note_doubts(overview.doubtful, output);
    Ok(())
}

fn label_width(width: usize) -> usize {
    (width / LABEL_PART).clamp(LABEL_WIDTHS.0, LABEL_WIDTHS.1)
}

/// Says what of the trace is not to be seen, or not as it was.
fn note_doubts(doubtful: Doubtful, output: &mut Output) {
    let doubts = [
        (doubtful.without_time, "not shown because they have no timestamp"),
        (
            doubtful.without_end,
            "shown without duration because they have no end",
        ),
        (
            doubtful.backwards,
            "shown without duration because they end before they start",
        ),
    ];
    for (count, what) in doubts.into_iter().filter(|(count, _)| *count > 0) {
        output.note(&format!("events {what}: {}", units::count(count)));
    }
    if doubtful.has_more_rows {
        output.warning("too many streams and threads to show; select some with --stream or --process");
    }
}

struct Drawing<'a> {
    overview: &'a Overview,
    labels: Labels<'a>,
    /// Where the trace starts.
    zero: u64,
    label_width: usize,
    charset: Charset,
    colors: Colors,
}

impl Drawing<'_> {
    fn draw(&self, limit: usize, output: &mut Output) -> anyhow::Result<()> {
        self.head(output)?;
        let mut group = None;
        for row in busiest(self.overview, limit) {
            let name = self.labels.group(row.key);
            if group.as_ref() != Some(&name) {
                output.line(&format!("{HEADING}{}{HEADING:#}", self.charset.text(&name)))?;
                group = Some(name);
            }
            self.row(row, output)?;
        }
        self.legend(output)?;
        let hidden = self.overview.rows.len().saturating_sub(limit);
        if hidden > 0 {
            output.note(&format!(
                "{} hidden; --limit 0 shows all",
                units::counted(hidden as u64, "less busy row is", "less busy rows are")
            ));
        }
        Ok(())
    }

    /// What stretch of time it is, and the axis.
    fn head(&self, output: &mut Output) -> anyhow::Result<()> {
        let window = self.overview.window();
        let axis = Axis::new(window, self.zero);
        let cells = self.overview.cells() as u64;
        let head = format!(
            "{} from {} to {}, one cell is {}",
            units::nanos(window.nanos()),
            axis.moment(window.from),
            axis.moment(window.to),
            units::nanos(window.nanos().div_ceil(cells)),
        );
        output.line(&self.charset.text(&head))?;
        output.line("")?;
        let mut times = " ".repeat(self.label_width);
        for tick in axis.ticks(self.overview.cells()) {
            let column = self.label_width + tick.column;
            times += &" ".repeat(column.saturating_sub(times.width()));
            times.push(self.charset.tick());
            times += &self.charset.text(&tick.label);
        }
        output.line(&format!("{FAINT}{}{FAINT:#}", times.trim_end()))?;
        Ok(())
    }

    fn row(&self, row: &OverviewRow, output: &mut Output) -> anyhow::Result<()> {
        let overview = self.overview;
        let cells = (0..overview.cells()).map(|cell| {
            let activity = row.activity(cell);
            let share = overview.share(row, cell);
            let shown = match activity {
                _ if share > 0.0 => self.charset.level(share),
                Some(ActivityKind::Sync) => self.charset.wait(),
                _ if row.starts(cell) > 0 => self.charset.moment(),
                _ => ' ',
            };
            (shown, activity)
        });
        // A row of nothing but waits is not idle: nobody asks whether it works.
        let busy = if row.has_work() {
            percent(overview.utilization(row))
        } else {
            String::new()
        };
        output.line(&self.line(&format!("  {}", self.labels.row(row.key)), cells, &busy))?;
        // What colours would tell stands in rows of its own where there are none.
        let present: Vec<ActivityKind> = ActivityKind::ALL
            .into_iter()
            .filter(|activity| row.nanos_of(*activity) > 0)
            .collect();
        if self.colors == Colors::Shown || present.len() < 2 {
            return Ok(());
        }
        for activity in present {
            let Some(nanos) = row.cells_of(activity) else {
                continue;
            };
            let cells = nanos.iter().enumerate().map(|(cell, nanos)| {
                let share = overview.share_of(*nanos, cell);
                (self.charset.level(share), Some(activity))
            });
            let share = row.nanos_of(activity) as f64 / overview.window().nanos() as f64;
            output.line(&self.line(&format!("    {}", activity.name()), cells, &percent(share)))?;
        }
        Ok(())
    }

    /// A label, cells in runs of one colour, and a percentage.
    fn line(
        &self,
        label: &str,
        cells: impl Iterator<Item = (char, Option<ActivityKind>)>,
        percent: &str,
    ) -> String {
        let label = self.charset.text(&clipped(label, self.label_width - 1));
        let mut line = format!("{label:<width$}", width = self.label_width);
        // Characters that take two columns.
        line.truncate(
            line.len()
                .saturating_sub(line.width().saturating_sub(self.label_width)),
        );
        let mut style = None;
        for (shown, activity) in cells {
            let wanted = activity.filter(|_| shown != ' ').map(style_of);
            if wanted != style {
                if let Some(style) = style {
                    line += &format!("{style:#}");
                }
                if let Some(wanted) = wanted {
                    line += &format!("{wanted}");
                }
                style = wanted;
            }
            line.push(shown);
        }
        if let Some(style) = style {
            line += &format!("{style:#}");
        }
        format!("{line}{percent:>PERCENT_WIDTH$}").trim_end().to_owned()
    }

    /// What the colours and characters mean, as far as they are used.
    fn legend(&self, output: &mut Output) -> anyhow::Result<()> {
        let [least, .., most] = self.charset.levels();
        let rows = &self.overview.rows;
        let mut parts = Vec::new();
        for activity in ActivityKind::ALL {
            if !rows.iter().any(|row| row.nanos_of(activity) > 0) {
                continue;
            }
            let (sign, style) = (
                if activity.is_work() {
                    most
                } else {
                    self.charset.wait()
                },
                style_of(activity),
            );
            match self.colors {
                Colors::Shown => parts.push(format!("{style}{sign}{style:#} {}", activity.name())),
                Colors::Hidden if !activity.is_work() => {
                    parts.push(format!("{sign} only {}", activity.name()))
                }
                Colors::Hidden => {}
            }
        }
        parts.push(format!("{least} to {most} busy share of a cell"));
        let is_moment = |row: &OverviewRow, cell| row.activity(cell).is_none() && row.starts(cell) > 0;
        let has_moments = |row: &OverviewRow| (0..self.overview.cells()).any(|cell| is_moment(row, cell));
        if rows.iter().any(has_moments) {
            parts.push(format!("{} no duration", self.charset.moment()));
        }
        output.line("")?;
        output.line(&parts.join("   "))?;
        Ok(())
    }
}

/// The busiest rows, in the order of the picture. A device as a whole comes before its streams.
fn busiest(overview: &Overview, limit: usize) -> Vec<&OverviewRow> {
    let mut numbers: Vec<usize> = (0..overview.rows.len()).collect();
    if limit < numbers.len() {
        let rank = |number: &usize| {
            let row = &overview.rows[*number];
            let whole = matches!(row.key, RowKey::Device { .. });
            std::cmp::Reverse((whole, row.busy_nanos(), row.events))
        };
        numbers.sort_by_key(rank);
        numbers.truncate(limit);
        numbers.sort_unstable();
    }
    numbers.into_iter().map(|number| &overview.rows[number]).collect()
}

fn style_of(activity: ActivityKind) -> Style {
    color(activity).on_default()
}

/// Who a row is about, for programs: the kind of row, the GPU's number, process, pid, context, stream and thread.
fn identity(trace: &Trace, key: RowKey) -> [(&'static str, Value); 7] {
    let ordinal = |id| trace.device(id).map(|device| device.ordinal);
    let (word, context, stream, thread) = match key {
        RowKey::Device { .. } => ("device", None, None, None),
        RowKey::Stream { context, stream, .. } => ("stream", Some(context.0), Some(stream.0), None),
        RowKey::Waits { .. } => ("waits", None, None, None),
        RowKey::Thread { thread, role, .. } => match role {
            ThreadRole::Markers => ("marker", None, None, Some(thread.0)),
            ThreadRole::Host => ("host", None, None, Some(thread.0)),
            ThreadRole::Calls => ("api", None, None, Some(thread.0)),
        },
        RowKey::Counter(_) => ("counter", None, None, None),
    };
    let process = key.process();
    let pid = process
        .and_then(|id| trace.process(id))
        .map(|process| process.pid);
    [
        ("row", json!(word)),
        ("device", json!(key.device().and_then(ordinal))),
        ("process", json!(process.map(|process| process.0))),
        ("pid", json!(pid)),
        ("context", json!(context)),
        ("stream", json!(stream)),
        ("thread", json!(thread)),
    ]
}

fn json_of(trace: &Trace, overview: &Overview, limit: usize) -> Value {
    let rows = busiest(overview, limit).into_iter().map(|row| {
        let mut object: serde_json::Map<String, Value> = identity(trace, row.key)
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        let by_kind: serde_json::Map<String, Value> = ActivityKind::ALL
            .into_iter()
            .filter(|activity| row.cells_of(*activity).is_some())
            .map(|activity| (activity.name().to_owned(), json!(row.nanos_of(activity))))
            .collect();
        let cells: Vec<u64> = (0..overview.cells())
            .map(|cell| row.busy_nanos_of(cell))
            .collect();
        object.insert("events".to_owned(), json!(row.events));
        object.insert("busy_ns".to_owned(), json!(row.busy_nanos()));
        object.insert("utilization".to_owned(), json!(overview.utilization(row)));
        object.insert("busy_ns_by_kind".to_owned(), Value::Object(by_kind));
        object.insert("busy_ns_by_cell".to_owned(), json!(cells));
        Value::Object(object)
    });
    let rows: Vec<Value> = rows.collect();
    let window = overview.window();
    let times = if overview.cells() == 0 {
        [Value::Null, Value::Null]
    } else {
        [json!(window.from.0), json!(window.to.0)]
    };
    let [from, to] = times;
    json!({
        "from_ns": from,
        "to_ns": to,
        "cells": overview.cells(),
        "without_time": overview.doubtful.without_time,
        "without_end": overview.doubtful.without_end,
        "backwards": overview.doubtful.backwards,
        "has_more_rows": overview.doubtful.has_more_rows,
        "rows": rows,
    })
}

/// One line for each cell that has something.
fn write_csv(trace: &Trace, overview: &Overview, limit: usize, output: &mut Output) -> anyhow::Result<()> {
    output.csv([
        "row", "device", "process", "pid", "context", "stream", "thread", "from_ns", "to_ns", "events",
        "busy_ns", "kind",
    ])?;
    for row in busiest(overview, limit) {
        let who = identity(trace, row.key).map(|(_, value)| match value {
            Value::Null => String::new(),
            Value::String(text) => text,
            other => other.to_string(),
        });
        for cell in 0..overview.cells() {
            let activity = row.activity(cell);
            if activity.is_none() && row.starts(cell) == 0 {
                continue;
            }
            let (from, to) = overview.cell(cell);
            let kind = activity.map_or("", ActivityKind::name).to_owned();
            let numbers = [from.0, to.0, u64::from(row.starts(cell)), row.busy_nanos_of(cell)];
            let fields = who
                .iter()
                .cloned()
                .chain(numbers.map(|number| number.to_string()));
            output.csv(fields.chain([kind]))?;
        }
    }
    Ok(())
}
