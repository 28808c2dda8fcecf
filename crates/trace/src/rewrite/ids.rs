//! New ids for old ones.

use std::collections::BTreeMap;
use std::io::Write;

use rustc_hash::FxHashMap;
use tracesmith_format::tables::*;
use tracesmith_format::{
    ClockId, Columns, DeviceId, FrameId, HostId, IdMap, ImageId, ProcessId, StackId, StringId, Table, Writer,
};

use crate::error::Error;
use crate::model::trace::Trace;

/// Ids that were given out in the new trace, over all its inputs, and what they stand for.
#[derive(Default)]
pub(super) struct NewIds {
    hosts: Given,
    processes: Given,
    devices: Given,
    clocks: Given,
    images: Given,
}

impl NewIds {
    /// The id of a clock that no input has.
    pub(super) fn new_clock(&mut self) -> ClockId {
        ClockId(self.clocks.next())
    }
}

/// Ids of one kind. Things that are alike in everything but their id are one thing.
#[derive(Default)]
struct Given {
    count: u32,
    by_content: BTreeMap<String, u32>,
}

impl Given {
    fn next(&mut self) -> u32 {
        self.count += 1;
        self.count
    }
}

/// Where the ids of one input went.
pub(super) struct InputMap<'a, W: Write> {
    pub(super) writer: &'a mut Writer<W>,
    trace: &'a Trace,
    new: &'a mut NewIds,
    strings: FxHashMap<StringId, StringId>,
    stacks: FxHashMap<StackId, StackId>,
    frames: FxHashMap<FrameId, FrameId>,
    hosts: BTreeMap<u32, u32>,
    processes: BTreeMap<u32, u32>,
    devices: BTreeMap<u32, u32>,
    clocks: BTreeMap<u32, u32>,
    images: BTreeMap<u32, u32>,
    /// Kept until the caller can return it: a map of ids has no way to fail.
    error: Option<tracesmith_format::Error>,
}

/// Defines a function that carries over the rows of a table whose ids the trace gives out itself.
macro_rules! define_rows {
    ($name:ident, $row:ident, $id:ident, $map:ident) => {
        pub(super) fn $name(&mut self, rows: &[$row]) -> Result<(), Error> {
            for row in rows {
                // With the id left out, equal content means the same thing.
                let mut new = self.remapped(&$row {
                    id: $id::NONE,
                    ..row.clone()
                })?;
                let content = format!("{new:?}");
                let id = match self.new.$map.by_content.get(&content) {
                    Some(id) => *id,
                    None => {
                        let id = self.new.$map.next();
                        self.new.$map.by_content.insert(content, id);
                        new.id = $id(id);
                        self.writer.define(&new)?;
                        id
                    }
                };
                self.$map.insert(row.id.0, id);
            }
            Ok(())
        }
    };
}

impl<'a, W: Write> InputMap<'a, W> {
    pub(super) fn new(trace: &'a Trace, writer: &'a mut Writer<W>, new: &'a mut NewIds) -> Self {
        InputMap {
            writer,
            trace,
            new,
            strings: FxHashMap::default(),
            stacks: FxHashMap::default(),
            frames: FxHashMap::default(),
            hosts: BTreeMap::new(),
            processes: BTreeMap::new(),
            devices: BTreeMap::new(),
            clocks: BTreeMap::new(),
            images: BTreeMap::new(),
            error: None,
        }
    }

    define_rows!(define_hosts, Host, HostId, hosts);
    define_rows!(define_devices, Device, DeviceId, devices);
    define_rows!(define_processes, Process, ProcessId, processes);
    define_rows!(define_clocks, Clock, ClockId, clocks);
    define_rows!(define_image_rows, Image, ImageId, images);

    pub(super) fn define_images(
        &mut self,
        images: &Images,
        is_wanted: impl Fn(ProcessId) -> bool,
    ) -> Result<(), Error> {
        let rows = (0..images.len()).map(|row| images.row(row));
        let rows: Vec<Image> = rows.filter(|image| is_wanted(image.process)).collect();
        self.define_image_rows(&rows)
    }

