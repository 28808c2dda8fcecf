//! Reading rows of a table.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, SchemaRef};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tracesmith_format::{Block, ColumnSpec, Projection};

use super::array::{self, Context, Texts};
use super::catalog::{ID_COLUMN, TableInfo, catalog};
use super::derived::Derived;
use super::filter::{Condition, Filter, KnownTexts, narrow, narrow_range};
use super::stored::{Rows, STORED, Stored};
use super::views::{VIEWS, View};
use crate::error::Error;
use crate::model::table::Kept;
use crate::model::trace::Trace;
use crate::query::{Progress, ProgressFn};

/// Which part of a table to read.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Scan {
    /// These columns, in this order; all of them without this.
    pub columns: Option<Vec<String>>,
    /// Only rows that do not end before this time, on the trace's timeline. Rows without a time are left out.
    pub from: Option<u64>,
    /// Only rows that start before this time. Rows without a time are left out.
    pub to: Option<u64>,
    /// Only rows that meet all of these.
    pub filters: Vec<Filter>,
    /// Called with every block that was read.
    #[serde(skip)]
    pub progress: Option<ProgressFn>,
    /// Ends the scan with [`Error::Cancelled`] once it is set.
    #[serde(skip)]
    pub cancel: Cancel,
    /// How many blocks to read at first, for a reader that may need only the first rows. Each time more blocks are needed,
    /// it is twice as many. Without this, all cores read ahead.
    #[serde(skip)]
    pub first_blocks: Option<NonZeroUsize>,
}

/// A switch that ends a scan, from any thread.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Ends all scans that have this switch.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether they are to end.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Scan {
    /// All rows, with some columns.
    pub fn columns<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Scan {
            columns: Some(names.into_iter().map(Into::into).collect()),
            ..Scan::default()
        }
    }

    /// The same with one more condition.
    #[must_use]
    pub fn with(mut self, column: impl Into<String>, condition: Condition) -> Self {
        self.filters.push(Filter {
            column: column.into(),
            condition,
        });
        self
    }

    /// The same between two times.
    #[must_use]
    pub fn between(mut self, from: Option<u64>, to: Option<u64>) -> Self {
        (self.from, self.to) = (from, to);
        self
    }
}

impl std::fmt::Debug for Scan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scan")
            .field("columns", &self.columns)
            .field("from", &self.from)
            .field("to", &self.to)
            .field("filters", &self.filters)
            .finish_non_exhaustive()
    }
}

/// A table of an open trace.
#[derive(Clone)]
pub struct Table {
    trace: Arc<Trace>,
    info: &'static TableInfo,
    source: Source,
}

