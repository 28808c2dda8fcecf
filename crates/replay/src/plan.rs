//! What a replay will do, and what blocks it.

use std::ops::Range;

use memchr::memmem;
use rustc_hash::FxHashMap;
use tracesmith_cuda::cubin;
use tracesmith_format::tables::{CommandKind, MemoryKind};

use crate::contents::Hash;
use crate::error::Error;
use crate::recording::{Command, Recording};

/// The end of the address space of GPUs. Addresses have at most 57 bits.
const LAST_ADDRESS: u64 = 1 << 57;

/// A loaded module: the program's handle, and the hash of its code. Two handles with the same code are two modules,
/// each with its own globals.
pub(crate) type ModuleKey = (u64, Hash);

/// What a replay will do.
pub struct Plan {
    /// Address ranges of device memory.
    pub memory: Vec<Range<u64>>,
    /// Address ranges of pinned host memory.
    pub host: Vec<Range<u64>>,
    /// The module of each launched kernel, by handle and name.
    pub(crate) code: FxHashMap<(u64, String), Hash>,
    /// Module globals. Their addresses depend on where the module is loaded.
    pub(crate) variables: Vec<Variable>,
    /// What blocks the replay.
    pub obstacles: Vec<Obstacle>,
}

/// A module global.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    /// Its recorded address range.
    pub(crate) was: Range<u64>,
    pub(crate) name: String,
    pub(crate) module: ModuleKey,
}

