//! Starts `tracesmith` itself again. GPU work runs in its own process, so that it can be recorded like any other
//! program.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, bail};
use serde_json::Value;
use tracesmith_wire::environment;

/// Variables that make the driver load a profiler.
pub(crate) const ARMING: [&str; 2] = [environment::CUDA_INJECTION, environment::NVTX_INJECTION];

/// Runs a built-in workload without a profiler. Returns its report.
pub(crate) fn run_bare<S: AsRef<OsStr>>(work: &[S]) -> anyhow::Result<Value> {
    let mut command = ourselves()?;
    command.args(["--format", "json", "workload"]).args(work);
    for variable in ARMING {
        command.env_remove(variable);
    }
    report_of(&command.output()?)
}

/// Records a built-in workload with `tracesmith profile` and its `options`. Returns the report of the workload.
pub(crate) fn capture<S: AsRef<OsStr>>(work: &[S], options: &[&str], out: &Path) -> anyhow::Result<Value> {
    let mut command = ourselves()?;
    command
        .args(["profile", "-q", "-o"])
        .arg(out)
        .args(options)
        .arg("--");
    command.arg(std::env::current_exe().context("finding this program")?);
    command.args(["--format", "json", "workload"]).args(work);
    for variable in ARMING {
        command.env_remove(variable);
    }
    report_of(&command.output()?)
}

fn ourselves() -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("finding this program")?);
    command.stdin(Stdio::null());
    Ok(command)
}

/// The report on standard output, or the error on standard error.
fn report_of(output: &Output) -> anyhow::Result<Value> {
    if !output.status.success() {
        bail!("{}", reason(output));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).with_context(|| format!("reading the report {text:?}"))
}

/// The first line of the error.
fn reason(output: &Output) -> String {
    let talk = String::from_utf8_lossy(&output.stderr);
    match talk.lines().find(|line| !line.trim().is_empty()) {
        Some(line) => line.trim_start_matches("error: ").to_owned(),
        None => format!("the process ended with {}", output.status),
    }
}
