//! Tracks of threads, streams and memory in trace-event JSON: their names, numbers and order in both dialects.

use tracesmith_format::tables::{Place, Stream};
use tracesmith_format::{ContextId, DeviceId, ProcessId, StreamId, StringId, ThreadId};
use tracesmith_trace::Trace;

use super::{Dialect, Stage, has_stream};
use crate::export::lanes::Overlap;
use crate::export::tracks::{LARGEST_NUMBER, NewTrack, Role, TrackKey, TrackWay};

/// Numbers between two tracks of a process: room for lanes and for roles.
const TRACK_STEP: u64 = 1_000;

impl Stage<'_> {
    pub(super) fn thread(&mut self, process: ProcessId, thread: ThreadId) -> u32 {
        let (trace, pids, dialect) = (self.trace, &self.pids, self.dialect);
        self.tracks.base(
            TrackKey {
                number: thread.0,
                ..key(Role::Thread, process)
            },
            || NewTrack {
                pid: pids.process(process),
                tid: thread.is_some().then_some(thread.0).filter(|tid| {
                    // PyTorch writes the number of a thread as 32 bits with a sign, and readers look for that.
                    dialect == Dialect::Kineto || *tid <= LARGEST_NUMBER
                }),
                name: thread_name(trace, dialect, process, thread),
                sort_index: thread_index(trace, process, thread) + TRACK_STEP / 2,
                way: match dialect {
                    Dialect::Chrome => TrackWay::Lanes(Overlap::Nested),
                    Dialect::Kineto => TrackWay::Together,
                },
            },
        )
    }

    pub(super) fn markers(&mut self, process: ProcessId, thread: ThreadId, domain: StringId) -> u32 {
        let (trace, pids, dialect) = (self.trace, &self.pids, self.dialect);
        self.tracks.base(
            TrackKey {
                number: thread.0,
                domain,
                ..key(Role::Markers, process)
            },
            || NewTrack {
                pid: pids.process(process),
                tid: None,
                name: format!(
                    "NVTX {} of {}",
                    trace.string(domain),
                    thread_name(trace, dialect, process, thread)
                )
                .replace("  ", " "),
                sort_index: thread_index(trace, process, thread),
                way: TrackWay::Lanes(Overlap::Nested),
            },
        )
    }

    pub(super) fn free(&mut self, process: ProcessId) -> u32 {
        let pids = &self.pids;
        self.tracks.base(key(Role::Free, process), || NewTrack {
            pid: pids.process(process),
            tid: None,
            name: String::new(),
            sort_index: 0,
            way: TrackWay::Async,
        })
    }

    pub(super) fn stream(&mut self, place: &Place) -> u32 {
        let base = self.device_track(Role::Stream, place);
        self.streams
            .entry((place.process, place.device, place.stream))
            .or_insert(base);
        base
    }

    /// The track of a stream whose context is not known.
    pub(super) fn stream_of(&mut self, process: ProcessId, device: DeviceId, stream: StreamId) -> u32 {
        if let Some(base) = self.streams.get(&(process, device, stream)) {
            return *base;
        }
        let context = self
            .trace
            .streams
            .iter()
            .find(|known| (known.process, known.device, known.stream) == (process, device, stream))
            .map_or(ContextId::NONE, |known| known.context);
        self.stream(&Place {
            process,
            device,
            context,
            stream,
            ..Place::default()
        })
    }

    /// Kineto has waits among the work of the stream.
    pub(super) fn waits(&mut self, place: &Place) -> u32 {
        match self.dialect {
            Dialect::Kineto if has_stream(place) => self.stream(place),
            _ => self.device_track(Role::Waits, place),
        }
    }

    pub(super) fn memory(&mut self, place: &Place) -> u32 {
        let pids = &self.pids;
        self.tracks.base(
            TrackKey {
                device: place.device,
                ..key(Role::Memory, place.process)
            },
            || NewTrack {
                pid: pids.device_or_process(place.device, place.process),
                tid: None,
                name: "allocations".to_owned(),
                sort_index: i32::MAX as u64,
                way: TrackWay::Lanes(Overlap::Nested),
            },
        )
    }

    pub(super) fn device_track(&mut self, role: Role, place: &Place) -> u32 {
        let (trace, pids, dialect) = (self.trace, &self.pids, self.dialect);
        self.tracks.base(
            TrackKey {
                device: place.device,
                context: place.context,
                number: place.stream.0,
                ..key(role, place.process)
            },
            || NewTrack {
                pid: pids.device_or_process(place.device, place.process),
                tid: (role == Role::Stream && place.stream.0 <= LARGEST_NUMBER).then_some(place.stream.0),
                name: stream_name(trace, dialect, role, place),
                sort_index: stream_index(trace, place) + role as u64 * TRACK_STEP / 8,
                way: TrackWay::Lanes(match dialect {
                    Dialect::Chrome => Overlap::Apart,
                    Dialect::Kineto => Overlap::Nested,
                }),
            },
        )
    }
}

