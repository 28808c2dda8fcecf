//! Switches callbacks of API calls off only while no thread is in such a call.
//!
//! CUPTI stores for each thread the calls that it is in. If a callback is
//! switched off between the beginning and the end of a call, that call stays
//! there: later work of the thread gets its correlation ID. After a few such
//! calls CUPTI reports no more beginnings (seen with 13.0). Switching a callback
//! on during a call does no harm.
//!
//! So every thread notes which calls it is in ([`ThreadCallStack`]). A callback is
//! switched off while no thread is in its function. Otherwise it is switched off
//! later, by [`CallbackSwitches::settle`]. If a call begins at the same time, its
//! thread finds the callback off and switches it on again.
//!
//! That needs a subscription. CUPTI notes a call before it calls back, and the
//! thread may be delayed in between. So the subscription ends some time after the
//! last callback is off.

mod thread_call_stack;

#[cfg(loom)]
use loom::sync::{
    Mutex, MutexGuard,
    atomic::{Ordering, fence},
};
#[cfg(not(loom))]
use std::sync::{
    Mutex, MutexGuard,
    atomic::{Ordering, fence},
};
use std::{array, sync::PoisonError};

pub use thread_call_stack::{ThreadCallStack, here, is_any_within, last_recorded};

use crate::cupti::{ApiDomain, Switch, function_set::FunctionSet};

/// A function by its interface and callback number.
pub type Function = (ApiDomain, u32);

/// How often one settling tries to switch a callback off: a thread that launches
/// all the time is outside of launches only briefly.
const TRIES: u32 = if cfg!(loom) { 1 } else { 64 };

/// How often in a row nothing must be left to settle before the subscription ends.
pub const QUIET: u32 = if cfg!(loom) { 1 } else { 20 };

/// Which callbacks are on, for CUPTI's one subscriber.
pub struct CallbackSwitches<C> {
    on: [FunctionSet; 2],
    /// Callbacks that are on and not needed: switched off as soon as no thread is in
    /// their function.
    waiting: [FunctionSet; 2],
    client: Mutex<Subscription<C>>,
}

struct Subscription<C> {
    /// As CUPTI knows it.
    handle: Option<C>,
    /// It unsubscribes once nothing has waited for a while.
    is_leaving: bool,
    /// How often in a row nothing did.
    quiet: u32,
}

impl<C: Copy> Default for CallbackSwitches<C> {
    fn default() -> Self {
        Self {
            on: array::from_fn(|_| FunctionSet::new()),
            waiting: array::from_fn(|_| FunctionSet::new()),
            client: Mutex::new(Subscription {
                handle: None,
                is_leaving: false,
                quiet: 0,
            }),
        }
    }
}

impl<C: Copy> CallbackSwitches<C> {
    /// Subscribes, unless that was done.
    pub fn attach<E>(&self, subscribe: impl FnOnce() -> Result<C, E>) -> Result<(), E> {
        let mut client = self.client();
        client.is_leaving = false;
        if client.handle.is_none() {
            client.handle = Some(subscribe()?);
        }
        Ok(())
    }

    /// CUPTI's handle of the subscription, if there is one.
    pub fn handle(&self) -> Option<C> {
        self.client().handle
    }

    /// Switches the callbacks of a function on. Does nothing without a subscription.
    pub fn turn_on<E>(&self, function: Function, enable: impl FnOnce(C) -> Result<(), E>) -> Result<(), E> {
        let client = self.client();
        let Some(handle) = client.handle else {
            return Ok(());
        };
        let (domain, id) = function;
        self.waiting[domain as usize].set(id, Switch::Off);
        // First, because a thread that finds it enabled relies on it.
        let enabled = enable(handle);
        self.on[domain as usize].set(id, Switch::On);
        enabled
    }

    /// Switches the callbacks of all functions of an interface on.
    pub fn turn_all_on<E>(
        &self,
        domain: ApiDomain,
        enable: impl FnOnce(C) -> Result<(), E>,
    ) -> Result<(), E> {
        let client = self.client();
        let Some(handle) = client.handle else {
            return Ok(());
        };
        self.waiting[domain as usize].set_all(Switch::Off);
        let enabled = enable(handle);
        self.on[domain as usize].set_all(Switch::On);
        enabled
    }

