//! Values of Arrow columns as objects of Python, for programs without a library that reads Arrow.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float64Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyList, PyString};

use crate::error::UsageError;

/// A column: numpy's name of its type, its values, and which of them are unknown.
pub(crate) fn of<'py>(
    py: Python<'py>,
    kind: &DataType,
    arrays: &[&ArrayRef],
) -> PyResult<(&'static str, Bound<'py, PyAny>, Option<Bound<'py, PyBytes>>)> {
    let unknown = unknown(py, arrays)?;
    macro_rules! numbers {
        ($name:literal, $kind:ty) => {
            ($name, numbers::<$kind>(py, arrays)?.into_any(), unknown)
        };
    }
    Ok(match kind {
        DataType::UInt8 => numbers!("u1", UInt8Type),
        DataType::UInt16 => numbers!("u2", UInt16Type),
        DataType::UInt32 => numbers!("u4", UInt32Type),
        DataType::UInt64 => numbers!("u8", UInt64Type),
        DataType::Int32 => numbers!("i4", Int32Type),
        DataType::Int64 => numbers!("i8", Int64Type),
        DataType::Float64 => numbers!("f8", Float64Type),
        DataType::Boolean => {
            let flags = arrays.iter().flat_map(|array| {
                let array = array.as_boolean();
                (0..array.len()).map(move |row| u8::from(array.value(row)))
            });
            let flags: Vec<u8> = flags.collect();
            ("?", PyBytes::new(py, &flags).into_any(), unknown)
        }
        _ => {
            let list = PyList::empty(py);
            for array in arrays {
                for row in 0..array.len() {
                    list.append(value(py, array, row)?)?;
                }
            }
            ("object", list.into_any(), None)
        }
    })
}

/// A byte for each row; `None` if all values are known.
fn unknown<'py>(py: Python<'py>, arrays: &[&ArrayRef]) -> PyResult<Option<Bound<'py, PyBytes>>> {
    if arrays.iter().all(|array| array.null_count() == 0) {
        return Ok(None);
    }
    let rows = arrays
        .iter()
        .flat_map(|array| (0..array.len()).map(|row| u8::from(array.is_null(row))));
    let rows: Vec<u8> = rows.collect();
    Ok(Some(PyBytes::new(py, &rows)))
}

/// The values of all arrays as bytes.
fn numbers<'py, T: ArrowPrimitiveType>(
    py: Python<'py>,
    arrays: &[&ArrayRef],
) -> PyResult<Bound<'py, PyBytes>> {
    let slices = arrays.iter().map(|array| {
        let array = array.as_primitive::<T>();
        array.values().inner().as_slice()
    });
    let slices: Vec<&[u8]> = slices.collect();
    PyBytes::new_with(py, slices.iter().map(|slice| slice.len()).sum(), |mut bytes| {
        for slice in slices {
            let (here, rest) = std::mem::take(&mut bytes).split_at_mut(slice.len());
            here.copy_from_slice(slice);
            bytes = rest;
        }
        Ok(())
    })
}

/// Adds the rows of a batch as dictionaries.
pub(crate) fn push_dicts<'py>(
    py: Python<'py>,
    batch: &RecordBatch,
    rows: &mut Vec<Bound<'py, PyDict>>,
) -> PyResult<()> {
    let first = rows.len();
    rows.extend((0..batch.num_rows()).map(|_| PyDict::new(py)));
    for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
        let name = PyString::intern(py, field.name());
        for (row, dict) in rows[first..].iter().enumerate() {
            dict.set_item(&name, value(py, array, row)?)?;
        }
    }
    Ok(())
}

/// A value of a column as an object of Python.
fn value<'py>(py: Python<'py>, array: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    macro_rules! number {
        ($kind:ty) => {
            array
                .as_primitive::<$kind>()
                .value(row)
                .into_pyobject(py)?
                .into_any()
        };
    }
    Ok(match array.data_type() {
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::Float64 => number!(Float64Type),
        DataType::Boolean => PyBool::new(py, array.as_boolean().value(row))
            .to_owned()
            .into_any(),
        DataType::Utf8 => PyString::new(py, array.as_string::<i32>().value(row)).into_any(),
        DataType::Binary => pyo3::types::PyBytes::new(py, array.as_binary::<i32>().value(row)).into_any(),
        DataType::Dictionary(..) => {
            let keys = array.as_dictionary::<Int32Type>();
            let texts = keys.values().as_string::<i32>();
            PyString::new(py, texts.value(keys.keys().value(row) as usize)).into_any()
        }
        other => {
            return Err(UsageError::new_err(format!(
                "a column of {other} has no Python form"
            )));
        }
    })
}
