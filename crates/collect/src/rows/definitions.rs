//! Strings, devices, contexts, streams, modules, images, and names set by the program.

use std::{borrow::Cow, fmt::Write};

use tracesmith_format::{
    Bytes, ContextId, DeviceId, GraphNodeId, ModuleId, Ordinal, StreamId, StringId, Timestamp, tables,
};
use tracesmith_symbols::demangle_cpp;
use tracesmith_wire::record as wire;

use super::{HOST_CLOCK, KnownDevice, ProcessRows, TraceRows, process::Text};
use crate::host::HOST;

impl ProcessRows {
    pub(super) fn text(&mut self, record: &wire::Text, text: &[u8], trace: &mut TraceRows) {
        let text = readable(text);
        self.launches.name(record.id, &text);
        let string = trace.file.string(&text);
        let demangled = match trace.demangled.get(&string) {
            Some(known) => *known,
            None => match demangle_cpp(&text) {
                Some(readable) => {
                    let readable = trace.file.string(&readable);
                    trace.demangled.insert(string, readable);
                    readable
                }
                None => StringId::NONE,
            },
        };
        self.texts.insert(record.id, Text { string, demangled });
    }

    pub(super) fn device(&mut self, record: &wire::Device, name: &[u8], trace: &mut TraceRows) {
        // A device that only counters have mentioned so far is described now.
        let id = match trace.devices.get(&record.uuid) {
            Some(known) if known.described => known.id,
            _ => define_device(record.uuid, record, &readable(name), &self.driver, trace),
        };
        self.devices.insert(record.device, id);
    }

    /// The end of a context is reported immediately, and its creation with the next CUPTI buffer. So either can
    /// arrive first. The context stays known, because later records can refer to it.
    pub(super) fn context(&mut self, record: &wire::Context, trace: &mut TraceRows) {
        self.saw(record.time);
        let time = Timestamp(record.time);
        let row = self
            .contexts
            .entry(record.context)
            .or_insert_with(|| tables::Context {
                process: self.id,
                context: ContextId(record.context),
                ..tables::Context::default()
            });
        if record.destroyed != 0 {
            row.destroyed = time;
        } else {
            row.device = self.devices.get(&record.device).copied().unwrap_or_default();
            row.default_stream = StreamId(u64::from(record.default_stream));
            row.parent = ContextId(record.parent);
            row.multiprocessors = record.multiprocessors;
            set_created(&mut row.created, row.destroyed, time);
        }
        trace.file.define(row);
        if !self.awaiting.is_empty() {
            self.settle_syncs(trace);
        }
    }

    /// Like contexts. A stream whose creation and end are known is removed, because there can be many.
    pub(super) fn stream(&mut self, record: &wire::Stream, trace: &mut TraceRows) {
        self.saw(record.time);
        let time = Timestamp(record.time);
        let device = self.contexts.get(&record.context).map(|context| context.device);
        let key = (record.context, record.stream);
        let row = self.streams.entry(key).or_insert_with(|| tables::Stream {
            process: self.id,
            context: ContextId(record.context),
            stream: StreamId(u64::from(record.stream)),
            ..tables::Stream::default()
        });
        row.device = device.unwrap_or(row.device);
        if record.destroyed != 0 {
            row.destroyed = time;
        } else {
            row.kind = tables::StreamKind(record.kind);
            row.priority = record.priority;
            set_created(&mut row.created, row.destroyed, time);
        }
        trace.file.define(row);
        if row.destroyed.is_some() && row.kind != tables::StreamKind::UNKNOWN {
            self.streams.remove(&key);
        }
    }

    pub(super) fn stream_name(&mut self, record: &wire::StreamName, name: &[u8], trace: &mut TraceRows) {
        let key = (record.context, record.stream);
        let name = trace.file.string(&readable(name));
        let row = self.streams.entry(key).or_insert_with(|| tables::Stream {
            process: self.id,
            context: ContextId(record.context),
            stream: StreamId(u64::from(record.stream)),
            ..tables::Stream::default()
        });
        row.name = name;
        trace.file.define(row);
    }

    /// A module is written when it is unloaded. Modules that stay loaded are written when the process ends.
    pub(super) fn module(&mut self, record: &wire::Module, trace: &mut TraceRows) {
        self.saw(record.time);
        let key = (record.context, record.module);
        let loaded = self.modules.remove(&key);
        if record.unloaded == 0 {
            if let Some(replaced) = loaded {
                trace.push(HOST_CLOCK, &replaced);
            }
            self.modules.insert(key, module_row(self.id, record));
            return;
        }
        let mut row = loaded.unwrap_or_else(|| tables::Module {
            loaded: Timestamp::NONE,
            ..module_row(self.id, record)
        });
        row.unloaded = Timestamp(record.time);
        trace.push(HOST_CLOCK, &row);
    }

