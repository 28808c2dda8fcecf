//! Where a row is among all rows of some tables, in the order of their starts.
//!
//! Only headers of blocks are read, and the start times of those few blocks that a searched time lies in.

use std::collections::HashMap;

use pyo3::prelude::*;
use tracesmith_format::{Block, Columns, Projection, Table, for_each_event_table};

use crate::error::trace_error;
use crate::job;
use crate::trace::Trace;

/// The start of row `number` (from 0) among all rows of these tables, and how many rows start before that time. `None` if
/// there are not so many rows. Rows without a time are not counted.
#[pyfunction]
pub(crate) fn locate(
    py: Python<'_>,
    trace: &Trace,
    tables: Vec<String>,
    number: u64,
) -> PyResult<Option<(u64, u64)>> {
    let trace = std::sync::Arc::clone(&trace.trace);
    let found = job::run(py, None, move |_| {
        let mut blocks = Blocks {
            trace: &trace,
            tables,
            starts: HashMap::new(),
        };
        blocks.find(number)
    })?;
    found.map_err(|error| trace_error(&error))
}

struct Blocks<'a> {
    trace: &'a tracesmith_trace::Trace,
    tables: Vec<String>,
    /// Sorted start times of the blocks that were read, by their place.
    starts: HashMap<usize, Vec<u64>>,
}

impl Blocks<'_> {
    fn find(&mut self, number: u64) -> Result<Option<(u64, u64)>, tracesmith_trace::Error> {
        let Some((first, last)) = self.trace.span() else {
            return Ok(None);
        };
        // The first time at which more than `number` rows have started.
        let (mut low, mut high) = (first.0, last.0);
        if self.started_before(high + 1)? <= number {
            return Ok(None);
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.started_before(middle + 1)? > number {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(Some((low, self.started_before(low)?)))
    }

    fn started_before(&mut self, time: u64) -> Result<u64, tracesmith_trace::Error> {
        let mut count = 0;
        for (place, block) in self.trace.blocks().iter().enumerate() {
            if !self.is_wanted(block) {
                continue;
            }
            let (first, last) = self.trace.block_span(block);
            if first.0 >= time {
                continue;
            }
            if last.0 < time && first.is_some() {
                count += u64::from(block.header.rows);
                continue;
            }
            if !self.starts.contains_key(&place) {
                let starts = self.read(block)?;
                self.starts.insert(place, starts);
            }
            count += self.starts[&place].partition_point(|start| *start < time) as u64;
        }
        Ok(count)
    }

    fn is_wanted(&self, block: &Block) -> bool {
        macro_rules! name {
            ($($field:ident: $row:ident,)*) => {
                match block.header.kind {
                    $(<tracesmith_format::tables::$row as Table>::KIND => stringify!($field),)*
                    _ => "",
                }
            };
        }
        let name = for_each_event_table!(name);
        self.tables.iter().any(|table| table == name)
    }

    fn read(&self, block: &Block) -> Result<Vec<u64>, tracesmith_trace::Error> {
        macro_rules! read {
            ($($field:ident: $row:ident,)*) => {
                match block.header.kind {
                    $(<tracesmith_format::tables::$row as Table>::KIND =>
                        self.read_as::<tracesmith_format::tables::$row>(block),)*
                    _ => Ok(Vec::new()),
                }
            };
        }
        for_each_event_table!(read)
    }

    fn read_as<T: Table>(&self, block: &Block) -> Result<Vec<u64>, tracesmith_trace::Error> {
        let wanted = Projection::of::<T>(&["start", "end"]).or_else(|_| Projection::of::<T>(&["time"]))?;
        let columns = self.trace.decoder().read::<T>(block, &wanted)?;
        let starts = (0..columns.len()).map(|row| columns.times(row).0);
        let starts = starts.filter(|start| start.is_some());
        let convert = |start| self.trace.clock_map.convert(block.header.clock, start).time.0;
        let mut starts: Vec<u64> = starts.map(convert).collect();
        starts.sort_unstable();
        Ok(starts)
    }
}
