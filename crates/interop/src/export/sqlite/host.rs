//! Tables of what the host did and counted.

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{ApiDomain, Caller, HostCallKind};
use tracesmith_format::{Columns, StackId, StringId};

use super::insert::{Cell, Insert, unless_empty, unless_zero};
use super::names::UsedStacks;
use super::{Export, schema};

const RUNTIME_CLASS: i64 = 0;
const DRIVER_CLASS: i64 = 1;
const OS_CLASS: i64 = 27;
/// Types of overhead.
const UNKNOWN_OVERHEAD: i64 = 1;
const COMPILER_OVERHEAD: i64 = 2;

impl Export<'_> {
    pub(super) fn api_calls(&mut self) -> rusqlite::Result<()> {
        let mut table = Insert::always(self.connection, schema::API_CALLS)?;
        for (block, rows) in self.trace.api_calls.stream() {
            self.options.note(block);
            for row in 0..rows.len() {
                let clock = block.header.clock;
                let (start, end) = (
                    self.moment(clock, rows.start[row]),
                    self.moment(clock, rows.end[row]),
                );
                if !self.options.wants_time(start, end) {
                    continue;
                }
                let Some((start, end)) = self.span(start, end) else {
                    continue;
                };
                let shape = rows.shape.get(row);
                let class = match shape.domain {
                    ApiDomain::CUDA_DRIVER | ApiDomain::HSA => DRIVER_CLASS,
                    _ => RUNTIME_CLASS,
                };
                table.row(&[
                    start.into(),
                    end.into(),
                    class.into(),
                    self.names.thread(rows.caller.get(row)).into(),
                    rows.correlation[row].0.into(),
                    self.names.text(shape.name).into(),
                    i64::from(shape.result).into(),
                    self.cuda_stacks.number(rows.stack[row]).into(),
                ])?;
            }
        }
        Ok(())
    }

    /// Each kind into the table that nsys has for it, if it has one.
    pub(super) fn host_calls(&mut self) -> rusqlite::Result<()> {
        let mut os = self.insert(schema::OS_CALLS);
        let mut overheads = self.insert(schema::OVERHEADS);
        let mut samples = self.insert(schema::SAMPLES);
        let mut sample_chains = self.insert(schema::SAMPLE_CHAINS);
        let mut scheduling = self.insert(schema::SCHEDULING);
        let mut others = self.insert(schema::HOST_CALLS);
        let mut sample = 0i64;
        for (block, rows) in self.trace.host_calls.stream() {
            self.options.note(block);
            for row in 0..rows.len() {
                let clock = block.header.clock;
                let (start, end) = (
                    self.moment(clock, rows.start[row]),
                    self.moment(clock, rows.end[row]),
                );
                if !self.options.wants_time(start, end) {
                    continue;
                }
                let Some(time) = self.instant(start) else {
                    continue;
                };
                let shape = rows.shape.get(row);
                let thread = self.names.thread(rows.caller.get(row));
                let category = self.trace.string(shape.category);
                let end = self.nanos_if_known(end);
                match (shape.kind, end) {
                    (HostCallKind::OS, Some(end)) => os.row(&[
                        time.into(),
                        end.into(),
                        OS_CLASS.into(),
                        thread.into(),
                        self.names.text(shape.name).into(),
                        rows.argument[row].into(),
                        rows.depth[row].into(),
                        self.os_stacks.number(rows.stack[row]).unwrap_or(0).into(),
                    ])?,
                    (HostCallKind::OVERHEAD | HostCallKind::COMPILE, Some(end)) => overheads.row(&[
                        time.into(),
                        end.into(),
                        thread.into(),
                        self.names.text(shape.name).into(),
                        match shape.kind {
                            HostCallKind::COMPILE => COMPILER_OVERHEAD.into(),
                            _ => UNKNOWN_OVERHEAD.into(),
                        },
                    ])?,
                    (HostCallKind::SAMPLE, _) => {
                        sample += 1;
                        samples.row(&[
                            sample.into(),
                            time.into(),
                            rows.cpu[row].into(),
                            Cell::Null,
                            thread.into(),
                            rows.argument[row].into(),
                        ])?;
                        self.chain(&mut sample_chains, sample, rows.stack[row])?;
                    }
                    (HostCallKind::CUSTOM, _) if category == "scheduling" => scheduling.row(&[
                        time.into(),
                        rows.cpu[row].into(),
                        i64::from(self.trace.string(shape.name) == "scheduled in").into(),
                        thread.into(),
                    ])?,
                    _ => others.row(&[
                        time.into(),
                        end.into(),
                        thread.into(),
                        self.names.text(shape.name).into(),
                        shape.kind.name().unwrap_or("unknown").into(),
                        self.names.text(shape.category).into(),
                        unless_zero(rows.correlation[row].0),
                        rows.sequence[row].into(),
                        rows.depth[row].into(),
                        rows.cpu[row].into(),
                        rows.argument[row].into(),
                        unless_empty(self.trace.string(rows.detail[row])),
                        self.host_stacks.number(rows.stack[row]).into(),
                    ])?,
                }
            }
        }
        Ok(())
    }

    /// Counters of devices as GPU metrics, others into a table of our own.
    pub(super) fn counters(&mut self) -> rusqlite::Result<()> {
        let mut metrics = self.insert(schema::METRICS);
        let mut names = self.insert(schema::METRIC_NAMES);
        let mut others = self.insert(schema::COUNTERS);
        let mut numbers: FxHashMap<(i64, StringId, u32), i64> = FxHashMap::default();
        for (block, rows) in self.trace.counters.stream() {
            self.options.note(block);
            for row in 0..rows.len() {
                let time = self.moment(block.header.clock, rows.time[row]);
                if !self.options.wants_time(time, time) {
                    continue;
                }
                let Some(time) = self.instant(time) else {
                    continue;
                };
                let track = rows.track.get(row);
                let name = self.trace.string(track.name);
                let Some(device) = self.names.other_device(track.device) else {
                    others.row(&[
                        time.into(),
                        name.into(),
                        unless_empty(self.trace.string(track.unit)),
                        unless_zero(self.names.process(track.process) as u64),
                        track.instance.into(),
                        Cell::Real(rows.value[row]),
                    ])?;
                    continue;
                };
                // The source of a metric: a machine, a kind of source, and a GPU in the lowest byte.
                let source = 1 << 48 | 1 << 32 | device;
                let key = (source, track.name, track.instance);
                let metric = match numbers.get(&key) {
                    Some(metric) => *metric,
                    None => {
                        let metric = numbers.len() as i64;
                        numbers.insert(key, metric);
                        names.row(&[
                            source.into(),
                            device.into(),
                            "TraceSmith".into(),
                            metric.into(),
                            name.into(),
                        ])?;
                        metric
                    }
                };
                let value = Cell::Real(rows.value[row]);
                metrics.row(&[time.into(), source.into(), metric.into(), value])?;
            }
        }
        Ok(())
    }

    pub(super) fn collectives(&mut self) -> rusqlite::Result<()> {
        let mut table = self.insert(schema::COLLECTIVES);
        for (block, rows) in self.trace.collectives.stream() {
            self.options.note(block);
            for row in 0..rows.len() {
                let clock = block.header.clock;
                let (start, end) = (
                    self.moment(clock, rows.start[row]),
                    self.moment(clock, rows.end[row]),
                );
                let (place, shape) = (rows.place.get(row), rows.shape.get(row));
                if !self.options.wants(start, end, place) {
                    continue;
                }
                let Some(time) = self.instant(start) else {
                    continue;
                };
                table.row(&[
                    time.into(),
                    self.nanos_if_known(end).into(),
                    self.names.process(place.process).into(),
                    self.names.other_device(place.device).into(),
                    place.stream.0.into(),
                    unless_zero(rows.correlation[row].0),
                    self.names.text(shape.name).into(),
                    shape.kind.name().unwrap_or("unknown").into(),
                    shape.communicator.into(),
                    rows.sequence[row].into(),
                    shape.rank.get().into(),
                    shape.ranks.into(),
                    shape.root.get().into(),
                    rows.count[row].into(),
                    rows.bytes[row].0.into(),
                    unless_empty(self.trace.string(shape.datatype)),
                ])?;
            }
        }
        Ok(())
    }

    pub(super) fn flows(&mut self) -> rusqlite::Result<()> {
        let mut table = self.insert(schema::FLOWS);
        for (block, rows) in self.trace.flows.stream() {
            self.options.note(block);
            for row in 0..rows.len() {
                let time = self.moment(block.header.clock, rows.time[row]);
                if !self.options.wants_time(time, time) {
                    continue;
                }
                let Some(time) = self.instant(time) else {
                    continue;
                };
                let shape = rows.shape.get(row);
                let caller = Caller {
                    process: shape.process,
                    thread: shape.thread,
                };
                table.row(&[
                    time.into(),
                    rows.flow[row].into(),
                    shape.kind.name().unwrap_or("unknown").into(),
                    shape.phase.name().unwrap_or("unknown").into(),
                    unless_empty(self.trace.string(shape.name)),
                    self.names.thread(&caller).into(),
                    self.names.other_device(shape.device).into(),
                    shape.stream.0.into(),
                    unless_zero(rows.correlation[row].0),
                ])?;
            }
        }
        Ok(())
    }

    /// The call chains that calls refer to.
    pub(super) fn chains(&mut self) -> rusqlite::Result<()> {
        for (table, stacks) in [
            (schema::CUDA_CHAINS, std::mem::take(&mut self.cuda_stacks)),
            (schema::OS_CHAINS, std::mem::take(&mut self.os_stacks)),
            (schema::HOST_CHAINS, std::mem::take(&mut self.host_stacks)),
        ] {
            let mut table = self.insert(table);
            for stack in UsedStacks::sorted(&stacks) {
                self.chain(&mut table, i64::from(stack.0), stack)?;
            }
        }
        Ok(())
    }

    /// One call chain, its innermost frame first.
    fn chain(&mut self, table: &mut Insert<'_>, id: i64, stack: StackId) -> rusqlite::Result<()> {
        if stack == StackId::NONE {
            return Ok(());
        }
        for (depth, frame) in self.trace.stack(stack).frames.iter().enumerate() {
            let module = match frame.frame.image.is_some() {
                true => self.images().get(&frame.frame.image).copied().unwrap_or_default(),
                false => StringId::NONE,
            };
            let symbol = self.trace.frame_name(frame);
            table.row(&[
                id.into(),
                self.names.own_text(&symbol).into(),
                self.names.text(module).into(),
                Cell::Null,
                unless_zero(frame.frame.address.0),
                (depth as u32).into(),
            ])?;
        }
        Ok(())
    }
}
