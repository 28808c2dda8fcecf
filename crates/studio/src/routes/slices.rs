//! Slices: those of visible rows when there are few, and the next or previous one of a row.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tracesmith_trace::grid::SliceRef;
use tracesmith_trace::overview::Direction;

use super::Subject;
use super::tiles::rows_of;
use crate::payload::{Keep, Payload};
use crate::places::slices_at;
use crate::reply::{Asked, Failure, Named};
use crate::studio::Studio;
use crate::work::Length;

/// Slices of a row in an answer, unless chosen otherwise, and at most.
const SLICES: usize = 4_000;
const MOST_SLICES: usize = 100_000;
const VERSION: u16 = 1;
/// Says that a row has more slices than were sent.
const MORE: u32 = 1;

#[derive(Debug, Deserialize)]
pub(super) struct Chosen {
    rows: String,
    /// A view may begin before the origin.
    from: i64,
    to: u64,
    limit: Option<usize>,
}

pub(super) async fn slices(
    State(studio): State<Arc<Studio>>,
    Named((id, generation)): Named<(usize, String)>,
    Asked(chosen): Asked<Chosen>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let subject = Subject::with_rows(&studio, id).await?;
    let answer = studio.work.run(Length::Quick, move |cancel| {
        let (grid, keep) = subject.grid_of(&generation)?;
        let rows = rows_of(&chosen.rows, grid)?;
        let from = chosen.from.max(0).unsigned_abs();
        let limit = chosen.limit.unwrap_or(SLICES).min(MOST_SLICES);
        let mut bytes = Vec::new();
        bytes.extend_from_slice(b"TSSL");
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 2]);
        bytes.extend_from_slice(&(rows.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        for row in rows {
            if cancel.is_cancelled() {
                return Err(Failure::cancelled());
            }
            let found = grid.slices(row, from, chosen.to, limit);
            let flags = if found.has_more { MORE } else { 0 };
            for number in [row, found.starts.len() as u32, flags, 0] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            let numbers = |bytes: &mut Vec<u8>, numbers: &mut dyn Iterator<Item = u64>| {
                bytes.extend(numbers.flat_map(|nanos| (nanos as f64).to_le_bytes()));
            };
            numbers(&mut bytes, &mut found.starts.iter().copied());
            numbers(&mut bytes, &mut found.durations.iter().copied());
            bytes.extend(found.shapes.iter().flat_map(|shape| shape.to_le_bytes()));
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        Ok((Payload::binary(bytes), keep))
    });
    let (payload, keep) = answer.await?;
    Ok(payload.response(&headers, keep))
}

#[derive(Debug, Deserialize)]
pub(super) struct Next {
    row: u32,
    /// May lie before the origin: the next slice can start there.
    time: i64,
    direction: Way,
    shape: Option<u32>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Way {
    Next,
    Previous,
}

/// A slice as pages know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Found {
    pub(super) row: u32,
    pub(super) start: u64,
    pub(super) duration: u64,
    pub(super) shape: u32,
}

pub(super) async fn neighbor(
    State(studio): State<Arc<Studio>>,
    Named(id): Named<usize>,
    Asked(next): Asked<Next>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let subject = Subject::with_rows(&studio, id).await?;
    let answer = studio.work.run(Length::Quick, move |_| {
        let grid = subject.ready.grid();
        rows_of(&next.row.to_string(), grid)?;
        let time = u64::try_from(next.time);
        let near = |direction| grid.neighbor(next.row, time.unwrap_or(0), direction, next.shape);
        let is_meant = |slice: &SliceRef| next.shape.is_none_or(|shape| slice.shape == shape);
        let found = match (next.direction, time) {
            (Way::Next, Ok(_)) => near(Direction::Forward),
            (Way::Next, Err(_)) => {
                let first = slices_at(grid, next.row, 0).into_iter().find(is_meant);
                first.or_else(|| near(Direction::Forward))
            }
            (Way::Previous, Ok(_)) => near(Direction::Back),
            (Way::Previous, Err(_)) => None,
        };
        Payload::json(&found.map(|slice| Found {
            row: next.row,
            start: slice.start,
            duration: slice.duration,
            shape: slice.shape,
        }))
    });
    Ok(answer.await?.response(&headers, Keep::No))
}
