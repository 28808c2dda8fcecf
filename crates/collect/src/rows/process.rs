//! The state of one process, and its own rows.

use rustc_hash::{FxHashMap, FxHashSet};
use tracesmith_format::{
    ClockId, ContextId, DeviceId, Ordinal, ProcessId, StreamId, StringId, ThreadId, Timestamp,
    tables::{self, Caller, ChannelKind, ClockKind, HealthCause, Place, ProcessEnd},
};
use tracesmith_wire::record as wire;

use super::{Definitions, TraceRows, launches::Launches, marker::OpenMarkers, stack::Code};
use crate::{end::End, health::Notice, host::HOST, identity::Identity, time};

/// Rows of one process.
pub(crate) struct ProcessRows {
    pub(super) id: ProcessId,
    /// CUPTI's clock in this process.
    pub(super) clock: ClockId,
    pub(super) identity: Identity,
    pub(super) row: tables::Process,
    pub(super) texts: FxHashMap<u32, Text>,
    pub(super) devices: FxHashMap<u32, DeviceId>,
    pub(super) contexts: FxHashMap<u32, tables::Context>,
    pub(super) streams: FxHashMap<(u32, u32), tables::Stream>,
    /// Modules that are loaded.
    pub(super) modules: FxHashMap<(u32, u32), tables::Module>,
    /// Hashes of recorded modules, by context and module ID.
    pub(super) hashes: FxHashMap<(u32, u32), (u64, u64)>,
    pub(super) markers: OpenMarkers,
    pub(super) code: Code,
    threads: FxHashSet<u32>,
    pub(super) launches: Launches,
    /// Waits in contexts that are not known yet.
    pub(super) awaiting: Vec<wire::Synchronization>,
    pub(super) driver: String,
    /// The latest time in a record, on the host clock.
    pub(super) last_time: u64,
    /// A window is open and the process has not disconnected, so records can still arrive.
    pub(super) in_window: bool,
    pub(super) was_in_window: bool,
    unknown_records: u64,
    unresolved: u64,
}

/// A string that the target defined.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Text {
    pub(super) string: StringId,
    /// The demangled name, if the string is a mangled name.
    pub(super) demangled: StringId,
}

impl ProcessRows {
    pub(super) fn begin(identity: &Identity, id: ProcessId, clock: ClockId, trace: &mut TraceRows) -> Self {
        let file = &mut trace.file;
        let row = tables::Process {
            id,
            host: HOST,
            pid: identity.pid,
            parent_pid: identity.parent,
            name: file.string(&identity.name),
            command: file.string(&identity.command),
            started: Timestamp(identity.started),
            rank: identity.ranks.rank.map(Ordinal::new).unwrap_or_default(),
            local_rank: identity.ranks.local_rank.map(Ordinal::new).unwrap_or_default(),
            world_size: identity.ranks.world_size.unwrap_or(0),
            end: ProcessEnd::RUNNING,
            ..tables::Process::default()
        };
        file.define(&row);
        if identity.own_pid != identity.pid {
            let key = format!("process.{}.own_pid", identity.pid);
            file.metadata(&key, &identity.own_pid.to_string());
        }
        trace.nameless.process(identity);
        let file = &mut trace.file;
        let clock_row = tables::Clock {
            id: clock,
            kind: ClockKind::ALIGNED,
            host: HOST,
            process: id,
            name: file.string(&format!("device clock of process {}", identity.pid)),
            resolution: 1,
            ..tables::Clock::default()
        };
        file.define(&clock_row);
        Self {
            id,
            clock,
            identity: identity.clone(),
            row,
            texts: FxHashMap::default(),
            devices: FxHashMap::default(),
            contexts: FxHashMap::default(),
            streams: FxHashMap::default(),
            modules: FxHashMap::default(),
            hashes: FxHashMap::default(),
            markers: OpenMarkers::default(),
            code: Code::default(),
            threads: FxHashSet::default(),
            launches: Launches::default(),
            awaiting: Vec::new(),
            driver: String::new(),
            last_time: 0,
            in_window: false,
            was_in_window: false,
            unknown_records: 0,
            unresolved: 0,
        }
    }

    /// The ID of the process in the trace.
    pub(crate) fn id(&self) -> ProcessId {
        self.id
    }

