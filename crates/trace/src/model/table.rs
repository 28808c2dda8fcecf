//! One table of a trace, block by block, each read when it is first asked for.
//!
//! Rows stay in the blocks they were stored in: nothing is copied together, several cores load different blocks at once,
//! and a question about a short time range touches only the blocks that overlap it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rayon::prelude::*;
use tracesmith_format::{
    Block, Columns as _, Damage, Decoder, Error, Problem, Projection, Reader, Source, Table,
};

use crate::model::native::AnySource;

/// An open file and the damage that was found since.
pub(crate) struct TraceFile {
    pub(crate) reader: Reader<AnySource>,
    /// By its place in the file: a walk may come upon the same damage very often.
    found_later: Mutex<BTreeMap<u64, Vec<Damage>>>,
    /// Bytes that tables which are loaded whole may still take.
    budget: AtomicU64,
}

/// What tables that are loaded whole may take: this, and so many times the file's own size. Real dictionaries unpack to
/// a few times their size; only a file made to exhaust memory goes beyond.
const BUDGET_BYTES: u64 = 64 << 20;
const BUDGET_TIMES_FILE: u64 = 64;

/// What rows of events that are kept all at once may take: this, and so many times the file's own size. A measured row
/// takes two bytes in a file at least and fewer than 150 in memory. Only constant columns, which take nothing in a
/// file, go beyond.
const KEPT_BYTES: u64 = 1 << 30;
const KEPT_TIMES_FILE: u64 = 128;

/// Rows that an analysis keeps all at once, and what each of them takes.
pub(crate) struct Kept {
    pub(crate) rows: u64,
    pub(crate) row_bytes: usize,
}

impl Kept {
    pub(crate) fn new(rows: u64, row_bytes: usize) -> Self {
        Kept { rows, row_bytes }
    }
}

impl TraceFile {
    pub(crate) fn new(reader: Reader<AnySource>) -> Self {
        let budget = BUDGET_BYTES.saturating_add(reader.source().length().saturating_mul(BUDGET_TIMES_FILE));
        TraceFile {
            reader,
            found_later: Mutex::new(BTreeMap::new()),
            budget: AtomicU64::new(budget),
        }
    }

    /// Whether a block of a table that is loaded whole still fits the memory allowed for such tables.
    pub(crate) fn admit(&self, block: &Block, row_bytes: usize) -> bool {
        let header = &block.header;
        let cost = u64::from(header.unpacked_length).max(u64::from(header.rows) * row_bytes as u64);
        let fits = self
            .budget
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(cost)
            })
            .is_ok();
        if !fits {
            let problem = Problem::TooLarge {
                what: "bytes",
                claimed: cost,
                limit: self.budget.load(Ordering::Relaxed),
            };
            self.note(
                block,
                Error::Damaged {
                    damage: damage_of(block, problem),
                },
            );
        }
        fits
    }

    /// Fails when rows that are to be kept all at once would take more memory than a file of this size warrants. Block
    /// headers say how many there are, so nothing is read for it.
    pub(crate) fn admit_rows(&self, what: &'static str, kept: &[Kept]) -> Result<(), crate::Error> {
        let add = |sum: u64, kept: &Kept| sum.saturating_add(kept.rows.saturating_mul(kept.row_bytes as u64));
        let needed_bytes = kept.iter().fold(0, add);
        let file_bytes = self.reader.source().length();
        let limit = KEPT_BYTES.saturating_add(file_bytes.saturating_mul(KEPT_TIMES_FILE));
        if needed_bytes <= limit {
            return Ok(());
        }
        Err(crate::Error::TooManyRows {
            what,
            rows: kept
                .iter()
                .fold(0, |sum: u64, kept| sum.saturating_add(kept.rows)),
            needed_bytes,
            file_bytes,
        })
    }

    /// Notes a block that could not be read. A read error of the operating system counts as damage too: the trace
    /// goes on without the block, and health says so.
    pub(crate) fn note(&self, block: &Block, error: Error) {
        let damage = match error {
            Error::Damaged { damage } => damage,
            _ => damage_of(block, Problem::Unreadable),
        };
        let mut found = self.found_later.lock().unwrap_or_else(PoisonError::into_inner);
        let of_place = found.entry(damage.offset).or_default();
        if !of_place.contains(&damage) {
            of_place.push(damage);
        }
    }

    /// All damage found so far, in file order.
    pub(crate) fn damage(&self) -> Vec<Damage> {
        let mut damage = self.reader.damage().to_vec();
        damage.extend(
            self.found_later
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .values()
                .flatten()
                .cloned(),
        );
        damage.sort_by_key(|damage| damage.offset);
        damage
    }
}

fn damage_of(block: &Block, problem: Problem) -> Damage {
    Damage {
        offset: block.offset,
        length: block.header.total_length(),
        rows: block.header.rows,
        kind: Some(block.header.kind),
        sequence: Some(block.header.sequence),
        problem,
    }
}

/// One table of a trace.
pub struct TableView<T: Table> {
    file: Arc<TraceFile>,
    chunks: Vec<Chunk<T>>,
}

struct Chunk<T: Table> {
    block: Block,
    columns: OnceLock<Option<T::Columns>>,
}

impl<T: Table> TableView<T> {
    pub(crate) fn new(file: &Arc<TraceFile>) -> Self {
        let chunks = file
            .reader
            .blocks()
            .iter()
            .filter(|block| block.header.kind == T::KIND)
            .map(|block| Chunk {
                block: *block,
                columns: OnceLock::new(),
            })
            .collect();
        TableView {
            file: Arc::clone(file),
            chunks,
        }
    }

    /// Number of rows, from the block headers alone.
    pub fn rows(&self) -> u64 {
        self.chunks
            .iter()
            .map(|chunk| u64::from(chunk.block.header.rows))
            .sum()
    }

