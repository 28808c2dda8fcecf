//! What the measured critical path consists of, as far as changes go, and why a change brings nothing.

use super::change::Changed;
use super::moments::Anchor;
use crate::analysis::cpu_ahead::{CpuAhead, is_doubtful};
use crate::analysis::kernels::share;
use crate::reconstruct::{Activity, ExecutionGraph, LinkKind, Node, Timing, Window};
use crate::units;

/// What the critical path consists of, as far as changes go.
pub(super) struct OnPath {
    pub(super) scaled: u64,
    pub(super) scaled_ns: u64,
    pub(super) work_share: f64,
    /// CPU code during which launched work had not started, if that makes the path doubtful; else 0.
    pub(super) cpu_ahead_ns: u64,
    /// When the path is work of devices, in the order of time.
    work: Vec<(u64, u64)>,
    /// When the path begins and ends.
    ends: (u64, u64),
}

impl OnPath {
    pub(super) fn of(
        activity: &Activity,
        graph: &ExecutionGraph,
        factors: &[Option<f64>],
        window: Window,
    ) -> Self {
        let path = graph.critical();
        let (mut scaled, mut scaled_ns) = (0, 0);
        let (mut work, mut reached) = (Vec::new(), 0);
        let ahead = CpuAhead::of(activity);
        let (mut host_ns, mut ahead_ns) = (0, 0);
        for at in path.iter().map(|at| *at as usize) {
            let (end, nanos) = (graph.measured(at), graph.duration(at));
            if let Node::Op(op) = graph.nodes[at] {
                let is_within = activity.touches(op, &window);
                if is_within && factors[activity.ops.kind[op.index()] as usize].is_some() {
                    scaled += 1;
                    scaled_ns += nanos;
                }
                // Ops of the path may overlap.
                let from = (end - nanos).max(reached);
                if end > from {
                    work.push((from, end));
                }
            }
            if let Some((from, LinkKind::Host | LinkKind::OtherThread)) = graph.held_by(at) {
                let (from, to) = window.clip(graph.measured(from as usize), end);
                host_ns += to.saturating_sub(from);
                ahead_ns += ahead.within(std::iter::once((from, to)));
            }
            reached = reached.max(end);
        }
        let first = path.first().map_or(reached, |at| {
            graph.measured(*at as usize) - graph.duration(*at as usize)
        });
        let mut on_path = OnPath {
            scaled,
            scaled_ns,
            work_share: 0.0,
            cpu_ahead_ns: 0,
            work,
            ends: (first, reached),
        };
        on_path.work_share = on_path.work_share_in(window);
        let (first, reached) = window.clip(first, reached);
        if is_doubtful(reached.saturating_sub(first), host_ns, ahead_ns) {
            on_path.cpu_ahead_ns = ahead_ns;
        }
        on_path
    }

    /// Share of the path in a time range that is work of devices.
    fn work_share_in(&self, window: Window) -> f64 {
        let (from, to) = window.clip(self.ends.0, self.ends.1);
        let first = self.work.partition_point(|work| work.1 <= from);
        let touched = self.work[first..].iter().take_while(|work| work.0 < to);
        let work = touched.map(|work| work.1.min(to).saturating_sub(work.0.max(from)));
        share(work.sum(), to.saturating_sub(from))
    }

    /// What the ends of a time range move with.
    pub(super) fn anchor_in(&self, window: Window) -> Anchor {
        match self.work_share_in(window) >= 0.5 {
            true => Anchor::Op,
            false => Anchor::Host,
        }
    }

    /// Why the changes bring nothing; none if they bring something, or if nothing was changed.
    pub(super) fn explanation(
        &self,
        changed: &Changed<'_>,
        (unchanged_ns, changed_ns): (u64, u64),
    ) -> Option<String> {
        let change = unchanged_ns.abs_diff(changed_ns) as f64;
        if change >= NOTHING * unchanged_ns as f64 {
            return None;
        }
        let what_holds = match (self.work_share < 0.5, self.cpu_ahead_ns > 0) {
            (true, true) => "by the recorded calls, the CPU determines the time",
            (true, false) => "the GPU waits for the CPU",
            (false, _) => "other GPU work determines the time",
        };
        let percent = |part: f64| format!("{:.0} %", 100.0 * part);
        if changed.scaled_ops > 0 && changed.is_same() {
            return Some("a factor of 1 changes nothing".to_owned());
        }
        if changed.scaled_ops > 0 {
            let ops = match changed.scaled_ops {
                1 => "1 GPU operation matches".to_owned(),
                count => format!("{} GPU operations match", units::count(count)),
            };
            return Some(match self.scaled {
                0 => format!("{ops}, none on the critical path; {what_holds}"),
                count => format!(
                    "{ops}, {} on the critical path with {} in total; {what_holds} ({} of the path is GPU work)",
                    units::count(count),
                    units::nanos(self.scaled_ns),
                    percent(self.work_share)
                ),
            });
        }
        (changed.left_waits > 0).then(|| match self.work_share < 0.5 {
            true => format!(
                "the waits cost less than 0.05 %: the CPU itself determines the time ({} of the critical path is GPU work)",
                percent(self.work_share)
            ),
            false => format!(
                "the waits cost less than 0.05 %: the GPU is busy while the CPU waits ({} of the critical path is GPU work)",
                percent(self.work_share)
            ),
        })
    }
}

/// Share of the time below which a change is none: it is shown as 0.0 %.
const NOTHING: f64 = 0.0005;
