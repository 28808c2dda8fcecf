//! rocprofv3's CSV files: one for each kind of record, told apart by their columns, which are found by name.
//!
//! Files of one run belong together and may be given at once: their correlation ids join. Kernels and copies do not
//! name their process there; they belong to the one that the other files name.

use csv::{ByteRecord, ReaderBuilder};
use rustc_hash::FxHashMap;
use tracesmith_format::tables::MemoryKind;
use tracesmith_format::{Bytes, DeviceId, HostId, ProcessId};

use super::rows::{Allocated, Common, Copied, Dispatch, Queue, Rows, direction, memory_operation};
use crate::error::Error;
use crate::import::bounded::Bounded;
use crate::import::{Builder, ImportOptions, Input};

const UNEVEN: &str = "rows with more or fewer fields than columns";

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Kernels,
    Copies,
    Calls,
    Allocations,
    Counters,
    Agents,
    /// Totals instead of records.
    Summary,
}

/// Columns that tell the kinds apart, the most telling first.
const KINDS: [(&[&str], Kind); 7] = [
    (&["Counter_Name", "Counter_Value"], Kind::Counters),
    (
        &["Kernel_Name", "Start_Timestamp", "End_Timestamp"],
        Kind::Kernels,
    ),
    (&["Direction", "Start_Timestamp", "End_Timestamp"], Kind::Copies),
    (&["Domain", "Function", "Start_Timestamp"], Kind::Calls),
    (
        &["Kind", "Operation", "Agent_Id", "Start_Timestamp"],
        Kind::Allocations,
    ),
    (&["Node_Id", "Agent_Type", "Name"], Kind::Agents),
    (&["Name", "Calls", "TotalDurationNs"], Kind::Summary),
];

pub(super) fn sniff(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or(head);
    let mut reader = ReaderBuilder::new().has_headers(false).from_reader(line);
    let mut record = ByteRecord::new();
    let is_read = reader.read_byte_record(&mut record).is_ok_and(|found| found);
    is_read && Columns::new(&record).kind().is_some()
}

pub(super) fn read(input: &mut Input, _: &ImportOptions, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    // An opening quote without its end would take the rest of the file.
    let (bounded, allowance) = Bounded::new(input);
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(bounded);
    let mut record = ByteRecord::new();
    let mut columns: Option<(Columns, Kind)> = None;
    let mut last_is_short = false;
    let host = builder.host("")?;
    let rows = Rows::new(host, builder)?;
    while reader.read_byte_record(&mut record).map_err(error_of)? {
        allowance.renew();
        let Some((columns, kind)) = &columns else {
            columns = Some(header(&record)?);
            continue;
        };
        builder.skip(UNEVEN, u64::from(std::mem::take(&mut last_is_short)));
        if record.len() < columns.count {
            last_is_short = true;
            continue;
        }
        if record.len() > columns.count {
            builder.skip(UNEVEN, 1);
            continue;
        }
        Row {
            columns,
            record: &record,
            rows: &rows,
        }
        .write(*kind, builder)?;
    }
    if last_is_short {
        builder.cut("the last row is cut off");
    }
    Ok(())
}

fn header(record: &ByteRecord) -> Result<(Columns, Kind), Error> {
    let columns = Columns::new(record);
    let bad = |problem: &str| Error::Foreign {
        format: "rocprof",
        problem: problem.to_owned(),
        position: "line 1".to_owned(),
    };
    match columns.kind() {
        Some(Kind::Summary) => Err(bad(
            "a summary (totals by name), which has no events; import the *_trace.csv files instead",
        )),
        Some(kind) => Ok((columns, kind)),
        None => Err(bad("no columns of rocprofv3")),
    }
}

fn error_of(error: csv::Error) -> Error {
    let position = error.position().map_or(0, csv::Position::line);
    let problem = error.to_string();
    match error.into_kind() {
        csv::ErrorKind::Io(source) => Error::Read { source },
        _ => Error::Foreign {
            format: "rocprof",
            problem,
            position: format!("line {position}"),
        },
    }
}

