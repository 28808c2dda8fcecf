//! Switching callbacks on and off, and calling those who need them.

use std::ffi::c_void;

use tracesmith_cuda::{
    Error,
    cupti::{
        Subscriber, Switch,
        abi::{ApiCallback, SITE_EXIT, domain},
        callback_switches,
    },
};

use super::{
    CuptiMultiplexer, current,
    reasons::{Reason, ReasonMask},
};
use crate::{
    cuda::{
        in_process_client,
        kinds::{Functions, interface, number_of},
        resources,
    },
    guard::{self, lock},
};

/// A callback by its domain and ID.
pub(in crate::cuda) type CallbackId = (u32, u32);

impl CuptiMultiplexer {
    /// The reasons for a callback.
    #[inline]
    pub(in crate::cuda) fn reasons(&self, (domain, id): CallbackId) -> ReasonMask {
        self.reasons.get(domain, id)
    }

    /// Adds a reason to callbacks, or removes it. Returns how many of them CUPTI
    /// cannot switch: not every ID that has a name has a function in every version.
    pub(in crate::cuda) fn watch(
        &self,
        reason: Reason,
        callbacks: impl IntoIterator<Item = CallbackId>,
        switch: Switch,
    ) -> usize {
        let callbacks = callbacks.into_iter();
        callbacks
            .filter(|callback| self.set_reason(reason, *callback, switch).is_err())
            .count()
    }

    /// The same, for functions of the driver.
    pub(in crate::cuda) fn watch_driver(&self, reason: Reason, functions: &[u32], switch: Switch) -> usize {
        self.watch(reason, functions.iter().map(|id| (domain::DRIVER, *id)), switch)
    }

    /// Starts or ends the recording of calls. Those that are in progress at the end
    /// are recorded until [`CuptiMultiplexer::forget_calls`].
    pub(in crate::cuda) fn watch_calls(&self, functions: &Functions, switch: Switch) {
        for (which, id) in functions {
            let callback = (number_of(*which), *id);
            if switch == Switch::On {
                self.reasons
                    .set(callback.0, callback.1, Reason::CallsInProgress, switch);
            }
            // Not every ID that has a name has a function in every version.
            let _ = self.set_reason(Reason::Calls, callback, switch);
        }
    }

    /// Calls in progress are not recorded from now on.
    pub(in crate::cuda) fn forget_calls(&self, functions: &Functions) {
        for (which, id) in functions {
            self.reasons
                .set(number_of(*which), *id, Reason::CallsInProgress, Switch::Off);
        }
    }

    /// Adds a reason to a callback, or removes it, and switches the callback.
    pub(in crate::cuda) fn set_reason(
        &self,
        reason: Reason,
        (domain, id): CallbackId,
        switch: Switch,
    ) -> Result<(), Error> {
        let _one_at_a_time = lock(&self.state);
        let Some(subscriber) = self.switches.handle() else {
            // Nothing is on without a subscription.
            if switch == Switch::Off {
                self.reasons.set(domain, id, reason, switch);
            }
            return Ok(());
        };
        if domain as usize >= domain::COUNT {
            return self.cupti.enable_callback(subscriber, domain, id, switch);
        }
        let reasons = self.reasons.set(domain, id, reason, switch);
        match (switch, reasons.is_enabled()) {
            (Switch::On, true) | (Switch::Off, false) => {
                self.switch_callback(subscriber, (domain, id), switch)
            }
            // An ID without a mask, or one that is still needed.
            (Switch::On, false) | (Switch::Off, true) => Ok(()),
        }
    }

    fn switch_callback(
        &self,
        subscriber: Subscriber,
        (domain, id): CallbackId,
        switch: Switch,
    ) -> Result<(), Error> {
        let apply = |subscriber| self.cupti.enable_callback(subscriber, domain, id, switch);
        match (interface(domain), switch) {
            (None, _) => apply(subscriber),
            (Some(which), Switch::On) => self.switches.turn_on((which, id), apply),
            (Some(which), Switch::Off) => {
                let function = (which, id);
                self.switches
                    .turn_off(function, callback_switches::is_any_within, apply)
            }
        }
    }

    /// Switches all callbacks of a domain on or off for the program's profiler.
    pub(in crate::cuda) fn set_domain_for_client(&self, domain: u32, switch: Switch) -> Result<(), Error> {
        let _one_at_a_time = lock(&self.state);
        let Some(subscriber) = self.switches.handle() else {
            return Ok(());
        };
        self.reasons.set_domain(domain, Reason::InProcessClient, switch);
        let apply = |subscriber| self.cupti.enable_domain(subscriber, domain, switch);
        if domain as usize >= domain::COUNT {
            return apply(subscriber);
        }
        match (interface(domain), switch) {
            (Some(which), Switch::On) => self.switches.turn_all_on(which, apply),
            (Some(which), Switch::Off) => {
                let is_needed = |id: &u32| self.reasons.get(domain, *id).is_enabled();
                for id in self.switches.on(which).filter(|id| !is_needed(id)) {
                    // Not every ID has a function.
                    let _ = self.switch_callback(subscriber, (domain, id), Switch::Off);
                }
                Ok(())
            }
            (None, Switch::On) => apply(subscriber),
            (None, Switch::Off) => {
                apply(subscriber)?;
                // What TraceSmith needs stays on.
                for id in self.reasons.enabled(domain) {
                    self.cupti.enable_callback(subscriber, domain, id, Switch::On)?;
                }
                Ok(())
            }
        }
    }

    /// Calls those who need a callback.
    ///
    /// # Safety
    ///
    /// `data` is what CUPTI gave for this domain.
    #[inline]
    unsafe fn dispatch(&self, domain: u32, id: u32, data: *const c_void) {
        if self.reasons((domain, id)).has(Reason::InProcessClient) {
            // SAFETY: passed on as CUPTI gave it.
            unsafe { in_process_client::callback(domain, id, data) };
        }
        if self.reasons((domain, id)).is_ours() {
            // SAFETY: as CUPTI gave it for this domain.
            guard::run((), || unsafe { resources::callback(self, domain, id, data) });
        }
    }
}

/// What CUPTI calls for every callback that is on.
pub(super) unsafe extern "C" fn callback(_user: *mut c_void, domain: u32, id: u32, data: *const c_void) {
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
