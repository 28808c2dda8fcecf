//! Reading all blocks of a trace once, on all cores, with only the columns that a timeline needs.

use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tracesmith_format::{Block, BlockKind, Decoder};

use super::Grid;
use super::packed::{Gathered, Packed, Run};
use super::shapes::{Numbers, Shape};
use super::track::TrackKey;
use crate::error::Error;
use crate::model::native::AnySource;
use crate::model::table::Kept;
use crate::model::trace::Trace;
use crate::overview::counter_scan::{self, Samples};
use crate::overview::pieces::{Pieces, RowOwner};
use crate::overview::scan;
use crate::overview::{CounterKey, Doubtful, Position, RowKey};
use crate::query::{Progress, ProgressFn, Query};
use crate::tables::Cancel;

/// How a trace is read into a grid.
#[derive(Clone, Default)]
pub struct GridOptions {
    /// Called with every block that was read.
    pub progress: Option<ProgressFn>,
    /// Ends the reading with [`Error::Cancelled`].
    pub cancel: Cancel,
    /// A grid of the same trace when its file was shorter. Its rows and shapes keep their numbers, and added tracks
    /// stay, unless something that is new begins before its origin.
    pub like: Option<Arc<Grid>>,
}

impl GridOptions {
    fn note(&self, block: &Block) -> Result<(), Error> {
        if self.cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if let Some(progress) = &self.progress {
            progress(Progress::Read(block.header.total_length()));
        }
        Ok(())
    }
}

/// All slices of a trace by track, with provisional numbers of their shapes.
pub(super) struct Read {
    pub(super) tracks: Vec<(TrackKey, Gathered)>,
    pub(super) shapes: Vec<Shape>,
    /// The place of each number in the table of shapes.
    pub(super) places: Vec<u32>,
    pub(super) doubtful: Doubtful,
}

/// Reads all slices.
pub(super) fn read_slices(trace: &Trace, options: &GridOptions) -> Result<Read, Error> {
    let query = Query::default();
    let blocks = scan::blocks(trace, &query);
    let rows = blocks
        .iter()
        .map(|(.., block)| u64::from(block.header.rows))
        .sum();
    let kept = Kept::new(rows, size_of::<Packed>());
    trace.file.admit_rows("events", &[kept])?;
    let numbers = Numbers::default();
    let parts: Vec<Option<Part>> = blocks
        .par_iter()
        .map_init(
            || trace.file.reader.decoder(),
            |decoder, (.., block)| {
                options.note(block)?;
                let pieces = scan::pieces_of(trace, &query, decoder, block);
                Ok(pieces.map(|pieces| Part::of(trace, block, &pieces, &numbers)))
            },
        )
        .collect::<Result<_, Error>>()?;

    let mut doubtful = Doubtful {
        without_time: rows_without_time(trace),
        ..Doubtful::default()
    };
    let mut known: FxHashMap<TrackKey, usize> = FxHashMap::default();
    let mut tracks: Vec<(TrackKey, Gathered)> = Vec::new();
    let mut seen = Vec::new();
    for part in parts.into_iter().flatten() {
        doubtful.add(part.doubtful);
        seen.extend(part.shapes);
        for (key, run) in part.runs {
            let number = *known.entry(key).or_insert_with_key(|key| {
                tracks.push((key.clone(), Gathered::default()));
                tracks.len() - 1
            });
            tracks[number].1.add(run);
        }
    }
    let earlier = options.like.as_ref().map_or(&[][..], |grid| grid.shapes());
    let (shapes, places) = numbers.table(trace, seen.into_iter(), earlier);
    Ok(Read {
        tracks,
        shapes,
        places,
        doubtful,
    })
}

/// Rows of blocks that have no time at all, which are not read.
fn rows_without_time(trace: &Trace) -> u64 {
    let blocks = trace.blocks().iter().map(|block| &block.header);
    let timeless =
        blocks.filter(|header| header.last_time == 0 && crate::overview::can_be_drawn(header.kind));
    timeless.map(|header| u64::from(header.rows)).sum()
}

/// What one block adds.
struct Part {
    runs: Vec<(TrackKey, Run)>,
    /// The numbers of its shapes.
    shapes: Vec<u32>,
    doubtful: Doubtful,
}

/// Places of a block that belong to no track.
const NOWHERE: u32 = u32::MAX;

