//! Tiles: cells of a level, for the rows that are visible. docs/internals/studio.md describes every byte.

use std::ops::Range;
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use tracesmith_trace::grid::{Grid, RowCells};

use super::Subject;
use crate::payload::Payload;
use crate::reply::{Asked, Failure, Named};
use crate::studio::Studio;
use crate::work::Length;

/// Cells of a tile.
const CELLS: usize = 1 << 10;
/// Tiles of one row in an answer.
const MOST_TILES: u32 = 64;
/// Rows of an answer.
pub(super) const MOST_ROWS: usize = 512;
/// Tiles of all rows in an answer: 40 MB at most.
const MOST_IN_ALL: usize = 4_096;
/// Levels of a time in 64 bits.
const MOST_LEVEL: u8 = 63;
const VERSION: u16 = 1;

#[derive(Debug, Deserialize)]
pub(super) struct Chosen {
    level: u8,
    first: u32,
    count: u32,
    rows: String,
}

pub(super) async fn tiles(
    State(studio): State<Arc<Studio>>,
    Named((id, generation)): Named<(usize, String)>,
    Asked(chosen): Asked<Chosen>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let subject = Subject::with_rows(&studio, id).await?;
    let answer = studio.work.run(Length::Quick, move |cancel| {
        let (grid, keep) = subject.grid_of(&generation)?;
        let rows = rows_of(&chosen.rows, grid)?;
        if chosen.level > MOST_LEVEL {
            return Err(Failure::bad(format!("levels go from 0 to {MOST_LEVEL}")));
        }
        if !(1..=MOST_TILES).contains(&chosen.count) || rows.len() * chosen.count as usize > MOST_IN_ALL {
            return Err(Failure::bad("too many tiles at once"));
        }
        let cells = chosen.count as usize * CELLS;
        let mut bytes = Vec::with_capacity(32 + rows.len() * (8 + 12 * cells));
        bytes.extend_from_slice(b"TSTL");
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[chosen.level, 0]);
        for number in [chosen.first, chosen.count, rows.len() as u32, CELLS as u32, 0, 0] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let first_cell = u64::from(chosen.first) * CELLS as u64;
        for row in rows {
            if cancel.is_cancelled() {
                return Err(Failure::cancelled());
            }
            push_row(&mut bytes, row, &grid.cells(row, chosen.level, first_cell, cells));
        }
        Ok((Payload::binary(bytes), keep))
    });
    let (payload, keep) = answer.await?;
    Ok(payload.response(&headers, keep))
}

fn push_row(bytes: &mut Vec<u8>, row: u32, cells: &RowCells) {
    bytes.extend_from_slice(&row.to_le_bytes());
    match cells {
        RowCells::Spans(spans) => {
            bytes.extend_from_slice(&[0; 4]);
            bytes.extend(spans.shapes.iter().flat_map(|shape| shape.to_le_bytes()));
            for shares in &spans.shares {
                bytes.extend_from_slice(shares);
            }
            bytes.extend_from_slice(&spans.counts);
            // Flags: none yet.
            bytes.resize(bytes.len() + spans.counts.len(), 0);
        }
        RowCells::Values(values) => {
            bytes.extend_from_slice(&[1, 0, 0, 0]);
            for plane in [&values.min, &values.max, &values.last] {
                bytes.extend(plane.iter().flat_map(|value| value.to_le_bytes()));
            }
        }
    }
}

/// Rows such as `0-39,42`. Each must be one of the grid.
pub(super) fn rows_of(text: &str, grid: &Grid) -> Result<Vec<u32>, Failure> {
    let count = grid.rows();
    let wrong = || {
        Failure::bad(format!(
            "'{text}' is not a list of rows, such as 0-39,42, of {count} rows"
        ))
    };
    let mut rows = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: u32 = first.parse().map_err(|_| wrong())?;
        let last: u32 = last.parse().map_err(|_| wrong())?;
        let range: Range<u32> = first..last.checked_add(1).ok_or_else(wrong)?;
        if range.is_empty() || range.end > count || rows.len() + range.len() > MOST_ROWS {
            return Err(wrong());
        }
        rows.extend(range);
    }
    Ok(rows)
}
