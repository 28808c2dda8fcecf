//! `tracesmith workload`: real GPU work, in its own process.

use anyhow::Context;
use serde_json::json;
use tracesmith_machine::workload::benchmark::{self, BenchmarkPlan};
use tracesmith_machine::workload::demo::{self, DemoPlan};

use crate::args::{WorkloadArgs, WorkloadKind};
use crate::output::Output;

pub(crate) fn run(args: &WorkloadArgs, output: &mut Output) -> anyhow::Result<()> {
    match &args.kind {
        WorkloadKind::Benchmark {
            kernels,
            streams,
            device,
        } => {
            let plan = BenchmarkPlan {
                kernels: *kernels,
                streams: *streams,
                device: *device,
            };
            let report = benchmark::run(plan)?;
            output.facts(&[
                ("device", json!(report.device)),
                ("kernels", json!(report.kernels)),
                ("streams", json!(report.streams)),
                ("launch_seconds", json!(report.launched.as_secs_f64())),
                ("seconds", json!(report.done.as_secs_f64())),
                ("kernels_per_second", json!(report.kernels_per_second())),
            ])?;
        }
        WorkloadKind::Demo {
            steps,
            elements,
            side,
            device,
        } => {
            let plan = DemoPlan {
                steps: *steps,
                elements: *elements,
                side: *side,
                device: *device,
            };
            let report = demo::run(plan)?;
            output.facts(&[
                ("device", json!(report.device)),
                ("kernels", json!(report.kernels)),
                ("copies", json!(report.copies)),
                ("sets", json!(report.sets)),
                ("graphs", json!(report.graphs)),
                ("checked", json!(report.checked)),
            ])?;
        }
        WorkloadKind::CuptiVersion { file } => {
            let version = tracesmith_machine::doctor::cupti_version(file)
                .with_context(|| format!("asking {}", file.display()))?;
            output.facts(&[("version", json!(version))])?;
        }
    }
    Ok(())
}
