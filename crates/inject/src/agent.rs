//! The one state of the process, and the life of a window.
//!
//! It is created when CUDA or NVTX is initialized in a process that was started
//! under a collector or is attachable, or when the process arms itself. It is never freed. A forked child has
//! none, and gets its own if it initializes CUDA itself. So a lock that a thread
//! of the parent held during the fork does not matter.

use std::{
    env,
    path::PathBuf,
    ptr,
    sync::{
        Mutex, MutexGuard, TryLockError,
        atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use tracesmith_wire::{
    control::{BUSY, Settings, armed},
    environment,
    handshake::Listener,
    record::{WINDOW_CLOSED, WINDOW_OPENED, Window},
};

use crate::{
    backend::{Backend, Flush},
    clock, control,
    cuda::{self, Cuda},
    facts,
    guard::{self, lock},
    leaving, nvtx,
    range::{Range, RangeEdge},
    replay_capture::{ReplayCapture, Since},
    sink::{Cause, Sink},
    stacks::{self, Stacks},
    threads::{self, ThreadRings, thread_id},
};

/// How often the clocks are compared.
const PAIR_PERIOD: Duration = Duration::from_secs(1);

/// How often backends try to finish a closed window.
const SETTLE_PERIOD: Duration = Duration::from_millis(50);

/// The note in a trace whose range did not begin or end when it should have.
const EDGE_WAS_MISSED: &str = "the beginning or end of a range was missed: CUPTI was busy for a second";

static CURRENT: AtomicPtr<Agent> = AtomicPtr::new(ptr::null_mut());

/// 0 before the start, 1 while a thread starts the agent, 2 after that.
static STAGE: AtomicU32 = AtomicU32::new(0);

static ARMING: AtomicPtr<Arming> = AtomicPtr::new(ptr::null_mut());

/// The thread that starts the agent.
static STARTER: AtomicU32 = AtomicU32::new(0);

/// The state of capture in this process.
pub(crate) struct Agent {
    /// The rings of the process.
    pub(crate) sink: Sink,
    /// The rings of threads.
    pub(crate) threads: ThreadRings,
    /// The CUDA backend.
    pub(crate) cuda: Cuda,
    /// The program's NVTX ranges and marks.
    pub(crate) nvtx: nvtx::State,
    /// The stacks of callers.
    pub(crate) stacks: Stacks,
    /// The data that a replay of the window needs.
    pub(crate) replay_capture: ReplayCapture,
    process: u32,
    /// Whether backends prepare for a window before one is requested.
    readies: bool,
    /// Where the process waits for collectors, if not where the environment says.
    runtime_directory: Option<PathBuf>,
    /// Whether the open window records ordered ranges. Without such a window an order needs no lock, and none is missed.
    takes_orders: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    window: Option<Open>,
    exiting: bool,
}

/// An open window.
struct Open {
    settings: Settings,
    range: Range,
    /// When the clocks were compared last.
    last_pair: Option<Instant>,
    is_recording: bool,
}

/// What `tracesmith_arm` was called with. It counts instead of the environment.
pub(crate) struct Arming {
    /// Where to wait for collectors.
    pub(crate) runtime_directory: PathBuf,
    /// Whether backends prepare for a window.
    pub(crate) readies: bool,
}

/// Why there is an agent.
pub(crate) enum Mode {
    /// A collector waits at this socket.
    Collector(PathBuf),
    /// A collector may connect later.
    Armed,
    /// The same, and backends prepare for it.
    Ready,
}

/// The agent, if there is one.
#[inline]
pub(crate) fn current() -> Option<&'static Agent> {
    // SAFETY: null, or a box that was leaked.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// The agent, created if the environment variables request one. Later callers
/// wait for the first, whose handshake has a time limit. The first caller can
/// get here again: functions that it calls may be interposed by another tool.
pub(crate) fn get_or_start() -> Option<&'static Agent> {
    if STAGE
        .compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire)
        .is_ok()
    {
        STARTER.store(thread_id(), Ordering::Release);
        guard::run((), start);
        STAGE.store(2, Ordering::Release);
    }
    while STAGE.load(Ordering::Acquire) == 1 {
        if control::is_own_thread() || STARTER.load(Ordering::Acquire) == thread_id() {
            return current();
        }
        std::thread::yield_now();
    }
    current()
}

/// Arms the process from within, unless it is armed. Returns whether it can be recorded.
pub(crate) fn arm(arming: Arming) -> bool {
    if current().is_none() {
        let arming = Box::into_raw(Box::new(arming));
        if ARMING
            .compare_exchange(ptr::null_mut(), arming, Ordering::AcqRel, Ordering::Acquire)
            .is_err()
        {
            // SAFETY: made above and known to nobody.
            drop(unsafe { Box::from_raw(arming) });
        }
        // NVTX may have asked for an agent before there was a reason for one.
        let _ = STAGE.compare_exchange(2, 0, Ordering::AcqRel, Ordering::Acquire);
        if let Some(agent) = get_or_start() {
            // The driver may be there already, and does not load us any more.
            agent.driver_loaded(&agent.cuda);
        }
    }
    control::accepts_requests()
}

