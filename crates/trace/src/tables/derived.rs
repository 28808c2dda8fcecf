//! Columns of stored tables that are computed from other columns of the same row.

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_schema::ArrowError;

use super::array::{self, Texts};
use super::catalog::{ColumnInfo, ColumnKind, StoredColumn};

/// A computed column, with the positions of the columns that it needs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Derived {
    /// End minus start.
    Duration { start: usize, end: usize },
    /// The demangled name, or the symbol if there is none. Both are keys of one dictionary, so no text is looked at.
    ReadableName { symbol: usize, demangled: usize },
    /// The same, shortened once for each text of the dictionary.
    ShortName { symbol: usize, demangled: usize },
}

impl Derived {
    /// What is computed for a table of these columns.
    pub(super) fn of(columns: &[StoredColumn], times: Option<(usize, usize)>) -> Vec<Self> {
        let position = |name: &str| columns.iter().position(|column| column.name == name);
        let mut derived: Vec<Derived> = times
            .map(|(start, end)| Self::Duration { start, end })
            .into_iter()
            .collect();
        if let (Some(symbol), Some(demangled)) = (position("name"), position("demangled")) {
            derived.push(Self::ReadableName { symbol, demangled });
            derived.push(Self::ShortName { symbol, demangled });
        }
        derived
    }

    pub(super) fn info(self) -> ColumnInfo {
        let (name, kind, unit, doc) = match self {
            Self::Duration { .. } => ("duration", ColumnKind::U64, Some("ns"), "End minus start."),
            Self::ReadableName { .. } => (
                "readable_name",
                ColumnKind::Text,
                None,
                "The demangled name, or the symbol if it is not mangled.",
            ),
            Self::ShortName { .. } => (
                "short_name",
                ColumnKind::Text,
                None,
                "The readable name without return type, template arguments and parameters.",
            ),
        };
        ColumnInfo {
            name: name.to_owned(),
            kind,
            unit,
            doc,
        }
    }

    /// The positions of the columns that it is computed from.
    pub(super) fn inputs(self) -> [usize; 2] {
        match self {
            Self::Duration { start, end } => [start, end],
            Self::ReadableName { symbol, demangled } | Self::ShortName { symbol, demangled } => {
                [symbol, demangled]
            }
        }
    }

    /// Its values, from those of its inputs.
    pub(super) fn array(self, inputs: [&ArrayRef; 2], texts: &Texts) -> Result<ArrayRef, ArrowError> {
        let [first, second] = inputs;
        match self {
            Self::Duration { .. } => Ok(array::duration(first, second)),
            Self::ReadableName { .. } => {
                array::dictionary(readable_keys(first, second), texts.values(), true)
            }
            Self::ShortName { .. } => array::dictionary(readable_keys(first, second), texts.short(), true),
        }
    }
}

/// The key of the demangled name, or that of the symbol. 0 is no name.
fn readable_keys(symbols: &ArrayRef, demangled: &ArrayRef) -> Vec<u32> {
    let symbols = symbols.as_dictionary::<Int32Type>().keys();
    let demangled = demangled.as_dictionary::<Int32Type>().keys();
    debug_assert_eq!(symbols.len(), demangled.len());
    let keys = symbols.values().iter().zip(demangled.values());
    keys.map(|(symbol, demangled)| if *demangled == 0 { *symbol } else { *demangled } as u32)
        .collect()
}
