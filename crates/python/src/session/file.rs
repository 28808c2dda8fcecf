//! The file of one process of a session.
//!
//! It is written block by block. If the process is killed, the file has everything up to the last flush.

use std::collections::BTreeSet;
use std::fs::{self, File};

use tracesmith_format::tables::*;
use tracesmith_format::{
    Bytes, ClockId, ContextId, DeviceId, HostId, Ordinal, StreamId, StringId, ThreadId, Timestamp, Writer,
    WriterOptions,
};

use super::clock;
use super::names::Names;
use super::row::{PROCESS, Row};

const HOST: HostId = HostId(1);
const MONOTONIC: ClockId = ClockId(1);
const REALTIME: ClockId = ClockId(2);
const UTC: ClockId = ClockId(3);

/// The kernel's limit for the error of a clock that nothing synchronizes (`NTP_PHASE_LIMIT`): 16 s. How well the time of
/// day is synchronized is not known here.
const UTC_UNCERTAINTY_NANOS: u64 = 16_000_000_000;

type Result<T> = std::result::Result<T, tracesmith_format::Error>;

/// An `.sbt` file that rows of a session are written to.
pub(super) struct SessionFile {
    writer: Writer<File>,
    /// The numbers of the session's texts in the file.
    texts: Vec<StringId>,
    devices: BTreeSet<DeviceId>,
    contexts: BTreeSet<(ContextId, DeviceId)>,
    streams: BTreeSet<(ContextId, StreamId)>,
    last_place: Place,
    threads: BTreeSet<ThreadId>,
    is_dirty: bool,
}

/// What was lost, by reason.
#[derive(Clone, Copy, Default)]
pub(super) struct Losses {
    /// Events that did not fit into memory.
    pub(super) full: u64,
    /// Counters that were turned off. They are not losses, but are stated.
    pub(super) counters_off: u64,
}

impl SessionFile {
    /// Starts a file: describes the host, the process and the clocks.
    pub(super) fn begin(file: File) -> Result<Self> {
        let options = WriterOptions {
            id: random_id(),
            ..WriterOptions::default()
        };
        let mut file = SessionFile {
            writer: Writer::new(file, options)?,
            texts: Vec::new(),
            devices: BTreeSet::new(),
            contexts: BTreeSet::new(),
            streams: BTreeSet::new(),
            last_place: Place::default(),
            threads: BTreeSet::new(),
            is_dirty: true,
        };
        file.writer.metadata(
            "recorder",
            concat!("tracesmith ", env!("CARGO_PKG_VERSION"), " (Python session)"),
        )?;
        file.define_host()?;
        file.define_process()?;
        file.define_clocks()?;
        file.write_clock_pair()?;
        file.flush()?;
        Ok(file)
    }

    fn define_host(&mut self) -> Result<()> {
        let uname = rustix::system::uname();
        let name = uname.nodename().to_string_lossy();
        let os = format!(
            "{} {}",
            uname.sysname().to_string_lossy(),
            uname.release().to_string_lossy()
        );
        let cpus = std::thread::available_parallelism().map_or(0, usize::from);
        let row = Host {
            id: HOST,
            name: self.writer.string(&name)?,
            os: self.writer.string(&os)?,
            cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
            memory: Bytes(0),
            machine_id: self.writer.string(&line_of("/etc/machine-id"))?,
            boot_id: self.writer.string(&line_of("/proc/sys/kernel/random/boot_id"))?,
            ..Host::default()
        };
        self.writer.define(&row)
    }

