//! Recordings, built row by row as the collector writes them.

use std::collections::BTreeMap;

use tracesmith_format::tables::{
    self, CommandKind, Content, Host, Kernel, KernelShape, MemoryKind, Module, Moment, Piece, Place, Process,
};
use tracesmith_format::{
    Address, Blob, Bytes, ClockId, CorrelationId, HostId, ProcessId, Timestamp, Writer, WriterOptions,
};
use tracesmith_replay::Recording;
use xxhash_rust::xxh3::xxh3_128;

/// Where the memory of these recordings lies: the fake driver puts nothing there by itself.
pub const BASE: u64 = 0x0240_0000_0000;

/// The program's handle of the module with all kernels.
pub const MODULE: u64 = 0x7000;

/// Where variables were in the program: nowhere near what a replay takes.
pub const VARIABLE: u64 = 0x0241_0000_0000;

/// The process that is recorded.
const PROCESS: ProcessId = ProcessId(7);
const PID: u32 = 4242;

/// The kernels that the fake driver knows. It runs what it knows by name, so the bodies say nothing.
pub const KERNELS: &str = "
.version 7.0
.target sm_52
.address_size 64
.visible .global .align 4 .u32 counter;
.visible .entry noop() { exit; }
.visible .entry fill(.param .u64 target, .param .u32 value, .param .u32 n) { exit; }
.visible .entry saxpy(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n) { exit; }
.visible .entry saxpy_near(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n) { exit; }
.visible .entry vector_add(.param .u64 c, .param .u64 a, .param .u64 b, .param .u32 n) { exit; }
.visible .entry accumulate(.param .u64 sum, .param .u64 x, .param .u32 n) { exit; }
.visible .entry bump(.param .u64 out, .param .u32 by) { exit; }
.visible .entry follow(.param .u64 out, .param .u64 table, .param .u32 n) { exit; }
.visible .entry look(.param .u64 y, .param .u64 texture, .param .u32 n) { exit; }
.visible .entry look_at_array(.param .u64 y, .param .u64 texture, .param .u32 n) { exit; }
.visible .entry paint(.param .u64 surface, .param .u64 y, .param .u32 n) { exit; }
.visible .entry delay(.param .u64 nanoseconds) { exit; }
";

/// An argument of a kernel.
#[derive(Clone, Copy, Debug)]
pub enum Argument {
    Long(u64),
    Number(u32),
    Float(f32),
}

pub use Argument::{Float, Long, Number};

/// A call, with its texts.
#[derive(Clone, Debug, Default)]
pub struct Call {
    pub row: tables::Command,
    pub function: String,
    pub reason: String,
}

impl Call {
    pub fn of(kind: CommandKind) -> Self {
        Self {
            row: tables::Command {
                kind,
                process: PROCESS,
                ..tables::Command::default()
            },
            ..Self::default()
        }
    }

    /// In a stream of the program's.
    pub fn on(mut self, stream: u64) -> Self {
        self.row.stream = stream;
        self
    }

    /// A kernel of another module.
    pub fn of_module(mut self, handle: u64) -> Self {
        self.row.module = handle;
        self
    }

    /// With dynamic shared memory.
    pub fn shared(mut self, bytes: u32) -> Self {
        self.row.shared = bytes;
        self
    }

    /// Made so long after the first call.
    pub fn at(mut self, nanos: u64) -> Self {
        self.row.time = Timestamp(1_000 + nanos);
        self
    }

    /// A node of the graph that a call launches, after other nodes.
    pub fn node(mut self, graph: u64, follows: &[u64]) -> Self {
        self.row.graph = graph;
        self.row.follows = Blob(follows.iter().flat_map(|number| number.to_le_bytes()).collect());
        self
    }
}

/// A launch of one block of 256 threads.
pub fn launch(function: &str, arguments: &[Argument]) -> Call {
    let mut call = Call::of(CommandKind::LAUNCH).of_module(MODULE);
    call.function = function.to_owned();
    call.row.parameters = Blob(parameters(arguments));
    (call.row.grid_x, call.row.grid_y, call.row.grid_z) = (1, 1, 1);
    (call.row.block_x, call.row.block_y, call.row.block_z) = (256, 1, 1);
    call
}

