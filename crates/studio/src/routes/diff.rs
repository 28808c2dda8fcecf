//! Two traces compared: what `tracesmith diff A B --format json` prints.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tracesmith_trace::analysis::{DiffKey, DiffReport};

use super::Subject;
use crate::payload::{Keep, Payload};
use crate::ready::Ready;
use crate::reply::{Asked, Failure};
use crate::studio::Studio;

/// Two traces, and what makes two kernels the same.
#[derive(Debug, Deserialize)]
pub(super) struct Pair {
    a: usize,
    b: usize,
    #[serde(default)]
    by: String,
}

pub(super) async fn diff(
    State(studio): State<Arc<Studio>>,
    Asked(pair): Asked<Pair>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let by = key(&pair.by)?;
    let before = Subject::of(&studio, pair.a).await?;
    let after = Subject::of(&studio, pair.b).await?;
    let question = before.question(&format!("diff {} {}", after.stamp(), pair.by));
    let answer = studio.answers.get(&studio.work, question, move |_| {
        Payload::json(&compared(&before.ready, &after.ready, by)?)
    });
    Ok(answer.await?.response(&headers, Keep::No))
}

/// What makes two kernels the same, as on the command line.
fn key(text: &str) -> Result<DiffKey, Failure> {
    match text {
        "" | "name" => Ok(DiffKey::Name),
        "short" => Ok(DiffKey::Short),
        other => Err(Failure::bad(format!("kernels cannot be matched by {other}"))),
    }
}

/// The report with what the command adds to it. A page has no limit that the second trace could be over.
fn compared(before: &Ready, after: &Ready, by: DiffKey) -> Result<Value, Failure> {
    let a = &before.facts.whole(&before.trace)?.analysis;
    let b = &after.facts.whole(&after.trace)?.analysis;
    let report = DiffReport::of(a, b, by)?;
    let mut answer = serde_json::to_value(&report).map_err(|_| Failure::bug())?;
    answer["is_over"] = Value::Null;
    answer["doubts_a"] = json!(a.activity.doubts);
    answer["doubts_b"] = json!(b.activity.doubts);
    Ok(answer)
}
