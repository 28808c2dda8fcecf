//! Process numbers of trace-event JSON, in which a GPU is a process, too.

use rustc_hash::{FxHashMap, FxHashSet};
use tracesmith_format::tables::Device;
use tracesmith_format::{DeviceId, ProcessId};
use tracesmith_trace::Trace;

use crate::export::stage::Dialect;
use crate::export::tracks::{LARGEST_NUMBER, Tracks};

/// Made-up numbers of GPUs and of processes that have none of their own start here, beyond what Linux gives out.
const FIRST_DEVICE: u64 = 2_000_000_000;
const FIRST_PROCESS: u64 = 3_000_000_000;
/// Where GPUs stand among processes: behind all of them, as Kineto does it.
const DEVICES_SORT_INDEX: u64 = 5_000_000;

/// The number of each process and device.
pub(super) struct Pids {
    processes: FxHashMap<ProcessId, u64>,
    devices: FxHashMap<DeviceId, u64>,
}

impl Pids {
    /// Gives out the numbers of everything that the trace lists, and names them. With `only`, it names that process
    /// and the devices of its host. The numbers do not depend on it, so that they agree between files.
    pub(super) fn new(trace: &Trace, dialect: Dialect, only: Option<ProcessId>, tracks: &mut Tracks) -> Self {
        let mut pids = Pids {
            processes: FxHashMap::default(),
            devices: FxHashMap::default(),
        };
        let mut used = FxHashSet::default();
        let several_hosts = trace.hosts.len() > 1;
        for (at, process) in trace.processes.iter().enumerate() {
            let own = u64::from(process.pid);
            let pid = if process.pid > 0 && own <= LARGEST_NUMBER && used.insert(own) {
                own
            } else {
                FIRST_PROCESS + u64::from(process.id.0)
            };
            pids.processes.insert(process.id, pid);
            if only.is_some_and(|only| only != process.id) {
                continue;
            }
            let mut name = trace.string(process.name).to_owned();
            if let (Some(rank), Dialect::Chrome) = (process.rank.get(), dialect) {
                name += &format!(" (rank {rank})");
            }
            if let (true, Some(host)) = (several_hosts, trace.host(process.host)) {
                name += &format!(" on {}", trace.string(host.name));
            }
            let sort_index = match dialect {
                Dialect::Chrome => at as u64,
                Dialect::Kineto => pid,
            };
            tracks.define_process(pid, name.trim_start(), "CPU", sort_index);
        }
        let owner = match only {
            Some(only) => trace.process(only),
            None => trace.processes.first(),
        };
        let only_host = only.and(owner).map(|owner| owner.host);
        let owner = owner.map(|process| trace.string(process.name));
        for (at, device) in trace.devices.iter().enumerate() {
            let own = u64::from(device.ordinal);
            let pid = if dialect == Dialect::Kineto && used.insert(own) {
                own
            } else {
                FIRST_DEVICE + u64::from(device.id.0)
            };
            pids.devices.insert(device.id, pid);
            if only_host.is_some_and(|host| host != device.host) {
                continue;
            }
            let label = format!("GPU {}", device.ordinal);
            let mut name = match dialect {
                Dialect::Chrome => format!("{label} {}", trace.string(device.name))
                    .trim_end()
                    .to_owned(),
                Dialect::Kineto => owner.unwrap_or_default().to_owned(),
            };
            if let (true, Some(host)) = (several_hosts, trace.host(device.host)) {
                name += &format!(" on {}", trace.string(host.name));
            }
            tracks.define_process(pid, &name, &label, DEVICES_SORT_INDEX + at as u64);
        }
        pids
    }

    /// The number of a process; one of its own for what the trace does not list.
    pub(super) fn process(&self, id: ProcessId) -> u64 {
        self.processes
            .get(&id)
            .copied()
            .unwrap_or(FIRST_PROCESS + u64::from(id.0))
    }

    /// The number of a device.
    pub(super) fn device(&self, id: DeviceId) -> u64 {
        self.devices
            .get(&id)
            .copied()
            .unwrap_or(FIRST_DEVICE + u64::from(id.0))
    }

    /// The number by which events name a device: its ordinal, unless another device of the file has the same one.
    pub(super) fn ordinal(&self, trace: &Trace, device: &Device) -> u64 {
        let twin = |other: &&Device| other.ordinal == device.ordinal && other.host != device.host;
        match trace.devices.iter().find(twin) {
            Some(twin) if twin.id < device.id => self.device(device.id),
            _ => u64::from(device.ordinal),
        }
    }

    /// The number of a device, or of the process for what is on none.
    pub(super) fn device_or_process(&self, device: DeviceId, process: ProcessId) -> u64 {
        if device.is_some() {
            self.device(device)
        } else {
            self.process(process)
        }
    }
}
