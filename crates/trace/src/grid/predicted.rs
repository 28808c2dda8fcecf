//! The rows of a predicted timeline: those of a measured one with other times.
//!
//! Ops of streams are where the simulation has them, and devices unite them. What threads did (calls, ranges, operators)
//! moves with the calls of the thread that launch or wait. Everything else has no predicted times and no rows: threads
//! without such calls, waits that streams and devices report, collectives, idle time, counters and memory.

use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::build::{Part, streams_of_devices};
use super::lanes::lanes_of;
use super::numbering::Numbering;
use super::packed::{Gathered, Run};
use super::shapes::{Shape, Traits};
use super::slices::Slices;
use super::track::{Track, TrackKey};
use super::union::Union;
use super::{Grid, Row};
use crate::analysis::short_name;
use crate::error::Error;
use crate::overview::{ActivityKind, Doubtful, RowKey};
use crate::reconstruct::{
    OpClass, OpKind, OpTable, Predicted, StreamKey, ThreadMoves, ThreadNodes, Watch, name_of,
};

/// Share of the work that reading the times of ops is.
const OPS_SHARE: f64 = 0.3;

impl Grid {
    /// The rows of a predicted timeline of the same trace. They have the keys, labels and shapes of the measured ones, and
    /// the same origin. `watch` is called now and then, and can end the work.
    pub fn predicted(&self, predicted: &Predicted, watch: &Watch<'_>) -> Result<Self, Error> {
        let mut shapes = self.shapes.clone();
        let mut streams = self.predicted_streams(predicted, &mut shapes, watch)?;
        let threads = predicted.threads();
        let places: Vec<u32> = (0..shapes.len() as u32).collect();
        let traits = Traits::of(&shapes);
        let moved = self.tracks.par_iter().with_max_len(1).map(|track| {
            watch(OPS_SHARE)?;
            let gathered = match self.moves_of(track, &threads) {
                Some(moves) => self.moved_slices(track, moves),
                None => return Ok(None),
            };
            Ok(Some((track.key.clone(), gathered)))
        });
        let moved: Vec<Option<(TrackKey, Gathered)>> = moved.collect::<Result<_, Error>>()?;
        streams.extend(moved.into_iter().flatten());
        watch(0.8)?;

        let tracks = streams.into_par_iter().with_max_len(1).map(|(key, gathered)| {
            let lanes = lanes_of(gathered.finish(), &places);
            let rows = lanes.into_iter().map(|lane| Arc::new(Slices::new(lane)));
            (key, rows.filter(|slices| slices.count() > 0).collect())
        });
        let tracks: Vec<(TrackKey, Vec<Arc<Slices>>)> = tracks.collect();
        let reaches = tracks
            .iter()
            .flat_map(|(_, rows)| rows.iter().filter_map(|row| row.reach()));
        let last = reaches.map(|(_, last)| last).max();
        let end = last.unwrap_or(0).max(self.origin.saturating_add(self.span));
        Ok(self.with_rows(tracks, (shapes, traits), end))
    }

    /// The ops of every stream, where they are predicted.
    fn predicted_streams(
        &self,
        predicted: &Predicted,
        shapes: &mut Vec<Shape>,
        watch: &Watch<'_>,
    ) -> Result<Vec<(TrackKey, Gathered)>, Error> {
        let activity = predicted.activity();
        let known: FxHashMap<(&str, ActivityKind), u32> = (0u32..)
            .zip(&self.shapes)
            .filter_map(|(place, shape)| Some(((shape.name.as_str(), shape.kind?), place)))
            .collect();
        let of_kind: Vec<u32> = (activity.ops.kinds.iter())
            .map(|kind| self.shape_of(kind, &known, shapes))
            .collect();
        let mut runs: Vec<Run> = activity
            .lane_ids()
            .map(|lane| Run::with_capacity(activity.ops_of(lane).len()))
            .collect();
        for (done, (op, (start, end))) in predicted.ops().enumerate() {
            if done % WATCHED == 0 {
                watch(OPS_SHARE * done as f64 / activity.ops.len() as f64)?;
            }
            let start = start.max(self.origin);
            let shape = of_kind[activity.ops.kind[op.index()] as usize];
            let lane = activity.ops.lane[op.index()].index();
            runs[lane].push(start, end.saturating_sub(start), shape);
        }
        let of_lane = |(lane, run): (&StreamKey, Run)| {
            let StreamKey {
                process,
                device,
                context,
                stream,
            } = *lane;
            let key = RowKey::Stream {
                device,
                process,
                context,
                stream,
            };
            let mut gathered = Gathered::default();
            gathered.add(run.put_in_order());
            (TrackKey::Row(key), gathered)
        };
        Ok(activity.lanes.iter().zip(runs).map(of_lane).collect())
    }

