//! The tables that JSON records refer to, and the records in their light.

use rustc_hash::FxHashMap;
use tracesmith_format::tables::MemoryKind;
use tracesmith_format::{Bytes, DeviceId, HostId, ProcessId, StringId};

use super::json::RecordKind;
use super::rows::{Allocated, Common, Copied, Dispatch, Queue, Rows, direction, memory_operation};
use super::schema::{Agent, BufferRecord, CounterRecord, Handle, KernelSymbol, Metadata, Strings};
use crate::error::Error;
use crate::import::Builder;

/// The agent type of a GPU.
const GPU: u32 = 2;
/// rocprofv3 writes this behind the names of kernels.
const DESCRIPTOR_SUFFIX: &str = ".kd";

#[derive(Default)]
pub(super) struct Tables {
    process: ProcessId,
    devices: FxHashMap<Handle, DeviceId>,
    kernels: FxHashMap<u64, KernelFacts>,
    kinds: Vec<super::schema::KindNames>,
    messages: FxHashMap<u64, String>,
}

/// What a kernel symbol says of all its dispatches.
#[derive(Clone, Copy, Default)]
struct KernelFacts {
    name: StringId,
    demangled: StringId,
    shared: u64,
    registers: u64,
}

impl Tables {
    pub(super) fn add_process(
        &mut self,
        metadata: &Metadata,
        builder: &mut Builder<'_, '_>,
    ) -> Result<HostId, Error> {
        let node = &metadata.node;
        let host = builder.host(&node.hostname)?;
        let os = format!("{} {} {}", node.system_name, node.release, node.version);
        builder.host_mut(host).os = builder.string(os.trim())?;
        builder.host_mut(host).machine_id = builder.string(&node.machine_id)?;
        self.process = builder.process(host, metadata.pid);
        let command = metadata.command.join(" ");
        let name = metadata
            .command
            .first()
            .map_or("", |program| program.rsplit('/').next().unwrap_or(program));
        let (command_id, name) = (builder.string(&command)?, builder.string(name)?);
        let process = builder.process_mut(self.process);
        (process.command, process.name) = (command_id, name);
        builder.metadata("command", &command)?;
        builder.metadata("rocprof.init_time", &metadata.init_time.to_string())?;
        builder.metadata("rocprof.fini_time", &metadata.fini_time.to_string())?;
        Ok(host)
    }

    pub(super) fn add_agent(
        &mut self,
        host: HostId,
        agent: &Agent,
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        if agent.kind != GPU {
            let cpu = builder.string(&agent.product_name)?;
            let host = builder.host_mut(host);
            host.cpu = cpu;
            host.cpus = host.cpus.saturating_add(agent.cpu_cores_count);
            return Ok(());
        }
        let id = builder.device(host, u64::from(agent.node_id));
        self.devices.insert(agent.id, id);
        let memory = agent.mem_banks.iter().map(|bank| bank.size_in_bytes);
        let memory = memory.fold(0, u64::saturating_add);
        let location = agent.location_id;
        let pci = format!(
            "{:04x}:{:02x}:{:02x}.{}",
            agent.domain,
            location >> 8 & 0xff,
            location >> 3 & 0x1f,
            location & 7
        );
        let (name, vendor) = (
            builder.string(&agent.product_name)?,
            builder.string(&agent.vendor_name)?,
        );
        let (architecture, pci) = (builder.string(&agent.name)?, builder.string(&pci)?);
        let shared = Bytes(agent.lds_size_in_kb.saturating_mul(1024));
        let device = builder.device_mut(id);
        device.ordinal = u32::try_from(agent.logical_node_type_id).unwrap_or(agent.node_id);
        device.name = name;
        device.vendor = vendor;
        device.architecture = architecture;
        device.pci = pci;
        device.memory = Bytes(memory);
        device.multiprocessors = agent.cu_count;
        device.warp_size = agent.wave_front_size;
        device.threads_per_multiprocessor = agent.max_waves_per_cu.saturating_mul(agent.wave_front_size);
        device.shared_per_multiprocessor = shared;
        device.shared_per_block = shared;
        device.clock_khz = agent.max_engine_clk_fcompute.saturating_mul(1000);
        device.memory_clock_khz = agent
            .mem_banks
            .first()
            .map_or(0, |bank| bank.mem_clk_max.saturating_mul(1000));
        device.copy_engines = agent.num_sdma_engines.saturating_add(agent.num_sdma_xgmi_engines);
        Ok(())
    }

    pub(super) fn add_strings(&mut self, strings: Strings) {
        self.kinds = strings.buffer_records;
        let messages = strings.marker_api.into_iter();
        self.messages = messages.map(|message| (message.key, message.value)).collect();
    }

