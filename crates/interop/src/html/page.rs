//! The sections of the page.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

use tracesmith_trace::analysis::{
    Breakdown, CopiesReport, FindingsReport, IdleReport, KernelsReport, MemoryReport, SummaryReport,
    short_name,
};
use tracesmith_trace::overview::{ActivityKind, Labels, Overview};
use tracesmith_trace::{Trace, units};

use super::{charts, whole_span};

/// Kernels, copies and findings on a page.
const MOST_KERNELS: usize = 25;
const MOST_FINDINGS: usize = 12;
const MOST_EVIDENCE: usize = 4;
const MOST_HOLDERS: usize = 8;

const STYLE: &str = include_str!("style.css");

/// The content of a page.
pub(super) struct Page<'a> {
    pub(super) trace: &'a Trace,
    pub(super) title: &'a str,
    /// The part of the trace that it is about.
    pub(super) part: Option<String>,
    pub(super) summary: &'a SummaryReport,
    pub(super) findings: &'a FindingsReport,
    pub(super) memory: &'a MemoryReport,
    pub(super) overview: &'a Overview,
}

impl Page<'_> {
    pub(super) fn html(&self) -> String {
        let title = escaped(self.title);
        let mut html = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\"><title>{title} – TraceSmith</title>\
             <style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n"
        );
        self.origin(&mut html);
        self.findings(&mut html);
        self.devices(&mut html);
        self.timeline(&mut html);
        idle(&self.summary.idle, &mut html);
        self.steps(&mut html);
        kernels(&self.summary.kernels, &mut html);
        copies(&self.summary.copies, &mut html);
        self.memory(&mut html);
        self.doubts(&mut html);
        let _ = writeln!(
            html,
            "<p class=\"faint\">Made by tracesmith {}. \
             docs/reference/metrics.md defines the numbers.</p></body></html>",
            env!("CARGO_PKG_VERSION")
        );
        html
    }

    fn origin(&self, html: &mut String) {
        let mut parts = Vec::new();
        parts.extend(self.part.clone());
        if let Some((from, to)) = self.summary.span_ns {
            parts.push(units::nanos(to - from));
        }
        let devices = &self.summary.utilization.devices;
        parts.extend(devices.iter().map(|device| device.name.clone()));
        let command = self
            .trace
            .processes
            .iter()
            .map(|process| self.trace.string(process.command))
            .find(|command| !command.is_empty());
        parts.extend(command.map(str::to_owned));
        let _ = writeln!(html, "<p class=\"faint\">{}</p>", escaped(&parts.join(" · ")));
    }

    fn findings(&self, html: &mut String) {
        html.push_str("<h2>Findings</h2>\n");
        if let Some(sentence) = &self.findings.gpu_bound {
            let _ = writeln!(html, "<p>{}.</p>", escaped(sentence));
        } else if self.findings.findings.is_empty() {
            html.push_str("<p>No problems found.</p>\n");
        }
        for finding in self.findings.findings.iter().take(MOST_FINDINGS) {
            let saves = finding.saves_ns.map_or_else(String::new, |saved| {
                format!(" <b>A fix saves at most {}.</b>", units::nanos(saved))
            });
            let _ = write!(
                html,
                "<div class=\"finding\"><p>{}.{saves}</p><p>{}.</p><p class=\"faint\">Assumes that {}.</p>",
                escaped(&finding.sentence),
                escaped(&finding.advice),
                escaped(finding.assumption)
            );
            if !finding.evidence.is_empty() {
                html.push_str("<ul class=\"faint\">");
                for evidence in finding.evidence.iter().take(MOST_EVIDENCE) {
                    let _ = write!(
                        html,
                        "<li>{} at {}{}</li>",
                        escaped(&evidence.what),
                        units::offset(whole_span(self.trace), evidence.start_ns),
                        evidence
                            .row
                            .map_or(String::new(), |row| format!(", row {row} of {}", evidence.table))
                    );
                }
                html.push_str("</ul>");
            }
            html.push_str("</div>\n");
        }
    }

    fn devices(&self, html: &mut String) {
        html.push_str("<h2>GPU utilization</h2>\n");
        if self.summary.utilization.devices.is_empty() {
            html.push_str("<p>The trace contains no GPU work.</p>\n");
            return;
        }
        for device in &self.summary.utilization.devices {
            let _ = write!(
                html,
                "<h3>{}</h3><p>{} of {} busy ({}), {} operations, up to {} at once</p>",
                escaped(&device.name),
                units::nanos(device.breakdown.busy_ns),
                units::nanos(device.breakdown.span_ns),
                percent(device.breakdown.utilization),
                units::count(device.ops),
                device.max_concurrency
            );
            breakdown(&device.breakdown, html);
        }
    }

    fn timeline(&self, html: &mut String) {
        if self.overview.rows.is_empty() {
            return;
        }
        html.push_str("<h2>Timeline</h2>\n<p class=\"legend\">");
        for activity in [
            ActivityKind::Kernel,
            ActivityKind::Communication,
            ActivityKind::Copy,
            ActivityKind::Set,
            ActivityKind::Graph,
        ] {
            if self.overview.rows.iter().any(|row| row.nanos_of(activity) > 0) {
                legend(charts::color(activity), activity.name(), html);
            }
        }
        let zero = self.trace.span().map_or(0, |(first, _)| first.0);
        let labels = Labels::new(self.trace, self.overview);
        let (picture, hidden) = charts::timeline(self.overview, &labels, zero);
        let _ = writeln!(html, "</p><div class=\"wide\">{picture}</div>");
        if hidden > 0 {
            let _ = writeln!(
                html,
                "<p class=\"faint\">{hidden} less busy rows are not shown.</p>"
            );
        }
    }

    fn steps(&self, html: &mut String) {
        let steps = &self.summary.steps;
        if steps.steps.len() < 2 {
            return;
        }
        let _ = writeln!(
            html,
            "<h2>Steps</h2><p>{} steps; {} {} on average, {} to {}</p>{}",
            steps.steps.len(),
            match steps.steps.iter().all(|row| row.step.is_settled()) {
                false => "without warm-up and steps that the trace cuts off (gray), they took",
                true => "they took",
            },
            units::nanos(steps.settled.mean_ns as u64),
            units::nanos(steps.settled.min_ns),
            units::nanos(steps.settled.max_ns),
            charts::steps(steps)
        );
    }

    fn memory(&self, html: &mut String) {
        if self.memory.pools.is_empty() {
            return;
        }
        html.push_str("<h2>Memory</h2>\n");
        let span = whole_span(self.trace).unwrap_or_default();
        for pool in &self.memory.pools {
            let process = match pool.rank {
                Some(rank) => format!("rank {rank}"),
                None if self.trace.processes.len() > 1 => format!("process {}", pool.pid),
                None => String::new(),
            };
            let of = [&process, pool.device_name.as_str(), pool.memory, &pool.allocator]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join(", ");
            let _ = write!(
                html,
                "<h3>{}</h3><p>peak {}, {} in use at the end, {} allocations</p>{}",
                escaped(&of),
                units::bytes(pool.peak_bytes),
                units::bytes(pool.live_bytes),
                units::count(pool.allocations),
                charts::memory(pool, span)
            );
            let holders: Vec<_> = pool
                .holders
                .iter()
                .filter(|holder| !holder.stack.is_empty())
                .collect();
            if !holders.is_empty() {
                html.push_str("<table><tr><th>at the peak</th><th class=\"text\">allocated by</th></tr>");
                for holder in holders.iter().take(MOST_HOLDERS) {
                    let _ = write!(
                        html,
                        "<tr><td>{}</td><td class=\"name\">{}</td></tr>",
                        units::bytes(holder.bytes),
                        escaped(&holder.stack)
                    );
                }
                html.push_str("</table>\n");
            }
        }
    }

    fn doubts(&self, html: &mut String) {
        let sentences = self.summary.doubts.sentences();
        if sentences.is_empty() {
            return;
        }
        html.push_str("<h2>Data quality</h2>\n<ul>");
        for sentence in sentences {
            let _ = write!(html, "<li>{}</li>", escaped(&sentence));
        }
        html.push_str("</ul>\n");
    }
}

