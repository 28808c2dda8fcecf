//! Going from event to event: the next or the previous one of a row, or of the whole picture.
//!
//! A picture of the whole trace says in which stretch of time there is something to find, so that only the blocks of that
//! stretch are read.

use rustc_hash::FxHashMap;
use tracesmith_format::schema;
use tracesmith_format::{Block, BlockKind, Meaning, StringId, Timestamp, Value};

use super::cells::{Overview, OverviewRow};
use super::nesting::OpenRows;
use super::pieces::Pieces;
use super::scan::{self, TimedBlock};
use super::{ActivityKind, Nesting, RowKey, TimeSpan};
use crate::model::event::{Event, EventColumns, EventName, read_events};
use crate::model::trace::Trace;
use crate::query::Query;

/// Where an event stands in the order of starts; equal ones by their place in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// When it started, on the trace's timeline.
    pub start: Timestamp,
    block: u64,
    row: usize,
}

impl Position {
    /// That of a row of a block.
    pub(super) fn of_row(start: Timestamp, block: &Block, row: usize) -> Self {
        Position {
            start,
            block: block.offset,
            row,
        }
    }

    /// Before all that starts at a moment.
    pub fn before(start: Timestamp) -> Self {
        Position {
            start,
            block: 0,
            row: 0,
        }
    }

    /// Behind all that starts at a moment.
    pub fn behind(start: Timestamp) -> Self {
        Position {
            start,
            block: u64::MAX,
            row: usize::MAX,
        }
    }
}

/// Which way to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To later events.
    Forward,
    /// To earlier ones.
    Back,
}

impl Direction {
    /// Whether one position comes before another on the way.
    pub(super) fn is_nearer(self, one: Position, other: Position) -> bool {
        match self {
            Self::Forward => one < other,
            Self::Back => one > other,
        }
    }
}

/// An event that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Picked {
    /// Where it stands.
    pub position: Position,
    /// The row that it is in.
    pub key: RowKey,
    /// The event, its times on the trace's timeline.
    pub event: Event,
    /// What else is worth a glance.
    pub detail: String,
    /// Every column of its table by name, with its value as stored.
    pub fields: Vec<(String, String)>,
}

impl Overview {
    /// The event next to a position, of one row or of all. The picture has to be of the whole of what the query finds.
    pub fn seek(
        &self,
        trace: &Trace,
        query: &Query,
        key: Option<RowKey>,
        from: Position,
        direction: Direction,
    ) -> Option<Picked> {
        let rows: Vec<&OverviewRow> = match key {
            Some(key) => vec![self.row(key)?],
            None => self.rows.iter().collect(),
        };
        let mut cell = self.cell_at(from.start);
        loop {
            if rows.iter().any(|row| row.starts(cell) > 0) {
                let (begin, end) = self.cell(cell);
                let last = cell + 1 == self.cells();
                let window = TimeSpan {
                    from: begin,
                    to: if last { Timestamp(u64::MAX) } else { end },
                };
                let seeker = Seeker {
                    trace,
                    query,
                    window,
                    key,
                    from,
                    direction,
                    whole: self,
                };
                if let Some(found) = seeker.nearest() {
                    return pick(trace, found);
                }
            }
            match direction {
                Direction::Forward if cell + 1 < self.cells() => cell += 1,
                Direction::Back if cell > 0 => cell -= 1,
                _ => return None,
            }
        }
    }
}

/// A piece of work with its name, for those who draw it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Named {
    /// The row that it is in.
    pub key: RowKey,
    /// What it is.
    pub activity: ActivityKind,
    /// When it started, on the trace's timeline.
    pub start: Timestamp,
    /// When it ended.
    pub end: Timestamp,
    /// Its name.
    pub name: EventName,
}

/// What lies in a window, by name, in the order of starts and the longer first; `None` when that is more than `limit`.
pub fn named_within(trace: &Trace, query: &Query, window: TimeSpan, limit: usize) -> Option<Vec<Named>> {
    let named = named_rows(trace, query, window, limit)?.into_iter();
    Some(named.map(|(named, _)| named).collect())
}

