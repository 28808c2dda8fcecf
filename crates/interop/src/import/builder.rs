//! What importers write through: a native trace that gets its processes, devices and streams as they turn up.
//!
//! Hosts, processes, threads, devices, contexts and streams are kept until the end, since foreign files often name them
//! after the events that use them; events are written at once. What has no place in the model is counted by name.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use tracesmith_format::tables::*;
use tracesmith_format::{
    ClockId, ContextId, DeviceId, FrameId, HostId, ImageId, ProcessId, StackId, StreamId, StringId, ThreadId,
    Timestamp, Writable,
};

use crate::error::Error;
use crate::import::{ImportWriter, Importer, Input};

/// Kinds of skipped things that are listed by name; a file that has more of them gets one sum for the rest.
const SKIPPED_KINDS: usize = 64;

/// Writes an imported trace.
pub struct Builder<'b, 'w> {
    writer: &'b mut ImportWriter<'w>,
    report: ImportReport,
    hosts: Vec<Host>,
    /// Hosts that stand for the unnamed one of a file.
    stand_ins: Vec<HostId>,
    processes: Vec<Process>,
    process_ids: FxHashMap<(HostId, u32), ProcessId>,
    threads: BTreeMap<(ProcessId, ThreadId), Thread>,
    devices: Vec<Device>,
    device_ids: FxHashMap<(HostId, u64), DeviceId>,
    contexts: BTreeMap<(ProcessId, ContextId), Context>,
    streams: BTreeMap<(ProcessId, ContextId, StreamId), Stream>,
    last_stream: Option<(ProcessId, ContextId, StreamId)>,
    clocks: Vec<Clock>,
    image_ids: FxHashMap<(ProcessId, StringId), ImageId>,
    skipped: BTreeMap<(HealthCause, String), u64>,
}

/// What an import did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// The formats that were read, in the order of the files.
    pub formats: Vec<&'static str>,
    /// Rows of events that were written.
    pub rows: u64,
    /// Things that have no place in the model, or could not be used.
    pub skipped: u64,
    /// Whether a file was cut off.
    pub cut: bool,
}

impl<'b, 'w> Builder<'b, 'w> {
    pub(crate) fn new(writer: &'b mut ImportWriter<'w>) -> Self {
        Builder {
            writer,
            report: ImportReport::default(),
            hosts: Vec::new(),
            stand_ins: Vec::new(),
            processes: Vec::new(),
            process_ids: FxHashMap::default(),
            threads: BTreeMap::new(),
            devices: Vec::new(),
            device_ids: FxHashMap::default(),
            contexts: BTreeMap::new(),
            streams: BTreeMap::new(),
            last_stream: None,
            clocks: Vec::new(),
            image_ids: FxHashMap::default(),
            skipped: BTreeMap::new(),
        }
    }

    pub(crate) fn begin_file(&mut self, importer: &Importer, input: &Input) -> Result<(), Error> {
        if self.report.formats.is_empty() {
            self.writer.metadata("import.format", importer.title)?;
            self.writer.metadata("import.file", input.name())?;
        }
        self.report.formats.push(importer.name);
        Ok(())
    }

    pub(crate) fn end_file(&mut self, input: &Input) -> Result<(), Error> {
        if input.is_cut() {
            self.cut("the packed file ends in its middle");
        }
        Ok(())
    }

    /// The files that were begun, the one that is being read included.
    pub fn files(&self) -> usize {
        self.report.formats.len()
    }

    /// States a fact about the recording.
    pub fn metadata(&mut self, key: &str, value: &str) -> Result<(), Error> {
        Ok(self.writer.metadata(key, value)?)
    }

    /// The number of a string.
    pub fn string(&mut self, text: &str) -> Result<StringId, Error> {
        Ok(self.writer.string(text)?)
    }

    /// The number of a frame.
    pub fn frame(&mut self, frame: Frame) -> Result<FrameId, Error> {
        Ok(self.writer.frame(frame)?)
    }

    /// The number of a stack, its frames given from the outermost inwards.
    pub fn stack(&mut self, frames: impl IntoIterator<Item = FrameId>) -> Result<StackId, Error> {
        Ok(self.writer.stack_of(frames)?)
    }

    /// The number of the stack that `frame` makes when called from `parent`.
    pub fn stack_child(&mut self, parent: StackId, frame: FrameId) -> Result<StackId, Error> {
        Ok(self.writer.stack(Stack {
            parent,
            frame,
            ..Stack::default()
        })?)
    }

