//! Captures the data that a replay of a window needs.
//!
//! Every driver call that does work is sent with its arguments, in the order in
//! which the program makes them. Memory that such a call can reach (an address in a
//! kernel's parameters, or in memory that is reachable itself) is read before the
//! first call that can reach it, and again when the window ends. A thread that
//! makes such a call meanwhile waits. A capture is slow, but correct.
//!
//! - [`functions`]: what each driver function does.
//! - [`calls`]: calls as commands.
//! - [`copies`]: memcpys and memsets as commands.
//! - [`graphs`]: the work of launched graphs.
//! - [`stalled`]: kernels that wait until memory is read.
//! - [`memory`]: reachable memory, and its contents.
//! - [`modules`]: the module of each kernel.
//! - [`own_calls`]: driver calls that the capture makes itself.
//! - [`regions`]: where memory may be that was allocated before the capture.
//! - [`textures`]: textures, surfaces and arrays.
//! - [`variables`]: module globals.

mod arguments;
mod calls;
mod copies;
mod foreign;
mod functions;
mod graphs;
mod memory;
mod modules;
mod own_calls;
mod regions;
mod stalled;
mod textures;
mod variables;

use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use foreign::{Collectives, Stub};
use functions::Action;
use graphs::Graphs;
use memory::Memory;
use modules::{Module, Modules, Reports, SharedReports};
use own_calls::OwnCalls;
use stalled::StalledKernel;
use tracesmith_cuda::{
    cupti::{
        Cupti,
        abi::{ApiCallback, SITE_EXIT},
    },
    driver::{FunctionHandle, Parameter, TargetDriver},
};
use tracesmith_wire::{
    Capacity, Producer, Pushed, Tag,
    control::{Kinds, Settings},
    handshake::{self, Purpose},
    record::{Payload, ReplayCaptureBegin, ReplayCaptureEnd},
};

use crate::{clock, guard::lock, threads, wait_limit::WaitLimit};

/// How long the collector may take to grant it.
const GRANT_LIMIT: Duration = Duration::from_secs(2);

/// How long calls in progress may take to return when a window ends. A copy that blocks waits for the kernels before it.
const RETURN_LIMIT: WaitLimit = WaitLimit {
    control_thread: Duration::from_secs(10),
    program_thread: Duration::from_secs(2),
};

/// Bytes of one record with contents.
pub(super) const PIECE_BYTES: usize = 256 << 10;

thread_local! {
    /// The callback in which this thread makes calls of our own; 0 for none.
    static INSIDE: Cell<u64> = const { Cell::new(0) };
}

/// Callbacks in which calls of our own were made.
static CALLBACKS: AtomicU64 = AtomicU64::new(0);

/// When callbacks were on first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    /// Before the program's first call.
    Start,
    /// After some of the program's calls.
    Late,
}

/// The replay capture of this process.
pub(crate) struct ReplayCapture {
    since: Since,
    /// Whether calls are watched.
    on: AtomicBool,
    state: Mutex<Option<State>>,
    /// Never locked while the driver is called.
    reports: SharedReports,
}

/// Driver functions that the capture needs, by callback ID.
#[derive(Default)]
pub(crate) struct Watched {
    /// From the opening of the window on: memory, modules and graphs.
    pub(crate) always: Vec<u32>,
    /// While records are made.
    pub(crate) in_window: Vec<u32>,
}

struct State {
    producer: Producer,
    driver: TargetDriver,
    actions: HashMap<u32, Action>,
    /// By the context too: what stands for a function has one in each.
    functions: HashMap<(u32, FunctionHandle), Arc<Function>>,
    memory: Memory,
    graphs: Graphs,
    modules: Modules,
    reports: SharedReports,
    /// Streams whose making was told.
    streams: HashSet<u64>,
    /// What the node of a graph follows that is told next.
    follows: Vec<u8>,
    collectives: Collectives,
    stub: Option<Stub>,
    since: Since,
    stalled: StalledKernel,
    /// The context of the last call: the handle.
    context: usize,
    /// Whether commands are told; else only memory and modules are kept in mind.
    is_window: bool,
    /// The window ends as soon as the calls in progress return. No call begins meanwhile.
    is_ending: bool,
    /// Calls that change memory, were sent as commands and have not returned: thread and correlation.
    in_progress: Vec<(u32, u32)>,
    is_begun: bool,
    /// One window is recorded, and no second one.
    is_over: bool,
    commands: u64,
    /// Why the capture is incomplete.
    broken: Option<String>,
}