/// A bar of what the device did, and how long it was idle. Communication and copies count only where no kernel ran at the
/// same time, so that the parts add up.
fn breakdown(of: &Breakdown, html: &mut String) {
    let sets = of
        .busy_ns
        .saturating_sub(of.compute_ns + of.communication_exposed_ns + of.copy_exposed_ns);
    let parts = [
        ("compute", "var(--kernel)", of.compute_ns),
        (
            "exposed communication",
            "var(--communication)",
            of.communication_exposed_ns,
        ),
        ("exposed memcpys", "var(--copy)", of.copy_exposed_ns),
        ("other", "var(--set)", sets),
        ("idle", "var(--idle)", of.idle_ns),
    ];
    let share = |nanos: u64| nanos as f64 / of.span_ns.max(1) as f64;
    html.push_str("<div class=\"stack\">");
    for (_, color, nanos) in parts {
        let _ = write!(
            html,
            "<span style=\"width:{:.3}%;background:{color}\"></span>",
            share(nanos) * 100.0
        );
    }
    html.push_str("</div><p class=\"legend\">");
    for (name, color, nanos) in parts.into_iter().filter(|(.., nanos)| *nanos > 0) {
        let words = format!("{name} {} ({})", units::nanos(nanos), percent(share(nanos)));
        legend(color, &words, html);
    }
    html.push_str("</p>\n");
}

