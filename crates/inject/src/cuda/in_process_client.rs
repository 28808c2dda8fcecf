//! A profiler within the program, served from our stream.
//!
//! torch.profiler (Kineto), Proton and their like register buffers and
//! callbacks as if they were alone. Their functions are remembered here; each
//! buffer that CUPTI fills is copied, without the records that they did not ask
//! for and with the times of the clock that they registered, into a buffer of
//! theirs.

use std::{
    collections::BTreeSet,
    ffi::c_void,
    ptr::{self, NonNull},
    sync::{
        Mutex, Once,
        atomic::{AtomicPtr, Ordering},
    },
};

use tracesmith_cuda::cupti::{
    ApiDomain, BufferCompleted, BufferRequested, CallbackFunction, TimestampFunction,
    abi::kind,
    activity::{self, Activities, Activity},
};

use super::multiplexer::{Client, CuptiMultiplexer};
use crate::{agent, guard::lock, sink::Cause};

static STATE: Mutex<State> = Mutex::new(State::new());

/// The client's callback, read without a lock.
static CALLBACK: AtomicPtr<Callback> = AtomicPtr::new(ptr::null_mut());

struct Callback {
    function: CallbackFunction,
    user: *mut c_void,
}

struct State {
    buffers: Option<Buffers>,
    clock: Option<Clock>,
    /// Buffers of theirs that are not full yet: one, or more for a while where they enable a kind while another thread
    /// fills one.
    held: Vec<ClientBuffer>,
    periods: [Period; kind::COUNT],
    told: BTreeSet<Object>,
    dropped: u64,
}

#[derive(Clone, Copy)]
struct Buffers {
    requested: BufferRequested,
    completed: BufferCompleted,
}

struct ClientBuffer {
    address: NonNull<u8>,
    size: usize,
    used: usize,
}

// SAFETY: memory that they lent us until we hand it back.
unsafe impl Send for ClientBuffer {}

/// From when to when a kind was wanted, on CUPTI's clock.
#[derive(Clone, Copy)]
struct Period {
    from: u64,
    until: u64,
}

/// A clock of theirs, and how it stood when it was registered.
#[derive(Clone, Copy)]
struct Clock {
    function: TimestampFunction,
    first: Reading,
}

#[derive(Clone, Copy)]
struct Reading {
    cupti: u64,
    client: u64,
}

/// Something that exists, of which CUPTI tells whenever a client asks what there is: its kind and its numbers.
type Object = (u32, u32, u32);

/// How many of those are remembered. It does no harm to tell of one twice, and memory is bounded.
const REMEMBERED: usize = 4096;

/// Readings for one comparison of the clocks.
const READINGS: u32 = 50;

impl State {
    const fn new() -> Self {
        Self {
            buffers: None,
            clock: None,
            held: Vec::new(),
            periods: [Period { from: 0, until: 0 }; kind::COUNT],
            told: BTreeSet::new(),
            dropped: 0,
        }
    }
}

/// The client registers its functions for buffers. Buffers that it lent before are
/// forgotten, as in CUPTI.
pub(super) fn register_buffers(requested: BufferRequested, completed: BufferCompleted) {
    let mut state = lock(&STATE);
    state.buffers = Some(Buffers { requested, completed });
    state.held.clear();
}

/// The client registers a clock.
pub(super) fn register_clock(multiplexer: &CuptiMultiplexer, function: TimestampFunction) {
    let first = read_clocks(multiplexer, function);
    lock(&STATE).clock = Some(Clock { function, first });
}

/// The client enables a kind. Kineto flushes only if it has handed out a buffer, so
/// one is requested now.
pub(super) fn enabled(multiplexer: &CuptiMultiplexer, number: u32) {
    let now = multiplexer.cupti().timestamp();
    let wanted = {
        let mut state = lock(&STATE);
        state.told.retain(|object| object.0 != number);
        if let Some(period) = state.periods.get_mut(number as usize) {
            *period = Period {
                from: now,
                until: u64::MAX,
            };
        }
        state.buffers.filter(|_| state.held.is_empty())
    };
    if let Some(buffers) = wanted {
        keep(request(buffers));
    }
}