    /// Whether the callback of a function is on. One whose ID does not fit the set counts as on.
    #[inline]
    fn is_on(&self, (domain, id): Function) -> bool {
        self.on[domain as usize].get(id).unwrap_or(true)
    }

    /// Functions of an interface whose callbacks are on.
    pub fn on(&self, domain: ApiDomain) -> impl Iterator<Item = u32> {
        self.on[domain as usize].iter()
    }

    /// Switches the callbacks of a function off, now or when no thread is in it: see
    /// [`CallbackSwitches::settle`]. Does nothing without a subscription.
    pub fn turn_off<E>(
        &self,
        function: Function,
        is_within: impl Fn(Function) -> bool,
        disable: impl FnOnce(C) -> Result<(), E>,
    ) -> Result<(), E> {
        let client = self.client();
        match client.handle {
            Some(handle) => self.try_off(function, is_within, || disable(handle)),
            None => Ok(()),
        }
    }

    /// The same; the caller holds the client.
    fn try_off<E>(
        &self,
        function: Function,
        is_within: impl Fn(Function) -> bool,
        disable: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let (domain, id) = function;
        // One that is off is not on because a thread is within it: that one is about to switch it on.
        if !self.is_on(function) {
            return Ok(());
        }
        self.on[domain as usize].set(id, Switch::Off);
        // A thread whose call is not seen now finds the callback off, and waits for the lock.
        fence(Ordering::SeqCst);
        if is_within(function) {
            self.on[domain as usize].set(id, Switch::On);
            self.waiting[domain as usize].set(id, Switch::On);
            return Ok(());
        }
        self.waiting[domain as usize].set(id, Switch::Off);
        disable()
    }

    /// The calling thread begins a call, in CUPTI's callback.
    #[inline]
    pub fn begins(&self, stack: &ThreadCallStack, function: Function, enable: impl FnOnce(C)) {
        stack.push(function);
        // Who switches the callback off sees this call, or we see that it is off.
        fence(Ordering::SeqCst);
        if !self.is_on(function) {
            self.keep_on(function, enable);
        }
    }

    /// Enables a callback again: a thread entered the function while its callback was
    /// being disabled, or just after that.
    #[cold]
    fn keep_on(&self, (domain, id): Function, enable: impl FnOnce(C)) {
        let Some(mut client) = self.client_soon() else {
            return;
        };
        client.quiet = 0;
        if let Some(handle) = client.handle
            && !self.is_on((domain, id))
        {
            self.waiting[domain as usize].set(id, Switch::On);
            enable(handle);
            self.on[domain as usize].set(id, Switch::On);
        }
    }

    /// Whether nothing is left for [`CallbackSwitches::settle`].
    pub fn is_settled(&self) -> bool {
        let client = self.client();
        !client.is_leaving && !self.is_waiting()
    }