/// The same, each with the offset of its block and its row there.
fn named_rows(
    trace: &Trace,
    query: &Query,
    window: TimeSpan,
    limit: usize,
) -> Option<Vec<(Named, (u64, usize))>> {
    let mut named = Vec::new();
    let mut decoder = trace.file.reader.decoder();
    let blocks = scan::blocks(trace, query).into_iter();
    for (.., block) in blocks.filter(|(first, last, _)| *first < window.to.0 && *last >= window.from.0) {
        let Some(pieces) = scan::pieces_of(trace, query, &mut decoder, block) else {
            continue;
        };
        for row in 0..pieces.start.len() {
            let Some((key, activity)) = pieces.place(row) else {
                continue;
            };
            let convert = |time| trace.clock_map.convert(block.header.clock, time).time;
            let (start, end) = (convert(pieces.start[row]), convert(pieces.end[row]));
            if !start.is_some() || start >= window.to || end < window.from {
                continue;
            }
            if named.len() == limit {
                return None;
            }
            let one = Named {
                key,
                activity,
                start,
                end,
                name: pieces.name(row),
            };
            named.push((one, (block.offset, row)));
        }
    }
    named.sort_by_key(|(named, _)| (named.start, std::cmp::Reverse(named.end)));
    Some(named)
}

/// The same, with the rows of each level of ranges and operators. `whole` is the picture of the whole of what the query finds.
pub(super) fn named_by_depth(
    trace: &Trace,
    query: &Query,
    whole: &Overview,
    window: TimeSpan,
    limit: usize,
) -> Option<Vec<Named>> {
    let named = named_rows(trace, query, window, limit)?;
    let levels = whole.levels_within(trace, query, window);
    let with_level = |(one, row): (Named, (u64, usize))| Named {
        key: levels.get(&row).copied().unwrap_or(one.key),
        ..one
    };
    Some(named.into_iter().map(with_level).collect())
}

/// The row of the picture that ranges and operators are in, by the offset of their block and their row there.
type Levels = FxHashMap<(u64, usize), RowKey>;

impl Overview {
    /// The rows of the picture of ranges and operators that reach into a stretch of time. What is open where it begins
    /// reaches into it as well, and has the level that it has in this picture.
    fn levels_within(&self, trace: &Trace, query: &Query, window: TimeSpan) -> Levels {
        let mut spans = Vec::new();
        if self.nesting == Nesting::Together {
            return Levels::default();
        }
        // What is not searched for is within others, too.
        let query = Query {
            name: None,
            ..query.clone()
        };
        let from = self.levels_from(window);
        let mut decoder = trace.file.reader.decoder();
        let tables = [BlockKind::MARKERS, BlockKind::HOST_CALLS];
        let blocks = scan::blocks(trace, &query).into_iter();
        for (.., block) in blocks
            .filter(|(first, last, _)| *first < window.to.0 && *last >= from)
            .filter(|(.., block)| tables.contains(&block.header.kind))
        {
            let Some(pieces) = scan::pieces_of(trace, &query, &mut decoder, block) else {
                continue;
            };
            let mut line = trace.clock_map.line(block.header.clock);
            for row in 0..pieces.start.len() {
                let (start, end) = (line.convert(pieces.start[row]), line.convert(pieces.end[row]));
                let end = end.max(start);
                let is_inside = start != 0
                    && start < window.to.0
                    && end >= from
                    && query.wants_time(Timestamp(start), Timestamp(end));
                if let Some((key, _)) = pieces.place(row).filter(|_| is_inside) {
                    spans.push((start, end, (block.offset, row), key));
                }
            }
        }
        // Stable, as in the picture: equal ones in the order of the blocks.
        spans.sort_by_key(|(start, end, ..)| (*start, std::cmp::Reverse(*end)));
        let mut open = OpenRows::begin(&self.levels, from);
        let spans = spans.into_iter();
        spans
            .map(|(start, end, row, key)| (row, open.key(key, start, end)))
            .collect()
    }
}

/// Events that start in a stretch of time, of one row of the picture or of all.
struct Seeker<'a> {
    trace: &'a Trace,
    query: &'a Query,
    window: TimeSpan,
    key: Option<RowKey>,
    from: Position,
    direction: Direction,
    /// The picture of the whole.
    whole: &'a Overview,
}