    pub(super) fn graph_edges(&mut self, record: &wire::GraphEdges, pairs: &[u8], trace: &mut TraceRows) {
        let (pairs, _) = pairs.as_chunks::<16>();
        for pair in pairs
            .iter()
            .take(usize::try_from(record.count).unwrap_or(usize::MAX))
        {
            let (node, before) = pair.split_at(8);
            let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
            trace.file.define(&tables::GraphEdge {
                process: self.id,
                node: GraphNodeId(number(node)),
                before: GraphNodeId(number(before)),
            });
        }
    }

    pub(super) fn thread_name(&mut self, record: &wire::ThreadName, name: &[u8], trace: &mut TraceRows) {
        self.name_thread(record.thread, &readable(name), trace);
    }
}

/// CUPTI's record has no time. The object was created before the record arrived. If the end is already known, this
/// time is useless.
fn set_created(created: &mut Timestamp, destroyed: Timestamp, told: Timestamp) {
    if !created.is_some() && !destroyed.is_some() {
        *created = told;
    }
}

fn module_row(process: tracesmith_format::ProcessId, record: &wire::Module) -> tables::Module {
    tables::Module {
        loaded: Timestamp(record.time),
        process,
        context: ContextId(record.context),
        module: ModuleId(record.module),
        size: Bytes(record.size),
        hash_high: record.hash_high,
        hash_low: record.hash_low,
        ..tables::Module::default()
    }
}

/// Assigns an ID to a device and writes its row, from the process's data and from the machine's list of devices.
pub(super) fn define_device(
    uuid: [u8; 16],
    record: &wire::Device,
    name: &str,
    driver: &str,
    trace: &mut TraceRows,
) -> DeviceId {
    let next = DeviceId(u32::try_from(trace.devices.len()).unwrap_or(u32::MAX - 1) + 1);
    let id = trace.devices.get(&uuid).map_or(next, |known| known.id);
    let described = record.multiprocessors != 0;
    trace.devices.insert(uuid, KnownDevice { id, described });
    let facts = trace.facts.iter().find(|facts| facts.uuid == uuid);
    let facts = facts.cloned().unwrap_or_default();
    let or = |first: &str, second: &str| {
        if first.is_empty() {
            second.to_owned()
        } else {
            first.to_owned()
        }
    };
    let [major, minor] = record.capability;
    let file = &mut trace.file;
    let row = tables::Device {
        id,
        host: HOST,
        ordinal: facts.ordinal.unwrap_or(record.device),
        uuid: file.string(&uuid_text(uuid)),
        name: file.string(&or(name, &facts.name)),
        vendor: file.string("NVIDIA"),
        architecture: file.string(architecture(major, minor)),
        capability_major: major,
        capability_minor: minor,
        memory: Bytes(record.memory),
        multiprocessors: record.multiprocessors,
        warp_size: record.warp_size,
        threads_per_multiprocessor: record.warps_per_multiprocessor.saturating_mul(record.warp_size),
        blocks_per_multiprocessor: record.blocks_per_multiprocessor,
        registers_per_multiprocessor: record.registers_per_multiprocessor,
        shared_per_multiprocessor: Bytes(u64::from(record.shared_per_multiprocessor)),
        shared_per_block: Bytes(u64::from(record.shared_per_block)),
        cache: Bytes(u64::from(record.cache)),
        clock_khz: record.clock_khz,
        memory_bandwidth: record.memory_bandwidth,
        pci: file.string(&facts.pci),
        driver: file.string(&or(&facts.driver, driver)),
        copy_engines: record.copy_engines,
        numa_node: facts.numa_node.map(Ordinal::new).unwrap_or_default(),
        pcie_generation: facts.pcie_generation.unwrap_or(0),
        pcie_width: facts.pcie_width.unwrap_or(0),
        nvlinks: facts.nvlinks,
        nvlink_bandwidth: facts.nvlink_bandwidth.unwrap_or(0),
        ..tables::Device::default()
    };
    file.define(&row);
    id
}

/// The UUID in NVIDIA's notation.
fn uuid_text(uuid: [u8; 16]) -> String {
    let mut text = "GPU-".to_owned();
    for (place, byte) in uuid.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        write!(text, "{byte:02x}").expect("a string takes everything");
    }
    text
}

/// NVIDIA's name for the architecture of a compute capability.
fn architecture(major: u32, minor: u32) -> &'static str {
    match (major, minor) {
        (5, _) => "Maxwell",
        (6, _) => "Pascal",
        (7, 0 | 2) => "Volta",
        (7, _) => "Turing",
        (8, 9) => "Ada",
        (8, _) => "Ampere",
        (9, _) => "Hopper",
        (10..=12, _) => "Blackwell",
        _ => "",
    }
}

/// A string from a target, with any bytes.
pub(super) fn readable(text: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_reads_as_elsewhere() {
        let uuid = [
            0xf9, 0x36, 0x2d, 0x55, 0xd6, 0x5a, 0xcb, 0x65, 0x7f, 0xb4, 0x10, 0x11, 0xda, 0xd4, 0x7a, 0xaa,
        ];
        assert_eq!(uuid_text(uuid), "GPU-f9362d55-d65a-cb65-7fb4-1011dad47aaa");
    }
}
