//! Making a grid: tracks and their rows from what was read, and tracks that something else computed.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tracesmith_format::{DeviceId, ProcessId, ThreadId};

use super::lanes::{Lane, lanes_of};
use super::levels::Levels;
use super::numbering::{Numbering, Placed};
use super::packed::{Gathered, Run};
use super::read::{CounterSamples, GridOptions, Read, read_counters, read_slices};
use super::shapes::{Shape, Traits};
use super::slices::Slices;
use super::track::{Group, GroupKey, Rank, Track, TrackKey, TrackKind, categories};
use super::union::Union;
use super::values::Values;
use super::{Grid, Row};
use crate::analysis::{MemoryPool, MemoryReport};
use crate::error::Error;
use crate::model::trace::Trace;
use crate::overview::{CounterKey, Labels, RowKey, ThreadRole};
use crate::query::Progress;
use crate::reconstruct::Window;
use crate::selection::Selected;

/// A track that is added to a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackSpec {
    /// What it is about. It decides the place of the track: that of idle time is under its device.
    pub key: TrackKey,
    /// Its label.
    pub label: String,
    /// What its categories mean, four at most.
    pub categories: Vec<String>,
}

/// A slice of a track that is added. Its times are on the timeline of the trace, not relative to the origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSlice {
    /// When it starts.
    pub start: u64,
    /// When it ends.
    pub end: u64,
    /// Its name.
    pub name: String,
    /// Its place in the list of categories.
    pub category: u8,
}

impl Grid {
    /// Reads a trace.
    pub fn new(trace: &Arc<Trace>, options: GridOptions) -> Result<Self, Error> {
        let read = read_slices(trace, &options)?;
        let counters = read_counters(trace, &options)?;
        let pools = memory_pools(trace)?;
        let grid = Self::of_parts(trace, read, counters, pools, options.like.as_deref());
        if let Some(progress) = &options.progress {
            progress(Progress::Done);
        }
        Ok(grid)
    }

    fn of_parts(
        trace: &Arc<Trace>,
        read: Read,
        counters: CounterSamples,
        pools: Vec<MemoryPool>,
        like: Option<&Grid>,
    ) -> Self {
        let (shapes, places) = (read.shapes, read.places);
        let traits = Traits::of(&shapes);
        let tracks = read.tracks.into_par_iter().map(|(key, gathered)| {
            let lanes = lanes_of(gathered.finish(), &places);
            let rows = lanes.into_iter().map(|lane| Arc::new(Slices::new(lane)));
            // Events without a time leave a track without slices.
            (key, rows.filter(|slices| slices.count() > 0).collect())
        });
        let mut tracks: Vec<(TrackKey, Vec<Arc<Slices>>)> = tracks.collect();
        tracks.sort_by_cached_key(|(key, _)| (key.rank(), key.clone()));
        let (origin, end) = reach(trace, &tracks, &counters, &pools).unwrap_or((0, 1));
        // Relative times of the earlier grid stay what they are, unless something begins before them.
        let earlier = like.filter(|grid| grid.origin <= origin && !grid.rows.is_empty());
        let (origin, end) = match earlier {
            Some(grid) => (grid.origin, end.max(grid.origin + grid.span)),
            None => (origin, end),
        };

        let mut parts: BTreeMap<(Rank, TrackKey), Vec<Part>> = BTreeMap::new();
        let mut add = |key: TrackKey, part: Part| {
            parts.entry((key.rank(), key)).or_default().push(part);
        };
        for (device, rows) in streams_of_devices(&tracks) {
            let union = Union { rows };
            if union.has_work(&traits) {
                add(TrackKey::Row(RowKey::Device { device }), Part::Union(union));
            }
        }
        for (key, rows) in tracks {
            for slices in rows {
                add(key.clone(), Part::Slices(slices));
            }
        }
        let counter_keys: Vec<_> = counters.iter().map(|(key, _)| *key).collect();
        for (key, samples) in counters {
            add(TrackKey::Row(RowKey::Counter(key)), Part::Samples(samples));
        }
        for pool in pools {
            let points = pool
                .series
                .iter()
                .map(|point| (point.time_ns, point.bytes as f64));
            add(key_of_pool(&pool), Part::Samples(points.collect()));
        }

        let keys: Vec<(TrackKey, usize)> = parts
            .iter()
            .map(|((_, key), rows)| (key.clone(), rows.len()))
            .collect();
        let parts: Vec<Part> = parts.into_values().flatten().collect();
        let rows = parts
            .into_par_iter()
            // A row is a task of its own: some are a thousand times longer than others.
            .with_max_len(1)
            .map(|part| Arc::new(part.into_row(origin, end, &traits)));
        let mut rows: std::vec::IntoIter<Arc<Row>> = rows.collect::<Vec<_>>().into_iter();
        let tracks = keys
            .into_iter()
            .map(|(key, count)| (key, rows.by_ref().take(count).collect()));
        let mut numbering = earlier.map(Numbering::of).unwrap_or_default();
        let placed = numbering.place(earlier, tracks.collect());
        let mut grid = Grid {
            trace: Arc::clone(trace),
            origin,
            span: (end - origin).max(1),
            groups: Vec::new(),
            tracks: Vec::new(),
            shapes,
            traits: traits.clone(),
            rows: numbering.rows,
            owners: numbering.owners,
            doubtful: read.doubtful,
        };
        grid.add_tracks(placed, counter_keys, earlier);
        grid
    }