/// Something that a replay cannot do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The number of the call. `None` if it concerns the whole recording.
    pub command: Option<u64>,
    /// The name of the kernel or the call.
    pub function: String,
    /// The reason.
    pub reason: String,
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.command {
            Some(number) => write!(f, "#{number} {}: {}", self.function, self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

impl Plan {
    /// Plans the replay of a recording.
    ///
    /// # Errors
    ///
    /// If the file lacks data that the recording refers to.
    pub fn of(recording: &mut Recording) -> Result<Self, Error> {
        let mut plan = Self {
            memory: Vec::new(),
            host: Vec::new(),
            code: FxHashMap::default(),
            variables: Vec::new(),
            obstacles: Vec::new(),
        };
        if let Some(why) = &recording.broken {
            plan.obstacles.push(Obstacle {
                command: None,
                function: String::new(),
                reason: why.clone(),
            });
        }
        plan.find_code(recording)?;
        plan.find_variables(recording)?;
        for buffer in recording.begin.iter().chain(&recording.end) {
            if !plan
                .variables
                .iter()
                .any(|variable| variable.was.contains(&buffer.address))
            {
                plan.add(buffer.memory, buffer.range());
            }
        }
        for command in &recording.commands {
            if command.kind == CommandKind::ALLOCATE {
                let memory = MemoryKind(command.value as u8);
                let end = command.destination.saturating_add(command.bytes);
                plan.add(memory, command.destination..end);
            }
        }
        for ranges in [&mut plan.memory, &mut plan.host] {
            ranges.sort_by_key(|range| range.start);
            ranges.dedup();
        }
        for range in plan.memory.iter().chain(&plan.host) {
            if range.end > LAST_ADDRESS {
                plan.obstacles.push(Obstacle {
                    command: None,
                    function: String::new(),
                    reason: format!(
                        "memory at {:#x} ({} bytes) is outside of the GPU address space",
                        range.start,
                        range.end - range.start
                    ),
                });
            }
        }
        let Recording { commands, .. } = &*recording;
        for command in commands {
            if let Some(reason) = Self::objection(command) {
                plan.obstacles.push(Obstacle {
                    command: Some(command.number),
                    function: command.name(),
                    reason,
                });
            }
        }
        Ok(plan)
    }

    /// The size of device memory and of host memory.
    pub fn bytes(&self) -> (u64, u64) {
        let sum = |ranges: &[Range<u64>]| {
            let bytes = ranges.iter().map(|range| range.end - range.start);
            // A file can claim any size.
            bytes.fold(0, u64::saturating_add)
        };
        (sum(&self.memory), sum(&self.host))
    }

    /// The module of the kernel that a call launches.
    pub(crate) fn code_of(&self, recording: &mut Recording, command: &Command) -> Result<Vec<u8>, Error> {
        let key = (command.module, command.function.clone());
        let hash = self.code.get(&key);
        let hash = hash.ok_or_else(|| Error::Missing(format!("the module of {}", command.function)))?;
        recording.store.code(*hash)
    }

    fn add(&mut self, memory: MemoryKind, range: Range<u64>) {
        match memory {
            // Arrays are created separately. Their recorded addresses do not belong to any memory.
            MemoryKind::ARRAY => {}
            MemoryKind::PINNED | MemoryKind::PAGEABLE => self.host.push(range),
            _ => self.memory.push(range),
        }
    }

    /// Why a call cannot be replayed, if it cannot.
    fn objection(command: &Command) -> Option<String> {
        match command.kind {
            CommandKind::REFUSED => Some(command.reason.clone()),
            kind if kind.name().is_none() => Some(format!(
                "calls of kind {} need a newer version of tracesmith",
                kind.0
            )),
            _ => None,
        }
    }

    /// Finds the module of each module global. A global of a module that is not loaded is handled like other memory.
    fn find_variables(&mut self, recording: &mut Recording) -> Result<(), Error> {
        let mut wanted: Vec<(u64, String, Range<u64>)> = recording
            .begin
            .iter()
            .chain(&recording.end)
            .filter(|buffer| !buffer.variable.is_empty())
            .map(|buffer| (buffer.module, buffer.variable.clone(), buffer.range()))
            .collect();
        wanted.sort_by_key(|(module, _, range)| (range.start, *module));
        wanted.dedup();
        let mut loaded: Vec<ModuleKey> = self
            .code
            .iter()
            .map(|((handle, _), hash)| (*handle, *hash))
            .collect();
        loaded.sort_unstable();
        loaded.dedup();
        let of_handle = |handle: u64| {
            loaded
                .iter()
                .find(|(loaded, _)| *loaded == handle && handle != 0)
                .copied()
        };
        let mut by_name: FxHashMap<Vec<u8>, Vec<ModuleKey>> = FxHashMap::default();
        if wanted.iter().any(|(module, _, _)| of_handle(*module).is_none()) {
            for key in &loaded {
                let code = recording.store.code(key.1)?;
                for name in cubin::names(&code).variables {
                    by_name.entry(name.to_owned()).or_default().push(*key);
                }
            }
        }
        // First the globals that surely belong to a loaded module.
        wanted.sort_by_key(|(handle, _, _)| of_handle(*handle).is_none());
        for (handle, name, was) in wanted {
            let module = match of_handle(handle) {
                Some(module) => Some(module),
                None if recording.handles.contains_key(&handle) => {
                    let hash = recording.handles[&handle];
                    only(loaded.iter().filter(|(_, loaded)| *loaded == hash))
                }
                None => by_name.get(name.as_bytes()).and_then(|list| only(list.iter())),
            };
            // Two modules with the same code have separate globals. A global of a module that is not loaded is
            // handled like other memory.
            let is_taken = |module: &ModuleKey| {
                let mut variables = self.variables.iter();
                variables.any(|other| other.module == *module && other.name == name && other.was != was)
            };
            if let Some(module) = module.filter(|module| !is_taken(module)) {
                self.variables.push(Variable { was, name, module });
            }
        }
        Ok(())
    }

    /// Finds the module of each kernel: by its handle, or the only module with a kernel of this name.
    fn find_code(&mut self, recording: &mut Recording) -> Result<(), Error> {
        let mut wanted: Vec<(u64, String, u64)> = recording
            .commands
            .iter()
            .filter(|command| matches!(command.kind, CommandKind::LAUNCH | CommandKind::ATTRIBUTE))
            .map(|command| (command.module, command.function.clone(), command.number))
            .collect();
        wanted.sort();
        wanted.dedup_by(|one, other| (one.0, &one.1) == (other.0, &other.1));
        let mut unknown = Vec::new();
        for (handle, function, number) in wanted {
            match recording.handles.get(&handle) {
                Some(hash) => {
                    self.code.insert((handle, function), *hash);
                }
                None => unknown.push((handle, function, number, Vec::new())),
            }
        }
        if unknown.is_empty() {
            return Ok(());
        }
        for hash in recording.store.all_code() {
            let code = recording.store.code(hash)?;
            for (_, function, _, holders) in &mut unknown {
                if has_text(&code, function) {
                    holders.push(hash);
                }
            }
        }
        for (handle, function, number, holders) in unknown {
            match holders[..] {
                [hash] => {
                    self.code.insert((handle, function), hash);
                }
                _ => self.obstacles.push(Obstacle {
                    command: Some(number),
                    function,
                    reason: if holders.is_empty() {
                        "its module was loaded before the recording began".to_owned()
                    } else {
                        format!(
                            "cannot tell which of {} modules contains this kernel; record the program from its start \
                             with `tracesmith profile --record`",
                            holders.len()
                        )
                    },
                }),
            }
        }
        Ok(())
    }
}

/// The only element of a list.
fn only<'k>(mut list: impl Iterator<Item = &'k ModuleKey>) -> Option<ModuleKey> {
    let first = list.next().copied();
    first.filter(|_| list.next().is_none())
}

/// Whether a module contains a string as a name.
fn has_text(code: &[u8], text: &str) -> bool {
    let finder = memmem::Finder::new(text.as_bytes());
    finder.find_iter(code).any(|at| {
        let before = at.checked_sub(1).and_then(|before| code.get(before));
        let after = code.get(at + text.len());
        before.is_none_or(|byte| !is_of_name(*byte)) && after.is_none_or(|byte| !is_of_name(*byte))
    })
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_whole() {
        assert!(has_text(b"\0fill\0", "fill"));
        assert!(has_text(b"fill", "fill"));
        assert!(has_text(b".entry fill(", "fill"));
        assert!(!has_text(b"\0refill\0fill_more\0.text.fill\0", "fill"));
    }
}
