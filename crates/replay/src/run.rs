//! The plan on a device.

use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use tracesmith_cuda::driver::{
    Context, Driver, Event, Function, Graph, HostMemory, Placing, Setting, Stage, Stream, StreamMake,
};
use tracesmith_cuda::kernels::Delayer;
use tracesmith_format::tables::{CommandKind, MemoryKind};

use crate::cuda;
use crate::error::Error;
use crate::load;
use crate::pace::Start;
use crate::part::Against;
use crate::plan::Plan;
use crate::progress::ProgressFn;
use crate::race::DelayedStream;
use crate::recording::{Command, Piece, Recording};
use crate::relocate::Moves;
use crate::snapshots::Snapshots;
use crate::textures::Textures;
use crate::tolerance::Tolerance;
use crate::verdict::Verdict;
use crate::watch::Watch;

/// What the host waits for, as the format has it.
const WAIT_FOR_STREAM: u64 = 1;
const WAIT_FOR_EVENT: u64 = 2;

/// The default streams, as handles.
const LEGACY: [u64; 2] = [0, 1];

/// What memory holds before a run if the recording does not say: no result of an earlier run, and not zeros either, which
/// many kernels write.
pub(crate) const PATTERN: u8 = 0xA5;

/// A recording on a device, ready to run as often as one likes.
pub struct Replay<'r> {
    pub(crate) recording: &'r mut Recording,
    plan: &'r Plan,
    pub(crate) stage: Stage,
    pub(crate) functions: FxHashMap<(u64, String), Function>,
    /// Kernels that are launched instead of the recorded ones, by the number of the call.
    pub(crate) replaced: Replaced,
    /// Memory that does not lie where it lay, by where it was: variables of device code, and what lies beside arrays.
    pub(crate) moved: Vec<Moved>,
    /// The same and memory that could not be had at its address, for pointers in memory.
    pub(crate) moves: Moves,
    pub(crate) textures: Textures,
    streams: FxHashMap<u64, Stream>,
    events: FxHashMap<u64, Event>,
    /// Graphs that were made again, by the number of the call that launches them.
    pub(crate) graphs: FxHashMap<u64, Graph<'static>>,
    /// What calls bring from the host, ready for the device, and where each call's begins.
    pub(crate) brought: Option<HostMemory<u32>>,
    pub(crate) brought_at: FxHashMap<u64, u64>,
    /// Where the work of a graph goes that is being made again.
    pub(crate) captured: Option<Rc<Stream>>,
    /// Page-locked memory of the host that the driver would not put where it was: what copies see of it.
    pub(crate) host: FxHashMap<u64, Vec<u8>>,
    begin: Event,
    end: Event,
    pub(crate) marks: Stream,
    order: Order,
    /// When the host began, where its gaps are kept.
    pub(crate) started: Option<Start>,
    /// How far numbers may be apart.
    pub(crate) tolerances: Vec<Tolerance>,
    pub(crate) snapshots: Snapshots,
    pub(crate) watch: Watch,
    pub(crate) progress: Option<ProgressFn>,
    /// What memory without recorded content holds before a run.
    pub(crate) pattern: u8,
    pub(crate) fresh: Fresh,
    /// A stream whose work is held back.
    pub(crate) delayed: Option<DelayedStream>,
    pub(crate) delayer: Option<Delayer>,
    pub(crate) context: Context,
}

/// Kernels by the number of the call that launches them.
pub(crate) type Replaced = FxHashMap<u64, Rc<Function>>;

/// Memory that lies elsewhere now.
#[derive(Clone, Debug)]
pub(crate) struct Moved {
    pub(crate) was: Range<u64>,
    pub(crate) is: u64,
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

/// When memory that the window allocates is filled with the pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fresh {
    /// Before the run: calls then overlap as they did.
    #[default]
    Once,
    /// And whenever it is allocated, so that a call cannot inherit what another one left at the same address.
    EachTime,
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct Run {
    /// Time on the device from the first call to the last.
    pub device_time: Duration,
    /// Time on the host until all was done.
    pub host_time: Duration,
    /// What the memory was held against.
    pub against: Against,
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
        Self::prepare_at(recording, plan, ordinal, Placing::Exact)
    }

