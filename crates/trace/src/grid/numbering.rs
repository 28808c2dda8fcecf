//! Numbers of rows that stay what they are when a trace grows, so that pages that know an older grid of it can go on.
//!
//! Every number stands for a lane of a track, whatever happens to the track. A track that needs more lanes than it
//! has gets new numbers, because those of a track follow each other; its old numbers go on to show the same lanes.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::lanes::Lane;
use super::slices::Slices;
use super::track::TrackKey;
use super::{Grid, Row};

/// The lane of a track that a number stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) track: TrackKey,
    pub(super) lane: u32,
}

/// A track with its rows.
pub(super) struct Placed {
    pub(super) key: TrackKey,
    pub(super) first_row: u32,
    pub(super) rows: u32,
}

/// Rows by their numbers, and what each number stands for.
#[derive(Default)]
pub(super) struct Numbering {
    pub(super) rows: Vec<Arc<Row>>,
    pub(super) owners: Vec<Owner>,
}

impl Numbering {
    /// Starts with the numbers of a grid.
    pub(super) fn of(grid: &Grid) -> Self {
        Numbering {
            rows: grid.rows.clone(),
            owners: grid.owners.clone(),
        }
    }

    /// Gives numbers to the rows of tracks: those of an earlier grid where it has them.
    pub(super) fn place(
        &mut self,
        earlier: Option<&Grid>,
        tracks: Vec<(TrackKey, Vec<Arc<Row>>)>,
    ) -> Vec<Placed> {
        let known = earlier.map_or(&[][..], |grid| grid.tracks());
        let known: FxHashMap<&TrackKey, (u32, u32)> = known
            .iter()
            .map(|track| (&track.key, (track.first_row, track.rows)))
            .collect();
        let owners = earlier.map_or(&[][..], |grid| &grid.owners);
        let mut numbers: FxHashMap<&TrackKey, Vec<usize>> = FxHashMap::default();
        for (number, owner) in owners.iter().enumerate() {
            numbers.entry(&owner.track).or_default().push(number);
        }
        let tracks = tracks.into_iter().map(|(key, mut rows)| {
            let at = known.get(&key).copied();
            // A lane that has become empty keeps its number.
            let least = at.map_or(0, |(_, lanes)| lanes as usize);
            rows.resize_with(rows.len().max(least), || Arc::new(Row::empty()));
            let lanes = rows.len() as u32;
            // All numbers of the track show these rows.
            for number in numbers.get(&key).into_iter().flatten() {
                if let Some(lane) = rows.get(owners[*number].lane as usize) {
                    self.rows[*number] = Arc::clone(lane);
                }
            }
            let (first_row, rows) = match at {
                Some((first_row, known)) if known == lanes => (first_row, lanes),
                _ => (self.append(&key, rows), lanes),
            };
            Placed { key, first_row, rows }
        });
        tracks.collect()
    }

    fn append(&mut self, key: &TrackKey, rows: Vec<Arc<Row>>) -> u32 {
        let first_row = self.rows.len() as u32;
        self.owners.extend((0..rows.len() as u32).map(|lane| Owner {
            track: key.clone(),
            lane,
        }));
        self.rows.extend(rows);
        first_row
    }
}

impl Row {
    fn empty() -> Self {
        Row::Slices {
            slices: Arc::new(Slices::new(Lane::default())),
            levels: None,
        }
    }
}
