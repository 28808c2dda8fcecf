//! The CUDA backend: CUPTI's records and callbacks.
//!
//! - [`multiplexer`]: the one client that CUPTI sees, for TraceSmith and for a
//!   profiler in the program.
//! - [`client_selection`]: the activity kinds that each of them has enabled.
//! - [`in_process_client`]: the profiler in the program.
//! - [`earlier`]: one that used CUPTI before this library was loaded.
//! - [`buffers`]: the memory that CUPTI fills.
//! - [`flush`]: getting it back.
//! - [`kinds`]: the activity kinds and functions of each capture kind.
//! - [`calls`]: API calls, recorded by callbacks.
//! - [`waits`]: waits and events, recorded by callbacks.
//! - [`edges`]: dependencies between nodes of graphs.
//! - [`pattern`]: patterns of kernel names.
//! - [`times`]: timestamps that CUPTI takes only on request.
//! - [`translate`]: from CUPTI's records to ours.
//! - [`resources`]: callbacks about modules, contexts, streams and graphs.
//! - [`injected`]: whether another tool uses this process.
//! - [`interpose`], [`lookup`], [`symbols`]: the functions that the program finds
//!   instead of CUPTI's.
//! - [`tables`], [`imports`], [`image`]: memory that CUPTI gets without delay while
//!   it subscribes.

mod buffers;
mod calls;
mod client_selection;
mod earlier;
mod edges;
mod flush;
mod image;
mod imports;
mod in_process_client;
mod injected;
mod interpose;
pub(crate) mod kinds;
mod lookup;
mod multiplexer;
mod pattern;
mod resources;
mod symbols;
mod tables;
mod times;
mod translate;
mod waits;