/// What is known of a kernel.
struct Function {
    name: Box<[u8]>,
    parameters: Vec<Parameter>,
    module: Module,
}

/// Whether this thread makes calls of our own just now.
#[inline]
pub(crate) fn is_inside() -> bool {
    INSIDE.try_with(Cell::get).unwrap_or(0) != 0
}

/// Runs `body` with callbacks of its own calls told apart.
fn inside<T>(body: impl FnOnce() -> T) -> T {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            // A thread that is being torn down makes no calls any more.
            let _ = INSIDE.try_with(|inside| inside.set(0));
        }
    }
    let callback = CALLBACKS.fetch_add(1, Ordering::Relaxed) + 1;
    let _ = INSIDE.try_with(|inside| inside.set(callback));
    let _leave = Leave;
    body()
}

impl ReplayCapture {
    pub(crate) fn new(since: Since) -> Self {
        Self {
            since,
            on: AtomicBool::new(false),
            state: Mutex::new(None),
            reports: SharedReports::default(),
        }
    }

    /// A window opens that is to be recorded: from now on memory and modules are
    /// kept in mind. Gives back the functions whose calls must be told.
    pub(crate) fn open(&self, cupti: &Cupti, settings: &Settings) -> Result<Watched, String> {
        let capacity = Capacity::REPLAY_CAPTURE;
        let producer = handshake::connect(&settings.collector, Purpose::ReplayCapture, capacity, GRANT_LIMIT)
            .map_err(|error| format!("the collector gave no ring for the recording: {error}"))?;
        let driver = TargetDriver::open().map_err(|error| error.to_string())?;
        let actions = functions::watched(cupti);
        let mut watched = Watched::default();
        for (id, action) in &actions {
            let list = if action.is_watched_before() {
                &mut watched.always
            } else {
                &mut watched.in_window
            };
            list.push(*id);
        }
        lock(&OWN).clear();
        *lock(&self.reports) = Reports::default();
        *lock(&self.state) = Some(State {
            producer,
            driver,
            actions: actions.into_iter().collect(),
            functions: HashMap::new(),
            memory: Memory::default(),
            graphs: Graphs::default(),
            modules: Modules::default(),
            reports: self.reports.clone(),
            streams: HashSet::new(),
            follows: Vec::new(),
            collectives: if settings.kinds.contains(Kinds::STUB_COLLECTIVES) {
                Collectives::Stubbed
            } else {
                Collectives::Refused
            },
            stub: None,
            since: self.since,
            stalled: StalledKernel::default(),
            context: 0,
            is_window: false,
            is_ending: false,
            in_progress: Vec::new(),
            is_begun: false,
            is_over: false,
            commands: 0,
            broken: None,
        });
        self.on.store(true, Ordering::Release);
        Ok(watched)
    }

