//! The memory that exists at a position of a recording, and the memory that a call uses.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashSet;
use tracesmith_format::tables::{CommandKind, MemoryKind};

use crate::copies::planes;
use crate::recording::{Buffer, Command, Recording};

/// A buffer of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its address range.
    pub range: Range<u64>,
    /// The kind of memory.
    pub memory: MemoryKind,
    /// The name of the module global. Empty for allocated memory.
    pub variable: String,
}

/// How a call refers to a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// By a word of its parameters, at this offset.
    Parameter(usize),
    /// As a destination.
    Destination,
    /// As a source.
    Source,
    /// As a global of its module.
    Global,
}

impl Role {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Parameter(_) => "parameter",
            Self::Destination => "destination",
            Self::Source => "source",
            Self::Global => "global",
        }
    }
}

/// A buffer that a call uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallBuffer {
    /// How the call refers to it.
    pub role: Role,
    /// The address in the call's arguments, which can be anywhere in the buffer.
    pub pointer: u64,
    /// The buffer.
    pub buffer: Extent,
}

impl Extent {
    fn of(buffer: &Buffer) -> Self {
        Self {
            range: buffer.range(),
            memory: buffer.memory,
            variable: buffer.variable.clone(),
        }
    }

    fn allocated_by(command: &Command) -> Self {
        let end = command.destination.saturating_add(command.bytes);
        Self {
            range: command.destination..end,
            memory: MemoryKind(command.value as u8),
            variable: String::new(),
        }
    }

    /// The size.
    pub fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }
}

impl Recording {
    /// The buffers that exist before the call at a position, by address.
    pub fn buffers_at(&self, place: usize) -> Vec<Extent> {
        self.live(place).into_values().collect()
    }

    fn live(&self, place: usize) -> BTreeMap<u64, Extent> {
        let mut live: BTreeMap<u64, Extent> = BTreeMap::new();
        let allocations = self.commands.iter();
        let allocated: FxHashSet<u64> = allocations
            .filter(|command| command.kind == CommandKind::ALLOCATE)
            .map(|command| command.destination)
            .collect();
        for buffer in &self.begin {
            live.insert(buffer.address, Extent::of(buffer));
        }
        for buffer in &self.end {
            // What the window allocates does not exist before.
            if !live.contains_key(&buffer.address) && !allocated.contains(&buffer.address) {
                live.insert(buffer.address, Extent::of(buffer));
            }
        }
        for command in self.commands.iter().take(place) {
            match command.kind {
                CommandKind::ALLOCATE => {
                    live.insert(command.destination, Extent::allocated_by(command));
                }
                CommandKind::FREE => {
                    live.remove(&command.destination);
                }
                _ => {}
            }
        }
        live
    }

    /// The buffer that contains an address before the call at a position. If there is none, one of another time.
    pub fn buffer_at(&self, place: usize, address: u64) -> Option<Extent> {
        if let Some(extent) = holding(&self.live(place), address) {
            return Some(extent);
        }
        if let Some(buffer) = self.buffer(address) {
            return Some(Extent::of(buffer));
        }
        let allocations = self.commands.iter();
        allocations
            .filter(|command| command.kind == CommandKind::ALLOCATE)
            .map(Extent::allocated_by)
            .find(|extent| extent.range.contains(&address))
    }

    /// The buffers that the arguments of a call point to, and the globals of its module.
    pub fn call_buffers(&self, place: usize) -> Vec<CallBuffer> {
        let Some(command) = self.commands.get(place) else {
            return Vec::new();
        };
        // An allocation refers to memory that exists only after it.
        let live = self.live(place + usize::from(command.kind == CommandKind::ALLOCATE));
        let pointers = pointers(command).into_iter();
        let mut found: Vec<CallBuffer> = pointers
            .filter_map(|(role, pointer)| {
                let buffer = holding(&live, pointer)?;
                Some(CallBuffer {
                    role,
                    pointer,
                    buffer,
                })
            })
            .collect();
        if command.kind == CommandKind::LAUNCH {
            let globals = self.begin.iter();
            let own = globals.filter(|global| !global.variable.is_empty() && global.module == command.module);
            found.extend(own.map(|global| CallBuffer {
                role: Role::Global,
                pointer: global.address,
                buffer: Extent::of(global),
            }));
        }
        found
    }
}

fn holding(live: &BTreeMap<u64, Extent>, address: u64) -> Option<Extent> {
    let mut before = live.range(..=address).rev();
    before
        .find(|(_, extent)| extent.range.contains(&address))
        .map(|(_, extent)| extent.clone())
}

/// The words of a call that can be addresses.
fn pointers(command: &Command) -> Vec<(Role, u64)> {
    match command.kind {
        CommandKind::LAUNCH => {
            let words = command.parameters.as_chunks::<8>().0.iter().enumerate();
            words
                .map(|(index, word)| (Role::Parameter(8 * index), u64::from_le_bytes(*word)))
                .collect()
        }
        CommandKind::COPY => vec![
            (Role::Destination, command.destination),
            (Role::Source, command.source),
        ],
        CommandKind::COPY_PLANES => match planes(&command.parameters) {
            Some(planes) => vec![
                (Role::Destination, planes.destination.device),
                (Role::Source, planes.source.device),
            ],
            None => Vec::new(),
        },
        CommandKind::SET | CommandKind::ALLOCATE | CommandKind::FREE | CommandKind::ARRAY => {
            vec![(Role::Destination, command.destination)]
        }
        _ => Vec::new(),
    }
}
