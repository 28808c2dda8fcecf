//! Connections from targets: new targets, requests for rings, and messages.

use std::time::Duration;

use tracesmith_wire::{
    Capacity,
    control::{Control, Kinds, Message},
    handshake::{Granted, PendingConnection, Purpose},
};

use super::{BUSY_PAUSE, Session, Store, WindowState};
use crate::{
    end::End,
    identity::Identity,
    ring::{self, Keep, Ring},
    target::{Opened, Order, Target, TargetKey, TargetStore},
};

/// How long to wait for the first packet of a connection. Targets send it when they connect.
const HELLO_LIMIT: Duration = Duration::from_millis(50);

impl Session {
    /// Adds a connected target and sends it the current state of the window. `own_pid` is the pid in the target's pid
    /// namespace, if it has sent one.
    pub(crate) fn add_target(
        &mut self,
        control: Control,
        own_pid: Option<u32>,
        opened: Opened,
    ) -> Option<TargetKey> {
        let claimed = own_pid.or(control.peer().process_id())?;
        let id = control.peer().id(claimed);
        if let Some(key) = self.key_of(id) {
            let position = self.position(key)?;
            if self.targets[position].is_same_program() {
                return self.reconnect(position, control, opened).then_some(key);
            }
            self.end_target(key, End::Replaced);
        }
        let identity = Identity::of_peer(control.peer(), own_pid);
        let store = self.new_store(&identity);
        let key = self.new_key();
        let mut target = Target::with_control(key, identity, control, store);
        match self.window {
            WindowState::Opening { .. } | WindowState::Open { .. } => {
                target.order(Order::Open, &self.open_message())
            }
            WindowState::Ahead { .. } | WindowState::Over => target.order(Order::Close, &Message::Close),
        }
        self.targets.push(target);
        Some(key)
    }

    /// Accepts one connection. More waiting connections make the next turn short.
    pub(super) fn accept_connection(&mut self) {
        // The listener has sent the reason to a client that it cannot serve. This is not an error of the session.
        let Ok(visitor) = self.listener.accept(HELLO_LIMIT) else {
            return;
        };
        let hello = *visitor.hello();
        if hello.purpose == Purpose::Control {
            let _ = self.add_target(visitor.into_control(), Some(hello.process_id), Opened::ByTarget);
        } else {
            self.grant(visitor, hello.purpose, hello.process_id);
        }
    }

    /// Creates the ring that a target requested.
    fn grant(&mut self, visitor: PendingConnection, purpose: Purpose, own_pid: u32) {
        let keep = if self.is_flight_recorder() {
            Keep::LastPart
        } else {
            Keep::Everything
        };
        let Some(config) = ring::config(purpose, &self.settings, keep) else {
            return;
        };
        let known = self.key_of(visitor.peer().id(own_pid));
        let known = known.and_then(|key| self.position(key));
        let all: u64 = self.targets.iter().map(Target::ring_bytes).sum();
        let config = ring::shared(config, purpose, keep, all);
        let taken = known.map_or(0, |at| self.targets[at].ring_bytes());
        // The ring for replay data does not count toward the memory limit, because the user requests a replay capture
        // explicitly.
        let bound = self.settings.memory_bytes
            + if self.settings.kinds.contains(Kinds::REPLAY_CAPTURE) {
                Capacity::REPLAY_CAPTURE.bytes()
            } else {
                0
            };
        if taken + config.capacity.bytes() > bound {
            let words = "no memory left for rings; raise the limit with --buffer-size";
            // The target may have disconnected. Then it needs no reason.
            let _ = visitor.refuse(words, HELLO_LIMIT);
            if let Some(at) = known {
                self.note_failure(at, words.to_owned());
            }
            return;
        }
        let Ok(Granted { consumer, peer }) = visitor.grant(config, HELLO_LIMIT) else {
            return;
        };
        let at = known.unwrap_or_else(|| {
            let identity = Identity::of_peer(&peer, Some(own_pid));
            let store = self.new_store(&identity);
            let target = Target::with_peer(self.new_key(), identity, peer, store);
            self.targets.push(target);
            self.targets.len() - 1
        });
        let ring = Ring::new(consumer, purpose, config.capacity);
        match purpose {
            Purpose::Definitions => self.targets[at].add_definitions(ring),
            _ => self.targets[at].add_ring(ring),
        }
        self.pause = BUSY_PAUSE;
    }

    /// Handles one message from a target.
    pub(super) fn handle_message(&mut self, key: TargetKey) {
        // A dump in the same turn can have removed the target.
        let Some(position) = self.position(key) else {
            return;
        };
        let message = match self.targets[position].receive() {
            Ok(Some(message)) => message,
            Ok(None) => return,
            Err(reason) => return self.note_failure(position, reason),
        };
        match message {
            Message::Done => {
                if self.targets[position].answered() == Some(Order::Open) {
                    self.opened += 1;
                }
            }
            Message::Failed(reason) => {
                let _ = self.targets[position].answered();
                self.note_failure(position, reason);
            }
            Message::Dump => {
                let dumped = self.dump().map(|path| path.display().to_string());
                // A dump removes exited targets, so positions change.
                if let Some(position) = self.position(key) {
                    self.targets[position].send(&Message::Dumped(dumped));
                }
            }
            // Only the collector sends these messages.
            Message::Open(_) | Message::Close | Message::Begin | Message::End | Message::Dumped(_) => {}
        }
    }

    /// Handles a second connection of a known process. A target reconnects if its program closed the connection's
    /// file descriptor, for example by closing all descriptors. A second connection is refused while the first one is
    /// open.
    fn reconnect(&mut self, position: usize, control: Control, opened: Opened) -> bool {
        let target = &mut self.targets[position];
        if !target.reconnect(control, opened) {
            return false;
        }
        match self.window {
            WindowState::Opening { .. } | WindowState::Open { .. } if !target.has_rings() => {
                let open = self.open_message();
                self.targets[position].order(Order::Open, &open);
            }
            // The target waits for a first message, even if there is nothing to record yet.
            WindowState::Ahead { .. } | WindowState::Over => target.order(Order::Close, &Message::Close),
            _ => {}
        }
        true
    }

    fn note_failure(&mut self, position: usize, reason: String) {
        self.refused.get_or_insert_with(|| reason.clone());
        let trace = match &mut self.store {
            Store::Stream(trace) => Some(&mut **trace),
            Store::Flight(_) => None,
        };
        self.targets[position].failed(reason, trace);
    }

    fn new_store(&mut self, identity: &Identity) -> TargetStore {
        self.report.processes += 1;
        self.known.extend(identity.process_key());
        match &mut self.store {
            Store::Stream(trace) => TargetStore::Stream(Box::new(trace.begin_process(identity))),
            Store::Flight(_) => TargetStore::Flight(Box::default()),
        }
    }
}