/// The client has got back all that it lent to CUPTI. Kineto fetches what it got only if it has handed out a buffer.
pub(super) fn lend_one() {
    let buffers = {
        let state = lock(&STATE);
        state.buffers.filter(|_| state.held.is_empty())
    };
    if let Some(buffers) = buffers {
        keep(request(buffers));
    }
}

/// A buffer that the client lent to CUPTI itself. CUPTI hands it back late, and to us. False if the client is not known.
pub(super) fn hand_back_own(
    context: *mut c_void,
    stream: u32,
    buffer: NonNull<u8>,
    size: usize,
    valid: usize,
) -> bool {
    let Some(buffers) = lock(&STATE).buffers else {
        return false;
    };
    // SAFETY: their function and their buffer, as CUPTI called us.
    unsafe { (buffers.completed)(context, stream, buffer.as_ptr(), size, valid) };
    true
}

/// Keeps a buffer of theirs for later, beside those that another thread has kept meanwhile.
fn keep(held: Option<ClientBuffer>) {
    lock(&STATE).held.extend(held);
}

/// A buffer of theirs: one that is kept, or a new one.
fn obtain(buffers: Buffers) -> Option<ClientBuffer> {
    let kept = lock(&STATE).held.pop();
    kept.or_else(|| request(buffers))
}

/// The client disables a kind. It still gets what was recorded until now.
pub(super) fn disabled(multiplexer: &CuptiMultiplexer, number: u32) {
    let now = multiplexer.cupti().timestamp();
    if let Some(period) = lock(&STATE).periods.get_mut(number as usize) {
        period.until = now;
    }
}

/// The client detaches.
pub(super) fn detached() {
    let mut state = lock(&STATE);
    *state = State::new();
}

pub(super) fn count_dropped(dropped: u64) {
    lock(&STATE).dropped += dropped;
}

/// Whether the client has not got this object since it enabled the kind. CUPTI reports objects to both clients when
/// TraceSmith enables the kind.
fn mark_reported(object: Object) -> bool {
    let told = &mut lock(&STATE).told;
    if told.len() >= REMEMBERED {
        told.clear();
    }
    told.insert(object)
}

/// Records dropped since the client's last question.
pub(super) fn take_dropped() -> u64 {
    std::mem::take(&mut lock(&STATE).dropped)
}

/// The client subscribes. False if it has subscribed already.
pub(super) fn subscribe(function: CallbackFunction, user: *mut c_void) -> bool {
    let callback = Box::into_raw(Box::new(Callback { function, user }));
    let taken = CALLBACK
        .compare_exchange(ptr::null_mut(), callback, Ordering::AcqRel, Ordering::Acquire)
        .is_ok();
    if !taken {
        // SAFETY: made above and known to nobody.
        drop(unsafe { Box::from_raw(callback) });
    }
    taken
}

/// The client unsubscribes. A callback may be running, so its data is not freed.
pub(super) fn unsubscribe() {
    CALLBACK.store(ptr::null_mut(), Ordering::Release);
}

pub(super) fn is_subscribed() -> bool {
    !CALLBACK.load(Ordering::Acquire).is_null()
}

/// Passes a callback on to the client.
///
/// # Safety
///
/// `data` is what CUPTI gave.
pub(super) unsafe fn callback(domain: u32, id: u32, data: *const c_void) {
    // SAFETY: null, or a box that was leaked.
    if let Some(callback) = unsafe { CALLBACK.load(Ordering::Acquire).as_ref() } {
        // SAFETY: their function, with their word and CUPTI's data.
        unsafe { (callback.function)(callback.user, domain, id, data) };
    }
}

fn request(buffers: Buffers) -> Option<ClientBuffer> {
    let mut address = ptr::null_mut();
    let mut size = 0;
    let mut max_records = 0;
    // SAFETY: their function, called as CUPTI would.
    unsafe { (buffers.requested)(&raw mut address, &raw mut size, &raw mut max_records) };
    Some(ClientBuffer {
        address: NonNull::new(address)?,
        size,
        used: 0,
    })
}

fn read_clocks(multiplexer: &CuptiMultiplexer, function: TimestampFunction) -> Reading {
    let mut best = Reading { cupti: 0, client: 0 };
    let mut smallest = u64::MAX;
    for _ in 0..READINGS {
        let before = multiplexer.cupti().timestamp();
        // SAFETY: their function, called as CUPTI would.
        let client = unsafe { function() };
        let after = multiplexer.cupti().timestamp();
        let gap = after.saturating_sub(before);
        if gap < smallest {
            smallest = gap;
            best = Reading {
                cupti: before + gap / 2,
                client,
            };
        }
    }
    best
}

