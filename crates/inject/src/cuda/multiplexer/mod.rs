//! The one client that CUPTI sees.
//!
//! CUPTI serves one client of its usual interface: a second one that registers
//! buffers silently takes the first one's records away. So there is one, here,
//! with two sides: ours, and that of a profiler within the program
//! ([`in_process_client`]). A kind is enabled while either side wants it, each record is
//! read by us and copied to the other side if it asked for it.

use std::{
    collections::HashSet,
    ffi::c_void,
    ptr::{self, NonNull},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering},
    },
};

use tracesmith_cuda::{
    Error,
    cupti::{
        ApiDomain, ContextHandle, Cupti, Subscriber, Switch,
        abi::{ApiCallback, SITE_EXIT, domain, driver, kind, resource},
        activity::{self, Activities, Activity},
        callback_switches::{self, CallbackSwitches},
        function_set::FunctionSet,
    },
};

use crate::cuda::{
    buffers,
    client_selection::ClientSelection,
    edges, in_process_client,
    kinds::{interface, kind_of, number_of},
    lookup, resources, tables,
    translate::Translator,
};
use crate::{agent, guard, guard::lock};

static CURRENT: AtomicPtr<CuptiMultiplexer> = AtomicPtr::new(ptr::null_mut());
static OPENING: Mutex<()> = Mutex::new(());

/// From this version on CUPTI takes "no buffer" for an answer and drops records
/// instead of crashing.
const VERSION_WITHOUT_BUFFER: u32 = 27;

/// The program's calls that can open and close a window.
const PROFILER_CALLS: [u32; 2] = [driver::CU_PROFILER_START, driver::CU_PROFILER_STOP];

/// A user of CUPTI in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cuda) enum Client {
    /// TraceSmith itself.
    TraceSmith = 0,
    /// A profiler in the program.
    InProcess = 1,
}

/// CUPTI, shared.
pub(in crate::cuda) struct CuptiMultiplexer {
    cupti: Cupti,
    state: Mutex<State>,
    /// Which callbacks of calls are on.
    switches: CallbackSwitches<Subscriber>,
    /// Kinds whose records are ours.
    accepted: [AtomicBool; kind::COUNT],
    /// Records that began earlier are not ours, on CUPTI's clock: buffers that
    /// the other side had filled come back later.
    since: AtomicU64,
    /// Callbacks that each side wants.
    callbacks: [[FunctionSet; domain::COUNT]; 2],
    /// Whether the program's own calls open and close the window.
    has_range: AtomicBool,
    /// Whether it is watched what nodes of graphs wait for.
    has_edges: AtomicBool,
    /// Functions of the driver whose callers' stacks are taken.
    with_stack: FunctionSet,
    /// Functions whose calls are recorded by their callbacks, for the two
    /// interfaces.
    recorded: [FunctionSet; 2],
    /// Functions of the driver whose calls are kept to be made again.
    kept: FunctionSet,
    /// Functions whose calls may open and close the window.
    opening: FunctionSet,
}

#[derive(Default)]
struct State {
    registered: bool,
    wishes: [ClientSelection; 2],
}

/// The multiplexer, if CUPTI was opened.
#[inline]
pub(in crate::cuda) fn current() -> Option<&'static CuptiMultiplexer> {
    // SAFETY: null, or a box that was leaked.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// In the child of a fork there is none.
pub(in crate::cuda) fn forget() {
    CURRENT.store(ptr::null_mut(), Ordering::Release);
}