    pub(super) fn add_kernel(
        &mut self,
        symbol: &KernelSymbol,
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        let name = symbol.kernel_name.trim_end_matches(DESCRIPTOR_SUFFIX);
        let facts = KernelFacts {
            name: builder.string(name)?,
            demangled: builder.string(&symbol.formatted_kernel_name)?,
            shared: symbol.group_segment_size,
            registers: symbol.arch_vgpr_count.saturating_add(symbol.accum_vgpr_count),
        };
        if symbol.sgpr_count > 0 {
            builder.skip("scalar register counts of kernels", 1);
        }
        if self.kernels.insert(symbol.kernel_id, facts).is_some() {
            builder.skip("kernels whose number was given out twice", 1);
        }
        Ok(())
    }

    /// Writes a record.
    pub(super) fn write(
        &self,
        rows: &Rows,
        kind: RecordKind,
        record: &BufferRecord,
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        let common = Common {
            process: self.process,
            thread: record.thread_id,
            correlation: record.correlation_id.internal,
            external: record.correlation_id.external.0,
            start: record.start_timestamp,
            end: record.end_timestamp,
        };
        let (domain, operation) = self.operation(record.kind, record.operation);
        match kind {
            RecordKind::Dispatch => {
                let queue = Queue {
                    device: self.device(record.dispatch_info.agent_id),
                    queue: record.dispatch_info.queue_id.0,
                    stream: record.stream_id.map(|stream| stream.0),
                };
                rows.kernel(&common, &queue, &self.dispatch(record, builder)?, builder)
            }
            RecordKind::Call => {
                let numbered = format!("{domain} {}", record.operation);
                let name = if operation.is_empty() {
                    &numbered
                } else {
                    operation
                };
                rows.api_call(&common, domain, name, record.operation, builder)
            }
            RecordKind::Marker => {
                let message = self.messages.get(&common.correlation);
                let name = message.map_or(operation, String::as_str);
                rows.marker(&common, name, operation, builder)
            }
            RecordKind::Copy => {
                let copied = Copied {
                    bytes: record.bytes,
                    direction: direction(operation),
                    source: self.device(record.src_agent_id),
                    destination: self.device(record.dst_agent_id),
                };
                let stream = record.stream_id.map(|stream| stream.0);
                rows.copy(&common, stream, &copied, builder)
            }
            RecordKind::Allocation | RecordKind::Scratch => {
                let device = self.device(record.agent_id);
                let allocated = Allocated {
                    operation: memory_operation(operation),
                    memory: if device.is_some() {
                        MemoryKind::DEVICE
                    } else {
                        MemoryKind::UNKNOWN
                    },
                    address: record.address.0,
                    bytes: record.allocation_size,
                    category: match kind {
                        RecordKind::Scratch => "scratch",
                        _ => "",
                    },
                };
                rows.allocation(&common, device, &allocated, builder)
            }
        }
    }

    /// Writes what counters counted during a dispatch.
    pub(super) fn write_counters(
        &self,
        rows: &Rows,
        record: &CounterRecord,
        counters: &FxHashMap<Handle, String>,
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        let data = &record.dispatch_data;
        let common = Common {
            process: self.process,
            thread: record.thread_id,
            correlation: data.correlation_id.internal,
            external: 0,
            start: data.start_timestamp,
            end: data.end_timestamp,
        };
        let device = self.device(data.dispatch_info.agent_id);
        let mut instances: FxHashMap<Handle, u32> = FxHashMap::default();
        for value in &record.records {
            let instance = instances.entry(value.counter_id).or_default();
            let numbered = format!("counter {}", value.counter_id.0);
            let name = counters.get(&value.counter_id).unwrap_or(&numbered);
            rows.counter(&common, device, name, *instance, value.value, builder)?;
            *instance += 1;
        }
        Ok(())
    }

    fn dispatch(&self, record: &BufferRecord, builder: &mut Builder<'_, '_>) -> Result<Dispatch, Error> {
        let info = &record.dispatch_info;
        let facts = match self.kernels.get(&info.kernel_id) {
            Some(facts) => *facts,
            None => KernelFacts {
                name: builder.string(&format!("kernel {}", info.kernel_id))?,
                shared: info.group_segment_size,
                ..KernelFacts::default()
            },
        };
        Ok(Dispatch {
            number: info.dispatch_id,
            name: facts.name,
            demangled: facts.demangled,
            grid: info.grid_size.array(),
            workgroup: info.workgroup_size.array(),
            shared_static: facts.shared,
            shared: info.group_segment_size,
            scratch: info.private_segment_size,
            registers: facts.registers,
        })
    }

    fn device(&self, agent: Handle) -> DeviceId {
        self.devices.get(&agent).copied().unwrap_or(DeviceId::NONE)
    }

    /// The names of a record's kind and operation.
    fn operation(&self, kind: u32, operation: u32) -> (&str, &str) {
        match self.kinds.get(kind as usize) {
            Some(names) => (
                &names.kind,
                names
                    .operations
                    .get(operation as usize)
                    .map_or("", String::as_str),
            ),
            None => ("", ""),
        }
    }
}
