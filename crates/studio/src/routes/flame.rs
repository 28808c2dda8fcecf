//! Flame graphs: the code that launched GPU work in a stretch of time.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tracesmith_interop::export::{ExportOptions, FlameNode, Weight, flame_graph};

use super::Subject;
use super::analysis::range_of;
use crate::payload::{Keep, Payload};
use crate::reply::{Asked, Failure, Named};
use crate::studio::Studio;

/// Frames below this share of the whole are put together: they would be less than a dot wide.
const LEAST_SHARE: f64 = 1.0 / 2_000.0;

#[derive(Debug, Deserialize)]
pub(super) struct Chosen {
    from: Option<u64>,
    to: Option<u64>,
    #[serde(default)]
    by: By,
}

/// What makes a frame wide.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum By {
    /// Time of the GPU.
    #[default]
    Time,
    /// Launches.
    Count,
}

#[derive(Serialize)]
struct Graph {
    total: u64,
    unit: &'static str,
    root: FlameNode,
}

pub(super) async fn flame(
    State(studio): State<Arc<Studio>>,
    Named(id): Named<usize>,
    Asked(chosen): Asked<Chosen>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let subject = Subject::of(&studio, id).await?;
    let question = subject.question(&format!("flame {chosen:?}"));
    let answer = studio.answers.get(&studio.work, question, move |_| {
        let trace = &subject.ready.trace;
        let (weight, unit) = match chosen.by {
            By::Time => (Weight::GpuTime, "ns"),
            By::Count => (Weight::Launches, "launches"),
        };
        let options = ExportOptions {
            range: range_of(trace, subject.origin(), chosen.from, chosen.to)?,
            weight,
            ..ExportOptions::default()
        };
        let root = flame_graph(trace, &options, LEAST_SHARE)?;
        Payload::json(&Graph {
            total: root.value,
            unit,
            root,
        })
    });
    Ok(answer.await?.response(&headers, Keep::No))
}
