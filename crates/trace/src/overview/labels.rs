//! Labels of the rows of a timeline. Rows are grouped by GPU or process.

use std::collections::BTreeSet;

use tracesmith_format::{ContextId, DeviceId, ProcessId};

use super::{Overview, RowKey, ThreadRole};
use crate::model::trace::Trace;

/// Labels that distinguish the rows of one overview, and are no longer than that needs.
#[derive(Debug)]
pub struct Labels<'t> {
    trace: &'t Trace,
    /// Devices that several processes use.
    shared: BTreeSet<DeviceId>,
    /// Processes with several contexts on one device.
    divided: BTreeSet<(DeviceId, ProcessId)>,
}

impl<'t> Labels<'t> {
    /// Labels for the rows of `overview`.
    pub fn new(trace: &'t Trace, overview: &Overview) -> Self {
        let mut places: BTreeSet<(DeviceId, ProcessId, ContextId)> = BTreeSet::new();
        for row in &overview.rows {
            if let RowKey::Stream {
                device,
                process,
                context,
                ..
            } = row.key
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
        }
    }

    /// The label of the row's group: a GPU or a process.
    pub fn group(&self, key: RowKey) -> String {
        match key.device() {
            Some(device) => self.device(device),
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
        }
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

    fn user(&self, device: DeviceId, process: ProcessId) -> String {
        if !self.shared.contains(&device) {
            return String::new();
        }
        match self.trace.process(process) {
            Some(process) => format!(" of pid {}", process.pid),
            None => format!(" of process #{}", process.0),
        }
    }
}
