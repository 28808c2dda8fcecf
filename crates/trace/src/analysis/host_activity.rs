//! What the CPU did while GPUs waited for it.
//!
//! A GPU that is idle because the CPU is busy between calls waits for one thread: the one that makes the next launch. This
//! analysis lists where that thread was: in which operators, NVTX ranges and Python functions, and at which line it made
//! the call that ended the gap. It does the same for the CPU's part of the critical path.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use tracesmith_format::StringId;

use super::host_places::{HostPlaces, LineFinder};
use super::kernels::share;
use super::registry::{Analyzer, Answer, Need, row};
use crate::error::Error;
use crate::model::trace::Trace;
use crate::reconstruct::{Activity, CallId, Gap, LinkKind, Node, Timeline, Timing, Window, without_sequence};

pub(super) const ANALYZER: Analyzer = Analyzer {
    name: "host",
    aliases: &["cpu"],
    description: "What the CPU did while GPUs waited for it: operators, NVTX ranges and Python lines",
    needs: Need::OpsOrCalls,
    run: |analysis, _| {
        Ok(Answer::whole(analysis.host_activity()?, |report| {
            Box::new(report.rows().map(row))
        }))
    },
};

/// What the CPU did while GPUs waited for it.
#[derive(Clone, Debug)]
pub struct HostActivityReport {
    /// While a GPU was idle and the CPU was busy between calls.
    pub idle: Arc<HostTime>,
    /// In the CPU's part of the critical path.
    pub critical_path: Arc<HostTime>,
}

/// Where threads were during some time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HostTime {
    /// The time. Gaps of several GPUs at once count each.
    pub total_ns: u64,
    /// By the outermost operator of a framework.
    pub operators: Vec<HostRow>,
    /// By the innermost NVTX range, or range of a framework. A number at the end of a name is left out.
    pub ranges: Vec<HostRow>,
    /// By the innermost Python function that is not in an installed package.
    pub functions: Vec<HostRow>,
    /// By the line of the call that the thread made next.
    pub lines: Vec<HostRow>,
}

/// A place in the program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostRow {
    /// The operator, range, function or line.
    pub name: String,
    /// The time there.
    pub total_ns: u64,
    /// Its share of all the time.
    pub share: f64,
}

/// A row of the CSV form.
#[derive(Serialize)]
struct FlatRow<'a> {
    part: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    row: &'a HostRow,
}

impl HostActivityReport {
    fn rows(&self) -> impl Iterator<Item = FlatRow<'_>> {
        let parts = [("idle", &self.idle), ("critical_path", &self.critical_path)];
        parts.into_iter().flat_map(|(part, time)| {
            time.lists()
                .into_iter()
                .flat_map(move |(kind, rows)| rows.iter().map(move |row| FlatRow { part, kind, row }))
        })
    }
}

impl Serialize for HostActivityReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut report = serializer.serialize_struct("HostActivityReport", 2)?;
        report.serialize_field("idle", &*self.idle)?;
        report.serialize_field("critical_path", &*self.critical_path)?;
        report.end()
    }
}

impl HostTime {
    /// Where threads were while a GPU was idle and they were busy between calls.
    pub fn of_gaps(trace: &Trace, activity: &Activity) -> Result<Self, Error> {
        let places = HostPlaces::of(trace, activity)?;
        let mut idle = Sums::new(trace, activity, &places);
        Timeline::swept(activity, &[], |gap| {
            busy_parts(activity, gap, &mut |call, from, to| {
                // Overhead and code loading are other causes.
                let thread = activity.calls.thread_of(call);
                activity.overheads.split(thread, from, to, |overhead, from, to| {
                    if overhead.is_none() {
                        idle.add(call, from, to);
                    }
                });
            });
        });
        Ok(idle.report(trace))
    }

    /// Where threads were in the CPU's part of the critical path by some times, as far as it lies in a time range. Code that
    /// is predicted to run at another time is looked up where it was measured.
    pub(super) fn of_path(
        trace: &Trace,
        activity: &Activity,
        timing: &impl Timing,
        window: Window,
        places: &HostPlaces,
    ) -> Self {
        let graph = timing.graph();
        let mut path = Sums::new(trace, activity, places);
        let mut reached = 0;
        let critical = timing.critical();
        if let Some((from, begin)) = timing.before(&critical, window)
            && let Node::Launch(call) | Node::Wait(call) = graph.nodes[critical[0] as usize]
        {
            let (from, until) = window.clip(from, begin);
            let since = |time: u64| graph.measured(critical[0] as usize).saturating_sub(begin - time);
            path.add(call, since(from.min(until)), since(until));
        }
        for at in critical {
            let at = at as usize;
            let begin = timing.time(at) - timing.length(at);
            if let (Node::Launch(call) | Node::Wait(call), Some((from, kind))) =
                (graph.nodes[at], timing.held_by(at))
                && matches!(kind, LinkKind::Host | LinkKind::OtherThread)
            {
                let before = timing.time(from as usize);
                let (first, last) = window.clip(before.max(reached), begin);
                if last > first {
                    let measured = graph.measured(from as usize);
                    path.add(call, measured + (first - before), measured + (last - before));
                }
            }
            reached = reached.max(timing.time(at));
        }
        path.report(trace)
    }