/// A launch that sets words.
pub fn fill(target: u64, value: u32, count: u32) -> Call {
    launch("fill", &[Long(target), Number(value), Number(count)])
}

/// A launch that keeps its stream busy.
pub fn delay(millis: u64) -> Call {
    launch("delay", &[Long(millis * 1_000_000)])
}

fn parameters(arguments: &[Argument]) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    for argument in arguments {
        match argument {
            Long(word) => {
                bytes.resize(bytes.len().next_multiple_of(8), 0);
                bytes.extend(word.to_le_bytes());
            }
            Number(number) => bytes.extend(number.to_le_bytes()),
            Float(number) => bytes.extend(number.to_le_bytes()),
        }
    }
    bytes
}

pub fn copy(to: u64, from: u64, bytes: u64) -> Call {
    let mut call = Call::of(CommandKind::COPY);
    (call.row.destination, call.row.source) = (Address(to), Address(from));
    call.row.bytes = Bytes(bytes);
    call
}

/// Sets elements of so many bytes.
pub fn set(to: u64, value: u64, width: u8, bytes: u64) -> Call {
    let mut call = Call::of(CommandKind::SET);
    call.row.destination = Address(to);
    (call.row.value, call.row.width, call.row.bytes) = (value, width, Bytes(bytes));
    call
}

/// A copy of planes: pitches and heights of source and destination, then width, height and depth.
pub fn copy_planes(from: [u64; 3], to: [u64; 3], size: [u64; 3]) -> Call {
    let mut call = Call::of(CommandKind::COPY_PLANES);
    let all = from.into_iter().chain(to).chain(size);
    call.row.parameters = Blob(all.flat_map(u64::to_le_bytes).collect());
    (call.row.destination, call.row.source) = (Address(to[0]), Address(from[0]));
    call.row.bytes = Bytes(size.iter().product());
    call
}

pub fn allocate(address: u64, bytes: u64) -> Call {
    let mut call = Call::of(CommandKind::ALLOCATE);
    (call.row.destination, call.row.bytes) = (Address(address), Bytes(bytes));
    call.row.value = u64::from(MemoryKind::DEVICE.0);
    call
}

pub fn free(address: u64) -> Call {
    let mut call = Call::of(CommandKind::FREE);
    call.row.destination = Address(address);
    call
}

pub fn record_event(event: u64) -> Call {
    let mut call = Call::of(CommandKind::RECORD_EVENT);
    call.row.object = event;
    call
}

pub fn wait_event(event: u64) -> Call {
    let mut call = Call::of(CommandKind::WAIT_EVENT);
    call.row.object = event;
    call
}

/// The host waits for all work (0), a stream (1) or an event (2).
pub fn synchronize(what: u64, event: u64) -> Call {
    let mut call = Call::of(CommandKind::SYNCHRONIZE);
    (call.row.value, call.row.object) = (what, event);
    call
}

/// An attribute of a kernel.
pub fn attribute(function: &str, id: u64, value: u64) -> Call {
    let mut call = Call::of(CommandKind::ATTRIBUTE).of_module(MODULE);
    call.function = function.to_owned();
    (call.row.object, call.row.value) = (id, value);
    call
}

/// A launch of a graph with so many nodes.
pub fn graph(nodes: u64) -> Call {
    let mut call = Call::of(CommandKind::GRAPH);
    call.row.bytes = Bytes(nodes);
    call
}

/// A call that the recorder could not record.
pub fn refused(function: &str, reason: &str) -> Call {
    let mut call = Call::of(CommandKind::REFUSED);
    (call.function, call.reason) = (function.to_owned(), reason.to_owned());
    call
}