#[derive(Clone, Copy)]
enum Source {
    Stored(&'static Stored),
    View(&'static View),
}

impl Trace {
    /// The table or view of this name.
    pub fn table(self: &Arc<Self>, name: &str) -> Result<Table, Error> {
        let stored = || STORED.iter().find(|table| table.name == name).map(Source::Stored);
        let view = || VIEWS.iter().find(|view| view.name == name).map(Source::View);
        let info = catalog().iter().find(|table| table.name == name);
        match (info, stored().or_else(view)) {
            (Some(info), Some(source)) => Ok(Table {
                trace: Arc::clone(self),
                info,
                source,
            }),
            _ => Err(Error::NoSuchTable {
                name: name.to_owned(),
            }),
        }
    }

    /// The texts that dictionaries of all batches share.
    pub(super) fn texts(&self) -> Result<&Texts, Error> {
        let made = self.text_array.get_or_init(|| Texts::of(&self.strings));
        made.as_ref().ok_or(Error::TooLarge {
            what: "bytes of text",
        })
    }
}

impl Table {
    /// Its name, columns and what they mean.
    pub fn info(&self) -> &'static TableInfo {
        self.info
    }

    /// Its rows, or how many there are at most: of a stored table this is known without reading.
    pub fn row_limit(&self) -> Option<u64> {
        match self.source {
            Source::Stored(stored) => Some(
                self.blocks_of(stored)
                    .map(|block| u64::from(block.header.rows))
                    .sum(),
            ),
            Source::View(_) => None,
        }
    }

    /// Reads the selected rows, batch by batch.
    pub fn scan(&self, scan: &Scan) -> Result<Batches, Error> {
        let plan = Plan::new(self.info, scan)?;
        let mut batches = Batches {
            trace: Arc::clone(&self.trace),
            source: self.source,
            schema: Arc::new(self.info.schema(&plan.wanted)),
            plan: Arc::new(plan),
            blocks: VecDeque::new(),
            ready: VecDeque::new(),
            ahead: scan.first_blocks.map_or(usize::MAX, NonZeroUsize::get),
            failed: false,
        };
        match self.source {
            Source::Stored(stored) => match (stored.current)(&self.trace, &batches.plan.projection(stored)) {
                Some(rows) => {
                    let batch = batches.batch_of(stored, None, rows)?;
                    batches.ready.extend(batch);
                }
                None => {
                    let blocks = self
                        .blocks_of(stored)
                        .filter(|block| batches.may_match(stored, block));
                    batches.blocks = blocks.copied().collect();
                }
            },
            Source::View(view) => {
                let columns = view.columns_of(&self.trace)?;
                let batch = batches.batch(&columns.arrays, columns.rows)?;
                batches.ready.extend(batch);
            }
        }
        Ok(batches)
    }

    /// Reads all selected rows at once. Fails rather than take more memory than a recorded trace of this size can need.
    pub fn read(&self, scan: &Scan) -> Result<Vec<RecordBatch>, Error> {
        let mut batches = self.scan(scan)?;
        let row_bytes = 16 * batches.plan.needed.len().max(1);
        let rows = batches
            .blocks
            .iter()
            .map(|block| u64::from(block.header.rows))
            .sum();
        self.trace
            .file
            .admit_rows(self.info.name, &[Kept::new(rows, row_bytes)])?;
        let blocks: Vec<Block> = batches.blocks.drain(..).collect();
        let mut all: Vec<RecordBatch> = batches.ready.drain(..).collect();
        all.extend(batches.read_blocks(&blocks)?);
        Ok(all)
    }

    fn blocks_of(&self, stored: &'static Stored) -> impl Iterator<Item = &Block> {
        let blocks = self.trace.blocks().iter();
        blocks.filter(move |block| block.header.kind == stored.kind)
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table")
            .field("name", &self.info.name)
            .finish_non_exhaustive()
    }
}

/// What a scan needs, by positions in the catalog's list of columns.
struct Plan {
    wanted: Vec<usize>,
    /// Wanted, or looked at by a filter.
    needed: Vec<usize>,
    filters: Vec<(usize, Condition)>,
    known: Vec<KnownTexts>,
    times: Option<(usize, usize)>,
    scan: Scan,
}

impl Plan {
    fn new(info: &'static TableInfo, scan: &Scan) -> Result<Self, Error> {
        let position = |name: &String| {
            info.position(name).ok_or_else(|| Error::NoSuchColumn {
                table: info.name,
                column: name.clone(),
            })
        };
        let wanted: Vec<usize> = match &scan.columns {
            Some(names) => names.iter().map(position).collect::<Result<_, _>>()?,
            None => (0..info.columns.len()).collect(),
        };
        let filters: Vec<(usize, Condition)> = scan
            .filters
            .iter()
            .map(|filter| Ok((position(&filter.column)?, filter.condition.clone())))
            .collect::<Result<_, Error>>()?;
        let times = info
            .position("start")
            .map(|start| (start, info.position("end").unwrap_or(start)));
        let times = times.or_else(|| info.position("time").map(|time| (time, time)));
        let has_range = scan.from.is_some() || scan.to.is_some();
        let mut needed = wanted.clone();
        needed.extend(filters.iter().map(|(position, _)| *position));
        needed.extend(
            times
                .filter(|_| has_range)
                .into_iter()
                .flat_map(|(start, end)| [start, end]),
        );
        needed.sort_unstable();
        needed.dedup();
        Ok(Plan {
            wanted,
            needed,
            known: filters.iter().map(|_| KnownTexts::new()).collect(),
            filters,
            times: times.filter(|_| has_range),
            scan: scan.clone(),
        })
    }

