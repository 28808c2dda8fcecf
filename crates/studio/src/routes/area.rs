//! What is in an area: totals of some rows in a stretch of time.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::Subject;
use super::tiles::rows_of;
use crate::payload::{Keep, Payload};
use crate::reply::{Asked, Failure, Named};
use crate::studio::Studio;
use crate::work::Length;

#[derive(Debug, Deserialize)]
pub(super) struct Chosen {
    /// All rows without this.
    #[serde(default)]
    rows: String,
    /// A view may begin before the origin.
    from: i64,
    to: u64,
}

#[derive(Serialize)]
struct Area<'a> {
    /// The time of all slices together, as far as they are in the area.
    busy_ns: u64,
    rows: usize,
    shapes: Vec<Total<'a>>,
}

#[derive(Serialize)]
struct Total<'a> {
    shape: u32,
    name: &'a str,
    count: u64,
    busy_ns: u64,
}

pub(super) async fn area(
    State(studio): State<Arc<Studio>>,
    Named(id): Named<usize>,
    Asked(chosen): Asked<Chosen>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let subject = Subject::with_rows(&studio, id).await?;
    let answer = studio.work.run(Length::Quick, move |_| {
        let grid = subject.ready.grid();
        let rows = match chosen.rows.as_str() {
            "" => (0..grid.rows()).collect(),
            rows => rows_of(rows, grid)?,
        };
        let totals = grid.totals(&rows, chosen.from.max(0).unsigned_abs(), chosen.to);
        let shapes: Vec<Total<'_>> = totals
            .iter()
            .map(|total| Total {
                shape: total.shape,
                name: &grid.shapes()[total.shape as usize].name,
                count: total.count,
                busy_ns: total.busy_nanos,
            })
            .collect();
        Payload::json(&Area {
            busy_ns: shapes.iter().map(|total| total.busy_ns).sum(),
            rows: rows.len(),
            shapes,
        })
    });
    Ok(answer.await?.response(&headers, Keep::No))
}