impl CuptiMultiplexer {
    /// The multiplexer; opens CUPTI if that was not done yet.
    pub(in crate::cuda) fn open() -> Result<&'static Self, Error> {
        if let Some(multiplexer) = current() {
            return Ok(multiplexer);
        }
        let _one_at_a_time = lock(&OPENING);
        if let Some(multiplexer) = current() {
            return Ok(multiplexer);
        }
        let multiplexer = Box::leak(Box::new(Self {
            cupti: lookup::for_ourselves(Cupti::open)?,
            state: Mutex::default(),
            switches: CallbackSwitches::default(),
            accepted: [const { AtomicBool::new(false) }; kind::COUNT],
            since: AtomicU64::new(0),
            callbacks: [const { [const { FunctionSet::new() }; domain::COUNT] }; 2],
            has_range: AtomicBool::new(false),
            has_edges: AtomicBool::new(false),
            with_stack: FunctionSet::new(),
            recorded: [const { FunctionSet::new() }; 2],
            kept: FunctionSet::new(),
            opening: FunctionSet::new(),
        }));
        CURRENT.store(multiplexer, Ordering::Release);
        agent::close_at_exit();
        Ok(multiplexer)
    }

    pub(in crate::cuda) fn cupti(&self) -> &Cupti {
        &self.cupti
    }

    /// Becomes CUPTI's client, unless it is so already.
    pub(in crate::cuda) fn attach(&self) -> Result<(), Error> {
        let mut state = lock(&self.state);
        self.switches.attach(|| self.subscribe())?;
        if !state.registered {
            buffers::fill();
            // One buffer for all threads: as fast, and bounded. Older ones have
            // no other way and refuse.
            let _ = self.cupti.set_buffer_per_thread(Switch::Off);
            // They are cleared when they come back: see `buffers`.
            let _ = self.cupti.promise_zeroed_buffers();
            // Without it threads are named by their handles.
            let _ = self.cupti.use_system_thread_ids();
            // SAFETY: the two functions below keep the contract.
            if let Err(error) = unsafe { self.cupti.register_buffers(requested, completed) } {
                // A client without buffers is of no use to us, and in the way of others. The other side has none either:
                // its buffers are these.
                self.release_now();
                return Err(error);
            }
            state.registered = true;
        }
        Ok(())
    }

    fn subscribe(&self) -> Result<Subscriber, Error> {
        // SAFETY: catches its panics, and calls only what is allowed there.
        let subscribe = || unsafe { self.cupti.subscribe(callback) };
        tables::with_preallocated_tables(self.cupti.subscribing(), subscribe)
    }

    /// Becomes CUPTI's client and leaves it again, unless it is its client already.
    pub(in crate::cuda) fn subscribe_once(&self) {
        let _one_at_a_time = lock(&self.state);
        if self.switches.handle().is_none()
            && let Ok(subscriber) = self.subscribe()
        {
            self.unsubscribe(subscriber);
        }
    }

    /// Whether the other side wants nothing.
    pub(in crate::cuda) fn is_ours_alone(&self) -> bool {
        let state = lock(&self.state);
        let wishes = &state.wishes[Client::InProcess as usize];
        !wishes.kinds.iter().any(|wanted| *wanted)
            && wishes.single.is_empty()
            && !in_process_client::is_subscribed()
    }

    /// Is CUPTI's client no longer, some time after no thread is within a call that
    /// it tells us of. Buffers stay registered, and come back.
    pub(in crate::cuda) fn release(&self) {
        self.switches.leave();
    }

    /// The same at once: another client comes.
    pub(in crate::cuda) fn release_now(&self) {
        self.switches.leave_now(|subscriber| self.unsubscribe(subscriber));
    }

    fn unsubscribe(&self, subscriber: Subscriber) {
        let unsubscribe = || self.cupti.unsubscribe(subscriber);
        // Whoever comes next is told by CUPTI what is wrong.
        let _ = tables::ending(self.cupti.subscribing(), unsubscribe);
    }

    /// Whether no callback is on that nobody wants.
    pub(in crate::cuda) fn is_settled(&self) -> bool {
        self.switches.is_settled()
    }

    /// Switches off what could not be while a thread was within a call.
    pub(in crate::cuda) fn settle(&self) {
        self.switches.settle(
            callback_switches::is_any_within,
            |subscriber, (which, id)| {
                // It was on, so it can be off.
                let _ = self
                    .cupti
                    .enable_callback(subscriber, number_of(which), id, Switch::Off);
            },
            |subscriber| self.unsubscribe(subscriber),
        );
    }

    /// Whether there is such a thread.
    pub(in crate::cuda) fn is_waiting(&self) -> bool {
        self.switches.is_waiting()
    }

    /// Starts a kind for a side.
    pub(in crate::cuda) fn enable(&self, side: Client, number: u32) -> Result<(), Error> {
        self.enable_by(side, number, Cupti::enable)
    }

    /// Starts a kind of objects for us, with those that exist already.
    pub(in crate::cuda) fn enable_objects(&self, number: u32) -> Result<(), Error> {
        self.enable_by(Client::TraceSmith, number, |cupti, number| {
            cupti.enable_and_dump(number).or_else(|_| cupti.enable(number))
        })
    }

    /// The same for the other side, which has asked for just that.
    pub(in crate::cuda) fn enable_objects_for_client(&self, number: u32) -> Result<(), Error> {
        self.enable_by(Client::InProcess, number, Cupti::enable_and_dump)
    }

    fn enable_by(
        &self,
        side: Client,
        number: u32,
        enable: impl Fn(&Cupti, u32) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut state = lock(&self.state);
        let Some(wanted) = state.wishes[side as usize].kinds.get_mut(number as usize) else {
            return enable(&self.cupti, number);
        };
        *wanted = true;
        match side {
            Client::TraceSmith => self.accepted[number as usize].store(true, Ordering::Relaxed),
            // Enabling a kind enables all its functions.
            Client::InProcess => state.wishes[side as usize]
                .skipped
                .retain(|function| kind_of(function.0) != number),
        }
        let result = enable(&self.cupti, number);
        if result.is_err() {
            state.wishes[side as usize].kinds[number as usize] = false;
        }
        self.apply_functions(&state, number);
        result
    }

    /// Ends a kind for a side.
    pub(in crate::cuda) fn disable(&self, side: Client, number: u32) -> Result<(), Error> {
        let mut state = lock(&self.state);
        let Some(wanted) = state.wishes[side as usize].kinds.get_mut(number as usize) else {
            return self.cupti.disable(number);
        };
        *wanted = false;
        let still = state.wishes.iter().any(|wishes| wishes.kinds[number as usize]);
        let result = if still { Ok(()) } else { self.cupti.disable(number) };
        self.apply_functions(&state, number);
        result
    }

    /// What comes from now on can be ours.
    pub(in crate::cuda) fn begin_ours(&self) {
        let since = if self.is_ours_alone() {
            0
        } else {
            self.cupti.timestamp()
        };
        self.since.store(since, Ordering::Relaxed);
    }

    /// From now on no record is ours.
    pub(in crate::cuda) fn refuse(&self) {
        self.accept_only(&[]);
    }

    /// From now on only records of these kinds are ours.
    pub(in crate::cuda) fn accept_only(&self, kinds: &[u32]) {
        for (number, accepted) in self.accepted.iter().enumerate() {
            if !kinds.contains(&(number as u32)) {
                accepted.store(false, Ordering::Relaxed);
            }
        }
    }

    /// Turns records of one function on or off, for the other side.
    pub(in crate::cuda) fn set_function(
        &self,
        function: (ApiDomain, u32),
        switch: Switch,
    ) -> Result<(), Error> {
        let mut state = lock(&self.state);
        let wishes = &mut state.wishes[Client::InProcess as usize];
        match switch {
            Switch::On => {
                wishes.single.insert(function);
                wishes.skipped.remove(&function);
            }
            Switch::Off => {
                wishes.single.remove(&function);
                wishes.skipped.insert(function);
            }
        }
        let wanted = state.wishes.iter().any(|wishes| wishes.wants(function));
        self.cupti.enable_function(function.0, function.1, on_if(wanted))
    }

    /// Whether a side wants a kind.
    pub(in crate::cuda) fn wants_kind(&self, side: Client, number: u32) -> bool {
        let state = lock(&self.state);
        state.wishes[side as usize]
            .kinds
            .get(number as usize)
            .is_some_and(|wanted| *wanted)
    }

    /// Whether a side has said that it wants no records of a function.
    pub(in crate::cuda) fn skips_function(&self, side: Client, function: (ApiDomain, u32)) -> bool {
        lock(&self.state).wishes[side as usize]
            .skipped
            .contains(&function)
    }

    /// Whether a side wants records of a function.
    pub(in crate::cuda) fn wants_function(&self, side: Client, function: (ApiDomain, u32)) -> bool {
        lock(&self.state).wishes[side as usize].wants(function)
    }

    /// A kind of calls was switched, which resets single functions.
    fn apply_functions(&self, state: &State, number: u32) {
        let domain = match number {
            kind::DRIVER => ApiDomain::Driver,
            kind::RUNTIME => ApiDomain::Runtime,
            _ => return,
        };
        let mentioned: HashSet<(ApiDomain, u32)> = state
            .wishes
            .iter()
            .flat_map(|wishes| wishes.skipped.iter().chain(&wishes.single))
            .filter(|function| function.0 == domain)
            .copied()
            .collect();
        for function in mentioned {
            let wanted = state.wishes.iter().any(|wishes| wishes.wants(function));
            // Before CUDA 12.5 single functions cannot be switched: what is
            // skipped is then left out when the buffer is read.
            let _ = self.cupti.enable_function(function.0, function.1, on_if(wanted));
        }
    }

    /// Turns one callback on or off, for a side.
    pub(in crate::cuda) fn set_callback(
        &self,
        side: Client,
        domain: u32,
        id: u32,
        switch: Switch,
    ) -> Result<(), Error> {
        let _one_at_a_time = lock(&self.state);
        let Some(subscriber) = self.switches.handle() else {
            return Ok(());
        };
        let [ours, theirs] = &self.callbacks;
        let (Some(ours), Some(theirs)) = (ours.get(domain as usize), theirs.get(domain as usize)) else {
            return self.cupti.enable_callback(subscriber, domain, id, switch);
        };
        match side {
            Client::TraceSmith => ours.set(id, switch),
            Client::InProcess => theirs.set(id, switch),
        }
        self.switch_callback(
            subscriber,
            domain,
            id,
            on_if(ours.contains(id) || theirs.contains(id)),
        )
    }

    fn switch_callback(
        &self,
        subscriber: Subscriber,
        domain: u32,
        id: u32,
        switch: Switch,
    ) -> Result<(), Error> {
        let apply = |subscriber| self.cupti.enable_callback(subscriber, domain, id, switch);
        match (interface(domain), switch) {
            (None, _) => apply(subscriber),
            (Some(which), Switch::On) => self.switches.turn_on((which, id), apply),
            (Some(which), Switch::Off) => {
                self.switches
                    .turn_off((which, id), callback_switches::is_any_within, apply)
            }
        }
    }

    /// Turns all callbacks of a domain on or off, for the other side.
    pub(in crate::cuda) fn set_domain_for_client(&self, domain: u32, switch: Switch) -> Result<(), Error> {
        let _one_at_a_time = lock(&self.state);
        let Some(subscriber) = self.switches.handle() else {
            return Ok(());
        };
        let [ours, theirs] = &self.callbacks;
        if let Some(bits) = theirs.get(domain as usize) {
            bits.set_all(switch);
        }
        let apply = |subscriber| self.cupti.enable_domain(subscriber, domain, switch);
        let Some(ours) = ours.get(domain as usize) else {
            return apply(subscriber);
        };
        match (interface(domain), switch) {
            (Some(which), Switch::On) => self.switches.turn_all_on(which, apply),
            (Some(which), Switch::Off) => {
                for id in self.switches.on(which).filter(|id| !ours.contains(*id)) {
                    // Not every number has a function.
                    let _ = self.switch_callback(subscriber, domain, id, Switch::Off);
                }
                Ok(())
            }
            (None, Switch::On) => apply(subscriber),
            (None, Switch::Off) => {
                apply(subscriber)?;
                // What we want goes on.
                for id in (0..FunctionSet::CAPACITY).filter(|id| ours.contains(*id)) {
                    self.cupti.enable_callback(subscriber, domain, id, Switch::On)?;
                }
                Ok(())
            }
        }
    }

    /// Whether the other side wants a callback.
    pub(in crate::cuda) fn is_enabled_for_client(&self, domain: u32, id: u32) -> bool {
        self.callbacks[Client::InProcess as usize]
            .get(domain as usize)
            .is_some_and(|bits| bits.contains(id))
    }

    /// The program's own calls that open and close the window.
    pub(in crate::cuda) fn watch_profiler_calls(&self, switch: Switch) {
        self.has_range.store(switch == Switch::On, Ordering::Relaxed);
        for id in PROFILER_CALLS {
            // The window then never opens, which its emptiness shows.
            let _ = self.set_callback(Client::TraceSmith, domain::DRIVER, id, switch);
        }
    }

    /// Launches, some of which open and close the window.
    pub(in crate::cuda) fn watch_launches(&self, functions: &[u32], switch: Switch) {
        for id in functions {
            self.opening.set(*id, switch);
            // Not every number that has a name has a function in every version.
            let _ = self.set_callback(Client::TraceSmith, domain::DRIVER, *id, switch);
        }
    }

    /// Whether a call of this function may open and close the window.
    #[inline]
    pub(in crate::cuda) fn may_open(&self, id: u32) -> bool {
        self.opening.contains(id)
    }

    /// Whether calls of a function are watched for another reason than the window
    /// that ends.
    fn outlasts_window(&self, id: u32) -> bool {
        self.keeps_call(id) || self.may_open(id)
    }

    /// Whether those calls open and close the window.
    pub(in crate::cuda) fn has_range(&self) -> bool {
        self.has_range.load(Ordering::Relaxed)
    }

    /// Calls whose stacks are taken, and the making of graph nodes. Gives back how
    /// many of them cannot be watched: those calls are without a stack, and nodes
    /// have that of their launch.
    pub(in crate::cuda) fn watch_callers(&self, functions: &[u32], switch: Switch) -> usize {
        for id in functions {
            self.with_stack.set(*id, switch);
        }
        let calls = functions.iter().map(|id| (domain::DRIVER, *id));
        let nodes = resources::STACKED_NODES.map(|id| (domain::RESOURCE, id));
        calls
            .chain(nodes)
            .filter(|(domain, id)| {
                let is_kept = match *domain {
                    domain::DRIVER => self.outlasts_window(*id),
                    _ => self.has_edges(),
                };
                !(is_kept && switch == Switch::Off)
                    && self
                        .set_callback(Client::TraceSmith, *domain, *id, switch)
                        .is_err()
            })
            .count()
    }

    /// What nodes of graphs wait for.
    pub(in crate::cuda) fn watch_edges(&self, switch: Switch) {
        self.has_edges.store(switch == Switch::On, Ordering::Relaxed);
        for id in edges::WATCHED {
            // The order within graphs is then not known.
            let _ = self.set_callback(Client::TraceSmith, domain::RESOURCE, id, switch);
        }
    }

    /// Whether that is watched.
    pub(in crate::cuda) fn has_edges(&self) -> bool {
        self.has_edges.load(Ordering::Relaxed)
    }

    /// Whether the callers of anything are wanted.
    pub(in crate::cuda) fn has_callers(&self) -> bool {
        !self.with_stack.is_empty()
    }

    /// Whether the callers of a function of the driver are wanted.
    #[inline]
    pub(in crate::cuda) fn takes_stack(&self, id: u32) -> bool {
        self.with_stack.contains(id)
    }

    /// Calls that are recorded by their callbacks.
    pub(in crate::cuda) fn watch_calls(&self, functions: &[(ApiDomain, u32)], switch: Switch) {
        for (which, id) in functions {
            if switch == Switch::On {
                self.recorded[*which as usize].set(*id, Switch::On);
            }
            let number = number_of(*which);
            // It outlasts what it opens and closes.
            if number == domain::DRIVER && PROFILER_CALLS.contains(id) && self.has_range() {
                continue;
            }
            if number == domain::DRIVER && switch == Switch::Off && self.outlasts_window(*id) {
                continue;
            }
            // Not every number that has a name has a function in every version.
            let _ = self.set_callback(Client::TraceSmith, number, *id, switch);
        }
    }

    /// Calls that are under way are not recorded either.
    pub(in crate::cuda) fn forget_calls(&self) {
        self.recorded.iter().for_each(|set| set.set_all(Switch::Off));
    }

    /// Functions that wait, or are about events.
    pub(in crate::cuda) fn watch_waits(&self, functions: &[u32], switch: Switch) {
        for id in functions {
            if switch == Switch::Off && self.outlasts_window(*id) {
                continue;
            }
            // Not every number that has a name has a function in every version.
            let _ = self.set_callback(Client::TraceSmith, domain::DRIVER, *id, switch);
        }
    }

    /// Whether calls of a function are recorded by their callbacks.
    #[inline]
    pub(in crate::cuda) fn records_call(&self, which: ApiDomain, id: u32) -> bool {
        self.recorded[which as usize].contains(id)
    }

    /// Calls that are kept to be made again.
    pub(in crate::cuda) fn watch_recorded(&self, functions: &[u32], switch: Switch) {
        for id in functions {
            self.kept.set(*id, switch);
            if switch == Switch::Off && self.may_open(*id) {
                continue;
            }
            // Not every number that has a name has a function in every version.
            let _ = self.set_callback(Client::TraceSmith, domain::DRIVER, *id, switch);
        }
    }

    /// The code that such calls run.
    pub(in crate::cuda) fn watch_code(&self, switch: Switch) {
        for id in [
            resource::MODULE_LOADED,
            resource::MODULE_PROFILED,
            resource::MODULE_UNLOAD_STARTING,
        ] {
            // Without it the replay capture has no code and is marked incomplete.
            let _ = self.set_callback(Client::TraceSmith, domain::RESOURCE, id, switch);
        }
    }

    /// Whether calls of a function of the driver are kept to be made again.
    #[inline]
    pub(in crate::cuda) fn keeps_call(&self, id: u32) -> bool {
        self.kept.contains(id)
    }

    /// Modules coming and going, contexts and streams going.
    pub(in crate::cuda) fn watch_resources(&self, switch: Switch) {
        for id in [
            resource::CONTEXT_DESTROY_STARTING,
            resource::STREAM_DESTROY_STARTING,
            resource::MODULE_LOADED,
            resource::MODULE_UNLOAD_STARTING,
        ] {
            let is_module = matches!(id, resource::MODULE_LOADED | resource::MODULE_UNLOAD_STARTING);
            let is_kept = is_module && !self.kept.is_empty();
            if switch == Switch::Off && is_kept {
                continue;
            }
            // Modules are then missing from the trace, and nothing else.
            let _ = self.set_callback(Client::TraceSmith, domain::RESOURCE, id, switch);
        }
    }

    /// Reads a filled buffer for us.
    fn read(&self, buffer: &mut [u8]) {
        let Some(agent) = agent::current() else {
            return;
        };
        agent.sink.with_activity(|activity, sink| {
            let mut translator = Translator {
                cupti: &self.cupti,
                sink,
                activity,
                stacks: &agent.stacks,
                replay_capture: &agent.replay_capture,
            };
            let version = self.cupti.version();
            let mut records = Activities::new(&self.cupti, buffer);
            while let Some(bytes) = records.next_bytes() {
                match Activity::new(bytes, version) {
                    Some(record) if self.is_ours(bytes) => translator.record(&record),
                    Some(_) => {}
                    None => translator.activity.losses.unknown += 1,
                }
            }
        });
    }

    #[inline]
    fn is_ours(&self, bytes: &[u8]) -> bool {
        let number = bytes.first_chunk().map_or(0, |kind| u32::from_ne_bytes(*kind));
        let accepted = self
            .accepted
            .get(number as usize)
            .is_some_and(|accepted| accepted.load(Ordering::Relaxed));
        accepted && self.started_in_window(number, bytes)
    }

    #[inline]
    fn started_in_window(&self, number: u32, bytes: &[u8]) -> bool {
        let since = self.since.load(Ordering::Relaxed);
        since == 0
            || match activity::time_offsets(number).first() {
                None => true,
                Some(offset) => {
                    let time = in_process_client::read_time(bytes, *offset);
                    time == 0 || time >= since
                }
            }
    }

    fn count_losses(&self, context: ContextHandle, stream: u32) {
        let dropped = self.cupti.dropped(context, stream) + buffers::missed();
        if dropped == 0 {
            return;
        }
        in_process_client::count_dropped(dropped);
        if let Some(agent) = agent::current() {
            agent
                .sink
                .with_activity(|activity, _| activity.losses.dropped += dropped);
        }
    }
}