    /// The same; memory may lie elsewhere when it cannot be had where it was.
    ///
    /// # Errors
    ///
    /// As [`prepare`](Self::prepare).
    pub fn prepare_at(
        recording: &'r mut Recording,
        plan: &'r Plan,
        ordinal: u32,
        placing: Placing,
    ) -> Result<Self, Error> {
        if let Some(obstacle) = plan.obstacles.first() {
            return Err(Error::Obstacle(obstacle.to_string()));
        }
        let driver = Driver::open().map_err(Error::device("opening the driver"))?;
        let device = driver
            .device(ordinal)
            .map_err(Error::device("opening the device"))?;
        load::check_architecture(recording, plan, &device)?;
        let context = Context::of(&device).map_err(Error::device("creating a context"))?;
        let mut stage = Stage::at(&context, &plan.memory, &plan.host, placing)
            .map_err(Error::device("allocating memory at the recorded addresses"))?;
        let (functions, mut moved) = load::load(&context, recording, plan)?;
        let (textures, arrays) = Textures::make_arrays(&context, recording)?;
        moved.extend(arrays);
        moved.sort_by_key(|moved: &Moved| moved.was.start);
        for moved in &moved {
            stage.admit(moved.is..moved.is + (moved.was.end - moved.was.start));
        }
        let shifted = stage.shifted().iter();
        let shifted = shifted.map(|shifted| (shifted.was.clone(), shifted.is));
        let moves = Moves::new(
            moved
                .iter()
                .map(|moved| (moved.was.clone(), moved.is))
                .chain(shifted),
        );
        let made = Error::device("creating streams and events");
        let parts = || Ok((context.event()?, context.event()?, context.ordered_stream()?));
        let (begin, end, marks) = parts().map_err(made)?;
        let mut replay = Self {
            recording,
            plan,
            stage,
            functions,
            replaced: FxHashMap::default(),
            moved,
            moves,
            textures,
            streams: FxHashMap::default(),
            events: FxHashMap::default(),
            graphs: FxHashMap::default(),
            brought: None,
            brought_at: FxHashMap::default(),
            captured: None,
            host: FxHashMap::default(),
            begin,
            end,
            marks,
            order: Order::default(),
            started: None,
            tolerances: Vec::new(),
            snapshots: Snapshots::default(),
            watch: Watch::default(),
            progress: None,
            pattern: PATTERN,
            fresh: Fresh::Once,
            delayed: None,
            delayer: None,
            context,
        };
        replay.make_streams()?;
        replay.check_host()?;
        replay.stage_host_copies()?;
        Ok(replay)
    }

    /// Makes calls in this way from now on.
    pub fn set_order(&mut self, order: Order) {
        self.order = order;
    }

    pub(crate) fn order(&self) -> Order {
        self.order
    }