/// Where columns are.
struct Columns {
    by_name: FxHashMap<String, usize>,
    count: usize,
}

impl Columns {
    fn new(record: &ByteRecord) -> Self {
        let names = record.iter().map(|name| {
            let name = name.strip_prefix(b"\xef\xbb\xbf").unwrap_or(name);
            String::from_utf8_lossy(name).trim().trim_matches('"').to_owned()
        });
        Columns {
            by_name: names.zip(0..).collect(),
            count: record.len(),
        }
    }

    fn kind(&self) -> Option<Kind> {
        let has_all = |names: &[&str]| names.iter().all(|name| self.by_name.contains_key(*name));
        KINDS
            .iter()
            .find(|(names, _)| has_all(names))
            .map(|(_, kind)| *kind)
    }
}

/// One row of a file.
struct Row<'r> {
    columns: &'r Columns,
    record: &'r ByteRecord,
    rows: &'r Rows,
}

impl Row<'_> {
    fn write(&self, kind: Kind, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
        let host = self.rows.host;
        let Some(common) = self.common(builder) else {
            builder.skip("rows whose numbers are none", 1);
            return Ok(());
        };
        match kind {
            Kind::Kernels => self.kernel(&common, builder),
            Kind::Copies => {
                let copied = Copied {
                    bytes: self.number("Bytes"),
                    direction: direction(&self.text("Direction")),
                    source: self.device(host, "Source_Agent_Id", builder),
                    destination: self.device(host, "Destination_Agent_Id", builder),
                };
                // The direction says which end is the host: agents are numbers without a kind here.
                let text = self.text("Direction");
                let from_host = text.contains("HOST_TO");
                let to_host = text.ends_with("TO_HOST");
                let copied = Copied {
                    source: if from_host { DeviceId::NONE } else { copied.source },
                    destination: if to_host {
                        DeviceId::NONE
                    } else {
                        copied.destination
                    },
                    ..copied
                };
                self.rows.copy(&common, self.stream(), &copied, builder)
            }
            Kind::Calls => {
                let (domain, name) = (self.text("Domain"), self.text("Function"));
                if domain.starts_with("MARKER") {
                    return self.rows.marker(&common, &name, "", builder);
                }
                self.rows.api_call(&common, &domain, &name, 0, builder)
            }
            Kind::Allocations => {
                let is_scratch = self.text("Kind").starts_with("SCRATCH");
                let device = self.device(host, "Agent_Id", builder);
                let size = if is_scratch {
                    "Alloc_Size"
                } else {
                    "Allocation_Size"
                };
                let allocated = Allocated {
                    operation: memory_operation(&self.text("Operation")),
                    memory: if is_scratch {
                        MemoryKind::DEVICE
                    } else {
                        MemoryKind::UNKNOWN
                    },
                    address: self.number("Address"),
                    bytes: self.number(size),
                    category: if is_scratch { "scratch" } else { "" },
                };
                self.rows.allocation(&common, device, &allocated, builder)
            }
            Kind::Counters => {
                let value = self.text("Counter_Value").parse::<f64>();
                let Some(value) = value.ok().filter(|value| value.is_finite()) else {
                    builder.skip("counter values that are no numbers", 1);
                    return Ok(());
                };
                let device = self.device(host, "Agent_Id", builder);
                let name = self.text("Counter_Name");
                self.rows.counter(&common, device, &name, 0, value, builder)
            }
            Kind::Agents => self.agent(builder),
            Kind::Summary => Ok(()), // refused with the header
        }
    }

    fn kernel(&self, common: &Common, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
        let axes = |name: &str| ["X", "Y", "Z"].map(|axis| self.number(&format!("{name}_{axis}")));
        let either = |new: &str, old: &str| self.number(new).max(self.number(old));
        let shared = either("LDS_Block_Size", "Group_Segment_Size");
        let name = builder.string(&self.text("Kernel_Name"))?;
        let dispatch = Dispatch {
            number: self.number("Dispatch_Id"),
            name,
            demangled: name,
            grid: axes("Grid_Size"),
            workgroup: axes("Workgroup_Size"),
            shared_static: shared,
            shared,
            scratch: either("Scratch_Size", "Private_Segment_Size"),
            registers: self
                .number("VGPR_Count")
                .saturating_add(self.number("Accum_VGPR_Count")),
        };
        if self.number("SGPR_Count") > 0 {
            builder.skip("scalar register counts of kernels", 1);
        }
        let queue = Queue {
            device: self.device(self.rows.host, "Agent_Id", builder),
            queue: self.number("Queue_Id"),
            stream: self.stream(),
        };
        self.rows.kernel(common, &queue, &dispatch, builder)
    }

    fn agent(&self, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
        let host = self.rows.host;
        let name = builder.string(&self.text("Product_Name"))?;
        if self.text("Agent_Type") != "GPU" {
            builder.host_mut(host).cpu = name;
            return Ok(());
        }
        let id = builder.device(host, self.number("Node_Id"));
        let (architecture, vendor) = (
            builder.string(&self.text("Name"))?,
            builder.string(&self.text("Vendor_Name"))?,
        );
        let narrow = |name: &str| u32::try_from(self.number(name)).unwrap_or(u32::MAX);
        let device = builder.device_mut(id);
        device.name = name;
        device.architecture = architecture;
        device.vendor = vendor;
        device.ordinal = narrow("Logical_Node_Type_Id");
        device.multiprocessors = narrow("Cu_Count");
        device.warp_size = narrow("Wave_Front_Size");
        device.shared_per_multiprocessor = Bytes(self.number("Lds_Size_In_Kb").saturating_mul(1024));
        device.clock_khz = narrow("Max_Engine_Clk_Fcompute").saturating_mul(1000);
        Ok(())
    }

    /// What all kinds have; `None` when a number that there is cannot be read.
    fn common(&self, builder: &mut Builder<'_, '_>) -> Option<Common> {
        let checked = |name: &str| match self.field(name) {
            Some(text) if !text.is_empty() => text.parse::<u64>().ok(), // the caller counts the row
            _ => Some(0),
        };
        Some(Common {
            process: self.process(builder),
            thread: checked("Thread_Id")?,
            correlation: checked("Correlation_Id")?,
            external: 0,
            start: checked("Start_Timestamp")?,
            end: checked("End_Timestamp")?,
        })
    }

    fn process(&self, builder: &mut Builder<'_, '_>) -> ProcessId {
        let host = self.rows.host;
        match u32::try_from(self.number("Process_Id")) {
            Ok(pid) if pid != 0 => builder.named_process(host, pid),
            _ => builder.unnamed_process(host),
        }
    }

    fn stream(&self) -> Option<u64> {
        self.field("Stream_Id").and_then(|text| text.parse().ok()) // without streams, queues stand for them
    }

    /// Agents are numbers, in newer versions with a word before them.
    fn device(&self, host: HostId, name: &str, builder: &mut Builder<'_, '_>) -> DeviceId {
        let text = self.text(name);
        let number = text.rsplit([' ', '_']).next().unwrap_or(&text);
        match number.parse() {
            Ok(number) => builder.device(host, number),
            Err(_) => DeviceId::NONE,
        }
    }

    /// A number; 0 when there is none.
    fn number(&self, name: &str) -> u64 {
        let text = self.field(name).unwrap_or_default();
        let number = match text.strip_prefix("0x") {
            Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16),
            None => text.parse(),
        };
        number.unwrap_or(0)
    }

    fn text(&self, name: &str) -> String {
        self.field(name).unwrap_or_default()
    }

    fn field(&self, name: &str) -> Option<String> {
        let index = *self.columns.by_name.get(name)?;
        let bytes = self.record.get(index)?;
        Some(String::from_utf8_lossy(bytes).trim().to_owned())
    }
}
