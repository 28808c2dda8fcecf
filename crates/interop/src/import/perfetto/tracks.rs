//! Tracks: whose they are, by their own description or that of the tracks above them.

use rustc_hash::FxHashMap;
use tracesmith_format::tables::Place;
use tracesmith_format::{ContextId, DeviceId, HostId, ProcessId, StreamId, ThreadId};

use super::sequence::Text;
use crate::error::Error;
use crate::import::Builder;
use crate::perfetto::schema::{counter, descriptor, process, thread};
use crate::perfetto::wire::Fields;
use crate::perfetto::words::{DERIVED, PLACE};

/// Tracks above a track that are looked at: a description that leads back to itself must end somewhere.
const MAX_HEIGHT: usize = 64;

/// Whose a track is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A thread.
    Thread(ProcessId, ThreadId),
    /// A process.
    Process(ProcessId),
    /// A stream, in an export of ours.
    Stream(Place),
    /// A GPU, in an export of ours.
    Device(DeviceId),
    /// Nobody in particular.
    Global,
    /// Values that an export of ours adds up from other events.
    Derived,
}

impl Owner {
    /// The process and thread, as far as there are any.
    pub(super) fn caller(self) -> (ProcessId, ThreadId) {
        match self {
            Owner::Thread(process, thread) => (process, thread),
            Owner::Process(process) => (process, ThreadId::NONE),
            Owner::Stream(place) => (place.process, ThreadId::NONE),
            Owner::Device(_) | Owner::Global | Owner::Derived => (ProcessId::NONE, ThreadId::NONE),
        }
    }
}

/// What is known of a track.
#[derive(Clone, Debug, Default)]
pub(super) struct Track {
    parent: u64,
    pub(super) name: Text,
    owner: Option<Owner>,
    pub(super) counter: Option<CounterInfo>,
}

/// How a counter's values are to be read.
#[derive(Clone, Debug, Default)]
pub(super) struct CounterInfo {
    pub(super) unit: Text,
    pub(super) multiplier: i64,
    pub(super) is_incremental: bool,
    /// The sum of an incremental counter so far.
    pub(super) sum: f64,
}

/// All tracks of a file. Their numbers are unique over all sequences.
#[derive(Default)]
pub(super) struct Tracks {
    tracks: FxHashMap<u64, Track>,
}

impl Tracks {
    /// A track, if it was described.
    pub(super) fn get_mut(&mut self, uuid: u64) -> Option<&mut Track> {
        self.tracks.get_mut(&uuid)
    }

    /// Whose a track is.
    pub(super) fn owner(&self, uuid: u64) -> Owner {
        let mut at = uuid;
        for _ in 0..MAX_HEIGHT {
            let Some(track) = self.tracks.get(&at) else { break };
            if let Some(owner) = track.owner {
                return owner;
            }
            at = track.parent;
        }
        Owner::Global
    }

    /// Takes in a track's description.
    pub(super) fn describe(
        &mut self,
        host: HostId,
        bytes: &[u8],
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        let mut uuid = 0;
        let mut track = Track::default();
        let mut thread = None;
        for (field, value) in Fields::new(bytes).flatten() {
            match field {
                descriptor::UUID => uuid = value.number(),
                descriptor::PARENT => track.parent = value.number(),
                descriptor::NAME | descriptor::STATIC_NAME | descriptor::ATRACE_NAME => {
                    track.name = String::from_utf8_lossy(value.bytes()).into();
                }
                descriptor::PROCESS => {
                    let process = process_of(host, value.bytes(), builder)?;
                    track.owner = Some(Owner::Process(process));
                }
                descriptor::THREAD => thread = Some(self.describe_thread(host, value.bytes(), builder)?),
                descriptor::COUNTER => track.counter = Some(counter_of(value.bytes())),
                descriptor::DESCRIPTION => {
                    let text = String::from_utf8_lossy(value.bytes());
                    if let Some(owner) = own_owner(host, &text, &track.name, builder)? {
                        track.owner = Some(owner);
                    }
                }
                _ => {}
            }
        }
        if let Some((process, thread)) = thread {
            track.owner = Some(Owner::Thread(process, thread));
        }
        // A description may come again with less in it.
        if let Some(known) = self.tracks.get(&uuid) {
            if track.name.is_empty() {
                track.name = known.name.clone();
            }
            track.owner = track.owner.or(known.owner);
            if let (Some(counter), Some(known)) = (&mut track.counter, &known.counter) {
                counter.sum = known.sum;
            }
        }
        self.tracks.insert(uuid, track);
        Ok(())
    }