/// A texture of plain memory, as the format has it: the resource, and how it is read.
pub fn texture(handle: u64, address: u64, bytes: u64) -> Call {
    const LINEAR: u64 = 2;
    const FLOAT: u64 = 0x20;
    const CHANNEL: u64 = 1 << 32;
    let mut call = Call::of(CommandKind::TEXTURE);
    call.row.object = handle;
    let mut description = vec![0; 144 + 104];
    let resource = [LINEAR, address, FLOAT | CHANNEL, bytes];
    for (place, word) in description.as_chunks_mut::<8>().0.iter_mut().zip(resource) {
        *place = word.to_le_bytes();
    }
    call.row.parameters = Blob(description);
    call
}

/// Memory at one end of the window.
#[derive(Clone, Debug)]
pub struct Memory {
    pub moment: Moment,
    pub address: u64,
    pub kind: MemoryKind,
    pub content: Vec<u8>,
    pub variable: String,
    pub module: u64,
}

/// A recorded window.
#[derive(Clone, Debug)]
pub struct Window {
    pub calls: Vec<Call>,
    pub memory: Vec<Memory>,
    pub pieces: Vec<Piece>,
    pub contents: BTreeMap<u128, Vec<u8>>,
    pub modules: Vec<Module>,
    pub facts: Vec<(String, String)>,
    /// The work of the device, as the trace has it: correlation, kernel and nanoseconds.
    pub kernels: Vec<(u64, String, u64)>,
    /// Further processes of the file, which hold a recording of one call each.
    pub others: Vec<ProcessId>,
}

impl Window {
    /// No call yet; the known kernels are loaded.
    pub fn new() -> Self {
        let mut window = Self {
            calls: Vec::new(),
            memory: Vec::new(),
            pieces: Vec::new(),
            contents: BTreeMap::new(),
            modules: Vec::new(),
            facts: Vec::new(),
            kernels: Vec::new(),
            others: Vec::new(),
        };
        window.load(MODULE, KERNELS.as_bytes());
        window
    }

    /// Device memory with the same content at both ends.
    pub fn kept(&mut self, address: u64, content: &[u8]) {
        self.begin(address, content);
        self.end(address, content);
    }

    /// Device memory whose content the window changes.
    pub fn changed(&mut self, address: u64, before: &[u8], after: &[u8]) {
        self.begin(address, before);
        self.end(address, after);
    }

    pub fn begin(&mut self, address: u64, content: &[u8]) {
        self.add(Moment::BEGIN, MemoryKind::DEVICE, address, content);
    }

    pub fn end(&mut self, address: u64, content: &[u8]) {
        self.add(Moment::END, MemoryKind::DEVICE, address, content);
    }

    pub fn add(&mut self, moment: Moment, kind: MemoryKind, address: u64, content: &[u8]) {
        self.memory.push(Memory {
            moment,
            address,
            kind,
            content: content.to_vec(),
            variable: String::new(),
            module: 0,
        });
        self.piece(moment, 0, address, content);
    }

    /// A variable of a module.
    pub fn variable(&mut self, module: u64, name: &str, address: u64, before: &[u8], after: &[u8]) {
        for (moment, content) in [(Moment::BEGIN, before), (Moment::END, after)] {
            self.add(moment, MemoryKind::DEVICE, address, content);
            let memory = self.memory.last_mut().unwrap();
            (memory.variable, memory.module) = (name.to_owned(), module);
        }
    }

    /// Adds a call, and returns its number.
    pub fn call(&mut self, mut call: Call) -> u64 {
        let number = self.calls.len() as u64 + 1;
        call.row.number = number;
        call.row.correlation = CorrelationId(number);
        self.calls.push(call);
        number
    }

    /// A call that brings bytes from the host.
    pub fn bring(&mut self, call: Call, address: u64, content: &[u8]) -> u64 {
        let number = self.call(call);
        self.piece(Moment::CALL, number, address, content);
        number
    }

