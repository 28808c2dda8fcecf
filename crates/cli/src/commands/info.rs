//! `tracesmith info`.

pub(crate) mod recording;
mod source;
mod tables;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tracesmith_format::tables::{Device, Process};
use tracesmith_format::{BlockKind, StringId};
use tracesmith_trace::tables::Cancel;
use tracesmith_trace::{HealthReport, Trace, units};

use crate::args::{Format, InfoArgs};
use crate::input::{open_trace, repair_hint};
use crate::output::table::{Align, TextTable};
use crate::output::{BAD, FAINT, GOOD, Output};
use crate::progress::Progress;
use source::Source;
use tables::{Size, sizes_by_kind};

/// Files up to this size are always checked completely. This takes less than a second.
const CHECKED_BYTES: u64 = 256 << 20;

/// Whether every block was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Checked {
    /// Everything, because the user requested it.
    Wanted,
    /// Everything, because the file is small.
    Unasked,
    /// Only the parts that are shown.
    Partly,
}

impl Checked {
    fn of(args: &InfoArgs, bytes: u64) -> Self {
        match args.verify {
            true => Checked::Wanted,
            false if bytes <= CHECKED_BYTES => Checked::Unasked,
            false => Checked::Partly,
        }
    }

    /// The health of a trace without damage.
    fn words(self) -> &'static str {
        match self {
            Checked::Wanted => "good: every block was read and checked",
            Checked::Unasked => "good",
            Checked::Partly => "good (contents not checked; --verify checks them)",
        }
    }
}

pub(crate) fn run(args: &InfoArgs, output: &mut Output) -> anyhow::Result<()> {
    let started = std::time::Instant::now();
    let trace = open_trace(&args.file)?;
    output.remark(&format!(
        "opened in {}",
        units::nanos(started.elapsed().as_nanos() as u64)
    ));
    let checked = Checked::of(args, trace.file_bytes());
    if checked != Checked::Partly {
        let progress = Progress::new("checking", trace.file_bytes(), output.bar());
        trace.verify(&progress.into_fn(), &Cancel::default())?;
    }
    let kinds = sizes_by_kind(&trace);
    let source = Source::of(&trace, &args.file);
    match output.format {
        Format::Json => output.json(&json_of(&trace, &source, &kinds, args, checked))?,
        Format::Csv => {
            output.csv(["table", "blocks", "rows", "bytes", "unpacked_bytes"])?;
            for (kind, size) in &kinds {
                let [blocks, rows, bytes, unpacked] =
                    [size.blocks, size.rows, size.bytes, size.unpacked].map(|number| number.to_string());
                match source {
                    Source::Native => output.csv([kind.to_string(), blocks, rows, bytes, unpacked])?,
                    // Only the rows come from the file.
                    Source::Foreign(_) if kind.is_events() => {
                        let unknown = String::new;
                        output.csv([kind.to_string(), unknown(), rows, unknown(), unknown()])?;
                    }
                    Source::Foreign(_) => {}
                }
            }
        }
        Format::Table => show(&trace, &source, &kinds, args, checked, output)?,
    }
    Ok(())
}

fn show(
    trace: &Trace,
    source: &Source,
    kinds: &BTreeMap<BlockKind, Size>,
    args: &InfoArgs,
    checked: Checked,
    output: &mut Output,
) -> anyhow::Result<()> {
    show_head(trace, source, args, output)?;
    show_devices(trace, output)?;
    show_processes(trace, output)?;
    if let Some(recording) = recording::report(trace, &args.file) {
        output.line("")?;
        recording.show(output)?;
    }
    match source {
        Source::Native => {
            tables::show(trace, kinds, output)?;
            if args.columns {
                tables::show_columns(trace, kinds, output)?;
            }
        }
        Source::Foreign(_) => {
            tables::show_rows(kinds, output)?;
            if args.columns {
                output.note("--columns applies to .sbt files only; 'tracesmith import' writes one");
            }
        }
    }
    show_health(&trace.health(), args, checked, output)
}

