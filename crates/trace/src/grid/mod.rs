//! The grid: rows of slices and values with levels of detail, from which a timeline of any part of a trace is drawn.
//!
//! A *track* is what a person sees as one labeled row: a stream, the calls of a thread, a counter. It has one *row* for each
//! lane. The slices of a row never overlap, and all rows together have every event exactly once. At *level* L time is
//! divided into *cells* of `2^L` nanoseconds, counted from the first moment of the trace. Coarse levels are made once and
//! kept in the form in which they are sent. Finer ones are counted from the slices when they are needed: there are few
//! slices in so short a time. An [`Overview`](crate::overview::Overview) reads the file for each picture; a grid keeps
//! 16 bytes for each slice and reads nothing again.
//!
//! All times are relative to the [origin](Grid::origin), except where a function says otherwise.

mod build;
mod cell;
mod lanes;
mod levels;
mod numbering;
mod packed;
mod predicted;
mod read;
mod shapes;
mod slices;
mod track;
mod union;
mod values;

use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::model::trace::Trace;
use crate::overview::{Direction, Doubtful};
use cell::Window;
use levels::{LAST_LEVEL, Levels};
use numbering::Owner;
use shapes::Traits;
use slices::{Slice, Slices};
use union::Union;
use values::Values;

pub use build::{NamedSlice, TrackSpec};
pub use cell::{CATEGORIES, NO_SHAPE, SpanCells, UNNUMBERED_SHAPE};
pub use read::GridOptions;
pub use shapes::Shape;
pub use track::{Group, GroupKey, Track, TrackKey, TrackKind};
pub use values::ValueCells;

/// The rows of a trace with all that is needed to draw any part of them.
#[derive(Clone, Debug)]
pub struct Grid {
    trace: Arc<Trace>,
    origin: u64,
    span: u64,
    groups: Vec<Group>,
    tracks: Vec<Track>,
    shapes: Vec<Shape>,
    traits: Traits,
    rows: Vec<Arc<Row>>,
    /// What each row is of.
    owners: Vec<Owner>,
    doubtful: Doubtful,
}

/// What a row has.
#[derive(Debug)]
enum Row {
    Slices {
        slices: Arc<Slices>,
        levels: Option<Levels>,
    },
    Union {
        union: Union,
        levels: Option<Levels>,
    },
    Values(Values),
}

/// Cells of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum RowCells {
    /// Of a row that has slices, or of a device.
    Spans(SpanCells),
    /// Of a counter, or of memory.
    Values(ValueCells),
}

/// Slices of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowSlices {
    /// When each starts.
    pub starts: Vec<u64>,
    /// How long each is.
    pub durations: Vec<u64>,
    /// The place of each one's shape in the table.
    pub shapes: Vec<u32>,
    /// There are more than the limit.
    pub has_more: bool,
}

/// A slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceRef {
    /// Its row.
    pub row: u32,
    /// When it starts.
    pub start: u64,
    /// How long it is.
    pub duration: u64,
    /// The place of its shape in the table.
    pub shape: u32,
}

/// What the slices of one shape add up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapeTotal {
    /// The place of the shape in the table.
    pub shape: u32,
    /// How many slices there are.
    pub count: u64,
    /// Their time, as far as it is in the selected stretch.
    pub busy_nanos: u64,
}

impl Grid {
    /// The trace.
    pub fn trace(&self) -> &Arc<Trace> {
        &self.trace
    }

    /// The first moment of the trace, on its timeline.
    pub fn origin(&self) -> u64 {
        self.origin
    }

    /// Nanoseconds from the first to the last moment, at least 1.
    pub fn span(&self) -> u64 {
        self.span
    }

    /// The groups, in the order in which they are shown.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The tracks, in the order in which they are shown.
    pub fn tracks(&self) -> &[Track] {
        &self.tracks
    }

    /// The track of a row.
    pub fn track_of(&self, row: u32) -> Option<&Track> {
        let has_row = |track: &&Track| (track.first_row..track.first_row + track.rows).contains(&row);
        self.tracks.iter().find(has_row)
    }

    /// The number of rows.
    pub fn rows(&self) -> u32 {
        self.rows.len() as u32
    }

    /// The table of shapes.
    pub fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    /// Events that cannot be shown as they are.
    pub fn doubtful(&self) -> Doubtful {
        self.doubtful
    }

    /// Whether numbers of rows and shapes, and times, mean here what they mean in an earlier grid of the same trace:
    /// it was made [like](GridOptions::like) that one, and nothing new begins before the origin.
    pub fn continues(&self, earlier: &Grid) -> bool {
        let same = self.origin == earlier.origin && self.owners.len() >= earlier.owners.len();
        same && self.owners[..earlier.owners.len()] == earlier.owners
            && self.shapes.len() >= earlier.shapes.len()
            && self.shapes[..earlier.shapes.len()] == earlier.shapes
    }

