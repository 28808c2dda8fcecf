//! What a file begins with: which trace it is, its clocks, its machine and GPUs.

use tracesmith_trace::Trace;

use super::clocks;
use crate::perfetto::schema::{chrome, gpu, packet, trace as file};
use crate::perfetto::wire::{put_bytes, put_message, put_number};
use crate::perfetto::words::{METADATA, OURSELVES, WRITER};

/// The first packets of a file whose times start at `base`.
pub(super) fn preamble(trace: &Trace, base: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let mut put = |field: u32, fill: &dyn Fn(&mut Vec<u8>)| {
        put_message(&mut out, file::PACKET, |out| {
            put_number(out, packet::SEQUENCE_ID, 1);
            put_message(out, field, |out| fill(out));
        });
    };
    put(packet::CLOCK_SNAPSHOT, &|out| clocks::put_first(trace, base, out));
    if let Some(header) = trace.header() {
        put(packet::TRACE_UUID, &|out| {
            for (field, half) in (1..).zip(header.id.chunks_exact(8)) {
                let half: [u8; 8] = half.try_into().expect("eight bytes");
                put_number(out, field, u64::from_le_bytes(half));
            }
        });
    }
    put(packet::SYSTEM_INFO, &|out| put_system(trace, out));
    put(packet::TRACE_ATTRIBUTES, &|out| {
        put_attribute(out, WRITER, &format!("{OURSELVES} {}", env!("CARGO_PKG_VERSION")));
        for (key, value) in &trace.metadata {
            put_attribute(out, &format!("{METADATA}{key}"), value);
        }
    });
    // The form that versions before v53 show, which know no attributes.
    put(packet::CHROME_EVENTS, &|out| {
        for (key, value) in &trace.metadata {
            put_message(out, chrome::METADATA, |out| {
                put_bytes(out, chrome::METADATA_NAME, key.as_bytes());
                put_bytes(out, chrome::METADATA_TEXT, value.as_bytes());
            });
        }
    });
    if !trace.devices.is_empty() {
        put(packet::GPU_INFO, &|out| put_gpus(trace, out));
    }
    out
}

fn put_system(trace: &Trace, out: &mut Vec<u8>) {
    let Some(host) = trace.hosts.first() else { return };
    let os = trace.string(host.os);
    let (system, release) = os.split_once(' ').unwrap_or((os, ""));
    put_message(out, 1, |out| {
        put_bytes(out, 1, system.as_bytes());
        put_bytes(out, 3, release.as_bytes());
    });
    for (field, number) in [(8, u64::from(host.cpus)), (16, host.memory.0)] {
        if number > 0 {
            put_number(out, field, number);
        }
    }
    put_bytes(out, 17, trace.string(host.name).as_bytes());
}

fn put_attribute(out: &mut Vec<u8>, key: &str, value: &str) {
    put_message(out, 1, |out| {
        put_bytes(out, 1, key.as_bytes());
        put_bytes(out, 3, value.as_bytes());
    });
}

fn put_gpus(trace: &Trace, out: &mut Vec<u8>) {
    for device in &trace.devices {
        put_message(out, gpu::GPUS, |out| {
            for (field, text) in [
                (gpu::NAME, device.name),
                (gpu::VENDOR, device.vendor),
                (gpu::ARCHITECTURE, device.architecture),
                (gpu::UUID, device.uuid),
                (gpu::PCI, device.pci),
            ] {
                let text = trace.string(text);
                if !text.is_empty() {
                    put_bytes(out, field, text.as_bytes());
                }
            }
        });
    }
}
