//! The plan on a device.

use std::ffi::CString;
use std::ops::Range;
use std::time::Duration;

use rustc_hash::FxHashMap;
use tracesmith_cuda::driver::{Context, Driver, Event, Function, Module, Stage, Stream};
use tracesmith_format::tables::CommandKind;
use xxhash_rust::xxh3::xxh3_128;

use crate::contents::Hash;
use crate::cuda;
use crate::error::Error;
use crate::plan::Plan;
use crate::recording::{Buffer, Command, Piece, Recording};
use crate::verdict::{Difference, Verdict};

/// `CU_FUNC_ATTRIBUTE_` MAX_DYNAMIC_SHARED_SIZE_BYTES and NON_PORTABLE_CLUSTER_SIZE_ALLOWED.
const MAX_DYNAMIC_SHARED: u32 = 8;
const NON_PORTABLE_CLUSTER: u32 = 14;

/// Shared memory that a kernel has without asking for it.
const FREE_SHARED: u32 = 48 << 10;

/// The default streams, as handles.
const LEGACY: [u64; 2] = [0, 1];

/// A recording on a device, ready to run as often as one likes.
pub struct Replay<'r> {
    pub(crate) recording: &'r mut Recording,
    plan: &'r Plan,
    pub(crate) stage: Stage,
    functions: FxHashMap<(u64, String), Function>,
    streams: FxHashMap<u64, Stream>,
    events: FxHashMap<u64, Event>,
    /// Page-locked memory of the host: what copies see of it.
    host: FxHashMap<u64, Vec<u8>>,
    begin: Event,
    end: Event,
    pub(crate) marks: Stream,
    order: Order,
    /// What memory holds that is taken within the window; nothing in particular without it.
    pub(crate) pattern: Option<u8>,
    pub(crate) context: Context,
}

/// How calls are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// In as many streams as the program had, with its events between them.
    #[default]
    Streams,
    /// One after another.
    Serial,
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct Run {
    /// Time on the device from the first call to the last.
    pub device_time: Duration,
    /// Calls that were made.
    pub commands: usize,
    /// How the memory came out.
    pub verdict: Verdict,
}

impl<'r> Replay<'r> {
    /// Takes the memory and loads the code.
    ///
    /// # Errors
    ///
    /// When something stands against it, or the driver refuses.
    pub fn prepare(recording: &'r mut Recording, plan: &'r Plan, ordinal: u32) -> Result<Self, Error> {
        if let Some(obstacle) = plan.obstacles.first() {
            return Err(Error::Obstacle(obstacle.to_string()));
        }
        let driver = Driver::open().map_err(Error::device("opening the driver"))?;
        let device = driver
            .device(ordinal)
            .map_err(Error::device("opening the device"))?;
        let context = Context::of(&device).map_err(Error::device("making a context"))?;
        let stage = Stage::at(&context, &plan.memory).map_err(Error::device("taking the memory"))?;
        let functions = load(&context, recording, plan)?;
        let made = Error::device("making streams and events");
        let parts = || Ok((context.event()?, context.event()?, context.ordered_stream()?));
        let (begin, end, marks) = parts().map_err(made)?;
        let mut replay = Self {
            recording,
            plan,
            stage,
            functions,
            streams: FxHashMap::default(),
            events: FxHashMap::default(),
            host: FxHashMap::default(),
            begin,
            end,
            marks,
            order: Order::default(),
            pattern: None,
            context,
        };
        replay.make_streams()?;
        Ok(replay)
    }

    /// Makes calls in this way from now on.
    pub fn set_order(&mut self, order: Order) {
        self.order = order;
    }

    /// Bytes of device memory that it takes.
    pub fn bytes(&self) -> u64 {
        self.stage.bytes()
    }

