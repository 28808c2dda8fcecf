//! Allocated memory over time.

use arrow_array::ArrayRef;

use super::{TextColumn, View, u32s, u64s};
use crate::analysis::MemoryReport;
use crate::error::Error;
use crate::model::trace::Trace;
use crate::reconstruct::Window;
use crate::selection::Selected;
use crate::tables::catalog::ColumnKind::{Text, U32, U64};

pub(super) const VIEW: View = View {
    name: "memory",
    doc: "Allocated bytes over time, for each process, device, kind of memory and allocator: a row whenever the amount changes.",
    columns: &[
        ("time", U64, Some("ns"), "The time from which `bytes` is valid."),
        ("process", U32, None, "The process: `processes.id`."),
        (
            "device",
            U32,
            None,
            "The device: `devices.id`, not the number of the GPU.",
        ),
        ("memory", Text, None, "The kind of memory."),
        ("allocator", Text, None, "The allocator, if it is known."),
        ("bytes", U64, Some("bytes"), "Bytes that are allocated."),
    ],
    make,
};

fn make(trace: &Trace) -> Result<Vec<ArrayRef>, Error> {
    let report = MemoryReport::with_points(trace, Window::default(), &Selected::default(), usize::MAX)?;
    let (mut kinds, mut allocators) = (TextColumn::default(), TextColumn::default());
    let (mut times, mut bytes) = (Vec::new(), Vec::new());
    let (mut processes, mut devices) = (Vec::new(), Vec::new());
    for pool in &report.pools {
        for point in &pool.series {
            times.push(point.time_ns);
            processes.push(pool.process);
            devices.push(pool.device);
            bytes.push(point.bytes);
            kinds.push(pool.memory);
            allocators.push(&pool.allocator);
        }
    }
    Ok(vec![
        u64s(times.into_iter()),
        u32s(processes.into_iter()),
        u32s(devices.into_iter()),
        kinds.finish()?,
        allocators.finish()?,
        u64s(bytes.into_iter()),
    ])
}