    pub fn piece(&mut self, moment: Moment, command: u64, address: u64, content: &[u8]) {
        let hash = xxh3_128(content);
        self.contents.insert(hash, content.to_vec());
        self.pieces.push(Piece {
            process: PROCESS,
            moment,
            command,
            address: Address(address),
            bytes: Bytes(content.len() as u64),
            hash_high: (hash >> 64) as u64,
            hash_low: hash as u64,
        });
    }

    /// Code, and the handle that the program has of it.
    pub fn load(&mut self, handle: u64, code: &[u8]) {
        let hash = xxh3_128(code);
        let module = Module {
            process: PROCESS,
            hash_high: (hash >> 64) as u64,
            hash_low: hash as u64,
            ..Module::default()
        };
        let is_new = self.modules.iter().all(|other| other.hash_low != module.hash_low);
        if is_new {
            self.modules.push(Module {
                code: Blob(code.to_vec()),
                ..module.clone()
            });
        }
        if handle != 0 {
            self.modules.push(Module { handle, ..module });
        }
    }

    pub fn fact(&mut self, key: &str, value: &str) {
        self.facts
            .push((format!("process.{PID}.{key}"), value.to_owned()));
    }

    /// The file, whole.
    pub fn bytes(&self) -> Vec<u8> {
        let mut whole = self.clone();
        whole.fact("recording.commands", &self.calls.len().to_string());
        whole.unfinished_bytes()
    }

    /// The file of a program that was killed in its window.
    pub fn unfinished_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
        self.write_origin(&mut writer);
        for memory in &self.memory {
            let row = tables::Buffer {
                process: PROCESS,
                moment: memory.moment,
                address: Address(memory.address),
                bytes: Bytes(memory.content.len() as u64),
                memory: memory.kind,
                variable: writer.string(&memory.variable).unwrap(),
                module: memory.module,
                ..tables::Buffer::default()
            };
            writer.define(&row).unwrap();
        }
        for (hash, data) in &self.contents {
            let row = Content {
                hash_high: (hash >> 64) as u64,
                hash_low: *hash as u64,
                data: Blob(data.clone()),
            };
            writer.define(&row).unwrap();
        }
        self.pieces.iter().for_each(|row| writer.define(row).unwrap());
        self.modules.iter().for_each(|row| writer.define(row).unwrap());
        for call in &self.calls {
            let mut row = call.row.clone();
            row.function = writer.string(&call.function).unwrap();
            row.reason = writer.string(&call.reason).unwrap();
            writer.push(ClockId(1), &row).unwrap();
        }
        for process in &self.others {
            let mut row = Call::of(CommandKind::SYNCHRONIZE).row;
            (row.process, row.number) = (*process, 1);
            writer.push(ClockId(1), &row).unwrap();
        }
        for (correlation, name, nanos) in &self.kernels {
            let name = writer.string(name).unwrap();
            let row = Kernel {
                start: Timestamp(5_000),
                end: Timestamp(5_000 + nanos),
                correlation: CorrelationId(*correlation),
                place: Place {
                    process: PROCESS,
                    ..Place::default()
                },
                shape: KernelShape {
                    name,
                    ..KernelShape::default()
                },
                ..Kernel::default()
            };
            writer.push(ClockId(2), &row).unwrap();
        }
        for (key, value) in &self.facts {
            writer.metadata(key, value).unwrap();
        }
        writer.finish().unwrap()
    }

    fn write_origin(&self, writer: &mut Writer<Vec<u8>>) {
        let host = Host {
            id: HostId(1),
            name: writer.string("rack7").unwrap(),
            machine_id: writer.string("abc").unwrap(),
            ..Host::default()
        };
        writer.define(&host).unwrap();
        let others = self
            .others
            .iter()
            .enumerate()
            .map(|(n, id)| (*id, PID + 1 + n as u32));
        for (id, pid) in [(PROCESS, PID)].into_iter().chain(others) {
            let row = Process {
                id,
                host: HostId(1),
                pid,
                ..Process::default()
            };
            writer.define(&row).unwrap();
        }
    }

    pub fn open(&self) -> Recording {
        Recording::from_bytes(self.bytes()).unwrap()
    }
}
