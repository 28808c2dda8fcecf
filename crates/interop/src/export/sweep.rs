//! Rows of all event tables in the order of time, formatted on all cores.
//!
//! Some of what an export says of a row depends on the rows before it: which lane of its track is free, how much memory is
//! in use. The sweep therefore opens blocks in the order of their first time, a few at once on all cores; gives their rows,
//! merged by time, to one place after the other; and formats every block on all cores when all its rows have been there.
//! Open are the blocks that reach over the current moment, as in a query by time, and twice as many as there are
//! cores: memory follows how far blocks overlap, not how many there are.

use std::cmp::Reverse;
use std::ops::Range;

use rayon::prelude::*;
use tracesmith_format::tables::*;
use tracesmith_format::{
    Block, ClockId, Columns, Decoder, ProcessId, Projection, StringId, Table, Timestamp, for_each_event_table,
};
use tracesmith_trace::{AnySource, Progress, Trace};

use crate::error::Error;
use crate::export::lanes::order;
use crate::export::{ExportOptions, ExportReport, Out};

macro_rules! rows {
    ($($field:ident: $row:ident,)*) => {
        /// The rows of one block of any event table.
        pub(super) enum Rows {
            $($row(<$row as Table>::Columns),)*
        }

        impl Rows {
            fn read(decoder: &mut Decoder<'_, AnySource>, block: &Block) -> Option<Result<Self, tracesmith_format::Error>> {
                match block.header.kind {
                    $(<$row as Table>::KIND => {
                        Some(decoder.read::<$row>(block, &Projection::all()).map(Rows::$row))
                    })*
                    _ => None,
                }
            }

            /// The same with only the columns that name the process of a row.
            pub(super) fn read_processes(
                decoder: &mut Decoder<'_, AnySource>,
                block: &Block,
            ) -> Option<Result<Self, tracesmith_format::Error>> {
                match block.header.kind {
                    $(<$row as Table>::KIND => {
                        let specs = <<$row as Table>::Columns as Columns>::specs();
                        let specs = specs.iter().filter(|spec| spec.name.ends_with(".process"));
                        Some(decoder.read::<$row>(block, &Projection::of_specs(specs)).map(Rows::$row))
                    })*
                    _ => None,
                }
            }

            pub(super) fn len(&self) -> usize {
                match self {
                    $(Rows::$row(rows) => rows.len(),)*
                }
            }

            fn times(&self, row: usize) -> (Timestamp, Timestamp) {
                match self {
                    $(Rows::$row(rows) => rows.times(row),)*
                }
            }
        }
    };
}
for_each_event_table!(rows);

impl Rows {
    /// Where a row of device work ran.
    fn place(&self, row: usize) -> Option<&Place> {
        match self {
            Rows::Kernel(rows) => Some(rows.place.get(row)),
            Rows::MemoryCopy(rows) => Some(rows.place.get(row)),
            Rows::MemorySet(rows) => Some(rows.place.get(row)),
            Rows::Synchronization(rows) => Some(rows.place.get(row)),
            Rows::Allocation(rows) => Some(rows.place.get(row)),
            Rows::GraphLaunch(rows) => Some(rows.place.get(row)),
            Rows::Collective(rows) => Some(rows.place.get(row)),
            _ => None,
        }
    }

    /// When a device passed an event that was recorded without a time of its own.
    fn passed(&self, row: usize) -> (Timestamp, Timestamp) {
        match self {
            Rows::Synchronization(rows) => (rows.device_time[row], rows.device_time[row]),
            _ => (Timestamp::NONE, Timestamp::NONE),
        }
    }

    /// The process that a row belongs to; none for a counter of a device.
    pub(super) fn process(&self, row: usize) -> ProcessId {
        match self {
            Rows::ApiCall(rows) => rows.caller.get(row).process,
            Rows::HostCall(rows) => rows.caller.get(row).process,
            Rows::Marker(rows) => rows.caller.get(row).process,
            Rows::Counter(rows) => rows.track.get(row).process,
            Rows::Flow(rows) => rows.shape.get(row).process,
            _ => self.place(row).map_or(ProcessId::NONE, |place| place.process),
        }
    }

    /// Which of several rows that start together comes first: what may say something of others, then what may hold
    /// others, then what points at them.
    fn rank(&self, row: usize) -> (u8, u8) {
        match self {
            Rows::Flow(rows) if rows.shape.get(row).kind == FlowKind::EXTERNAL => (0, 0),
            Rows::Marker(_) => (1, 0),
            Rows::HostCall(_) => (1, 1),
            Rows::ApiCall(_) => (1, 2),
            Rows::GraphLaunch(_) => (1, 3),
            Rows::Synchronization(_) => (1, 4),
            Rows::Kernel(_) => (1, 5),
            Rows::MemoryCopy(_) => (1, 6),
            Rows::MemorySet(_) => (1, 7),
            Rows::Collective(_) => (2, 0),
            Rows::Allocation(_) => (2, 1),
            Rows::Counter(_) => (2, 2),
            Rows::Flow(_) => (2, 3),
        }
    }
}