fn on_if(wanted: bool) -> Switch {
    if wanted { Switch::On } else { Switch::Off }
}

/// CUPTI wants a buffer, on a thread of the program.
unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, max_records: *mut usize) {
    let taken = guard::run(None, buffers::take);
    let version = current().map_or(0, |multiplexer| multiplexer.cupti.version());
    let (address, bytes) = match taken {
        Some(buffer) => (buffer.as_ptr(), buffers::BUFFER_BYTES),
        None if version >= VERSION_WITHOUT_BUFFER => (ptr::null_mut(), 0),
        // An older CUPTI would crash: one buffer more than was agreed. It joins
        // the pool when it comes back.
        None => {
            // SAFETY: size and alignment are as calloc wants them.
            let memory = unsafe { libc::calloc(1, buffers::BUFFER_BYTES) };
            (
                memory.cast(),
                if memory.is_null() {
                    0
                } else {
                    buffers::BUFFER_BYTES
                },
            )
        }
    };
    // SAFETY: CUPTI's own words.
    unsafe { buffer.write(address) };
    // SAFETY: as above.
    unsafe { size.write(bytes) };
    // SAFETY: as above.
    unsafe { max_records.write(0) };
}

/// CUPTI hands a buffer back, on a thread of its own or on one that flushes.
unsafe extern "C" fn completed(
    context: *mut c_void,
    stream: u32,
    buffer: *mut u8,
    size: usize,
    valid: usize,
) {
    let Some(address) = NonNull::new(buffer) else {
        return;
    };
    guard::run((), || {
        if let Some(multiplexer) = current() {
            // SAFETY: one of our buffers, filled so far, and CUPTI's no more.
            let filled = unsafe { std::slice::from_raw_parts_mut(address.as_ptr(), valid.min(size)) };
            multiplexer.read(filled);
            in_process_client::copy(multiplexer, context, stream, filled);
            multiplexer.count_losses(ContextHandle(context as usize), stream);
        }
    });
    guard::run((), || buffers::put_back(address, valid));
}

