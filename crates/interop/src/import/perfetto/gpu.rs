//! GPU render stages as kernels, copies and sets; counters of GPUs; the GPUs themselves.

use tracesmith_format::tables::{
    CopyDirection, CopyShape, Counter, CounterTrack, Kernel, KernelShape, MemoryCopy, MemorySet, Place,
};
use tracesmith_format::{Bytes, ContextId, CorrelationId, HostId, ProcessId, StreamId, Timestamp};

use super::sequence::{Sequence, Text, counter_names, interned_text};
use super::{Envelope, Import};
use crate::error::Error;
use crate::import::code;
use crate::perfetto::schema::{gpu, interned, render_stage};
use crate::perfetto::wire::Fields;

/// A hardware queue or a stage.
#[derive(Clone, Debug, Default)]
pub(super) struct Specification {
    name: Text,
}

impl Specification {
    pub(super) fn new(bytes: &[u8]) -> (u64, Self) {
        let (iid, name) = interned_text(bytes);
        (iid, Specification { name })
    }
}

/// A context of a process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Context {
    pid: u64,
}

impl Context {
    pub(super) fn new(bytes: &[u8]) -> (u64, Self) {
        let (mut iid, mut pid) = (0, 0);
        for (field, value) in Fields::new(bytes).flatten() {
            match field {
                interned::IID => iid = value.number(),
                gpu::CONTEXT_PID => pid = value.number(),
                _ => {}
            }
        }
        (iid, Context { pid })
    }
}

/// A kernel by its names.
#[derive(Clone, Debug, Default)]
pub(super) struct ComputeKernel {
    name: Text,
    demangled: Text,
}

impl ComputeKernel {
    pub(super) fn new(bytes: &[u8]) -> (u64, Self) {
        let (iid, name) = interned_text(bytes);
        let mut kernel = ComputeKernel {
            name,
            ..ComputeKernel::default()
        };
        for (field, value) in Fields::new(bytes).flatten() {
            if field == gpu::KERNEL_DEMANGLED {
                kernel.demangled = String::from_utf8_lossy(value.bytes()).into();
            }
        }
        (iid, kernel)
    }
}

/// A render stage, taken apart.
#[derive(Default)]
struct Stage {
    duration: u64,
    context: u64,
    submission: u64,
    device: u64,
    queue: u64,
    queue_name: Text,
    name: Text,
    kernel: Option<ComputeKernel>,
    bytes: Option<u64>,
    shape: KernelShape,
}

impl Stage {
    fn new(content: &[u8], sequence: &Sequence) -> Self {
        let mut found = Stage::default();
        let mut own_name = None;
        for (field, value) in Fields::new(content).flatten() {
            let number = value.number();
            let specification = || {
                sequence
                    .specifications
                    .get(&number)
                    .map(|known| known.name.clone())
            };
            match field {
                render_stage::DURATION => found.duration = number,
                render_stage::CONTEXT => found.context = number,
                render_stage::SUBMISSION_ID => found.submission = number,
                render_stage::GPU_ID => found.device = number,
                render_stage::QUEUE | render_stage::OLD_QUEUE => {
                    found.queue = number;
                    found.queue_name = specification().unwrap_or_default();
                }
                render_stage::STAGE | render_stage::OLD_STAGE => {
                    found.name = specification().unwrap_or_default()
                }
                render_stage::NAME => own_name = Some(String::from_utf8_lossy(value.bytes()).into()),
                render_stage::NAME_IID => own_name = sequence.event_names.get(&number).cloned(),
                render_stage::KERNEL => found.kernel = sequence.kernels.get(&number).cloned(),
                render_stage::LAUNCH => found.read_launch(value.bytes(), sequence),
                render_stage::EXTRA_DATA => found.read_extra(value.bytes()),
                _ => {}
            }
        }
        if let Some(name) = own_name {
            found.name = name;
        }
        found
    }