fn show_head(trace: &Trace, source: &Source, args: &InfoArgs, output: &mut Output) -> anyhow::Result<()> {
    let fact = |output: &mut Output, name: &str, value: String| -> anyhow::Result<()> {
        if !value.is_empty() {
            output.line(&format!("{FAINT}{name:<9}{FAINT:#}  {value}"))?;
        }
        Ok(())
    };
    fact(output, "trace", args.file.display().to_string())?;
    let file = match (source, trace.header()) {
        (Source::Foreign(foreign), _) => foreign.text(),
        (Source::Native, Some(header)) => format!(
            "SBT {}.{}, {}",
            header.major,
            header.minor,
            units::bytes(trace.file_bytes())
        ),
        (Source::Native, None) => format!("SBT (header damaged), {}", units::bytes(trace.file_bytes())),
    };
    fact(output, "file", file)?;
    if let (Source::Native, Some(format)) = (source, trace.metadata.get("import.format")) {
        let name = trace.metadata.get("import.file").map_or("", |name| name);
        fact(
            output,
            "imported",
            format!("{format} {name}").trim_end().to_owned(),
        )?;
    }
    fact(output, "recorded", recorded(trace))?;
    fact(
        output,
        "command",
        trace.metadata.get("command").cloned().unwrap_or_default(),
    )?;
    fact(
        output,
        "span",
        trace
            .span()
            .map(|(first, last)| units::nanos(last.0 - first.0))
            .unwrap_or_default(),
    )?;
    for host in &trace.hosts {
        let mut parts = vec![
            trace.string(host.name).to_owned(),
            trace.string(host.os).to_owned(),
        ];
        if host.cpus > 0 {
            parts.push(format!("{} × {}", host.cpus, trace.string(host.cpu)));
        }
        if host.memory.0 > 0 {
            parts.push(units::bytes(host.memory.0));
        }
        parts.retain(|part| !part.is_empty());
        fact(output, "host", parts.join(", "))?;
    }
    Ok(())
}

fn recorded(trace: &Trace) -> String {
    let when = trace
        .metadata
        .get("created")
        .and_then(|nanos| nanos.parse().ok())
        .map(units::date);
    let by = trace.metadata.get("recorder");
    match (when, by) {
        (Some(when), Some(by)) => format!("{when} by {by}"),
        (Some(when), None) => when,
        (None, Some(by)) => format!("by {by}"),
        (None, None) => String::new(),
    }
}

fn show_devices(trace: &Trace, output: &mut Output) -> anyhow::Result<()> {
    if trace.devices.is_empty() {
        return Ok(());
    }
    let mut table = TextTable::new(&[
        ("gpu", Align::Right),
        ("name", Align::Flexible),
        ("architecture", Align::Left),
        ("memory", Align::Right),
        ("SMs", Align::Right),
        ("driver", Align::Left),
        ("pci", Align::Left),
        ("link", Align::Left),
        ("host", Align::Left),
    ]);
    for device in &trace.devices {
        let Device {
            ordinal,
            name,
            memory,
            multiprocessors,
            driver,
            pci,
            ..
        } = device;
        let host = if trace.hosts.len() > 1 {
            trace.host(device.host).map(|host| host.name)
        } else {
            None
        };
        let number = |n: u64| if n == 0 { String::new() } else { n.to_string() };
        table.row([
            ordinal.to_string().into(),
            trace.string(*name).into(),
            architecture(trace, device).into(),
            if memory.0 == 0 {
                "".into()
            } else {
                units::bytes(memory.0).into()
            },
            number(u64::from(*multiprocessors)).into(),
            trace.string(*driver).into(),
            trace.string(*pci).into(),
            link(device).into(),
            trace.string(host.unwrap_or(StringId::NONE)).into(),
        ]);
    }
    output.line("")?;
    output.table(&table)?;
    Ok(())
}

/// The connection of a device, if the trace contains it.
fn link(device: &Device) -> String {
    let mut parts = Vec::new();
    if device.pcie_generation > 0 {
        parts.push(format!("PCIe {} ×{}", device.pcie_generation, device.pcie_width));
    }
    if device.nvlinks > 0 {
        parts.push(format!("{} NVLinks", device.nvlinks));
    }
    parts.join(", ")
}

fn architecture(trace: &Trace, device: &Device) -> String {
    let name = trace.string(device.architecture);
    match (name, device.capability_major) {
        (name, 0) => name.to_owned(),
        ("", major) => format!("cc {major}.{}", device.capability_minor),
        (name, major) => format!("{name} (cc {major}.{})", device.capability_minor),
    }
}

fn show_processes(trace: &Trace, output: &mut Output) -> anyhow::Result<()> {
    if trace.processes.is_empty() {
        return Ok(());
    }
    let mut table = TextTable::new(&[
        ("pid", Align::Right),
        ("process", Align::Flexible),
        ("rank", Align::Right),
        ("host", Align::Left),
        ("ended", Align::Left),
    ]);
    for process in &trace.processes {
        let host = if trace.hosts.len() > 1 {
            trace.host(process.host).map(|host| host.name)
        } else {
            None
        };
        table.row([
            process.pid.to_string().into(),
            trace.string(process.name).into(),
            process
                .rank
                .get()
                .map(|rank| rank.to_string())
                .unwrap_or_default()
                .into(),
            trace.string(host.unwrap_or(StringId::NONE)).into(),
            ended(process).into(),
        ]);
    }
    output.line("")?;
    output.table(&table)?;
    Ok(())
}

