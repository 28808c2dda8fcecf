//! Tracks: their names, order and parents, written as descriptors the first time that something is put on them.
//!
//! Streams stand below their GPU, threads, free ranges and memory below their process, ranges below their thread. Lanes of
//! one track, which hold what overlaps, have the same name: Perfetto shows them as one.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{MemoryKind, Process, Stream, StreamKind};
use tracesmith_format::{DeviceId, ProcessId, StringId, ThreadId};
use tracesmith_trace::Trace;
use tracesmith_trace::units::name_or_unknown;

use super::item::{CounterKey, StreamKey, StreamRole, TrackKey};
use crate::perfetto::schema::{counter, descriptor, packet, process, thread, trace as file};
use crate::perfetto::wire::{put_bytes, put_message, put_number};
use crate::perfetto::words::{DERIVED, PLACE};

/// Pids end here on Linux; a pid that two hosts have both used is shown above.
const PID_LIMIT: u64 = 1 << 22;
/// Order of tracks below a GPU: streams that are listed, streams that are not by number, syncs of none, then counters.
const UNLISTED_RANK: u64 = 1 << 20;
const OTHER_SYNCS_RANK: u64 = 1 << 22;
const COUNTER_RANK: u64 = 1 << 26;
/// A stream has so many ranks, for its roles.
const ROLES: u64 = 8;

/// Writes descriptors of tracks as they come into use.
pub(super) struct Tracks<'t> {
    trace: &'t Trace,
    /// Descriptors that are not yet in the file.
    pub(super) packets: Vec<u8>,
    next_uuid: u64,
    processes: FxHashMap<ProcessId, u64>,
    threads: FxHashMap<(ProcessId, ThreadId), u64>,
    devices: FxHashMap<DeviceId, u64>,
    pids: FxHashMap<ProcessId, u64>,
    counters: u64,
}

impl<'t> Tracks<'t> {
    pub(super) fn new(trace: &'t Trace) -> Self {
        Tracks {
            trace,
            packets: Vec::new(),
            // 1 is the sequence of everything that is no event.
            next_uuid: 2,
            processes: FxHashMap::default(),
            threads: FxHashMap::default(),
            devices: FxHashMap::default(),
            pids: shown_pids(&trace.processes),
            counters: 0,
        }
    }

    /// Forgets what was written: the next file begins.
    pub(super) fn clear(&mut self) {
        *self = Tracks::new(self.trace);
    }

    /// The pid that a process is shown with; 0 for none.
    pub(super) fn pid(&self, id: ProcessId) -> u64 {
        self.pids.get(&id).copied().unwrap_or(0)
    }

    /// A new lane of a track, counted from 0. The number is also that of the packet sequence that it is written on.
    pub(super) fn add_lane(&mut self, key: &TrackKey, lane: usize) -> u64 {
        match key {
            TrackKey::Thread(process, thread) if lane == 0 => self.thread(*process, *thread),
            TrackKey::Thread(process, thread) => {
                let parent = self.thread(*process, *thread);
                self.add(Some(parent), "overlapping", |_| {})
            }
            TrackKey::Ranges(process, thread, domain) => {
                let parent = self.thread(*process, *thread);
                let name = self.ranges_name("NVTX", *domain);
                self.add(Some(parent), &name, |_| {})
            }
            TrackKey::FreeRanges(process, domain) => {
                let parent = self.process(*process);
                let name = self.ranges_name("NVTX free ranges", *domain);
                self.add(parent, &name, |_| {})
            }
            TrackKey::Allocations(process) => {
                let parent = self.process(*process);
                self.add(parent, "Allocations", |_| {})
            }
            TrackKey::Memory(process, device, kind) => self.memory(*process, *device, *kind),
            TrackKey::Stream(_, StreamRole::Stages) => self.number(),
            TrackKey::Stream(key, role) => self.stream(key, *role),
            TrackKey::Counter(key) => self.counter(key),
        }
    }

    /// A stream's name, as far as it takes to tell it from the others of its GPU.
    pub(super) fn stream_name(&self, key: &StreamKey) -> String {
        let mut name = format!("Stream {}", key.stream.0);
        if let Some(stream) = self.listed(key) {
            match stream.kind {
                _ if stream.name.is_some() => name += &format!(" {}", self.trace.string(stream.name)),
                StreamKind::LEGACY_DEFAULT => name += " (default)",
                StreamKind::PER_THREAD_DEFAULT => name += " (thread's default)",
                _ => {}
            }
        }
        name + &self.owner_of_stream(key)
    }

    /// Whose a stream is, where its GPU has streams of several processes or contexts.
    fn owner_of_stream(&self, key: &StreamKey) -> String {
        let streams = || {
            let streams = self.trace.streams.iter();
            streams.filter(|stream| stream.device == key.device)
        };
        let mut owner = String::new();
        // Streams that are not listed could be of any process.
        let is_shared = streams().any(|stream| stream.process != key.process);
        if is_shared || self.listed(key).is_none() && self.trace.processes.len() > 1 {
            owner += &format!(" of {}", self.pid(key.process));
        }
        if streams().any(|stream| stream.process == key.process && stream.context != key.context) {
            owner += &format!(", context {}", key.context.0);
        }
        owner
    }

