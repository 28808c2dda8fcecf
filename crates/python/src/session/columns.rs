//! Columns of Python as rows: single values, lists, and arrays of numbers as bytes.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyList, PyString, PyTuple};
use tracesmith_format::{StringId, ThreadId, Timestamp};

use super::row::{Column, Kind, Recorded, Row, Value};
use crate::error::UsageError;

/// The values of a column.
enum Values {
    /// The same for all rows.
    One(Value),
    Many(Vec<Value>),
}

/// Gives texts their numbers. `None` if there is no memory for them.
pub(super) type Intern<'a> = &'a dyn Fn(&str) -> Option<StringId>;

/// Why there are no rows.
pub(super) enum NoRows {
    /// The columns do not fit the table.
    Wrong(PyErr),
    /// No memory is left for the texts of so many rows.
    Full(usize),
}

impl From<PyErr> for NoRows {
    fn from(error: PyErr) -> Self {
        NoRows::Wrong(error)
    }
}

/// The rows that columns describe.
pub(super) fn rows<R: Recorded>(
    table: &str,
    columns: &Bound<'_, PyDict>,
    now: Timestamp,
    thread: ThreadId,
    intern: Intern<'_>,
) -> Result<Vec<Row>, NoRows> {
    let mut count = None;
    let mut found: Vec<(usize, Values)> = Vec::with_capacity(columns.len());
    let mut is_full = false;
    for (key, values) in columns {
        let key: Bound<'_, PyString> = key.cast_into().map_err(PyErr::from)?;
        let key = key.to_str()?;
        let Some(position) = R::COLUMNS.iter().position(|column| column.name == key) else {
            return Err(unknown_column::<R>(table, key).into());
        };
        let values = read(table, &R::COLUMNS[position], &values, intern, &mut is_full)?;
        if let Values::Many(many) = &values {
            let expected = *count.get_or_insert(many.len());
            if many.len() != expected {
                let message = format!(
                    "the column {key} has {} values, and others have {expected}",
                    many.len()
                );
                return Err(UsageError::new_err(message).into());
            }
        }
        found.push((position, values));
    }
    let is_given = |name: &&&str| found.iter().any(|(at, _)| R::COLUMNS[*at].name == **name);
    if let Some(missing) = R::REQUIRED.iter().find(|name| !is_given(name)) {
        let message = format!("a row of {table} needs the column {missing}");
        return Err(UsageError::new_err(message).into());
    }
    let count = count.unwrap_or(1);
    if is_full {
        return Err(NoRows::Full(count));
    }
    // In the order of the list: a duration needs the start.
    found.sort_by_key(|(position, _)| *position);
    let mut rows = Vec::with_capacity(count);
    for number in 0..count {
        let mut row = R::at(now, thread);
        for (position, values) in &found {
            let column = &R::COLUMNS[*position];
            let value = match values {
                Values::One(value) => *value,
                Values::Many(values) => values[number],
            };
            let is_required = R::REQUIRED.contains(&column.name);
            if matches!(value, Value::None) && !is_required {
                continue;
            }
            (column.set)(&mut row, value).map_err(|_| {
                let shown = match value {
                    Value::None => "None".to_owned(),
                    Value::Unsigned(number) => number.to_string(),
                    Value::Signed(number) => number.to_string(),
                    Value::Float(number) => number.to_string(),
                };
                UsageError::new_err(format!(
                    "{shown} does not fit into the column {} of {table}",
                    column.name
                ))
            })?;
        }
        if let Some(place) = row.place()
            && !place.context.is_some()
        {
            // The runtime's number of the context is not known: each device has one.
            place.context.0 = place.device.0;
        }
        rows.push(row.into_row());
    }
    Ok(rows)
}

fn unknown_column<R: Recorded>(table: &str, name: &str) -> PyErr {
    let known: Vec<&str> = R::COLUMNS.iter().map(|column| column.name).collect();
    UsageError::new_err(format!(
        "the table {table} has no column {name} that can be recorded; it has {}",
        known.join(", ")
    ))
}