    fn define_process(&mut self) -> Result<()> {
        let command = fs::read("/proc/self/cmdline").unwrap_or_default();
        let command: Vec<_> = command
            .split(|byte| *byte == 0)
            .map(String::from_utf8_lossy)
            .collect();
        let command = command.join(" ");
        let number = |key: &str| std::env::var(key).ok()?.parse::<u32>().ok();
        let rank = |key| number(key).map_or(Ordinal::NONE, Ordinal::new);
        let pid = |pid: Option<rustix::process::Pid>| {
            pid.map_or(0, |pid| u32::try_from(pid.as_raw_nonzero().get()).unwrap_or(0))
        };
        let row = Process {
            id: PROCESS,
            host: HOST,
            pid: std::process::id(),
            parent_pid: pid(rustix::process::getppid()),
            name: self.writer.string(&line_of("/proc/self/comm"))?,
            command: self.writer.string(command.trim())?,
            rank: rank("RANK"),
            local_rank: rank("LOCAL_RANK"),
            world_size: number("WORLD_SIZE").unwrap_or(0),
            ..Process::default()
        };
        self.writer.define(&row)
    }

    fn define_clocks(&mut self) -> Result<()> {
        let clocks = [
            (MONOTONIC, ClockKind::MONOTONIC, HOST, "host monotonic"),
            (REALTIME, ClockKind::REALTIME, HOST, "host realtime"),
            (UTC, ClockKind::UTC, HostId::NONE, "UTC"),
        ];
        for (id, kind, host, name) in clocks {
            let name = self.writer.string(name)?;
            self.writer.define(&Clock {
                id,
                kind,
                host,
                name,
                resolution: 1,
                ..Clock::default()
            })?;
        }
        Ok(())
    }

    /// Two pairs with time between them show the drift of the clocks.
    fn write_clock_pair(&mut self) -> Result<()> {
        let pair = clock::pair();
        self.writer.define(&ClockPair {
            first: MONOTONIC,
            second: REALTIME,
            first_time: Timestamp(pair.monotonic),
            second_time: Timestamp(pair.realtime),
            uncertainty: pair.uncertainty,
        })?;
        self.writer.define(&ClockPair {
            first: REALTIME,
            second: UTC,
            first_time: Timestamp(pair.realtime),
            second_time: Timestamp(pair.realtime),
            uncertainty: UTC_UNCERTAINTY_NANOS,
        })
    }

    /// Names a thread once.
    pub(super) fn thread(&mut self, thread: ThreadId, name: &str) -> Result<()> {
        if !self.threads.insert(thread) {
            return Ok(());
        }
        let name = self.writer.string(name)?;
        self.writer.define(&Thread {
            process: PROCESS,
            thread,
            name,
        })
    }

    /// States a fact about the recording.
    pub(super) fn metadata(&mut self, key: &str, value: &str) -> Result<()> {
        self.is_dirty = true;
        self.writer.metadata(key, value)
    }

    /// Writes rows whose texts are those of the session.
    pub(super) fn write(&mut self, rows: Vec<Row>, names: &Names) -> Result<()> {
        for text in names.after(self.texts.len()) {
            self.texts.push(self.writer.string(&text)?);
        }
        self.is_dirty |= !rows.is_empty();
        for row in rows {
            self.write_row(row)?;
        }
        Ok(())
    }