    /// The place of the shape that slices of a kind of op have. A new one is added if none is known.
    fn shape_of(
        &self,
        kind: &OpKind,
        known: &FxHashMap<(&str, ActivityKind), u32>,
        shapes: &mut Vec<Shape>,
    ) -> u32 {
        let name = name_of(&self.trace, kind.name);
        let kinds: &[ActivityKind] = match kind.table {
            OpTable::Kernels if kind.class == OpClass::Communication => {
                &[ActivityKind::Communication, ActivityKind::Kernel]
            }
            OpTable::Kernels => &[ActivityKind::Kernel, ActivityKind::Communication],
            OpTable::Copies => &[ActivityKind::Copy],
            OpTable::Sets => &[ActivityKind::Set],
            OpTable::GraphLaunches => &[ActivityKind::Graph],
        };
        let found = kinds.iter().find_map(|kind| known.get(&(name, *kind)));
        found.copied().unwrap_or_else(|| {
            shapes.push(Shape::of_op(name, short_name(name), kinds[0]));
            shapes.len() as u32 - 1
        })
    }

    /// How the moments of a track of a thread move.
    fn moves_of<'a>(&self, track: &Track, threads: &'a ThreadNodes<'_>) -> Option<ThreadMoves<'a>> {
        match track.key {
            TrackKey::Row(RowKey::Thread { process, thread, .. }) => threads.of_thread(process, thread),
            _ => None,
        }
    }

    /// The slices of a track with both their ends moved.
    fn moved_slices(&self, track: &Track, moves: ThreadMoves<'_>) -> Gathered {
        let mut run = Run::with_capacity(track.slices as usize);
        let rows = track.first_row..track.first_row + track.rows;
        for slices in rows.filter_map(|row| self.slices_of(row)) {
            let (mut starts, mut ends) = (moves.clone(), moves.clone());
            for slice in slices.iter() {
                let start = starts.moved(slice.start).max(self.origin);
                let end = ends.moved(slice.end);
                run.push(start, end.saturating_sub(start), slice.shape);
            }
        }
        let mut gathered = Gathered::default();
        gathered.add(run.put_in_order());
        gathered
    }

    /// A grid of rows that are made, with the labels that this one has.
    fn with_rows(
        &self,
        tracks: Vec<(TrackKey, Vec<Arc<Slices>>)>,
        (shapes, traits): (Vec<Shape>, Traits),
        end: u64,
    ) -> Self {
        let mut parts: FxHashMap<TrackKey, Vec<Part>> = FxHashMap::default();
        for (device, rows) in streams_of_devices(&tracks) {
            let union = Union { rows };
            parts.insert(TrackKey::Row(RowKey::Device { device }), vec![Part::Union(union)]);
        }
        for (key, rows) in tracks {
            parts.insert(key, rows.into_iter().map(Part::Slices).collect());
        }
        // In the order of the measured tracks.
        let mut tracks: Vec<(TrackKey, Vec<Arc<Row>>)> = Vec::new();
        let mut labels = Vec::new();
        for measured in &self.tracks {
            let Some(parts) = parts.remove(&measured.key).filter(|parts| !parts.is_empty()) else {
                continue;
            };
            let rows = parts
                .into_par_iter()
                .with_max_len(1)
                .map(|part| Arc::new(part.into_row(self.origin, end, &traits)));
            tracks.push((measured.key.clone(), rows.collect()));
            labels.push(measured.label.clone());
        }
        let mut numbering = Numbering::default();
        let placed = numbering.place(None, tracks);
        let mut grid = Grid {
            span: end.saturating_sub(self.origin).max(1),
            groups: Vec::new(),
            tracks: Vec::new(),
            shapes,
            traits,
            rows: numbering.rows,
            owners: numbering.owners,
            doubtful: Doubtful::default(),
            trace: Arc::clone(&self.trace),
            origin: self.origin,
        };
        for (track, label) in placed.iter().zip(labels) {
            grid.tracks.push(grid.track(track, label));
        }
        let is_there = |group: &&super::Group| grid.tracks.iter().any(|track| track.group == group.key);
        grid.groups = self.groups.iter().filter(is_there).cloned().collect();
        grid
    }
}

/// Ops between two calls of a [`Watch`].
const WATCHED: usize = 1 << 16;
