//! Which processes, GPUs and streams are looked at.
//!
//! A [`Selection`] is plain data. [`Selected`] is a selection in one trace: it knows where GPU work ran, and with it which
//! rows belong to the selection.
//!
//! - A row of GPU work belongs to it if its process, its device and its stream do.
//! - A row of the CPU (a call, a range, an operator) has no device and no stream. It belongs to the selection if its process
//!   has selected GPU work. Without it nobody could see who launched the work, and why a GPU was idle.
//! - Contexts, memory and counters of a device belong to it if the device does: if it was selected, or if it has selected
//!   work. A selection of processes alone also has the devices on which they have contexts or memory.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tracesmith_format::tables::{Allocation, Collective, GraphLaunch, Kernel, MemoryCopy, MemorySet, Place};
use tracesmith_format::{DeviceId, ProcessId, Projection, StreamId, Table};

use crate::error::Error;
use crate::model::event::{Event, EventKind};
use crate::model::table::TableView;
use crate::model::trace::Trace;

/// Processes, devices and streams. What is `None` does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Selection {
    /// Only these processes.
    pub processes: Option<Vec<ProcessId>>,
    /// Only these devices.
    pub devices: Option<Vec<DeviceId>>,
    /// Only these streams.
    pub streams: Option<Vec<StreamId>>,
}

impl Selection {
    /// Whether it has no limits.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether GPU work of this place is selected.
    pub fn wants_work(&self, process: ProcessId, device: DeviceId, stream: StreamId) -> bool {
        self.wants_process(process) && self.wants_device(device) && self.wants_stream(stream)
    }

    fn wants_process(&self, process: ProcessId) -> bool {
        self.processes.as_ref().is_none_or(|list| list.contains(&process))
    }

    fn wants_device(&self, device: DeviceId) -> bool {
        self.devices.as_ref().is_none_or(|list| list.contains(&device))
    }

    fn wants_stream(&self, stream: StreamId) -> bool {
        self.streams.as_ref().is_none_or(|list| list.contains(&stream))
    }
}

/// A stream of a process on which GPU work ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkPlace {
    /// The process.
    pub process: ProcessId,
    /// The device.
    pub device: DeviceId,
    /// The stream.
    pub stream: StreamId,
}

impl Trace {
    /// The places of all GPU work, sorted.
    pub fn work_places(&self) -> Result<Vec<WorkPlace>, Error> {
        let mut places = BTreeSet::new();
        macro_rules! add {
            ($($table:ident: $row:ty),*) => {
                $(self.add_places(&self.$table, |rows: &<$row as Table>::Columns| &rows.place.values, &mut places)?;)*
            };
        }
        add!(kernels: Kernel, copies: MemoryCopy, sets: MemorySet, graph_launches: GraphLaunch, collectives: Collective);
        Ok(places.into_iter().collect())
    }

    /// The devices on which selected processes have contexts or memory.
    fn devices_with_memory(&self, selection: &Selection) -> Result<BTreeSet<DeviceId>, Error> {
        let mut places = BTreeSet::new();
        self.add_places(
            &self.allocations,
            |rows: &<Allocation as Table>::Columns| &rows.place.values,
            &mut places,
        )?;
        let of_memory = places.iter().map(|place| (place.process, place.device));
        let of_contexts = self.contexts.iter().map(|row| (row.process, row.device));
        let wanted = of_memory
            .chain(of_contexts)
            .filter(|(process, device)| device.is_some() && selection.wants_process(*process));
        Ok(wanted.map(|(_, device)| device).collect())
    }

    fn add_places<T: Table>(
        &self,
        table: &TableView<T>,
        places_of: impl Fn(&T::Columns) -> &[Place] + Sync,
        places: &mut BTreeSet<WorkPlace>,
    ) -> Result<(), Error> {
        let columns = Projection::of::<T>(&["place.process", "place.device", "place.stream"])?;
        let of_block = |_: &_, rows: T::Columns| -> Vec<WorkPlace> {
            let place = |place: &Place| WorkPlace {
                process: place.process,
                device: place.device,
                stream: place.stream,
            };
            places_of(&rows).iter().map(place).collect()
        };
        table.stream_wanted(&columns, of_block, |found| places.extend(found));
        Ok(())
    }
}

/// A selection in one trace. All but the selection is empty if everything is selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selected {
    selection: Selection,
    /// The processes that have selected work.
    owners: BTreeSet<ProcessId>,
    /// The devices that belong to the selection if it does not name devices.
    devices: BTreeSet<DeviceId>,
    /// The streams of processes that have other work.
    others: BTreeSet<(ProcessId, StreamId)>,
    shared_device: Option<DeviceId>,
    shared_process: Option<ProcessId>,
}

