//! Why callbacks are on: one mask of reasons for each callback ID.

use std::sync::atomic::{AtomicU16, Ordering};

use tracesmith_cuda::cupti::{Switch, abi::domain, function_set::FunctionSet};

/// IDs of a domain that have a mask. Larger ones are never switched on.
const IDS: usize = FunctionSet::CAPACITY as usize;

/// Why a callback is on. CUPTI has it on while its mask has an [enabling](ReasonMask::is_enabled) reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(in crate::cuda) enum Reason {
    /// A profiler in the program has switched it on.
    InProcessClient = 1 << 0,
    /// Calls of the function are recorded.
    Calls = 1 << 1,
    /// Calls of the function that began in the window are still recorded. This reason does not keep a callback on: it
    /// stays for a while after [`Reason::Calls`] is removed.
    CallsInProgress = 1 << 2,
    /// The stacks of the function's callers, or of those who make graph nodes, are captured.
    Stacks = 1 << 3,
    /// The function waits, or is about events.
    Waits = 1 << 4,
    /// The dependencies between nodes of graphs are recorded.
    GraphEdges = 1 << 5,
    /// Modules, contexts and streams are recorded.
    Resources = 1 << 6,
    /// Replay capture needs the call, or the module.
    ReplayCapture = 1 << 7,
    /// The program's calls of the profiler API open and close the window.
    ProfilerRange = 1 << 8,
    /// Launches of a kernel open and close the window.
    LaunchRange = 1 << 9,
}

/// The reasons for one callback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::cuda) struct ReasonMask(u16);

impl ReasonMask {
    /// Whether a reason is among them.
    #[inline]
    pub(in crate::cuda) fn has(self, reason: Reason) -> bool {
        self.0 & reason as u16 != 0
    }

    /// Whether CUPTI has the callback on.
    #[inline]
    pub(super) fn is_enabled(self) -> bool {
        self.0 & !(Reason::CallsInProgress as u16) != 0
    }

    /// Whether TraceSmith needs it: also for calls in progress, whose callbacks are switched off when they return.
    #[inline]
    pub(super) fn is_ours(self) -> bool {
        self.0 & !(Reason::InProcessClient as u16) != 0
    }
}

/// The masks of all callbacks. Callbacks read them without a lock.
pub(super) struct Reasons(Box<[AtomicU16]>);

impl Default for Reasons {
    fn default() -> Self {
        Self((0..domain::COUNT * IDS).map(|_| AtomicU16::new(0)).collect())
    }
}

impl Reasons {
    /// The reasons for a callback; none for a domain or an ID that has no mask.
    #[inline]
    pub(super) fn get(&self, domain: u32, id: u32) -> ReasonMask {
        let mask = self.mask(domain, id);
        mask.map_or(ReasonMask::default(), |mask| {
            ReasonMask(mask.load(Ordering::Acquire))
        })
    }

    /// Adds or removes a reason. Returns those that there are then.
    pub(super) fn set(&self, domain: u32, id: u32, reason: Reason, switch: Switch) -> ReasonMask {
        let Some(mask) = self.mask(domain, id) else {
            return ReasonMask::default();
        };
        let bit = reason as u16;
        ReasonMask(match switch {
            Switch::On => mask.fetch_or(bit, Ordering::AcqRel) | bit,
            Switch::Off => mask.fetch_and(!bit, Ordering::AcqRel) & !bit,
        })
    }

    /// Adds a reason to all callbacks of a domain, or removes it.
    pub(super) fn set_domain(&self, domain: u32, reason: Reason, switch: Switch) {
        for id in 0..IDS as u32 {
            self.set(domain, id, reason, switch);
        }
    }

    /// The callbacks of a domain that CUPTI has on.
    pub(super) fn enabled(&self, domain: u32) -> impl Iterator<Item = u32> {
        (0..IDS as u32).filter(move |id| self.get(domain, *id).is_enabled())
    }

    #[inline]
    fn mask(&self, domain: u32, id: u32) -> Option<&AtomicU16> {
        let has_mask = (domain as usize) < domain::COUNT && (id as usize) < IDS;
        has_mask
            .then(|| self.0.get(domain as usize * IDS + id as usize))
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callback_is_on_until_its_last_reason_is_gone() {
        let reasons = Reasons::default();
        let set = |reason, switch| reasons.set(domain::DRIVER, 307, reason, switch);
        assert!(!reasons.get(domain::DRIVER, 307).is_enabled());
        set(Reason::Calls, Switch::On);
        set(Reason::InProcessClient, Switch::On);
        let mask = set(Reason::CallsInProgress, Switch::On);
        assert!(mask.is_enabled() && mask.is_ours() && mask.has(Reason::Calls));
        let mask = set(Reason::Calls, Switch::Off);
        assert!(mask.is_enabled() && mask.is_ours(), "for calls in progress");
        let mask = set(Reason::InProcessClient, Switch::Off);
        assert!(!mask.is_enabled() && mask.is_ours() && mask.has(Reason::CallsInProgress));
        assert_eq!(mask, reasons.get(domain::DRIVER, 307));
        assert_eq!(
            reasons.get(domain::RUNTIME, 307),
            ReasonMask::default(),
            "of another domain"
        );
    }

    #[test]
    fn all_callbacks_of_a_domain_are_set_at_once_and_no_others() {
        let reasons = Reasons::default();
        reasons.set(domain::RESOURCE, 6, Reason::Resources, Switch::On);
        reasons.set_domain(domain::RESOURCE, Reason::InProcessClient, Switch::On);
        assert_eq!(reasons.enabled(domain::RESOURCE).count(), IDS);
        assert_eq!(reasons.enabled(domain::SYNCHRONIZE).count(), 0);
        reasons.set_domain(domain::RESOURCE, Reason::InProcessClient, Switch::Off);
        assert_eq!(reasons.enabled(domain::RESOURCE).collect::<Vec<_>>(), [6]);
    }

    #[test]
    fn what_has_no_mask_is_never_on() {
        let reasons = Reasons::default();
        for (domain, id) in [(domain::COUNT as u32, 1), (domain::DRIVER, IDS as u32)] {
            assert!(!reasons.set(domain, id, Reason::Calls, Switch::On).is_enabled());
            assert!(!reasons.get(domain, id).is_enabled());
        }
    }
}
