//! What an earlier client has registered and enabled, as CUPTI's own memory has it.
//!
//! Read in the machine code of CUPTI 12.4, 12.8, 12.9 and 13.0: a subscription is an object on the heap that begins with
//! the client's function and its word, the handle is its address, and a `std::list` of them hangs on a variable of the
//! library. `cuptiGetCallbackState` compares a handle with those of that list before it looks into it, so it can be asked
//! about anything. Subscriptions of other versions are not taken over ([`is_known`]).
//!
//! Enabled kinds are bits of one word. That was read in CUPTI 13.0 only. So each process checks it: the word must follow
//! two kinds that are enabled and disabled. Without such a word nothing is known.
//!
//! Nothing here depends on where in the library those variables are: they are found by what they contain, and by how
//! they change.

use std::{ffi::c_void, mem, ops::Range, time::Duration};

use tracesmith_cuda::cupti::{
    CallbackFunction, Cupti, Subscriber,
    abi::{domain, kind, resource},
    activity::{VERSION_12_4, VERSION_12_8, VERSION_13_0},
};

use super::{
    Subscription,
    memory::{Variables, can_be_object, words},
};

/// More callbacks than any domain has.
const CALLBACKS: u32 = 1024;

/// Kinds that nothing makes records of while the others are off. They are enabled for a moment, the second one only if
/// the word that followed the first one shows that the client has not enabled it.
const HARMLESS: [u32; 2] = [kind::NAME, kind::EXTERNAL_CORRELATION];

/// The clocks are the same if they are no further apart.
const SAME_CLOCK: Duration = Duration::from_secs(1);

/// Whether subscriptions of a version are as described above.
pub(super) fn is_known(version: u32) -> bool {
    const CUPTI_12_9: u32 = 28;
    let is_13_0 = version / 100 == VERSION_13_0 / 100;
    is_13_0 || [VERSION_12_4, VERSION_12_8, CUPTI_12_9].contains(&version)
}

/// The one subscription that CUPTI has, if its function belongs to one of these libraries.
pub(super) fn subscription(cupti: &Cupti, clients: &[Range<u64>]) -> Option<Subscription> {
    let state = |handle: u64, domain, id| cupti.callback_state(Subscriber(handle as *mut c_void), domain, id);
    let mut found: Option<(u64, [u64; 2])> = None;
    for handle in elements_of_lists(&Variables::of(cupti.subscribing() as u64)) {
        let Some(object) = words::<2>(handle) else {
            continue;
        };
        let is_clients = clients.iter().any(|client| client.contains(&object[0]));
        if !is_clients || state(handle, domain::RESOURCE, resource::CONTEXT_CREATED).is_none() {
            continue;
        }
        if found.is_some_and(|(other, _)| other != handle) {
            return None;
        }
        found = Some((handle, object));
    }
    let (handle, [function, user]) = found?;
    let ids = (domain::DRIVER..=domain::STATE).flat_map(|domain| (1..CALLBACKS).map(move |id| (domain, id)));
    let enabled = ids
        .filter(|(domain, id)| state(handle, *domain, *id) == Some(true))
        .collect();
    Some(Subscription {
        handle: Subscriber(handle as *mut c_void),
        // SAFETY: what a client passed to cuptiSubscribe, in a library of the client's: CUPTI calls it as this type.
        function: unsafe { mem::transmute::<*const c_void, CallbackFunction>(function as *const c_void) },
        user: user as *mut c_void,
        enabled,
    })
}

/// What can be the only element of a `std::list` of pointers, which is a variable or what a variable points to.
fn elements_of_lists(variables: &Variables) -> Vec<u64> {
    let pairs = variables.words().windows(2);
    let within = pairs.filter_map(|pair| only_element(pair[0].0, [pair[0].1, pair[1].1]));
    let objects = variables.objects();
    let behind = objects
        .iter()
        .filter_map(|head| only_element(*head, words(*head)?));
    within.chain(behind).collect()
}

/// The element of the list whose head is at an address and holds these two words, if it has one and no more.
fn only_element(head: u64, [next, previous]: [u64; 2]) -> Option<u64> {
    if next != previous || next == head || !can_be_object(next) {
        return None;
    }
    let [back, forth, element] = words(next)?;
    (back == head && forth == head && can_be_object(element)).then_some(element)
}