impl Part {
    fn of(trace: &Trace, block: &Block, pieces: &Pieces, numbers: &Numbers) -> Self {
        let kind = block.header.kind;
        let mut keys: Vec<TrackKey> = Vec::new();
        let mut known: FxHashMap<TrackKey, u32> = FxHashMap::default();
        let mut number_of = |key: Option<RowKey>| {
            let Some(key) = key.map(|key| track_of(key, kind)) else {
                return NOWHERE;
            };
            *known.entry(key).or_insert_with_key(|key| {
                keys.push(key.clone());
                keys.len() as u32 - 1
            })
        };
        // For each place the track of what is its own, and that of waits.
        let spots: Vec<[u32; 2]> = pieces
            .spots()
            .iter()
            .map(|spot| [RowOwner::Own, RowOwner::Device].map(|whose| number_of(spot.key(whose))))
            .collect();
        let whose: Vec<usize> = pieces
            .shapes()
            .map(|(.., whose)| usize::from(whose == RowOwner::Device))
            .collect();
        // A stream and its waits share no shape.
        let shape_keys = pieces.shapes().zip(&whose).map(|((name, activity, _), whose)| {
            let track = spots.iter().find_map(|spot| keys.get(spot[*whose] as usize));
            let track = track.map_or(super::TrackKind::Stream, TrackKey::kind);
            (name, activity, track)
        });
        let shapes = numbers.of(shape_keys);

        let rows = pieces.start.len();
        let track_number = |row: usize| {
            let shape = pieces.shape_number(row);
            (spots[pieces.spot_number(row)][whose[shape]] as usize, shape)
        };
        let mut counts = vec![0; keys.len()];
        for row in 0..rows {
            if let Some(count) = counts.get_mut(track_number(row).0) {
                *count += 1;
            }
        }
        let mut runs: Vec<Run> = counts.into_iter().map(Run::with_capacity).collect();
        let mut doubtful = Doubtful::default();
        let mut line = trace.clock_map.line(block.header.clock);
        for row in 0..rows {
            let (number, shape) = track_number(row);
            let Some(run) = runs.get_mut(number) else { continue };
            let [start, end] = [pieces.start[row], pieces.end[row]].map(|time| line.convert(time));
            if start == 0 {
                doubtful.without_time += 1;
                continue;
            }
            match end {
                0 => doubtful.without_end += 1,
                _ => doubtful.backwards += u64::from(end < start),
            }
            run.push(start, end.saturating_sub(start), shapes[shape]);
        }
        let runs = runs.into_iter().map(Run::put_in_order);
        Part {
            runs: keys.into_iter().zip(runs).collect(),
            shapes,
            doubtful,
        }
    }
}

/// The track of a row of a picture.
fn track_of(key: RowKey, table: BlockKind) -> TrackKey {
    match key {
        RowKey::Stream { device, process, .. } if table == BlockKind::COLLECTIVES => {
            TrackKey::Collectives { device, process }
        }
        key => TrackKey::Row(key),
    }
}

/// The samples of all counters.
pub(super) type CounterSamples = Vec<(CounterKey, Vec<(u64, f64)>)>;

/// Samples of counters before they are in order.
type PlacedSamples = Vec<(CounterKey, Vec<(Position, f64)>)>;

/// Reads all samples, in the order of their times.
pub(super) fn read_counters(trace: &Trace, options: &GridOptions) -> Result<CounterSamples, Error> {
    let query = Query::default();
    let kept = Kept::new(trace.counters.rows(), size_of::<(Position, f64)>());
    trace.file.admit_rows("samples of counters", &[kept])?;
    let parts: Vec<PlacedSamples> = counter_scan::places(trace, &query)
        .par_iter()
        .map_init(
            || trace.file.reader.decoder(),
            |decoder, place| {
                let block = &trace.blocks()[place.number];
                options.note(block)?;
                Ok(samples_of(trace, &query, decoder, block))
            },
        )
        .collect::<Result<_, Error>>()?;
    let mut known: FxHashMap<CounterKey, usize> = FxHashMap::default();
    let mut counters: PlacedSamples = Vec::new();
    for (key, samples) in parts.into_iter().flatten() {
        let number = *known.entry(key).or_insert_with(|| {
            counters.push((key, Vec::new()));
            counters.len() - 1
        });
        counters[number].1.extend(samples);
    }
    let sorted = counters.into_par_iter().map(|(key, mut samples)| {
        samples.sort_by_key(|(position, _)| *position);
        let samples = samples
            .into_iter()
            .map(|(position, value)| (position.start.0, value));
        (key, samples.collect())
    });
    Ok(sorted.collect())
}

fn samples_of(
    trace: &Trace,
    query: &Query,
    decoder: &mut Decoder<'_, AnySource>,
    block: &Block,
) -> PlacedSamples {
    let Some(samples) = Samples::read(trace, query, decoder, block) else {
        return Vec::new();
    };
    let mut of_keys: Vec<Vec<(Position, f64)>> = vec![Vec::new(); samples.keys().len()];
    for (key, position, value) in samples.rows(block) {
        of_keys[key].push((position, value));
    }
    let keys = samples.keys().iter().zip(of_keys);
    keys.filter_map(|(key, samples)| Some(((*key)?, samples)))
        .filter(|(_, samples)| !samples.is_empty())
        .collect()
}