    /// Adds an event whose times are of `clock`.
    #[inline]
    pub fn push<T: Writable>(&mut self, clock: ClockId, row: &T) -> Result<(), Error> {
        self.report.rows += 1;
        Ok(self.writer.push(clock, row)?)
    }

    /// Adds a row that is no event: an image, a symbol, a clock pair.
    pub fn define<T: Writable>(&mut self, row: &T) -> Result<(), Error> {
        Ok(self.writer.define(row)?)
    }

    /// The clock of this kind and name.
    pub fn clock(&mut self, kind: ClockKind, name: &str) -> Result<ClockId, Error> {
        self.clock_of(HostId::NONE, kind, name)
    }

    /// The clock of this kind and name on a machine.
    pub fn clock_of(&mut self, host: HostId, kind: ClockKind, name: &str) -> Result<ClockId, Error> {
        let name = self.string(name)?;
        let is_meant = |clock: &&Clock| (clock.host, clock.kind, clock.name) == (host, kind, name);
        if let Some(clock) = self.clocks.iter().find(is_meant) {
            return Ok(clock.id);
        }
        let id = ClockId(self.clocks.len() as u32 + 1);
        self.clocks.push(Clock {
            id,
            kind,
            host,
            name,
            ..Clock::default()
        });
        Ok(id)
    }

    /// The program or library of this path in a process; where it was mapped is not known.
    pub fn image(&mut self, process: ProcessId, path: &str) -> Result<ImageId, Error> {
        let path = self.string(path)?;
        self.image_at(process, path)
    }

    /// The same, by a path that has its number; none for no path.
    pub fn image_at(&mut self, process: ProcessId, path: StringId) -> Result<ImageId, Error> {
        if path == StringId::NONE {
            return Ok(ImageId::NONE);
        }
        if let Some(id) = self.image_ids.get(&(process, path)) {
            return Ok(*id);
        }
        let id = ImageId(self.image_ids.len() as u32 + 1);
        self.image_ids.insert((process, path), id);
        self.define(&Image {
            id,
            process,
            path,
            ..Image::default()
        })?;
        Ok(id)
    }

    /// The host of this name; the empty name is the one host of a file that names none.
    pub fn host(&mut self, name: &str) -> Result<HostId, Error> {
        let name = self.string(name)?;
        if let Some(host) = self.hosts.iter().find(|host| host.name == name) {
            return Ok(host.id);
        }
        let id = HostId(self.hosts.len() as u32 + 1);
        self.hosts.push(Host {
            id,
            name,
            ..Host::default()
        });
        Ok(id)
    }

    /// The host of a file that may name its own later, as [`Builder::host`] does it.
    pub(crate) fn stand_in_host(&mut self, name: &str) -> Result<HostId, Error> {
        let host = self.host(name)?;
        self.stand_ins.push(host);
        Ok(host)
    }

    /// What is known of a host, to be added to.
    pub fn host_mut(&mut self, id: HostId) -> &mut Host {
        &mut self.hosts[id.0 as usize - 1]
    }

    /// The process with this pid.
    pub fn process(&mut self, host: HostId, pid: u32) -> ProcessId {
        let processes = &mut self.processes;
        *self.process_ids.entry((host, pid)).or_insert_with(|| {
            let id = ProcessId(processes.len() as u32 + 1);
            processes.push(Process {
                id,
                host,
                pid,
                ..Process::default()
            });
            id
        })
    }

    /// The process of a file that names none: that of the files read with it, or one whose pid may turn up in them.
    pub fn unnamed_process(&mut self, host: HostId) -> ProcessId {
        let known = self.processes.iter().find(|process| process.host == host);
        match known {
            Some(process) => process.id,
            None => self.process(host, 0),
        }
    }

    /// The process with this pid, which the one of a file that named none turns out to be.
    pub fn named_process(&mut self, host: HostId, pid: u32) -> ProcessId {
        if !self.process_ids.contains_key(&(host, pid))
            && let Some(id) = self.process_ids.remove(&(host, 0))
        {
            self.process_ids.insert((host, pid), id);
            self.process_mut(id).pid = pid;
            return id;
        }
        self.process(host, pid)
    }

    /// What is known of a process, to be added to.
    pub fn process_mut(&mut self, id: ProcessId) -> &mut Process {
        &mut self.processes[id.0 as usize - 1]
    }

    /// What is known of a thread, to be added to.
    pub fn thread_mut(&mut self, process: ProcessId, thread: ThreadId) -> &mut Thread {
        self.threads.entry((process, thread)).or_insert_with(|| Thread {
            process,
            thread,
            ..Thread::default()
        })
    }

