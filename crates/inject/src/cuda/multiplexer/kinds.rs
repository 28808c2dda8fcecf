//! Activity kinds, and single functions of them, for both clients.

use std::{collections::HashSet, sync::atomic::Ordering};

use tracesmith_cuda::{
    Error,
    cupti::{ApiDomain, Cupti, Switch, abi::kind},
};

use super::{Client, CuptiMultiplexer, State};
use crate::{cuda::kinds::kind_of, guard::lock};

impl CuptiMultiplexer {
    /// Starts a kind for a side.
    pub(in crate::cuda) fn enable(&self, client: Client, number: u32) -> Result<(), Error> {
        self.enable_by(client, number, Cupti::enable)
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
        client: Client,
        number: u32,
        enable: impl Fn(&Cupti, u32) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut state = lock(&self.state);
        let Some(wanted) = state.selections[client as usize].kinds.get_mut(number as usize) else {
            return enable(&self.cupti, number);
        };
        *wanted = true;
        match client {
            Client::TraceSmith => self.accepted[number as usize].store(true, Ordering::Relaxed),
            // Enabling a kind enables all its functions.
            Client::InProcess => state.selections[client as usize]
                .skipped
                .retain(|function| kind_of(function.0) != number),
        }
        let result = enable(&self.cupti, number);
        if result.is_err() {
            state.selections[client as usize].kinds[number as usize] = false;
        }
        self.apply_functions(&state, number);
        result
    }

    /// Ends a kind for a side.
    pub(in crate::cuda) fn disable(&self, client: Client, number: u32) -> Result<(), Error> {
        let mut state = lock(&self.state);
        let Some(wanted) = state.selections[client as usize].kinds.get_mut(number as usize) else {
            return self.cupti.disable(number);
        };
        *wanted = false;
        let still = state
            .selections
            .iter()
            .any(|selection| selection.kinds[number as usize]);
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
        let selection = &mut state.selections[Client::InProcess as usize];
        match switch {
            Switch::On => {
                selection.single.insert(function);
                selection.skipped.remove(&function);
            }
            Switch::Off => {
                selection.single.remove(&function);
                selection.skipped.insert(function);
            }
        }
        let wanted = state.selections.iter().any(|selection| selection.wants(function));
        self.cupti.enable_function(function.0, function.1, on_if(wanted))
    }

    /// Whether a side wants a kind.
    pub(in crate::cuda) fn wants_kind(&self, client: Client, number: u32) -> bool {
        let state = lock(&self.state);
        state.selections[client as usize]
            .kinds
            .get(number as usize)
            .is_some_and(|wanted| *wanted)
    }

    /// Whether a side has said that it wants no records of a function.
    pub(in crate::cuda) fn skips_function(&self, client: Client, function: (ApiDomain, u32)) -> bool {
        lock(&self.state).selections[client as usize]
            .skipped
            .contains(&function)
    }

    /// Whether a side wants records of a function.
    pub(in crate::cuda) fn wants_function(&self, client: Client, function: (ApiDomain, u32)) -> bool {
        lock(&self.state).selections[client as usize].wants(function)
    }

    /// A kind of calls was switched, which resets single functions.
    fn apply_functions(&self, state: &State, number: u32) {
        let domain = match number {
            kind::DRIVER => ApiDomain::Driver,
            kind::RUNTIME => ApiDomain::Runtime,
            _ => return,
        };
        let mentioned: HashSet<(ApiDomain, u32)> = state
            .selections
            .iter()
            .flat_map(|selection| selection.skipped.iter().chain(&selection.single))
            .filter(|function| function.0 == domain)
            .copied()
            .collect();
        for function in mentioned {
            let wanted = state.selections.iter().any(|selection| selection.wants(function));
            // Before CUDA 12.5 single functions cannot be switched: what is
            // skipped is then left out when the buffer is read.
            let _ = self.cupti.enable_function(function.0, function.1, on_if(wanted));
        }
    }
}

fn on_if(wanted: bool) -> Switch {
    if wanted { Switch::On } else { Switch::Off }
}