    fn write_row(&mut self, row: Row) -> Result<()> {
        let texts = &self.texts;
        let text = |id: &mut StringId| {
            if id.is_some() {
                *id = texts[id.0 as usize - 1];
            }
        };
        match row {
            Row::Marker(mut row) => {
                let shape = &mut row.shape;
                [
                    &mut shape.name,
                    &mut shape.domain,
                    &mut shape.category_name,
                    &mut row.detail,
                ]
                .into_iter()
                .for_each(text);
                self.writer.push(MONOTONIC, &row)
            }
            Row::Counter(mut row) => {
                [&mut row.track.name, &mut row.track.unit]
                    .into_iter()
                    .for_each(text);
                self.seen_device(row.track.device)?;
                self.writer.push(MONOTONIC, &row)
            }
            Row::Flow(mut row) => {
                text(&mut row.shape.name);
                self.seen_device(row.shape.device)?;
                self.writer.push(MONOTONIC, &row)
            }
            Row::Kernel(mut row) => {
                [&mut row.shape.name, &mut row.shape.demangled]
                    .into_iter()
                    .for_each(text);
                self.seen_at(&row.place)?;
                self.writer.push(MONOTONIC, &*row)
            }
            Row::Copy(row) => {
                self.seen_at(&row.place)?;
                self.seen_device(row.shape.source_device)?;
                self.seen_device(row.shape.destination_device)?;
                self.writer.push(MONOTONIC, &*row)
            }
            Row::Set(row) => {
                self.seen_at(&row.place)?;
                self.writer.push(MONOTONIC, &*row)
            }
            Row::Sync(row) => {
                self.seen_at(&row.place)?;
                self.writer.push(MONOTONIC, &*row)
            }
            Row::Allocation(mut row) => {
                let shape = &mut row.shape;
                [&mut shape.allocator, &mut shape.category, &mut shape.name]
                    .into_iter()
                    .for_each(text);
                self.seen_at(&row.place)?;
                self.writer.push(MONOTONIC, &*row)
            }
            Row::ApiCall(mut row) => {
                text(&mut row.shape.name);
                self.writer.push(MONOTONIC, &row)
            }
            Row::HostCall(mut row) => {
                [&mut row.shape.name, &mut row.shape.category, &mut row.detail]
                    .into_iter()
                    .for_each(text);
                self.writer.push(MONOTONIC, &*row)
            }
            Row::Collective(mut row) => {
                let shape = &mut row.shape;
                [
                    &mut shape.name,
                    &mut shape.communicator_name,
                    &mut shape.datatype,
                    &mut shape.reduction,
                    &mut shape.algorithm,
                    &mut shape.protocol,
                ]
                .into_iter()
                .for_each(text);
                self.seen_at(&row.place)?;
                self.writer.push(MONOTONIC, &*row)
            }
        }
    }

    /// Defines the device, context and stream of a row when they turn up.
    fn seen_at(&mut self, place: &Place) -> Result<()> {
        if *place == self.last_place {
            return Ok(());
        }
        self.last_place = *place;
        self.seen_device(place.device)?;
        if !place.device.is_some() {
            return Ok(());
        }
        if self.contexts.insert((place.context, place.device)) {
            self.writer.define(&Context {
                process: PROCESS,
                context: place.context,
                device: place.device,
                ..Context::default()
            })?;
        }
        if self.streams.insert((place.context, place.stream)) {
            self.writer.define(&Stream {
                process: PROCESS,
                context: place.context,
                stream: place.stream,
                device: place.device,
                ..Stream::default()
            })?;
        }
        Ok(())
    }

    fn seen_device(&mut self, device: DeviceId) -> Result<()> {
        if !device.is_some() || !self.devices.insert(device) {
            return Ok(());
        }
        self.writer.define(&Device {
            id: device,
            host: HOST,
            ordinal: device.0 - 1,
            ..Device::default()
        })
    }

    /// Writes everything so far.
    pub(super) fn flush(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_dirty) {
            self.writer.flush()?;
        }
        Ok(())
    }

    /// Completes the file.
    pub(super) fn finish(mut self, losses: Losses) -> Result<()> {
        self.write_clock_pair()?;
        if losses.counters_off > 0 {
            self.writer
                .metadata("session.counters_off", &losses.counters_off.to_string())?;
        }
        if losses.full > 0 {
            let detail = self.writer.string("the session's memory was full")?;
            self.writer.define(&Health {
                time: Timestamp(clock::now()),
                cause: HealthCause::RING_FULL,
                process: PROCESS,
                count: losses.full,
                detail,
                ..Health::default()
            })?;
        }
        self.writer.seal()?;
        Ok(())
    }
}

/// Tells the file from others. The system's random numbers are not worth a dependency: no two sessions share all of this.
fn random_id() -> [u8; 16] {
    let pair = clock::pair();
    let high = pair.realtime ^ (u64::from(std::process::id()) << 40);
    let mut id = [0; 16];
    id[..8].copy_from_slice(&high.to_le_bytes());
    id[8..].copy_from_slice(&pair.monotonic.to_le_bytes());
    id
}

/// The contents of a one-line file. Empty if it cannot be read.
fn line_of(path: &str) -> String {
    fs::read_to_string(path)
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}
