//! Prints what a replay would do: the selected launches and other calls, memory, and what the replay needs.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tracesmith_format::tables::CommandKind;
use tracesmith_replay::{Buffer, Command, Needs, Obstacle, Part, Plan, PlannedReplacement, Recording};
use tracesmith_trace::units;

use super::names::readable;
use super::{SHOWN, rest};
use crate::args::Format;
use crate::exit::Exit;
use crate::output::Output;
use crate::output::table::{Align, TextTable};

/// A planned replay and what it selects.
pub(super) struct DryRun<'a> {
    pub(super) recording: &'a Recording,
    pub(super) plan: &'a Plan,
    pub(super) part: &'a Part,
    pub(super) needs: &'a Needs,
    /// What each `--replace` changes.
    pub(super) replaced: &'a [PlannedReplacement],
}

impl DryRun<'_> {
    pub(super) fn show(&self, output: &mut Output) -> anyhow::Result<Exit> {
        match output.format {
            Format::Json => output.json(&self.value())?,
            Format::Csv => self.show_csv(output)?,
            Format::Table => self.show_table(output)?,
        }
        Ok(Exit::from_check(self.plan.obstacles.is_empty()))
    }

    fn show_table(&self, output: &mut Output) -> anyhow::Result<()> {
        let chosen = self.part.chosen(&self.recording.commands);
        let is_launch = |command: &&Command| command.kind == CommandKind::LAUNCH;
        let is_other = |command: &&Command| !is_launch(command) && command.kind != CommandKind::ATTRIBUTE;
        let launches: Vec<&Command> = chosen.iter().filter(is_launch).collect();
        self.show_launches(&launches, output)?;
        let others: Vec<&Command> = chosen.iter().filter(is_other).collect();
        show_others(&others, output)?;
        self.show_buffers(output)?;
        output.line("")?;
        output.line(&self.summary(launches.len(), others.len()))?;
        if !self.part.is_whole(self.recording.commands.len()) {
            output.line(&format!(
                "selected: {} of these calls; the calls before them run first",
                chosen.len()
            ))?;
        }
        for replaced in self.replaced {
            let count = replaced.calls.len();
            output.line(&format!(
                "replaced: {count} {} by {} (#{})",
                if count == 1 { "launch" } else { "launches" },
                readable(&replaced.symbol),
                replaced.calls.first().copied().unwrap_or(0)
            ))?;
        }
        for line in needs_lines(self.needs) {
            output.line(&line)?;
        }
        for obstacle in self.plan.obstacles.iter().take(SHOWN) {
            output.line(&format!("not replayable: {obstacle}"))?;
        }
        rest(self.plan.obstacles.len(), output)?;
        if self.plan.obstacles.is_empty() {
            output.line("replayable")?;
        }
        Ok(())
    }

    fn show_launches(&self, launches: &[&Command], output: &mut Output) -> anyhow::Result<()> {
        if launches.is_empty() {
            return Ok(());
        }
        let attributes = attributes(&self.recording.commands);
        let mut table = TextTable::new(&[
            ("launch", Align::Right),
            ("kernel", Align::Name),
            ("grid", Align::Left),
            ("block", Align::Left),
            ("stream", Align::Right),
            ("recorded", Align::Right),
            ("attributes", Align::Right),
        ]);
        for launch in launches.iter().take(SHOWN) {
            let set = attributes.get(&(launch.module, launch.function.as_str()));
            table.row([
                format!("#{}", launch.number).into(),
                readable(&launch.function).into(),
                dimensions(launch.grid).into(),
                dimensions(launch.block).into(),
                format!("{:#x}", launch.stream).into(),
                launch.recorded.map_or_else(String::new, time).into(),
                set.map_or_else(String::new, usize::to_string).into(),
            ]);
        }
        output.table(&table)?;
        more(launches.len(), "launches", output)
    }

    fn show_buffers(&self, output: &mut Output) -> anyhow::Result<()> {
        let mut buffers = TextTable::new(&[
            ("buffer", Align::Right),
            ("size", Align::Right),
            ("memory", Align::Left),
        ]);
        // A module has hundreds of globals, mostly strings.
        let (variables, taken): (Vec<&Buffer>, Vec<&Buffer>) = self
            .recording
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
        output.line("")?;
        output.table(&buffers)?;
        more(taken.len(), "buffers", output)?;
        if !variables.is_empty() {
            let bytes = variables.iter().map(|variable| variable.bytes);
            output.line(&format!(
                "and {}, {}",
                counted(variables.len(), "module global", "module globals"),
                units::bytes(bytes.fold(0, u64::saturating_add))
            ))?;
        }
        Ok(())
    }

    fn summary(&self, launches: usize, others: usize) -> String {
        let calls = self.recording.commands.len();
        let whole = self.part.is_whole(calls);
        let mut text = counted(calls, "call", "calls");
        if whole {
            text += &format!(" ({}, {others} other", counted(launches, "launch", "launches"));
            match calls - launches - others {
                0 => text += ")",
                count => {
                    let attributes = counted(count, "function attribute", "function attributes");
                    text += &format!(", {attributes} that are set before the launches)");
                }
            }
        }
        text + &format!(" on {}", buffers_text(self.recording.buffer_counts()))
    }

    fn value(&self) -> Value {
        let needs = self.needs;
        let (buffers, globals) = self.recording.buffer_counts();
        let mut value = json!({
            "commands": self.recording.commands.iter().map(command_value).collect::<Vec<_>>(),
            "buffers": self.recording.begin.iter().map(buffer_value).collect::<Vec<_>>(),
            "buffer_count": buffers,
            "module_globals": globals,
            "device_bytes": needs.device_bytes,
            "host_bytes": needs.host_bytes,
            "needs": {
                "capabilities": needs.capabilities.iter().map(capability_text).collect::<Vec<_>>(),
                "compiled_by_driver": needs.compiled_by_driver,
                "recorded_gpu": needs.gpu.name,
                "recorded_capability": capability_text(&needs.gpu.capability),
                "recorded_driver": needs.gpu.driver,
            },
            "obstacles": self.plan.obstacles.iter().map(obstacle_value).collect::<Vec<_>>(),
        });
        if !self.part.is_whole(self.recording.commands.len()) {
            let chosen = self.part.chosen(&self.recording.commands);
            value["part"] = chosen.iter().map(|command| command.number).collect();
        }
        if !self.replaced.is_empty() {
            let replaced = self.replaced.iter();
            value["replaced"] = replaced
                .map(|replaced| json!({ "commands": replaced.calls, "symbol": replaced.symbol }))
                .collect();
        }
        value
    }

    /// One row per selected call.
    fn show_csv(&self, output: &mut Output) -> anyhow::Result<()> {
        output.csv([
            "number",
            "kind",
            "function",
            "stream",
            "grid_x",
            "grid_y",
            "grid_z",
            "block_x",
            "block_y",
            "block_z",
            "shared",
            "destination",
            "source",
            "bytes",
            "graph",
            "recorded_ns",
            "replaced_by",
            "reason",
        ])?;
        for command in self.part.chosen(&self.recording.commands) {
            let replaced = self
                .replaced
                .iter()
                .find(|one| one.calls.contains(&command.number));
            let [grid_x, grid_y, grid_z] = command.grid;
            let [block_x, block_y, block_z] = command.block;
            output.csv([
                command.number.to_string(),
                command.kind.name().unwrap_or("unknown").to_owned(),
                command.function.clone(),
                command.stream.to_string(),
                grid_x.to_string(),
                grid_y.to_string(),
                grid_z.to_string(),
                block_x.to_string(),
                block_y.to_string(),
                block_z.to_string(),
                command.shared.to_string(),
                command.destination.to_string(),
                command.source.to_string(),
                command.bytes.to_string(),
                command.graph.to_string(),
                command
                    .recorded
                    .map_or_else(String::new, |time| time.as_nanos().to_string()),
                replaced.map_or_else(String::new, |one| one.symbol.clone()),
                command.reason.clone(),
            ])?;
        }
        Ok(())
    }
}

