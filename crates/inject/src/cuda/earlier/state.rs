//! What an earlier client has registered and enabled, as CUPTI's own memory has it.
//!
//! Read in CUPTI 12.4, 12.8, 12.9 and 13.0: a subscription is an object on the heap that begins with the client's
//! function and its word, the handle is its address, and a `std::list` of them hangs on a variable of the library.
//! `cuptiGetCallbackState` compares a handle with those of that list before it looks into it, so it can be asked about
//! anything. Enabled kinds are bits of one word.
//!
//! Nothing here depends on where in the library those variables are: they are found by what they contain, and by how
//! they change.

use std::{ffi::c_void, mem, ops::Range, time::Duration};

use tracesmith_cuda::cupti::{
    CallbackFunction, Cupti, Subscriber,
    abi::{domain, kind, resource},
};

use super::{
    Subscription,
    memory::{Variables, can_be_object, words},
};

/// More callbacks than any domain has.
const CALLBACKS: u32 = 1024;

/// Kinds that nothing makes records of while the others are off. They are enabled for a moment.
const HARMLESS: [u32; 2] = [kind::NAME, kind::EXTERNAL_CORRELATION];

/// So many words are read one by one.
const FEW: usize = 1000;

/// The clocks are the same if they are no further apart.
const SAME_CLOCK: Duration = Duration::from_secs(1);

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

/// The kinds that are enabled, one bit for each; none if that cannot be found out.
pub(super) fn enabled_kinds(cupti: &Cupti) -> Option<u64> {
    let function = cupti.subscribing() as u64;
    let mut cells = Cells::new(function);
    let mut on = 0;
    for number in HARMLESS {
        let is_on = cupti.enable(number).is_ok();
        on |= u64::from(is_on) << number;
        cells.keep_those_with(on, function);
    }
    for number in HARMLESS {
        if on & (1 << number) != 0 {
            // It was on, so it can be off.
            let _ = cupti.disable(number);
        }
    }
    if on == 0 {
        return None;
    }
    cells.keep_those_with(0, function);
    cells.union()
}

/// Words that can be the one with the enabled kinds: variables of the library, and what they point to. Each with its
/// address and what it was.
struct Cells(Vec<(u64, u64)>);

impl Cells {
    fn new(function: u64) -> Self {
        Self(Self::all(function))
    }

    fn all(function: u64) -> Vec<(u64, u64)> {
        let variables = Variables::of(function);
        let behind = variables.objects().into_iter().filter_map(|object| {
            let [word] = words(object)?;
            Some((object, word))
        });
        let mut cells: Vec<(u64, u64)> = behind.collect();
        cells.extend(variables.words());
        cells.sort_unstable();
        cells.dedup();
        cells
    }

    /// Keeps those that have these bits now, and had none of them; without bits, those that are what they were. CUPTI
    /// may enable a kind that another one needs, so that others change too.
    fn keep_those_with(&mut self, bits: u64, function: u64) {
        // All at once takes less time than one by one, while there are many.
        let now = (self.0.len() > FEW).then(|| Self::all(function));
        self.0.retain(|(address, before)| {
            let is = match &now {
                Some(now) => now
                    .binary_search_by_key(address, |cell| cell.0)
                    .ok()
                    .and_then(|at| now.get(at))
                    .map(|cell| cell.1),
                None => words(*address).map(|[word]| word),
            };
            before & bits == 0 && is.is_some_and(|is| is & bits == bits && (bits != 0 || is == *before))
        });
    }

    /// What all that are left were, together: where several are left, none may have had a kind.
    fn union(&self) -> Option<u64> {
        let values = self.0.iter().map(|cell| cell.1);
        values.reduce(|all, value| all | value)
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
