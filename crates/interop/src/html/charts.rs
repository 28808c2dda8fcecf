//! The charts of the page, as SVG.

use std::fmt::Write;

use tracesmith_trace::analysis::{MemoryPool, StepsReport};
use tracesmith_trace::overview::{ActivityKind, Labels, Overview, OverviewRow, RowKey};
use tracesmith_trace::units;

use super::page::{escaped, percent};

/// Sizes in pixels at the full width of the page.
const WIDTH: f64 = 1100.0;
const LABEL: f64 = 170.0;
const SHARE: f64 = 60.0;
const ROW: f64 = 26.0;
const AXIS: f64 = 18.0;

/// The timeline shows at most so many rows: the busiest.
const MOST_ROWS: usize = 40;

/// The color of an activity: a variable of style.css.
pub(super) fn color(activity: ActivityKind) -> &'static str {
    match activity {
        ActivityKind::Kernel => "var(--kernel)",
        ActivityKind::Communication => "var(--communication)",
        ActivityKind::Copy => "var(--copy)",
        ActivityKind::Set => "var(--set)",
        ActivityKind::Graph => "var(--graph)",
        _ => "var(--idle)",
    }
}

/// What every device and stream was busy with. Returns the chart and the number of rows that it omits.
pub(super) fn timeline(overview: &Overview, labels: &Labels<'_>, zero: u64) -> (String, usize) {
    let busy: Vec<&OverviewRow> = overview.rows.iter().filter(|row| row.has_work()).collect();
    let mut shown = busy.clone();
    shown.sort_by_key(|row| std::cmp::Reverse(row.busy_nanos()));
    shown.truncate(MOST_ROWS);
    let rows: Vec<&OverviewRow> = busy
        .iter()
        .copied()
        .filter(|row| shown.iter().any(|other| other.key == row.key))
        .collect();
    let height = AXIS + ROW * rows.len() as f64;
    let width = WIDTH - LABEL - SHARE;
    let cells = overview.cells().max(1);
    let cell_width = width / cells as f64;
    let mut svg = open(height, "timeline");
    for tick in 0..=4 {
        let share = f64::from(tick) / 4.0;
        let time =
            overview.window().from.0.saturating_sub(zero) as f64 + share * overview.window().nanos() as f64;
        let x = LABEL + share * width;
        let anchor = match tick {
            0 => "start",
            4 => "end",
            _ => "middle",
        };
        let _ = write!(
            svg,
            "<text class=\"faint\" x=\"{x:.1}\" y=\"12\" text-anchor=\"{anchor}\">{}</text>",
            units::nanos(time as u64)
        );
    }
    for (place, row) in rows.iter().enumerate() {
        let y = AXIS + ROW * place as f64;
        let name = match row.key {
            RowKey::Device { .. } => labels.group(row.key),
            _ => format!("  {}", labels.row(row.key)),
        };
        let share = overview.utilization(row);
        let _ = write!(
            svg,
            "<text x=\"0\" y=\"{:.1}\" xml:space=\"preserve\">{}</text><text class=\"faint\" x=\"{WIDTH}\" y=\"{:.1}\" \
             text-anchor=\"end\">{}</text>",
            y + 20.0,
            escaped(&clipped(&name)),
            y + 20.0,
            percent(share)
        );
        cells_of(overview, row, y, cell_width, &mut svg);
    }
    svg.push_str("</svg>");
    (svg, busy.len() - rows.len())
}

/// The cells of a row. The height of a cell shows how busy it was, and its color with what. Equal cells are one rectangle.
fn cells_of(overview: &Overview, row: &OverviewRow, y: f64, cell_width: f64, svg: &mut String) {
    let level = |cell: usize| {
        let activity = row.activity(cell).filter(|activity| activity.is_work())?;
        let share = overview.share(row, cell);
        (share > 0.0).then(|| ((share * 22.0).ceil() as u32, activity))
    };
    let mut cell = 0;
    while cell < overview.cells() {
        let found = level(cell);
        let first = cell;
        while cell < overview.cells() && level(cell) == found {
            cell += 1;
        }
        if let Some((height, activity)) = found {
            let _ = write!(
                svg,
                "<rect x=\"{:.2}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{height}\" fill=\"{}\"/>",
                LABEL + first as f64 * cell_width,
                y + 24.0 - f64::from(height),
                (cell - first) as f64 * cell_width,
                color(activity)
            );
        }
    }
}

/// How long each step took.
pub(super) fn steps(report: &StepsReport) -> String {
    const HEIGHT: f64 = 90.0;
    let longest = report.steps.iter().map(|row| row.step.duration()).max();
    let longest = longest.unwrap_or(0).max(1) as f64;
    let each = (WIDTH / report.steps.len().max(1) as f64).min(81.0);
    let mut svg = open(HEIGHT, "time of each step");
    for (place, row) in report.steps.iter().enumerate() {
        let height = row.step.duration() as f64 / longest * (HEIGHT - 4.0);
        let fill = match row.step.is_settled() {
            true => "var(--kernel)",
            false => "var(--idle)",
        };
        let _ = write!(
            svg,
            "<rect x=\"{:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{height:.2}\" fill=\"{fill}\"><title>{}: {}</title></rect>",
            place as f64 * each,
            HEIGHT - height,
            (each - 1.0).max(0.5),
            escaped(&row.step.name),
            units::nanos(row.step.duration())
        );
    }
    svg.push_str("</svg>");
    svg
}

/// Allocated bytes over time.
pub(super) fn memory(pool: &MemoryPool, span: (u64, u64)) -> String {
    const HEIGHT: f64 = 120.0;
    let (from, to) = span;
    let length = to.saturating_sub(from).max(1) as f64;
    let peak = pool.peak_bytes.max(1) as f64;
    let mut path = String::new();
    let mut last = HEIGHT;
    for point in &pool.series {
        let x = point.time_ns.saturating_sub(from) as f64 / length * WIDTH;
        let y = HEIGHT - point.bytes as f64 / peak * (HEIGHT - 14.0);
        let _ = write!(path, "L{x:.1} {last:.1}L{x:.1} {y:.1}");
        last = y;
    }
    let mut svg = open(HEIGHT + 18.0, "memory over time");
    let _ = write!(
        svg,
        "<path d=\"M0 {HEIGHT}{path}L{WIDTH} {last:.1}L{WIDTH} {HEIGHT}Z\" fill=\"var(--set)\" fill-opacity=\"0.35\" \
         stroke=\"var(--set)\"/><text x=\"4\" y=\"11\">{}</text>",
        units::bytes(pool.peak_bytes)
    );
    let below = HEIGHT + 13.0;
    let _ = write!(
        svg,
        "<text class=\"faint\" x=\"0\" y=\"{below}\">0</text>\
         <text class=\"faint\" x=\"{WIDTH}\" y=\"{below}\" text-anchor=\"end\">{}</text></svg>",
        units::nanos(to - from)
    );
    svg
}

fn open(height: f64, what: &str) -> String {
    format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{what}\">")
}

/// As much of a label as fits.
fn clipped(label: &str) -> String {
    const MOST: usize = 27;
    if label.chars().count() <= MOST {
        return label.to_owned();
    }
    let kept: String = label.chars().take(MOST - 1).collect();
    kept + "…"
}
