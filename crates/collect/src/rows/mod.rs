//! Converts records to rows. Each family of records has its own file.
//!
//! [`TraceRows`] is the state that all processes of a trace share. [`ProcessRows`] is the state of one process. If a
//! record refers to an unknown string or device, the conversion stops, so that the caller can read definitions first.
//! Records that cannot be parsed are counted.

mod api;
mod copy;
mod definitions;
mod kernel;
mod launches;
mod marker;
mod memory;
mod process;
mod replay_capture;
mod stack;
mod state;
mod symbols;
mod sync;

use rustc_hash::FxHashMap;
use tracesmith_format::{
    ClockId, DeviceId, ImageId, ProcessId, StringId, Timestamp, Writable,
    tables::{self, HealthCause},
};
use tracesmith_symbols::ModuleReport;
use tracesmith_wire::{
    Record,
    record::{self as wire, Payload},
};

use crate::{
    capture::Announce,
    clocks::{self, HostClocks},
    counters::{DeviceFacts, Sample},
    health::{Health, Notice},
    host,
    identity::Identity,
    report::{Loss, RowCounts},
    trace_file::TraceFile,
};
pub(crate) use process::ProcessRows;

/// The host's clock.
pub(crate) const HOST_CLOCK: ClockId = ClockId(1);

/// The result of converting a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum RecordOutcome {
    /// The record was written or counted.
    Done,
    /// The record refers to an unknown definition.
    NeedsDefinitions,
}

/// Whether definitions can still arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Definitions {
    /// The rings for definitions may contain more.
    MayCome,
    /// All definitions were read.
    Complete,
}

/// The result of a finished trace.
pub(crate) struct Finished {
    pub(crate) rows: RowCounts,
    pub(crate) losses: Vec<Loss>,
    /// The result of symbolizing the frames.
    pub(crate) modules: Vec<ModuleReport>,
    /// The size of the file, or the error.
    pub(crate) written: Result<u64, crate::Error>,
}

/// A device with a row.
#[derive(Clone, Copy)]
struct KnownDevice {
    id: DeviceId,
    /// Whether a process has described the device. Counters give only few properties.
    described: bool,
}

/// A trace that is being written, and the state that all its processes share.
pub(crate) struct TraceRows {
    pub(crate) file: TraceFile,
    pub(crate) counts: RowCounts,
    health: Health,
    devices: FxHashMap<[u8; 16], KnownDevice>,
    facts: Vec<DeviceFacts>,
    demangled: FxHashMap<StringId, StringId>,
    processes: u32,
    clocks: u32,
    images: u32,
    nameless: symbols::Nameless,
    contents: replay_capture::Stored,
    /// Called when a replay capture starts.
    pub(crate) announce: Option<Announce>,
    /// Whether targets record kernels. Otherwise launches have no kernel to wait for.
    pub(crate) has_kernels: bool,
    /// Whether a window opened or closed since the last check.
    pub(crate) saw_window: bool,
}

impl TraceRows {
    /// Starts a trace: writes the metadata, the host and its clocks.
    pub(crate) fn begin(
        mut file: TraceFile,
        facts: Vec<DeviceFacts>,
        metadata: &[(String, String)],
        clocks: &HostClocks,
    ) -> Self {
        for (key, value) in metadata {
            file.metadata(key, value);
        }
        host::define(&mut file);
        clocks.begin(&mut file);
        // Flush, so that the file has its metadata from the start.
        file.flush();
        Self {
            file,
            counts: RowCounts::default(),
            health: Health::default(),
            devices: FxHashMap::default(),
            facts,
            demangled: FxHashMap::default(),
            processes: 0,
            clocks: clocks::LAST,
            images: 0,
            nameless: symbols::Nameless::default(),
            contents: replay_capture::Stored::default(),
            announce: None,
            has_kernels: true,
            saw_window: false,
        }
    }

    /// Adds a process.
    pub(crate) fn begin_process(&mut self, identity: &Identity) -> ProcessRows {
        self.processes += 1;
        self.clocks += 1;
        ProcessRows::begin(identity, ProcessId(self.processes), ClockId(self.clocks), self)
    }

    /// Writes a loss or a remark.
    pub(crate) fn note(&mut self, notice: Notice<'_>) {
        self.health.note(notice, &mut self.file);
    }

    /// Why another profiler keeps GPU work from being recorded, if one does.
    pub(crate) fn conflict(&self) -> Option<&str> {
        self.health.first(HealthCause::CONFLICT)
    }

    /// In how many processes another profiler keeps GPU work from being recorded.
    pub(crate) fn conflicts(&self) -> usize {
        self.health.conflicts()
    }

