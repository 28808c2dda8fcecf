//! One set of tables: what its numbers stand for.

use rustc_hash::FxHashMap;
use tracesmith_format::tables::*;
use tracesmith_format::{
    Bytes, ClockId, ContextId, CorrelationId, DeviceId, HostId, ProcessId, StreamId, StringId, ThreadId,
    Timestamp,
};

use crate::error::Error;
use crate::import::Builder;
use crate::import::doubts::Doubts;
use crate::import::sqlite::{Column, Database, Query, Record};

/// A set of tables, with everything that events point to.
pub(super) struct Run<'d> {
    db: &'d Database,
    ending: &'d str,
    strings: FxHashMap<i64, String>,
    nodes: FxHashMap<i64, Node>,
    processes: FxHashMap<i64, ProcessId>,
    threads: FxHashMap<i64, (ProcessId, ThreadId)>,
    pub(super) agents: FxHashMap<i64, Agent>,
    streams: FxHashMap<i64, StringId>,
    pub(super) kernels: FxHashMap<i64, Symbol>,
    pub(super) counters: FxHashMap<i64, CounterTrack>,
    pub(super) tracks: FxHashMap<i64, (i64, Option<i64>)>,
    pub(super) doubts: Doubts,
}

/// A machine and its clock.
#[derive(Clone, Copy)]
struct Node {
    host: HostId,
    clock: ClockId,
}

/// A processor of a machine.
#[derive(Clone, Copy)]
pub(super) struct Agent {
    pub(super) kind: AgentKind,
    pub(super) device: DeviceId,
}

/// What an agent is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AgentKind {
    Cpu,
    Gpu,
}

/// What is known of a kernel before it runs.
#[derive(Clone, Copy, Default)]
pub(super) struct Symbol {
    pub(super) name: StringId,
    pub(super) demangled: StringId,
    pub(super) registers: u16,
    pub(super) shared: u64,
}

/// The columns by which an event says where it belongs, and its row in `rocpd_event`.
pub(super) struct EventColumns {
    node: Column,
    process: Column,
    thread: Column,
    correlation: Column,
    category: Column,
}

impl EventColumns {
    /// Asks for them.
    pub(super) fn of<'d>(query: &mut Query<'d>, run: &Run<'d>) -> Self {
        query.look_up(run.query("rocpd_event"), "event_id", "id");
        EventColumns {
            node: query.column("nid"),
            process: query.column("pid"),
            thread: query.column("tid"),
            correlation: query.other_column("stack_id"),
            category: query.other_column("category_id"),
        }
    }

    pub(super) fn correlation(&self, row: &Record<'_>, run: &mut Run<'_>) -> CorrelationId {
        CorrelationId(run.doubts.number(row.integer(self.correlation)))
    }

    /// The kind of call, such as HIP_RUNTIME_API.
    pub(super) fn category<'r>(&self, row: &Record<'_>, run: &'r Run<'_>) -> &'r str {
        run.text(row.integer(self.category))
    }

    pub(super) fn clock(&self, row: &Record<'_>, run: &Run<'_>) -> ClockId {
        run.clock(row.integer(self.node))
    }

    pub(super) fn process(&self, row: &Record<'_>, run: &Run<'_>) -> ProcessId {
        run.process(row.integer(self.process))
    }

    pub(super) fn caller(&self, row: &Record<'_>, run: &Run<'_>) -> Caller {
        match run.thread(row.integer(self.thread)) {
            Some(caller) => caller,
            None => Caller {
                process: self.process(row, run),
                thread: ThreadId::NONE,
            },
        }
    }
}