/// One row that is to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    /// When it starts, on the trace's timeline.
    pub(super) start: Timestamp,
    /// When it ends; none when that is not known.
    pub(super) end: Timestamp,
    /// Its row in the block.
    pub(super) row: u32,
    /// The track that it was put on.
    pub(super) track: u32,
}

impl Item {
    /// The end that counts for what runs at once.
    pub(super) fn end_or_start(&self) -> u64 {
        self.end.0.max(self.start.0)
    }
}

/// What another row says of an item: a framework's number of it, and further values.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct External {
    /// The framework's number; 0 is none.
    pub(super) id: u64,
    /// Further values as a JSON object, or nothing.
    pub(super) rest: StringId,
}

/// One block on its way.
pub(super) struct Piece {
    /// Its rows.
    pub(super) rows: Rows,
    /// The clock of its times.
    pub(super) clock: ClockId,
    /// Rows that are written, in the order of their start.
    pub(super) items: Vec<Item>,
    /// A number that no item of another block gets; items count from it.
    pub(super) first_number: u64,
    /// For an allocation each: bytes in use afterwards.
    pub(super) levels: Vec<i64>,
    /// What other rows say of items; empty when they say nothing of any.
    pub(super) externals: Vec<External>,
    placed: usize,
    timeless: u64,
}

impl Piece {
    /// Notes what another row says of an item.
    pub(super) fn set_external(&mut self, item: usize, external: External) {
        if self.externals.is_empty() {
            self.externals.resize(self.items.len(), External::default());
        }
        self.externals[item] = external;
    }

    /// What other rows say of an item.
    pub(super) fn external(&self, item: usize) -> External {
        self.externals.get(item).copied().unwrap_or_default()
    }
}

/// Items that one core formats at a time: enough to be worth it, few enough for the text to stay in a cache.
const SHARE: usize = 4096;

/// The track of an item that is not written.
pub(super) const LEFT_OUT: u32 = u32::MAX;

/// What writes a format from a sweep.
pub(super) trait Score: Sync {
    /// Whether a row is to be written, whatever its time.
    fn wants(&self, _rows: &Rows, _row: usize) -> bool {
        true
    }
    /// Puts an item on a track, or leaves it out with [`LEFT_OUT`]. Called for one item after the other, in the order
    /// of time.
    fn place(&mut self, piece: &mut Piece, item: usize) -> u32;
    /// Text that must stand before the events of the items placed so far.
    fn take_definitions(&mut self) -> Vec<u8>;
    /// Formats some items of a block. Every event begins with a comma.
    fn write(&self, piece: &Piece, items: Range<usize>, out: &mut Vec<u8>);
}

/// Takes a trace through a score. The caller writes what stands around the events; the first one has no comma before it.
pub(super) fn sweep(
    trace: &Trace,
    options: &ExportOptions,
    score: &mut impl Score,
    out: &mut Out<'_>,
) -> Result<ExportReport, Error> {
    let mut blocks: Vec<(Timestamp, Block)> = trace
        .blocks()
        .iter()
        .filter(|block| block.header.kind.is_events())
        .map(|block| (trace.block_span(block).0, *block))
        .collect();
    blocks.sort_by_key(|(first, _)| *first);
    let mut sweep = Sweep {
        trace,
        options,
        open: Vec::new(),
        turns: Vec::new(),
        numbers: 0,
        report: ExportReport::default(),
        texts: vec![Vec::new(); rayon::current_num_threads().max(1) * 4],
        events: Events { out, first: true },
    };
    let batch = rayon::current_num_threads().max(1) * 2;
    for at in (0..blocks.len()).step_by(batch) {
        let next = at + batch;
        sweep.open(score, &blocks[at..next.min(blocks.len())]);
        let horizon = blocks.get(next).map_or(u64::MAX, |(first, _)| first.0);
        sweep.place(score, horizon);
        sweep.write(score)?;
    }
    if let Some(progress) = &options.progress {
        progress(Progress::Done);
    }
    Ok(sweep.report)
}

struct Sweep<'a, 'o> {
    trace: &'a Trace,
    options: &'a ExportOptions,
    open: Vec<Piece>,
    /// Kept for its memory.
    turns: Vec<Turn>,
    numbers: u64,
    report: ExportReport,
    /// Text of one share each.
    texts: Vec<Vec<u8>>,
    events: Events<'a, 'o>,
}

/// An item in the order in which they are placed.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    start: u64,
    class: u8,
    end: Reverse<u64>,
    rank: u8,
    piece: u32,
    item: u32,
}