fn read<R>(
    table: &str,
    column: &Column<R>,
    values: &Bound<'_, PyAny>,
    intern: Intern<'_>,
    is_full: &mut bool,
) -> PyResult<Values> {
    let mut one = |item: &Bound<'_, PyAny>| one(table, column, item, intern, is_full);
    if let Ok(list) = values.cast::<PyList>() {
        return Ok(Values::Many(
            list.iter().map(|item| one(&item)).collect::<PyResult<_>>()?,
        ));
    }
    if let Ok(array) = values.cast::<PyTuple>() {
        let (kind, bytes): (String, Bound<'_, PyBytes>) = array.extract()?;
        if !matches!(column.kind, Kind::Number) {
            return Err(wrong_type(table, column, "numbers"));
        }
        return Ok(Values::Many(numbers(&kind, bytes.as_bytes())?));
    }
    Ok(Values::One(one(values)?))
}

/// An array of numbers of 64 bits.
fn numbers(kind: &str, bytes: &[u8]) -> PyResult<Vec<Value>> {
    let (words, []) = bytes.as_chunks::<8>() else {
        return Err(UsageError::new_err("an array of numbers has numbers of 64 bits"));
    };
    let value: fn([u8; 8]) -> Value = match kind {
        "u8" => |word| Value::Unsigned(u64::from_ne_bytes(word)),
        "i8" => |word| integer(i64::from_ne_bytes(word)),
        "f8" => |word| Value::Float(f64::from_ne_bytes(word)),
        other => return Err(UsageError::new_err(format!("unknown type of numbers: {other}"))),
    };
    Ok(words.iter().map(|word| value(*word)).collect())
}

fn integer(number: i64) -> Value {
    u64::try_from(number).map_or(Value::Signed(number), Value::Unsigned)
}

fn one<R>(
    table: &str,
    column: &Column<R>,
    item: &Bound<'_, PyAny>,
    intern: Intern<'_>,
    is_full: &mut bool,
) -> PyResult<Value> {
    if item.is_none() {
        return Ok(Value::None);
    }
    match column.kind {
        Kind::Text => {
            let Ok(text) = item.cast::<PyString>() else {
                return Err(wrong_type(table, column, "a text"));
            };
            let id = intern(text.to_str()?);
            *is_full |= id.is_none();
            Ok(id.map_or(Value::None, |id| Value::Unsigned(u64::from(id.0))))
        }
        Kind::Code(codes) => code(table, column, item, &codes()),
        Kind::Number => {
            if item.is_instance_of::<PyString>() {
                return Err(wrong_type(table, column, "a number"));
            }
            if item.is_instance_of::<PyFloat>() {
                return Ok(Value::Float(item.extract()?));
            }
            if let Ok(number) = item.extract::<u64>() {
                return Ok(Value::Unsigned(number));
            }
            if let Ok(number) = item.extract::<i64>() {
                return Ok(Value::Signed(number));
            }
            if let Ok(number) = item.extract::<f64>() {
                return Ok(Value::Float(number));
            }
            Err(wrong_type(table, column, "a number of 64 bits"))
        }
    }
}

fn code<R>(
    table: &str,
    column: &Column<R>,
    item: &Bound<'_, PyAny>,
    codes: &[(u8, &'static str)],
) -> PyResult<Value> {
    let Ok(text) = item.cast::<PyString>() else {
        return Err(wrong_type(table, column, "a text"));
    };
    let text = text.to_str()?.replace('_', " ");
    if let Some((number, _)) = codes.iter().find(|(_, name)| *name == text) {
        return Ok(Value::Unsigned(u64::from(*number)));
    }
    let known: Vec<&str> = codes.iter().map(|(_, name)| *name).collect();
    Err(UsageError::new_err(format!(
        "{} of {table} is none of {}: {text}",
        column.name,
        known.join(", ")
    )))
}

fn wrong_type<R>(table: &str, column: &Column<R>, expected: &str) -> PyErr {
    PyTypeError::new_err(format!("{} of {table} must be {expected}", column.name))
}
