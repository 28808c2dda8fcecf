//! `tracesmith replay`: recorded work, run again and judged.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use nix::sys::personality::{self, Persona};
use serde_json::{Value, json};
use tracesmith_format::tables::CommandKind;
use tracesmith_replay::npy::{self, Element};
use tracesmith_replay::{
    Buffer, Command as RecordedCommand, Determinism, Difference, Obstacle, Order, Plan, Recording, Replay,
    Run, Verdict,
};
use tracesmith_trace::units;

use super::replay_timing::{self, Method, Timed};
use crate::args::{ElementArg, Format, ReplayArgs, ReplayMode};
use crate::exit::Exit;
use crate::output::Output;
use crate::output::table::{Align, TextTable};

/// Calls, buffers and differences that are shown; the others are counted.
const SHOWN: usize = 20;

/// How a replay ends that could not be made.
const FAILED: Exit = Exit::Code(2);

/// Set in the process that has its addresses where they are in every run.
const SETTLED: &str = "TRACESMITH_SETTLED";

pub(crate) fn run(args: &ReplayArgs, output: &mut Output) -> anyhow::Result<Exit> {
    let is_timed = args.mode == ReplayMode::Timing && args.dump.is_none() && args.check.is_none();
    if is_timed && !replay_timing::is_inner() {
        return match replay_timing::timed()? {
            Some(timed) => show_timings(&timed, output),
            None => Ok(FAILED),
        };
    }
    if args.mode != ReplayMode::DryRun {
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
    let places = places(args, &recording)?;
    let dumped = args.dump.map(|address| extent(&recording, address)).transpose()?;
    let until = args.until.map(|number| recording.places(0..number).end);
    let mut replay = Replay::prepare(&mut recording, &plan, args.device).context(name)?;
    if let (Some((address, bytes)), Some(out)) = (dumped, &args.out) {
        replay.run_until(until.unwrap_or(usize::MAX))?;
        let content = replay.read(address, bytes)?;
        write_array(out, &content, args.element)?;
        output.note(&format!("wrote {} ({})", out.display(), units::bytes(bytes)));
        return Ok(Exit::Done);
    }
    if args.check.is_some() {
        let found = replay.check(args.repeat)?;
        return show_check(&found, output);
    }
    if args.mode == ReplayMode::Timing {
        let timings = replay.time(places, args.repeat)?;
        output.json(&replay_timing::report_value(&timings))?;
        return Ok(Exit::Done);
    }
    if args.mode == ReplayMode::Serial {
        replay.set_order(Order::Serial);
    }
    let mut runs = Vec::new();
    for _ in 0..args.repeat {
        runs.push(replay.run()?);
    }
    show_runs(&runs, output)
}

/// The places of the calls that were asked for.
fn places(args: &ReplayArgs, recording: &Recording) -> anyhow::Result<Range<usize>> {
    if let Some(kernel) = &args.kernel {
        let place = recording.launch(&kernel.name, kernel.nth).with_context(|| {
            format!(
                "no launch {} of a kernel {:?} is recorded",
                kernel.nth, kernel.name
            )
        })?;
        return Ok(place..place + 1);
    }
    Ok(match &args.ops {
        Some(ops) => recording.places(ops.0.clone()),
        None => 0..recording.commands.len(),
    })
}

/// All of the buffer that an address lies in.
fn extent(recording: &Recording, address: u64) -> anyhow::Result<(u64, u64)> {
    let buffer = recording
        .buffer(address)
        .with_context(|| format!("no recorded buffer lies at {address:#x}; --mode dry-run lists them"))?;
    Ok((buffer.address, buffer.bytes))
}

fn write_array(out: &Path, content: &[u8], element: ElementArg) -> anyhow::Result<()> {
    let element = match element {
        ElementArg::U8 => Element::U8,
        ElementArg::I32 => Element::I32,
        ElementArg::I64 => Element::I64,
        ElementArg::F16 => Element::F16,
        ElementArg::F32 => Element::F32,
        ElementArg::F64 => Element::F64,
    };
    let write = || {
        let mut file = BufWriter::new(File::create(out)?);
        npy::write(&mut file, content, element)?;
        file.flush()
    };
    write().with_context(|| format!("writing {}", out.display()))
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
        output.json(&json!({
            "commands": recording.commands.iter().map(command_value).collect::<Vec<_>>(),
            "buffers": recording.begin.iter().map(buffer_value).collect::<Vec<_>>(),
            "device_bytes": device,
            "host_bytes": host,
            "obstacles": plan.obstacles.iter().map(obstacle_value).collect::<Vec<_>>(),
        }))?;
        return Ok(Exit::from_check(plan.obstacles.is_empty()));
    }
    let mut calls = TextTable::new(&[
        ("call", Align::Right),
        ("does", Align::Left),
        ("what", Align::Left),
        ("stream", Align::Right),
    ]);
    for command in recording.commands.iter().take(SHOWN) {
        calls.row([
            format!("#{}", command.number).into(),
            command.kind.name().unwrap_or("unknown").into(),
            what(command).into(),
            format!("{:#x}", command.stream).into(),
        ]);
    }
    output.table(&calls)?;
    rest(recording.commands.len(), output)?;
    let mut buffers = TextTable::new(&[
        ("buffer", Align::Right),
        ("size", Align::Right),
        ("memory", Align::Left),
    ]);
    // Code has variables by the hundred, texts for the most part.
    let (variables, taken): (Vec<&Buffer>, Vec<&Buffer>) = recording
        .begin
        .iter()
        .partition(|buffer| !buffer.variable.is_empty());
    for buffer in taken.iter().take(SHOWN) {
        buffers.row([
            format!("{:#x}", buffer.address).into(),
            units::bytes(buffer.bytes).into(),
            buffer.memory.name().unwrap_or("unknown").into(),
        ]);
    }
    output.table(&buffers)?;
    rest(taken.len(), output)?;
    if !variables.is_empty() {
        output.line(&format!(
            "and {} variables of device code, {}",
            variables.len(),
            units::bytes(variables.iter().map(|variable| variable.bytes).sum())
        ))?;
    }
    output.line(&format!(
        "{} calls on {} buffers: {} of device memory, {} of the host's",
        recording.commands.len(),
        taken.len(),
        units::bytes(device),
        units::bytes(host)
    ))?;
    for obstacle in plan.obstacles.iter().take(SHOWN) {
        output.line(&format!("not replayable: {obstacle}"))?;
    }
    rest(plan.obstacles.len(), output)?;
    if plan.obstacles.is_empty() {
        output.line("replayable")?;
    }
    Ok(Exit::from_check(plan.obstacles.is_empty()))
}

