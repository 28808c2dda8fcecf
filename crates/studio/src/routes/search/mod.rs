//! Search: slices by their names, and by the functions that launched them.

mod by_stack;

use std::ops::ControlFlow;
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tracesmith_trace::NamePattern;
use tracesmith_trace::grid::{Grid, Shape};
use tracesmith_trace::overview::ActivityKind;
use tracesmith_trace::tables::Cancel;

use super::Subject;
use crate::payload::{Keep, Payload};
use crate::places::{Place, each_slice, place};
use crate::reply::{Asked, Failure, Named};
use crate::studio::Studio;
use crate::work::Length;

/// Results of an answer, unless chosen otherwise, and at most.
const RESULTS: usize = 200;
const MOST_RESULTS: usize = 10_000;

#[derive(Debug, Deserialize)]
pub(super) struct Chosen {
    q: String,
    /// `names`, `markers` and `stacks`, separated by commas; all without this.
    #[serde(default, rename = "in")]
    places: String,
    limit: Option<usize>,
    from: Option<u64>,
    to: Option<u64>,
}

#[derive(Debug, Default, Serialize)]
struct Answer {
    /// How many there are.
    total: u64,
    /// Whether some are not among the results.
    truncated: bool,
    /// In the order of time.
    results: Vec<Hit>,
    /// By name, the most time first.
    shapes: Vec<ShapeHits>,
}

/// A slice that was found.
#[derive(Clone, Debug, Serialize)]
struct Hit {
    #[serde(flatten)]
    place: Place,
    #[serde(rename = "where")]
    found_in: &'static str,
}

#[derive(Debug, Serialize)]
struct ShapeHits {
    shape: u32,
    count: u64,
    total_ns: u64,
}

/// What is searched for: a regular expression between slashes, or a part of a name in any case.
enum Pattern {
    Regex(NamePattern),
    Part(String),
}

impl Pattern {
    fn new(text: &str) -> Result<Self, Failure> {
        let is_regex = text.len() > 2 && text.starts_with('/') && text.ends_with('/');
        match is_regex {
            true => Ok(Pattern::Regex(NamePattern::new(text)?)),
            false => Ok(Pattern::Part(text.to_lowercase())),
        }
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Pattern::Regex(pattern) => pattern.matches(name),
            Pattern::Part(part) => name.to_lowercase().contains(part),
        }
    }
}

pub(super) async fn search(
    State(studio): State<Arc<Studio>>,
    Named(id): Named<usize>,
    Asked(chosen): Asked<Chosen>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let subject = Subject::of(&studio, id).await?;
    let answer = studio.work.run(Length::Quick, move |cancel| {
        Payload::json(&found(&subject, &chosen, cancel)?)
    });
    Ok(answer.await?.response(&headers, Keep::No))
}

fn found(subject: &Subject, chosen: &Chosen, cancel: &Cancel) -> Result<Answer, Failure> {
    if chosen.q.is_empty() {
        return Ok(Answer::default());
    }
    let pattern = Pattern::new(&chosen.q)?;
    let wants =
        |place: &str| chosen.places.is_empty() || chosen.places.split(',').any(|wanted| wanted == place);
    let limit = chosen.limit.unwrap_or(RESULTS).min(MOST_RESULTS);
    let window = (chosen.from.unwrap_or(0), chosen.to.unwrap_or(u64::MAX));
    let grid = subject.ready.grid();
    let found_in = |shape: &Shape| match shape.kind {
        Some(ActivityKind::Marker) => wants("markers").then_some("marker"),
        _ => wants("names").then_some("name"),
    };
    let shapes = grid.shapes().iter();
    let matching: Vec<Option<&'static str>> = shapes
        .map(|shape| found_in(shape).filter(|_| pattern.matches(&shape.name)))
        .collect();
    let mut answer = by_name(grid, &matching, window, limit, cancel)?;
    if wants("stacks") {
        let wanted = by_stack::Wanted {
            pattern: &pattern,
            is_found_by_name: wants("names"),
        };
        let (total, hits) = by_stack::find(subject, wanted, window, limit, cancel)?;
        answer.results.extend(hits);
        answer.total += total;
    }
    answer.results.sort_by_key(|hit| (hit.place.start, hit.place.row));
    answer.results.truncate(limit);
    answer.truncated = answer.total > answer.results.len() as u64;
    Ok(answer)
}

/// The slices whose shape matches.
fn by_name(
    grid: &Grid,
    matching: &[Option<&'static str>],
    window: (u64, u64),
    limit: usize,
    cancel: &Cancel,
) -> Result<Answer, Failure> {
    let mut answer = Answer::default();
    if matching.iter().all(Option::is_none) {
        return Ok(answer);
    }
    for row in 0..grid.rows() {
        let mut of_row = 0;
        each_slice(grid, row, window, cancel, |slice| {
            let Some(found_in) = matching[slice.shape as usize] else {
                return ControlFlow::Continue(());
            };
            of_row += 1;
            answer.results.push(Hit {
                place: place(grid, slice),
                found_in,
            });
            match of_row < limit {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
    }
    let rows: Vec<u32> = (0..grid.rows()).collect();
    let totals = grid.totals(&rows, window.0, window.1);
    let totals = totals
        .iter()
        .filter(|total| matching[total.shape as usize].is_some());
    answer.shapes = totals
        .map(|total| ShapeHits {
            shape: total.shape,
            count: total.count,
            total_ns: total.busy_nanos,
        })
        .collect();
    answer.total = answer.shapes.iter().map(|shape| shape.count).sum();
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_match_in_any_case_and_expressions_as_they_are_written() {
        let part = Pattern::new("Gemm").unwrap();
        assert!(part.matches("sm90_xmma_gemm_f16") && part.matches("GEMM") && !part.matches("ge mm"));
        let regex = Pattern::new("/^sm90.*f16$/").unwrap();
        assert!(regex.matches("sm90_xmma_gemm_f16") && !regex.matches("xsm90_f16"));
        // What could be an expression is one only between slashes.
        assert!(Pattern::new("a*b").unwrap().matches("xa*by"));
        assert!(Pattern::new("/[/").is_err());
        assert!(Pattern::new("/").unwrap().matches("a/b"));
    }
}
