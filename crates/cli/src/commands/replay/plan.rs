//! Prints what a replay would do.

use serde_json::{Value, json};
use tracesmith_format::tables::CommandKind;
use tracesmith_replay::{Buffer, Command, Obstacle, Part, Plan, Recording};
use tracesmith_trace::units;

use super::{SHOWN, rest};
use crate::args::Format;
use crate::exit::Exit;
use crate::output::Output;
use crate::output::table::{Align, TextTable};

pub(super) fn show_plan(
    recording: &Recording,
    plan: &Plan,
    part: &Part,
    output: &mut Output,
) -> anyhow::Result<Exit> {
    let (device, host) = plan.bytes();
    let chosen = part.chosen(&recording.commands);
    let is_whole = part.is_whole(recording.commands.len());
    if output.format == Format::Json {
        let mut answer = json!({
            "commands": recording.commands.iter().map(command_value).collect::<Vec<_>>(),
            "buffers": recording.begin.iter().map(buffer_value).collect::<Vec<_>>(),
            "device_bytes": device,
            "host_bytes": host,
            "obstacles": plan.obstacles.iter().map(obstacle_value).collect::<Vec<_>>(),
        });
        if !is_whole {
            answer["part"] = chosen.iter().map(|command| command.number).collect();
        }
        output.json(&answer)?;
        return Ok(Exit::from_check(plan.obstacles.is_empty()));
    }
    let mut calls = TextTable::new(&[
        ("call", Align::Right),
        ("does", Align::Left),
        ("what", Align::Left),
        ("stream", Align::Right),
    ]);
    for command in chosen.iter().take(SHOWN) {
        calls.row([
            format!("#{}", command.number).into(),
            command.kind.name().unwrap_or("unknown").into(),
            what(command).into(),
            format!("{:#x}", command.stream).into(),
        ]);
    }
    output.table(&calls)?;
    rest(chosen.len(), output)?;
    let mut buffers = TextTable::new(&[
        ("buffer", Align::Right),
        ("size", Align::Right),
        ("memory", Align::Left),
    ]);
    // A module has hundreds of globals, mostly strings.
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
        let bytes = variables.iter().map(|variable| variable.bytes);
        output.line(&format!(
            "and {} module globals, {}",
            variables.len(),
            units::bytes(bytes.fold(0, u64::saturating_add))
        ))?;
    }
    output.line(&format!(
        "{} calls on {} buffers: {} of device memory, {} of host memory",
        recording.commands.len(),
        taken.len(),
        units::bytes(device),
        units::bytes(host)
    ))?;
    if !is_whole {
        output.line(&format!(
            "the part has {} of these calls; the calls before it run first",
            chosen.len()
        ))?;
    }
    for obstacle in plan.obstacles.iter().take(SHOWN) {
        output.line(&format!("not replayable: {obstacle}"))?;
    }
    rest(plan.obstacles.len(), output)?;
    if plan.obstacles.is_empty() {
        output.line("replayable")?;
    }
    Ok(Exit::from_check(plan.obstacles.is_empty()))
}

pub(super) fn what(command: &Command) -> String {
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
        CommandKind::TEXTURE if command.value == 0 => format!("texture {}", command.object),
        CommandKind::TEXTURE => format!("surface {}", command.object),
        CommandKind::ARRAY => format!("{} at {:#x}", units::bytes(command.bytes), command.destination),
        CommandKind::GRAPH => format!("{} nodes, listed next", command.bytes),
        _ => command.function.clone(),
    }
}

fn command_value(command: &Command) -> Value {
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
