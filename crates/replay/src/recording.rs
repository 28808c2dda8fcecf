//! Reads a replay recording from a file.

mod damage;
mod rows;

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{self, CommandKind, MemoryKind, Metadata, Text};
use tracesmith_format::{BlockKind, Damage, FileSource, Memory as InMemory, ProcessId, Reader, Table};

use crate::contents::{Hash, Input, Store};
use crate::error::Error;
use crate::needs::{RecordedGpu, recorded_gpu};
use crate::recorded;
use damage::{broken, lacking, no_recording};
use rows::{command, memory, origin, rows_of_modules, strings};
pub(crate) use rows::{rows, text};

/// The blocks of a recording.
const OF_A_RECORDING: [BlockKind; 6] = [
    tables::Command::KIND,
    tables::Buffer::KIND,
    tables::Piece::KIND,
    tables::Content::KIND,
    tables::Module::KIND,
    Text::KIND,
];

/// Other tables that a replay reads. Damage in these tables is an error.
const ALSO_READ: [BlockKind; 6] = [
    Metadata::KIND,
    tables::Process::KIND,
    tables::Host::KIND,
    tables::Kernel::KIND,
    tables::MemoryCopy::KIND,
    tables::MemorySet::KIND,
];

/// Maximum number of missing strings in a damaged file.
const MOST_MISSING: u64 = 1 << 20;

/// A recorded window of one process.
pub struct Recording {
    /// The calls in program order.
    pub commands: Vec<Command>,
    /// Memory at the start of the window.
    pub begin: Vec<Buffer>,
    /// Memory at the end of the window.
    pub end: Vec<Buffer>,
    /// Why the recording is incomplete, if it is.
    pub broken: Option<String>,
    /// The recorded machine.
    pub origin: Origin,
    /// The recorded GPU.
    pub gpu: RecordedGpu,
    /// The recorded process.
    pub process: ProcessId,
    /// Number of other processes with a recording in the file.
    pub others: usize,
    /// Host memory that calls copied, by call number.
    pub(crate) brought: FxHashMap<u64, Vec<Piece>>,
    /// Modules by handle.
    pub(crate) handles: FxHashMap<u64, Hash>,
    pub(crate) store: Store,
}

/// A machine, as described in the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Its name.
    pub name: String,
    /// An ID that stays the same after a reboot.
    pub machine_id: String,
}

/// A call.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "as in the table of the format")]
pub struct Command {
    pub number: u64,
    pub correlation: u64,
    pub kind: CommandKind,
    pub stream: u64,
    pub object: u64,
    pub function: String,
    pub reason: String,
    pub module: u64,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub parameters: Vec<u8>,
    pub attributes: Vec<u8>,
    pub destination: u64,
    pub source: u64,
    pub bytes: u64,
    pub value: u64,
    pub width: u8,
    pub graph: u64,
    pub follows: Vec<u64>,
    pub time: u64,
    /// The recorded GPU time. `None` if the trace does not contain it.
    pub recorded: Option<Duration>,
}

/// Memory at the start or the end of the window.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// The address.
    pub address: u64,
    /// The size.
    pub bytes: u64,
    /// The kind of memory.
    pub memory: MemoryKind,
    /// The name of the module global. Empty for allocated memory.
    pub variable: String,
    pub(crate) module: u64,
    pub(crate) pieces: Vec<Piece>,
}

/// A part of the contents of a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) hash: Hash,
}

impl Buffer {
    /// The address range.
    pub fn range(&self) -> Range<u64> {
        self.address..self.address.saturating_add(self.bytes)
    }
}

impl Command {
    /// A name for display.
    pub fn name(&self) -> String {
        if self.function.is_empty() {
            self.kind.name().unwrap_or("unknown").to_owned()
        } else {
            self.function.clone()
        }
    }
}

