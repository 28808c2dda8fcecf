//! Memory that the program allocates and frees.

use tracesmith_cuda::cupti::parameters::{Allocate, AllocatePitch};
use tracesmith_wire::record::Command;

use super::{Call, code, given, pointed};
use crate::replay_capture::{
    State,
    functions::{Order, Taking, Wait},
    memory::{Kind, Neighbours},
};

impl State {
    /// # Safety
    ///
    /// As [`State::ended`].
    pub(super) unsafe fn allocated(&mut self, call: &Call<'_>, taking: Taking) {
        let (address, bytes) = if taking == Taking::Pitched {
            let Some(taken) = given!(call, AllocatePitch) else {
                return;
            };
            let pitch = pointed!(taken.pitch).copied().unwrap_or(taken.width);
            (taken.address, pitch * taken.height)
        } else {
            let Some(taken) = given!(call, Allocate) else {
                return;
            };
            (taken.address, taken.bytes)
        };
        let Some(address) = pointed!(address).copied() else {
            return;
        };
        let kind = match taking {
            Taking::Host => Kind::Host,
            Taking::Managed => Kind::Managed,
            _ => Kind::Device,
        };
        self.took(call, address, bytes as u64, kind, Neighbours::Apart);
    }

    /// The program has memory that it did not have.
    pub(super) fn took(
        &mut self,
        call: &Call<'_>,
        address: u64,
        bytes: u64,
        kind: Kind,
        neighbours: Neighbours,
    ) {
        self.memory
            .took(address, bytes, kind, call.callback.context_id, neighbours);
        if !self.is_window {
            return;
        }
        self.memory.reach_fresh(address);
        let command = Command {
            kind: code::ALLOCATE,
            destination: address,
            bytes,
            value: u64::from(kind as u8),
            ..self.command(call)
        };
        self.send_command(command, &[], &[], &[], "");
    }

    pub(super) fn free(&mut self, call: &Call<'_>, address: u64, order: Order, stream: u64) {
        let known = self.memory.on_free(address);
        if self.is_window && known {
            let stream = match order {
                Order::InStream => self.stream(call, stream as usize),
                Order::Now => 0,
            };
            let command = Command {
                kind: code::FREE,
                stream,
                destination: address,
                ..self.command(call)
            };
            self.send_command(command, &[], &[], &[], "");
            if order == Order::Now {
                // Memory does not go before all work on it is done.
                self.host_waits(call, Wait::All, 0);
            }
        }
    }
}
