//! Rows of tables and views, as the catalog has them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracesmith_trace::tables::{Cancel, Scan};

use super::Subject;
use super::analysis::range_of;
use super::states;
use crate::payload::{Keep, Payload};
use crate::reply::{Asked, Failure, Named};
use crate::studio::Studio;
use crate::work::Length;

/// Rows of an answer, unless fewer are asked for.
const MOST_ROWS: usize = 10_000;
/// Whole numbers above this lose digits in a browser. They are sent as texts.
const MOST_EXACT: u64 = 1 << 53;
/// The columns that are moments. They count from the trace's origin, as all times that a page gets.
const MOMENTS: [&str; 3] = ["start", "end", "time"];

#[derive(Debug, Deserialize)]
pub(super) struct Chosen {
    /// Separated by commas; all without this.
    #[serde(default)]
    columns: String,
    from: Option<u64>,
    to: Option<u64>,
    limit: Option<usize>,
    #[serde(default)]
    offset: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct Rows {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<Value>>,
    /// All that are in the time range.
    pub(super) total: usize,
}

pub(super) async fn table(
    State(studio): State<Arc<Studio>>,
    Named((id, name)): Named<(usize, String)>,
    Asked(chosen): Asked<Chosen>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let subject = Subject::of(&studio, id).await?;
    let answer = studio.work.run(Length::Long, move |cancel| {
        let rows = match name.as_str() {
            states::NAME => states::totals(&subject.ready)?,
            name => rows(&subject, name, &chosen, cancel)?,
        };
        Payload::json(&rows)
    });
    Ok(answer.await?.response(&headers, Keep::No))
}

fn rows(subject: &Subject, name: &str, chosen: &Chosen, cancel: &Cancel) -> Result<Rows, Failure> {
    let (trace, origin) = (&subject.ready.trace, subject.origin());
    let table = trace.table(name)?;
    let range = range_of(trace, origin, chosen.from, chosen.to)?;
    let columns = chosen.columns.split(',').filter(|column| !column.is_empty());
    let columns: Vec<String> = columns.map(str::to_owned).collect();
    let scan = Scan {
        columns: (!columns.is_empty()).then_some(columns),
        cancel: cancel.clone(),
        ..Scan::default()
    };
    let scan = scan.between(range.from.map(|time| time.0), range.to.map(|time| time.0));
    let batches = table.scan(&scan)?;
    let columns: Vec<String> = batches
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect();
    let limit = chosen.limit.unwrap_or(MOST_ROWS).min(MOST_ROWS);
    let wanted = chosen.offset..chosen.offset.saturating_add(limit);
    let mut rows = Vec::new();
    let mut total = 0;
    for batch in batches {
        let batch = batch?;
        let first = wanted.start.max(total) - total;
        let last = wanted.end.saturating_sub(total).min(batch.num_rows());
        rows.extend((first..last).map(|row| row_of(&batch, &columns, row, origin)));
        total += batch.num_rows();
    }
    Ok(Rows { columns, rows, total })
}

fn row_of(batch: &RecordBatch, columns: &[String], row: usize, origin: u64) -> Vec<Value> {
    let cells = batch.columns().iter().zip(columns);
    let cell = |(array, name): (&ArrayRef, &String)| {
        let is_moment = MOMENTS.contains(&name.as_str()) && array.data_type() == &DataType::UInt64;
        match is_moment && array.is_valid(row) {
            true => moment(array.as_primitive::<UInt64Type>().value(row), origin),
            false => value_of(array, row),
        }
    };
    cells.map(cell).collect()
}

/// A time of the timeline, counted from the origin. 0 is not known.
fn moment(time: u64, origin: u64) -> Value {
    match time {
        0 => Value::Null,
        time => signed((i128::from(time) - i128::from(origin)) as i64),
    }
}

fn value_of(array: &ArrayRef, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::UInt8 => array.as_primitive::<UInt8Type>().value(row).into(),
        DataType::UInt16 => array.as_primitive::<UInt16Type>().value(row).into(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).into(),
        DataType::UInt64 => unsigned(array.as_primitive::<UInt64Type>().value(row)),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).into(),
        DataType::Int64 => signed(array.as_primitive::<Int64Type>().value(row)),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).into(),
        DataType::Boolean => array.as_boolean().value(row).into(),
        DataType::Dictionary(..) => {
            let texts = array.as_dictionary::<Int32Type>();
            let key = texts.key(row).unwrap_or_default();
            texts.values().as_string::<i32>().value(key).into()
        }
        // The catalog has no other types.
        _ => Value::Null,
    }
}

fn unsigned(number: u64) -> Value {
    match number {
        0..=MOST_EXACT => number.into(),
        _ => number.to_string().into(),
    }
}

/// A number that a browser reads exactly, or its digits.
pub(super) fn signed(number: i64) -> Value {
    match number.unsigned_abs() {
        0..=MOST_EXACT => number.into(),
        _ => number.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_a_browser_would_round_are_texts() {
        assert_eq!(unsigned(1 << 53), Value::from(1_u64 << 53));
        assert_eq!(unsigned((1 << 53) + 1), Value::from("9007199254740993"));
        assert_eq!(signed(i64::MIN), Value::from("-9223372036854775808"));
        assert_eq!(
            (moment(0, 5), moment(7, 5), moment(3, 5)),
            (Value::Null, 2.into(), (-2).into())
        );
    }
}