impl Selected {
    /// Finds out where the work of a selection ran.
    pub fn of(trace: &Trace, selection: &Selection) -> Result<Self, Error> {
        if selection.is_all() {
            return Ok(Self::default());
        }
        let (inside, outside): (Vec<WorkPlace>, Vec<WorkPlace>) = trace
            .work_places()?
            .into_iter()
            .partition(|place| selection.wants_work(place.process, place.device, place.stream));
        let owners: BTreeSet<ProcessId> = inside.iter().map(|place| place.process).collect();
        let mut devices: BTreeSet<DeviceId> = inside.iter().map(|place| place.device).collect();
        let shared_device = outside.iter().find(|place| devices.contains(&place.device));
        let shared_process = outside.iter().find(|place| owners.contains(&place.process));
        if selection.devices.is_none() && selection.streams.is_none() {
            devices.extend(trace.devices_with_memory(selection)?);
        }
        Ok(Selected {
            selection: selection.clone(),
            shared_device: shared_device.map(|place| place.device),
            shared_process: shared_process.map(|place| place.process),
            others: outside
                .iter()
                .map(|place| (place.process, place.stream))
                .collect(),
            owners,
            devices,
        })
    }

    /// What was selected.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Whether everything is.
    pub fn is_all(&self) -> bool {
        self.selection.is_all()
    }

    /// Whether GPU work of this place belongs to it.
    pub fn wants_place(&self, place: &Place) -> bool {
        self.selection
            .wants_work(place.process, place.device, place.stream)
    }

    /// Whether rows of a process's CPU threads belong to it.
    pub fn wants_process(&self, process: ProcessId) -> bool {
        let has_work = || self.owners.contains(&process);
        self.selection.wants_process(process)
            && ((self.selection.devices.is_none() && self.selection.streams.is_none()) || has_work())
    }

    /// Whether rows of a device as a whole belong to it, such as its counters.
    pub fn wants_device(&self, device: DeviceId) -> bool {
        match &self.selection.devices {
            Some(devices) => devices.contains(&device),
            None => self.is_all() || self.devices.contains(&device),
        }
    }

    /// Whether a context of a process on a device, or memory in it, belongs to it. Both are of no stream.
    pub fn wants_memory(&self, process: ProcessId, device: DeviceId) -> bool {
        self.wants_process(process) && (!device.is_some() || self.wants_device(device))
    }

    /// Whether a wait or the record of an event belongs to it. Some name no device, and some no stream that has work.
    pub fn wants_sync(&self, process: ProcessId, device: DeviceId, stream: StreamId) -> bool {
        let has_other_work = || self.others.contains(&(process, stream));
        self.wants_memory(process, device) && (self.selection.wants_stream(stream) || !has_other_work())
    }

    /// Whether an event of any kind belongs to it.
    pub fn wants(&self, event: &Event) -> bool {
        let stream = event.stream.unwrap_or_default();
        match event.kind {
            _ if self.is_all() => true,
            EventKind::Kernel
            | EventKind::Copy
            | EventKind::Set
            | EventKind::GraphLaunch
            | EventKind::Collective => self.selection.wants_work(event.process, event.device, stream),
            EventKind::Sync => self.wants_sync(event.process, event.device, stream),
            EventKind::Allocation => self.wants_memory(event.process, event.device),
            EventKind::Counter if event.device.is_some() => self.wants_device(event.device),
            EventKind::Counter if !event.process.is_some() => true,
            EventKind::Counter
            | EventKind::ApiCall
            | EventKind::Marker
            | EventKind::Flow
            | EventKind::HostCall => self.wants_process(event.process),
        }
    }

    /// Devices that selected copies read from or write to.
    pub(crate) fn peers(&self, trace: &Trace) -> Result<BTreeSet<DeviceId>, Error> {
        let mut peers = BTreeSet::new();
        if self.is_all() {
            return Ok(peers);
        }
        let columns = Projection::of::<MemoryCopy>(&[
            "place.process",
            "place.device",
            "place.stream",
            "shape.source_device",
            "shape.destination_device",
        ])?;
        trace.copies.stream_wanted(
            &columns,
            |_, rows: <MemoryCopy as Table>::Columns| -> Vec<DeviceId> {
                let is_wanted = |row: &usize| self.wants_place(rows.place.get(*row));
                let both = |row| {
                    let shape = rows.shape.get(row);
                    [shape.source_device, shape.destination_device]
                };
                (0..rows.place.index.len())
                    .filter(is_wanted)
                    .flat_map(both)
                    .collect()
            },
            |found| peers.extend(found),
        );
        Ok(peers)
    }

    /// The selected processes, with all of their work. Steps are theirs: they do not depend on devices and streams.
    pub fn whole_processes(&self) -> Selection {
        match (&self.selection.devices, &self.selection.streams) {
            (None, None) => self.selection.clone(),
            _ => Selection {
                processes: Some(self.owners.iter().copied().collect()),
                ..Selection::default()
            },
        }
    }

    /// A device that has work of the selection and other work. When it was idle, and why, cannot be seen in the selection.
    pub fn shared_device(&self) -> Option<DeviceId> {
        self.shared_device
    }

    /// A process that has work of the selection and other work. What it waited for cannot be seen in the selection.
    pub fn shared_process(&self) -> Option<ProcessId> {
        self.shared_process
    }
}