/// Which kinds are enabled was not found.
pub(super) struct NotFound {
    /// A kind that the search enabled. It is left on, because a client may have enabled it before.
    pub(super) left_on: Option<u32>,
}

/// The kinds that are enabled, one bit for each. What the client has enabled stays so.
pub(super) fn enabled_kinds(cupti: &Cupti) -> Result<u64, NotFound> {
    let function = cupti.subscribing() as u64;
    let [first, second] = HARMLESS;
    let cells = Cells::read(function).that_follow(cupti, first, || Cells::read(function))?;
    let enabled = cells.union()?;
    if enabled & (1 << second) != 0 {
        // A session of its own has it. To disable it would take records from it.
        return Ok(enabled);
    }
    cells.that_follow(cupti, second, || cells.now())?.union()
}

/// Words that can be the one with the enabled kinds: variables of the library, and what they point to. Each with its
/// address and what it was.
struct Cells(Vec<(u64, u64)>);

impl Cells {
    fn read(function: u64) -> Self {
        let variables = Variables::of(function);
        let behind = variables.objects().into_iter().filter_map(|object| {
            let [word] = words(object)?;
            Some((object, word))
        });
        let mut cells: Vec<(u64, u64)> = behind.collect();
        cells.extend(variables.words());
        cells.sort_unstable();
        cells.dedup();
        Self(cells)
    }

    /// Those whose bit is set while a kind is enabled, and only then; `read` reads all that can be such words then. If there
    /// are none, the kind is left on.
    ///
    /// CUPTI makes its state when the first kind of a process is enabled, so a word may be new. (Seen in CUPTI 13.0, in a
    /// PyTorch program that had never used torch.profiler.)
    fn that_follow(&self, cupti: &Cupti, number: u32, read: impl FnOnce() -> Self) -> Result<Self, NotFound> {
        let bit = 1 << number;
        // CUPTI does not have every kind.
        if self.0.is_empty() || cupti.enable(number).is_err() {
            return Err(NotFound { left_on: None });
        }
        let mut cells = read();
        let is_new_or = |address, is: &dyn Fn(u64) -> bool| self.at(address).is_none_or(is);
        cells
            .0
            .retain(|(address, word)| word & bit != 0 && is_new_or(*address, &|was| was & bit == 0));
        // On, and it was off, if any of them is the right one.
        let _ = cupti.disable(number);
        let mut cells = cells.now();
        cells
            .0
            .retain(|(address, word)| word & bit == 0 && is_new_or(*address, &|was| was == *word));
        if cells.0.is_empty() {
            let _ = cupti.enable(number);
            return Err(NotFound {
                left_on: Some(number),
            });
        }
        Ok(cells)
    }

    /// What they are now.
    fn now(&self) -> Self {
        let now = |(address, _): &(u64, u64)| words(*address).map(|[word]| (*address, word));
        Self(self.0.iter().filter_map(now).collect())
    }

    /// What the word at an address was.
    fn at(&self, address: u64) -> Option<u64> {
        let found = self.0.binary_search_by_key(&address, |cell| cell.0).ok()?;
        self.0.get(found).map(|cell| cell.1)
    }

    /// What all that are left are, together: where several are left, none may have a kind.
    fn union(&self) -> Result<u64, NotFound> {
        let values = self.0.iter().map(|cell| cell.1);
        let union = values.reduce(|all, value| all | value);
        union.ok_or(NotFound { left_on: None })
    }
}

/// Has CUPTI take its times from the clock that it uses by itself, if a client gave it another one.
pub(super) fn restore_clock(cupti: &Cupti) {
    let apart = cupti.timestamp().abs_diff(system_clock_nanos());
    if u128::from(apart) > SAME_CLOCK.as_nanos() {
        // If it fails, times are those of the other clock, and the window shows no GPU work.
        // SAFETY: asks the system for the time. This library is never unloaded.
        let _ = unsafe { cupti.register_clock(system_clock) };
    }
}

/// Linux: CUPTI's own clock is the time of day.
unsafe extern "C" fn system_clock() -> u64 {
    system_clock_nanos()
}

fn system_clock_nanos() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes one time.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