    /// A row with all its ids replaced.
    pub(super) fn remapped<T: Table>(&mut self, row: &T) -> Result<T, Error> {
        let mut columns = T::Columns::default();
        columns.push(row);
        columns.remap(self);
        self.check()?;
        Ok(columns.row(0))
    }

    /// The error that giving out ids ran into, if it did.
    pub(super) fn check(&mut self) -> Result<(), Error> {
        self.error.take().map_or(Ok(()), |error| Err(error.into()))
    }

    pub(super) fn new_clock(&mut self, clock: ClockId) -> ClockId {
        IdMap::clock(self, clock)
    }

    /// The frames that came over, by their old ids.
    pub(super) fn frames(&self) -> Vec<FrameId> {
        let mut frames: Vec<FrameId> = self.frames.keys().copied().collect();
        frames.sort_unstable();
        frames
    }

    fn keep<T: Default>(&mut self, result: Result<T, tracesmith_format::Error>) -> T {
        result.unwrap_or_else(|error| {
            self.error.get_or_insert(error);
            T::default()
        })
    }
}

/// The new id of something that the input refers to; one that it never defined gets a new id all the same.
fn mapped(map: &mut BTreeMap<u32, u32>, given: &mut Given, old: u32) -> u32 {
    if old == 0 {
        0
    } else {
        *map.entry(old).or_insert_with(|| given.next())
    }
}

impl<W: Write> IdMap for InputMap<'_, W> {
    fn string(&mut self, id: StringId) -> StringId {
        if let Some(new) = self.strings.get(&id) {
            return *new;
        }
        let new = self.writer.string(self.trace.string(id));
        let new = self.keep(new);
        self.strings.insert(id, new);
        new
    }

    fn stack(&mut self, id: StackId) -> StackId {
        if id == StackId::NONE {
            return id;
        }
        // Outwards to the first stack that is known, then back in.
        let tables = self.trace.stack_tables();
        let mut path = Vec::new();
        let mut next = id;
        let mut new = loop {
            if let Some(new) = self.stacks.get(&next) {
                break *new;
            }
            let Some((stacks, row)) = tables.stacks.find(next.0) else {
                break StackId::NONE;
            };
            let stack = stacks.row(row);
            let parent = stack.parent;
            path.push((next, stack));
            // A stack always stands behind its parent: anything else is damage.
            if parent == StackId::NONE || parent >= next {
                break StackId::NONE;
            }
            next = parent;
        };
        for (old, stack) in path.into_iter().rev() {
            let frame = self.frame(stack.frame);
            let added = self.writer.stack(Stack {
                parent: new,
                frame,
                end: stack.end,
            });
            new = self.keep(added);
            self.stacks.insert(old, new);
        }
        new
    }

    fn frame(&mut self, id: FrameId) -> FrameId {
        if let Some(new) = self.frames.get(&id) {
            return *new;
        }
        let Some((frames, row)) = self.trace.stack_tables().frames.find(id.0) else {
            return FrameId::NONE;
        };
        let frame = frames.row(row);
        let frame = Frame {
            image: self.image(frame.image),
            function: self.string(frame.function),
            file: self.string(frame.file),
            ..frame
        };
        let new = self.writer.frame(frame);
        let new = self.keep(new);
        self.frames.insert(id, new);
        new
    }

    fn image(&mut self, id: ImageId) -> ImageId {
        ImageId(mapped(&mut self.images, &mut self.new.images, id.0))
    }

    fn host(&mut self, id: HostId) -> HostId {
        HostId(mapped(&mut self.hosts, &mut self.new.hosts, id.0))
    }

    fn process(&mut self, id: ProcessId) -> ProcessId {
        ProcessId(mapped(&mut self.processes, &mut self.new.processes, id.0))
    }

    fn device(&mut self, id: DeviceId) -> DeviceId {
        DeviceId(mapped(&mut self.devices, &mut self.new.devices, id.0))
    }

    fn clock(&mut self, id: ClockId) -> ClockId {
        ClockId(mapped(&mut self.clocks, &mut self.new.clocks, id.0))
    }
}
