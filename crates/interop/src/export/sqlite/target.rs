//! Tables that say what the trace is of: machines, processes, GPUs, streams, texts, and how it was made.

use std::collections::BTreeMap;

use tracesmith_format::tables::{Caller, Device, StreamKind};
use tracesmith_format::{Columns, HostId, ImageId, ProcessId, StringId};
use tracesmith_trace::units;

use super::insert::{Cell, Insert, unless_empty, unless_zero};
use super::{Export, epoch_of, schema};

impl Export<'_> {
    /// The paths of mapped programs and libraries.
    pub(super) fn images(&mut self) -> &BTreeMap<ImageId, StringId> {
        let trace = self.trace;
        self.images.get_or_insert_with(|| {
            let mut images = BTreeMap::new();
            for (_, rows) in trace.images.stream() {
                images.extend((0..rows.len()).map(|row| (rows.id[row], rows.path[row])));
            }
            images
        })
    }

    pub(super) fn target(&mut self) -> rusqlite::Result<()> {
        self.processes()?;
        self.gpus()?;
        self.streams()?;
        self.machines()?;
        self.facts()?;
        for (name, codes) in schema::CODE_TABLES {
            let mut table = Insert::always(
                self.connection,
                schema::Table {
                    name,
                    columns: schema::CODES,
                },
            )?;
            for (id, name, label) in *codes {
                table.row(&[(*id).into(), (*name).into(), (*label).into()])?;
            }
        }
        Ok(())
    }

    fn processes(&mut self) -> rusqlite::Result<()> {
        let mut table = Insert::always(self.connection, schema::PROCESSES)?;
        for process in &self.trace.processes {
            table.row(&[
                self.names.process(process.id).into(),
                process.pid.into(),
                unless_empty(self.trace.string(process.name)),
            ])?;
        }
        let mut table = Insert::always(self.connection, schema::THREADS)?;
        for thread in self.trace.threads.iter().filter(|thread| thread.name.is_some()) {
            let caller = Caller {
                process: thread.process,
                thread: thread.thread,
            };
            table.row(&[
                self.names.text(thread.name).into(),
                Cell::Null,
                self.names.thread(&caller).into(),
            ])?;
        }
        let mut table = self.insert(schema::LONG_THREADS);
        for (packed, thread) in &self.names.long_threads {
            table.row(&[(*packed).into(), (*thread).into()])?;
        }
        Ok(())
    }

    fn gpus(&mut self) -> rusqlite::Result<()> {
        let mut table = Insert::always(self.connection, schema::GPUS)?;
        for device in &self.trace.devices {
            let text = |id| unless_empty(self.trace.string(id));
            table.row(&[
                machine(device.host).into(),
                device.ordinal.into(),
                text(device.name),
                text(device.pci),
                Cell::Null,
                unless_zero(device.cache.0),
                unless_zero(device.memory.0),
                unless_zero(device.memory_bandwidth),
                unless_zero(u64::from(device.clock_khz) * 1000),
                unless_zero(device.multiprocessors.into()),
                text(device.uuid),
                text(device.architecture),
                device.ordinal.into(),
                unless_zero(device.shared_per_block.0),
                unless_zero(device.shared_per_multiprocessor.0),
                unless_zero(device.registers_per_multiprocessor.into()),
                unless_zero(device.warp_size.into()),
                unless_zero(device.copy_engines.into()),
                warps(device),
                unless_zero(device.blocks_per_multiprocessor.into()),
                unless_zero(device.capability_major.into()),
                Cell::from((device.capability_major > 0).then_some(device.capability_minor)),
            ])?;
        }
        Ok(())
    }

    fn streams(&mut self) -> rusqlite::Result<()> {
        let mut table = Insert::always(self.connection, schema::STREAMS)?;
        for stream in &self.trace.streams {
            let (host, pid) = self.pid(stream.process);
            table.row(&[
                stream.stream.0.into(),
                0i64.into(),
                i64::from(host.0.max(1)).into(),
                pid.into(),
                stream.context.0.into(),
                i64::from(stream.priority).into(),
                stream_type(stream.kind).into(),
            ])?;
        }
        let mut table = self.insert(schema::CONTEXTS);
        for context in &self.trace.contexts {
            let (host, pid) = self.pid(context.process);
            table.row(&[
                context.default_stream.0.into(),
                0i64.into(),
                i64::from(host.0.max(1)).into(),
                pid.into(),
                self.names.device(context.device).into(),
                context.context.0.into(),
                unless_zero(context.parent.0.into()),
                Cell::Null,
            ])?;
        }
        Ok(())
    }

    /// The machine of a process, and its pid as packed numbers have it.
    fn pid(&self, process: ProcessId) -> (HostId, i64) {
        let host = self
            .trace
            .process(process)
            .map_or(HostId::NONE, |process| process.host);
        (host, self.names.process(process) >> 24 & 0xff_ffff)
    }

    fn machines(&mut self) -> rusqlite::Result<()> {
        let mut table = self.insert(schema::SYSTEM);
        for host in &self.trace.hosts {
            let cpus = match host.cpus {
                0 => String::new(),
                cpus => cpus.to_string(),
            };
            for (name, number, value) in [
                ("CpuCores", 1i64, cpus.as_str()),
                ("CpuDescription", 13, self.trace.string(host.cpu)),
                ("OsDescription", 605, self.trace.string(host.os)),
                ("Hostname", 619, self.trace.string(host.name)),
            ] {
                if !value.is_empty() {
                    let machine = machine(host.id);
                    table.row(&[
                        machine.into(),
                        "".into(),
                        name.into(),
                        number.into(),
                        value.into(),
                    ])?;
                }
            }
        }
        Ok(())
    }

    fn facts(&mut self) -> rusqlite::Result<()> {
        if let Some(epoch) = epoch_of(self.trace, self.base) {
            let mut table = self.insert(schema::SESSION);
            // `2026-11-15 02:06:00 UTC` there, `2026-11-15T02:06:00` here.
            let time = units::date(epoch.max(0).unsigned_abs())
                .replacen(' ', "T", 1)
                .replace(" UTC", "");
            table.row(&[epoch.into(), time.as_str().into(), Cell::Null, Cell::Null])?;
        }
        if let Some((first, last)) = self.trace.span() {
            let mut table = self.insert(schema::ANALYSIS);
            let (first, last) = (self.nanos(first), self.nanos(last));
            let machine = machine(HostId(1));
            let duration = last.saturating_sub(first);
            table.row(&[machine.into(), duration.into(), first.into(), last.into()])?;
        }
        let base = self.base.to_string();
        let mut table = Insert::always(self.connection, schema::EXPORT_FACTS)?;
        for (name, value) in [
            ("EXPORT_PRODUCT_NAME", "TraceSmith"),
            ("EXPORT_PRODUCT_VERSION", env!("CARGO_PKG_VERSION")),
            ("EXPORT_SCHEMA_VERSION", schema::VERSION),
            ("EXPORT_SCHEMA_VERSION_MAJOR", "3"),
            ("EXPORT_SCHEMA_VERSION_MINOR", "25"),
            ("EXPORT_SCHEMA_VERSION_MICRO", "0"),
            ("EXPORT_PARAM_EXPORT_TYPE", "SQLite"),
            ("TRACESMITH_TIME_BASE_NANOS", base.as_str()),
        ] {
            table.row(&[name.into(), value.into()])?;
        }
        let mut table = self.insert(schema::CAPTURE_FACTS);
        for (name, value) in &self.trace.metadata {
            table.row(&[name.as_str().into(), value.as_str().into()])?;
        }
        let mut table = self.insert(schema::HEALTH);
        for item in &self.trace.health().recorded {
            table.row(&[
                item.cause.name().unwrap_or("unknown").into(),
                item.count.into(),
                item.bytes.into(),
                unless_empty(&item.detail),
            ])?;
        }
        Ok(())
    }

    /// The texts that rows refer to. Comes last.
    pub(super) fn strings(&mut self) -> rusqlite::Result<()> {
        let mut table = Insert::always(self.connection, schema::STRINGS)?;
        for id in self.names.used_texts() {
            table.row(&[id.0.into(), self.trace.string(id).into()])?;
        }
        for (place, text) in self.names.own_texts.iter().enumerate() {
            table.row(&[super::names::own_number(place).into(), text.as_str().into()])?;
        }
        Ok(())
    }
}

/// A machine as the upper part of a packed number.
fn machine(host: HostId) -> i64 {
    i64::from(host.0.max(1) & 0xffff) << 48
}

fn warps(device: &Device) -> Cell<'static> {
    let warps = device
        .threads_per_multiprocessor
        .checked_div(device.warp_size)
        .unwrap_or(0);
    unless_zero(warps.into())
}

fn stream_type(kind: StreamKind) -> i64 {
    match kind {
        StreamKind::BLOCKING | StreamKind::PER_THREAD_DEFAULT => 1,
        StreamKind::NON_BLOCKING => 2,
        StreamKind::LEGACY_DEFAULT => 3,
        _ => 0,
    }
}