    fn read_launch(&mut self, bytes: &[u8], sequence: &Sequence) {
        let shape = &mut self.shape;
        for (field, value) in Fields::new(bytes).flatten() {
            match field {
                render_stage::GRID => [shape.grid_x, shape.grid_y, shape.grid_z] = dimensions(value.bytes()),
                render_stage::BLOCK => {
                    [shape.block_x, shape.block_y, shape.block_z] = dimensions(value.bytes())
                }
                render_stage::ARGUMENTS => {
                    let (mut name, mut number) = (Text::from(""), 0);
                    for (field, value) in Fields::new(value.bytes()).flatten() {
                        match field {
                            render_stage::ARGUMENT_NAME_IID => {
                                name = sequence
                                    .argument_names
                                    .get(&value.number())
                                    .cloned()
                                    .unwrap_or_default();
                            }
                            render_stage::ARGUMENT_NAME => {
                                name = String::from_utf8_lossy(value.bytes()).into()
                            }
                            3 | render_stage::ARGUMENT_UINT => number = value.number(),
                            _ => {}
                        }
                    }
                    match &*name {
                        "registers_per_thread" => shape.registers = number as u16,
                        "shared_mem_static" => shape.static_shared = Bytes(number),
                        "shared_mem_dynamic" => shape.dynamic_shared = Bytes(number),
                        "local_mem_per_thread" => shape.local_per_thread = Bytes(number),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
    }

    fn read_extra(&mut self, bytes: &[u8]) {
        let (mut name, mut text) = (String::new(), String::new());
        for (field, value) in Fields::new(bytes).flatten() {
            match field {
                render_stage::EXTRA_NAME => name = String::from_utf8_lossy(value.bytes()).into_owned(),
                render_stage::EXTRA_VALUE => text = String::from_utf8_lossy(value.bytes()).into_owned(),
                _ => {}
            }
        }
        if name == "bytes" {
            self.bytes = text.parse().ok(); // a size in words is no size
        }
    }

    /// The stream's number: that in the queue's name, else the queue's own.
    fn stream(&self) -> StreamId {
        let mut words = self.queue_name.split_whitespace();
        let named = words.next().filter(|word| word.eq_ignore_ascii_case("stream"));
        let number = named.and_then(|_| words.next()?.parse().ok());
        StreamId(number.unwrap_or(self.queue))
    }
}

fn dimensions(bytes: &[u8]) -> [u32; 3] {
    let mut sizes = [0; 3];
    for (axis, value) in Fields::new(bytes).flatten() {
        if let Some(size) = sizes.get_mut((axis as usize).wrapping_sub(1)) {
            *size = value.number() as u32;
        }
    }
    sizes
}

impl Import<'_, '_, '_> {
    pub(super) fn render_stage(
        &mut self,
        host: HostId,
        envelope: &Envelope<'_>,
        content: &[u8],
    ) -> Result<(), Error> {
        let Some(moment) = self.time(host, envelope)? else {
            return Ok(());
        };
        let sequence = self.sequences.entry((host, envelope.sequence)).or_default();
        let stage = Stage::new(content, sequence);
        let context = sequence.contexts.get(&stage.context).copied();
        let process = match context {
            Some(context) => self.builder.process(host, context.pid as u32),
            None => ProcessId::NONE,
        };
        let place = Place {
            process,
            device: self.builder.device(host, stage.device),
            // Contexts are handles; ours have the number in their lower half.
            context: ContextId(stage.context as u32),
            stream: stage.stream(),
            ..Place::default()
        };
        self.builder.seen_at(&place);
        let queue_name = self.builder.string(&stage.queue_name)?;
        self.builder.stream_mut(&place).name = queue_name;
        let (start, correlation) = (moment.time, CorrelationId(stage.submission));
        let Some(end) = start.0.checked_add(stage.duration).map(Timestamp) else {
            self.builder.skip("render stages whose end is not known", 1);
            return Ok(());
        };
        if let (None, Some(bytes)) = (&stage.kernel, stage.bytes) {
            let bytes = Bytes(bytes);
            if &*stage.name == "set" {
                let row = MemorySet {
                    start,
                    end,
                    bytes,
                    correlation,
                    place,
                    ..MemorySet::default()
                };
                return self.builder.push(moment.clock, &row);
            }
            let direction = code(CopyDirection::ALL, CopyDirection::name, &stage.name);
            if direction != CopyDirection::UNKNOWN || &*stage.name == "copy" {
                let shape = CopyShape {
                    direction,
                    ..CopyShape::default()
                };
                let row = MemoryCopy {
                    start,
                    end,
                    bytes,
                    correlation,
                    place,
                    shape,
                    ..MemoryCopy::default()
                };
                return self.builder.push(moment.clock, &row);
            }
        }
        let mut shape = stage.shape;
        let kernel = stage.kernel.unwrap_or_default();
        let name = if kernel.name.is_empty() {
            &stage.name
        } else {
            &kernel.name
        };
        shape.name = self.builder.string(name)?;
        if kernel.demangled != kernel.name {
            shape.demangled = self.builder.string(&kernel.demangled)?;
        }
        let row = Kernel {
            start,
            end,
            correlation,
            place,
            shape,
            ..Kernel::default()
        };
        self.builder.push(moment.clock, &row)
    }

    pub(super) fn gpu_counters(
        &mut self,
        host: HostId,
        envelope: &Envelope<'_>,
        content: &[u8],
    ) -> Result<(), Error> {
        let Some(moment) = self.time(host, envelope)? else {
            return Ok(());
        };
        let sequence = self.sequences.entry((host, envelope.sequence)).or_default();
        let (mut device, mut list, mut values) = (0, 0, Vec::new());
        for (field, value) in Fields::new(content).flatten() {
            match field {
                // A descriptor without a number is the sequence's own.
                gpu::COUNTER_DESCRIPTOR => {
                    sequence.gpu_counters.insert(0, counter_names(value.bytes()));
                }
                gpu::COUNTER_DESCRIPTOR_IID => list = value.number(),
                gpu::COUNTER_GPU => device = value.number(),
                gpu::COUNTERS => {
                    let (mut id, mut number) = (0, None);
                    for (field, value) in Fields::new(value.bytes()).flatten() {
                        match field {
                            gpu::VALUE_ID => id = value.number(),
                            gpu::VALUE_INT => number = Some(value.number() as i64 as f64),
                            gpu::VALUE_DOUBLE => number = Some(value.double()),
                            _ => {}
                        }
                    }
                    values.push((id, number));
                }
                _ => {}
            }
        }
        let names: Vec<Option<Text>> = values
            .iter()
            .map(|(id, _)| sequence.gpu_counters.get(&list)?.get(id).cloned())
            .collect();
        let device = self.builder.device(host, device);
        for ((_, value), name) in values.into_iter().zip(names) {
            let (Some(value), Some(name)) = (value, name) else {
                self.builder
                    .skip("values of GPU counters that are not described", 1);
                continue;
            };
            let track = CounterTrack {
                name: self.builder.string(&name)?,
                device,
                ..CounterTrack::default()
            };
            let row = Counter {
                time: moment.time,
                value,
                track,
            };
            self.builder.push(moment.clock, &row)?;
        }
        Ok(())
    }

    /// The GPUs of a machine, in the order of their numbers.
    pub(super) fn gpu_info(&mut self, host: HostId, content: &[u8]) -> Result<(), Error> {
        let gpus = Fields::new(content)
            .flatten()
            .filter(|(field, _)| *field == gpu::GPUS);
        for ((_, value), number) in gpus.zip(0..) {
            let device = self.builder.device(host, number);
            for (field, value) in Fields::new(value.bytes()).flatten() {
                let text = self.builder.string(&String::from_utf8_lossy(value.bytes()))?;
                let known = self.builder.device_mut(device);
                match field {
                    gpu::NAME => known.name = text,
                    gpu::VENDOR => known.vendor = text,
                    gpu::ARCHITECTURE => known.architecture = text,
                    gpu::UUID => known.uuid = text,
                    gpu::PCI => known.pci = text,
                    _ => {}
                }
            }
        }
        Ok(())
    }
}