    /// The device that a host counts as `number`.
    pub fn device(&mut self, host: HostId, number: u64) -> DeviceId {
        let devices = &mut self.devices;
        *self.device_ids.entry((host, number)).or_insert_with(|| {
            let id = DeviceId(devices.len() as u32 + 1);
            devices.push(Device {
                id,
                host,
                ordinal: u32::try_from(number).unwrap_or(u32::MAX),
                ..Device::default()
            });
            id
        })
    }

    /// What is known of a device, to be added to.
    pub fn device_mut(&mut self, id: DeviceId) -> &mut Device {
        &mut self.devices[id.0 as usize - 1]
    }

    /// Notes that device work ran here, so that its context and stream are listed.
    #[inline]
    pub fn seen_at(&mut self, place: &Place) {
        let key = (place.process, place.context, place.stream);
        if self.last_stream != Some(key) {
            self.last_stream = Some(key);
            self.stream_mut(place);
            self.context_mut(place);
        }
    }

    /// What is known of a place's stream, to be added to.
    pub fn stream_mut(&mut self, place: &Place) -> &mut Stream {
        let key = (place.process, place.context, place.stream);
        self.streams.entry(key).or_insert_with(|| Stream {
            process: place.process,
            context: place.context,
            stream: place.stream,
            device: place.device,
            ..Stream::default()
        })
    }

    /// What is known of a place's context, to be added to.
    pub fn context_mut(&mut self, place: &Place) -> &mut Context {
        let key = (place.process, place.context);
        self.contexts.entry(key).or_insert_with(|| Context {
            process: place.process,
            context: place.context,
            device: place.device,
            ..Context::default()
        })
    }

    /// Counts something that has no place in the model or cannot be used, by what it is.
    pub fn skip(&mut self, what: &str, count: u64) {
        self.doubt(HealthCause::NOT_IMPORTED, what, count);
        self.report.skipped += count;
    }

    /// Notes that the file is not whole.
    pub fn cut(&mut self, what: &str) {
        self.report.cut = true;
        self.doubt(HealthCause::CUT, what, 1);
    }

    /// Notes anything else that is lost or doubtful.
    pub fn doubt(&mut self, cause: HealthCause, what: &str, count: u64) {
        if count == 0 {
            return;
        }
        if let Some(known) = self.skipped.get_mut(&(cause, what.to_owned())) {
            *known = known.saturating_add(count);
            return;
        }
        let what = if self.skipped.len() < SKIPPED_KINDS {
            what
        } else {
            "other"
        };
        *self.skipped.entry((cause, what.to_owned())).or_default() += count;
    }

    /// A file that names its host does not use the one that stands for a host without a name.
    fn drop_unused_hosts(&mut self) {
        if self.hosts.len() < 2 {
            return;
        }
        let used = |id: HostId| {
            self.processes.iter().any(|process| process.host == id)
                || self.devices.iter().any(|device| device.host == id)
                || self.clocks.iter().any(|clock| clock.host == id)
        };
        let stand_ins = &self.stand_ins;
        let kept = self
            .hosts
            .iter()
            .filter(|host| used(host.id) || !stand_ins.contains(&host.id));
        self.hosts = kept.cloned().collect();
    }

    pub(crate) fn finish(mut self) -> Result<ImportReport, Error> {
        self.drop_unused_hosts();
        // One host needs no name. Among several, the first is told from those of the other files.
        if self.hosts.len() > 1 {
            let name = self.string("host of file 1")?;
            let nameless = self.hosts.iter_mut().filter(|host| !host.name.is_some());
            nameless.for_each(|host| host.name = name);
        }
        for row in std::mem::take(&mut self.hosts) {
            self.writer.define(&row)?;
        }
        for row in std::mem::take(&mut self.processes) {
            self.writer.define(&row)?;
        }
        for row in std::mem::take(&mut self.threads).into_values() {
            self.writer.define(&row)?;
        }
        for row in std::mem::take(&mut self.devices) {
            self.writer.define(&row)?;
        }
        for row in std::mem::take(&mut self.contexts).into_values() {
            self.writer.define(&row)?;
        }
        for row in std::mem::take(&mut self.streams).into_values() {
            self.writer.define(&row)?;
        }
        for row in std::mem::take(&mut self.clocks) {
            self.writer.define(&row)?;
        }
        for ((cause, what), count) in std::mem::take(&mut self.skipped) {
            let detail = self.writer.string(&what)?;
            self.writer.define(&Health {
                time: Timestamp::NONE,
                cause,
                count,
                detail,
                ..Health::default()
            })?;
        }
        Ok(self.report)
    }
}

impl std::fmt::Debug for Builder<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}
