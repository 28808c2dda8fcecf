//! The machine that the collector runs on.

use std::fs;

use tracesmith_format::{Bytes, HostId, tables};

use crate::trace_file::TraceFile;

/// The only host of a trace.
pub(crate) const HOST: HostId = HostId(1);

/// Writes a description of this machine to `file`.
pub(crate) fn define(file: &mut TraceFile) {
    let uname = rustix::system::uname();
    let name = uname.nodename().to_string_lossy();
    let os = format!(
        "{} {}",
        uname.sysname().to_string_lossy(),
        uname.release().to_string_lossy()
    );
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = ["model name", "Model", "cpu model"]
        .into_iter()
        .find_map(|key| value_of(&processors, key))
        .unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let row = tables::Host {
        id: HOST,
        name: file.string(&name),
        os: file.string(&os),
        cpu: file.string(model),
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
        memory: Bytes(memory_bytes()),
        machine_id: file.string(&line_of("/etc/machine-id")),
        boot_id: file.string(&line_of("/proc/sys/kernel/random/boot_id")),
    };
    file.define(&row);
}

fn memory_bytes() -> u64 {
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    value_of(&memory, "MemTotal")
        .and_then(|value| value.strip_suffix("kB"))
        .and_then(|kibibytes| kibibytes.trim().parse::<u64>().ok())
        .map_or(0, |kibibytes| kibibytes.saturating_mul(1024))
}

/// The value after `key:` in one of the lines.
fn value_of<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then_some(value.trim())
    })
}

/// The contents of a one-line file. Empty if it cannot be read.
fn line_of(path: &str) -> String {
    fs::read_to_string(path)
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}
