//! What the program does already, so that nobody is advised to do it.

use std::borrow::Cow;

use crate::analysis::summary::SummaryReport;
use crate::model::trace::Trace;
use crate::reconstruct::{Activity, OpTable, name_of};

/// What the program does already.
pub(super) struct Program {
    /// Most kernels come out of graphs.
    pub(super) uses_graphs: bool,
    /// It has kernels that torch.compile makes.
    pub(super) is_compiled: bool,
    /// It has kernels of PyTorch.
    pub(super) is_torch: bool,
    /// It allocates from a pool of the driver.
    pub(super) uses_pools: bool,
}

/// Share of all kernels that come out of graphs from which on a program uses graphs.
const MOSTLY: f64 = 0.5;
/// Share of all kernels that torch.compile made from which on it is used: single functions are compiled in eager programs.
const SOME: f64 = 0.1;

impl Program {
    pub(super) fn of(trace: &Trace, activity: &Activity, summary: &SummaryReport) -> Self {
        let kernels: Vec<&str> = activity
            .ops
            .kinds
            .iter()
            .filter(|kind| kind.table == OpTable::Kernels)
            .map(|kind| name_of(trace, kind.name))
            .collect();
        let rows = summary.kernels.rows.iter();
        let compiled = rows.filter(|row| is_of_inductor(&row.name));
        let compiled: u64 = compiled.map(|row| row.durations.count).sum();
        let is_compiled = compiled > 0 && compiled as f64 >= SOME * summary.kernels.count as f64;
        let is_torch = |name: &&str| name.contains("at::native") || name.contains("2at6native");
        let functions = activity.calls.functions.iter();
        let mut functions = functions.map(|(name, _)| trace.string(*name));
        let is_most = |part: u64, of: u64| part > 0 && part as f64 >= MOSTLY * of as f64;
        Program {
            uses_graphs: is_most(summary.launches.graph_kernels, summary.kernels.count)
                || is_most(in_whole_graphs(activity), summary.kernels.total_ns),
            is_compiled,
            is_torch: is_compiled || kernels.iter().any(is_torch),
            uses_pools: functions.any(|name| {
                name.contains("MallocAsync") || name.contains("AllocAsync") || name.contains("FromPool")
            }),
        }
    }

    /// How to launch less often, or in less time.
    pub(super) fn fewer_launches(&self) -> Cow<'static, str> {
        if self.uses_graphs {
            return "Most kernels come from graphs already: launch the next graph before the last one ends, or fuse small \
                    kernels"
                .into();
        }
        "Launch less often: capture the step in a CUDA graph, or fuse small kernels".into()
    }

    /// How to keep the host from holding up launches.
    pub(super) fn less_host_work(&self) -> Cow<'static, str> {
        let more = match (self.is_torch, self.is_compiled, self.uses_graphs) {
            (_, _, true) => "",
            (true, false, false) => ". With PyTorch, try torch.compile or CUDA graphs",
            (true, true, false) => ". With torch.compile, try mode=\"reduce-overhead\" (CUDA graphs)",
            (false, _, false) => ", or launch the work of a step as one CUDA graph",
        };
        format!("Move CPU work to other threads or after the launches{more}").into()
    }
}

/// The time of graphs whose kernels were not recorded one by one.
fn in_whole_graphs(activity: &Activity) -> u64 {
    let ops = &activity.ops;
    if !ops.kinds.iter().any(|kind| kind.table == OpTable::GraphLaunches) {
        return 0;
    }
    let whole = ops
        .ids()
        .filter(|op| ops.kind(*op).table == OpTable::GraphLaunches);
    whole.map(|op| ops.duration(op)).sum()
}

/// Whether a kernel has a name as torch.compile gives them.
fn is_of_inductor(name: &str) -> bool {
    [
        "triton_poi_",
        "triton_red_",
        "triton_per_",
        "triton_tem_",
        "triton_for_",
    ]
    .iter()
    .any(|prefix| name.starts_with(prefix))
}