/// Converts times of CUPTI's clock to the client's clock.
#[derive(Clone, Copy)]
struct Conversion {
    first: Reading,
    rate: f64,
}

impl Conversion {
    fn now(multiplexer: &CuptiMultiplexer, clock: Clock) -> Self {
        let last = read_clocks(multiplexer, clock.function);
        let cupti = last.cupti.saturating_sub(clock.first.cupti);
        let client = last.client.saturating_sub(clock.first.client);
        let rate = if cupti == 0 {
            1.0
        } else {
            client as f64 / cupti as f64
        };
        Self {
            first: clock.first,
            rate,
        }
    }

    fn apply(self, time: u64) -> u64 {
        // Differences are small enough for a double: 2^53 ns are 104 days.
        let difference = time.cast_signed().wrapping_sub(self.first.cupti.cast_signed()) as f64;
        self.first
            .client
            .wrapping_add_signed((difference * self.rate) as i64)
    }
}

/// Copies the client's records from a filled buffer.
pub(super) fn copy(multiplexer: &CuptiMultiplexer, context: *mut c_void, stream: u32, filled: &mut [u8]) {
    // Their functions call CUPTI, and so come back to us: no lock is held while
    // they run. What is held is taken out meanwhile.
    let (buffers, clock, held, periods) = {
        let mut state = lock(&STATE);
        if state.periods.iter().all(|period| period.from == 0) {
            return;
        }
        let Some(buffers) = state.buffers else {
            // It registered them with CUPTI before we were loaded, or never. CUPTI drops what nobody takes, too.
            state.dropped += 1;
            drop(state);
            note_without_buffers();
            return;
        };
        (buffers, state.clock, state.held.pop(), state.periods)
    };
    let mut copier = Copier {
        multiplexer,
        buffers,
        conversion: clock.map(|clock| Conversion::now(multiplexer, clock)),
        periods,
        held,
        context,
        stream,
    };
    copier.copy(filled);
    copier.hand_back();
    // Always one in hand: see `enabled`.
    keep(copier.held.take().or_else(|| obtain(buffers)));
}

/// The trace states once that the client gets nothing.
fn note_without_buffers() {
    static ONCE: Once = Once::new();
    if let Some(agent) = agent::current() {
        let words = "another profiler enabled activities in this process and has registered no buffers since TraceSmith \
                     recorded: it gets no records";
        ONCE.call_once(|| agent.sink.note(Cause::Conflict, words));
    }
}

struct Copier<'h> {
    multiplexer: &'h CuptiMultiplexer,
    buffers: Buffers,
    conversion: Option<Conversion>,
    periods: [Period; kind::COUNT],
    held: Option<ClientBuffer>,
    context: *mut c_void,
    stream: u32,
}