    /// Cells of a row, from a first one on. A row that does not exist has none but empty cells. The level is 63 at most.
    pub fn cells(&self, row: u32, level: u8, first: u64, cells: usize) -> RowCells {
        let level = level.min(LAST_LEVEL);
        let category = |shape| self.traits.category(shape);
        let window = || Window::new(level, first, cells);
        let spans = match self.rows.get(row as usize).map(Arc::as_ref) {
            Some(Row::Values(values)) => return RowCells::Values(values.read(level, first, cells)),
            Some(Row::Slices { slices, levels }) => {
                let kept = levels
                    .as_ref()
                    .and_then(|levels| levels.read(level, first, cells));
                kept.unwrap_or_else(|| slices.tally_window(window(), self.origin, category).cells)
            }
            Some(Row::Union { union, levels }) => {
                let kept = levels
                    .as_ref()
                    .and_then(|levels| levels.read(level, first, cells));
                kept.unwrap_or_else(|| union.tally_window(window(), self.origin, &self.traits).cells)
            }
            None => SpanCells::empty(cells),
        };
        RowCells::Spans(spans)
    }

    /// The slices of a row that overlap a stretch of time, in order. A device has no slices of its own.
    pub fn slices(&self, row: u32, from: u64, to: u64, limit: usize) -> RowSlices {
        let mut found = RowSlices::default();
        let Some(slices) = self.slices_of(row) else {
            return found;
        };
        let (from, to) = self.on_timeline(from, to);
        for slice in slices.within(from, to) {
            if found.starts.len() == limit {
                found.has_more = true;
                break;
            }
            found.starts.push(slice.start - self.origin);
            found.durations.push(slice.end - slice.start);
            found.shapes.push(slice.shape);
        }
        found
    }

    /// The slice of a row that starts next to a moment: after it, or before it when looking back. If a shape is given, the
    /// nearest one of that shape.
    pub fn neighbor(
        &self,
        row: u32,
        time: u64,
        direction: Direction,
        shape: Option<u32>,
    ) -> Option<SliceRef> {
        let moment = time.saturating_add(self.origin);
        let found = self.slices_of(row)?.neighbor(moment, direction, shape)?;
        Some(SliceRef {
            row,
            start: found.start - self.origin,
            duration: found.end - found.start,
            shape: found.shape,
        })
    }

    /// What the slices of some rows add up to in a stretch of time, the most time first. The row of a device stands for
    /// those of its streams. A row counts once.
    pub fn totals(&self, rows: &[u32], from: u64, to: u64) -> Vec<ShapeTotal> {
        let mut seen = FxHashSet::default();
        let mut wanted: Vec<&Arc<Slices>> = Vec::new();
        for row in rows.iter().filter_map(|row| self.rows.get(*row as usize)) {
            let of_row = match row.as_ref() {
                Row::Slices { slices, .. } => std::slice::from_ref(slices),
                Row::Union { union, .. } => &union.rows,
                Row::Values(_) => &[],
            };
            wanted.extend(of_row.iter().filter(|slices| seen.insert(Arc::as_ptr(slices))));
        }
        let (from, to) = self.on_timeline(from, to);
        let add = |mut sums: FxHashMap<u32, (u64, u64)>, slice: Slice| {
            let sum = sums.entry(slice.shape).or_default();
            sum.0 += 1;
            sum.1 = sum.1.saturating_add(slice.end.min(to) - slice.start.max(from));
            sums
        };
        let sums = wanted
            .par_iter()
            .map(|slices| slices.within(from, to).fold(FxHashMap::default(), add))
            .reduce(FxHashMap::default, |mut sums, more| {
                for (shape, (count, busy)) in more {
                    let sum = sums.entry(shape).or_default();
                    *sum = (sum.0 + count, sum.1.saturating_add(busy));
                }
                sums
            });
        let totals = sums.into_iter().map(|(shape, (count, busy_nanos))| ShapeTotal {
            shape,
            count,
            busy_nanos,
        });
        let mut totals: Vec<ShapeTotal> = totals.collect();
        totals.sort_by_key(|total| (std::cmp::Reverse(total.busy_nanos), total.shape));
        totals
    }

    /// The memory that the grid takes, without that of the trace.
    pub fn memory_bytes(&self) -> usize {
        let rows: usize = self.rows.iter().map(|row| row.bytes()).sum();
        let shapes = self.shapes.iter();
        let names: usize = shapes
            .map(|shape| size_of::<Shape>() + shape.name.capacity() + shape.short_name.capacity())
            .sum();
        rows + names + self.traits.bytes() + self.tracks.capacity() * size_of::<Track>()
    }

    fn slices_of(&self, row: u32) -> Option<&Slices> {
        match self.rows.get(row as usize)?.as_ref() {
            Row::Slices { slices, .. } => Some(slices),
            Row::Union { .. } | Row::Values(_) => None,
        }
    }

    fn on_timeline(&self, from: u64, to: u64) -> (u64, u64) {
        (from.saturating_add(self.origin), to.saturating_add(self.origin))
    }
}

impl Row {
    fn bytes(&self) -> usize {
        let of_levels = |levels: &Option<Levels>| levels.as_ref().map_or(0, Levels::bytes);
        let own = match self {
            Self::Slices { slices, levels } => slices.bytes() + of_levels(levels),
            Self::Union { union, levels } => union.bytes() + of_levels(levels),
            Self::Values(values) => values.bytes(),
        };
        size_of::<Self>() + own
    }
}