    /// Whether there are rows of processes. Counters have rows without any process.
    pub(crate) fn has_process_rows(&self) -> bool {
        let counters = self.counts.counters;
        let of_counters = RowCounts {
            counters,
            ..RowCounts::default()
        };
        self.counts != of_counters
    }

    /// Why data are missing, as far as that is known.
    pub(crate) fn missing(&self) -> Vec<String> {
        self.health.missing()
    }

    /// Writes counter samples.
    pub(crate) fn sample(&mut self, sample: &Sample) {
        let track = tables::CounterTrack {
            name: self.file.string(&sample.name),
            unit: self.file.string(&sample.unit),
            device: sample.device.map(|uuid| self.device(uuid)).unwrap_or_default(),
            instance: sample.instance,
            ..tables::CounterTrack::default()
        };
        let row = tables::Counter {
            time: Timestamp(sample.time),
            value: sample.value,
            track,
        };
        self.counts.counters += 1;
        self.push(HOST_CLOCK, &row);
    }

    /// Symbolizes frames and completes the file.
    pub(crate) fn finish(mut self) -> Finished {
        // Flush before reading large symbol files, so that all rows are safe.
        self.file.flush();
        let modules = self.nameless.name_all(&mut self.file);
        Finished {
            rows: self.counts,
            losses: self.health.into_losses(),
            modules,
            written: self.file.finish(),
        }
    }

    #[inline]
    fn push<T: Writable>(&mut self, clock: ClockId, row: &T) {
        self.file.push(clock, row);
    }

    /// The ID of the device with this UUID. A device that only counters mention gets a row from the machine's list of
    /// devices.
    fn device(&mut self, uuid: [u8; 16]) -> DeviceId {
        if let Some(known) = self.devices.get(&uuid) {
            return known.id;
        }
        definitions::define_device(uuid, &wire::Device::default(), "", "", self)
    }

    fn next_image(&mut self) -> ImageId {
        self.images += 1;
        ImageId(self.images)
    }
}

impl ProcessRows {
    /// Converts one record.
    #[inline]
    pub(crate) fn take(
        &mut self,
        record: &Record<'_>,
        definitions: Definitions,
        trace: &mut TraceRows,
    ) -> RecordOutcome {
        const KERNEL: u16 = wire::Kernel::KIND.number();
        const COPY: u16 = wire::MemoryCopy::KIND.number();
        const SET: u16 = wire::MemorySet::KIND.number();
        const GRAPH: u16 = wire::GraphLaunch::KIND.number();
        const CALL: u16 = wire::ApiCall::KIND.number();
        const SYNC: u16 = wire::Synchronization::KIND.number();
        const ALLOCATION: u16 = wire::Allocation::KIND.number();
        const POOL: u16 = wire::Pool::KIND.number();
        const OVERHEAD: u16 = wire::Overhead::KIND.number();
        const COMPILE: u16 = wire::Compile::KIND.number();
        const MARKER: u16 = wire::Marker::KIND.number();
        let taken = match record.tag.kind.number() {
            KERNEL => self.with(record, |rows, kernel, _| rows.kernel(&kernel, definitions, trace)),
            CALL => self.with(record, |rows, call, _| rows.api_call(&call, definitions, trace)),
            COPY => self.with(record, |rows, copy, _| rows.copy(&copy, definitions, trace)),
            SET => self.with(record, |rows, set, _| rows.set(&set, definitions, trace)),
            GRAPH => self.with(record, |rows, graph, _| {
                rows.graph_launch(&graph, definitions, trace)
            }),
            SYNC => self.with(record, |rows, sync, _| rows.sync(&sync, definitions, trace)),
            ALLOCATION => self.with(record, |rows, row, _| rows.allocation(&row, definitions, trace)),
            POOL => self.with(record, |rows, pool, _| rows.pool(&pool, definitions, trace)),
            OVERHEAD => self.with(record, |rows, row, _| rows.overhead(&row, definitions, trace)),
            COMPILE => self.with(record, |rows, row, _| rows.compile(&row, definitions, trace)),
            MARKER => self.with(record, |rows, row, text| {
                rows.marker(&row, text, definitions, trace)
            }),
            _ => self.take_definition(record, trace),
        };
        taken.unwrap_or_else(|| {
            self.count_unknown();
            RecordOutcome::Done
        })
    }

