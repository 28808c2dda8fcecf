//! Runs a plan on a device.

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

/// The kinds of host waits, as encoded in the format.
const WAIT_FOR_STREAM: u64 = 1;
const WAIT_FOR_EVENT: u64 = 2;

/// Handles of the default streams.
const LEGACY: [u64; 2] = [0, 1];

/// The fill pattern for memory without recorded contents. It hides no result of an earlier run. It is not zero,
/// because many kernels write zeros.
pub(crate) const PATTERN: u8 = 0xA5;

/// A recording on a device, ready to run any number of times.
pub struct Replay<'r> {
    pub(crate) recording: &'r mut Recording,
    plan: &'r Plan,
    pub(crate) stage: Stage,
    pub(crate) functions: FxHashMap<(u64, String), Function>,
    /// Replacement kernels, by call number.
    pub(crate) replaced: Replaced,
    /// Relocated memory by recorded address: module globals, and the memory next to arrays.
    pub(crate) moved: Vec<Moved>,
    /// All relocated memory, including memory whose address was not available, for pointers in memory.
    pub(crate) moves: Moves,
    pub(crate) textures: Textures,
    streams: FxHashMap<u64, Stream>,
    events: FxHashMap<u64, Event>,
    /// Instantiated graphs, by the number of the launching call.
    pub(crate) graphs: FxHashMap<u64, Graph<'static>>,
    /// Host data of memcpys in pinned memory, and the offset of each call's data.
    pub(crate) brought: Option<HostMemory<u32>>,
    pub(crate) brought_at: FxHashMap<u64, u64>,
    /// The stream that captures a graph, while a graph is created.
    pub(crate) captured: Option<Rc<Stream>>,
    /// Pinned host memory that could not be mapped at its address. Memcpys use these copies.
    pub(crate) host: FxHashMap<u64, Vec<u8>>,
    begin: Event,
    end: Event,
    pub(crate) marks: Stream,
    order: Order,
    /// The start time of the host, if its pauses are kept.
    pub(crate) started: Option<Start>,
    /// Allowed differences of numbers.
    pub(crate) tolerances: Vec<Tolerance>,
    pub(crate) snapshots: Snapshots,
    pub(crate) watch: Watch,
    pub(crate) progress: Option<ProgressFn>,
    /// The fill pattern for memory without recorded contents.
    pub(crate) pattern: u8,
    pub(crate) fresh: Fresh,
    /// The delayed stream.
    pub(crate) delayed: Option<DelayedStream>,
    pub(crate) delayer: Option<Delayer>,
    pub(crate) context: Context,
}

/// Kernels by call number.
pub(crate) type Replaced = FxHashMap<u64, Rc<Function>>;

/// Relocated memory.
#[derive(Clone, Debug)]
pub(crate) struct Moved {
    pub(crate) was: Range<u64>,
    pub(crate) is: u64,
}

/// The order of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As recorded: the same streams and events.
    #[default]
    Streams,
    /// One call after another.
    Serial,
}

/// When to fill memory that the window allocates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fresh {
    /// Before the run. Calls overlap as recorded.
    #[default]
    Once,
    /// Also at every allocation, so that a call cannot read old data at a reused address.
    EachTime,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// GPU time from the first call to the last.
    pub device_time: Duration,
    /// Host time until all work was finished.
    pub host_time: Duration,
    /// What memory was compared with.
    pub against: Against,
    /// Number of calls.
    pub commands: usize,
    /// The result of the comparison.
    pub verdict: Verdict,
}

impl<'r> Replay<'r> {
    /// Allocates the memory and loads the modules.
    ///
    /// # Errors
    ///
    /// If something blocks the replay, or if the driver reports an error.
    pub fn prepare(recording: &'r mut Recording, plan: &'r Plan, ordinal: u32) -> Result<Self, Error> {
        Self::prepare_at(recording, plan, ordinal, Placing::Exact)
    }

    /// Like [`prepare`](Self::prepare). Memory may be relocated if its address is not available.
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

    /// Sets the order of the next runs.
    pub fn set_order(&mut self, order: Order) {
        self.order = order;
    }

    pub(crate) fn order(&self) -> Order {
        self.order
    }

