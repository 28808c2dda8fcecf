//! Perfetto's protobuf traces, of any writer: track events, counters, flows, stacks, GPU render stages and counters.
//!
//! Read packet by packet. What is kept meanwhile is what packets refer to: descriptors of tracks, interned strings of each
//! packet sequence, and slices that have begun. Packets of other data sources are counted by kind.
//! An export of ours is known by its attributes, and its events become the rows that they came from.

mod annotation;
mod clocks;
mod event;
mod gpu;
mod own;
mod packets;
mod sequence;
mod slices;
mod track_event;
mod tracks;

use rustc_hash::{FxHashMap, FxHashSet};
use tracesmith_format::HostId;
use tracesmith_format::tables::HealthCause;

use crate::error::Error;
use crate::import::{Builder, ImportOptions, Importer, Input};
use crate::perfetto::schema::{flags, packet, trace as file};
use crate::perfetto::wire::{Fields, Value};
use crate::perfetto::words::{METADATA, OURSELVES, WRITER};
use clocks::Clocks;
use packets::{Packet, Packets};
use sequence::Sequence;
use slices::Slices;
use tracks::Tracks;

pub(super) const IMPORTER: Importer = Importer {
    name: "perfetto",
    title: "Perfetto's protobuf traces",
    sniff,
    read,
};

/// Packets at the beginning that must look like ones: with fewer, other binary files would pass.
const SNIFFED_PACKETS: usize = 8;

/// A trace is a run of packets in field 1, and packets have few kinds of fields.
fn sniff(head: &[u8]) -> bool {
    let mut packets = 0;
    for field in Fields::new(head) {
        match field {
            Ok((file::PACKET, Value::Bytes(bytes))) if is_packet(bytes) => packets += 1,
            // The head may end within a packet, which then must be the only thing that is wrong.
            Err(_) => return packets > 0 || is_begun_packet(head),
            _ => return false,
        }
        if packets == SNIFFED_PACKETS {
            return true;
        }
    }
    packets > 0
}

fn is_packet(bytes: &[u8]) -> bool {
    let mut any = false;
    for field in Fields::new(bytes) {
        match field {
            // The largest number that is in use is 900, for tests.
            Ok((1..=900, _)) => any = true,
            _ => return false,
        }
    }
    any
}

/// Whether a file begins with a packet that is longer than its head: compressed ones are.
fn is_begun_packet(head: &[u8]) -> bool {
    let mut rest = head;
    let Ok(0x0a) = crate::perfetto::wire::take_varint(&mut rest) else {
        return false;
    };
    let Ok(length) = crate::perfetto::wire::take_varint(&mut rest) else {
        return false;
    };
    let tag = crate::perfetto::wire::take_varint(&mut rest);
    let zlib = rest.get(..4).is_some_and(|bytes| bytes.contains(&0x78));
    length > rest.len() as u64 && tag == Ok(u64::from(packet::COMPRESSED_PACKETS) << 3 | 2) && zlib
}

fn read(input: &mut Input, _: &ImportOptions, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let mut import = Import {
        builder,
        clocks: Clocks::default(),
        sequences: FxHashMap::default(),
        tracks: Tracks::default(),
        slices: Slices::default(),
        flows: FxHashSet::default(),
        origin: Origin::Foreign,
    };
    let mut packets = Packets::new(input);
    while let Some(packet) = packets.next(import.builder)? {
        import.packet(packet)?;
    }
    import.finish()
}

/// Who wrote the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Foreign,
    Ourselves,
}

struct Import<'i, 'b, 'w> {
    builder: &'i mut Builder<'b, 'w>,
    clocks: Clocks,
    sequences: FxHashMap<(HostId, u64), Sequence>,
    tracks: Tracks,
    slices: Slices,
    /// Flows that have begun.
    flows: FxHashSet<u64>,
    origin: Origin,
}

/// What a packet says of itself besides its content.
#[derive(Default)]
struct Envelope<'p> {
    timestamp: Option<u64>,
    clock: Option<u64>,
    sequence: u64,
    flags: u64,
    machine: u64,
    defaults: Option<&'p [u8]>,
    content: Option<(u32, &'p [u8])>,
    interned: Vec<&'p [u8]>,
    dropped: bool,
}

impl<'p> Envelope<'p> {
    /// Takes a packet apart; `None` for one that is no message.
    fn open(bytes: &'p [u8]) -> Option<Self> {
        let mut envelope = Envelope::default();
        for field in Fields::new(bytes) {
            let (field, value) = field.ok()?;
            match field {
                packet::TIMESTAMP => envelope.timestamp = Some(value.number()),
                packet::TIMESTAMP_CLOCK_ID => envelope.clock = Some(value.number()),
                packet::SEQUENCE_ID => envelope.sequence = value.number(),
                packet::SEQUENCE_FLAGS => envelope.flags |= value.number(),
                packet::INCREMENTAL_STATE_CLEARED if value.number() != 0 => envelope.flags |= flags::CLEARED,
                packet::DEFAULTS => envelope.defaults = Some(value.bytes()),
                packet::INTERNED_DATA => envelope.interned.push(value.bytes()),
                packet::PREVIOUS_PACKET_DROPPED => envelope.dropped = value.number() != 0,
                packet::MACHINE_ID => envelope.machine = value.number(),
                // Uid, pid, first on its sequence, synchronisation marker.
                3 | 79 | packet::FIRST_ON_SEQUENCE | 36 => {}
                field => {
                    if let Value::Bytes(bytes) = value {
                        envelope.content = Some((field, bytes));
                    }
                }
            }
        }
        Some(envelope)
    }
}

