//! Slices: those of visible rows when there are few, and the next or previous one of a row.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tracesmith_trace::overview::Direction;

use super::Subject;
use super::tiles::rows_of;
use crate::payload::{Keep, Payload};
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
    from: u64,
    to: u64,
    limit: Option<usize>,
}

pub(super) async fn slices(
    State(studio): State<Arc<Studio>>,
    Named((id, generation)): Named<(usize, String)>,
    Asked(chosen): Asked<Chosen>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let subject = Subject::of(&studio, id).await?;
    let answer = studio.work.run(Length::Quick, move |cancel| {
        let grid = subject.grid_of(&generation)?;
        let rows = rows_of(&chosen.rows, grid)?;
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
            let found = grid.slices(row, chosen.from, chosen.to, limit);
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
        Ok(Payload::binary(bytes))
    });
    Ok(answer.await?.response(&headers, Keep::Forever))
}

#[derive(Debug, Deserialize)]
pub(super) struct Next {
    row: u32,
    time: u64,
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
    let subject = Subject::of(&studio, id).await?;
    let answer = studio.work.run(Length::Quick, move |_| {
        let grid = subject.ready.grid();
        rows_of(&next.row.to_string(), grid)?;
        let direction = match next.direction {
            Way::Next => Direction::Forward,
            Way::Previous => Direction::Back,
        };
        let found = grid.neighbor(next.row, next.time, direction, next.shape);
        Payload::json(&found.map(|slice| Found {
            row: next.row,
            start: slice.start,
            duration: slice.duration,
            shape: slice.shape,
        }))
    });
    Ok(answer.await?.response(&headers, Keep::No))
}