    /// Runs calls one after another while `body` runs.
    pub(crate) fn serially<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        let order = std::mem::replace(&mut self.order, Order::Serial);
        let result = body(self);
        self.order = order;
        result
    }

    /// The recording.
    pub fn recording(&self) -> &Recording {
        self.recording
    }

    /// The module of the kernel that a call launches.
    pub(crate) fn code_of(&mut self, command: &Command) -> Result<Vec<u8>, Error> {
        self.plan.code_of(self.recording, command)
    }

    /// The size of the device memory.
    pub fn bytes(&self) -> u64 {
        self.stage.bytes()
    }

    /// Restores the memory, runs all calls and compares.
    ///
    /// # Errors
    ///
    /// If the driver reports an error. The error contains the call.
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

    /// Runs calls and waits for them. Returns the GPU time and the host time.
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

    /// Records the end after all streams have finished.
    fn mark_end(&self) -> Result<(), tracesmith_cuda::Error> {
        for stream in self.streams.values() {
            let event = self.context.event()?;
            event.record(stream)?;
            self.marks.wait(&event)?;
        }
        self.end.record(&self.marks)
    }

    /// Issues the calls at these positions.
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

    /// The stream of a call. `None` is the default stream.
    pub(crate) fn stream(&self, command: &Command) -> Option<&Stream> {
        if let Some(stream) = &self.captured {
            return Some(stream);
        }
        match self.order {
            Order::Streams => self.streams.get(&command.stream),
            Order::Serial => None,
        }
    }

    /// The current contents of memory.
    ///
    /// # Errors
    ///
    /// If the recording does not contain this memory, or if the driver reports an error.
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

    /// Restores the memory and runs the calls before a position.
    ///
    /// # Errors
    ///
    /// If the driver reports an error.
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

    /// Checks that pinned host memory used by kernels is at its recorded address.
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

    /// The current address of memory.
    pub(crate) fn place(&self, address: u64) -> u64 {
        let behind = self.moved.partition_point(|moved| moved.was.start <= address);
        let moved = behind.checked_sub(1).map(|before| &self.moved[before]);
        match moved.filter(|moved| moved.was.contains(&address)) {
            Some(moved) => moved.is + (address - moved.was.start),
            None => self.stage.place(address),
        }
    }

    /// Restores the memory of the window's start. Memory without recorded contents gets the fill pattern, so that no
    /// results of an earlier run remain.
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

    /// Issues one call.
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
            CommandKind::TEXTURE => self.redefine_texture(command),
            // Memory is mapped from start to end, and attributes are set when a kernel is loaded.
            _ => Ok(()),
        }
    }

    /// Fills newly allocated memory with the pattern, if requested. Host memory keeps the contents that it had before
    /// the program pinned it.
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
            // The program had changed host memory that the kernel uses.
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

    /// The parameters of a launch, with addresses of relocated memory.
    pub(crate) fn parameters(&self, command: &Command) -> Vec<u8> {
        let mut parameters = command.parameters.clone();
        if !self.moved.is_empty() || !self.stage.shifted().is_empty() {
            for bytes in parameters.as_chunks_mut::<8>().0 {
                *bytes = self.place(u64::from_le_bytes(*bytes)).to_le_bytes();
            }
        }
        parameters
    }

    /// Waits on the host for the work that the program waited for.
    fn host_waits(&self, command: &Command) -> Result<(), Error> {
        match (command.value, self.events.get(&command.object)) {
            (WAIT_FOR_STREAM, _) => self.wait_for(command.stream),
            (WAIT_FOR_EVENT, Some(event)) => event.synchronize().map_err(Error::device("waiting")),
            // An event that was recorded before the window has completed.
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

    /// An event that was recorded before the window has completed.
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

/// The contents are shorter than the piece.
pub(crate) fn missing_content(piece: &Piece) -> Error {
    Error::Missing(format!("the complete contents of memory at {:#x}", piece.address))
}

/// The host memory that contains an address.
pub(crate) fn host_slice(host: &mut FxHashMap<u64, Vec<u8>>, address: u64, bytes: u64) -> Option<&mut [u8]> {
    host.iter_mut().find_map(|(base, memory)| {
        let offset = address.checked_sub(*base)? as usize;
        memory.get_mut(offset..offset.checked_add(bytes as usize)?)
    })
}

/// The nodes of the graph that a call launches. `None` if it is not a graph launch, or if nodes are missing.
pub(crate) fn nodes_of<'c>(command: &Command, behind: &'c [Command]) -> Option<&'c [Command]> {
    if command.kind != CommandKind::GRAPH {
        return None;
    }
    let count = behind
        .iter()
        .take_while(|node| node.graph == command.number)
        .count();
    let nodes = &behind[..count];
    // Otherwise the nodes are run one by one, in the requested order.
    (count as u64 == command.bytes && nodes.is_sorted_by_key(|node| node.number)).then_some(nodes)
}
