//! A picture of a matrix: the means of blocks of its elements.

use std::ops::Range;

use super::mean::Mean;
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
    let (mut means, mut others) = (vec![Mean::default(); count], vec![0_u64; count]);
    let (mut row, mut column) = (0, 0);
    each_chunk(memory, moment, range, |bytes| {
        for element in bytes.chunks_exact(number.bytes()) {
            if row >= shape.rows {
                return;
            }
            let block = row * rows / shape.rows * columns + column * columns / shape.columns;
            let value = number.value(element);
            if value.is_finite() {
                means[block as usize].add(value);
            } else {
                others[block as usize] += 1;
            }
            column += 1;
            if column == shape.columns {
                (row, column) = (row + 1, 0);
            }
        }
    })?;
    Ok(Grid {
        rows: rows as usize,
        columns: columns as usize,
        means: means.iter().map(Mean::value).collect(),
        not_finite: others,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug::memory::tests::Bytes;

    #[test]
    fn blocks_have_the_means_of_their_elements() {
        let mut memory = Bytes((0..24).collect());
        let shape = |rows, columns| Shape { rows, columns };
        let mut of = |own, most| grid(&mut memory, Moment::Now, &(0..24), Number::U8, own, most).unwrap();
        let whole = of(shape(4, 6), shape(9, 9));
        assert_eq!((whole.rows, whole.columns, whole.means[7]), (4, 6, Some(7.0)));
        let blocks = of(shape(4, 6), shape(2, 3));
        // 0, 1, 6, 7; then 2, 3, 8, 9.
        assert_eq!(blocks.means[..2], [Some(3.5), Some(5.5)]);
        assert_eq!((blocks.means.len(), blocks.not_finite), (6, vec![0; 6]));
        // Elements beyond the matrix do not count.
        assert_eq!(of(shape(1, 2), shape(1, 1)).means, [Some(0.5)]);
    }

    #[test]
    fn elements_that_are_not_finite_are_counted() {
        let numbers = [f32::NAN, 1.0, f32::INFINITY, f32::NAN];
        let mut memory = Bytes(numbers.iter().flat_map(|number| number.to_le_bytes()).collect());
        let (shape, most) = (Shape { rows: 2, columns: 2 }, Shape { rows: 2, columns: 1 });
        let found = grid(&mut memory, Moment::Now, &(0..16), Number::F32, shape, most).unwrap();
        assert_eq!(
            (found.means, found.not_finite),
            (vec![Some(1.0), None], vec![1, 2])
        );
    }
}