/// The caller's wish, if the process was armed from within.
fn arming() -> Option<&'static Arming> {
    // SAFETY: null, or a box that was leaked.
    unsafe { ARMING.load(Ordering::Acquire).as_ref() }
}

fn mode() -> Option<Mode> {
    if let Some(path) = env::var_os(environment::COLLECTOR).filter(|path| !path.is_empty()) {
        return Some(Mode::Collector(PathBuf::from(path)));
    }
    if let Some(arming) = arming() {
        return Some(if arming.readies { Mode::Ready } else { Mode::Armed });
    }
    let value = env::var_os(environment::ATTACHABLE)?;
    Some(if value == environment::ATTACHABLE_READY {
        Mode::Ready
    } else {
        Mode::Armed
    })
}

fn start() {
    let Some(mode) = mode() else {
        return;
    };
    guard::suppress_panic_output();
    let agent = Box::leak(Box::new(Agent {
        sink: Sink::default(),
        threads: ThreadRings::default(),
        cuda: Cuda::default(),
        nvtx: nvtx::State::default(),
        stacks: Stacks::default(),
        replay_capture: ReplayCapture::new(match mode {
            Mode::Collector(_) => Since::Start,
            Mode::Armed | Mode::Ready => Since::Late,
        }),
        process: std::process::id(),
        readies: matches!(mode, Mode::Collector(_) | Mode::Ready),
        runtime_directory: arming().map(|arming| arming.runtime_directory.clone()),
        takes_orders: AtomicBool::new(false),
        state: Mutex::default(),
    }));
    CURRENT.store(agent, Ordering::Release);
    // SAFETY: a handler that only stores words.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    close_at_exit();
    control::start(agent, mode);
}

/// Closes the window when the process exits. Exit handlers run in reverse order.
/// A library that closing needs must have registered its handlers before. So
/// this is called again when CUPTI is loaded.
pub(crate) fn close_at_exit() {
    // SAFETY: a handler that catches its panics and may run twice.
    unsafe { libc::atexit(exiting) };
    // SAFETY: as above.
    unsafe { at_quick_exit(exiting) };
}

unsafe extern "C" {
    /// As `atexit`, for `quick_exit`.
    fn at_quick_exit(handler: extern "C" fn()) -> libc::c_int;
}

/// In a forked child: forgets everything, so that the child can start anew.
extern "C" fn forked() {
    CURRENT.store(ptr::null_mut(), Ordering::Release);
    // As the variables of an armed process would be gone: the child is armed if it arms itself.
    ARMING.store(ptr::null_mut(), Ordering::Release);
    STAGE.store(0, Ordering::Release);
    leaving::forked();
    threads::forked();
    control::forked();
    nvtx::forked();
    cuda::forked();
    stacks::forked();
}

extern "C" fn exiting() {
    guard::run((), || {
        if let Some(agent) = current() {
            agent.exit();
        }
    });
}

impl Agent {
    /// Opens a window.
    pub(crate) fn open(&self, settings: Settings) -> Result<(), String> {
        let mut state = lock(&self.state);
        if state.window.is_some() {
            return Err(BUSY.to_owned());
        }
        if state.exiting {
            return Err("this process is exiting".to_owned());
        }
        if guard::is_broken() {
            return Err("capture has failed in this process before, by a fault of ours".to_owned());
        }
        self.sink
            .open(&settings)
            .map_err(|error| format!("the collector gave no ring: {error}"))?;
        facts::send_process_start(&self.sink);
        self.threads.open(&settings);
        self.nvtx.announce(&self.sink);
        let range = Range::new(&settings);
        self.takes_orders.store(range.takes_orders(), Ordering::Release);
        for backend in self.backends() {
            // The backend reports an error itself, and the rest is recorded.
            let _ = backend.open(self, &settings);
        }
        let mut open = Open {
            settings,
            range,
            last_pair: None,
            is_recording: false,
        };
        if open.range.starts_open() {
            self.begin(&mut open);
        }
        self.nvtx.watch(&open.range);
        state.window = Some(open);
        Ok(())
    }