    /// Converts a definition, or a record about the state of the capture.
    fn take_definition(&mut self, record: &Record<'_>, trace: &mut TraceRows) -> Option<RecordOutcome> {
        const TEXT: u16 = wire::Text::KIND.number();
        const CONTEXT: u16 = wire::Context::KIND.number();
        const STREAM: u16 = wire::Stream::KIND.number();
        const DEVICE: u16 = wire::Device::KIND.number();
        const MODULE: u16 = wire::Module::KIND.number();
        const IMAGE: u16 = wire::Image::KIND.number();
        const STACK: u16 = wire::Stack::KIND.number();
        const PYTHON_CODE: u16 = wire::PythonCode::KIND.number();
        const GRAPH_EDGES: u16 = wire::GraphEdges::KIND.number();
        const CATEGORY: u16 = wire::Category::KIND.number();
        const THREAD_NAME: u16 = wire::ThreadName::KIND.number();
        const STREAM_NAME: u16 = wire::StreamName::KIND.number();
        const CLOCK_PAIR: u16 = wire::ClockPair::KIND.number();
        const LOSSES: u16 = wire::Losses::KIND.number();
        const NOTE: u16 = wire::Note::KIND.number();
        const START: u16 = wire::ProcessStart::KIND.number();
        const FACT: u16 = wire::ProcessFact::KIND.number();
        const WINDOW: u16 = wire::Window::KIND.number();
        const GOODBYE: u16 = wire::Goodbye::KIND.number();
        const COMMAND: u16 = wire::Command::KIND.number();
        const BUFFER: u16 = wire::Buffer::KIND.number();
        const PIECE: u16 = wire::Piece::KIND.number();
        const CODE: u16 = wire::Code::KIND.number();
        const MODULE_HANDLE: u16 = wire::ModuleHandle::KIND.number();
        const RECORDING_BEGIN: u16 = wire::ReplayCaptureBegin::KIND.number();
        const RECORDING_END: u16 = wire::ReplayCaptureEnd::KIND.number();
        match record.tag.kind.number() {
            TEXT => self.define(record, |rows, row, text| rows.text(&row, text, trace)),
            CONTEXT => self.define(record, |rows, row, _| rows.context(&row, trace)),
            STREAM => self.define(record, |rows, row, _| rows.stream(&row, trace)),
            DEVICE => self.define(record, |rows, row, name| rows.device(&row, name, trace)),
            MODULE => self.define(record, |rows, row, _| rows.module(&row, trace)),
            IMAGE => self.define(record, |rows, row, path| rows.image(&row, path, trace)),
            STACK => self.define(record, |rows, row, words| rows.stack(&row, words, trace)),
            PYTHON_CODE => self.define(record, |rows, row, text| rows.python_code(&row, text, trace)),
            GRAPH_EDGES => self.define(record, |rows, row, pairs| rows.graph_edges(&row, pairs, trace)),
            CATEGORY => self.define(record, |rows, row, name| rows.category(&row, name, trace)),
            THREAD_NAME => self.define(record, |rows, row, name| rows.thread_name(&row, name, trace)),
            STREAM_NAME => self.define(record, |rows, row, name| rows.stream_name(&row, name, trace)),
            CLOCK_PAIR => self.define(record, |rows, row, _| rows.clock_pair(&row, trace)),
            LOSSES => self.define(record, |rows, row, _| rows.losses(&row, trace)),
            NOTE => self.define(record, |rows, row, words| rows.note(&row, words, trace)),
            START => self.define(record, |rows, row, _| rows.process_start(&row, trace)),
            FACT => self.define(record, |rows, row, words| rows.process_fact(&row, words, trace)),
            WINDOW => self.define(record, |rows, row, _| rows.window(&row, trace)),
            GOODBYE => self.define(record, |rows, row, _| rows.goodbye(&row)),
            PIECE => self.define(record, |rows, row, bytes| rows.piece(&row, bytes, trace)),
            COMMAND => self.define(record, |rows, row, behind| rows.command(&row, behind, trace)),
            BUFFER => self.define(record, |rows, row, behind| rows.buffer(&row, behind, trace)),
            CODE => self.define(record, |rows, row, bytes| rows.code(&row, bytes, trace)),
            MODULE_HANDLE => self.define(record, |rows, row, _| rows.module_handle(&row, trace)),
            RECORDING_BEGIN => self.define(record, |rows, row, _| rows.recording_begin(&row, trace)),
            RECORDING_END => self.define(record, |rows, row, words| {
                rows.recording_end(&row, words, trace);
            }),
            _ => None,
        }
    }

    /// Reads the fixed part of a record. `None` if the record is too short.
    #[inline(always)]
    fn with<T: Payload>(
        &mut self,
        record: &Record<'_>,
        take: impl FnOnce(&mut Self, T, &[u8]) -> RecordOutcome,
    ) -> Option<RecordOutcome> {
        let (fixed, tail) = wire::read::<T>(record)?;
        Some(take(self, fixed, tail))
    }

    fn define<T: Payload>(
        &mut self,
        record: &Record<'_>,
        take: impl FnOnce(&mut Self, T, &[u8]),
    ) -> Option<RecordOutcome> {
        self.with(record, |rows, fixed, tail| {
            take(rows, fixed, tail);
            RecordOutcome::Done
        })
    }
}
