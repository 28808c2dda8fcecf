//! What one export says of itself, and the way from its numbers to ours.
//!
//! An export names everything by numbers: texts by an id, threads by one number that packs machine, process and thread,
//! kinds by codes that a table of the export may spell out. A session resolves them, counts what cannot be used, and is
//! the only place that knows how times are shifted.

use rustc_hash::{FxHashMap, FxHashSet};
use tracesmith_format::tables::*;
use tracesmith_format::{
    ClockId, ContextId, CorrelationId, DeviceId, HostId, ProcessId, StackId, StreamId, StringId, ThreadId,
    Timestamp,
};

use crate::error::Error;
use crate::import::Builder;
use crate::import::doubts::Doubts;
use crate::import::sqlite::Database;

/// Stream and event numbers that mean none.
pub(super) const NO_NUMBER: i64 = 0xffff_ffff;
/// Times before the session's start that are believed: an export may begin with calls that were under way. A day.
const EARLIEST: i64 = -86_400_000_000_000;
/// Shifted times begin at a full step of this, for people.
const SHIFT_STEP: i64 = 1_000_000;
/// The fact that tells by how much times were shifted.
pub(crate) const TIME_SHIFT: &str = "import.time_shift_nanos";

/// The state of reading one export.
pub(super) struct Session<'d> {
    pub(super) db: &'d Database,
    pub(super) clock: ClockId,
    /// Nanoseconds from the trace's zero to the session's start.
    pub(super) shift: i64,
    names: FxHashMap<i64, Name>,
    hosts: FxHashMap<i64, HostId>,
    processes: FxHashMap<i64, ProcessId>,
    threads: FxHashSet<i64>,
    /// The GPU behind a process's own number of a device.
    gpus: FxHashMap<(u32, i64), i64>,
    last_place: Option<(PlaceKey, Place)>,
    pub(super) cuda_stacks: FxHashMap<i64, StackId>,
    pub(super) doubts: Doubts,
}

/// What rows say of where they belong.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct PlaceKey {
    pub(super) process: Option<i64>,
    pub(super) device: Option<i64>,
    pub(super) context: Option<i64>,
    pub(super) stream: Option<i64>,
}

/// A text of the export: taken into the trace when it is first used.
struct Name {
    text: Box<str>,
    id: Option<StringId>,
}

impl<'d> Session<'d> {
    /// Begins with what is needed before any event: texts, the time shift, the machines' names.
    pub(super) fn new(
        db: &'d Database,
        file: &str,
        time_columns: &[(&str, &str)],
        builder: &mut Builder<'_, '_>,
    ) -> Result<Self, Error> {
        let clock = builder.clock(ClockKind::RECORDING, &format!("nsys session of {file}"))?;
        let shift = shift_of(db, time_columns);
        if shift != 0 {
            builder.metadata(TIME_SHIFT, &shift.to_string())?;
        }
        Ok(Session {
            db,
            clock,
            shift,
            names: names_of(db, builder)?,
            hosts: FxHashMap::default(),
            processes: FxHashMap::default(),
            threads: FxHashSet::default(),
            gpus: gpus_of(db, builder)?,
            last_place: None,
            cuda_stacks: FxHashMap::default(),
            doubts: Doubts::default(),
        })
    }

    /// A moment; none when the export has none, which is counted.
    #[inline]
    pub(super) fn time(&mut self, time: Option<i64>) -> Timestamp {
        let time = self.optional_time(time);
        if time == Timestamp::NONE {
            self.doubts.missing_times += 1;
        }
        time
    }

    /// A moment that may well be missing.
    #[inline]
    pub(super) fn optional_time(&self, time: Option<i64>) -> Timestamp {
        time.and_then(|time| u64::try_from(time.checked_add(self.shift)?).ok())
            .map_or(Timestamp::NONE, Timestamp)
    }

    /// Start and end. One that ends before it starts keeps its start, and is counted.
    #[inline]
    pub(super) fn span(&mut self, start: Option<i64>, end: Option<i64>) -> (Timestamp, Timestamp) {
        let (start, end) = (self.time(start), self.time(end));
        self.doubts.forwards(start, end)
    }

    /// The same for what may have no end.
    pub(super) fn open_span(&mut self, start: Option<i64>, end: Option<i64>) -> (Timestamp, Timestamp) {
        let (start, end) = (self.time(start), self.optional_time(end));
        self.doubts.forwards(start, end)
    }

    /// A number that counts something; what does not fit is counted and reads as 0.
    #[inline]
    pub(super) fn number<T: TryFrom<i64> + Default>(&mut self, value: Option<i64>) -> T {
        self.doubts.number(value)
    }

    /// A correlation.
    #[inline]
    pub(super) fn correlation(&mut self, value: Option<i64>) -> CorrelationId {
        CorrelationId(self.number(value))
    }

    /// The text with this number.
    pub(super) fn name(&mut self, id: Option<i64>, builder: &mut Builder<'_, '_>) -> Result<StringId, Error> {
        let Some(id) = id else {
            return Ok(StringId::NONE);
        };
        let Some(name) = self.names.get_mut(&id) else {
            self.doubts.unknown_names += 1;
            return Ok(StringId::NONE);
        };
        match name.id {
            Some(id) => Ok(id),
            None => {
                let id = builder.string(&name.text)?;
                name.id = Some(id);
                Ok(id)
            }
        }
    }

    /// The text with this number, which does not get into the trace by this.
    pub(super) fn text(&self, id: Option<i64>) -> Option<&str> {
        Some(&self.names.get(&id?)?.text)
    }