/// The number of attributes that are set for each kernel.
fn attributes(commands: &[Command]) -> BTreeMap<(u64, &str), usize> {
    let mut attributes = BTreeMap::new();
    for command in commands
        .iter()
        .filter(|command| command.kind == CommandKind::ATTRIBUTE)
    {
        *attributes
            .entry((command.module, command.function.as_str()))
            .or_default() += 1;
    }
    attributes
}

fn show_others(others: &[&Command], output: &mut Output) -> anyhow::Result<()> {
    if others.is_empty() {
        return Ok(());
    }
    let mut calls = TextTable::new(&[
        ("call", Align::Right),
        ("does", Align::Left),
        ("what", Align::Left),
        ("stream", Align::Right),
    ]);
    for command in others.iter().take(SHOWN) {
        calls.row([
            format!("#{}", command.number).into(),
            command.kind.name().unwrap_or("unknown").into(),
            what(command).into(),
            format!("{:#x}", command.stream).into(),
        ]);
    }
    output.line("")?;
    output.table(&calls)?;
    more(others.len(), "calls", output)
}

fn more(count: usize, what: &str, output: &mut Output) -> anyhow::Result<()> {
    if count > SHOWN {
        let count = count - SHOWN;
        output.line(&format!(
            "and {count} more {what} (--format csv or json lists all)"
        ))?;
    }
    Ok(())
}

/// The count of buffers, as all commands show it.
pub(in crate::commands) fn buffers_text((buffers, globals): (usize, usize)) -> String {
    let text = counted(buffers, "buffer", "buffers");
    match globals {
        0 => text,
        1 => format!("{text}, 1 of them a module global"),
        globals => format!("{text}, {globals} of them module globals"),
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// What a machine needs for the replay.
fn needs_lines(needs: &Needs) -> Vec<String> {
    let mut lines = Vec::new();
    lines.push(match needs.capabilities[..] {
        [] => "needs a GPU; the driver compiles the recorded code for it".to_owned(),
        [.., (major, minor)] => {
            format!("needs a GPU of compute capability {major}.{minor}, or a higher {major}.x")
        }
    });
    let mut memory = format!(
        "needs {} of GPU memory (twice as much for a part, three times with --replace)",
        units::bytes(needs.device_bytes)
    );
    if needs.host_bytes > 0 {
        memory += &format!(", and {} of pinned host memory", units::bytes(needs.host_bytes));
    }
    lines.push(memory);
    let recorded = &needs.gpu;
    if !recorded.name.is_empty() {
        let driver = match &*recorded.driver {
            "" => "an unknown driver".to_owned(),
            driver => format!("driver {driver}"),
        };
        lines.push(format!(
            "recorded on {} (compute capability {}) with {driver}; an older driver may not load its code",
            recorded.name,
            capability_text(&recorded.capability)
        ));
    }
    lines
}

fn capability_text((major, minor): &(u32, u32)) -> String {
    format!("{major}.{minor}")
}

fn dimensions([x, y, z]: [u32; 3]) -> String {
    format!("({x}, {y}, {z})")
}

fn time(time: std::time::Duration) -> String {
    units::nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

pub(super) fn what(command: &Command) -> String {
    match command.kind {
        CommandKind::LAUNCH => {
            let (grid, block) = (dimensions(command.grid), dimensions(command.block));
            format!("{} {grid} × {block}", readable(&command.function))
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
        "recorded_ns": command.recorded.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
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