fn legend(color: &str, words: &str, html: &mut String) {
    let _ = write!(
        html,
        "<span><i style=\"background:{color}\"></i>{}</span>",
        escaped(words)
    );
}

fn idle(report: &IdleReport, html: &mut String) {
    html.push_str("<h2>Causes of idle time</h2>\n");
    for device in &report.devices {
        let _ = write!(
            html,
            "<h3>{}</h3><div class=\"wide\"><table><tr><th>time</th><th>share</th><th>gaps</th><th class=\"text\">cause</th>\
             <th></th></tr>",
            escaped(&device.name)
        );
        for cause in device.causes.iter().filter(|cause| cause.total_ns > 0) {
            let _ = write!(
                html,
                "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"text\">{}</td><td class=\"text\">{}</td></tr>",
                units::nanos(cause.total_ns),
                percent(cause.share),
                units::count(cause.gaps),
                cause.cause.words(),
                bar(cause.share)
            );
        }
        html.push_str("</table></div>\n");
    }
}

fn kernels(report: &KernelsReport, html: &mut String) {
    let _ = write!(
        html,
        "<h2>Kernels</h2><p>{} of GPU time in {} kernels by name</p><div class=\"wide\"><table><tr><th>share</th>\
         <th>total</th><th>count</th><th>mean</th><th>p50</th><th>p99</th><th class=\"text\">name</th></tr>",
        units::nanos(report.total_ns),
        units::count(report.rows.len() as u64)
    );
    let shown = &report.rows[..report.rows.len().min(MOST_KERNELS)];
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for row in shown {
        *times.entry(short_name(&row.name)).or_default() += 1;
    }
    for row in shown {
        let of = &row.durations;
        // Names that differ only in their template arguments are shown with them.
        let name = match times.get(&short_name(&row.name)) {
            Some(1) | None => named(&row.name),
            Some(_) => clipped(&row.name, &row.name),
        };
        let _ = write!(
            html,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"name\">{}<br>{}</td></tr>",
            percent(row.share),
            units::nanos(of.total_ns),
            units::count(of.count),
            units::nanos(of.mean_ns as u64),
            units::nanos(of.p50_ns),
            units::nanos(of.p99_ns),
            name,
            bar(row.share)
        );
    }
    html.push_str("</table></div>\n");
    if report.rows.len() > MOST_KERNELS {
        let _ = writeln!(
            html,
            "<p class=\"faint\">{} more are not shown.</p>",
            report.rows.len() - MOST_KERNELS
        );
    }
}

fn copies(report: &CopiesReport, html: &mut String) {
    if report.rows.is_empty() {
        return;
    }
    html.push_str(
        "<h2>Memcpys and memsets</h2><div class=\"wide\"><table><tr><th class=\"text\">direction</th><th class=\"text\">from</th>\
         <th class=\"text\">to</th><th>count</th><th>bytes</th><th>time</th><th>speed</th><th>peak</th></tr>",
    );
    for row in &report.rows {
        let _ = write!(
            html,
            "<tr><td class=\"text\">{}</td><td class=\"text\">{}</td><td class=\"text\">{}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td>{}</td><td>{}</td></tr>",
            escaped(row.direction),
            escaped(row.source),
            escaped(row.destination),
            units::count(row.durations.count),
            units::bytes(row.bytes),
            units::nanos(row.durations.total_ns),
            units::rate(row.bytes, row.durations.total_ns),
            row.peak_gigabytes_per_second
                .map_or("unknown".to_owned(), |peak| format!("{peak:.1} GB/s"))
        );
    }
    html.push_str("</table></div>\n");
}

/// Characters of a name that are shown: a line or two. Names of templates can have thousands.
const MOST_LETTERS: usize = 120;

/// A kernel's name without its arguments. The browser shows the full name as a tooltip.
fn named(name: &str) -> String {
    clipped(&short_name(name), name)
}

/// The start of a text. The browser shows the full name as a tooltip.
fn clipped(text: &str, name: &str) -> String {
    let mut shown = text.to_owned();
    if let Some((end, _)) = shown.char_indices().nth(MOST_LETTERS) {
        shown.truncate(end);
        shown.push('…');
    }
    if *shown == *name {
        return escaped(name).into_owned();
    }
    format!("<span title=\"{}\">{}</span>", escaped(name), escaped(&shown))
}

/// A share as `analyze` prints it.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn bar(share: f64) -> String {
    format!(
        "<span class=\"bar\" style=\"width:{:.1}rem\"></span>",
        share * 16.0
    )
}

/// Text with the characters escaped that HTML interprets.
pub(super) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>', '"', '\'']) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_length_take_two_lines() {
        assert_eq!(named("a<b>"), "<span title=\"a&lt;b&gt;\">a</span>");
        let long = "x".repeat(3_000);
        let shown = format!("<span title=\"{long}\">{}…</span>", "x".repeat(MOST_LETTERS));
        assert_eq!(named(&long), shown);
    }
}