    fn is_needed(&self, position: usize) -> bool {
        self.needed.binary_search(&position).is_ok()
    }

    /// The derived columns that are needed, with their positions.
    fn derived(&self, stored: &'static Stored) -> impl Iterator<Item = (usize, Derived)> {
        let derived = stored.derived.iter().copied();
        let positions = stored.columns.len()..;
        positions
            .zip(derived)
            .filter(|(position, _)| self.is_needed(*position))
    }

    /// The stored columns that are needed, also by derived ones.
    fn stored_positions(&self, stored: &'static Stored) -> Vec<usize> {
        let mut positions: Vec<usize> = self
            .needed
            .iter()
            .copied()
            .filter(|position| *position < stored.columns.len())
            .collect();
        positions.extend(self.derived(stored).flat_map(|(_, derived)| derived.inputs()));
        positions.sort_unstable();
        positions.dedup();
        positions
    }

    fn projection(&self, stored: &'static Stored) -> Projection {
        let specs = self.stored_positions(stored).into_iter();
        let specs: Vec<&ColumnSpec> = specs.map(|position| &stored.columns[position].spec).collect();
        Projection::of_specs(specs.into_iter().filter(|spec| spec.id != ID_COLUMN))
    }
}

/// The batches of a scan. Blocks are read ahead on all cores.
pub struct Batches {
    trace: Arc<Trace>,
    source: Source,
    schema: SchemaRef,
    plan: Arc<Plan>,
    blocks: VecDeque<Block>,
    ready: VecDeque<RecordBatch>,
    /// How many blocks to read next, at most.
    ahead: usize,
    failed: bool,
}

impl Batches {
    /// The schema of all batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Whether a block can have a row that the scan selects.
    fn may_match(&self, stored: &'static Stored, block: &Block) -> bool {
        if !stored.kind.is_events() {
            return true;
        }
        let plan = &self.plan;
        let (first, last) = self.trace.block_span(block);
        let scan = &plan.scan;
        let in_range = scan.from.is_none_or(|from| last.0 >= from) && scan.to.is_none_or(|to| first.0 < to);
        let has_range = scan.from.is_some() || scan.to.is_some();
        if has_range && !(last.is_some() && in_range) {
            return false;
        }
        // All starts of the block are within its span.
        let start = stored.times.map(|(start, _)| start);
        let of_start = plan
            .filters
            .iter()
            .filter(|(position, _)| Some(*position) == start);
        of_start
            .map(|(_, condition)| condition.bounds())
            .all(|(least, most)| i128::from(last.0) >= least && i128::from(first.0) <= most)
    }

    /// Reads blocks on all cores, in order. A block that cannot be read is left out, and the trace's health reports it.
    fn read_blocks(&self, blocks: &[Block]) -> Result<Vec<RecordBatch>, Error> {
        let Source::Stored(stored) = self.source else {
            return Ok(Vec::new());
        };
        let projection = self.plan.projection(stored);
        let read: Vec<Option<RecordBatch>> = blocks
            .par_iter()
            .map_init(
                || self.trace.decoder(),
                |decoder, block| {
                    if self.plan.scan.cancel.is_cancelled() {
                        return Err(Error::Cancelled);
                    }
                    let rows = (stored.read)(decoder, block, &projection);
                    if let Some(progress) = &self.plan.scan.progress {
                        progress(Progress::Read(block.header.total_length()));
                    }
                    match rows {
                        Ok(rows) => self.batch_of(stored, Some(block), rows),
                        Err(error) => {
                            self.trace.note_damage(block, error);
                            Ok(None)
                        }
                    }
                },
            )
            .collect::<Result<_, _>>()?;
        Ok(read.into_iter().flatten().collect())
    }