impl Seeker<'_> {
    fn nearest(&self) -> Option<(Position, RowKey)> {
        let mut blocks: Vec<TimedBlock<'_>> = scan::blocks(self.trace, self.query)
            .into_iter()
            .filter(|(first, last, _)| *first < self.window.to.0 && *last >= self.window.from.0)
            .collect();
        if self.direction == Direction::Back {
            blocks.sort_by_key(|(_, last, _)| std::cmp::Reverse(*last));
        }
        let levels = self.whole.levels_within(self.trace, self.query, self.window);
        let mut best: Option<(Position, RowKey)> = None;
        let mut decoder = self.trace.file.reader.decoder();
        for (first, last, block) in blocks {
            // Nothing better can come: blocks stand in the order of what they could hold.
            if let Some((found, _)) = best
                && match self.direction {
                    Direction::Forward => first > found.start.0,
                    Direction::Back => last < found.start.0,
                }
            {
                break;
            }
            let Some(pieces) = scan::pieces_of(self.trace, self.query, &mut decoder, block) else {
                continue;
            };
            for row in 0..pieces.start.len() {
                if let Some(found) = self.row(&pieces, block, row, &levels)
                    && best.is_none_or(|(best, _)| self.direction.is_nearer(found.0, best))
                {
                    best = Some(found);
                }
            }
        }
        best
    }

    /// A row of a block, if it is wanted and lies on the right side.
    fn row(&self, pieces: &Pieces, block: &Block, row: usize, levels: &Levels) -> Option<(Position, RowKey)> {
        let (key, activity) = pieces.place(row)?;
        let key = levels.get(&(block.offset, row)).copied().unwrap_or(key);
        if !self.key.is_none_or(|wanted| is_of(key, activity, wanted)) {
            return None;
        }
        let clocks = &self.trace.clock_map;
        let start = clocks.convert(block.header.clock, pieces.start[row]).time;
        if !start.is_some() || !(self.window.from.0..self.window.to.0).contains(&start.0) {
            return None;
        }
        let position = Position::of_row(start, block, row);
        self.direction
            .is_nearer(self.from, position)
            .then_some((position, key))
    }
}

/// All that is known of a row.
pub(super) fn pick(trace: &Trace, (position, key): (Position, RowKey)) -> Option<Picked> {
    let mut blocks = trace.blocks().iter();
    let block = blocks.find(|block| block.offset == position.block)?;
    let columns = read_events(&mut trace.file.reader.decoder(), block)?
        .map_err(|error| trace.file.note(block, error))
        .ok()?; // the error is in the trace's health now
    let event = trace.on_timeline(columns.event(position.row), block);
    Some(Picked {
        position,
        key,
        event,
        detail: columns.detail(position.row, &trace.strings),
        fields: fields(trace, block, &*columns, position.row),
    })
}

/// Whether an event belongs to a row: to that of a device as well as to that of its stream.
fn is_of(key: RowKey, activity: ActivityKind, wanted: RowKey) -> bool {
    match wanted {
        RowKey::Device { device } => activity.is_work() && key.device() == Some(device),
        wanted => key == wanted,
    }
}

fn fields(trace: &Trace, block: &Block, columns: &dyn EventColumns, row: usize) -> Vec<(String, String)> {
    let tables = schema::tables();
    let specs = tables.iter().find(|(table, _)| *table == block.header.kind);
    let mut fields = Vec::new();
    columns.visit_row(row, &mut |id, value| {
        let spec = specs.and_then(|(_, specs)| specs.iter().find(|spec| spec.id == id));
        let Some(spec) = spec else { return };
        let text = match value {
            Value::Number(id) if spec.meaning == Meaning::String => {
                trace.string(StringId(u32::try_from(id).unwrap_or(0))).to_owned()
            }
            Value::Number(number) => number.to_string(),
            Value::Signed(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Flag(flag) => flag.to_string(),
            Value::Code(Some(name), _) => name.to_owned(),
            Value::Code(None, number) => number.to_string(),
            Value::Blob(length) => format!("{length} bytes"),
            _ => return,
        };
        fields.push((spec.name.clone(), text));
    });
    fields
}