    /// Whether calls are watched.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Acquire)
    }

    /// Commands are told from now on.
    pub(crate) fn begin(&self) {
        if let Some(state) = lock(&self.state).as_mut().filter(|state| !state.is_over) {
            state.is_window = true;
            state.memory.begin(state.since);
        }
    }

    /// Ends the window: waits for the calls in progress, then reads what has become of the memory.
    pub(crate) fn end(&self) {
        match lock(&self.state).as_mut().filter(|state| state.is_window) {
            Some(state) => state.is_ending = true,
            None => return,
        }
        let has_returned = self.await_calls();
        let mut guard = lock(&self.state);
        let Some(state) = guard.as_mut() else { return };
        if !has_returned {
            state.mark_incomplete("a call that began in the window did not return in time");
        }
        state.in_progress.clear();
        state.is_ending = false;
        state.is_window = false;
        state.is_over = true;
        state.take_reports();
        let (driver, context) = (state.driver.clone(), state.context);
        let read = || {
            // To read memory is to wait for the GPU, which may wait for the call.
            if has_returned {
                state.read_end();
            }
            state.free_stall();
        };
        if context != 0 && inside(|| driver.within(context, read)).is_none() {
            state.mark_incomplete("the program's context is gone");
        }
        let broken = state.broken.take();
        let end = ReplayCaptureEnd {
            time: clock::now(),
            commands: state.commands,
            bytes: state.memory.read_bytes,
            nanos: u64::try_from(state.memory.read_time.as_nanos()).unwrap_or(u64::MAX),
            broken: u32::from(broken.is_some()),
            reserved: 0,
        };
        state.send(&end, &[broken.unwrap_or_default().as_bytes()]);
    }

    /// Waits until no other thread is in a call that changes memory. False after the limit: such a call may wait for what
    /// a thread does that is held up here, and nothing may wait for ever.
    fn await_calls(&self) -> bool {
        let thread = threads::thread_id();
        RETURN_LIMIT.until(|| {
            let guard = lock(&self.state);
            (guard.as_ref()).is_none_or(|state| state.in_progress.iter().all(|(of, _)| *of == thread))
        })
    }

    /// The window is closed.
    pub(crate) fn close(&self) {
        self.on.store(false, Ordering::Release);
        *lock(&self.state) = None;
    }

    /// A call of our own begins or ends, at a time of CUPTI's clock: its records are not the program's.
    #[cold]
    pub(crate) fn note_own(&self, call: &ApiCallback, name: &[u8], time: u64) {
        let callback = INSIDE.try_with(Cell::get).unwrap_or(0);
        if call.site == SITE_EXIT {
            lock(&OWN).end(call.correlation, callback, time);
        } else {
            let creates_stream = name.starts_with(b"cuStreamCreate");
            lock(&OWN).begin(call.correlation, callback, time, creates_stream);
        }
    }

    /// Whether a record with these times is of a call of our own.
    #[inline]
    pub(crate) fn is_own(&self, correlation: u32, start: u64, end: u64) -> bool {
        self.is_on() && lock(&OWN).holds(correlation, start, end)
    }

    /// Whether a stream was created by a call of our own.
    pub(crate) fn is_own_stream(&self, correlation: u32) -> bool {
        self.is_on() && lock(&OWN).created_stream(correlation)
    }

    /// Whether the code of a module is known.
    pub(crate) fn knows_module(&self, context: u32, module: u32) -> bool {
        lock(&self.reports).knows((context, module))
    }

    /// Code was loaded, or is used that was loaded before.
    pub(crate) fn module_loaded(&self, context: u32, module: u32, hash: u128, code: &[u8]) {
        modules::note_in_call((context, module));
        lock(&self.reports).loaded((context, module), hash, code);
    }

    /// Code that is known is used for the first time.
    pub(crate) fn module_used(&self, context: u32, module: u32) {
        modules::note_in_call((context, module));
    }

    /// Code is going to be unloaded.
    pub(crate) fn module_unloaded(&self, context: u32, module: u32) {
        lock(&self.reports).unloaded((context, module));
    }
}

static OWN: Mutex<OwnCalls> = Mutex::new(OwnCalls::new());

impl State {
    /// Tells a record with what stands behind it. The first that finds no room
    /// marks the capture incomplete: the collector has stopped reading.
    fn send<T: Payload>(&mut self, record: &T, behind: &[&[u8]]) {
        let mut bytes =
            Vec::with_capacity(size_of::<T>() + behind.iter().map(|part| part.len()).sum::<usize>());
        bytes.extend_from_slice(record.as_bytes());
        for part in behind {
            bytes.extend_from_slice(part);
        }
        if self.producer.push(Tag::from(T::KIND), &bytes) == Pushed::Dropped {
            self.mark_incomplete("the collector did not read fast enough");
        }
    }

    /// The first call within the window: tells how much there is to reach.
    fn send_begin(&mut self) {
        if !self.is_window || std::mem::replace(&mut self.is_begun, true) {
            return;
        }
        let known = self.memory.bytes();
        let bytes = match self.since {
            Since::Start => known,
            // What was taken before is not known; what the device has given out is.
            Since::Late => self.driver.used_bytes().map_or(known, |used| used.max(known)),
        };
        let begin = ReplayCaptureBegin {
            time: clock::now(),
            bytes,
        };
        self.send(&begin, &[]);
    }

    fn mark_incomplete(&mut self, why: &str) {
        self.broken.get_or_insert_with(|| why.to_owned());
    }
}

impl std::fmt::Debug for ReplayCapture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplayCapture")
            .field("on", &self.on)
            .finish_non_exhaustive()
    }
}