    /// Describes the tracks, whose rows are there. Tracks that were added to an earlier grid stay.
    fn add_tracks(&mut self, placed: Vec<Placed>, counters: Vec<CounterKey>, earlier: Option<&Grid>) {
        let trace = Arc::clone(&self.trace);
        let rows = placed.iter().filter_map(|track| match track.key {
            TrackKey::Row(row) => Some(row),
            _ => None,
        });
        let labels = Labels::of_rows(&trace, rows).with_counters(counters.into_iter());
        for track in &placed {
            self.tracks.push(self.track(track, label(&labels, &track.key)));
        }
        let added = earlier.map_or(&[][..], |grid| grid.tracks()).iter();
        let added: Vec<&Track> = added.filter(|track| track.kind == TrackKind::Idle).collect();
        if !added.is_empty() {
            self.tracks.extend(added.into_iter().cloned());
            self.tracks
                .sort_by_cached_key(|track| (track.key.rank(), track.key.clone()));
        }
        self.groups = groups(&self.tracks, &labels);
    }

    pub(super) fn track(&self, placed: &Placed, label: String) -> Track {
        let Placed { key, first_row, rows } = placed;
        let kind = key.kind();
        let own = &self.rows[*first_row as usize..(first_row + rows) as usize];
        let counts = own.iter().map(|row| match row.as_ref() {
            Row::Slices { slices, .. } => slices.count() as u64,
            Row::Union { .. } => 0,
            Row::Values(values) => values.count(),
        });
        let extremes = own.iter().find_map(|row| match row.as_ref() {
            Row::Values(values) => values.extremes(),
            _ => None,
        });
        let unit = match key {
            TrackKey::Row(RowKey::Counter(counter)) => Some(self.trace.string(counter.unit).to_owned()),
            TrackKey::Memory { .. } => Some("bytes".to_owned()),
            _ => None,
        };
        Track {
            address: key.address(&self.trace),
            group: key.group(),
            label,
            kind,
            first_row: *first_row,
            rows: *rows,
            slices: counts.sum(),
            categories: categories(kind).iter().map(|&name| name.to_owned()).collect(),
            unit,
            min: extremes.map(|(min, _)| min),
            max: extremes.map(|(_, max)| max),
            key: key.clone(),
        }
    }

    /// The same grid with one track more, which something else computed. It shares all other rows, and their numbers
    /// and those of shapes stay what they are: new ones come after them. A track with this key that is there is
    /// replaced, under its numbers.
    pub fn with_track(&self, spec: TrackSpec, slices: Vec<NamedSlice>) -> Self {
        let mut grid = self.clone();
        let mut known: FxHashMap<(String, u8), u32> = FxHashMap::default();
        for (shape, place) in self.shapes.iter().zip(0..) {
            if shape.kind.is_none() {
                known.insert((shape.name.clone(), shape.category), place);
            }
        }
        let mut run = Run::with_capacity(slices.len());
        let most = self.origin.saturating_add(self.span);
        for slice in slices {
            let category = slice.category.min(super::CATEGORIES as u8 - 1);
            let shapes = &mut grid.shapes;
            let shape = *known
                .entry((slice.name, category))
                .or_insert_with_key(|(name, category)| {
                    shapes.push(Shape {
                        name: name.clone(),
                        short_name: name.clone(),
                        kind: None,
                        category: *category,
                    });
                    shapes.len() as u32 - 1
                });
            let start = slice.start.clamp(self.origin, most);
            let end = slice.end.clamp(start, most);
            run.push(start, end - start, shape);
        }
        grid.traits = Traits::of(&grid.shapes);
        let mut gathered = Gathered::default();
        gathered.add(run.put_in_order());
        let shapes: Vec<u32> = (0..grid.shapes.len() as u32).collect();
        let lanes = lanes_of(gathered.finish(), &shapes);
        let rows = lanes.into_iter().map(|lane: Lane| {
            let part = Part::Slices(Arc::new(Slices::new(lane)));
            Arc::new(part.into_row(self.origin, most, &grid.traits))
        });
        let mut numbering = Numbering::of(self);
        let placed = numbering.place(Some(self), vec![(spec.key, rows.collect())]);
        grid.rows = numbering.rows;
        grid.owners = numbering.owners;
        let Some(placed) = placed.first() else {
            return grid;
        };
        let track = Track {
            categories: spec.categories,
            ..grid.track(placed, spec.label)
        };
        grid.tracks.retain(|other| other.key != track.key);
        grid.tracks.push(track);
        grid.tracks
            .sort_by_cached_key(|track| (track.key.rank(), track.key.clone()));
        grid.groups = groups(&grid.tracks, &Labels::of_rows(&self.trace, std::iter::empty()));
        grid
    }
}