    /// The machine that a packed number names. The numbers of all processes of an export share their upper bits when it
    /// was made on one machine.
    pub(super) fn host(&mut self, global: i64, builder: &mut Builder<'_, '_>) -> Result<HostId, Error> {
        let machine = machine_of(global);
        if let Some(host) = self.hosts.get(&machine) {
            return Ok(*host);
        }
        let name = match self.hosts.is_empty() {
            true => String::new(),
            false => format!("machine {machine}"),
        };
        self.name_host(machine, &name, builder)
    }

    /// States the name of a machine before anything happens on it.
    pub(super) fn name_host(
        &mut self,
        machine: i64,
        name: &str,
        builder: &mut Builder<'_, '_>,
    ) -> Result<HostId, Error> {
        let host = builder.host(name)?;
        self.hosts.insert(machine, host);
        Ok(host)
    }

    /// The process that a packed number names.
    #[inline]
    pub(super) fn process(
        &mut self,
        global: Option<i64>,
        builder: &mut Builder<'_, '_>,
    ) -> Result<ProcessId, Error> {
        let global = global.unwrap_or(0) & !0xff_ffff;
        if let Some(process) = self.processes.get(&global) {
            return Ok(*process);
        }
        let host = self.host(global, builder)?;
        let process = builder.process(host, pid_of(global));
        self.processes.insert(global, process);
        Ok(process)
    }

    /// The process that a packed number names, if anything was recorded of it.
    pub(super) fn known_process(&self, global: Option<i64>) -> Option<ProcessId> {
        self.processes.get(&(global? & !0xff_ffff)).copied()
    }

    /// The thread that a packed number names.
    #[inline]
    pub(super) fn caller(
        &mut self,
        global: Option<i64>,
        builder: &mut Builder<'_, '_>,
    ) -> Result<Caller, Error> {
        let process = self.process(global, builder)?;
        let global = global.unwrap_or(0);
        let thread = ThreadId((global & 0xff_ffff).unsigned_abs());
        if self.threads.insert(global) {
            builder.thread_mut(process, thread);
        }
        Ok(Caller { process, thread })
    }

    /// Where device work ran; its context and stream are listed.
    #[inline]
    pub(super) fn place(&mut self, key: PlaceKey, builder: &mut Builder<'_, '_>) -> Result<Place, Error> {
        if let Some((last, place)) = &self.last_place
            && *last == key
        {
            return Ok(*place);
        }
        let process = self.process(key.process, builder)?;
        let place = Place {
            process,
            device: self.device(key.process, key.device, builder)?,
            context: ContextId(self.number(key.context)),
            stream: StreamId(self.number(key.stream.filter(|stream| *stream != NO_NUMBER))),
            ..Place::default()
        };
        if key.stream != Some(NO_NUMBER) {
            builder.seen_at(&place);
        }
        self.last_place = Some((key, place));
        Ok(place)
    }

    /// The device that a process counts so.
    pub(super) fn device(
        &mut self,
        process: Option<i64>,
        device: Option<i64>,
        builder: &mut Builder<'_, '_>,
    ) -> Result<DeviceId, Error> {
        let Some(device) = device.filter(|device| *device != NO_NUMBER) else {
            return Ok(DeviceId::NONE);
        };
        let global = process.unwrap_or(0);
        let gpu = *self.gpus.get(&(pid_of(global), device)).unwrap_or(&device);
        let Ok(gpu) = u64::try_from(gpu) else {
            self.doubts.out_of_range += 1;
            return Ok(DeviceId::NONE);
        };
        let host = self.host(global, builder)?;
        Ok(builder.device(host, gpu))
    }

    /// Writes the counts of what could not be used into the trace.
    pub(super) fn note_doubts(&mut self, builder: &mut Builder<'_, '_>) {
        std::mem::take(&mut self.doubts).note(builder);
    }
}

/// The machine's part of a packed number.
pub(super) fn machine_of(global: i64) -> i64 {
    (global >> 48) & 0xffff
}

/// The process's part of a packed number.
pub(super) fn pid_of(global: i64) -> u32 {
    ((global >> 24) & 0xff_ffff) as u32
}

/// How far times must be moved so that none is 0, which means unknown, or less.
fn shift_of(db: &Database, time_columns: &[(&str, &str)]) -> i64 {
    let least = time_columns
        .iter()
        .filter_map(|(table, column)| db.least(table, column))
        .min();
    match least {
        Some(least) if (EARLIEST..=0).contains(&least) => (-least / SHIFT_STEP + 1) * SHIFT_STEP,
        _ => 0,
    }
}

fn names_of(db: &Database, builder: &mut Builder<'_, '_>) -> Result<FxHashMap<i64, Name>, Error> {
    let mut names = FxHashMap::default();
    if let Some(mut query) = db.query("StringIds") {
        let (id, value) = (query.column("id"), query.column("value"));
        db.read(&query, builder, |row, _| {
            if let (Some(id), Some(text)) = (row.integer(id), row.text(value)) {
                names.insert(
                    id,
                    Name {
                        text: text.into(),
                        id: None,
                    },
                );
            }
            Ok(())
        })?;
    }
    Ok(names)
}

fn gpus_of(db: &Database, builder: &mut Builder<'_, '_>) -> Result<FxHashMap<(u32, i64), i64>, Error> {
    let mut gpus = FxHashMap::default();
    if let Some(mut query) = db.query("TARGET_INFO_CUDA_DEVICE") {
        let (gpu, cuda, pid) = (query.column("gpuId"), query.column("cudaId"), query.column("pid"));
        db.read(&query, builder, |row, _| {
            let pid = row.integer(pid).and_then(|pid| u32::try_from(pid).ok());
            if let (Some(gpu), Some(cuda), Some(pid)) = (row.integer(gpu), row.integer(cuda), pid) {
                gpus.insert((pid, cuda), gpu);
            }
            Ok(())
        })?;
    }
    Ok(gpus)
}