    /// The selected rows of a block; `None` if there are none.
    fn batch_of(
        &self,
        stored: &'static Stored,
        block: Option<&Block>,
        rows: Rows,
    ) -> Result<Option<RecordBatch>, Error> {
        let context = Context {
            texts: self.trace.texts()?,
            clocks: &self.trace.clock_map,
            clock: block.map(|block| block.header.clock).unwrap_or_default(),
        };
        let count = rows.count;
        let mut arrays: Vec<Option<ArrayRef>> = vec![None; stored.columns.len() + stored.derived.len()];
        for (id, column) in rows.columns {
            let position = stored.columns.iter().position(|column| column.spec.id == id);
            if let Some(position) = position {
                let spec = &stored.columns[position].spec;
                arrays[position] = Some(array::array(&context, spec, column).map_err(arrow)?);
            }
        }
        for (position, derived) in self.plan.derived(stored) {
            if let [Some(first), Some(second)] = derived.inputs().map(|input| arrays[input].as_ref()) {
                let made = derived.array([first, second], context.texts).map_err(arrow)?;
                arrays[position] = Some(made);
            }
        }
        self.batch(&arrays, count)
    }

    /// The selected rows and columns of some arrays, which stand at their positions in the catalog.
    fn batch(&self, arrays: &[Option<ArrayRef>], count: usize) -> Result<Option<RecordBatch>, Error> {
        let kept = self.kept_rows(arrays, count)?;
        let rows = kept.as_ref().map_or(count, Vec::len);
        if rows == 0 {
            return Ok(None);
        }
        let column = |position: &usize| {
            let array = arrays[*position]
                .as_ref()
                .ok_or_else(|| ArrowError::ComputeError(format!("column {position} was not read")))?;
            match &kept {
                Some(kept) => array::take(array, kept),
                None => Ok(Arc::clone(array)),
            }
        };
        let columns = self.plan.wanted.iter().map(column).collect::<Result<Vec<_>, _>>();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns.map_err(arrow)?, &options)
            .map(Some)
            .map_err(arrow)
    }

    /// The selected rows, unless all are.
    fn kept_rows(&self, arrays: &[Option<ArrayRef>], count: usize) -> Result<Option<Vec<u32>>, Error> {
        let plan = &self.plan;
        if plan.filters.is_empty() && plan.times.is_none() {
            return Ok(None);
        }
        let mut kept = vec![true; count];
        for ((position, condition), known) in plan.filters.iter().zip(&plan.known) {
            if let Some(array) = &arrays[*position] {
                narrow(array, condition, known, &mut kept).map_err(arrow)?;
            }
        }
        if let Some((start, end)) = plan.times
            && let (Some(start), Some(end)) = (&arrays[start], &arrays[end])
        {
            narrow_range(start, end, plan.scan.from, plan.scan.to, &mut kept);
        }
        if kept.iter().all(|kept| *kept) {
            return Ok(None);
        }
        let rows = kept.iter().zip(0..);
        Ok(Some(rows.filter_map(|(kept, row)| kept.then_some(row)).collect()))
    }
}

fn arrow(error: ArrowError) -> Error {
    Error::Arrow(error.to_string())
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && !self.blocks.is_empty() && !self.failed {
            let ahead = (rayon::current_num_threads() * 2)
                .min(self.ahead)
                .min(self.blocks.len());
            self.ahead = self.ahead.saturating_mul(2);
            let blocks: Vec<Block> = self.blocks.drain(..ahead).collect();
            match self.read_blocks(&blocks) {
                Ok(batches) => self.ready.extend(batches),
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
        self.ready.pop_front().map(Ok)
    }
}

impl std::fmt::Debug for Batches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batches")
            .field("blocks", &self.blocks.len())
            .finish_non_exhaustive()
    }
}