    /// The lists, each with the name of what its rows are.
    pub fn lists(&self) -> [(&'static str, &[HostRow]); 4] {
        [
            ("range", &self.ranges),
            ("line", &self.lines),
            ("function", &self.functions),
            ("operator", &self.operators),
        ]
    }

    /// Whether anything shows where the threads were.
    pub fn has_places(&self) -> bool {
        self.lists().iter().any(|(_, rows)| !rows.is_empty())
    }

    /// The places with the largest shares in words, such as `78 % is in the range load`; at most two.
    pub fn main_places(&self) -> Vec<String> {
        const WORTH: f64 = 0.2;
        /// A range around everything explains nothing.
        const ALL: f64 = 0.95;
        let first = |kind: &'static str, rows: &[HostRow]| {
            let row = rows.first().filter(|row| row.share >= WORTH)?;
            let percent = format!("{:.0} %", 100.0 * row.share);
            let name = &row.name;
            match kind {
                "range" if row.share >= ALL => None,
                "line" => Some(format!("{percent} is before the CUDA call at {name}")),
                kind => Some(format!("{percent} is in the {kind} {name}")),
            }
        };
        let lists = self.lists().into_iter();
        lists
            .filter_map(|(kind, rows)| first(kind, rows))
            .take(2)
            .collect()
    }
}

/// The parts of a gap in which the thread that ended it was busy between calls.
fn busy_parts(activity: &Activity, gap: Gap, take: &mut dyn FnMut(CallId, u64, u64)) {
    let asking = activity.ops.call[gap.next.index()];
    if !asking.is_some() {
        return;
    }
    let calls = &activity.calls;
    let first = calls.threads[calls.thread_of(asking)].calls.start;
    let mut until = calls.start[asking.index()].clamp(gap.from, gap.to);
    let mut next = asking;
    let mut at = asking.index();
    while until > gap.from && at > first {
        at -= 1;
        if calls.is_nested(at) {
            continue;
        }
        let (start, end) = (calls.start[at].max(gap.from), calls.end[at].min(until));
        if end > start {
            if until > end {
                take(next, end, until);
            }
            until = start;
            next = CallId(at as u32);
        } else if calls.end[at] <= gap.from {
            break;
        }
    }
    if until > gap.from {
        take(next, gap.from, until);
    }
}

/// Time by place, while it is added up.
struct Sums<'a> {
    activity: &'a Activity,
    places: &'a HostPlaces,
    finder: LineFinder<'a>,
    total_ns: u64,
    operators: FxHashMap<StringId, u64>,
    ranges: FxHashMap<StringId, u64>,
    functions: FxHashMap<StringId, u64>,
    lines: FxHashMap<u32, u64>,
}

impl<'a> Sums<'a> {
    fn new(trace: &'a Trace, activity: &'a Activity, places: &'a HostPlaces) -> Self {
        Sums {
            activity,
            places,
            finder: LineFinder::new(trace, activity, places),
            total_ns: 0,
            operators: FxHashMap::default(),
            ranges: FxHashMap::default(),
            functions: FxHashMap::default(),
            lines: FxHashMap::default(),
        }
    }

    /// The thread of a call was busy before it.
    fn add(&mut self, call: CallId, from: u64, to: u64) {
        self.total_ns += to - from;
        let calls = &self.activity.calls;
        let thread = calls.thread_of(call);
        for (spans, sums) in [
            (&self.places.operators, &mut self.operators),
            (&self.places.ranges, &mut self.ranges),
            (&self.places.functions, &mut self.functions),
        ] {
            spans.within(thread, from, to, &mut |name, nanos| {
                *sums.entry(name).or_default() += nanos
            });
        }
        let stack = calls.get(call).stack;
        // Functions have a list of their own.
        if stack.is_some()
            && let Some(line) = self.finder.line(call, stack)
        {
            *self.lines.entry(line).or_default() += to - from;
        }
    }

    fn report(self, trace: &Trace) -> HostTime {
        let total_ns = self.total_ns;
        let list = |names: &mut dyn Iterator<Item = (String, u64)>| {
            let mut sums: FxHashMap<String, u64> = FxHashMap::default();
            for (name, nanos) in names {
                *sums.entry(name).or_default() += nanos;
            }
            let rows = sums.into_iter().map(|(name, nanos)| HostRow {
                name,
                total_ns: nanos,
                share: share(nanos, total_ns),
            });
            let mut rows: Vec<HostRow> = rows.collect();
            rows.sort_by(|a, b| (b.total_ns, &a.name).cmp(&(a.total_ns, &b.name)));
            rows
        };
        let named = |(name, nanos): (StringId, u64)| (trace.string(name).to_owned(), nanos);
        let unnumbered =
            |(name, nanos): (StringId, u64)| (without_number(trace.string(name)).to_owned(), nanos);
        let lines = self.finder.names();
        let line = |(line, nanos): (u32, u64)| (lines[line as usize].clone(), nanos);
        HostTime {
            total_ns,
            operators: list(&mut self.operators.into_iter().map(named)),
            ranges: list(&mut self.ranges.into_iter().map(unnumbered)),
            functions: list(&mut self.functions.into_iter().map(named)),
            lines: list(&mut self.lines.into_iter().map(line)),
        }
    }
}

/// `ProfilerStep#12` and `iteration 12` are one range for each step.
fn without_number(name: &str) -> &str {
    let name = without_sequence(name);
    let bare = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    match bare.strip_suffix(['#', ' ', '=', ':', '_']) {
        Some(bare) if !bare.is_empty() && bare.len() + 1 < name.len() => {
            bare.trim_end_matches([' ', '=', ':'])
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_steps_are_left_out() {
        for (name, bare) in [
            ("ProfilerStep#12", "ProfilerStep"),
            ("iteration 12", "iteration"),
            ("step: 7", "step"),
            ("step", "step"),
            ("conv2", "conv2"),
            ("12", "12"),
            ("#12", "#12"),
            ("load_12", "load"),
            ("aten::linear, seq = 12, op_id = 30", "aten::linear"),
            ("FSDP::root_pre_forward, op_id = 7", "FSDP::root_pre_forward"),
        ] {
            assert_eq!(without_number(name), bare);
        }
    }
}