/// Says how many are not shown.
fn rest(count: usize, output: &mut Output) -> anyhow::Result<()> {
    if count > SHOWN {
        output.line(&format!("and {} more (--format json has all)", count - SHOWN))?;
    }
    Ok(())
}

fn what(command: &RecordedCommand) -> String {
    match command.kind {
        CommandKind::LAUNCH => {
            let [x, y, z] = command.grid;
            let [a, b, c] = command.block;
            format!("{} ({x}, {y}, {z}) × ({a}, {b}, {c})", command.function)
        }
        CommandKind::COPY | CommandKind::COPY_PLANES => format!(
            "{} from {:#x} to {:#x}",
            units::bytes(command.bytes),
            command.source,
            command.destination
        ),
        CommandKind::SET | CommandKind::ALLOCATE => {
            format!("{} at {:#x}", units::bytes(command.bytes), command.destination)
        }
        CommandKind::FREE => format!("{:#x}", command.destination),
        CommandKind::RECORD_EVENT | CommandKind::WAIT_EVENT => format!("{:#x}", command.object),
        CommandKind::GRAPH => format!("{} nodes, which follow", command.bytes),
        _ => command.function.clone(),
    }
}

fn command_value(command: &RecordedCommand) -> Value {
    json!({
        "number": command.number, "kind": command.kind.name(), "function": command.function,
        "stream": command.stream, "grid": command.grid, "block": command.block, "shared": command.shared,
        "destination": command.destination, "source": command.source, "bytes": command.bytes,
        "graph": command.graph, "follows": command.follows, "reason": command.reason,
    })
}