    /// Makes calls one after another while `body` runs.
    pub(crate) fn serially<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        let order = std::mem::replace(&mut self.order, Order::Serial);
        let result = body(self);
        self.order = order;
        result
    }

    /// What it runs.
    pub fn recording(&self) -> &Recording {
        self.recording
    }

    /// The code of the kernel that a call launches.
    pub(crate) fn code_of(&mut self, command: &Command) -> Result<Vec<u8>, Error> {
        self.plan.code_of(self.recording, command)
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
        self.start_clock();
        let count = self.recording.commands.len();
        let (device_time, host_time) = self.timed(|replay| replay.issue_all(0..count))?;
        Ok(Run {
            device_time,
            host_time,
            against: Against::Recorded,
            commands: count,
            verdict: self.compare()?,
        })
    }

    /// Makes calls and waits for them; gives what that takes on the device and on the host.
    pub(crate) fn timed(
        &mut self,
        issue: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(Duration, Duration), Error> {
        if self.order == Order::Streams {
            self.make_graphs()?;
        }
        self.wait()?;
        let begun = Instant::now();
        self.begin
            .record(&self.marks)
            .map_err(Error::device("recording the start"))?;
        issue(self)?;
        self.mark_end().map_err(Error::device("recording the end"))?;
        self.wait()?;
        let host_time = begun.elapsed();
        let device_time = self
            .end
            .since(&self.begin)
            .map_err(Error::device("reading the elapsed time"))?;
        Ok((device_time, host_time))
    }

    /// The end is when all streams have come to it.
    fn mark_end(&self) -> Result<(), tracesmith_cuda::Error> {
        for stream in self.streams.values() {
            let event = self.context.event()?;
            event.record(stream)?;
            self.marks.wait(&event)?;
        }
        self.end.record(&self.marks)
    }

    /// Makes some of the calls, by their places among all.
    pub(crate) fn issue_all(&mut self, places: Range<usize>) -> Result<(), Error> {
        let commands = std::mem::take(&mut self.recording.commands);
        let places = places.start.min(commands.len())..places.end.min(commands.len());
        let chosen = commands.get(places).unwrap_or_default();
        let issued = self.issue_each(chosen);
        self.recording.commands = commands;
        issued
    }

    pub(crate) fn issue_each(&mut self, commands: &[Command]) -> Result<(), Error> {
        let mut place = 0;
        while let Some(command) = commands.get(place) {
            place += 1;
            self.keep_pace(command);
            self.watch.makes(command);
            self.delay_stream(command)?;
            let issued = match nodes_of(command, &commands[place..]) {
                Some(nodes) if self.order == Order::Streams && self.launches_whole(nodes) => {
                    place += nodes.len();
                    self.launch_graph(command, nodes)
                }
                _ => self.issue(command),
            };
            issued.map_err(|error| error.of_call(command))?;
        }
        Ok(())
    }

    /// Waits for all work.
    pub(crate) fn wait(&self) -> Result<(), Error> {
        let waited = self.context.synchronize();
        self.watch.rests();
        waited.map_err(Error::device("synchronizing the device"))
    }

    /// The stream of a call; none is the one that is everyone's.
    pub(crate) fn stream(&self, command: &Command) -> Option<&Stream> {
        if let Some(stream) = &self.captured {
            return Some(stream);
        }
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
        self.get_arrays()?;
        let now = self.place(address);
        let mut content = Vec::new();
        match host_slice(&mut self.host, address, bytes) {
            Some(host) => content.extend_from_slice(host),
            None => {
                let failed = Error::device("reading memory");
                if !self.stage.holds(now, bytes) {
                    return Err(failed(tracesmith_cuda::Error::NoMemoryThere { address, bytes }));
                }
                content.resize(bytes as usize, 0);
                self.stage.read(now, &mut content).map_err(failed)?;
            }
        }
        self.to_recorded_addresses(address, &mut content);
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
        let mut makes: FxHashMap<u64, StreamMake> = FxHashMap::default();
        for command in &self.recording.commands {
            let handle = command.stream;
            if LEGACY.contains(&handle) {
                continue;
            }
            let make = makes.entry(handle).or_default();
            if command.kind == CommandKind::STREAM {
                *make = StreamMake {
                    flags: command.value as u32,
                    priority: command.object as u32 as i32,
                };
            }
        }
        for (handle, make) in makes {
            let stream = self
                .context
                .stream_like(make)
                .map_err(Error::device("creating a stream"))?;
            self.streams.insert(handle, stream);
        }
        Ok(())
    }

    /// Kernels that use page-locked memory of the host need it where it was.
    fn check_host(&self) -> Result<(), Error> {
        let commands = self.recording.commands.iter();
        for command in commands.filter(|command| command.kind == CommandKind::LAUNCH) {
            for word in command.parameters.as_chunks::<8>().0 {
                let word = u64::from_le_bytes(*word);
                let is_host = self.plan.host.iter().any(|range| range.contains(&word));
                if is_host && !self.stage.holds(self.place(word), 1) {
                    return Err(Error::Obstacle(format!(
                        "#{} {}: its host memory cannot be mapped at {word:#x}",
                        command.number,
                        command.name()
                    )));
                }
            }
        }
        Ok(())
    }

    /// Where memory lies now.
    pub(crate) fn place(&self, address: u64) -> u64 {
        let behind = self.moved.partition_point(|moved| moved.was.start <= address);
        let moved = behind.checked_sub(1).map(|before| &self.moved[before]);
        match moved.filter(|moved| moved.was.contains(&address)) {
            Some(moved) => moved.is + (address - moved.was.start),
            None => self.stage.place(address),
        }
    }

    /// The memory as it was at the beginning. What the recording has no content of holds the pattern: nothing that an
    /// earlier run left there.
    pub(crate) fn restore(&mut self) -> Result<(), Error> {
        self.wait()?;
        self.stage
            .fill(self.pattern)
            .map_err(Error::device("filling memory"))?;
        self.fill_arrays()?;
        self.host.clear();
        let is_own = |range: &&Range<u64>| {
            let now = self.place(range.start);
            !self.stage.holds(now, range.end - range.start)
        };
        let own: Vec<Range<u64>> = self.plan.host.iter().filter(is_own).cloned().collect();
        for range in own {
            let bytes = (range.end - range.start) as usize;
            self.host.insert(range.start, vec![self.pattern; bytes]);
        }
        let begin = std::mem::take(&mut self.recording.begin);
        let restored = begin
            .iter()
            .flat_map(|buffer| &buffer.pieces)
            .try_for_each(|piece| {
                self.progressed(piece.bytes);
                self.write(piece)
            });
        self.recording.begin = begin;
        restored?;
        self.restore_textures(0)?;
        self.put_arrays()
    }

    pub(crate) fn write(&mut self, piece: &Piece) -> Result<(), Error> {
        let address = self.place(piece.address);
        let has_moved_memory = self.has_moved_memory();
        let bytes = self.recording.store.piece(piece.hash)?;
        if bytes.len() as u64 != piece.bytes {
            return Err(missing_content(piece));
        }
        if let Some(host) = host_slice(&mut self.host, piece.address, piece.bytes) {
            host.copy_from_slice(bytes);
            return Ok(());
        }
        let failed = Error::device("restoring memory");
        if !has_moved_memory {
            return self.stage.write(address, bytes).map_err(failed);
        }
        let mut content = bytes.to_vec();
        self.to_replay_addresses(piece.address, &mut content);
        self.stage.write(address, &content).map_err(failed)
    }

    /// Makes one call.
    pub(crate) fn issue(&mut self, command: &Command) -> Result<(), Error> {
        match command.kind {
            CommandKind::LAUNCH => self.launch(command),
            CommandKind::COPY => self.copy(command),
            CommandKind::COPY_PLANES => self.copy_planes(command),
            CommandKind::SET => {
                let width = command.width.max(1);
                let set = Setting {
                    address: self.place(command.destination),
                    value: command.value as u32,
                    width,
                    count: command.bytes / u64::from(width),
                    rows: command.object,
                    pitch: command.source,
                };
                self.stage
                    .set(&set, self.stream(command))
                    .map_err(Error::device("setting memory"))
            }
            CommandKind::HOST_FUNCTION => {
                self.wait_for(command.stream)?;
                self.bring(command)
            }
            CommandKind::ALLOCATE => self.allocate(command),
            CommandKind::RECORD_EVENT => self.record_event(command),
            CommandKind::WAIT_EVENT => self.wait_event(command),
            CommandKind::SYNCHRONIZE => self.host_waits(command),
            CommandKind::TEXTURE => self.retell_texture(command),
            // Memory is there from the beginning to the end, and attributes are set when a kernel is loaded.
            _ => Ok(()),
        }
    }

    /// Memory is allocated: it holds the pattern again if that is wanted. Memory of the host keeps what the program wrote
    /// there before it was page-locked.
    fn allocate(&self, command: &Command) -> Result<(), Error> {
        let address = self.place(command.destination);
        let is_device = !matches!(
            MemoryKind(command.value as u8),
            MemoryKind::PINNED | MemoryKind::PAGEABLE
        );
        if self.fresh == Fresh::Once || !is_device || !self.stage.holds(address, command.bytes) {
            return Ok(());
        }
        self.wait()?;
        let set = Setting {
            address,
            value: u32::from(self.pattern),
            width: 1,
            count: command.bytes,
            rows: 1,
            pitch: 0,
        };
        self.stage
            .set(&set, None)
            .map_err(Error::device("filling memory"))?;
        self.wait()
    }

    fn launch(&mut self, command: &Command) -> Result<(), Error> {
        if self.recording.brought.contains_key(&command.number) {
            // The program had changed memory of the host that the kernel uses.
            self.wait()?;
            self.bring(command)?;
        }
        let key = (command.module, command.function.clone());
        let replaced = self.replaced.get(&command.number).map(Rc::as_ref);
        let function = replaced
            .or_else(|| self.functions.get(&key))
            .ok_or_else(|| Error::Missing(format!("the module of {}", command.function)))?;
        let parameters = self.parameters(command);
        cuda::launch(function, command, &parameters, self.stream(command)).map_err(Error::device("launching"))
    }

    /// A launch's parameters, with addresses of what lies elsewhere now.
    pub(crate) fn parameters(&self, command: &Command) -> Vec<u8> {
        let mut parameters = command.parameters.clone();
        if !self.moved.is_empty() || !self.stage.shifted().is_empty() {
            for bytes in parameters.as_chunks_mut::<8>().0 {
                *bytes = self.place(u64::from_le_bytes(*bytes)).to_le_bytes();
            }
        }
        parameters
    }

    /// The host goes on when that is done which the program waited for.
    fn host_waits(&self, command: &Command) -> Result<(), Error> {
        match (command.value, self.events.get(&command.object)) {
            (WAIT_FOR_STREAM, _) => self.wait_for(command.stream),
            (WAIT_FOR_EVENT, Some(event)) => event.synchronize().map_err(Error::device("waiting")),
            // One that was recorded before the window is long over.
            (WAIT_FOR_EVENT, None) => Ok(()),
            _ => self.context.synchronize().map_err(Error::device("waiting")),
        }
    }

    pub(crate) fn wait_for(&self, stream: u64) -> Result<(), Error> {
        let wait = || match self.streams.get(&stream).filter(|_| self.order == Order::Streams) {
            Some(stream) => stream.synchronize(),
            None => {
                let here = self.context.event()?;
                here.record_everywhere()?;
                here.synchronize()
            }
        };
        wait().map_err(Error::device("synchronizing the stream"))
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
}

/// Whether there is a GPU to replay on.
pub fn has_device(ordinal: u32) -> bool {
    Driver::open().is_ok_and(|driver| driver.device(ordinal).is_ok())
}

/// A content that is not as long as its piece.
pub(crate) fn missing_content(piece: &Piece) -> Error {
    Error::Missing(format!("the complete contents of memory at {:#x}", piece.address))
}

/// Memory of the host that an address lies in.
pub(crate) fn host_slice(host: &mut FxHashMap<u64, Vec<u8>>, address: u64, bytes: u64) -> Option<&mut [u8]> {
    host.iter_mut().find_map(|(base, memory)| {
        let offset = address.checked_sub(*base)? as usize;
        memory.get_mut(offset..offset.checked_add(bytes as usize)?)
    })
}

/// The nodes of a graph that a call launches, if it does and all of them are there.
pub(crate) fn nodes_of<'c>(command: &Command, behind: &'c [Command]) -> Option<&'c [Command]> {
    if command.kind != CommandKind::GRAPH {
        return None;
    }
    let count = behind
        .iter()
        .take_while(|node| node.graph == command.number)
        .count();
    let nodes = &behind[..count];
    // Others are made one by one, in the order that is wanted.
    (count as u64 == command.bytes && nodes.is_sorted_by_key(|node| node.number)).then_some(nodes)
}
