//! Whose an event is: from the pids and tids of a file to processes, threads, devices and streams.
//!
//! Kineto shows each GPU as a process whose pid is the device's number. Those become devices; the work on them belongs to
//! the process that asked for it. Names come as events of their own, often last, and are given out at the end.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use tracesmith_format::tables::Place;
use tracesmith_format::{DeviceId, HostId, Ordinal, ProcessId, StringId, ThreadId};

use crate::error::Error;
use crate::import::Builder;
use crate::import::json::number::{signed, unquoted};
use crate::import::json::text::text_of;

/// Numbers from here on are made up, for pids and tids that are texts.
const MADE_UP: i64 = 1 << 31;
/// What the builder knows the process by whose pid has not turned up yet.
const NOT_SEEN_YET: u32 = u32::MAX;

/// The processes, threads and streams of a file.
pub(super) struct Tracks {
    host: HostId,
    processes: FxHashMap<i64, ProcessId>,
    made_up: FxHashMap<Box<[u8]>, i64>,
    /// Stands for a process that did device work before anything of the host was seen.
    nameless: Option<ProcessId>,
    first: Option<ProcessId>,
    latest: Option<ProcessId>,
    launcher: Option<ProcessId>,
    has_several_launchers: bool,
    last_pid: (Vec<u8>, ProcessId),
    last_tid: (ProcessId, Vec<u8>, ThreadId),
    process_names: BTreeMap<i64, StringId>,
    thread_names: BTreeMap<(i64, i64), StringId>,
    device_pids: BTreeMap<i64, u64>,
    streams: BTreeMap<(i64, u64), Place>,
    last_place: Option<Place>,
}

/// What kind of event asks for its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asking {
    /// A call that can launch device work.
    Api,
    /// Other host work of PyTorch, where pid 0 and -1 mean that it is not known.
    Framework,
    /// Anything else.
    Other,
}

impl Tracks {
    pub(super) fn new(host: HostId) -> Self {
        Tracks {
            host,
            processes: FxHashMap::default(),
            made_up: FxHashMap::default(),
            nameless: None,
            first: None,
            latest: None,
            launcher: None,
            has_several_launchers: false,
            last_pid: (Vec::new(), ProcessId::NONE),
            last_tid: (ProcessId::NONE, Vec::new(), ThreadId::NONE),
            process_names: BTreeMap::new(),
            thread_names: BTreeMap::new(),
            device_pids: BTreeMap::new(),
            streams: BTreeMap::new(),
            last_place: None,
        }
    }

    /// The process of something that the host did.
    #[inline]
    pub(super) fn process(
        &mut self,
        builder: &mut Builder<'_, '_>,
        pid: &[u8],
        asking: Asking,
    ) -> Result<ProcessId, Error> {
        let known = self.last_pid.1;
        let process = if known != ProcessId::NONE && self.last_pid.0 == pid {
            known
        } else {
            let number = self.number(pid);
            if asking != Asking::Other && (number == 0 || number == -1) {
                return Ok(self.main(builder));
            }
            let process = self.numbered(builder, number);
            if Self::is_text(pid) && number >= MADE_UP {
                let name = builder.string(&text_of(pid))?;
                builder.process_mut(process).name = name;
            }
            self.last_pid.0.clear();
            self.last_pid.0.extend_from_slice(pid);
            self.last_pid.1 = process;
            process
        };
        self.latest = Some(process);
        if asking == Asking::Api && self.launcher != Some(process) {
            self.has_several_launchers |= self.launcher.is_some();
            self.launcher = Some(process);
        }
        Ok(process)
    }

    /// The process with this pid.
    pub(super) fn numbered(&mut self, builder: &mut Builder<'_, '_>, number: i64) -> ProcessId {
        if let Some(process) = self.processes.get(&number) {
            return *process;
        }
        // Negative numbers are those of 32 bits, printed with a sign.
        let pid = number as u32;
        let process = match self.nameless.take() {
            Some(process) => {
                builder.process_mut(process).pid = pid;
                process
            }
            None => builder.process(self.host, pid),
        };
        self.processes.insert(number, process);
        self.first.get_or_insert(process);
        process
    }

    /// The process that device work, and whatever names none, belongs to.
    #[inline]
    pub(super) fn main(&mut self, builder: &mut Builder<'_, '_>) -> ProcessId {
        if let Some(process) = self.launcher.or(self.latest).or(self.nameless) {
            return process;
        }
        let process = builder.process(self.host, NOT_SEEN_YET);
        builder.process_mut(process).pid = 0;
        self.nameless = Some(process);
        self.first = Some(process);
        process
    }

    /// Whether the owner of device work had to be guessed.
    pub(super) fn has_several_launchers(&self) -> bool {
        self.has_several_launchers
    }

    /// A thread of a process, which is listed.
    #[inline]
    pub(super) fn thread(
        &mut self,
        builder: &mut Builder<'_, '_>,
        process: ProcessId,
        tid: &[u8],
    ) -> Result<ThreadId, Error> {
        if self.last_tid.0 == process && self.last_tid.1 == tid {
            return Ok(self.last_tid.2);
        }
        let thread = ThreadId(self.number(tid).cast_unsigned());
        builder.thread_mut(process, thread);
        if Self::is_text(tid) && thread.0 >= MADE_UP.cast_unsigned() {
            let name = builder.string(&text_of(tid))?;
            builder.thread_mut(process, thread).name = name;
        }
        self.last_tid.0 = process;
        self.last_tid.1.clear();
        self.last_tid.1.extend_from_slice(tid);
        self.last_tid.2 = thread;
        Ok(thread)
    }

