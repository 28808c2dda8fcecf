//! The parts of rocprofv3's JSON that are read. What is not named here is passed over; what is missing is 0 or empty.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, Visitor};

/// A number that versions write as itself, as `{"handle": 7}`, or as text in hexadecimal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Handle(pub(super) u64);

impl<'de> Deserialize<'de> for Handle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HandleVisitor)
    }
}

struct HandleVisitor;

impl<'de> Visitor<'de> for HandleVisitor {
    type Value = Handle;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a handle")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Handle, E> {
        Ok(Handle(number))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Handle, E> {
        let number = match text.strip_prefix("0x") {
            Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16),
            None => text.parse(),
        };
        number
            .map(Handle)
            .map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Handle, A::Error> {
        let mut handle = Handle::default();
        while let Some(key) = map.next_key::<String>()? {
            if key == "handle" || key == "value" {
                handle = map.next_value()?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(handle)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Metadata {
    pub(super) node: Node,
    pub(super) pid: u32,
    pub(super) init_time: u64,
    pub(super) fini_time: u64,
    pub(super) command: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Node {
    pub(super) machine_id: String,
    pub(super) system_name: String,
    pub(super) hostname: String,
    pub(super) release: String,
    pub(super) version: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Agent {
    pub(super) id: Handle,
    /// 1 for a processor, 2 for a GPU.
    #[serde(rename = "type")]
    pub(super) kind: u32,
    pub(super) name: String,
    pub(super) vendor_name: String,
    pub(super) product_name: String,
    pub(super) node_id: u32,
    pub(super) logical_node_type_id: i64,
    pub(super) cpu_cores_count: u32,
    pub(super) cu_count: u32,
    pub(super) wave_front_size: u32,
    pub(super) max_waves_per_cu: u32,
    pub(super) lds_size_in_kb: u64,
    pub(super) max_engine_clk_fcompute: u32,
    pub(super) num_sdma_engines: u32,
    pub(super) num_sdma_xgmi_engines: u32,
    pub(super) location_id: u32,
    pub(super) domain: u32,
    pub(super) mem_banks: Vec<MemoryBank>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct MemoryBank {
    pub(super) size_in_bytes: u64,
    pub(super) mem_clk_max: u32,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Strings {
    pub(super) buffer_records: Vec<KindNames>,
    pub(super) marker_api: Vec<Message>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct KindNames {
    pub(super) kind: String,
    pub(super) operations: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    pub(super) key: u64,
    pub(super) value: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CounterInfo {
    pub(super) id: Handle,
    pub(super) name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct KernelSymbol {
    pub(super) kernel_id: u64,
    pub(super) kernel_name: String,
    pub(super) formatted_kernel_name: String,
    pub(super) group_segment_size: u64,
    pub(super) sgpr_count: u64,
    pub(super) arch_vgpr_count: u64,
    pub(super) accum_vgpr_count: u64,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct Correlation {
    pub(super) internal: u64,
    pub(super) external: Handle,
}

/// Any record of a buffer: which of the fields there are depends on its kind.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct BufferRecord {
    pub(super) kind: u32,
    pub(super) operation: u32,
    pub(super) thread_id: u64,
    pub(super) correlation_id: Correlation,
    pub(super) start_timestamp: u64,
    pub(super) end_timestamp: u64,
    pub(super) stream_id: Option<Handle>,
    pub(super) agent_id: Handle,
    pub(super) src_agent_id: Handle,
    pub(super) dst_agent_id: Handle,
    pub(super) bytes: u64,
    pub(super) address: Handle,
    pub(super) allocation_size: u64,
    pub(super) dispatch_info: DispatchInfo,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct DispatchInfo {
    pub(super) agent_id: Handle,
    pub(super) queue_id: Handle,
    pub(super) kernel_id: u64,
    pub(super) dispatch_id: u64,
    pub(super) private_segment_size: u64,
    pub(super) group_segment_size: u64,
    pub(super) workgroup_size: Dimensions,
    pub(super) grid_size: Dimensions,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct Dimensions {
    pub(super) x: u64,
    pub(super) y: u64,
    pub(super) z: u64,
}

impl Dimensions {
    pub(super) fn array(self) -> [u64; 3] {
        [self.x, self.y, self.z]
    }
}

/// What counters counted during one dispatch.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CounterRecord {
    pub(super) thread_id: u64,
    pub(super) dispatch_data: DispatchData,
    pub(super) records: Vec<CounterValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct DispatchData {
    pub(super) correlation_id: Correlation,
    pub(super) start_timestamp: u64,
    pub(super) end_timestamp: u64,
    pub(super) dispatch_info: DispatchInfo,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CounterValue {
    pub(super) counter_id: Handle,
    pub(super) value: f64,
}