    /// Writes open ranges, how the process ended, and the number of invalid records.
    pub(crate) fn end(mut self, end: End, trace: &mut TraceRows) {
        let now = time::now();
        // A time in the future is invalid and must not extend open ranges.
        let last_time = if self.last_time == 0 {
            now
        } else {
            self.last_time.min(now)
        };
        self.end_markers(last_time, trace);
        self.end_syncs(trace);
        let mut modules: Vec<_> = self.modules.drain().collect();
        modules.sort_unstable_by_key(|(key, _)| *key);
        for (_, module) in modules {
            trace.push(super::HOST_CLOCK, &module);
        }
        let (code, number) = end.code();
        self.row.end = code;
        self.row.end_code = number;
        if !matches!(end, End::Running) {
            self.row.ended = Timestamp(now);
        }
        trace.file.define(&self.row);
        if self.unknown_records > 0 {
            let notice = Notice::new(
                HealthCause::UNKNOWN_RECORD,
                self.id,
                "invalid records were skipped",
            );
            trace.note(notice.with_count(self.unknown_records));
        }
        if self.unresolved > 0 {
            let words = "records refer to names, devices or stacks that were never defined";
            let notice = Notice::new(HealthCause::UNKNOWN_RECORD, self.id, words);
            trace.note(notice.with_count(self.unresolved));
        }
        if self.in_window && end != End::Running {
            let missing = self.launches.without_kernel();
            let words = match missing {
                0 => end.to_string(),
                1 => format!("{end}; 1 launch has no kernel row"),
                _ => format!("{end}; {missing} launches have no kernel row"),
            };
            let notice = Notice::new(HealthCause::PROCESS_DIED, self.id, &words);
            trace.note(notice.with_count(missing));
        }
    }

    #[cold]
    pub(super) fn count_unknown(&mut self) {
        self.unknown_records += 1;
    }

    /// The ID of a string. `None` if the caller should read definitions and try again. The empty string if the string
    /// does not exist.
    #[inline]
    pub(super) fn string(&mut self, text: u32, definitions: Definitions) -> Option<StringId> {
        Some(self.names(text, definitions)?.string)
    }

    /// Like [`ProcessRows::string`], with the demangled name.
    #[inline]
    pub(super) fn names(&mut self, text: u32, definitions: Definitions) -> Option<Text> {
        if text == 0 {
            return Some(Text::default());
        }
        match self.texts.get(&text) {
            Some(text) => Some(*text),
            None => self.unresolved(definitions),
        }
    }

    /// The device with this number in the process, as for [`ProcessRows::string`].
    #[inline]
    pub(super) fn device_id(&mut self, device: u32, definitions: Definitions) -> Option<DeviceId> {
        match self.devices.get(&device) {
            Some(id) => Some(*id),
            None => self.unresolved(definitions),
        }
    }

    /// The device of a context, for records that name no device.
    fn device_of_context(&self, context: u32) -> DeviceId {
        self.contexts
            .get(&context)
            .map(|context| context.device)
            .unwrap_or_default()
    }

    #[cold]
    pub(super) fn unresolved<T: Default>(&mut self, definitions: Definitions) -> Option<T> {
        match definitions {
            Definitions::MayCome => None,
            Definitions::Complete => {
                self.unresolved += 1;
                Some(T::default())
            }
        }
    }

    /// The clock of a record's times.
    #[inline]
    pub(super) fn clock_of(&self, clock: u8) -> ClockId {
        match clock {
            wire::HOST_CLOCK => super::HOST_CLOCK,
            _ => self.clock,
        }
    }

    /// The device, context and stream of an op.
    #[inline]
    pub(super) fn place(&mut self, work: OpLocation, definitions: Definitions) -> Option<Place> {
        Some(Place {
            process: self.id,
            device: match work.device {
                NO_DEVICE => self.device_of_context(work.context),
                device => self.device_id(device, definitions)?,
            },
            context: ContextId(work.context),
            stream: stream_id(work.stream),
            channel: work.channel,
            channel_kind: ChannelKind(work.channel_kind),
        })
    }

    /// The thread that made a call. A new thread gets a row.
    #[inline]
    pub(super) fn caller(&mut self, thread: u32, trace: &mut TraceRows) -> Caller {
        if thread != 0 && !self.threads.contains(&thread) {
            let name = self.identity.thread_name(thread);
            self.name_thread(thread, &name, trace);
        }
        Caller {
            process: self.id,
            thread: ThreadId(u64::from(thread)),
        }
    }

    #[cold]
    pub(super) fn name_thread(&mut self, thread: u32, name: &str, trace: &mut TraceRows) {
        self.threads.insert(thread);
        let row = tables::Thread {
            process: self.id,
            thread: ThreadId(u64::from(thread)),
            name: trace.file.string(name),
        };
        trace.file.define(&row);
    }

    /// Notes that the target was running at this time.
    #[inline]
    pub(super) fn saw(&mut self, time: u64) {
        self.last_time = self.last_time.max(time);
    }
}

/// The device number of a record that knows only its context.
const NO_DEVICE: u32 = u32::MAX;

/// The device, context and stream in a record.
#[derive(Clone, Copy, Default)]
pub(super) struct OpLocation {
    pub(super) device: u32,
    pub(super) context: u32,
    pub(super) stream: u32,
    pub(super) channel: u32,
    pub(super) channel_kind: u8,
}

/// A stream ID. The largest number means none.
#[inline]
fn stream_id(stream: u32) -> StreamId {
    if stream == u32::MAX {
        StreamId::NONE
    } else {
        StreamId(u64::from(stream))
    }
}
