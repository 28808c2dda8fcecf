//! Labels of the rows of a timeline. Rows are grouped by GPU or process.

use std::collections::BTreeSet;

use tracesmith_format::{ContextId, DeviceId, ProcessId};

use super::{CounterKey, Overview, RowKey, ThreadRole};
use crate::model::trace::Trace;

/// Labels that distinguish the rows of one overview, and are no longer than that needs.
#[derive(Debug)]
pub struct Labels<'t> {
    trace: &'t Trace,
    /// Devices that several processes use.
    shared: BTreeSet<DeviceId>,
    /// Processes with several contexts on one device.
    divided: BTreeSet<(DeviceId, ProcessId)>,
    /// Devices that have counters of several processes.
    counted_by_several: BTreeSet<DeviceId>,
    /// Counters that have a number, with 0 for it. The others are the only ones of their name.
    numbered: BTreeSet<CounterKey>,
}

impl<'t> Labels<'t> {
    /// Labels for the rows of `overview`.
    pub fn new(trace: &'t Trace, overview: &Overview) -> Self {
        Self::of_rows(trace, overview.rows.iter().map(|row| row.key))
    }

    /// Labels for rows.
    pub(crate) fn of_rows(trace: &'t Trace, rows: impl Iterator<Item = RowKey>) -> Self {
        let mut places: BTreeSet<(DeviceId, ProcessId, ContextId)> = BTreeSet::new();
        for row in rows {
            if let RowKey::Stream {
                device,
                process,
                context,
                ..
            } = row
            {
                places.insert((device, process, context));
            }
        }
        let users: BTreeSet<(DeviceId, ProcessId)> = places
            .iter()
            .map(|(device, process, _)| (*device, *process))
            .collect();
        let shared = users
            .iter()
            .map(|(device, _)| *device)
            .filter(|device| users.iter().filter(|user| user.0 == *device).count() > 1);
        let divided = users.iter().copied().filter(|user| {
            let contexts = places.iter().filter(|place| (place.0, place.1) == *user);
            contexts.count() > 1
        });
        Labels {
            trace,
            shared: shared.collect(),
            divided: divided.collect(),
            counted_by_several: BTreeSet::new(),
            numbered: BTreeSet::new(),
        }
    }

    /// The same labels, and labels for counters.
    pub(crate) fn with_counters(mut self, counters: impl Iterator<Item = CounterKey> + Clone) -> Self {
        let keys = || counters.clone();
        let first_of = |key: CounterKey| CounterKey { instance: 0, ..key };
        let owners: BTreeSet<(DeviceId, ProcessId)> = keys()
            .filter(|key| key.device.is_some() && key.process.is_some())
            .map(|key| (key.device, key.process))
            .collect();
        let devices: Vec<DeviceId> = owners.iter().map(|(device, _)| *device).collect();
        let several = devices.windows(2).filter(|pair| pair[0] == pair[1]);
        self.counted_by_several = several.map(|pair| pair[0]).collect();
        self.numbered = keys().filter(|key| key.instance > 0).map(first_of).collect();
        self
    }

    /// The label of the row's group: a GPU or a process.
    pub fn group(&self, key: RowKey) -> String {
        match key.device() {
            Some(device) => self.device(device),
            None if matches!(key, RowKey::Counter(_)) && key.process().is_none() => "counters".to_owned(),
            None => self.process(key.process().unwrap_or_default()),
        }
    }

    /// The label of the row within its group.
    pub fn row(&self, key: RowKey) -> String {
        match key {
            RowKey::Device { .. } => "all streams".to_owned(),
            RowKey::Stream {
                device,
                process,
                context,
                stream,
            } => {
                let mut text = format!("stream {}", stream.0);
                if self.divided.contains(&(device, process)) {
                    text += &format!(" of context {}", context.0);
                }
                text + &self.user(device, process)
            }
            RowKey::Waits { device, process } => format!("waits{}", self.user(device, process)),
            RowKey::Thread {
                process,
                thread,
                role,
                depth,
            } => {
                if depth > 0 {
                    return format!("  level {depth}");
                }
                let role = match role {
                    ThreadRole::Markers => "markers",
                    ThreadRole::Host => "host",
                    ThreadRole::Calls => "api",
                };
                let name = self
                    .trace
                    .threads
                    .iter()
                    .find(|known| (known.process, known.thread) == (process, thread))
                    .map(|known| self.trace.string(known.name))
                    .filter(|name| !name.is_empty());
                match name {
                    Some(name) => format!("{role} {} {name}", thread.0),
                    None => format!("{role} {}", thread.0),
                }
            }
            RowKey::Counter(counter) => self.counter(counter),
        }
    }

    fn counter(&self, key: CounterKey) -> String {
        let mut text = self.trace.string(key.name).to_owned();
        if self.numbered.contains(&CounterKey { instance: 0, ..key }) {
            text += &format!(" {}", key.instance);
        }
        if key.thread.is_some() {
            text += &format!(" of thread {}", key.thread.0);
        }
        if key.process.is_some() && self.counted_by_several.contains(&key.device) {
            text += &self.of_process(key.process);
        }
        let unit = self.trace.string(key.unit);
        if !unit.is_empty() {
            text += &format!(" ({unit})");
        }
        text
    }

    fn device(&self, id: DeviceId) -> String {
        let Some(device) = self.trace.device(id) else {
            return if id.is_some() {
                format!("gpu #{}", id.0)
            } else {
                "no gpu".to_owned()
            };
        };
        let mut text = format!("gpu {} {}", device.ordinal, self.trace.string(device.name));
        if self.trace.hosts.len() > 1
            && let Some(host) = self.trace.host(device.host)
        {
            text += &format!(" of {}", self.trace.string(host.name));
        }
        text.trim_end().to_owned()
    }

    fn process(&self, id: ProcessId) -> String {
        match self.trace.process(id) {
            Some(process) => format!("{} pid {}", self.trace.string(process.name), process.pid)
                .trim_start()
                .to_owned(),
            None => format!("process #{}", id.0),
        }
    }

    /// Which process uses a device, where several do.
    pub(crate) fn user(&self, device: DeviceId, process: ProcessId) -> String {
        if !self.shared.contains(&device) {
            return String::new();
        }
        self.of_process(process)
    }

    fn of_process(&self, process: ProcessId) -> String {
        match self.trace.process(process) {
            Some(process) => format!(" of pid {}", process.pid),
            None => format!(" of process #{}", process.0),
        }
    }
}
