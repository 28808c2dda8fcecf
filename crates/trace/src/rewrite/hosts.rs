//! Hosts of a merged trace on one timeline.
//!
//! Each host's recording pairs its clocks with UTC, which belongs to no host, so in a merged trace all of them hang together
//! there and `ClockMap` needs nothing more. PTP clocks of several hosts show the same time only where something
//! synchronises them, which a trace does not say: they are linked when the user says so.

use std::collections::BTreeMap;
use std::io::Write;

use serde::Serialize;
use tracesmith_format::tables::{Clock, ClockKind, ClockPair};
use tracesmith_format::{Block, ClockId, HostId, Timestamp, Writer};

use super::{Input, NewIds};
use crate::error::Error;
use crate::model::clocks::ClockMap;
use crate::model::trace::Trace;

/// What brings the clocks of several hosts together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostLink {
    /// The time of day of each host, as far as the recorded error of it allows.
    #[default]
    Utc,
    /// PTP hardware clocks that one grandmaster keeps, where hosts have them; else the time of day.
    Ptp,
}

/// How a host's times were placed beside those of the first host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostPlacement {
    /// The host's name.
    pub name: String,
    /// At most this many nanoseconds off; `None` when nothing links its clock, and its times stay as they are.
    #[serde(rename = "uncertainty_ns")]
    pub uncertainty: Option<u64>,
}

/// Clocks of the new trace, as far as they were written.
#[derive(Default)]
pub(super) struct Clocks {
    clocks: Vec<Clock>,
    pairs: Vec<ClockPair>,
    hosts: BTreeMap<HostId, String>,
    /// First and last time of events, by clock.
    spans: BTreeMap<ClockId, (u64, u64)>,
}

impl Clocks {
    pub(super) fn add_clock(&mut self, clock: Clock, trace: &Trace, old_host: HostId) {
        if let Some(host) = trace.host(old_host) {
            self.hosts.insert(clock.host, trace.string(host.name).to_owned());
        }
        self.clocks.push(clock);
    }

    pub(super) fn add_pair(&mut self, pair: ClockPair) {
        self.pairs.push(pair);
    }

    pub(super) fn add_block(&mut self, clock: ClockId, block: &Block) {
        let (first, last) = (block.header.first_time, block.header.last_time);
        if first != 0 {
            let span = self.spans.entry(clock).or_insert((first, last));
            *span = (span.0.min(first), span.1.max(last));
        }
    }

    /// Links PTP clocks of several hosts to one that belongs to none of them.
    pub(super) fn link_by_ptp<W: Write>(
        &mut self,
        new_ids: &mut NewIds,
        writer: &mut Writer<W>,
    ) -> Result<(), Error> {
        let is_ptp = |id: ClockId| {
            let mut clocks = self.clocks.iter();
            clocks.any(|clock| clock.id == id && clock.kind == ClockKind::PTP)
        };
        let read: Vec<(ClockId, Timestamp)> = self
            .pairs
            .iter()
            .flat_map(|pair| [(pair.first, pair.first_time), (pair.second, pair.second_time)])
            .filter(|(clock, _)| is_ptp(*clock))
            .collect();
        if read.is_empty() {
            return Ok(());
        }
        let shared = Clock {
            id: new_ids.new_clock(),
            kind: ClockKind::PTP,
            name: writer.string("PTP grandmaster")?,
            resolution: 1,
            ..Clock::default()
        };
        writer.define(&shared)?;
        for (clock, time) in read {
            let pair = ClockPair {
                first: clock,
                second: shared.id,
                first_time: time,
                second_time: time,
                uncertainty: 0,
            };
            writer.define(&pair)?;
            self.pairs.push(pair);
        }
        self.clocks.push(shared);
        Ok(())
    }

    /// How the hosts other than the first were placed.
    pub(super) fn placements(&self) -> Vec<HostPlacement> {
        let map = ClockMap::new(&self.clocks, &self.pairs);
        let host_of = |id: ClockId| {
            let found = self.clocks.iter().find(|clock| clock.id == id);
            found.map_or(HostId::NONE, |clock| clock.host)
        };
        let first = host_of(map.reference());
        let mut worst: BTreeMap<HostId, Option<u64>> = BTreeMap::new();
        for (clock, (from, to)) in &self.spans {
            let host = host_of(*clock);
            if host == HostId::NONE || host == first {
                continue;
            }
            let at = |time| map.convert(*clock, Timestamp(time)).uncertainty;
            let here = map.is_linked(*clock).then(|| at(*from).max(at(*to)));
            let known = worst.entry(host).or_insert(Some(0));
            *known = known.zip(here).map(|(known, here)| known.max(here));
        }
        worst
            .into_iter()
            .map(|(host, uncertainty)| HostPlacement {
                name: self.hosts.get(&host).cloned().unwrap_or_default(),
                uncertainty,
            })
            .collect()
    }
}

impl<W: Write> Input<'_, W> {
    /// Keeps in mind what clocks there are, with their new ids.
    pub(super) fn note_clocks(&mut self, pairs: &[ClockPair]) -> Result<(), Error> {
        for clock in &self.trace.clocks {
            let new = self.map.remapped(clock)?;
            self.clocks.add_clock(new, self.trace, clock.host);
        }
        for pair in pairs {
            let new = self.map.remapped(pair)?;
            self.clocks.add_pair(new);
        }
        Ok(())
    }
}