/// A row before its levels are made.
pub(super) enum Part {
    Slices(Arc<Slices>),
    Union(Union),
    Samples(Vec<(u64, f64)>),
}

impl Part {
    pub(super) fn into_row(self, origin: u64, end: u64, traits: &Traits) -> Row {
        let plan = |count: usize, reach: Option<(u64, u64)>| {
            let (first, last) = reach?;
            Levels::plan(count as u64, first - origin, last - origin)
        };
        match self {
            Self::Slices(slices) => {
                let levels = plan(slices.count(), slices.reach()).map(|mut tally| {
                    slices.tally(&mut tally, origin, |shape| traits.category(shape));
                    tally.finish().finish()
                });
                Row::Slices { slices, levels }
            }
            Self::Union(union) => {
                let levels = plan(union.count(), union.reach())
                    .map(|tally| union.tally(tally, origin, traits).finish().finish());
                Row::Union { union, levels }
            }
            Self::Samples(samples) => {
                let samples = samples.into_iter().map(|(time, value)| (time - origin, value));
                Row::Values(Values::new(samples, end - origin))
            }
        }
    }
}

/// The first and the last moment of all that is drawn, and of what the headers of blocks claim.
fn reach(
    trace: &Trace,
    tracks: &[(TrackKey, Vec<Arc<Slices>>)],
    counters: &CounterSamples,
    pools: &[MemoryPool],
) -> Option<(u64, u64)> {
    let claimed = trace
        .span()
        .map(|(first, last)| (first.0.min(last.0), first.0.max(last.0)));
    let slices = tracks
        .iter()
        .flat_map(|(_, rows)| rows.iter().filter_map(|row| row.reach()));
    let samples = counters
        .iter()
        .filter_map(|(_, samples)| Some((samples.first()?.0, samples.last()?.0)));
    let points = pools
        .iter()
        .filter_map(|pool| Some((pool.series.first()?.time_ns, pool.series.last()?.time_ns)));
    let reaches = claimed.into_iter().chain(slices).chain(samples).chain(points);
    reaches.reduce(|(first, last), (from, to)| (first.min(from), last.max(to)))
}

/// The rows that are united in that of each device.
pub(super) fn streams_of_devices(
    tracks: &[(TrackKey, Vec<Arc<Slices>>)],
) -> BTreeMap<DeviceId, Vec<Arc<Slices>>> {
    let mut devices: BTreeMap<DeviceId, Vec<Arc<Slices>>> = BTreeMap::new();
    for (key, rows) in tracks {
        let device = key.device().filter(|device| device.is_some());
        if let (Some(device), TrackKind::Stream | TrackKind::Collectives) = (device, key.kind()) {
            devices.entry(device).or_default().extend(rows.iter().cloned());
        }
    }
    devices
}

fn memory_pools(trace: &Trace) -> Result<Vec<MemoryPool>, Error> {
    if trace.allocations.rows() == 0 {
        return Ok(Vec::new());
    }
    let report = MemoryReport::with_points(trace, Window::default(), &Selected::default(), usize::MAX)?;
    Ok(report.pools)
}

fn key_of_pool(pool: &MemoryPool) -> TrackKey {
    TrackKey::Memory {
        device: DeviceId(pool.device),
        process: ProcessId(pool.process),
        memory: pool.memory,
        allocator: pool.allocator.clone(),
    }
}

fn label(labels: &Labels<'_>, key: &TrackKey) -> String {
    match key {
        TrackKey::Row(row) => labels.row(*row),
        TrackKey::Idle { .. } => "idle".to_owned(),
        TrackKey::Collectives { device, process } => format!("collectives{}", labels.user(*device, *process)),
        TrackKey::Memory {
            device,
            process,
            memory,
            allocator,
        } => {
            let by = if allocator.is_empty() {
                String::new()
            } else {
                format!(" by {allocator}")
            };
            format!("{memory} memory{by}{}", labels.user(*device, *process))
        }
    }
}

/// The groups of tracks, which are in order.
fn groups(tracks: &[Track], labels: &Labels<'_>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for track in tracks {
        if groups.last().is_none_or(|group| group.key != track.group) {
            let key = track.group;
            let label = match key {
                GroupKey::Device(device) => labels.group(RowKey::Device { device }),
                GroupKey::Process(process) => labels.group(RowKey::Thread {
                    process,
                    thread: ThreadId::NONE,
                    role: ThreadRole::Calls,
                    depth: 0,
                }),
                GroupKey::Counters => "counters".to_owned(),
            };
            groups.push(Group { key, label });
        }
    }
    groups
}