    /// Whether callbacks that nobody wants are on, for threads that are within calls.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.iter().all(FunctionSet::is_empty)
    }

    /// CallbackSwitches off what waits for it and has no thread in it now. To be called now
    /// and then until all [is settled](CallbackSwitches::is_settled).
    pub fn settle(
        &self,
        is_within: impl Fn(Function) -> bool,
        disable: impl Fn(C, Function),
        unsubscribe: impl FnOnce(C),
    ) {
        for domain in [ApiDomain::Driver, ApiDomain::Runtime] {
            for id in self.waiting[domain as usize].iter() {
                for _ in 0..TRIES {
                    let client = self.client();
                    // Someone may want it again by now.
                    let (Some(handle), true) = (client.handle, self.waiting[domain as usize].contains(id))
                    else {
                        break;
                    };
                    let Ok(()) = self.try_off((domain, id), &is_within, || {
                        disable(handle, (domain, id));
                        Ok::<(), std::convert::Infallible>(())
                    });
                    drop(client);
                    std::hint::spin_loop();
                }
            }
        }
        let mut client = self.client();
        if !client.is_leaving || self.is_waiting() {
            client.quiet = 0;
            return;
        }
        client.quiet += 1;
        if client.quiet >= QUIET {
            client.is_leaving = false;
            if let Some(handle) = client.handle.take() {
                unsubscribe(handle);
            }
        }
    }

    /// Requests the end of the subscription. [`CallbackSwitches::settle`] ends it later.
    pub fn leave(&self) {
        let mut client = self.client();
        client.is_leaving = client.handle.is_some();
        client.quiet = 0;
    }

    /// Ends the subscription now, even if a thread is in a call.
    pub fn leave_now(&self, unsubscribe: impl FnOnce(C)) {
        let mut client = self.client();
        client.is_leaving = false;
        if let Some(handle) = client.handle.take() {
            unsubscribe(handle);
        }
        for set in self.waiting.iter().chain(&self.on) {
            set.set_all(Switch::Off);
        }
    }

    fn client(&self) -> MutexGuard<'_, Subscription<C>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client, or `None` after a second. The caller is inside a CUPTI callback, and
    /// the thread that holds the lock may be waiting in CUPTI for that callback.
    #[cfg(not(loom))]
    fn client_soon(&self) -> Option<MutexGuard<'_, Subscription<C>>> {
        use std::{sync::TryLockError, thread, time::Duration};
        for attempt in 0..1100 {
            match self.client.try_lock() {
                Ok(client) => return Some(client),
                Err(TryLockError::Poisoned(client)) => return Some(client.into_inner()),
                Err(TryLockError::WouldBlock) if attempt < 100 => thread::yield_now(),
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
            }
        }
        None
    }

    #[cfg(loom)]
    fn client_soon(&self) -> Option<MutexGuard<'_, Subscription<C>>> {
        Some(self.client())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::{cell::RefCell, convert::Infallible};

    use super::{thread_call_stack::DEEPEST, *};

    const LAUNCH: Function = (ApiDomain::Driver, 307);
    const WAIT: Function = (ApiDomain::Driver, 126);
    const RUNTIME_WAIT: Function = (ApiDomain::Runtime, 131);

    /// What CUPTI was told.
    #[derive(Default)]
    struct CuptiLog(RefCell<Vec<String>>);

    impl CuptiLog {
        fn note(&self, words: &str, function: Function) -> Result<(), Infallible> {
            self.0.borrow_mut().push(format!("{words} {}", function.1));
            Ok(())
        }

        fn take(&self) -> Vec<String> {
            std::mem::take(&mut self.0.borrow_mut())
        }
    }

    fn attached() -> CallbackSwitches<()> {
        let switches = CallbackSwitches::default();
        let Ok(()) = switches.attach(|| Ok::<(), Infallible>(()));
        switches
    }

    fn on(switches: &CallbackSwitches<()>, log: &CuptiLog, function: Function) {
        let Ok(()) = switches.turn_on(function, |()| log.note("on", function));
    }

    fn off(switches: &CallbackSwitches<()>, log: &CuptiLog, stack: &ThreadCallStack, function: Function) {
        let Ok(()) = switches.turn_off(
            function,
            |function| stack.is_within(function),
            |()| log.note("off", function),
        );
    }

    fn settle(switches: &CallbackSwitches<()>, log: &CuptiLog, stack: &ThreadCallStack) {
        switches.settle(
            |function| stack.is_within(function),
            |(), function| log.note("off", function).unwrap_or(()),
            |()| log.0.borrow_mut().push("left".to_owned()),
        );
    }

    #[test]
    fn what_a_thread_is_in_is_switched_off_behind_it() {
        let (switches, log, stack) = (attached(), CuptiLog::default(), ThreadCallStack::default());
        for function in [LAUNCH, WAIT, RUNTIME_WAIT] {
            on(&switches, &log, function);
        }
        log.take();
        switches.begins(&stack, RUNTIME_WAIT, |()| panic!("is on"));
        switches.begins(&stack, WAIT, |()| panic!("is on"));
        for function in [LAUNCH, WAIT, RUNTIME_WAIT] {
            off(&switches, &log, &stack, function);
        }
        switches.leave();
        assert_eq!(log.take(), ["off 307"]);
        stack.ends(WAIT);
        settle(&switches, &log, &stack);
        assert_eq!(log.take(), ["off 126"]);
        assert!(!switches.is_settled());
        stack.ends(RUNTIME_WAIT);
        settle(&switches, &log, &stack);
        assert_eq!(log.take(), ["off 131"]);
        for _ in 1..QUIET {
            assert!(!switches.is_settled());
            settle(&switches, &log, &stack);
        }
        assert_eq!(log.take(), ["left"]);
        assert!(switches.is_settled() && switches.handle().is_none());
    }

    #[test]
    fn what_is_wanted_again_stays_on() {
        let (switches, log, stack) = (attached(), CuptiLog::default(), ThreadCallStack::default());
        on(&switches, &log, WAIT);
        switches.begins(&stack, WAIT, |()| panic!("is on"));
        off(&switches, &log, &stack, WAIT);
        switches.leave();
        let Ok(()) = switches.attach(|| -> Result<(), Infallible> { panic!("has never left") });
        on(&switches, &log, WAIT);
        stack.ends(WAIT);
        settle(&switches, &log, &stack);
        assert_eq!(log.take(), ["on 126", "on 126"]);
    }

    /// CUPTI has decided to tell of a call, and is slow to do so.
    #[test]
    fn a_call_that_begins_behind_the_end_keeps_its_callback() {
        let (switches, log, stack) = (attached(), CuptiLog::default(), ThreadCallStack::default());
        on(&switches, &log, WAIT);
        off(&switches, &log, &stack, WAIT);
        switches.begins(&stack, WAIT, |()| log.note("on", WAIT).unwrap_or(()));
        assert_eq!(log.take(), ["on 126", "off 126", "on 126"]);
        stack.ends(WAIT);
        settle(&switches, &log, &stack);
        assert_eq!(log.take(), ["off 126"]);
    }

    /// The same, when the client is about to leave: it stays until that call has ended, and a while longer.
    #[test]
    fn a_call_that_begins_late_keeps_the_client() {
        let (switches, log, stack) = (attached(), CuptiLog::default(), ThreadCallStack::default());
        on(&switches, &log, WAIT);
        off(&switches, &log, &stack, WAIT);
        switches.leave();
        for _ in 1..QUIET {
            settle(&switches, &log, &stack);
        }
        switches.begins(&stack, WAIT, |()| log.note("on", WAIT).unwrap_or(()));
        for _ in 0..2 * QUIET {
            settle(&switches, &log, &stack);
        }
        assert_eq!(log.take(), ["on 126", "off 126", "on 126"]);
        stack.ends(WAIT);
        for _ in 0..QUIET {
            settle(&switches, &log, &stack);
        }
        assert_eq!(log.take(), ["off 126", "left"]);
    }

    #[test]
    fn ends_without_a_beginning_end_nothing_else() {
        let stack = ThreadCallStack::default();
        stack.push(WAIT);
        stack.ends(LAUNCH);
        assert!(stack.is_within(WAIT));
        // The end of what lies above was not told.
        stack.push(LAUNCH);
        stack.ends(WAIT);
        assert!(!stack.is_within(WAIT) && !stack.is_within(LAUNCH));
        stack.ends(WAIT);
        assert!(!stack.is_within(WAIT));
    }

    #[test]
    fn who_is_too_deep_may_be_anywhere() {
        let stack = ThreadCallStack::default();
        for _ in 0..=DEEPEST {
            stack.push(LAUNCH);
        }
        assert!(stack.is_within(WAIT));
        stack.ends(WAIT);
        assert!(!stack.is_within(WAIT) && stack.is_within(LAUNCH));
    }

    #[test]
    fn threads_are_seen_while_they_are_in_a_call() {
        let function = (ApiDomain::Driver, 1999);
        let (log, listen) = std::sync::mpsc::channel();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let caller = std::thread::spawn(move || {
            here().unwrap().push(function);
            log.send(()).unwrap();
            wait.recv().unwrap();
        });
        listen.recv().unwrap();
        assert!(is_any_within(function));
        go.send(()).unwrap();
        caller.join().unwrap();
        assert!(!is_any_within(function), "it has ended");
    }
}