impl Recording {
    /// Reads a recording. Memory contents stay in the file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or contains no recording.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::read(Box::new(FileSource::open(path)?))
    }

    /// Like [`open`](Self::open), for a file in memory.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, Error> {
        Self::read(Box::new(InMemory(bytes)))
    }

    fn read(input: Input) -> Result<Self, Error> {
        let store = Store::new(Reader::open(input)?)?;
        let strings = strings(store.reader())?;
        let rows = rows::<tables::Command>(store.reader())?;
        let process = rows.first().ok_or_else(|| no_recording(store.reader()))?.process;
        let mut processes: Vec<ProcessId> = rows.iter().map(|row| row.process).collect();
        processes.sort_unstable();
        processes.dedup();
        let mut commands: Vec<Command> = rows
            .into_iter()
            .filter(|row| row.process == process)
            .map(|row| command(row, &strings))
            .collect();
        commands.sort_by_key(|command| command.number);
        let (begin, end, brought) = memory(store.reader(), &strings, process)?;
        let handles = rows_of_modules(store.reader(), process)?;
        recorded::fill_in(&mut commands, store.reader(), &strings, process)?;
        let broken = broken(store.reader(), &strings, process, commands.len())?.or_else(|| lacking(&end));
        let origin = origin(store.reader(), &strings, process)?;
        let gpu = recorded_gpu(store.reader(), &strings, process);
        Ok(Self {
            origin,
            gpu,
            process,
            commands,
            begin,
            end,
            broken,
            others: processes.len() - 1,
            brought,
            handles,
            store,
        })
    }

    /// Damage in the index and in tables that a replay does not need. Every block of these tables is read and
    /// checked. Damage in any other table is an error of [`open`](Self::open).
    ///
    /// # Errors
    ///
    /// If the operating system cannot read the file.
    pub fn unrelated_damage(&self) -> Result<Vec<Damage>, Error> {
        let reader = self.store.reader();
        let is_read = |kind: BlockKind| OF_A_RECORDING.contains(&kind) || ALSO_READ.contains(&kind);
        let mut damage: Vec<Damage> = reader.damage().to_vec();
        let mut decoder = reader.decoder();
        for block in reader.blocks().iter().filter(|block| !is_read(block.header.kind)) {
            match decoder.payload(block) {
                Ok(_) => {}
                Err(tracesmith_format::Error::Damaged { damage: found }) => damage.push(found),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(damage)
    }

    /// The positions of the calls with these numbers. The end is exclusive.
    pub fn places(&self, numbers: Range<u64>) -> Range<usize> {
        let at = |number| self.commands.partition_point(|command| command.number < number);
        at(numbers.start)..at(numbers.end)
    }

    /// The position of the n-th launch (from 1) of a kernel whose name contains a text.
    pub fn launch(&self, name: &str, nth: usize) -> Option<usize> {
        self.launches(name).nth(nth.checked_sub(1)?)
    }

    /// The positions of all launches of kernels whose name contains a text.
    pub fn launches(&self, name: &str) -> impl Iterator<Item = usize> {
        let launches = self.commands.iter().enumerate().filter(move |(_, command)| {
            command.kind == CommandKind::LAUNCH && command.function.contains(name)
        });
        launches.map(|(place, _)| place)
    }

    /// The buffer that contains an address, at the start or the end of the window.
    pub fn buffer(&self, address: u64) -> Option<&Buffer> {
        let holds = |buffer: &&Buffer| address.wrapping_sub(buffer.address) < buffer.bytes;
        let mut buffers = self.begin.iter().chain(&self.end);
        buffers.find(holds)
    }

    /// The buffers that the arguments of a call point to, each once.
    pub fn argument_buffers(&self, command: &Command) -> Vec<(u64, u64)> {
        let words = command.parameters.as_chunks::<8>().0.iter();
        let told = words
            .map(|word| u64::from_le_bytes(*word))
            .chain([command.destination, command.source]);
        let mut buffers: Vec<(u64, u64)> = told
            .filter_map(|address| self.buffer(address))
            .map(|buffer| (buffer.address, buffer.bytes))
            .collect();
        buffers.sort_unstable();
        buffers.dedup();
        buffers
    }

    /// Whether an argument of a call is the handle of a texture or a surface.
    pub(crate) fn takes_texture(&self, command: &Command) -> bool {
        let told = |handle: u64| {
            let words = command.parameters.as_chunks::<8>().0.iter();
            words.copied().any(|word| u64::from_le_bytes(word) == handle)
        };
        let mut commands = self.commands.iter();
        commands.any(|command| command.kind == CommandKind::TEXTURE && told(command.object))
    }

    /// The number of buffers at the start, and how many of them are module globals.
    pub fn buffer_counts(&self) -> (usize, usize) {
        let globals = self.begin.iter().filter(|buffer| !buffer.variable.is_empty());
        (self.begin.len(), globals.count())
    }

    /// The handles of all streams that have calls, in ascending order.
    pub fn streams(&self) -> Vec<u64> {
        let mut streams: Vec<u64> = self.commands.iter().map(|command| command.stream).collect();
        streams.sort_unstable();
        streams.dedup();
        streams
    }

    /// Number and total size of all modules.
    pub fn code(&self) -> (usize, u64) {
        self.store.code_size()
    }

    /// The size of all memory at the start.
    pub fn begin_bytes(&self) -> u64 {
        bytes_of(&self.begin)
    }

    /// The size of all memory at the end.
    pub fn end_bytes(&self) -> u64 {
        bytes_of(&self.end)
    }
}

/// A file can claim any size.
fn bytes_of(buffers: &[Buffer]) -> u64 {
    let bytes = buffers.iter().map(|buffer| buffer.bytes);
    bytes.fold(0, u64::saturating_add)
}
