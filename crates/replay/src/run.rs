//! Runs a plan on a device.

mod issue;
mod memory;

use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use tracesmith_cuda::driver::{
    Context, Driver, Event, FixedAddressMemory, Function, Graph, HostMemory, Placing, Stream, StreamMake,
};
use tracesmith_cuda::kernels::Delayer;
use tracesmith_format::tables::CommandKind;

use crate::error::Error;
use crate::load;
use crate::pace::Start;
use crate::part::Against;
use crate::plan::Plan;
use crate::progress::ProgressFn;
use crate::race::DelayedStream;
use crate::recording::{Command, Recording};
use crate::relocate::Moves;
use crate::snapshots::Snapshots;
use crate::textures::Textures;
use crate::tolerance::Tolerance;
use crate::verdict::Verdict;
use crate::watch::Watch;
pub(crate) use memory::{host_slice, missing_content};

/// Handles of the default streams.
const LEGACY: [u64; 2] = [0, 1];

/// The fill pattern for memory without recorded contents. It overwrites results of an earlier run. It is not
/// zero, because many kernels write zeros.
pub(crate) const PATTERN: u8 = 0xA5;

/// A recording on a device, ready to run any number of times.
pub struct Replay<'r> {
    pub(crate) recording: &'r mut Recording,
    plan: &'r Plan,
    pub(crate) stage: FixedAddressMemory,
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
        let mut stage = FixedAddressMemory::at(&context, &plan.memory, &plan.host, placing)
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
}

/// Whether there is a GPU to replay on.
pub fn has_device(ordinal: u32) -> bool {
    Driver::open().is_ok_and(|driver| driver.device(ordinal).is_ok())
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
