//! Extracts one kernel launch: a folder with all its data, and two programs that run it without TraceSmith.
//!
//! The folder contains the module, the parameters, and the memory that the launch can reach, before and after it. The
//! memory comes from replaying the recording up to the launch. `launch.txt` describes the files. A C++ program and a
//! Python program read it, map the memory at its addresses, launch the kernel and compare.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::ops::Range;
use std::path::Path;

use tracesmith_cuda::driver::widened;
use tracesmith_format::tables::{CommandKind, MemoryKind};

use crate::cuda;
use crate::error::Error;
use crate::load::{FREE_SHARED, MAX_DYNAMIC_SHARED, NON_PORTABLE_CLUSTER};
use crate::offline::Content;
use crate::plan::Plan;
use crate::recording::{Command, Recording};
use crate::run::Replay;

/// Alignment of address reservations; see `driver::FixedAddressMemory`.
const UNIT: u64 = 32 << 20;

/// Memory is mapped in multiples of this size, which suits all devices.
const GRANULE: u64 = 2 << 20;

/// Memory is read and written in chunks of this size.
const PART: u64 = 16 << 20;

/// Files that are equal for all launches.
const FIXED: [(&str, &str); 2] = [
    ("reproduce.cpp", include_str!("extract/reproduce.cpp")),
    ("reproduce.py", include_str!("extract/reproduce.py")),
];

/// A summary of the extracted launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extracted {
    /// The number of the call.
    pub command: u64,
    /// The kernel.
    pub function: String,
    /// Buffers that the kernel can reach.
    pub buffers: usize,
    /// Their total size.
    pub bytes: u64,
    /// Buffers that the kernel changes.
    pub changed: usize,
    /// Buffers for which this is unknown.
    pub unknown: usize,
}

/// Memory that the launch can reach.
struct Reached {
    address: u64,
    bytes: u64,
    memory: MemoryKind,
    variable: String,
    after: After,
}

/// Whether the launch changes memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// It does not.
    Same,
    Changed,
    /// Unknown.
    Unknown,
}

impl Replay<'_> {
    /// Replays the recording up to a launch, and writes the launch to an existing folder.
    ///
    /// # Errors
    ///
    /// If the call is not a launch, if the driver reports an error, or if a file cannot be written.
    pub fn extract(&mut self, place: usize, folder: &Path) -> Result<Extracted, Error> {
        let command = launch_at(self.recording, place)?;
        self.serially(|replay| replay.extract_launch(&command, place, folder))
    }

    fn extract_launch(&mut self, command: &Command, place: usize, folder: &Path) -> Result<Extracted, Error> {
        self.go_to(place)?;
        let mut known = memory_before(self.recording, place);
        known.retain(|address, memory| self.stage.holds(self.place(*address), memory.bytes));
        let own = own_variables(self.recording, command);
        let mut reached = reached(command, known, own, |address, bytes| self.read(address, bytes))?;
        make_folder(folder)?;
        for (index, memory) in reached.iter().enumerate() {
            save(memory, &folder.join(before(index)), |address, bytes| {
                self.read(address, bytes)
            })?;
        }
        self.issue_all(place..place + 1)?;
        self.wait().map_err(|error| error.of_call(command))?;
        for (index, memory) in reached.iter_mut().enumerate() {
            let (old, new) = (folder.join(before(index)), folder.join(after(index)));
            save(memory, &new, |address, bytes| self.read(address, bytes))?;
            memory.after = if is_same(&old, &new)? {
                fs::remove_file(&new).map_err(Error::Write)?;
                After::Same
            } else {
                After::Changed
            };
        }
        let code = self.code_of(command)?;
        write_files(self.recording, command, &reached, &code, folder)
    }
}

impl Recording {
    /// Writes a launch to a folder without a GPU. The memory before the launch must be known from the file. The
    /// memory after it is mostly unknown, and the programs do not compare it.
    ///
    /// # Errors
    ///
    /// If the call is not a launch, if an earlier call can have written the memory, or if a file cannot be written.
    pub fn extract(&mut self, plan: &Plan, place: usize, folder: &Path) -> Result<Extracted, Error> {
        let command = launch_at(self, place)?;
        let known = memory_before(self, place);
        let own = own_variables(self, &command);
        let mut reached = reached(&command, known, own, |address, bytes| {
            self.known_before(place, address, bytes)
        })?;
        make_folder(folder)?;
        for (index, memory) in reached.iter_mut().enumerate() {
            save(memory, &folder.join(before(index)), |address, bytes| {
                self.known_before(place, address, bytes)
            })?;
            let new = folder.join(after(index));
            memory.after = match self.content_before(place + 1, memory.address, memory.bytes)? {
                Content::Unknown { .. } => After::Unknown,
                Content::Known(content) => {
                    fs::write(&new, content).map_err(Error::Write)?;
                    if is_same(&folder.join(before(index)), &new)? {
                        fs::remove_file(&new).map_err(Error::Write)?;
                        After::Same
                    } else {
                        After::Changed
                    }
                }
            };
        }
        let code = plan.code_of(self, &command)?;
        write_files(self, &command, &reached, &code, folder)
    }

