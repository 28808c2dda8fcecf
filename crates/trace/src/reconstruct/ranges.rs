//! The ranges that were open on the host when work was asked for.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{Caller, Marker, MarkerKind, MarkerShape};
use tracesmith_format::{ProcessId, Projection, StringId, ThreadId};

use super::activity::Activity;
use super::ops::{OpId, times_on};
use crate::error::Error;
use crate::model::trace::Trace;

/// Start, end and name.
type Range = (u64, u64, StringId);

/// `aten::linear, seq = 12, op_id = 30` is another range for each call: PyTorch's `emit_nvtx` adds the numbers.
pub(crate) fn without_sequence(name: &str) -> &str {
    let end = [", seq = ", ", op_id = "]
        .iter()
        .filter_map(|mark| name.find(mark))
        .min();
    &name[..end.unwrap_or(name.len())]
}

/// Reads all markers: who set them, what they are, and when they start and end.
pub(crate) fn for_each_marker(
    trace: &Trace,
    mut each: impl FnMut(&Caller, &MarkerShape, (u64, u64)),
) -> Result<(), Error> {
    let wanted = Projection::of::<Marker>(&["start", "end", "caller", "shape.name", "shape.kind"])?;
    trace.markers.stream_wanted(
        &wanted,
        |block, rows| {
            let line = trace.clock_map.line(block.header.clock);
            (times_on(line, &rows.start, &rows.end), rows)
        },
        |((start, end), rows)| {
            for row in 0..start.len() {
                each(rows.caller.get(row), rows.shape.get(row), (start[row], end[row]));
            }
        },
    );
    Ok(())
}

/// Paths of nested ranges, and the one of each call.
#[derive(Debug)]
pub struct RangePaths {
    /// Each path is its last range and the path before it; the first is that of no range.
    nodes: Vec<(u32, StringId)>,
    of_call: Vec<u32>,
}

impl RangePaths {
    /// Reads the nested ranges of all threads.
    pub fn of(trace: &Trace, activity: &Activity) -> Self {
        let mut open: FxHashMap<(ProcessId, ThreadId), Vec<Range>> = FxHashMap::default();
        for_each_marker(trace, |caller, shape, (start, end)| {
            if shape.kind == MarkerKind::NESTED_RANGE && start != 0 && end >= start {
                let ranges = open.entry((caller.process, caller.thread)).or_default();
                ranges.push((start, end, shape.name));
            }
        })
        .expect("these columns are of the table");
        let mut paths = RangePaths {
            nodes: vec![(0, StringId::NONE)],
            of_call: vec![0; activity.calls.len()],
        };
        let mut numbers: FxHashMap<(u32, StringId), u32> = FxHashMap::default();
        for thread in &activity.calls.threads {
            let Some(ranges) = open.get_mut(&(thread.process, thread.thread)) else {
                continue;
            };
            ranges.sort_by_key(|(start, end, _)| (*start, Reverse(*end)));
            let mut next = 0;
            let mut stack: Vec<(u64, u32)> = Vec::new();
            for call in thread.calls.clone() {
                let time = activity.calls.start[call];
                while let Some((start, end, name)) = ranges.get(next)
                    && *start <= time
                {
                    stack.retain(|(until, _)| *until > *start);
                    let above = stack.last().map_or(0, |(_, path)| *path);
                    let path = *numbers.entry((above, *name)).or_insert_with(|| {
                        paths.nodes.push((above, *name));
                        paths.nodes.len() as u32 - 1
                    });
                    stack.push((*end, path));
                    next += 1;
                }
                stack.retain(|(until, _)| *until > time);
                paths.of_call[call] = stack.last().map_or(0, |(_, path)| *path);
            }
        }
        paths
    }

    /// How many paths there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The path that was open when a piece of work was asked for.
    pub fn of_op(&self, activity: &Activity, op: OpId) -> usize {
        let call = activity.ops.call[op.index()];
        if call.is_some() {
            self.of_call[call.index()] as usize
        } else {
            0
        }
    }

    /// A path as text, the outermost range first.
    pub fn text(&self, trace: &Trace, path: usize) -> String {
        if path == 0 {
            return "no range".to_owned();
        }
        let mut names = Vec::new();
        let mut at = path;
        while at != 0 {
            names.push(without_sequence(trace.string(self.nodes[at].1)));
            at = self.nodes[at].0 as usize;
        }
        names.reverse();
        names.join(" / ")
    }
}