use std::{
    ffi::{CStr, c_void},
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

pub(crate) use buffers::POOL_BYTES as BUFFER_POOL_BYTES;
use earlier::Refusal;
use edges::Edges;
pub(crate) use injected::withdraw;
use multiplexer::{Client, CuptiMultiplexer, Reason};
use pattern::KernelPattern;
use times::Times;
use tracesmith_cuda::cupti::{ContextHandle, StreamHandle, Switch, abi};
use tracesmith_wire::{
    control::{CaptureRange, Kinds, Settings},
    record::{ClockPair, StreamName},
};
use waits::Waits;

use crate::{
    agent::Agent,
    backend::{Backend, Flush},
    clock, facts,
    guard::lock,
    replay_capture::Watched,
    sink::Cause,
    wait_limit::WaitLimit,
};

/// For threads to return from calls whose callbacks are on. The kinds of GPU work
/// are disabled after that, so that work which these calls launch is recorded too.
const CALL_WAIT_LIMIT: WaitLimit = WaitLimit {
    control_thread: Duration::from_millis(10),
    program_thread: Duration::from_millis(2),
};

/// The note when CUPTI is left to another profiler.
const ASIDE: &str = "the program started a profiler that cannot share CUPTI with us (cuptiSubscribe_v2): GPU work is not \
                     recorded from there on";

/// The note if latency timestamps were requested and are not available.
const NO_LATENCY: &str = "when launches were queued and submitted is not recorded: before CUPTI 13.4 Update 1 asking for it \
                          can stop the program for good";

/// The note in the child of a fork whose parent had opened CUPTI. CUDA of the parent cannot be used there either.
const FORKED: &str = "this process is a fork of one in which CUPTI was in use, and neither CUDA nor CUPTI works after a fork: \
                      GPU work is not recorded; start the process with the method 'spawn', or fork before the first recording";

/// The CUDA backend: CUPTI, as this process uses it.
#[derive(Default)]
pub(crate) struct Cuda {
    /// Whether the driver is loaded.
    loaded: AtomicBool,
    /// Why CUPTI was left to another profiler.
    aside: OnceLock<String>,
    /// The kernel whose launches are recorded.
    wanted_kernel: Mutex<Option<KernelPattern>>,
    /// Dependencies between nodes of graphs.
    edges: Edges,
    /// Waits and events.
    waits: Waits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: bool,
    kinds: Vec<u32>,
    /// Functions whose calls are recorded by their callbacks.
    calls: kinds::Functions,
    /// Functions that wait, or are about events.
    waits: Vec<u32>,
    /// Functions whose callers' stacks are captured.
    callers: Vec<u32>,
    /// Functions that replay capture needs.
    kept: Watched,
    /// Functions that launch kernels, if launches open the window.
    launches: Vec<u32>,
}

/// The child of a fork has no CUPTI.
pub(crate) fn forked() {
    multiplexer::forget();
}

impl Backend for Cuda {
    /// The driver is being initialised.
    fn driver_loaded(&self) {
        self.loaded.store(true, Ordering::Release);
        interpose::patch_loaded();
    }

    /// CUPTI's first subscription is over before threads of the program can be in the way of it: see [`tables`].
    fn prepare(&self) {
        if self.aside().is_some() || multiplexer::is_of_parent() {
            return;
        }
        // What is wrong is told when a window opens.
        let Ok(multiplexer) = CuptiMultiplexer::open() else {
            return;
        };
        interpose::patch_loaded();
        multiplexer.subscribe_once();
    }

    /// Prepares CUPTI for a window. Does nothing before the driver is there.
    fn open(&self, agent: &Agent, settings: &Settings) -> Result<(), String> {
        if let Some(words) = self.aside() {
            agent.sink.note(Cause::Conflict, words);
            return Err(words.to_owned());
        }
        if !self.loaded.load(Ordering::Acquire) {
            return Ok(());
        }
        if multiplexer::is_of_parent() {
            agent.sink.note(Cause::Unavailable, FORKED);
            return Err(FORKED.to_owned());
        }
        let mut state = lock(&self.state);
        if state.open {
            return Ok(());
        }
        let multiplexer = match CuptiMultiplexer::open() {
            Ok(multiplexer) => multiplexer,
            Err(error) => {
                let words = format!("CUPTI cannot be used: {error}");
                agent.sink.note(Cause::Unavailable, &words);
                return Err(words);
            }
        };
        interpose::patch_loaded();
        facts::send_process_fact(
            &agent.sink,
            "cupti.path",
            &multiplexer.cupti().path().display().to_string(),
        );
        facts::send_process_fact(
            &agent.sink,
            "cupti.version",
            &multiplexer.cupti().version().to_string(),
        );
        if let Err(error) = multiplexer.attach() {
            let words = conflict(&error);
            agent.sink.note(Cause::Conflict, &words);
            return Err(words);
        }
        if let Some(state) = earlier::taken_over() {
            facts::send_process_fact(&agent.sink, "cupti.earlier_client", &state);
        }
        for object in kinds::OBJECTS {
            // Streams and contexts then have numbers and nothing else.
            let _ = multiplexer.enable_objects(object);
        }
        // What they tell of devices is not to wait in a buffer for a kernel that takes long while others refer to it. A
        // failure shows again, and is told, when the window closes.
        let _ = flush::complete(multiplexer);
        if settings.kinds.contains(Kinds::KERNELS) && !settings.kinds.contains(Kinds::WHOLE_GRAPHS) {
            // A graph that is instantiated before the window may run in it.
            self.edges.clear();
            multiplexer.watch(Reason::GraphEdges, edges::WATCHED, Switch::On);
        }
        if settings.range == CaptureRange::ProfilerApi {
            // If CUPTI refuses, the window never opens, which its emptiness shows.
            multiplexer.watch_driver(Reason::ProfilerRange, &resources::PROFILER_CALLS, Switch::On);
        }
        if let CaptureRange::Launch { pattern } = &settings.range {
            state.launches = kinds::launches(multiplexer.cupti());
            multiplexer.watch_driver(Reason::LaunchRange, &state.launches, Switch::On);
            *lock(&self.wanted_kernel) = Some(KernelPattern::new(pattern));
        }
        if settings.kinds.contains(Kinds::REPLAY_CAPTURE) {
            match agent.replay_capture.open(multiplexer.cupti(), settings) {
                Ok(watched) => {
                    state.kept = watched;
                    multiplexer.watch_driver(Reason::ReplayCapture, &state.kept.always, Switch::On);
                    multiplexer.watch(Reason::ReplayCapture, resources::REPLAY_MODULES, Switch::On);
                }
                Err(words) => agent.sink.note(Cause::Unavailable, &words),
            }
        }
        state.open = true;
        Ok(())
    }

    fn is_open(&self) -> bool {
        lock(&self.state).open
    }

    /// Starts the records.
    fn begin(&self, agent: &Agent, settings: &Settings) {
        let mut state = lock(&self.state);
        let Some(multiplexer) = multiplexer::current().filter(|_| state.open) else {
            return;
        };
        agent.replay_capture.begin();
        multiplexer.watch_driver(Reason::ReplayCapture, &state.kept.in_window, Switch::On);
        multiplexer.begin_ours();
        if settings.kinds.contains(Kinds::LATENCY) {
            if kinds::can_ask_latency(multiplexer.cupti().version()) {
                note_error(
                    agent,
                    times::set(multiplexer, Client::TraceSmith, Times::Launches, Switch::On),
                );
            } else {
                agent.sink.note(Cause::Unavailable, NO_LATENCY);
            }
        }
        if kinds::has_sync_callbacks(settings.kinds) {
            state.waits = self.waits.begin(multiplexer.cupti());
            multiplexer.watch_driver(Reason::Waits, &state.waits, Switch::On);
        } else if settings.kinds.contains(Kinds::SYNCS) {
            // Absent before CUDA 12.8, where event records have no times.
            let _ = times::set(multiplexer, Client::TraceSmith, Times::Events, Switch::On);
        }
        if settings.kinds.contains(Kinds::MODULES) {
            multiplexer.watch(Reason::Resources, resources::RESOURCES, Switch::On);
        }
        if settings.kinds.contains(Kinds::STACKS) {
            agent.stacks.begin(settings.kinds, &agent.sink);
            state.callers = kinds::with_stacks(multiplexer.cupti());
            // Those calls are without a stack, and nodes have that of their launch.
            let unwatched = multiplexer.watch_driver(Reason::Stacks, &state.callers, Switch::On)
                + multiplexer.watch(Reason::Stacks, resources::STACKED_NODES, Switch::On);
            if unwatched > 0 {
                let words =
                    format!("calls of {unwatched} functions have no stack: CUPTI does not tell of them");
                agent.sink.note(Cause::Unavailable, &words);
            }
        }
        state.kinds = kinds::wanted(settings.kinds);
        calls::begin();
        if settings.kinds.contains(Kinds::API) && !settings.kinds.contains(Kinds::API_QUERIES) {
            state.calls = kinds::work(multiplexer.cupti());
            multiplexer.watch_calls(&state.calls, Switch::On);
        }
        for kind in &state.kinds {
            if let Err(error) = multiplexer.enable(Client::TraceSmith, *kind)
                && kinds::is_expected(*kind)
            {
                agent
                    .sink
                    .note(Cause::Unavailable, &format!("activity kind {kind}: {error}"));
            }
        }
    }

    /// Ends the records and hands over what there is.
    fn end(&self, agent: &Agent) {
        let mut state = lock(&self.state);
        let Some(multiplexer) = multiplexer::current().filter(|_| state.open) else {
            return;
        };
        agent.replay_capture.end();
        let calls = std::mem::take(&mut state.calls);
        if !calls.is_empty() {
            calls::end(multiplexer.cupti().timestamp());
        }
        // Before the callbacks are disabled, one by one: a wait that begins now has no call in the trace.
        self.waits.end();
        multiplexer.watch_calls(&calls, Switch::Off);
        multiplexer.watch_driver(Reason::Waits, &std::mem::take(&mut state.waits), Switch::Off);
        multiplexer.watch(Reason::Resources, resources::RESOURCES, Switch::Off);
        let callers = std::mem::take(&mut state.callers);
        multiplexer.watch_driver(Reason::Stacks, &callers, Switch::Off);
        multiplexer.watch(Reason::Stacks, resources::STACKED_NODES, Switch::Off);
        multiplexer.watch_driver(Reason::ReplayCapture, &state.kept.in_window, Switch::Off);
        let mut quiet = 0;
        CALL_WAIT_LIMIT.until(|| {
            multiplexer.settle();
            // A call that CUPTI has just noted is told to us a moment later.
            quiet = if multiplexer.is_waiting() { 0 } else { quiet + 1 };
            quiet == 2
        });
        multiplexer.forget_calls(&calls);
        for kind in std::mem::take(&mut state.kinds) {
            // A kind that could not be enabled cannot be disabled.
            let _ = multiplexer.disable(Client::TraceSmith, kind);
        }
        times::leave(multiplexer, Client::TraceSmith);
        note_error(agent, flush::all(multiplexer));
        multiplexer.accept_only(&kinds::OBJECTS);
        agent.stacks.end(&agent.sink);
    }

    /// The window is closed: CUPTI is told to leave the program alone, unless the
    /// program uses it itself.
    ///
    /// It stays in the process, and a launch of an empty kernel costs a
    /// microsecond more than before (H200, CUPTI 13.0). `cuptiFinalize` would take
    /// it out, but what it keeps for other threads outlives that, and training
    /// loops of PyTorch die of it in later windows.
    fn close(&self, agent: &Agent) {
        let mut state = lock(&self.state);
        let Some(multiplexer) = multiplexer::current().filter(|_| state.open) else {
            return;
        };
        state.open = false;
        if !state.kept.always.is_empty() {
            let kept = std::mem::take(&mut state.kept);
            multiplexer.watch_driver(Reason::ReplayCapture, &kept.always, Switch::Off);
            multiplexer.watch(Reason::ReplayCapture, resources::REPLAY_MODULES, Switch::Off);
            agent.replay_capture.close();
        }
        for object in kinds::OBJECTS {
            // One that could not be enabled cannot be disabled.
            let _ = multiplexer.disable(Client::TraceSmith, object);
        }
        multiplexer.refuse();
        multiplexer.watch(Reason::GraphEdges, edges::WATCHED, Switch::Off);
        multiplexer.watch_driver(Reason::ProfilerRange, &resources::PROFILER_CALLS, Switch::Off);
        let launches = std::mem::take(&mut state.launches);
        multiplexer.watch_driver(Reason::LaunchRange, &launches, Switch::Off);
        if multiplexer.is_ours_alone() {
            multiplexer.release();
        }
    }

    fn flush(&self, flush: Flush) {
        let state = lock(&self.state);
        let Some(multiplexer) = multiplexer::current().filter(|_| state.open) else {
            return;
        };
        // A failure shows again, and is reported, when the window closes.
        let _ = match flush {
            Flush::Complete => flush::complete(multiplexer),
            Flush::BeforeExit => flush::complete_soon(multiplexer),
        };
    }

    fn clock_pair(&self) -> Option<ClockPair> {
        let state = lock(&self.state);
        let multiplexer = multiplexer::current().filter(|_| state.open)?;
        Some(clock::pair(|| multiplexer.cupti().timestamp()))
    }

    /// Whether nothing of a window that was closed is left to do.
    fn is_settled(&self) -> bool {
        multiplexer::current().is_none_or(CuptiMultiplexer::is_settled)
    }

    /// Does what is left of a window that was closed, as far as threads of the
    /// program are out of the calls that they were in.
    fn settle(&self) {
        if let Some(multiplexer) = multiplexer::current().filter(|multiplexer| !multiplexer.is_settled()) {
            multiplexer.settle();
        }
    }

    /// Leaves CUPTI to another profiler, for good: it would be ruined again by
    /// the next window.
    fn release(&self, agent: &Agent) {
        if self.aside.set(ASIDE.to_owned()).is_err() {
            return;
        }
        self.end(agent);
        if let Some(pair) = self.clock_pair() {
            agent.sink.define(&pair);
        }
        let mut state = lock(&self.state);
        let was_open = std::mem::take(&mut state.open);
        if let Some(multiplexer) = multiplexer::current() {
            multiplexer.release_now();
        }
        if was_open {
            agent.sink.note(Cause::Conflict, ASIDE);
        }
    }

    /// The program gives a stream a name.
    fn name_stream(&self, agent: &Agent, stream: *mut c_void, name: &[u8]) {
        let Some(multiplexer) = multiplexer::current() else {
            return;
        };
        let current = ContextHandle(0);
        if let Some(stream) = multiplexer
            .cupti()
            .stream_id(current, StreamHandle(stream as usize))
        {
            let context = multiplexer.cupti().context_id(current).unwrap_or(0);
            agent.sink.define_with(&StreamName { context, stream }, name);
        }
    }
}

impl Cuda {
    /// Why CUPTI is left to another profiler, if it is.
    fn aside(&self) -> Option<&str> {
        if let Some(other) = injected::other() {
            self.aside.get_or_init(|| {
                let other = other.display();
                format!(
                    "another tool has this process (CUDA_INJECTION64_PATH is {other}): GPU work is not recorded, so that it \
                     keeps its data"
                )
            });
        }
        self.aside.get().map(String::as_str)
    }

    /// Whether the launch of a kernel opens and closes the window.
    fn wants_kernel(&self, symbol: &CStr) -> bool {
        let wanted = lock(&self.wanted_kernel);
        wanted
            .as_ref()
            .is_some_and(|wanted| wanted.fits(symbol.to_bytes()))
    }
}

fn note_error(agent: &Agent, result: Result<(), tracesmith_cuda::Error>) {
    if let Err(error) = result {
        agent.sink.note(Cause::Unavailable, &error.to_string());
    }
}

fn conflict(error: &tracesmith_cuda::Error) -> String {
    if error.code() == Some(i64::from(abi::result::MULTIPLE_SUBSCRIBERS)) {
        return earlier::refusal().unwrap_or(Refusal::Subscribed).words();
    }
    format!("CUPTI cannot be used: {error}")
}