    fn known_before(&mut self, place: usize, address: u64, bytes: u64) -> Result<Vec<u8>, Error> {
        match self.content_before(place, address, bytes)? {
            Content::Known(content) => Ok(content),
            Content::Unknown { call, name } => Err(Error::NeedsDevice {
                address,
                why: match call {
                    Some(call) => format!("#{call} {name} may have written it"),
                    None => "the file does not contain it".to_owned(),
                },
            }),
        }
    }
}

fn launch_at(recording: &Recording, place: usize) -> Result<Command, Error> {
    let command = recording
        .commands
        .get(place)
        .filter(|command| command.kind == CommandKind::LAUNCH)
        .cloned()
        .ok_or_else(|| Error::Missing("a kernel launch at that position".to_owned()))?;
    if recording.takes_texture(&command) {
        return Err(Error::Obstacle(format!(
            "{} takes a texture or a surface, which an extracted program cannot create; use `tracesmith replay --kernel`",
            command.function
        )));
    }
    Ok(command)
}

/// All memory before the call at a position, by address.
fn memory_before(recording: &Recording, place: usize) -> BTreeMap<u64, Reached> {
    let mut known = BTreeMap::new();
    for buffer in recording.begin.iter().chain(&recording.end) {
        known.entry(buffer.address).or_insert_with(|| Reached {
            address: buffer.address,
            bytes: buffer.bytes,
            memory: buffer.memory,
            variable: buffer.variable.clone(),
            after: After::Unknown,
        });
    }
    // An address can be freed and allocated again. Only the current allocation counts.
    for command in &recording.commands[..place] {
        if command.kind == CommandKind::FREE {
            known.remove(&command.destination);
        } else if command.kind == CommandKind::ALLOCATE {
            let allocated = Reached {
                address: command.destination,
                bytes: command.bytes,
                memory: MemoryKind(command.value as u8),
                variable: String::new(),
                after: After::Unknown,
            };
            known.insert(command.destination, allocated);
        }
    }
    known
}

/// The module globals of the kernel's module.
fn own_variables(recording: &Recording, command: &Command) -> Vec<u64> {
    recording
        .begin
        .iter()
        .filter(|buffer| !buffer.variable.is_empty() && buffer.module == command.module)
        .map(|buffer| buffer.address)
        .collect()
}

/// The memory that the parameters point to, the memory that this memory points to, and so on. Includes the module
/// globals of the kernel.
fn reached(
    command: &Command,
    mut known: BTreeMap<u64, Reached>,
    own: Vec<u64>,
    mut read: impl FnMut(u64, u64) -> Result<Vec<u8>, Error>,
) -> Result<Vec<Reached>, Error> {
    let mut reached = Vec::new();
    let mut wanted = words(&command.parameters);
    wanted.extend(own);
    while let Some(address) = wanted.pop() {
        let Some((base, memory)) = known.range(..=address).next_back() else {
            continue;
        };
        if address - base >= memory.bytes {
            continue;
        }
        let base = *base;
        if !memory.variable.is_empty() && words(&command.parameters).contains(&address) {
            return Err(Error::Obstacle(format!(
                "#{} {}: a parameter points to the module global {}, whose address changes in each process",
                command.number, command.function, memory.variable
            )));
        }
        if let Some(memory) = known.remove(&base) {
            for offset in (0..memory.bytes).step_by(PART as usize) {
                let content = read(base + offset, PART.min(memory.bytes - offset))?;
                let points = |word: &u64| {
                    let before = known.range(..=*word).next_back();
                    before.is_some_and(|(base, memory)| word - base < memory.bytes)
                };
                wanted.extend(words(&content).into_iter().filter(points));
                wanted.sort_unstable();
                wanted.dedup();
            }
            reached.push(memory);
        }
    }
    reached.sort_by_key(|memory| memory.address);
    Ok(reached)
}

fn make_folder(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder.join("buffers")).map_err(Error::Write)
}

fn save(
    memory: &Reached,
    path: &Path,
    mut read: impl FnMut(u64, u64) -> Result<Vec<u8>, Error>,
) -> Result<(), Error> {
    let mut file = File::create(path).map_err(Error::Write)?;
    for offset in (0..memory.bytes).step_by(PART as usize) {
        let content = read(memory.address + offset, PART.min(memory.bytes - offset))?;
        file.write_all(&content).map_err(Error::Write)?;
    }
    file.flush().map_err(Error::Write)
}