    /// Puts the memory into its first state, makes all calls and compares.
    ///
    /// # Errors
    ///
    /// What the driver says, with the call that it said it of.
    pub fn run(&mut self) -> Result<Run, Error> {
        self.restore()?;
        self.begin
            .record(&self.marks)
            .map_err(Error::device("marking the beginning"))?;
        let count = self.recording.commands.len();
        self.issue_all(0..count)?;
        self.end
            .record(&self.marks)
            .map_err(Error::device("marking the end"))?;
        self.wait()?;
        let device_time = self
            .end
            .since(&self.begin)
            .map_err(Error::device("reading the time"))?;
        Ok(Run {
            device_time,
            commands: count,
            verdict: self.compare()?,
        })
    }

    /// Makes some of the calls, by their places among all.
    pub(crate) fn issue_all(&mut self, places: Range<usize>) -> Result<(), Error> {
        let commands = std::mem::take(&mut self.recording.commands);
        let places = places.start.min(commands.len())..places.end.min(commands.len());
        let chosen = commands.get(places).unwrap_or_default();
        let issued = chosen.iter().try_for_each(|command| {
            self.issue(command).map_err(|error| match error {
                Error::Device { what, source } => Error::Device {
                    what: format!("#{} {}: {what}", command.number, command.name()),
                    source,
                },
                other => other,
            })
        });
        self.recording.commands = commands;
        issued
    }

    /// Waits for all work.
    pub(crate) fn wait(&self) -> Result<(), Error> {
        self.context
            .synchronize()
            .map_err(Error::device("waiting for the work"))
    }

    /// The stream of a call; none is the one that is everyone's.
    pub(crate) fn stream(&self, command: &Command) -> Option<&Stream> {
        match self.order {
            Order::Streams => self.streams.get(&command.stream),
            Order::Serial => None,
        }
    }

    /// The content of memory, as it is now.
    ///
    /// # Errors
    ///
    /// When it is no memory of the recording's, or what the driver says.
    pub fn read(&mut self, address: u64, bytes: u64) -> Result<Vec<u8>, Error> {
        self.wait()?;
        let mut content = vec![0; bytes as usize];
        match host_slice(&mut self.host, address, bytes) {
            Some(host) => content.copy_from_slice(host),
            None => self
                .stage
                .read(address, &mut content)
                .map_err(Error::device("reading memory"))?,
        }
        Ok(content)
    }