    /// The blocks of the table.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = &Block> {
        self.chunks.iter().map(|chunk| &chunk.block)
    }

    /// Reads all blocks that are not read yet, on all cores.
    pub fn load(&self) {
        self.chunks.par_iter().for_each_init(
            || self.file.reader.decoder(),
            |decoder, chunk| {
                self.read(decoder, chunk);
            },
        );
    }

    /// The rows block by block, each read now unless it is already. A block that cannot be read is left out, and the
    /// trace's health says so.
    pub fn columns(&self) -> impl Iterator<Item = (&Block, &T::Columns)> {
        let mut decoder = self.file.reader.decoder();
        self.chunks.iter().filter_map(move |chunk| {
            let columns = self.read(&mut decoder, chunk);
            columns.map(|columns| (&chunk.block, columns))
        })
    }

    /// The rows block by block, none of them kept: for walks whose memory must not grow with the trace. A block that
    /// cannot be read is left out, and the trace's health says so.
    pub fn stream(&self) -> impl Iterator<Item = (&Block, T::Columns)> {
        let mut decoder = self.file.reader.decoder();
        self.blocks()
            .filter_map(move |block| Some((block, self.decode(&mut decoder, block)?)))
    }

    /// Like [`TableView::stream`], but on all cores: `f` makes something of each block, and `take` gets it in file
    /// order. As many blocks are in memory at once as there are cores, twice.
    pub fn stream_parallel<R: Send, E>(
        &self,
        f: impl Fn(&Block, T::Columns) -> R + Sync,
        mut take: impl FnMut(R) -> Result<(), E>,
    ) -> Result<(), E> {
        let blocks: Vec<&Block> = self.blocks().collect();
        for batch in blocks.chunks(rayon::current_num_threads().max(1) * 2) {
            let results: Vec<Option<R>> = batch
                .par_iter()
                .map_init(
                    || self.file.reader.decoder(),
                    |decoder, block| Some(f(block, self.decode(decoder, block)?)),
                )
                .collect();
            for result in results.into_iter().flatten() {
                take(result)?;
            }
        }
        Ok(())
    }

    /// Like [`TableView::stream_parallel`], with only the columns that are wanted: the others stay empty.
    pub(crate) fn stream_wanted<R: Send>(
        &self,
        wanted: &Projection,
        f: impl Fn(&Block, T::Columns) -> R + Sync,
        mut take: impl FnMut(R),
    ) {
        let blocks: Vec<&Block> = self.blocks().collect();
        for batch in blocks.chunks(rayon::current_num_threads().max(1) * 2) {
            let results: Vec<Option<R>> = batch
                .par_iter()
                .map_init(
                    || self.file.reader.decoder(),
                    |decoder, block| Some(f(block, self.decode_wanted(decoder, block, wanted)?)),
                )
                .collect();
            results.into_iter().flatten().for_each(&mut take);
        }
    }

    /// The number of the first row that is meant, looking only into blocks that may hold it.
    pub(crate) fn find_row(
        &self,
        wanted: &Projection,
        may_hold: impl Fn(&Block) -> bool,
        is_meant: impl Fn(&Block, &T::Columns, usize) -> bool,
    ) -> Option<u64> {
        let mut decoder = self.file.reader.decoder();
        let mut first = 0;
        for block in self.blocks() {
            if may_hold(block)
                && let Some(columns) = self.decode_wanted(&mut decoder, block, wanted)
                && let Some(row) = (0..columns.len()).find(|row| is_meant(block, &columns, *row))
            {
                return Some(first + row as u64);
            }
            first += u64::from(block.header.rows);
        }
        None
    }

    fn decode(&self, decoder: &mut Decoder<'_, AnySource>, block: &Block) -> Option<T::Columns> {
        self.decode_wanted(decoder, block, &Projection::all())
    }

    fn decode_wanted(
        &self,
        decoder: &mut Decoder<'_, AnySource>,
        block: &Block,
        wanted: &Projection,
    ) -> Option<T::Columns> {
        decoder
            .read::<T>(block, wanted)
            .map_err(|error| self.file.note(block, error))
            .ok() // the error is in the trace's health now
    }

    /// The chunk's rows, read now unless they are already; `None` when they cannot be.
    fn read<'c>(&self, decoder: &mut Decoder<'_, AnySource>, chunk: &'c Chunk<T>) -> Option<&'c T::Columns> {
        chunk
            .columns
            .get_or_init(|| self.decode(decoder, &chunk.block))
            .as_ref()
    }
}

impl<T: Table> std::fmt::Debug for TableView<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableView")
            .field("kind", &T::KIND)
            .field("rows", &self.rows())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::trace::Trace;
    use tracesmith_format::tables::Kernel;
    use tracesmith_format::{ClockId, Writer, WriterOptions};

    /// Issue 26: each piece of damage was compared with all others.
    #[test]
    fn damage_of_many_blocks_is_noted_once_each() {
        let mut writer = Writer::new(Vec::new(), WriterOptions::default()).expect("memory takes all");
        writer
            .push(ClockId(1), &Kernel::default())
            .expect("memory takes all");
        let trace =
            Trace::from_bytes(writer.finish().expect("memory takes all")).expect("it was just written");
        let block = trace.blocks()[0];
        // As many as a file of 64 MB can have. Compared with each other they would take hours.
        let blocks = 1_000_000;
        for _ in 0..2 {
            for offset in 0..blocks {
                let damaged = Block { offset, ..block };
                let damage = damage_of(&damaged, Problem::Unreadable);
                trace.file.note(&damaged, Error::Damaged { damage });
            }
        }
        assert_eq!(trace.file.damage().len() as u64, blocks);
    }
}