fn ended(process: &Process) -> String {
    use tracesmith_format::tables::ProcessEnd;
    match process.end {
        ProcessEnd::EXITED => format!("exit code {}", process.end_code),
        ProcessEnd::KILLED => format!("killed by signal {}", process.end_code),
        ProcessEnd::UNKNOWN => String::new(),
        other => other.name().unwrap_or_default().to_owned(),
    }
}

fn show_health(
    health: &HealthReport,
    args: &InfoArgs,
    checked: Checked,
    output: &mut Output,
) -> anyhow::Result<()> {
    output.line("")?;
    if health.is_good() {
        let words = checked.words();
        output.line(&format!("{FAINT}health{FAINT:#}     {GOOD}{words}{GOOD:#}"))?;
        return Ok(());
    }
    output.line(&format!("{FAINT}health{FAINT:#}     {BAD}incomplete{BAD:#}"))?;
    for line in health.sentences() {
        output.line(&format!("  {line}"))?;
    }
    if !health.damage.is_empty() {
        output.note(&repair_hint(&args.file));
    }
    Ok(())
}

fn json_of(
    trace: &Trace,
    source: &Source,
    kinds: &BTreeMap<BlockKind, Size>,
    args: &InfoArgs,
    checked: Checked,
) -> Value {
    let text = |id| trace.string(id);
    let id = |header: &tracesmith_format::FileHeader| {
        header.id.iter().map(|b| format!("{b:02x}")).collect::<String>()
    };
    let header = trace.header();
    let (bytes, format, id, compression) = match source {
        Source::Native => {
            let version = header.map(|header| format!("{}.{}", header.major, header.minor));
            (Some(trace.file_bytes()), version, header.map(id), None)
        }
        Source::Foreign(foreign) => (
            foreign.bytes,
            Some(foreign.title.clone()),
            None,
            foreign.compression,
        ),
    };
    json!({
        "file": args.file.display().to_string(),
        "bytes": bytes,
        "format": format,
        "compression": compression,
        "id": id,
        "metadata": trace.metadata,
        "first_ns": trace.span().map(|(first, _)| first.0),
        "last_ns": trace.span().map(|(_, last)| last.0),
        "hosts": trace.hosts.iter().map(|host| json!({
            "id": host.id.0, "name": text(host.name), "os": text(host.os), "cpu": text(host.cpu),
            "cpus": host.cpus, "memory": host.memory.0,
        })).collect::<Vec<_>>(),
        "devices": trace.devices.iter().map(|device| json!({
            "id": device.id.0, "host": device.host.0, "ordinal": device.ordinal, "uuid": text(device.uuid),
            "name": text(device.name), "architecture": text(device.architecture),
            "capability": [device.capability_major, device.capability_minor],
            "memory": device.memory.0, "multiprocessors": device.multiprocessors,
            "driver": text(device.driver), "pci": text(device.pci),
            "pcie_generation": device.pcie_generation, "pcie_width": device.pcie_width,
            "nvlinks": device.nvlinks, "nvlink_bandwidth": device.nvlink_bandwidth,
        })).collect::<Vec<_>>(),
        "processes": trace.processes.iter().map(|process| json!({
            "id": process.id.0, "host": process.host.0, "pid": process.pid, "name": text(process.name),
            "command": text(process.command), "rank": process.rank.get(),
            "end": process.end.name(), "end_code": process.end_code,
        })).collect::<Vec<_>>(),
        "tables": tables::value(trace, source, kinds, args.columns),
        "recording": recording::report(trace, &args.file).map(|report| report.value()),
        "health": {
            "good": trace.health().is_good(), "problems": trace.health().sentences(),
            "verified": checked != Checked::Partly,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_file_is_not_called_good_without_saying_that_it_was_not_read() {
        let mut args = InfoArgs {
            file: "t.sbt".into(),
            verify: false,
            columns: false,
        };
        assert_eq!(Checked::of(&args, CHECKED_BYTES).words(), "good");
        let words = Checked::of(&args, CHECKED_BYTES + 1).words();
        assert!(words.contains("contents not checked; --verify"), "{words}");
        args.verify = true;
        assert_eq!(Checked::of(&args, CHECKED_BYTES + 1), Checked::Wanted);
    }
}
