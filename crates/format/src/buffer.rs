//! The columns of a block as plain vectors, for programs that hand them on without knowing their table.

use std::sync::Arc;

use crate::blob::Blobs;

/// The values of a column.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each variant is named after the type of its values")]
pub enum ColumnValues {
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    F64(Vec<f64>),
    Bool(Vec<bool>),
    Blobs(Blobs),
}

impl ColumnValues {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::U8(values) => values.len(),
            Self::U16(values) => values.len(),
            Self::U32(values) => values.len(),
            Self::U64(values) => values.len(),
            Self::I32(values) => values.len(),
            Self::I64(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::Bool(values) => values.len(),
            Self::Blobs(values) => values.len(),
        }
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A column of a block.
#[derive(Clone, Debug)]
pub struct ColumnBuffer {
    /// Its values: one for each row, or each distinct value once.
    pub values: ColumnValues,
    /// Which value each row has, if rows share values. All columns of a group share one index.
    pub index: Option<Arc<Vec<u32>>>,
}