    fn listed(&self, key: &StreamKey) -> Option<&'t Stream> {
        self.trace
            .streams
            .iter()
            .find(|stream| stream_key(stream) == *key)
    }

    /// The name of a track of ranges.
    fn ranges_name(&self, what: &str, domain: StringId) -> String {
        match self.trace.string(domain) {
            "" => what.to_owned(),
            domain => format!("{what} ({domain})"),
        }
    }

    /// A GPU's name.
    pub(super) fn device_name(&self, id: DeviceId) -> String {
        let Some(device) = self.trace.device(id) else {
            return "GPU".to_owned();
        };
        let mut name = format!("GPU {}", device.ordinal);
        if device.name.is_some() {
            name += &format!(" {}", self.trace.string(device.name));
        }
        if self.trace.hosts.len() > 1
            && let Some(host) = self.trace.host(device.host)
        {
            name += &format!(" on {}", self.trace.string(host.name));
        }
        name
    }

    fn stream(&mut self, key: &StreamKey, role: StreamRole) -> u64 {
        let parent = self.device(key.device);
        let name = match role {
            StreamRole::Work | StreamRole::Stages => self.stream_name(key),
            StreamRole::Graphs => self.stream_name(key) + " graphs",
            StreamRole::Collectives => self.stream_name(key) + " collectives",
            StreamRole::Syncs => self.stream_name(key) + " syncs",
            StreamRole::OtherSyncs => "Syncs of no stream".to_owned() + &self.owner_of_stream(key),
        };
        let mut listed: Vec<StreamKey> = self.trace.streams.iter().map(stream_key).collect();
        listed.sort_unstable();
        let rank = match (role, listed.binary_search(key)) {
            (StreamRole::OtherSyncs, _) => OTHER_SYNCS_RANK,
            (_, Ok(at)) => at as u64,
            (_, Err(_)) => UNLISTED_RANK + key.stream.0.min(UNLISTED_RANK),
        };
        let device = self.trace.device(key.device);
        let description = format!(
            "{PLACE} gpu {} pid {} context {} stream {}",
            device.map_or(0, |device| device.ordinal),
            self.pid(key.process),
            key.context.0,
            key.stream.0
        );
        self.add(Some(parent), &name, |out| {
            put_number(out, descriptor::ORDER_RANK, rank * ROLES + role as u64);
            put_bytes(out, descriptor::DESCRIPTION, description.as_bytes());
        })
    }

    fn device(&mut self, id: DeviceId) -> u64 {
        if let Some(uuid) = self.devices.get(&id) {
            return *uuid;
        }
        let name = self.device_name(id);
        let ordinal = self.trace.device(id).map_or(0, |device| device.ordinal);
        let description = format!("{PLACE} gpu {ordinal}");
        let uuid = self.add(None, &name, |out| {
            put_bytes(out, descriptor::DESCRIPTION, description.as_bytes());
            put_number(out, descriptor::CHILD_ORDERING, descriptor::EXPLICIT);
            put_number(out, descriptor::ORDER_RANK, u64::from(id.0));
        });
        self.devices.insert(id, uuid);
        uuid
    }

    fn process(&mut self, id: ProcessId) -> Option<u64> {
        if let Some(uuid) = self.processes.get(&id) {
            return Some(*uuid);
        }
        let known = self.trace.process(id)?;
        let pid = self.pid(id);
        let mut name = self.trace.string(known.name).to_owned();
        if let Some(rank) = known.rank.get() {
            name = format!("{name} rank {rank}").trim_start().to_owned();
        }
        let command = self.trace.string(known.command).to_owned();
        let uuid = self.number();
        self.put(|out| {
            put_number(out, descriptor::UUID, uuid);
            put_message(out, descriptor::PROCESS, |out| {
                put_number(out, process::PID, pid);
                for word in command.split_whitespace() {
                    put_bytes(out, process::COMMAND, word.as_bytes());
                }
                if !name.is_empty() {
                    put_bytes(out, process::NAME, name.as_bytes());
                }
            });
        });
        self.processes.insert(id, uuid);
        Some(uuid)
    }

    fn thread(&mut self, process: ProcessId, id: ThreadId) -> u64 {
        if let Some(uuid) = self.threads.get(&(process, id)) {
            return *uuid;
        }
        let threads = &self.trace.threads;
        let known = threads
            .iter()
            .find(|thread| (thread.process, thread.thread) == (process, id));
        let name = known
            .map_or("", |thread| self.trace.string(thread.name))
            .to_owned();
        let parent = self.process(process);
        let uuid = match parent {
            Some(parent) if id.is_some() => {
                let (uuid, pid) = (self.number(), self.pid(process));
                self.put(|out| {
                    put_number(out, descriptor::UUID, uuid);
                    put_number(out, descriptor::PARENT, parent);
                    put_message(out, descriptor::THREAD, |out| {
                        put_number(out, thread::PID, pid);
                        put_number(out, thread::TID, id.0);
                        if !name.is_empty() {
                            put_bytes(out, thread::NAME, name.as_bytes());
                        }
                    });
                });
                uuid
            }
            _ if id.is_some() => self.add(parent, format!("Thread {} {name}", id.0).trim_end(), |_| {}),
            _ => self.add(parent, "Host", |_| {}),
        };
        self.threads.insert((process, id), uuid);
        uuid
    }

    fn memory(&mut self, process: ProcessId, device: DeviceId, kind: MemoryKind) -> u64 {
        let parent = self.process(process);
        let mut name = format!("Live {} memory", name_or_unknown(kind.name()));
        if let Some(device) = self.trace.device(device) {
            name += &format!(" (GPU {})", device.ordinal);
        }
        self.add(parent, &name, |out| {
            put_bytes(out, descriptor::DESCRIPTION, DERIVED.as_bytes());
            put_message(out, descriptor::COUNTER, |out| {
                put_number(out, counter::UNIT, counter::UNIT_BYTES);
            });
        })
    }

    fn counter(&mut self, key: &CounterKey) -> u64 {
        let parent = if key.thread.is_some() {
            Some(self.thread(key.process, key.thread))
        } else if key.device.is_some() {
            Some(self.device(key.device))
        } else {
            self.process(key.process)
        };
        let mut name = self.trace.string(key.name).to_owned();
        if key.instance > 0 {
            name += &format!(" {}", key.instance);
        }
        let unit = self.trace.string(key.unit);
        self.counters += 1;
        let rank = COUNTER_RANK + self.counters;
        self.add(parent, &name, |out| {
            put_number(out, descriptor::ORDER_RANK, rank);
            // Samples of two counters of one name must not be drawn as one.
            put_number(out, descriptor::MERGE_BEHAVIOR, descriptor::NO_MERGING);
            put_message(out, descriptor::COUNTER, |out| match unit {
                "" => put_number(out, counter::UNIT, counter::UNIT_COUNT),
                "B" | "bytes" => put_number(out, counter::UNIT, counter::UNIT_BYTES),
                "ns" => put_number(out, counter::UNIT, counter::UNIT_TIME_NS),
                other => put_bytes(out, counter::UNIT_NAME, other.as_bytes()),
            });
        })
    }

    fn number(&mut self) -> u64 {
        self.next_uuid += 1;
        self.next_uuid - 1
    }

    /// Adds a track with a name; `more` adds what else is known of it.
    fn add(&mut self, parent: Option<u64>, name: &str, more: impl FnOnce(&mut Vec<u8>)) -> u64 {
        let uuid = self.number();
        self.put(|out| {
            put_number(out, descriptor::UUID, uuid);
            if let Some(parent) = parent {
                put_number(out, descriptor::PARENT, parent);
            }
            put_bytes(out, descriptor::NAME, name.as_bytes());
            more(out);
        });
        uuid
    }

    fn put(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        put_message(&mut self.packets, file::PACKET, |out| {
            put_number(out, packet::SEQUENCE_ID, 1);
            put_message(out, packet::TRACK_DESCRIPTOR, fill);
        });
    }
}

