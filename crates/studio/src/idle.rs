//! Rows of idle time: the gaps of each device, named by their main cause.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use tracesmith_format::DeviceId;
use tracesmith_trace::Trace;
use tracesmith_trace::analysis::{IdleCause, main_cause};
use tracesmith_trace::grid::{CATEGORIES, Grid, NamedSlice, TrackKey, TrackSpec};

use crate::facts::Facts;
use crate::reply::Failure;

/// What all causes but those with the most time are called.
const OTHERS: &str = "other causes";

/// The gaps of a device, as a track.
pub(crate) type IdleTrack = (TrackSpec, Vec<NamedSlice>);

/// A row of gaps for each device that has any.
pub(crate) fn idle_tracks(trace: &Arc<Trace>, facts: &Facts) -> Result<Vec<IdleTrack>, Failure> {
    let whole = facts.whole(trace)?;
    let activity = &whole.analysis.activity;
    let causes: Vec<IdleCause> = whole.gaps.iter().map(|gap| main_cause(activity, gap)).collect();
    let mut nanos: BTreeMap<IdleCause, u64> = BTreeMap::new();
    for (gap, cause) in whole.gaps.iter().zip(&causes) {
        *nanos.entry(*cause).or_default() += gap.to - gap.from;
    }
    let mut ranked: Vec<(IdleCause, u64)> = nanos.into_iter().collect();
    ranked.sort_by_key(|(cause, nanos)| (Reverse(*nanos), *cause));
    let others = CATEGORIES - 1;
    let mut categories: Vec<String> = ranked
        .iter()
        .take(others)
        .map(|(cause, _)| cause.words().to_owned())
        .collect();
    if ranked.len() > others {
        categories.push(OTHERS.to_owned());
    }
    let category = |cause: IdleCause| {
        let place = ranked.iter().position(|(ranked, _)| *ranked == cause);
        place.unwrap_or(others).min(others) as u8
    };
    let mut devices: BTreeMap<DeviceId, Vec<NamedSlice>> = BTreeMap::new();
    for (gap, cause) in whole.gaps.iter().zip(&causes) {
        devices.entry(gap.device).or_default().push(NamedSlice {
            start: gap.from,
            end: gap.to,
            name: cause.words().to_owned(),
            category: category(*cause),
        });
    }
    let tracks = devices.into_iter().map(|(device, slices)| {
        let spec = TrackSpec {
            key: TrackKey::Idle { device },
            label: "idle".to_owned(),
            categories: categories.clone(),
        };
        (spec, slices)
    });
    Ok(tracks.collect())
}

/// The grid with these rows; `None` without any.
pub(crate) fn with_tracks(grid: &Grid, tracks: &[IdleTrack]) -> Option<Grid> {
    let mut with_rows: Option<Grid> = None;
    for (spec, slices) in tracks {
        let grid = with_rows.as_ref().unwrap_or(grid);
        with_rows = Some(grid.with_track(spec.clone(), slices.clone()));
    }
    with_rows
}

/// The first moment at which rows of idle time differ from those before. Categories are by the time that causes take:
/// if they change, all does.
pub(crate) fn first_difference(before: &[IdleTrack], now: &[IdleTrack]) -> u64 {
    if before.len() != now.len() {
        return 0;
    }
    let moments = before.iter().zip(now).map(|((old_spec, old), (spec, new))| {
        if old_spec != spec {
            return 0;
        }
        let same = old.iter().zip(new).take_while(|(old, new)| old == new).count();
        let start = |gaps: &[NamedSlice]| gaps.get(same).map_or(u64::MAX, |gap| gap.start);
        start(old).min(start(new))
    });
    moments.min().unwrap_or(u64::MAX)
}