/// Writes all files except the memory.
fn write_files(
    recording: &Recording,
    command: &Command,
    reached: &[Reached],
    code: &[u8],
    folder: &Path,
) -> Result<Extracted, Error> {
    fs::write(folder.join("kernel.cubin"), code).map_err(Error::Write)?;
    fs::write(folder.join("parameters.bin"), &command.parameters).map_err(Error::Write)?;
    fs::write(folder.join("launch.txt"), manifest(recording, command, reached)).map_err(Error::Write)?;
    fs::write(folder.join("README.md"), readme(command, reached)).map_err(Error::Write)?;
    for (name, text) in FIXED {
        fs::write(folder.join(name), text).map_err(Error::Write)?;
    }
    let count = |after: After| reached.iter().filter(|memory| memory.after == after).count();
    Ok(Extracted {
        command: command.number,
        function: command.function.clone(),
        buffers: reached.len(),
        bytes: reached.iter().map(|memory| memory.bytes).sum(),
        changed: count(After::Changed),
        unknown: count(After::Unknown),
    })
}

fn manifest(recording: &Recording, command: &Command, reached: &[Reached]) -> String {
    let mut text = String::new();
    let mut line = |words: std::fmt::Arguments<'_>| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{words}");
    };
    let [x, y, z] = command.grid;
    let [a, b, c] = command.block;
    line(format_args!("kernel {}", command.function));
    line(format_args!("grid {x} {y} {z}"));
    line(format_args!("block {a} {b} {c}"));
    line(format_args!("shared {}", command.shared));
    let attributes = cuda::kept_attributes(command);
    let sets = recording.commands.iter().filter(|other| {
        other.kind == CommandKind::ATTRIBUTE
            && other.number < command.number
            && (other.module, &other.function) == (command.module, &command.function)
    });
    for set in sets {
        line(format_args!("set {} {}", set.object as u32, set.value as i32));
    }
    if command.shared > FREE_SHARED {
        line(format_args!("set {MAX_DYNAMIC_SHARED} {}", command.shared));
    }
    if !attributes.is_empty() {
        line(format_args!("set {NON_PORTABLE_CLUSTER} 1"));
    }
    for attribute in attributes {
        let value: String = attribute.value.iter().map(|byte| format!("{byte:02x}")).collect();
        line(format_args!("attribute {} {value}", attribute.id));
    }
    let is_host = |memory: &Reached| matches!(memory.memory, MemoryKind::PINNED | MemoryKind::PAGEABLE);
    let ranges = |unit: u64, is_wanted: &dyn Fn(&Reached) -> bool| {
        let own: Vec<Range<u64>> = reached
            .iter()
            .filter(|memory| memory.variable.is_empty() && is_wanted(memory))
            .map(|memory| memory.address..memory.address + memory.bytes)
            .collect();
        widened(&own, unit)
    };
    for range in ranges(UNIT, &|_| true) {
        line(format_args!(
            "reserve {:#x} {}",
            range.start,
            range.end - range.start
        ));
    }
    for place in ["device", "host"] {
        let is_there = |memory: &Reached| is_host(memory) == (place == "host");
        for range in ranges(GRANULE, &is_there) {
            line(format_args!(
                "map {:#x} {} {place}",
                range.start,
                range.end - range.start
            ));
        }
    }
    for (index, memory) in reached.iter().enumerate() {
        let old = before(index);
        let new = match memory.after {
            After::Changed => after(index),
            // The kernel must not change it.
            After::Same => old.clone(),
            After::Unknown => "-".to_owned(),
        };
        if memory.variable.is_empty() {
            line(format_args!(
                "buffer {:#x} {} {old} {new}",
                memory.address, memory.bytes
            ));
        } else {
            line(format_args!(
                "variable {} {} {old} {new}",
                memory.variable, memory.bytes
            ));
        }
    }
    text
}

fn before(index: usize) -> String {
    format!("buffers/{index}.before")
}

fn after(index: usize) -> String {
    format!("buffers/{index}.after")
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.as_chunks::<8>().0.iter();
    words.map(|word| u64::from_le_bytes(*word)).collect()
}

fn is_same(one: &Path, other: &Path) -> Result<bool, Error> {
    let open = |path: &Path| File::open(path).map_err(Error::Open);
    let (mut one, mut other) = (open(one)?, open(other)?);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    loop {
        a.clear();
        b.clear();
        for (file, part) in [(&mut one, &mut a), (&mut other, &mut b)] {
            let mut limited = Read::take(file, PART);
            limited.read_to_end(part).map_err(Error::Open)?;
        }
        if a != b {
            return Ok(false);
        }
        if a.is_empty() {
            return Ok(true);
        }
    }
}

fn readme(command: &Command, reached: &[Reached]) -> String {
    let bytes: u64 = reached.iter().map(|memory| memory.bytes).sum();
    let count = |after: After| reached.iter().filter(|memory| memory.after == after).count();
    let leaves = match count(After::Unknown) {
        0 => format!("The kernel changes {} of them.", count(After::Changed)),
        unknown => format!(
            "Its results in {unknown} of them are unknown, because it was extracted without a GPU. They are not compared."
        ),
    };
    format!(
        include_str!("extract/readme.md"),
        function = command.function,
        number = command.number,
        buffers = reached.len(),
        bytes = bytes,
        leaves = leaves,
    )
}