impl Copier<'_> {
    fn copy(&mut self, filled: &mut [u8]) {
        let version = self.multiplexer.cupti().version();
        let mut offsets = Vec::new();
        {
            let total = filled.len();
            let mut records = Activities::new(self.multiplexer.cupti(), filled);
            while let Some(bytes) = records.next_bytes() {
                offsets.push(total - bytes.len());
            }
        }
        for (at, start) in offsets.iter().enumerate() {
            let end = offsets.get(at + 1).copied().unwrap_or(filled.len());
            if let Some(record) = filled.get_mut(*start..end)
                && self.is_enabled_by_client(record, version)
            {
                self.add(record);
            }
        }
    }

    fn is_enabled_by_client(&self, record: &[u8], version: u32) -> bool {
        let number = record.first_chunk().map_or(0, |kind| u32::from_ne_bytes(*kind));
        let activity = Activity::new(record, version);
        let call = match &activity {
            Some(Activity::Driver(call)) => Some((ApiDomain::Driver, call.function())),
            Some(Activity::Runtime(call)) => Some((ApiDomain::Runtime, call.function())),
            _ => None,
        };
        if let Some(function) = call {
            if self.multiplexer.wants_function(Client::InProcess, function) {
                return true;
            }
            if self.multiplexer.skips_function(Client::InProcess, function) {
                return false;
            }
        }
        let Some(period) = self
            .periods
            .get(number as usize)
            .filter(|period| period.from != 0)
        else {
            return false;
        };
        match activity::time_offsets(number).first() {
            None => match activity {
                Some(Activity::Device(device)) => mark_reported((number, device.device(), 0)),
                Some(Activity::Context(context, _)) => mark_reported((number, context.context(), 0)),
                Some(Activity::Stream(stream)) => mark_reported((number, stream.context(), stream.stream())),
                _ => true,
            },
            Some(offset) => {
                let time = read_time(record, *offset);
                // A record without times goes to both: neither is to lose it.
                time == 0 || (time >= period.from && time <= period.until)
            }
        }
    }

    fn add(&mut self, record: &mut [u8]) {
        if self
            .held
            .as_ref()
            .is_some_and(|held| held.size - held.used < record.len())
        {
            self.hand_back();
        }
        if self.held.is_none() {
            self.held = obtain(self.buffers);
        }
        let Some(held) = self
            .held
            .as_mut()
            .filter(|held| held.size - held.used >= record.len())
        else {
            count_dropped(1);
            return;
        };
        if let Some(conversion) = self.conversion {
            let number = record.first_chunk().map_or(0, |kind| u32::from_ne_bytes(*kind));
            for offset in activity::time_offsets(number) {
                let time = read_time(record, *offset);
                if time != 0 {
                    write_time(record, *offset, conversion.apply(time));
                }
            }
        }
        // SAFETY: `used` is within the buffer.
        let space = unsafe { held.address.add(held.used) };
        // SAFETY: there is room, and the two are apart.
        unsafe { ptr::copy_nonoverlapping(record.as_ptr(), space.as_ptr(), record.len()) };
        held.used += record.len();
    }

    fn hand_back(&mut self) {
        let Some(held) = self.held.take_if(|held| held.used > 0) else {
            return;
        };
        // SAFETY: their function and their buffer, as CUPTI would.
        unsafe {
            (self.buffers.completed)(
                self.context,
                self.stream,
                held.address.as_ptr(),
                held.size,
                held.used,
            );
        }
    }
}

/// A time in a record; 0 when there is none.
pub(super) fn read_time(record: &[u8], offset: usize) -> u64 {
    let bytes = record.get(offset..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |time| u64::from_ne_bytes(*time))
}

fn write_time(record: &mut [u8], offset: usize, time: u64) {
    if let Some(bytes) = record.get_mut(offset..offset + size_of::<u64>()) {
        bytes.copy_from_slice(&time.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static BUFFERS: [[u64; 2]; 2] = [[0; 2]; 2];

    fn buffer(at: usize) -> *mut u8 {
        BUFFERS[at].as_ptr().cast_mut().cast()
    }

    /// While they make a buffer, another thread keeps the one that it had taken out.
    unsafe extern "C" fn requested(address: *mut *mut u8, size: *mut usize, _records: *mut usize) {
        keep(NonNull::new(buffer(1)).map(|address| ClientBuffer {
            address,
            size: 16,
            used: 0,
        }));
        // SAFETY: the words of `request`.
        unsafe { address.write(buffer(0)) };
        // SAFETY: as above.
        unsafe { size.write(16) };
    }

    unsafe extern "C" fn completed(_: *mut c_void, _: u32, _: *mut u8, _: usize, _: usize) {}

    #[test]
    fn no_buffer_is_lost_where_two_threads_keep_one_issue_26() {
        let buffers = Buffers { requested, completed };
        keep(request(buffers));
        let mut kept: Vec<*mut u8> = std::mem::take(&mut lock(&STATE).held)
            .iter()
            .map(|held| held.address.as_ptr())
            .collect();
        kept.sort();
        assert_eq!(kept, [buffer(0), buffer(1)]);
    }

    #[test]
    fn times_are_converted_along_the_line_through_two_readings() {
        let conversion = Conversion {
            first: Reading {
                cupti: 1_000_000_000_000_000_000,
                client: 5_000,
            },
            rate: 2.5,
        };
        assert_eq!(conversion.apply(1_000_000_000_000_000_000), 5_000);
        assert_eq!(conversion.apply(1_000_000_000_000_001_000), 7_500);
        assert_eq!(conversion.apply(999_999_999_999_999_000), 2_500);
    }
}