impl<'d> Run<'d> {
    pub(super) fn read(
        db: &'d Database,
        ending: &'d str,
        builder: &mut Builder<'_, '_>,
    ) -> Result<Self, Error> {
        let mut run = Run {
            db,
            ending,
            strings: FxHashMap::default(),
            nodes: FxHashMap::default(),
            processes: FxHashMap::default(),
            threads: FxHashMap::default(),
            agents: FxHashMap::default(),
            streams: FxHashMap::default(),
            kernels: FxHashMap::default(),
            counters: FxHashMap::default(),
            tracks: FxHashMap::default(),
            doubts: Doubts::default(),
        };
        run.read_strings(builder)?;
        run.read_nodes(builder)?;
        run.read_processes(builder)?;
        run.read_agents(builder)?;
        run.read_streams(builder)?;
        run.read_kernels(builder)?;
        run.read_counters(builder)?;
        run.read_tracks(builder)?;
        Ok(run)
    }

    /// A question to a table of this set.
    pub(super) fn query(&self, table: &str) -> Option<Query<'d>> {
        self.db.query(&format!("{table}{}", self.ending))
    }

    /// The database.
    pub(super) fn db(&self) -> &'d Database {
        self.db
    }

    /// A text by its number.
    pub(super) fn text(&self, id: Option<i64>) -> &str {
        id.and_then(|id| self.strings.get(&id)).map_or("", String::as_str)
    }

    /// The clock of a machine.
    pub(super) fn clock(&self, node: Option<i64>) -> ClockId {
        let node = node.and_then(|node| self.nodes.get(&node));
        node.or_else(|| self.nodes.values().next())
            .map_or(ClockId(1), |node| node.clock)
    }

    /// A process by its number in the tables.
    pub(super) fn process(&self, process: Option<i64>) -> ProcessId {
        process
            .and_then(|process| self.processes.get(&process))
            .copied()
            .unwrap_or(ProcessId::NONE)
    }

    /// A thread by its number in the tables.
    pub(super) fn thread(&self, thread: Option<i64>) -> Option<Caller> {
        let (process, thread) = *self.threads.get(&thread?)?;
        Some(Caller { process, thread })
    }

    /// A moment; 0 and less are none.
    pub(super) fn time(&mut self, time: Option<i64>) -> Timestamp {
        match time.and_then(|time| u64::try_from(time).ok()) {
            Some(time) if time > 0 => Timestamp(time),
            _ => {
                self.doubts.missing_times += 1;
                Timestamp::NONE
            }
        }
    }

    /// Start and end.
    pub(super) fn span(&mut self, start: Option<i64>, end: Option<i64>) -> (Timestamp, Timestamp) {
        let (start, end) = (self.time(start), self.time(end));
        self.doubts.forwards(start, end)
    }

    /// Where work ran; its stream is listed by its name.
    pub(super) fn place(
        &mut self,
        process: ProcessId,
        device: DeviceId,
        queue: Option<i64>,
        stream: Option<i64>,
        builder: &mut Builder<'_, '_>,
    ) -> Place {
        let place = Place {
            process,
            device,
            context: ContextId::NONE,
            stream: StreamId(self.doubts.number(stream)),
            channel: self.doubts.number(queue),
            ..Place::default()
        };
        builder.seen_at(&place);
        if let Some(name) = stream.and_then(|stream| self.streams.get(&stream)) {
            builder.stream_mut(&place).name = *name;
        }
        place
    }

    fn read_strings(&mut self, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
        if let Some(mut query) = self.query("rocpd_string") {
            let (id, text) = (query.column("id"), query.column("string"));
            self.db.read(&query, builder, |row, _| {
                if let (Some(id), Some(text)) = (row.integer(id), row.text(text)) {
                    self.strings.insert(id, text.into_owned());
                }
                Ok(())
            })?;
        }
        if let Some(mut query) = self.query("rocpd_metadata") {
            let (tag, value) = (query.column("tag"), query.column("value"));
            self.db.read(&query, builder, |row, builder| {
                match (row.text(tag), row.any_text(value)) {
                    (Some(tag), Some(value)) => builder.metadata(&format!("rocpd.{tag}"), &value),
                    _ => Ok(()),
                }
            })?;
        }
        Ok(())
    }

    fn read_nodes(&mut self, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
        if let Some(mut query) = self.query("rocpd_info_node") {
            let (id, name, machine) = (
                query.column("id"),
                query.column("hostname"),
                query.column("machine_id"),
            );
            let (system, release) = (query.column("system_name"), query.column("release"));
            self.db.read(&query, builder, |row, builder| {
                let Some(id) = row.integer(id) else {
                    return Ok(());
                };
                let name = row.text(name).unwrap_or_default();
                let host = builder.host(&name)?;
                let os = [row.text(system), row.text(release)]
                    .map(Option::unwrap_or_default)
                    .join(" ");
                let os = builder.string(os.trim())?;
                let machine_id = builder.string(&row.text(machine).unwrap_or_default())?;
                let known = builder.host_mut(host);
                (known.os, known.machine_id) = (os, machine_id);
                let clock = builder.clock(ClockKind::MONOTONIC, &format!("rocprofiler on {name}"))?;
                self.nodes.insert(id, Node { host, clock });
                Ok(())
            })?;
        }
        if self.nodes.is_empty() {
            let host = builder.host("")?;
            let clock = builder.clock(ClockKind::MONOTONIC, "rocprofiler")?;
            self.nodes.insert(0, Node { host, clock });
        }
        Ok(())
    }

    fn host(&self, node: Option<i64>) -> HostId {
        let node = node.and_then(|node| self.nodes.get(&node));
        node.map_or(HostId(1), |node| node.host)
    }

    fn read_processes(&mut self, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
        if let Some(mut query) = self.query("rocpd_info_process") {
            let (id, node, pid) = (query.column("id"), query.column("nid"), query.column("pid"));
            let (parent, command) = (query.column("ppid"), query.column("command"));
            let (start, end) = (query.column("start"), query.column("end"));
            self.db.read(&query, builder, |row, builder| {
                let Some(id) = row.integer(id) else {
                    return Ok(());
                };
                let pid = self.doubts.number(row.integer(pid));
                let process = builder.process(self.host(row.integer(node)), pid);
                let command = builder.string(&row.text(command).unwrap_or_default())?;
                let moment = |time: Option<i64>| Timestamp(time.unwrap_or(0).max(0).unsigned_abs());
                let known = builder.process_mut(process);
                known.parent_pid = self.doubts.number(row.integer(parent));
                (known.command, known.name) = (command, command);
                (known.started, known.ended) = (moment(row.integer(start)), moment(row.integer(end)));
                self.processes.insert(id, process);
                Ok(())
            })?;
        }
        let Some(mut query) = self.query("rocpd_info_thread") else {
            return Ok(());
        };
        let (id, process) = (query.column("id"), query.column("pid"));
        let (thread, name) = (query.column("tid"), query.column("name"));
        self.db.read(&query, builder, |row, builder| {
            let Some(id) = row.integer(id) else {
                return Ok(());
            };
            let process = self.process(row.integer(process));
            let thread = ThreadId(self.doubts.number(row.integer(thread)));
            let name = builder.string(&row.text(name).unwrap_or_default())?;
            builder.thread_mut(process, thread).name = name;
            self.threads.insert(id, (process, thread));
            Ok(())
        })
    }

    fn read_agents(&mut self, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
        let Some(mut query) = self.query("rocpd_info_agent") else {
            return Ok(());
        };
        let (id, node, kind) = (query.column("id"), query.column("nid"), query.column("type"));
        let (number, absolute) = (query.column("type_index"), query.column("absolute_index"));
        let (name, product, vendor) = (
            query.column("name"),
            query.column("product_name"),
            query.column("vendor_name"),
        );
        self.db.read(&query, builder, |row, builder| {
            let Some(id) = row.integer(id) else {
                return Ok(());
            };
            if row.text(kind).as_deref() != Some("GPU") {
                let device = DeviceId::NONE;
                self.agents.insert(
                    id,
                    Agent {
                        kind: AgentKind::Cpu,
                        device,
                    },
                );
                return Ok(());
            }
            let number = row.integer(number).or(row.integer(absolute)).unwrap_or(id);
            let device = builder.device(self.host(row.integer(node)), self.doubts.number(Some(number)));
            let mut text = |column| builder.string(&row.text(column).unwrap_or_default());
            let (name, product, vendor) = (text(name)?, text(product)?, text(vendor)?);
            let known = builder.device_mut(device);
            known.name = if product.is_some() { product } else { name };
            (known.architecture, known.vendor) = (name, vendor);
            self.agents.insert(
                id,
                Agent {
                    kind: AgentKind::Gpu,
                    device,
                },
            );
            Ok(())
        })
    }

    fn read_streams(&mut self, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
        let Some(mut query) = self.query("rocpd_info_stream") else {
            return Ok(());
        };
        let (id, name) = (query.column("id"), query.column("name"));
        self.db.read(&query, builder, |row, builder| {
            if let (Some(id), Some(name)) = (row.integer(id), row.text(name)) {
                self.streams.insert(id, builder.string(&name)?);
            }
            Ok(())
        })
    }

    fn read_kernels(&mut self, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
        let Some(mut query) = self.query("rocpd_info_kernel_symbol") else {
            return Ok(());
        };
        let (id, name, display) = (
            query.column("id"),
            query.column("kernel_name"),
            query.column("display_name"),
        );
        let (registers, shared) = (
            query.column("arch_vgpr_count"),
            query.column("group_segment_size"),
        );
        self.db.read(&query, builder, |row, builder| {
            let Some(id) = row.integer(id) else {
                return Ok(());
            };
            let name = row.text(name).unwrap_or_default();
            // The driver's object for a kernel ends so; the kernel itself does not.
            let name = builder.string(name.strip_suffix(".kd").unwrap_or(&name))?;
            let symbol = Symbol {
                name,
                demangled: builder.string(&row.text(display).unwrap_or_default())?,
                registers: self.doubts.number(row.integer(registers)),
                shared: self.doubts.number(row.integer(shared)),
            };
            self.kernels.insert(id, symbol);
            Ok(())
        })
    }

    fn read_counters(&mut self, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
        let Some(mut query) = self.query("rocpd_info_pmc") else {
            return Ok(());
        };
        let (id, name, unit) = (query.column("id"), query.column("name"), query.column("units"));
        let (agent, process) = (query.column("agent_id"), query.column("pid"));
        self.db.read(&query, builder, |row, builder| {
            let Some(id) = row.integer(id) else {
                return Ok(());
            };
            let device = row
                .integer(agent)
                .and_then(|agent| self.agents.get(&agent))
                .map_or(DeviceId::NONE, |agent| agent.device);
            let track = CounterTrack {
                name: builder.string(&row.text(name).unwrap_or_default())?,
                unit: builder.string(&row.text(unit).unwrap_or_default())?,
                process: self.process(row.integer(process)),
                device,
                kind: CounterKind::DELTA,
                ..CounterTrack::default()
            };
            self.counters.insert(id, track);
            Ok(())
        })
    }

    /// Tracks say for samples which machine and thread they are of.
    fn read_tracks(&mut self, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
        let Some(mut query) = self.query("rocpd_track") else {
            return Ok(());
        };
        let (id, node, thread) = (query.column("id"), query.column("nid"), query.column("tid"));
        self.db.read(&query, builder, |row, _| {
            if let Some(id) = row.integer(id) {
                self.tracks
                    .insert(id, (row.integer(node).unwrap_or(0), row.integer(thread)));
            }
            Ok(())
        })
    }

    /// Bytes.
    pub(super) fn bytes(&mut self, value: Option<i64>) -> Bytes {
        Bytes(self.doubts.number(value))
    }
}