fn key(role: Role, process: ProcessId) -> TrackKey {
    TrackKey {
        role,
        process,
        device: DeviceId::NONE,
        context: ContextId::NONE,
        number: 0,
        domain: StringId::NONE,
    }
}

fn thread_name(trace: &Trace, dialect: Dialect, process: ProcessId, thread: ThreadId) -> String {
    let known = trace
        .threads
        .iter()
        .find(|known| (known.process, known.thread) == (process, thread))
        .map_or("", |known| trace.string(known.name));
    match (dialect, known) {
        _ if !thread.is_some() => "no thread".to_owned(),
        (_, "") => format!("thread {}", thread.0 as i64),
        (Dialect::Chrome, name) => format!("{name} {}", thread.0),
        (Dialect::Kineto, name) if name.starts_with("thread ") => name.to_owned(),
        (Dialect::Kineto, name) => format!("thread {} ({name})", thread.0 as i64),
    }
}

fn thread_index(trace: &Trace, process: ProcessId, thread: ThreadId) -> u64 {
    let at = trace
        .threads
        .iter()
        .position(|known| (known.process, known.thread) == (process, thread))
        .unwrap_or(trace.threads.len());
    at as u64 * TRACK_STEP
}

fn stream_name(trace: &Trace, dialect: Dialect, role: Role, place: &Place) -> String {
    let known = trace.streams.iter().find(|known| {
        (known.process, known.context, known.stream) == (place.process, place.context, place.stream)
    });
    let mut name = format!("stream {}", place.stream.0);
    if let Some(known) = known.filter(|known| known.name.is_some()) {
        name += &format!(" {}", trace.string(known.name));
    }
    if dialect == Dialect::Kineto {
        return match role {
            Role::Waits => format!(
                "Device {}",
                trace.device(place.device).map_or(0, |device| device.ordinal)
            ),
            Role::Stream => name + " ",
            _ => name,
        };
    }
    let shared = |other: &Stream| {
        (other.device, other.stream) == (place.device, place.stream)
            && (other.process, other.context) != (place.process, place.context)
    };
    if trace.streams.iter().any(shared) {
        let pid = trace.process(place.process).map_or(0, |process| process.pid);
        name += &format!(" (process {pid}, context {})", place.context.0);
    }
    match role {
        Role::Graphs => format!("graphs of {name}"),
        Role::Waits if has_stream(place) => format!("waits for {name}"),
        Role::Waits => "waits for the device".to_owned(),
        Role::Collectives => format!("collectives of {name}"),
        _ => name,
    }
}

fn stream_index(trace: &Trace, place: &Place) -> u64 {
    let at = trace
        .streams
        .iter()
        .position(|known| {
            (known.process, known.context, known.stream) == (place.process, place.context, place.stream)
        })
        .unwrap_or(trace.streams.len());
    at as u64 * TRACK_STEP
}