fn stream_key(stream: &Stream) -> StreamKey {
    StreamKey {
        device: stream.device,
        process: stream.process,
        context: stream.context,
        stream: stream.stream,
    }
}

/// Pids as they are shown: Perfetto knows one process by one pid, while a trace may hold several, from several hosts.
fn shown_pids(processes: &[Process]) -> FxHashMap<ProcessId, u64> {
    let mut taken = BTreeSet::new();
    let mut pids = FxHashMap::default();
    for process in processes {
        let mut pid = u64::from(process.pid).min(i32::MAX as u64);
        while pid == 0 || !taken.insert(pid) {
            pid = (pid + PID_LIMIT) % (i32::MAX as u64);
        }
        pids.insert(process.id, pid);
    }
    pids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_share_a_pid_are_told_apart() {
        let process = |id, pid| Process {
            id: ProcessId(id),
            pid,
            ..Process::default()
        };
        let pids = shown_pids(&[process(1, 7), process(2, 7), process(3, 0), process(4, u32::MAX)]);
        let mut shown: Vec<u64> = (1..=4).map(|id| pids[&ProcessId(id)]).collect();
        assert_eq!(shown[0], 7);
        shown.sort_unstable();
        shown.dedup();
        assert_eq!(shown.len(), 4);
        assert!(shown.iter().all(|pid| (1..=i32::MAX as u64).contains(pid)));
    }
}
