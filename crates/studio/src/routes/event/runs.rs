//! How long all slices of the same name took.

use std::ops::ControlFlow;

use serde::Serialize;
use tracesmith_trace::analysis::Distribution;
use tracesmith_trace::tables::Cancel;

use super::Picked;
use crate::places::each_slice;
use crate::reply::Failure;

/// Bins of a histogram, each as much longer than the one before as all others.
const BINS: usize = 24;

/// The figures of all slices of a shape.
#[derive(Debug, Serialize)]
pub(super) struct Runs {
    #[serde(flatten)]
    figures: Distribution,
    bins: Vec<Bin>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Bin {
    from_ns: u64,
    to_ns: u64,
    count: u64,
}

/// All slices of the shape, of all tracks of the same kind.
pub(super) fn of(picked: &Picked<'_>, cancel: &Cancel) -> Result<Option<Runs>, Failure> {
    let grid = picked.places.grid;
    let tracks = grid
        .tracks()
        .iter()
        .filter(|track| track.kind == picked.track.kind);
    let mut durations = Vec::new();
    for row in tracks.flat_map(|track| track.first_row..track.first_row + track.rows) {
        each_slice(grid, row, (0, u64::MAX), cancel, |slice| {
            if slice.shape == picked.slice.shape {
                durations.push(slice.duration);
            }
            ControlFlow::Continue(())
        })?;
    }
    if durations.is_empty() {
        return Ok(None);
    }
    let figures = Distribution::of(&mut durations);
    Ok(Some(Runs {
        bins: bins(&durations, figures.min_ns, figures.max_ns),
        figures,
    }))
}

/// Counts durations in bins from the shortest to the longest.
fn bins(durations: &[u64], min: u64, max: u64) -> Vec<Bin> {
    if min == max {
        return vec![Bin {
            from_ns: min,
            to_ns: max,
            count: durations.len() as u64,
        }];
    }
    let (low, high) = ((min.max(1) as f64).ln(), (max as f64).ln());
    let border = |at: usize| match at {
        0 => min,
        BINS => max,
        at => (low + (high - low) * at as f64 / BINS as f64).exp().round() as u64,
    };
    let mut borders: Vec<u64> = (0..=BINS).map(border).collect();
    // Short durations have few different values.
    borders.dedup();
    let last = borders.len() - 1;
    let mut counts = vec![0; last];
    for duration in durations {
        let after = borders.partition_point(|border| border <= duration);
        // The longest one is in the last bin.
        counts[after.clamp(1, last) - 1] += 1;
    }
    let spans = borders.windows(2).zip(counts);
    spans
        .map(|(span, count)| Bin {
            from_ns: span[0],
            to_ns: span[1],
            count,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_is_in_one_bin() {
        for durations in [
            vec![1, 2, 3],
            vec![0, 5, 1_000_000],
            vec![10, 11],
            (100..5_000).collect(),
        ] {
            let (min, max) = (durations[0], durations[durations.len() - 1]);
            let bins = bins(&durations, min, max);
            let counted: u64 = bins.iter().map(|bin| bin.count).sum();
            assert_eq!(counted, durations.len() as u64, "{bins:?}");
            assert_eq!((bins[0].from_ns, bins[bins.len() - 1].to_ns), (min, max));
            assert!(
                bins.windows(2)
                    .all(|two| two[0].to_ns == two[1].from_ns && two[0].from_ns < two[0].to_ns)
            );
        }
        let same = bins(&[7, 7], 7, 7);
        assert_eq!(
            same,
            [Bin {
                from_ns: 7,
                to_ns: 7,
                count: 2
            }]
        );
    }
}