fn buffer_value(buffer: &Buffer) -> Value {
    json!({
        "address": buffer.address, "bytes": buffer.bytes, "memory": buffer.memory.name(),
        "variable": buffer.variable,
    })
}

fn obstacle_value(obstacle: &Obstacle) -> Value {
    json!({ "command": obstacle.command, "function": obstacle.function, "reason": obstacle.reason })
}

fn show_timings(timed: &Timed, output: &mut Output) -> anyhow::Result<Exit> {
    let Timed { timings, method } = timed;
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    if output.format == Format::Json {
        let calls: Vec<Value> = timings
            .iter()
            .map(|timing| {
                let (shortest, longest) = timing.spread();
                json!({
                    "command": timing.command, "name": timing.name,
                    "recorded_ns": timing.recorded.map(nanos), "median_ns": nanos(timing.median()),
                    "min_ns": nanos(shortest), "max_ns": nanos(longest), "runs": timing.runs.len(),
                })
            })
            .collect();
        let by_events = *method == Method::Events;
        output.json(&json!({ "calls": calls, "by_events": by_events }))?;
        return Ok(Exit::Done);
    }
    let mut table = TextTable::new(&[
        ("call", Align::Right),
        ("name", Align::Left),
        ("recorded", Align::Right),
        ("median", Align::Right),
        ("min", Align::Right),
        ("max", Align::Right),
    ]);
    for timing in timings {
        let (shortest, longest) = timing.spread();
        table.row([
            format!("#{}", timing.command).into(),
            timing.name.clone().into(),
            timing
                .recorded
                .map_or_else(|| "–".to_owned(), |time| units::nanos(nanos(time)))
                .into(),
            units::nanos(nanos(timing.median())).into(),
            units::nanos(nanos(shortest)).into(),
            units::nanos(nanos(longest)).into(),
        ]);
    }
    output.table(&table)?;
    if *method == Method::Events {
        output.warning(
            "nothing could be recorded here: times are of events around each call, which adds to them",
        );
    }
    Ok(Exit::Done)
}

fn show_check(found: &Determinism, output: &mut Output) -> anyhow::Result<Exit> {
    let culprit = match found {
        Determinism::Repeats { runs, calls } => {
            if output.format == Format::Json {
                output.json(&json!({ "verdict": "repeats", "runs": runs, "calls": calls }))?;
            } else {
                output.line(&format!(
                    "repeats: {runs} runs, the same after each of {calls} calls"
                ))?;
            }
            return Ok(Exit::Done);
        }
        Determinism::Differs(culprit) => culprit,
    };
    if output.format == Format::Json {
        output.json(&json!({
            "verdict": "does not repeat", "command": culprit.command, "name": culprit.name,
            "cause": culprit.cause.to_string(), "buffer": culprit.buffer,
            "difference": culprit.difference.as_ref().map(difference_value),
        }))?;
        return Ok(Exit::No);
    }
    let call = culprit
        .command
        .map_or_else(String::new, |number| format!("#{number} {}", culprit.name));
    let leaves = culprit.buffer.map_or_else(
        || "fails".to_owned(),
        |buffer| format!("leaves {buffer:#x} differently"),
    );
    output.line(&format!("does not repeat: {call} {leaves} ({})", culprit.cause))?;
    if let Some(difference) = &culprit.difference {
        output.line(&format!("  {difference}"))?;
    }
    Ok(Exit::No)
}

fn difference_value(difference: &Difference) -> Value {
    json!({
        "address": difference.address, "bytes": difference.bytes, "offset": difference.offset,
        "expected": difference.expected, "found": difference.found, "count": difference.count,
    })
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
            let differences: Vec<Value> = differences.iter().map(difference_value).collect();
            json!({
                "verdict": "differs", "buffers": buffers, "differences": differences,
                "commands": run.commands, "device_ns": nanos,
            })
        }
    }
}