impl Import<'_, '_, '_> {
    fn packet(&mut self, packet: Packet<'_>) -> Result<(), Error> {
        let Some(envelope) = Envelope::open(packet.bytes) else {
            self.builder
                .doubt(HealthCause::DAMAGED, "packets that are no messages", 1);
            return Ok(());
        };
        let machine = match envelope.machine {
            0 => String::new(),
            machine => format!("machine {machine}"),
        };
        let host = self.builder.host(&machine)?;
        if envelope.dropped {
            self.builder.doubt(
                HealthCause::VENDOR_DROPPED,
                "packets that the recorder dropped",
                1,
            );
        }
        let sequence = self.sequences.entry((host, envelope.sequence)).or_default();
        if envelope.flags & flags::CLEARED != 0 {
            sequence.clear();
        }
        for interned in &envelope.interned {
            sequence.intern(interned, self.builder)?;
        }
        if let Some(defaults) = envelope.defaults {
            sequence.set_defaults(defaults);
        }
        let Some((kind, content)) = envelope.content else {
            return Ok(());
        };
        match kind {
            packet::CLOCK_SNAPSHOT => self.clock_snapshot(host, envelope.sequence, content),
            packet::REMOTE_CLOCK_SYNC => {
                let recorder = self.builder.host("")?;
                self.clocks.join((host, recorder), content, self.builder)
            }
            packet::TRACK_DESCRIPTOR => self.tracks.describe(host, content, self.builder),
            packet::PROCESS_DESCRIPTOR => self.tracks.describe_process(host, content, self.builder),
            packet::THREAD_DESCRIPTOR => {
                let thread = self.tracks.describe_thread(host, content, self.builder)?;
                let sequence = self.sequences.entry((host, envelope.sequence)).or_default();
                sequence.describe_thread(thread, content);
                Ok(())
            }
            packet::TRACK_EVENT => self.track_event(host, &envelope, content),
            packet::GPU_RENDER_STAGE_EVENT => self.render_stage(host, &envelope, content),
            packet::GPU_COUNTER_EVENT => self.gpu_counters(host, &envelope, content),
            packet::GPU_INFO => self.gpu_info(host, content),
            packet::TRACE_ATTRIBUTES => self.attributes(content),
            // What an export of ours says in its attributes and events as well.
            packet::CHROME_EVENTS | packet::PERF_SAMPLE if self.origin == Origin::Ourselves => Ok(()),
            // What a trace says of itself and of its machine, which nothing here needs.
            packet::TRACE_UUID | packet::SYSTEM_INFO | 33 | 35 | 69 => Ok(()),
            other => {
                self.builder.skip(packet_kind(other), 1);
                Ok(())
            }
        }
    }

    fn clock_snapshot(&mut self, host: HostId, sequence: u64, content: &[u8]) -> Result<(), Error> {
        let readings = clocks::Reading::all(content);
        self.clocks
            .read_together((host, sequence), &readings, self.builder)
    }

    fn attributes(&mut self, content: &[u8]) -> Result<(), Error> {
        for (_, attribute) in Fields::new(content).flatten() {
            let (mut key, mut text) = (String::new(), String::new());
            for (field, value) in Fields::new(attribute.bytes()).flatten() {
                match field {
                    1 => key = String::from_utf8_lossy(value.bytes()).into_owned(),
                    3 => text = String::from_utf8_lossy(value.bytes()).into_owned(),
                    _ => {}
                }
            }
            if key == WRITER && text.starts_with(OURSELVES) {
                self.origin = Origin::Ourselves;
            } else if let Some(key) = key.strip_prefix(METADATA) {
                self.builder.metadata(key, &text)?;
            }
        }
        Ok(())
    }

    /// The time of a packet and the clock that it is of; counts a packet without one.
    fn time(&mut self, host: HostId, envelope: &Envelope<'_>) -> Result<Option<clocks::Moment>, Error> {
        let sequence = self.sequences.entry((host, envelope.sequence)).or_default();
        let clock = envelope.clock.or(sequence.default_clock);
        let moment = match envelope.timestamp {
            Some(time) => self
                .clocks
                .moment((host, envelope.sequence), clock, time, self.builder)?,
            None => None,
        };
        if moment.is_none() && envelope.timestamp.is_some() {
            self.builder.skip("packets whose time is not known", 1);
        }
        Ok(moment)
    }

    /// What has begun and not ended is kept without an end.
    fn finish(&mut self) -> Result<(), Error> {
        let open = self.slices.take_all();
        for slice in open {
            self.builder
                .doubt(HealthCause::OTHER, "slices that have no end", 1);
            self.put_slice(slice, None)?;
        }
        self.clocks.finish(self.builder)
    }
}

/// What packets of other data sources hold.
fn packet_kind(field: u32) -> &'static str {
    match field {
        1 => "ftrace event bundles",
        2 => "process trees",
        4 => "inode maps",
        5 => "Chrome JSON events",
        7 => "system statistics",
        9 => "process statistics",
        34 => "ftrace statistics",
        37 | 54 => "heap and Chrome profiles",
        38 | 40 | 91 => "power readings",
        39 | 63 | 132 => "log messages",
        47 => "package lists",
        48 | 51 => "Chrome metadata",
        49 => "Perfetto's own trace points",
        57 => "graphics frames",
        61 | 64 => "symbol tables",
        62 | 65 => "Vulkan events",
        66 | 135 => "stack samples",
        67 => "processor descriptions",
        68 => "memory maps",
        71 => "GPU memory totals",
        73..=75 => "memory snapshots",
        95 => "Windows events",
        99..=103 => "V8 code events",
        _ => "packets of other kinds",
    }
}
