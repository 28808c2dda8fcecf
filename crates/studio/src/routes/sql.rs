//! Queries in SQL over a trace. They only read, and end when the page goes away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracesmith_sql::{Database, Error, Limits, ValueRef};
use tracesmith_trace::tables::Cancel;

use super::Subject;
use super::table::signed;
use crate::payload::{Keep, Payload};
use crate::reply::{Failure, Named, Sent, sentence};
use crate::studio::Studio;
use crate::work::{EndWithClient, Length};

/// Time of a query.
const MOST_TIME: Duration = Duration::from_secs(120);
/// Memory of a query, for sorting and grouping.
const MOST_MEMORY_BYTES: i64 = 1 << 30;
/// Rows of an answer: unless chosen otherwise, and at most.
const ROWS: usize = 1_000;
const MOST_ROWS: usize = 100_000;

#[derive(Deserialize)]
pub(super) struct Question {
    query: String,
    limit: Option<usize>,
}

#[derive(Serialize)]
struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Value>>,
    /// Whether there are more rows than the limit.
    truncated: bool,
    ms: f64,
}

#[derive(Serialize)]
struct Column {
    name: String,
    /// That of its first value: a column of SQLite has none of its own.
    #[serde(rename = "type")]
    kind: &'static str,
}

/// Ends the query that runs when it is dropped.
struct Interrupt<F: Fn()>(F);

impl<F: Fn()> Drop for Interrupt<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

pub(super) async fn sql(
    State(studio): State<Arc<Studio>>,
    Named(id): Named<usize>,
    headers: HeaderMap,
    Sent(Question { query, limit }): Sent<Question>,
) -> Result<Response, Failure> {
    let subject = Subject::of(&studio, id).await?;
    let limit = limit.unwrap_or(ROWS).min(MOST_ROWS);
    let database = studio.work.run(Length::Quick, move |_| {
        let limits = Limits {
            time: Some(MOST_TIME),
            memory_bytes: MOST_MEMORY_BYTES,
        };
        let traces = vec![(subject.opened.name(), Arc::clone(&subject.ready.trace))];
        Database::new(traces, limits).map_err(|error| failure(&error))
    });
    let database = database.await?;
    let cancel = Cancel::default();
    // Dropped in this order when the page goes away: a query that begins now sees the switch, and one that runs is ended.
    let _interrupt = Interrupt(database.interrupter());
    let _end = EndWithClient(cancel.clone());
    let answer = studio.work.run_until(Length::Long, cancel, move |cancel| {
        Payload::json(&rows(&database, &query, limit, cancel)?)
    });
    Ok(answer.await?.response(&headers, Keep::No))
}

fn rows(database: &Database, query: &str, limit: usize, cancel: &Cancel) -> Result<Table, Failure> {
    let begin = Instant::now();
    let mut statement = database.prepare(query).map_err(|error| failure(&error))?;
    if cancel.is_cancelled() {
        return Err(Failure::cancelled());
    }
    let mut kinds: Vec<Option<&'static str>> = vec![None; statement.columns.len()];
    let mut rows = Vec::new();
    let mut truncated = false;
    let read = statement.for_each(|row| {
        if rows.len() == limit {
            truncated = true;
            return false;
        }
        for (kind, value) in kinds.iter_mut().zip(row) {
            *kind = kind.or_else(|| kind_of(*value));
        }
        rows.push(row.iter().map(|value| value_of(*value)).collect());
        !cancel.is_cancelled()
    });
    read.map_err(|error| failure(&error))?;
    let columns = statement.columns.iter().cloned().zip(kinds);
    Ok(Table {
        columns: columns
            .map(|(name, kind)| Column {
                name,
                kind: kind.unwrap_or("null"),
            })
            .collect(),
        rows,
        truncated,
        ms: begin.elapsed().as_secs_f64() * 1e3,
    })
}

fn kind_of(value: ValueRef<'_>) -> Option<&'static str> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(_) => Some("integer"),
        ValueRef::Real(_) => Some("real"),
        ValueRef::Text(_) => Some("text"),
        ValueRef::Blob(_) => Some("blob"),
    }
}

fn value_of(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => signed(number),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
        ValueRef::Blob(bytes) => format!("{} bytes", bytes.len()).into(),
    }
}

fn failure(error: &Error) -> Failure {
    let status = match error {
        Error::Query { .. } | Error::NotAllowed => StatusCode::BAD_REQUEST,
        Error::Interrupted => return Failure::cancelled(),
        Error::TimedOut { .. } | Error::OutOfMemory { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    Failure::new(status, sentence(error))
}