/// Something happened that a side wants to know.
unsafe extern "C" fn callback(_user: *mut c_void, domain: u32, id: u32, data: *const c_void) {
    let Some(multiplexer) = current() else {
        return;
    };
    let Some(which) = interface(domain) else {
        // SAFETY: as CUPTI gave it.
        return unsafe { multiplexer.dispatch(domain, id, data) };
    };
    // SAFETY: what CUPTI gives for these domains.
    let is_end = unsafe { data.cast::<ApiCallback>().as_ref() }.map(|call| call.site == SITE_EXIT);
    // To note a call cannot panic; what is done with it is guarded.
    let stack = callback_switches::here();
    if let (Some(false), Some(stack)) = (is_end, stack) {
        multiplexer.switches.begins(stack, (which, id), |subscriber| {
            // The end of this call is then not told to anyone, and CUPTI takes the thread to be in it.
            let _ = multiplexer
                .cupti
                .enable_callback(subscriber, domain, id, Switch::On);
        });
    }
    // SAFETY: as CUPTI gave it.
    unsafe { multiplexer.dispatch(domain, id, data) };
    if let (Some(true), Some(stack)) = (is_end, stack) {
        stack.ends((which, id));
    }
}

impl CuptiMultiplexer {
    /// Tells whoever wants to know.
    ///
    /// # Safety
    ///
    /// `data` is what CUPTI gave for this domain.
    #[inline]
    unsafe fn dispatch(&self, domain: u32, id: u32, data: *const c_void) {
        let [ours, theirs] = &self.callbacks;
        let wanted = |bits: &[FunctionSet; domain::COUNT]| {
            bits.get(domain as usize).is_some_and(|bits| bits.contains(id))
        };
        if wanted(theirs) {
            // SAFETY: handed on as CUPTI gave it.
            unsafe { in_process_client::callback(domain, id, data) };
        }
        if wanted(ours) {
            // SAFETY: as CUPTI gave it for this domain.
            guard::run((), || unsafe { resources::callback(self, domain, id, data) });
        }
    }
}