    /// Closes the window, if one is open, and flushes its records.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        self.close_locked(&mut state);
    }

    fn close_locked(&self, state: &mut State) {
        let Some(mut open) = state.window.take() else {
            return;
        };
        self.takes_orders.store(false, Ordering::Release);
        self.nvtx.unwatch();
        self.end(&mut open);
        for backend in self.backends() {
            backend.close(self);
        }
        self.threads.close(&self.sink);
        self.sink.close();
    }

    /// The driver of a backend is being initialized: from now on the backend can be
    /// used.
    pub(crate) fn driver_loaded(&self, backend: &dyn Backend) {
        backend.driver_loaded();
        let mut state = lock(&self.state);
        match &mut state.window {
            // The process was armed from within, and the driver loads us now.
            Some(_) if backend.is_open() => {}
            Some(open) => {
                let opened = backend.open(self, &open.settings);
                if open.is_recording && opened.is_ok() {
                    self.begin_backend(backend, open);
                }
            }
            None if self.readies && control::accepts_requests() => backend.prepare(),
            None => {}
        }
    }

    /// A range that may open or close the recording begins or ends.
    pub(crate) fn range_edge(&self, edge: RangeEdge) {
        self.apply_edge(edge, |_| true);
    }

    /// The program or the collector begins or ends a range, in a window that records such ranges.
    pub(crate) fn ordered_edge(&self, edge: RangeEdge) {
        if self.takes_orders.load(Ordering::Acquire) {
            self.apply_edge(edge, Range::takes_orders);
        }
    }

    /// Applies an edge if the range of the open window takes it. Looks at the range and applies the edge under one lock:
    /// between two locks, another window could open.
    fn apply_edge(&self, edge: RangeEdge, takes_edge: impl FnOnce(&Range) -> bool) {
        let Some(mut state) = self.state_soon() else {
            self.sink.note(Cause::Unavailable, EDGE_WAS_MISSED);
            return;
        };
        let Some(open) = state.window.as_mut().filter(|open| takes_edge(&open.range)) else {
            return;
        };
        match (open.range.count_edge(edge), open.is_recording) {
            (true, false) => self.begin(open),
            (false, true) => self.end(open),
            _ => {}
        }
    }

    /// The state, within a second. The caller is a thread of the program, perhaps
    /// within a callback of CUPTI's while our own thread waits for CUPTI: it
    /// does not wait for ever.
    fn state_soon(&self) -> Option<MutexGuard<'_, State>> {
        for _ in 0..1000 {
            match self.state.try_lock() {
                Ok(state) => return Some(state),
                Err(TryLockError::Poisoned(state)) => return Some(state.into_inner()),
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        None
    }

    /// Leaves CUPTI to another profiler that cannot share it.
    pub(crate) fn release_cupti(&self) {
        if let Some(_state) = self.state_soon() {
            self.cuda.release(self);
        }
    }

    /// Flushes complete records, and compares the clocks once per second.
    pub(crate) fn flush_periodically(&self) {
        let mut state = lock(&self.state);
        if let Some(open) = state.window.as_mut().filter(|open| open.is_recording) {
            self.flush(Flush::Complete);
            if open.last_pair.is_none_or(|last| last.elapsed() >= PAIR_PERIOD) {
                self.send_clock_pairs(open);
                self.sink.report_losses();
            }
        }
        for backend in self.backends() {
            backend.settle();
        }
    }

    /// How often [`Agent::flush_periodically`] is wanted; none when no window is open and
    /// nothing is left of the last one. Within one a thread of the program may
    /// begin to record at any time, without our own thread being woken for it.
    pub(crate) fn period(&self) -> Option<Duration> {
        let state = lock(&self.state);
        match &state.window {
            Some(open) => Some(open.settings.flush_period),
            None => {
                let is_settled = self.backends().iter().all(|backend| backend.is_settled());
                (!is_settled).then_some(SETTLE_PERIOD)
            }
        }
    }

    fn begin(&self, open: &mut Open) {
        open.is_recording = true;
        leaving::set_recording(true);
        self.mark(WINDOW_OPENED);
        for backend in self.backends() {
            self.begin_backend(backend, open);
        }
        self.nvtx.begin(open.settings.kinds);
    }

    fn end(&self, open: &mut Open) {
        if !open.is_recording {
            return;
        }
        open.is_recording = false;
        self.nvtx.end();
        for backend in self.backends() {
            backend.end(self);
        }
        self.send_clock_pairs(open);
        self.sink.report_losses();
        self.mark(WINDOW_CLOSED);
        leaving::set_recording(false);
    }

    /// The backends of all vendors.
    fn backends(&self) -> [&dyn Backend; 1] {
        [&self.cuda]
    }

    fn begin_backend(&self, backend: &dyn Backend, open: &mut Open) {
        self.send_clock_pair(backend, open);
        backend.begin(self, &open.settings);
    }

    fn flush(&self, flush: Flush) {
        for backend in self.backends() {
            backend.flush(flush);
        }
        self.stacks.pulse(&self.sink);
    }

    fn send_clock_pairs(&self, open: &mut Open) {
        for backend in self.backends() {
            self.send_clock_pair(backend, open);
        }
    }

    fn send_clock_pair(&self, backend: &dyn Backend, open: &mut Open) {
        if let Some(pair) = backend.clock_pair() {
            open.last_pair = Some(Instant::now());
            self.sink.define(&pair);
        }
    }

    fn mark(&self, phase: u32) {
        self.sink.define(&Window {
            time: clock::now(),
            phase,
            reserved: 0,
        });
    }

    /// Listens for collectors.
    pub(crate) fn listen(&self) -> Result<Listener, tracesmith_wire::Error> {
        match &self.runtime_directory {
            Some(directory) => armed::listen_at(directory),
            None => armed::listen(),
        }
    }

    /// Whether the caller is of the process that made this state. The child of a
    /// `vfork` runs in its parent's memory and is not.
    pub(crate) fn is_of_this_process(&self) -> bool {
        std::process::id() == self.process
    }

    /// Where the collector of the open window is.
    pub(crate) fn collector(&self) -> Option<PathBuf> {
        let state = lock(&self.state);
        state.window.as_ref().map(|open| open.settings.collector.clone())
    }

    /// Whether the collector of the open window has ended.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.sink.is_abandoned()
    }

    /// Flushes because the program may end or become another one. It may also go on.
    pub(crate) fn flush_before_exit(&self) {
        let mut state = lock(&self.state);
        if let Some(open) = state.window.as_mut().filter(|open| open.is_recording) {
            self.flush(Flush::BeforeExit);
            self.send_clock_pairs(open);
            self.sink.report_losses();
        }
    }

    /// The process ends: in the ordinary way, or by `_exit`.
    pub(crate) fn exit(&self) {
        if !self.is_of_this_process() {
            return;
        }
        // First: if a flush takes longer than its period, the control thread would
        // take the lock again and again before this thread gets it.
        control::stop();
        let mut state = lock(&self.state);
        state.exiting = true;
        if let Some(mut open) = state.window.take() {
            self.takes_orders.store(false, Ordering::Release);
            self.nvtx.unwatch();
            self.end(&mut open);
            self.threads.close(&self.sink);
            self.sink.goodbye();
            self.sink.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, sync::mpsc, thread};

    use tracesmith_wire::{
        Capacity, Config, Policy,
        control::{CaptureRange, Kinds},
        record::{self, Note},
    };

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn agent() -> Agent {
        Agent {
            sink: Sink::default(),
            threads: ThreadRings::default(),
            cuda: Cuda::default(),
            nvtx: nvtx::State::default(),
            stacks: Stacks::default(),
            replay_capture: ReplayCapture::new(Since::Late),
            process: std::process::id(),
            readies: false,
            runtime_directory: None,
            takes_orders: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    #[test]
    fn an_ordered_edge_that_cannot_be_applied_is_noted() {
        let folder = env::temp_dir().join(format!("tracesmith-edge-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        let listener = Listener::bind(&folder).unwrap();
        let settings = Settings {
            collector: listener.path().to_owned(),
            kinds: Kinds::NONE,
            range: CaptureRange::Order,
            steps: None,
            activity_ring: Capacity::at_least(4096),
            thread_ring: Capacity::at_least(4096),
            memory_bytes: 1 << 20,
            flush_period: PAIR_PERIOD,
        };
        let agent = agent();
        let mut definitions = thread::scope(|scope| {
            scope.spawn(|| agent.sink.open(&settings).unwrap());
            let grant = || {
                let config = Config {
                    capacity: Capacity::at_least(4096),
                    policy: Policy::DropNewest,
                };
                let connection = listener.accept(LIMIT).unwrap();
                connection.grant(config, LIMIT).unwrap().consumer
            };
            let definitions = grant();
            grant();
            definitions
        });
        let (done, is_done) = mpsc::channel();
        thread::scope(|scope| {
            let (locked, is_locked) = mpsc::channel();
            let state = &agent.state;
            scope.spawn(move || {
                let _state = lock(state);
                locked.send(()).unwrap();
                is_done.recv_timeout(LIMIT).unwrap();
            });
            is_locked.recv_timeout(LIMIT).unwrap();
            // The window records no ordered ranges: nothing is missed.
            agent.ordered_edge(RangeEdge::Begin);
            agent.takes_orders.store(true, Ordering::Release);
            agent.ordered_edge(RangeEdge::Begin);
            done.send(()).unwrap();
        });
        let mut notes = Vec::new();
        for record in definitions.read().unwrap() {
            let record = record.unwrap();
            if let Some((note, words)) = record::read::<Note>(&record) {
                notes.push((note.cause, String::from_utf8_lossy(words).into_owned()));
            }
        }
        let is_missing = Cause::Unavailable as u32;
        assert_eq!(notes, [(is_missing, EDGE_WAS_MISSED.to_owned())]);
        fs::remove_dir_all(&folder).unwrap();
    }
}
