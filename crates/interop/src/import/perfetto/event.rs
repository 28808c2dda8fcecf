//! Track events: slices, moments, counters and flows, in today's form and in that of old traces.

use tracesmith_format::tables::{
    Caller, Counter, CounterTrack, Flow, FlowKind, FlowPhase, FlowShape, HealthCause, HostCall, HostCallKind,
    HostShape, Marker, MarkerKind, MarkerShape,
};
use tracesmith_format::{DeviceId, HostId, StackId, Timestamp};

use super::clocks::Moment;
use super::sequence::Text;
use super::slices::{Slice, Stacked};
use super::track_event::{Legacy, TrackEvent};
use super::tracks::Owner;
use super::{Envelope, Import, Origin};
use crate::error::Error;
use crate::perfetto::schema::{event, frame};
use crate::perfetto::wire::Fields;

/// Flows whose beginning is remembered, so that later ends are known as such.
const MAX_FLOWS: usize = 4 << 20;

impl Import<'_, '_, '_> {
    pub(super) fn track_event(
        &mut self,
        host: HostId,
        envelope: &Envelope<'_>,
        content: &[u8],
    ) -> Result<(), Error> {
        let sequence = self.sequences.entry((host, envelope.sequence)).or_default();
        let mut event = TrackEvent::new(content, sequence);
        let (default_track, thread) = (sequence.default_track, sequence.thread);
        let extra_counters = if event.extra_counts.is_empty() {
            Vec::new()
        } else {
            sequence.extra_counters.clone()
        };
        let Some(moment) = self.event_time(host, envelope, &event)? else {
            return Ok(());
        };
        if !event.inline_stack.is_empty() {
            event.stack = self.inline_stack(&event.inline_stack)?;
        }
        let track = event.track.or(default_track).filter(|uuid| *uuid != 0);
        let (place, owner) = match (track, thread) {
            (Some(uuid), _) => (Stacked::Track(uuid), self.tracks.owner(uuid)),
            (None, Some((process, thread))) => (
                Stacked::Sequence(host.0, envelope.sequence),
                Owner::Thread(process, thread),
            ),
            (None, None) => (Stacked::Sequence(host.0, envelope.sequence), Owner::Global),
        };
        if owner == Owner::Derived {
            return Ok(());
        }
        for (uuid, value) in extra_counters
            .into_iter()
            .zip(std::mem::take(&mut event.extra_counts))
        {
            self.count(uuid, moment, value)?;
        }
        for (id, phase) in std::mem::take(&mut event.flows) {
            self.flow(id, phase, moment, owner, &event.categories)?;
        }
        let (kind, legacy) = match (event.kind, event.legacy.take()) {
            (0, Some(legacy)) => (0, Some(legacy)),
            (kind, _) => (kind, None),
        };
        if kind == event::COUNTER {
            let Some(value) = event.count else {
                self.builder.skip("counter events without a value", 1);
                return Ok(());
            };
            return self.count(track.unwrap_or(0), moment, value);
        }
        let slice = Slice {
            owner,
            track_name: track
                .and_then(|uuid| self.tracks.get_mut(uuid))
                .map(|track| track.name.clone())
                .unwrap_or_default(),
            clock: moment.clock,
            start: moment.time,
            name: event.name,
            categories: event.categories,
            arguments: event.arguments,
            stack: event.stack,
        };
        match (kind, legacy) {
            (event::BEGIN, _) => self.slices.begin(place, slice),
            (event::END, _) => return self.end(place, moment),
            (event::INSTANT, _) => return self.put_instant(slice),
            (_, Some(legacy)) => return self.legacy_event(place, slice, &legacy, moment),
            _ => self.builder.skip("track events of an unknown type", 1),
        }
        Ok(())
    }

    /// The time of an event, which in old traces is in the event.
    fn event_time(
        &mut self,
        host: HostId,
        envelope: &Envelope<'_>,
        event: &TrackEvent,
    ) -> Result<Option<Moment>, Error> {
        if envelope.timestamp.is_some() {
            return self.time(host, envelope);
        }
        let sequence = self.sequences.entry((host, envelope.sequence)).or_default();
        let micros = match (event.absolute_micros, event.delta_micros) {
            (Some(micros), _) => micros,
            (None, Some(delta)) => {
                sequence.legacy_micros = sequence.legacy_micros.wrapping_add(delta);
                sequence.legacy_micros
            }
            (None, None) => 0,
        };
        let moment = match micros.checked_mul(1_000) {
            Some(nanos) => {
                let monotonic = Some(crate::perfetto::schema::clock::MONOTONIC);
                self.clocks
                    .moment((host, envelope.sequence), monotonic, nanos, self.builder)?
            }
            None => None,
        };
        if moment.is_none() {
            self.builder.skip("packets whose time is not known", 1);
        }
        Ok(moment)
    }

    fn end(&mut self, place: Stacked, moment: Moment) -> Result<(), Error> {
        match self.slices.end(place) {
            Some(slice) => self.put_slice(slice, Some(moment)),
            None => {
                self.builder.skip("ends of slices that have not begun", 1);
                Ok(())
            }
        }
    }

    fn legacy_event(
        &mut self,
        place: Stacked,
        slice: Slice,
        legacy: &Legacy,
        moment: Moment,
    ) -> Result<(), Error> {
        let asynchronous = Stacked::Asynchronous(legacy.id);
        match legacy.phase {
            b'B' => self.slices.begin(place, slice),
            b'E' => return self.end(place, moment),
            b'b' | b'S' => self.slices.begin(asynchronous, slice),
            b'e' | b'F' => return self.end(asynchronous, moment),
            b'X' => {
                let duration = legacy
                    .duration_micros
                    .and_then(|micros| micros.checked_mul(1_000));
                let end = duration.and_then(|nanos| moment.time.0.checked_add(nanos));
                let end = end.map(|time| Moment {
                    time: Timestamp(time),
                    ..moment
                });
                return self.put_slice(slice, end);
            }
            b'I' | b'i' | b'n' | b'R' => return self.put_instant(slice),
            b's' => return self.arrow(legacy.id, FlowPhase::START, moment, &slice),
            b't' => return self.arrow(legacy.id, FlowPhase::STEP, moment, &slice),
            b'f' => return self.arrow(legacy.id, FlowPhase::END, moment, &slice),
            _ => self.builder.skip("events of old traces of other phases", 1),
        }
        Ok(())
    }

    /// Writes a slice of any trace; one without an end is kept without.
    pub(super) fn put_slice(&mut self, slice: Slice, end: Option<Moment>) -> Result<(), Error> {
        let end = match end {
            Some(end) if end.clock == slice.clock && end.time >= slice.start => end.time,
            None => Timestamp::NONE,
            Some(_) => {
                self.builder
                    .doubt(HealthCause::OTHER, "slices that end before they begin", 1);
                Timestamp::NONE
            }
        };
        if self.origin == Origin::Ourselves && self.put_own_slice(&slice, end)? {
            return Ok(());
        }
        if let Owner::Thread(..) = slice.owner {
            return self.put_host_call(&slice, end);
        }
        let kind = if end.is_some() {
            MarkerKind::FREE_RANGE
        } else {
            MarkerKind::OPEN_FREE_RANGE
        };
        self.put_marker(&slice, end, kind)
    }

    pub(super) fn put_instant(&mut self, slice: Slice) -> Result<(), Error> {
        if self.origin == Origin::Ourselves && self.put_own_instant(&slice)? {
            return Ok(());
        }
        self.put_marker(&slice, slice.start, MarkerKind::INSTANT)
    }

    fn put_host_call(&mut self, slice: &Slice, end: Timestamp) -> Result<(), Error> {
        let row = HostCall {
            start: slice.start,
            end,
            stack: slice.stack,
            detail: self.builder.string(&slice.arguments.in_words())?,
            caller: slice.caller(),
            shape: HostShape {
                name: self.builder.string(&slice.name)?,
                kind: HostCallKind::CUSTOM,
                category: self.builder.string(&slice.categories.join(","))?,
                ..HostShape::default()
            },
            ..HostCall::default()
        };
        self.builder.push(slice.clock, &row)
    }

    fn put_marker(&mut self, slice: &Slice, end: Timestamp, kind: MarkerKind) -> Result<(), Error> {
        let row = Marker {
            start: slice.start,
            end,
            stack: slice.stack,
            detail: self.builder.string(&slice.arguments.in_words())?,
            caller: slice.caller(),
            shape: MarkerShape {
                name: self.builder.string(&slice.name)?,
                domain: self.builder.string(&slice.track_name)?,
                category_name: self.builder.string(&slice.categories.join(","))?,
                kind,
                ..MarkerShape::default()
            },
            ..Marker::default()
        };
        self.builder.push(slice.clock, &row)
    }

    /// A counter's value.
    pub(super) fn count(&mut self, uuid: u64, moment: Moment, value: f64) -> Result<(), Error> {
        let owner = self.tracks.owner(uuid);
        let Some(track) = self.tracks.get_mut(uuid) else {
            self.builder.skip("values of counters that are not described", 1);
            return Ok(());
        };
        let (name, mut value, mut unit) = (track.name.clone(), value, Text::from(""));
        if let Some(counter) = &mut track.counter {
            value *= counter.multiplier as f64;
            if counter.is_incremental {
                counter.sum += value;
                value = counter.sum;
            }
            unit = counter.unit.clone();
        }
        let Caller { process, thread } = Caller {
            process: owner.caller().0,
            thread: owner.caller().1,
        };
        let row = Counter {
            time: moment.time,
            value,
            track: CounterTrack {
                name: self.builder.string(&name)?,
                unit: self.builder.string(&unit)?,
                process,
                thread,
                device: match owner {
                    Owner::Device(device) => device,
                    _ => DeviceId::NONE,
                },
                ..CounterTrack::default()
            },
        };
        self.builder.push(moment.clock, &row)
    }

    /// An event's part in a flow. In an export of ours the flows of launches say what correlations say.
    fn flow(
        &mut self,
        id: u64,
        phase: FlowPhase,
        moment: Moment,
        owner: Owner,
        categories: &[Text],
    ) -> Result<(), Error> {
        if self.origin == Origin::Ourselves && !categories.is_empty() {
            return Ok(());
        }
        let is_new = self.flows.len() < MAX_FLOWS && self.flows.insert(id);
        let phase = match phase {
            FlowPhase::STEP if is_new => FlowPhase::START,
            other => other,
        };
        self.put_flow(id, FlowKind::CUSTOM, phase, "", moment, owner)
    }

    /// A flow event of old traces.
    fn arrow(&mut self, id: u64, phase: FlowPhase, moment: Moment, slice: &Slice) -> Result<(), Error> {
        let (id, kind) = match self.origin {
            Origin::Ourselves => super::own::flow_of(id),
            Origin::Foreign => (id, FlowKind::CUSTOM),
        };
        self.put_flow(id, kind, phase, &slice.name, moment, slice.owner)
    }

    fn put_flow(
        &mut self,
        id: u64,
        kind: FlowKind,
        phase: FlowPhase,
        name: &str,
        moment: Moment,
        owner: Owner,
    ) -> Result<(), Error> {
        let (process, thread) = owner.caller();
        let mut shape = FlowShape {
            kind,
            phase,
            name: self.builder.string(name)?,
            process,
            thread,
            ..FlowShape::default()
        };
        if let Owner::Stream(place) = owner {
            (shape.device, shape.stream) = (place.device, place.stream);
        }
        let row = Flow {
            time: moment.time,
            flow: id,
            shape,
            ..Flow::default()
        };
        self.builder.push(moment.clock, &row)
    }

    /// A stack that is given in the event itself, the outermost frame first.
    fn inline_stack(&mut self, bytes: &[u8]) -> Result<StackId, Error> {
        let mut frames = Vec::new();
        for (_, value) in Fields::new(bytes)
            .flatten()
            .filter(|(field, _)| *field == frame::INLINE_FRAMES)
        {
            let mut found = tracesmith_format::tables::Frame::default();
            for (field, value) in Fields::new(value.bytes()).flatten() {
                let text = || String::from_utf8_lossy(value.bytes());
                match field {
                    frame::INLINE_FUNCTION => found.function = self.builder.string(&text())?,
                    frame::INLINE_FILE => found.file = self.builder.string(&text())?,
                    frame::INLINE_LINE => found.line = value.number() as u32,
                    _ => {}
                }
            }
            frames.push(self.builder.frame(found)?);
        }
        self.builder.stack(frames)
    }
}
