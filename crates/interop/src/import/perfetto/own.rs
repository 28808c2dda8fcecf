//! Events of our own exports as the rows that they came from.

use tracesmith_format::tables::*;
use tracesmith_format::{
    Address, Bytes, CorrelationId, DeviceId, GraphId, GraphNodeId, ImageId, Ordinal, StackId, ThreadId,
    Timestamp,
};

use super::Import;
use super::annotation::ArgumentValue;
use super::slices::Slice;
use super::tracks::Owner;
use crate::error::Error;
use crate::import::code;
use crate::perfetto::words::{Argument, Category};

/// How the frames of a stack are parted in its text.
const FRAME_BORDER: &str = " < ";

/// The number and kind of a flow that came from the flow table.
pub(super) fn flow_of(id: u64) -> (u64, FlowKind) {
    let number = id & ((1 << 44) - 1);
    (number & ((1 << 40) - 1), FlowKind((number >> 40) as u8))
}

impl Import<'_, '_, '_> {
    /// Writes a slice of ours; false when it is none that is known.
    pub(super) fn put_own_slice(&mut self, slice: &Slice, end: Timestamp) -> Result<bool, Error> {
        let known = Category::ALL.iter().find(|(_, text)| slice.is(text));
        let Some((category, _)) = known else {
            return Ok(false);
        };
        let stack = self.own_stack(slice)?;
        match (*category, slice.owner) {
            (Category::API, _) => self.own_api_call(slice, end, stack)?,
            (Category::HOST, _) => self.own_host_call(slice, end, stack)?,
            (Category::MARKER, owner) => {
                let kind = match (owner, end.is_some()) {
                    (Owner::Thread(..), true) => MarkerKind::NESTED_RANGE,
                    (Owner::Thread(..), false) => MarkerKind::OPEN_NESTED_RANGE,
                    (_, true) => MarkerKind::FREE_RANGE,
                    (_, false) => MarkerKind::OPEN_FREE_RANGE,
                };
                self.own_marker(slice, end, stack, kind)?;
            }
            (category, Owner::Stream(place)) => return self.own_work(slice, end, stack, category, place),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Writes a moment of ours; false when it is none that is known.
    pub(super) fn put_own_instant(&mut self, slice: &Slice) -> Result<bool, Error> {
        let stack = self.own_stack(slice)?;
        if slice.is("allocation") {
            self.own_allocation(slice, stack)?;
        } else if slice.is("host") {
            self.own_host_call(slice, slice.start, stack)?;
        } else if slice.is("nvtx") {
            self.own_marker(slice, slice.start, stack, MarkerKind::INSTANT)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn own_work(
        &mut self,
        slice: &Slice,
        end: Timestamp,
        stack: StackId,
        category: Category,
        place: Place,
    ) -> Result<bool, Error> {
        self.builder.seen_at(&place);
        let arguments = &slice.arguments;
        let start = slice.start;
        let correlation = CorrelationId(arguments.number(Argument::CORRELATION));
        let graph = GraphId(arguments.number(Argument::GRAPH));
        let graph_node = GraphNodeId(arguments.number(Argument::GRAPH_NODE));
        let bytes = Bytes(arguments.number(Argument::BYTES));
        match category {
            Category::KERNEL => {
                let shape = self.own_kernel_shape(slice)?;
                let queued = arguments.number(Argument::QUEUED);
                let queued = match start.0.checked_sub(queued) {
                    Some(time) if queued > 0 => Timestamp(time),
                    _ => Timestamp::NONE,
                };
                let row = Kernel {
                    start,
                    end,
                    queued,
                    correlation,
                    graph_node,
                    stack,
                    place,
                    shape,
                    ..Kernel::default()
                };
                self.builder.push(slice.clock, &row)?;
            }
            Category::COPY => {
                let shape = CopyShape {
                    direction: code(CopyDirection::ALL, CopyDirection::name, &slice.name),
                    source_memory: code(MemoryKind::ALL, MemoryKind::name, arguments.text(Argument::FROM)),
                    destination_memory: code(MemoryKind::ALL, MemoryKind::name, arguments.text(Argument::TO)),
                    graph,
                    ..CopyShape::default()
                };
                let copies = arguments.number(Argument::COPIES);
                let row = MemoryCopy {
                    start,
                    end,
                    bytes,
                    correlation,
                    graph_node,
                    stack,
                    copies,
                    place,
                    shape,
                    ..MemoryCopy::default()
                };
                self.builder.push(slice.clock, &row)?;
            }
            Category::SET => {
                let shape = SetShape {
                    memory: code(
                        MemoryKind::ALL,
                        MemoryKind::name,
                        arguments.text(Argument::MEMORY),
                    ),
                    graph,
                    ..SetShape::default()
                };
                let value = arguments.number(Argument::VALUE) as u32;
                let row = MemorySet {
                    start,
                    end,
                    bytes,
                    value,
                    correlation,
                    graph_node,
                    stack,
                    place,
                    shape,
                    ..MemorySet::default()
                };
                self.builder.push(slice.clock, &row)?;
            }
            Category::SYNC => {
                let shape = SyncShape {
                    kind: code(SyncKind::ALL, SyncKind::name, &slice.name),
                    result: arguments.number(Argument::RESULT) as i32,
                };
                let row = Synchronization {
                    start,
                    end,
                    correlation,
                    event: arguments.number(Argument::EVENT),
                    event_record: arguments.number(Argument::EVENT_RECORD),
                    stack,
                    place,
                    shape,
                    ..Synchronization::default()
                };
                self.builder.push(slice.clock, &row)?;
            }
            Category::GRAPH => {
                let shape = GraphShape {
                    graph,
                    executable: GraphId(arguments.number(Argument::EXECUTABLE)),
                    nodes: arguments.number(Argument::NODES) as u32,
                    ..GraphShape::default()
                };
                let row = GraphLaunch {
                    start,
                    end,
                    correlation,
                    stack,
                    place,
                    shape,
                };
                self.builder.push(slice.clock, &row)?;
            }
            Category::COLLECTIVE => {
                let shape = self.own_collective_shape(slice)?;
                let row = Collective {
                    start,
                    end,
                    sequence: arguments.number(Argument::SEQUENCE),
                    count: arguments.number(Argument::COUNT),
                    bytes,
                    correlation,
                    stack,
                    place,
                    shape,
                    ..Collective::default()
                };
                self.builder.push(slice.clock, &row)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn own_kernel_shape(&mut self, slice: &Slice) -> Result<KernelShape, Error> {
        let arguments = &slice.arguments;
        let name = self.builder.string(&slice.name)?;
        let mangled = self.builder.string(arguments.text(Argument::MANGLED))?;
        let mut shape = KernelShape {
            registers: arguments.number(Argument::REGISTERS) as u16,
            static_shared: Bytes(arguments.number(Argument::STATIC_SHARED)),
            dynamic_shared: Bytes(arguments.number(Argument::DYNAMIC_SHARED)),
            local_per_thread: Bytes(arguments.number(Argument::LOCAL)),
            graph: GraphId(arguments.number(Argument::GRAPH)),
            ..KernelShape::default()
        };
        (shape.name, shape.demangled) = if mangled.is_some() {
            (mangled, name)
        } else {
            (name, shape.demangled)
        };
        [shape.grid_x, shape.grid_y, shape.grid_z] = arguments.dimensions(Argument::GRID);
        [shape.block_x, shape.block_y, shape.block_z] = arguments.dimensions(Argument::BLOCK);
        [shape.cluster_x, shape.cluster_y, shape.cluster_z] = arguments.dimensions(Argument::CLUSTER);
        Ok(shape)
    }

    fn own_collective_shape(&mut self, slice: &Slice) -> Result<CollectiveShape, Error> {
        let arguments = &slice.arguments;
        let ordinal = |argument| {
            let number = arguments.some_number(argument);
            number.map_or(Ordinal::NONE, |number| Ordinal::new(number as u32))
        };
        Ok(CollectiveShape {
            name: self.builder.string(&slice.name)?,
            kind: code(
                CollectiveKind::ALL,
                CollectiveKind::name,
                arguments.text(Argument::KIND),
            ),
            communicator: arguments.number(Argument::COMMUNICATOR),
            rank: ordinal(Argument::RANK),
            ranks: arguments.number(Argument::RANKS) as u32,
            root: ordinal(Argument::ROOT),
            datatype: self.builder.string(arguments.text(Argument::DATATYPE))?,
            reduction: self.builder.string(arguments.text(Argument::REDUCTION))?,
            algorithm: self.builder.string(arguments.text(Argument::ALGORITHM))?,
            protocol: self.builder.string(arguments.text(Argument::PROTOCOL))?,
            ..CollectiveShape::default()
        })
    }

    fn own_api_call(&mut self, slice: &Slice, end: Timestamp, stack: StackId) -> Result<(), Error> {
        let arguments = &slice.arguments;
        let interface = slice.categories.iter().find(|category| &***category != "api");
        let interface = interface.map_or("", |category| category);
        let row = ApiCall {
            start: slice.start,
            end,
            correlation: CorrelationId(arguments.number(Argument::CORRELATION)),
            stack,
            caller: slice.caller(),
            shape: ApiShape {
                name: self.builder.string(&slice.name)?,
                domain: code(ApiDomain::ALL, ApiDomain::name, interface),
                result: arguments.number(Argument::RESULT) as i32,
                ..ApiShape::default()
            },
        };
        self.builder.push(slice.clock, &row)
    }

    fn own_host_call(&mut self, slice: &Slice, end: Timestamp, stack: StackId) -> Result<(), Error> {
        let arguments = &slice.arguments;
        let category = slice.categories.iter().find(|category| &***category != "host");
        let row = HostCall {
            start: slice.start,
            end,
            correlation: CorrelationId(arguments.number(Argument::CORRELATION)),
            sequence: arguments.number(Argument::SEQUENCE) as i64,
            argument: arguments.number(Argument::ARGUMENT),
            stack,
            detail: self.builder.string(arguments.text(Argument::DETAIL))?,
            caller: slice.caller(),
            shape: HostShape {
                name: self.builder.string(&slice.name)?,
                kind: code(
                    HostCallKind::ALL,
                    HostCallKind::name,
                    arguments.text(Argument::KIND),
                ),
                category: self.builder.string(category.map_or("", |category| category))?,
                ..HostShape::default()
            },
            ..HostCall::default()
        };
        self.builder.push(slice.clock, &row)
    }

    fn own_marker(
        &mut self,
        slice: &Slice,
        end: Timestamp,
        stack: StackId,
        kind: MarkerKind,
    ) -> Result<(), Error> {
        let arguments = &slice.arguments;
        let (payload_kind, payload) = match arguments.value(Argument::PAYLOAD) {
            Some(ArgumentValue::Unsigned(number)) => (PayloadKind::U64, *number),
            Some(ArgumentValue::Signed(number)) => (PayloadKind::I64, *number as u64),
            Some(ArgumentValue::Float(number)) => (PayloadKind::F64, number.to_bits()),
            _ => (PayloadKind::NONE, 0),
        };
        let row = Marker {
            start: slice.start,
            end,
            payload,
            detail: self.builder.string(arguments.text(Argument::DETAIL))?,
            stack,
            caller: slice.caller(),
            shape: MarkerShape {
                name: self.builder.string(&slice.name)?,
                domain: self.builder.string(arguments.text(Argument::DOMAIN))?,
                category_name: self.builder.string(arguments.text(Argument::CATEGORY_NAME))?,
                kind,
                payload_kind,
                ..MarkerShape::default()
            },
            ..Marker::default()
        };
        self.builder.push(slice.clock, &row)
    }

    fn own_allocation(&mut self, slice: &Slice, stack: StackId) -> Result<(), Error> {
        let arguments = &slice.arguments;
        let process = slice.caller().process;
        let device = match arguments.some_number(Argument::DEVICE) {
            Some(ordinal) if process.is_some() => {
                let host = self.builder.process_mut(process).host;
                self.builder.device(host, ordinal)
            }
            _ => DeviceId::NONE,
        };
        let row = Allocation {
            time: slice.start,
            address: Address(arguments.number(Argument::ADDRESS)),
            bytes: Bytes(arguments.number(Argument::BYTES)),
            correlation: CorrelationId(arguments.number(Argument::CORRELATION)),
            stack,
            place: Place {
                process,
                device,
                ..Place::default()
            },
            shape: AllocationShape {
                operation: code(MemoryOperation::ALL, MemoryOperation::name, &slice.name),
                memory: code(
                    MemoryKind::ALL,
                    MemoryKind::name,
                    arguments.text(Argument::MEMORY),
                ),
                thread: ThreadId(arguments.number(Argument::THREAD)),
                allocator: self.builder.string(arguments.text(Argument::ALLOCATOR))?,
                ..AllocationShape::default()
            },
            ..Allocation::default()
        };
        self.builder.push(slice.clock, &row)
    }

    /// The event's stack, or that which its text names, the innermost function first.
    fn own_stack(&mut self, slice: &Slice) -> Result<StackId, Error> {
        let text = slice.arguments.text(Argument::STACK);
        if slice.stack.is_some() || text.is_empty() {
            return Ok(slice.stack);
        }
        let mut frames = Vec::new();
        for name in text.split(FRAME_BORDER).collect::<Vec<_>>().into_iter().rev() {
            let frame = match nameless(name) {
                Some((file, address)) => Frame {
                    image: match file {
                        "" => ImageId::NONE,
                        file => self.builder.image(slice.caller().process, file)?,
                    },
                    address: Address(address),
                    ..Frame::default()
                },
                None => Frame {
                    function: self.builder.string(name)?,
                    ..Frame::default()
                },
            };
            frames.push(self.builder.frame(frame)?);
        }
        self.builder.stack(frames)
    }
}

/// The file and the address that a function without a name is written by.
fn nameless(text: &str) -> Option<(&str, u64)> {
    let (file, digits) = match text.rsplit_once("+0x") {
        Some(parts) => parts,
        None => ("", text.strip_prefix("0x")?),
    };
    Some((file, u64::from_str_radix(digits, 16).ok()?))
}