impl Sweep<'_, '_> {
    fn open(&mut self, score: &impl Score, blocks: &[(Timestamp, Block)]) {
        let (trace, options) = (self.trace, self.options);
        let pieces: Vec<Option<Piece>> = blocks
            .par_iter()
            .map_init(
                || trace.decoder(),
                |decoder, (_, block)| read(trace, options, score, decoder, block),
            )
            .collect();
        for mut piece in pieces.into_iter().flatten() {
            piece.first_number = self.numbers;
            self.numbers += piece.items.len() as u64;
            self.report.without_time += piece.timeless;
            self.open.push(piece);
        }
    }

    /// Places all items that start before `horizon`, where blocks that are not open yet begin.
    fn place(&mut self, score: &mut impl Score, horizon: u64) {
        let mut turns = std::mem::take(&mut self.turns);
        for (number, piece) in self.open.iter_mut().enumerate() {
            let upto = if horizon == u64::MAX {
                piece.items.len()
            } else {
                piece.items.partition_point(|item| item.start.0 < horizon)
            };
            for at in piece.placed..upto {
                let item = &piece.items[at];
                let (class, rank) = piece.rows.rank(item.row as usize);
                turns.push(Turn {
                    start: item.start.0,
                    class,
                    end: Reverse(item.end_or_start()),
                    rank,
                    piece: number as u32,
                    item: at as u32,
                });
            }
            piece.placed = upto;
        }
        // Stable sorting finds the runs that the pieces are, and merges them.
        turns.sort();
        for turn in turns.drain(..) {
            let piece = &mut self.open[turn.piece as usize];
            let track = score.place(piece, turn.item as usize);
            piece.items[turn.item as usize].track = track;
            if track == LEFT_OUT {
                self.report.left_out += 1;
            } else {
                self.report.events += 1;
            }
        }
        self.turns = turns;
    }

    /// Writes the blocks whose items all have a track, and lets go of them.
    fn write(&mut self, score: &mut impl Score) -> Result<(), Error> {
        let (done, open) = std::mem::take(&mut self.open)
            .into_iter()
            .partition(|piece: &Piece| piece.placed == piece.items.len());
        self.open = open;
        self.events.put(&score.take_definitions())?;
        let score = &*score;
        let shares: Vec<(&Piece, Range<usize>)> = done
            .iter()
            .flat_map(|piece: &Piece| {
                let count = piece.items.len();
                let starts = (0..count).step_by(SHARE);
                starts.map(move |start| (piece, start..count.min(start + SHARE)))
            })
            .collect();
        for round in shares.chunks(self.texts.len()) {
            round
                .par_iter()
                .zip(&mut self.texts)
                .for_each(|((piece, items), text)| {
                    text.clear();
                    score.write(piece, items.clone(), text);
                });
            for text in &self.texts[..round.len()] {
                self.events.put(text)?;
            }
        }
        Ok(())
    }
}

/// The wanted rows of a block.
fn read(
    trace: &Trace,
    options: &ExportOptions,
    score: &impl Score,
    decoder: &mut Decoder<'_, AnySource>,
    block: &Block,
) -> Option<Piece> {
    options.note(block);
    let rows = Rows::read(decoder, block)?
        .map_err(|error| trace.note_damage(block, error))
        .ok()?; // the error is in the trace's health now
    let mut items = Vec::with_capacity(rows.len());
    let mut timeless = 0;
    let convert = |time| trace.clock_map.convert(block.header.clock, time).time;
    for row in 0..rows.len() {
        if !score.wants(&rows, row) {
            continue;
        }
        let (start, end) = match rows.times(row) {
            (Timestamp::NONE, _) => rows.passed(row),
            times => times,
        };
        let (start, end) = (convert(start), convert(end));
        let wanted = match rows.place(row) {
            Some(place) => options.wants(start, end, place),
            None => options.wants_time(start, end),
        };
        if !start.is_some() {
            timeless += 1;
        } else if wanted {
            let end = if end < start { Timestamp::NONE } else { end };
            items.push(Item {
                start,
                end,
                row: row as u32,
                track: LEFT_OUT,
            });
        }
    }
    items.sort_by_key(|item| order(item.start.0, item.end_or_start()));
    Some(Piece {
        rows,
        clock: block.header.clock,
        items,
        first_number: 0,
        levels: Vec::new(),
        externals: Vec::new(),
        placed: 0,
        timeless,
    })
}

/// The list of events: all but the first have a comma before them.
struct Events<'a, 'o> {
    out: &'a mut Out<'o>,
    first: bool,
}

impl Events<'_, '_> {
    fn put(&mut self, text: &[u8]) -> Result<(), Error> {
        let text = match text {
            [b',', rest @ ..] if self.first => rest,
            text => text,
        };
        self.first &= text.is_empty();
        self.out.put(text)
    }
}