    /// Puts the memory into its first state and makes the calls before a place.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn run_until(&mut self, place: usize) -> Result<(), Error> {
        self.restore()?;
        self.issue_all(0..place)?;
        self.wait()
    }

    fn make_streams(&mut self) -> Result<(), Error> {
        for command in &self.recording.commands {
            let handle = command.stream;
            if !LEGACY.contains(&handle) && !self.streams.contains_key(&handle) {
                let stream = self
                    .context
                    .ordered_stream()
                    .map_err(Error::device("making a stream"))?;
                self.streams.insert(handle, stream);
            }
        }
        Ok(())
    }

    /// The memory as it was at the beginning.
    pub(crate) fn restore(&mut self) -> Result<(), Error> {
        self.host.clear();
        for range in &self.plan.host {
            self.host
                .insert(range.start, vec![0; (range.end - range.start) as usize]);
        }
        let begin = std::mem::take(&mut self.recording.begin);
        let restored = begin
            .iter()
            .flat_map(|buffer| &buffer.pieces)
            .try_for_each(|piece| self.write(piece));
        self.recording.begin = begin;
        restored
    }

    fn write(&mut self, piece: &Piece) -> Result<(), Error> {
        let bytes = self.recording.store.piece(piece.hash)?;
        if bytes.len() as u64 != piece.bytes {
            return Err(Error::Missing(format!(
                "all of the content at {:#x}",
                piece.address
            )));
        }
        if let Some(host) = host_slice(&mut self.host, piece.address, piece.bytes) {
            host.copy_from_slice(bytes);
            return Ok(());
        }
        self.stage
            .write(piece.address, bytes)
            .map_err(Error::device("restoring memory"))
    }

    /// Makes one call.
    fn issue(&mut self, command: &Command) -> Result<(), Error> {
        match command.kind {
            CommandKind::LAUNCH => self.launch(command),
            CommandKind::COPY => self.copy(command),
            CommandKind::SET => {
                let width = command.width.max(1);
                let count = command.bytes / u64::from(width);
                self.stage
                    .set(
                        command.destination,
                        command.value as u32,
                        width,
                        count,
                        self.stream(command),
                    )
                    .map_err(Error::device("setting memory"))
            }
            CommandKind::ALLOCATE => self.fill(command),
            CommandKind::RECORD_EVENT => self.record_event(command),
            CommandKind::WAIT_EVENT => self.wait_event(command),
            CommandKind::SYNCHRONIZE => self.context.synchronize().map_err(Error::device("waiting")),
            // Memory is there from the beginning to the end, and attributes are set when a kernel is loaded.
            _ => Ok(()),
        }
    }

    /// Memory that is taken holds what a check wants it to hold.
    fn fill(&self, command: &Command) -> Result<(), Error> {
        let Some(pattern) = self
            .pattern
            .filter(|_| self.stage.holds(command.destination, command.bytes))
        else {
            return Ok(());
        };
        self.wait()?;
        let value = u32::from(pattern);
        self.stage
            .set(command.destination, value, 1, command.bytes, None)
            .map_err(Error::device("filling memory"))?;
        self.wait()
    }

    fn launch(&self, command: &Command) -> Result<(), Error> {
        let key = (command.module, command.function.clone());
        let function = self
            .functions
            .get(&key)
            .ok_or_else(|| Error::Missing(format!("the code of {}", command.function)))?;
        cuda::launch(function, command, self.stream(command)).map_err(Error::device("launching"))
    }

    fn copy(&mut self, command: &Command) -> Result<(), Error> {
        if let Some(pieces) = self.recording.brought.get(&command.number).cloned() {
            // Bytes of the host come when the stream has come to it.
            self.wait_for(command.stream)?;
            return pieces.iter().try_for_each(|piece| self.write(piece));
        }
        let to_host = host_slice(&mut self.host, command.destination, command.bytes).is_some();
        let from_host = host_slice(&mut self.host, command.source, command.bytes).is_some();
        match (to_host, from_host) {
            (false, false) if self.stage.holds(command.destination, command.bytes) => self
                .stage
                .copy(
                    command.destination,
                    command.source,
                    command.bytes,
                    self.stream(command),
                )
                .map_err(Error::device("copying")),
            // To memory of the host that no other call looks at.
            (false, false) => Ok(()),
            (true, true) => {
                let from =
                    host_slice(&mut self.host, command.source, command.bytes).map(|from| from.to_vec());
                if let (Some(from), Some(to)) = (
                    from,
                    host_slice(&mut self.host, command.destination, command.bytes),
                ) {
                    to.copy_from_slice(&from);
                }
                Ok(())
            }
            (true, false) => {
                self.wait_for(command.stream)?;
                let Some(to) = host_slice(&mut self.host, command.destination, command.bytes) else {
                    return Ok(());
                };
                self.stage
                    .read(command.source, to)
                    .map_err(Error::device("copying to the host"))
            }
            (false, true) => {
                self.wait_for(command.stream)?;
                let Some(from) = host_slice(&mut self.host, command.source, command.bytes) else {
                    return Ok(());
                };
                self.stage
                    .write(command.destination, from)
                    .map_err(Error::device("copying from the host"))
            }
        }
    }

    fn wait_for(&self, stream: u64) -> Result<(), Error> {
        match self.streams.get(&stream) {
            Some(stream) => stream.synchronize(),
            None => self.context.synchronize(),
        }
        .map_err(Error::device("waiting for the stream"))
    }

    fn record_event(&mut self, command: &Command) -> Result<(), Error> {
        let failed = || Error::device("recording an event");
        let event = match self.events.remove(&command.object) {
            Some(event) => event,
            None => self.context.event().map_err(failed())?,
        };
        let stream = self.stream(command).unwrap_or(&self.marks);
        event.record(stream).map_err(failed())?;
        self.events.insert(command.object, event);
        Ok(())
    }

    /// One that was recorded before the window is long over.
    fn wait_event(&self, command: &Command) -> Result<(), Error> {
        let stream = self.stream(command).unwrap_or(&self.marks);
        match self.events.get(&command.object) {
            Some(event) => stream.wait(event).map_err(Error::device("waiting for an event")),
            None => Ok(()),
        }
    }

    /// Holds the memory against what was recorded of its end.
    fn compare(&mut self) -> Result<Verdict, Error> {
        let end = std::mem::take(&mut self.recording.end);
        let mut differences = Vec::new();
        let mut result = Ok(());
        for buffer in &end {
            match self.compare_buffer(buffer) {
                Ok(difference) => differences.extend(difference),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        let (buffers, bytes) = (end.len(), end.iter().map(|buffer| buffer.bytes).sum());
        self.recording.end = end;
        result?;
        if differences.is_empty() {
            return Ok(Verdict::Same { buffers, bytes });
        }
        Ok(Verdict::Differs { differences, buffers })
    }

    fn compare_buffer(&mut self, buffer: &Buffer) -> Result<Option<Difference>, Error> {
        let mut difference: Option<Difference> = None;
        let mut found = Vec::new();
        for piece in &buffer.pieces {
            found.resize(piece.bytes as usize, 0);
            match host_slice(&mut self.host, piece.address, piece.bytes) {
                Some(host) => found.copy_from_slice(host),
                None => self
                    .stage
                    .read(piece.address, &mut found)
                    .map_err(Error::device("reading memory"))?,
            }
            if xxh3_128(&found) == piece.hash {
                continue;
            }
            let expected = self.recording.store.piece(piece.hash)?;
            let pairs = expected.iter().zip(&found);
            let count = pairs.clone().filter(|(one, other)| one != other).count() as u64;
            let Some(first) = pairs.into_iter().position(|(one, other)| one != other) else {
                continue;
            };
            let end = (first + 8).min(found.len());
            let difference = difference.get_or_insert_with(|| Difference {
                address: buffer.address,
                bytes: buffer.bytes,
                offset: piece.address - buffer.address + first as u64,
                expected: expected[first..end].to_vec(),
                found: found[first..end].to_vec(),
                count: 0,
            });
            difference.count += count;
        }
        Ok(difference)
    }
}

/// Memory of the host that an address lies in.
fn host_slice(host: &mut FxHashMap<u64, Vec<u8>>, address: u64, bytes: u64) -> Option<&mut [u8]> {
    host.iter_mut().find_map(|(base, memory)| {
        let offset = address.checked_sub(*base)? as usize;
        memory.get_mut(offset..offset.checked_add(bytes as usize)?)
    })
}

/// Loads the code of every kernel that is launched, and sets what was set of them.
fn load(
    context: &Context,
    recording: &mut Recording,
    plan: &Plan,
) -> Result<FxHashMap<(u64, String), Function>, Error> {
    let mut modules: FxHashMap<Hash, Module> = FxHashMap::default();
    let mut functions = FxHashMap::default();
    for (key, hash) in &plan.code {
        if !modules.contains_key(hash) {
            let code = recording.store.code(*hash)?;
            let module = context
                .module_of(&code)
                .map_err(Error::device(format!("loading the code of {}", key.1)))?;
            modules.insert(*hash, module);
        }
        let name = CString::new(key.1.as_str()).map_err(|_| Error::Missing("a kernel's name".to_owned()))?;
        let function = modules[hash]
            .function(&name)
            .map_err(Error::device(format!("finding {}", key.1)))?;
        functions.insert(key.clone(), function);
    }
    for command in &recording.commands {
        let Some(function) = functions.get(&(command.module, command.function.clone())) else {
            continue;
        };
        match command.kind {
            CommandKind::ATTRIBUTE => {
                // What the old driver took and this one does not shows when the kernel is launched.
                let _ = function.set_attribute(command.object as u32, command.value as i32);
            }
            CommandKind::LAUNCH => {
                if command.shared > FREE_SHARED {
                    let _ = function.set_attribute(MAX_DYNAMIC_SHARED, command.shared as i32);
                }
                if !command.attributes.is_empty() {
                    let _ = function.set_attribute(NON_PORTABLE_CLUSTER, 1);
                }
            }
            _ => {}
        }
    }
    Ok(functions)
}
