//! A picture of a matrix: the means of blocks of its elements.

use std::ops::Range;

use super::memory::{Memory, Moment, each_chunk};
use super::number::Number;
use crate::error::Error;

/// Blocks of a matrix.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    /// Rows of blocks.
    pub rows: usize,
    /// Blocks of a row.
    pub columns: usize,
    /// The mean of the finite elements of each block, row by row. `None` if it has none.
    pub means: Vec<Option<f64>>,
    /// Elements of each block that are NaN or infinite.
    pub not_finite: Vec<u64>,
}

/// The size of a matrix, or of a picture of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of rows.
    pub rows: u64,
    /// Elements of a row.
    pub columns: u64,
}

/// Reads a matrix that is stored row by row from the start of a range. The picture has at most the size `most`.
///
/// # Errors
///
/// If the contents are not known.
pub fn grid(
    memory: &mut impl Memory,
    moment: Moment,
    range: &Range<u64>,
    number: Number,
    shape: Shape,
    most: Shape,
) -> Result<Grid, Error> {
    let rows = shape.rows.min(most.rows);
    let columns = shape.columns.min(most.columns);
    let count = (rows * columns) as usize;
    let (mut sums, mut finite, mut others) = (vec![0.0; count], vec![0_u64; count], vec![0_u64; count]);
    let (mut row, mut column) = (0, 0);
    each_chunk(memory, moment, range, |bytes| {
        for element in bytes.chunks_exact(number.bytes()) {
            if row >= shape.rows {
                return;
            }
            let block = row * rows / shape.rows * columns + column * columns / shape.columns;
            let value = number.value(element);
            if value.is_finite() {
                sums[block as usize] += value;
                finite[block as usize] += 1;
            } else {
                others[block as usize] += 1;
            }
            column += 1;
            if column == shape.columns {
                (row, column) = (row + 1, 0);
            }
        }
    })?;
    let mean = |(sum, count): (f64, u64)| (count > 0).then(|| sum / count as f64);
    Ok(Grid {
        rows: rows as usize,
        columns: columns as usize,
        means: sums.into_iter().zip(finite).map(mean).collect(),
        not_finite: others,
    })
}