    /// A process that is described apart from tracks.
    pub(super) fn describe_process(
        &mut self,
        host: HostId,
        bytes: &[u8],
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        process_of(host, bytes, builder).map(drop)
    }

    /// A thread by its description.
    pub(super) fn describe_thread(
        &mut self,
        host: HostId,
        bytes: &[u8],
        builder: &mut Builder<'_, '_>,
    ) -> Result<(ProcessId, ThreadId), Error> {
        let (mut pid, mut tid, mut name) = (0, 0, String::new());
        for (field, value) in Fields::new(bytes).flatten() {
            match field {
                thread::PID => pid = value.number(),
                thread::TID => tid = value.number(),
                thread::NAME => name = String::from_utf8_lossy(value.bytes()).into_owned(),
                _ => {}
            }
        }
        let process = builder.process(host, pid as u32);
        let name = builder.string(&name)?;
        let thread = builder.thread_mut(process, ThreadId(tid));
        if name.is_some() {
            thread.name = name;
        }
        Ok((process, ThreadId(tid)))
    }
}

fn process_of(host: HostId, bytes: &[u8], builder: &mut Builder<'_, '_>) -> Result<ProcessId, Error> {
    let (mut pid, mut name, mut command) = (0, String::new(), Vec::new());
    for (field, value) in Fields::new(bytes).flatten() {
        match field {
            process::PID => pid = value.number(),
            process::NAME => name = String::from_utf8_lossy(value.bytes()).into_owned(),
            process::COMMAND => command.push(String::from_utf8_lossy(value.bytes()).into_owned()),
            _ => {}
        }
    }
    let id = builder.process(host, pid as u32);
    let (name, command) = (builder.string(&name)?, builder.string(&command.join(" "))?);
    let process = builder.process_mut(id);
    if name.is_some() {
        process.name = name;
    }
    if command.is_some() {
        process.command = command;
    }
    Ok(id)
}

fn counter_of(bytes: &[u8]) -> CounterInfo {
    let mut info = CounterInfo {
        multiplier: 1,
        ..CounterInfo::default()
    };
    for (field, value) in Fields::new(bytes).flatten() {
        match field {
            counter::UNIT => {
                info.unit = Text::from(match value.number() {
                    counter::UNIT_TIME_NS => "ns",
                    counter::UNIT_BYTES => "B",
                    _ => "",
                });
            }
            counter::UNIT_NAME => info.unit = String::from_utf8_lossy(value.bytes()).into(),
            counter::UNIT_MULTIPLIER => info.multiplier = value.number() as i64,
            counter::IS_INCREMENTAL => info.is_incremental = value.number() != 0,
            _ => {}
        }
    }
    info
}

/// The owner that an export of ours wrote into a track's description: `place: gpu 0 pid 7 context 1 stream 13`.
fn own_owner(
    host: HostId,
    description: &str,
    name: &str,
    builder: &mut Builder<'_, '_>,
) -> Result<Option<Owner>, Error> {
    if description == DERIVED {
        return Ok(Some(Owner::Derived));
    }
    let Some(words) = description.strip_prefix(PLACE) else {
        return Ok(None);
    };
    let words: Vec<&str> = words.split_whitespace().collect();
    let number = |key: &str| {
        let at = words.iter().position(|word| *word == key)?;
        words.get(at + 1)?.parse::<u64>().ok() // what is no number is no place of ours
    };
    let Some(gpu) = number("gpu") else {
        return Ok(None);
    };
    let device = builder.device(host, gpu);
    let (Some(pid), Some(context), Some(stream)) = (number("pid"), number("context"), number("stream"))
    else {
        let own = name.strip_prefix(&format!("GPU {gpu} ")).unwrap_or_default();
        let own = builder.string(own)?;
        let known = builder.device_mut(device);
        if own.is_some() {
            known.name = own;
        }
        return Ok(Some(Owner::Device(device)));
    };
    Ok(Some(Owner::Stream(Place {
        process: builder.process(host, pid as u32),
        device,
        context: ContextId(context as u32),
        stream: StreamId(stream),
        ..Place::default()
    })))
}