    /// The device that the file numbers so.
    #[inline]
    pub(super) fn device(&self, builder: &mut Builder<'_, '_>, number: u64) -> DeviceId {
        builder.device(self.host, number)
    }

    /// Lists the context and stream of device work, once for many rows of the same.
    #[inline]
    pub(super) fn seen_at(&mut self, builder: &mut Builder<'_, '_>, device: u64, place: &Place) {
        builder.seen_at(place);
        if self.last_place != Some(*place) {
            self.last_place = Some(*place);
            self.streams
                .insert((device.cast_signed(), place.stream.0), *place);
        }
    }

    /// The number of a pid or tid; one is made up for a text, 0 is that of none.
    fn number(&mut self, track: &[u8]) -> i64 {
        if let Some(number) = signed(track) {
            return number;
        }
        let text = unquoted(track);
        if text.is_empty() || text == b"null" {
            return 0;
        }
        let next = MADE_UP + self.made_up.len() as i64;
        *self.made_up.entry(text.into()).or_insert(next)
    }

    /// Whether a pid is a text, as Kineto's pseudo processes have it.
    pub(super) fn is_text(pid: &[u8]) -> bool {
        pid.first() == Some(&b'"') && signed(pid).is_none()
    }

    pub(super) fn name_process(&mut self, pid: &[u8], name: StringId) {
        let number = self.number(pid);
        self.process_names.insert(number, name);
    }

    pub(super) fn name_thread(
        &mut self,
        builder: &mut Builder<'_, '_>,
        pid: &[u8],
        tid: &[u8],
        name: &str,
    ) -> Result<(), Error> {
        let (pid, tid) = (self.number(pid), self.number(tid));
        let own = own_name(name, tid);
        if !own.is_empty() {
            let own = builder.string(own)?;
            self.thread_names.insert((pid, tid), own);
        }
        Ok(())
    }

    /// Notes that a pid is the device with this number.
    pub(super) fn label_device(&mut self, pid: &[u8], device: u64) {
        let number = self.number(pid);
        self.device_pids.insert(number, device);
    }

    /// The device that a pid stands for; none for a process.
    pub(super) fn labeled_device(&mut self, builder: &mut Builder<'_, '_>, pid: &[u8]) -> Option<DeviceId> {
        let number = self.number(pid);
        let label = *self.device_pids.get(&number)?;
        Some(builder.device(self.host, label))
    }

    /// Moves to the host that the file names. Nothing may have been read before.
    pub(super) fn set_host(&mut self, host: HostId) {
        self.host = host;
    }

    /// Says which part of a job the file's process is.
    pub(super) fn set_rank(&mut self, builder: &mut Builder<'_, '_>, rank: Option<u32>, world_size: u32) {
        let main = self.main(builder);
        Self::rank(builder, main, rank, world_size);
    }

    /// Says which part of a job a process is.
    pub(super) fn rank(
        builder: &mut Builder<'_, '_>,
        process: ProcessId,
        rank: Option<u32>,
        world_size: u32,
    ) {
        let process = builder.process_mut(process);
        process.world_size = world_size;
        if let Some(rank) = rank {
            process.rank = Ordinal::new(rank);
        }
    }

    /// Gives out the names.
    pub(super) fn finish(&mut self, builder: &mut Builder<'_, '_>) {
        for (number, name) in &self.process_names {
            if let Some(process) = self.processes.get(number) {
                builder.process_mut(*process).name = *name;
            }
        }
        for ((pid, tid), name) in &self.thread_names {
            if let Some(place) = self.streams.get(&(*pid, tid.cast_unsigned())) {
                builder.stream_mut(place).name = *name;
            } else if let Some(process) = self
                .processes
                .get(pid)
                .filter(|_| !self.device_pids.contains_key(pid))
            {
                builder.thread_mut(*process, ThreadId(tid.cast_unsigned())).name = *name;
            }
        }
    }
}

/// What is a name of `thread 42 (python)` or `stream 7`: the part that is not said by the number.
fn own_name(name: &str, number: i64) -> &str {
    let name = name.trim();
    let is_number = |text: &str| text.parse() == Ok(number);
    if let Some(("thread", rest)) = name.split_once(' ') {
        let (thread, own) = rest.split_once(' ').unwrap_or((rest, "()"));
        if let (true, Some(own)) = (
            is_number(thread),
            own.strip_prefix('(').and_then(|own| own.strip_suffix(')')),
        ) {
            return own;
        }
    }
    match name.split_once(' ') {
        Some(("stream", stream)) if is_number(stream) => "",
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_what_the_number_says() {
        assert_eq!(own_name("thread 42 (pt_main_thread)", 42), "pt_main_thread");
        assert_eq!(own_name("thread 42", 42), "");
        assert_eq!(own_name("thread 41 (x)", 42), "thread 41 (x)");
        assert_eq!(own_name("stream 7 ", 7), "");
        assert_eq!(own_name("copy stream", 7), "copy stream");
    }
}
