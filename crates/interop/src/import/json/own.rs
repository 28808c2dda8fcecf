//! Events of our own trace-event JSON as the rows that they came from.
//!
//! Chrome's form has processes and threads only. Our export (docs/reference/interop/json-export.md) therefore states the
//! process, device and stream of device work, the thread of a marker, and the kind of everything else in its category.

use tracesmith_format::tables::*;
use tracesmith_format::{
    Address, Bytes, ContextId, CorrelationId, DeviceId, GraphId, GraphNodeId, Ordinal, ProcessId, StreamId,
    StringId, ThreadId, Timestamp,
};

use crate::error::Error;
use crate::import::code;
use crate::import::json::event::Event;
use crate::import::json::number::{signed, unquoted, unsigned};
use crate::import::json::reading::Reading;
use crate::import::json::text::text_of;
use crate::import::json::tracks::Asking;

/// What the names of counters begin with that follow from the allocations.
const DERIVED_COUNTER: &[u8] = b"memory in use (";

impl Reading<'_, '_, '_> {
    /// Writes an event of ours; false for what any other file would have, too.
    pub(super) fn own_event(&mut self, event: &Event<'_>) -> Result<bool, Error> {
        if event.argument(b"marker").is_some() {
            self.own_marker(event)?;
            return Ok(true);
        }
        match event.category() {
            b"kernel" => self.kernel(event)?,
            b"copy" => self.own_copy(event)?,
            b"set" => self.own_set(event)?,
            b"sync" => self.own_sync(event)?,
            b"graph" => self.own_graph_launch(event)?,
            b"collective" => self.own_collective(event)?,
            b"memory" => self.own_allocation(event)?,
            category => {
                let domain: ApiDomain = code(
                    ApiDomain::ALL,
                    ApiDomain::name,
                    &String::from_utf8_lossy(category),
                );
                if domain == ApiDomain::UNKNOWN {
                    return Ok(false);
                }
                self.own_call(event, domain)?;
            }
        }
        Ok(true)
    }

    /// Whether a counter follows from other events, so that it is not read again.
    pub(super) fn is_derived_counter(&self, event: &Event<'_>) -> bool {
        self.is_own && event.raw_name().starts_with(DERIVED_COUNTER)
    }

    /// Start and end; an instant has no end that is known.
    fn own_span(&mut self, event: &Event<'_>) -> (Timestamp, Timestamp) {
        match event.phase() {
            Some(b'X') => self.span(event),
            _ => (self.moment(event), Timestamp::NONE),
        }
    }

    fn own_place(&mut self, event: &Event<'_>) -> Place {
        let process = match event.argument(b"process").and_then(signed) {
            Some(pid) => self.tracks.numbered(self.builder, pid),
            None => ProcessId::NONE,
        };
        let device = match event.argument(b"device").and_then(unsigned) {
            Some(number) => self.tracks.device(self.builder, number),
            None => DeviceId::NONE,
        };
        let place = Place {
            process,
            device,
            context: ContextId(number(event, b"context") as u32),
            stream: StreamId(number(event, b"stream")),
            ..Place::default()
        };
        if place.device.is_some() {
            self.builder.seen_at(&place);
        }
        place
    }

    fn own_copy(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let (start, end) = self.own_span(event);
        let memory = |key: &[u8]| code(MemoryKind::ALL, MemoryKind::name, &text(event, key));
        let name = event.name();
        let row = MemoryCopy {
            start,
            end,
            bytes: Bytes(number(event, b"bytes")),
            copies: number(event, b"copies"),
            source: Address(address(event, b"source")),
            destination: Address(address(event, b"destination")),
            correlation: CorrelationId(number(event, b"correlation")),
            graph_node: GraphNodeId(number(event, b"graph node")),
            stack: self.stack(event)?,
            place: self.own_place(event),
            shape: CopyShape {
                direction: code(
                    CopyDirection::ALL,
                    CopyDirection::name,
                    name.strip_prefix("copy ").unwrap_or_default(),
                ),
                source_memory: memory(b"from"),
                destination_memory: memory(b"to"),
                graph: GraphId(number(event, b"graph")),
                ..CopyShape::default()
            },
            ..MemoryCopy::default()
        };
        self.push(&row)
    }

    fn own_set(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let (start, end) = self.own_span(event);
        let row = MemorySet {
            start,
            end,
            bytes: Bytes(number(event, b"bytes")),
            value: number(event, b"value") as u32,
            address: Address(address(event, b"address")),
            correlation: CorrelationId(number(event, b"correlation")),
            graph_node: GraphNodeId(number(event, b"graph node")),
            stack: self.stack(event)?,
            place: self.own_place(event),
            shape: SetShape {
                memory: code(MemoryKind::ALL, MemoryKind::name, &text(event, b"memory")),
                graph: GraphId(number(event, b"graph")),
                ..SetShape::default()
            },
        };
        self.push(&row)
    }

    fn own_sync(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let (start, end) = self.own_span(event);
        let row = Synchronization {
            start,
            end,
            correlation: CorrelationId(number(event, b"correlation")),
            event: number(event, b"event"),
            event_record: number(event, b"event record"),
            stack: self.stack(event)?,
            place: self.own_place(event),
            shape: SyncShape {
                kind: code(SyncKind::ALL, SyncKind::name, &event.name()),
                result: event.argument(b"result").and_then(signed).unwrap_or(0) as i32,
            },
            ..Synchronization::default()
        };
        self.push(&row)
    }

    fn own_graph_launch(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let (start, end) = self.own_span(event);
        let row = GraphLaunch {
            start,
            end,
            correlation: CorrelationId(number(event, b"correlation")),
            stack: self.stack(event)?,
            place: self.own_place(event),
            shape: GraphShape {
                graph: GraphId(number(event, b"graph")),
                executable: GraphId(number(event, b"executable graph")),
                nodes: number(event, b"nodes") as u32,
                ..GraphShape::default()
            },
        };
        self.push(&row)
    }

    fn own_collective(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let (start, end) = self.own_span(event);
        let ordinal = |key: &[u8]| {
            let number = event.argument(key).and_then(unsigned);
            number.map_or(Ordinal::NONE, |number| Ordinal::new(number as u32))
        };
        let shape = CollectiveShape {
            name: self.name(event)?,
            kind: code(CollectiveKind::ALL, CollectiveKind::name, &text(event, b"kind")),
            communicator: address(event, b"communicator"),
            communicator_name: self.own_label(event, b"communicator name")?,
            rank: ordinal(b"rank"),
            ranks: number(event, b"ranks") as u32,
            root: ordinal(b"root"),
            datatype: self.own_label(event, b"datatype")?,
            reduction: self.own_label(event, b"reduction")?,
            algorithm: self.own_label(event, b"algorithm")?,
            protocol: self.own_label(event, b"protocol")?,
            ..CollectiveShape::default()
        };
        let row = Collective {
            start,
            end,
            sequence: number(event, b"sequence"),
            count: number(event, b"count"),
            bytes: Bytes(number(event, b"bytes")),
            correlation: CorrelationId(number(event, b"correlation")),
            stack: self.stack(event)?,
            place: self.own_place(event),
            shape,
            ..Collective::default()
        };
        self.push(&row)
    }

    fn own_allocation(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let shape = AllocationShape {
            operation: code(MemoryOperation::ALL, MemoryOperation::name, &event.name()),
            memory: code(MemoryKind::ALL, MemoryKind::name, &text(event, b"memory")),
            thread: ThreadId(number(event, b"thread")),
            name: self.own_label(event, b"name")?,
            allocator: self.own_label(event, b"allocator")?,
            category: self.own_label(event, b"category")?,
            ..AllocationShape::default()
        };
        let row = Allocation {
            time: self.moment(event),
            bytes: Bytes(number(event, b"bytes")),
            address: Address(address(event, b"address")),
            correlation: CorrelationId(number(event, b"correlation")),
            pool: Address(address(event, b"pool")),
            pool_size: Bytes(number(event, b"pool size")),
            pool_used: Bytes(number(event, b"pool used")),
            stack: self.stack(event)?,
            place: self.own_place(event),
            shape,
            ..Allocation::default()
        };
        self.push(&row)
    }

    fn own_call(&mut self, event: &Event<'_>, domain: ApiDomain) -> Result<(), Error> {
        let (start, end) = self.own_span(event);
        let row = ApiCall {
            start,
            end,
            correlation: CorrelationId(number(event, b"correlation")),
            stack: self.stack(event)?,
            caller: self.caller(event, Asking::Api)?,
            shape: ApiShape {
                name: self.name(event)?,
                domain,
                result: event.argument(b"result").and_then(signed).unwrap_or(0) as i32,
                ..ApiShape::default()
            },
        };
        self.push(&row)
    }

    fn own_marker(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let kind = code(MarkerKind::ALL, MarkerKind::name, &text(event, b"marker"));
        let (start, end) = match kind {
            MarkerKind::INSTANT => {
                let time = self.moment(event);
                (time, time)
            }
            _ => self.own_span(event),
        };
        let process = self.tracks.process(self.builder, event.pid(), Asking::Other)?;
        let thread = ThreadId(number(event, b"thread"));
        if thread.is_some() {
            self.builder.thread_mut(process, thread);
        }
        let category = match event.category() {
            b"nvtx" => StringId::NONE,
            _ => self.category(event)?,
        };
        self.rest.clear();
        for (key, value) in event.arguments() {
            if !matches!(key, b"marker" | b"thread" | b"domain" | b"range" | b"category") {
                self.rest.add(key, value);
            }
        }
        let row = Marker {
            start,
            end,
            range: number(event, b"range"),
            detail: self.rest.store(self.builder)?,
            stack: self.stack(event)?,
            caller: Caller { process, thread },
            shape: MarkerShape {
                name: self.name(event)?,
                domain: self.own_label(event, b"domain")?,
                category: number(event, b"category") as u32,
                category_name: category,
                kind,
                ..MarkerShape::default()
            },
            ..Marker::default()
        };
        self.push(&row)
    }

    fn own_label(&mut self, event: &Event<'_>, key: &[u8]) -> Result<StringId, Error> {
        self.builder.string(&text(event, key))
    }
}

fn number(event: &Event<'_>, key: &[u8]) -> u64 {
    event.argument(key).and_then(unsigned).unwrap_or(0)
}

fn text(event: &Event<'_>, key: &[u8]) -> String {
    text_of(event.argument(key).unwrap_or_default()).into_owned()
}

/// A number that is written in hexadecimal digits, as a text.
fn address(event: &Event<'_>, key: &[u8]) -> u64 {
    let digits = unquoted(event.argument(key).unwrap_or_default());
    let digits = std::str::from_utf8(digits).unwrap_or_default();
    u64::from_str_radix(digits.trim_start_matches("0x"), 16).unwrap_or(0)
}
