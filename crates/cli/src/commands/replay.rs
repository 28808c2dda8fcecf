//! `tracesmith replay`: recorded work, run again and judged.

use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::Context;
use nix::sys::personality::{self, Persona};
use serde_json::{Value, json};
use tracesmith_replay::{Plan, Recording, Replay, Run, Verdict};
use tracesmith_trace::units;

use crate::args::{Format, ReplayArgs, ReplayMode};
use crate::exit::Exit;
use crate::output::Output;

/// Differences that are shown; the others are counted.
const SHOWN: usize = 10;

/// Set in the process that has its addresses where they are in every run.
const SETTLED: &str = "TRACESMITH_SETTLED";

pub(crate) fn run(args: &ReplayArgs, output: &mut Output) -> anyhow::Result<Exit> {
    if args.mode == ReplayMode::Full {
        settle_addresses();
    }
    let name = args.file.display().to_string();
    let mut recording = Recording::open(&args.file).with_context(|| name.clone())?;
    if recording.others > 0 {
        output.warning(&format!(
            "{} more processes are recorded; the first is taken",
            recording.others
        ));
    }
    let plan = Plan::of(&mut recording).with_context(|| name.clone())?;
    if args.mode == ReplayMode::DryRun {
        return show_plan(&recording, &plan, output);
    }
    let mut replay = Replay::prepare(&mut recording, &plan, args.device).context(name)?;
    let mut runs = Vec::new();
    for _ in 0..args.repeat {
        runs.push(replay.run()?);
    }
    show_runs(&runs, output)
}

/// Starts this program again without random addresses, so that its own libraries lie where they do in every run and
/// recorded addresses are free. Where that is not allowed it goes on: they mostly are.
fn settle_addresses() {
    let Ok(persona) = personality::get() else { return };
    if persona.contains(Persona::ADDR_NO_RANDOMIZE) || std::env::var_os(SETTLED).is_some() {
        return;
    }
    if personality::set(persona | Persona::ADDR_NO_RANDOMIZE).is_err() {
        return;
    }
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    // Comes back only when it fails, and then there is nothing to say.
    let _ = Command::new(program)
        .args(std::env::args_os().skip(1))
        .env(SETTLED, "1")
        .exec();
}

fn show_plan(recording: &Recording, plan: &Plan, output: &mut Output) -> anyhow::Result<Exit> {
    let device: u64 = plan.memory.iter().map(|range| range.end - range.start).sum();
    let host: u64 = plan.host.iter().map(|range| range.end - range.start).sum();
    if output.format == Format::Json {
        let obstacles: Vec<Value> = plan
            .obstacles
            .iter()
            .map(|obstacle| {
                json!({
                    "command": obstacle.command,
                    "function": obstacle.function,
                    "reason": obstacle.reason,
                })
            })
            .collect();
        output.json(&json!({
            "commands": recording.commands.len(),
            "buffers": recording.begin.len(),
            "device_bytes": device,
            "host_bytes": host,
            "obstacles": obstacles,
        }))?;
    } else {
        output.line(&format!(
            "{} calls on {} buffers: {} of device memory, {} of the host's",
            recording.commands.len(),
            recording.begin.len(),
            units::bytes(device),
            units::bytes(host)
        ))?;
        for obstacle in plan.obstacles.iter().take(SHOWN) {
            output.line(&format!("not replayable: {obstacle}"))?;
        }
        if plan.obstacles.len() > SHOWN {
            output.line(&format!("and {} more", plan.obstacles.len() - SHOWN))?;
        }
        if plan.obstacles.is_empty() {
            output.line("replayable")?;
        }
    }
    Ok(Exit::from_check(plan.obstacles.is_empty()))
}

fn show_runs(runs: &[Run], output: &mut Output) -> anyhow::Result<Exit> {
    let is_same = runs.iter().all(|run| matches!(run.verdict, Verdict::Same { .. }));
    if output.format == Format::Json {
        let runs: Vec<Value> = runs.iter().map(run_value).collect();
        output.json(&json!({ "verdict": if is_same { "same" } else { "differs" }, "runs": runs }))?;
        return Ok(Exit::from_check(is_same));
    }
    for (number, run) in (1..).zip(runs) {
        let time = units::nanos(u64::try_from(run.device_time.as_nanos()).unwrap_or(u64::MAX));
        match &run.verdict {
            Verdict::Same { buffers, bytes } => output.line(&format!(
                "run {number}: same ({buffers} buffers, {}; {} calls, {time} on the GPU)",
                units::bytes(*bytes),
                run.commands
            ))?,
            Verdict::Differs { differences, buffers } => {
                output.line(&format!(
                    "run {number}: differs in {} of {buffers} buffers ({} calls, {time} on the GPU)",
                    differences.len(),
                    run.commands
                ))?;
                for difference in differences.iter().take(SHOWN) {
                    output.line(&format!("  {difference}"))?;
                }
            }
        }
    }
    Ok(Exit::from_check(is_same))
}

fn run_value(run: &Run) -> Value {
    let nanos = u64::try_from(run.device_time.as_nanos()).unwrap_or(u64::MAX);
    match &run.verdict {
        Verdict::Same { buffers, bytes } => json!({
            "verdict": "same", "buffers": buffers, "bytes": bytes, "commands": run.commands, "device_ns": nanos,
        }),
        Verdict::Differs { differences, buffers } => {
            let differences: Vec<Value> = differences
                .iter()
                .map(|each| {
                    json!({
                        "address": each.address, "bytes": each.bytes, "offset": each.offset,
                        "expected": each.expected, "found": each.found, "count": each.count,
                    })
                })
                .collect();
            json!({
                "verdict": "differs", "buffers": buffers, "differences": differences,
                "commands": run.commands, "device_ns": nanos,
            })
        }
    }
}
