//! The file's description of itself: every table and column that its writer knew, by name.

use crate::block::BlockKind;
use crate::column_value::ColumnType;
use crate::dictionary::Dictionaries;
use crate::error::Error;
use crate::for_each_table;
use crate::table::{ColumnSpec, Columns, Table};
use crate::tables::*;

/// All tables with their columns, in the order of their kinds.
pub fn tables() -> Vec<(BlockKind, Vec<ColumnSpec>)> {
    macro_rules! list {
        ($($field:ident: $row:ident,)*) => {
            vec![
                describe::<Text>(),
                describe::<Frame>(),
                describe::<Stack>(),
                describe::<SchemaColumn>(),
                describe::<IndexEntry>(),
                $(describe::<$row>(),)*
            ]
        };
    }
    let mut tables = for_each_table!(list);
    tables.sort_by_key(|(kind, _)| *kind);
    tables
}

fn describe<T: Table>() -> (BlockKind, Vec<ColumnSpec>) {
    (T::KIND, T::Columns::specs())
}

/// Bytes of a row without any encoding: what `info` measures compression against.
pub(crate) fn row_width<T: Table>() -> u64 {
    T::Columns::specs()
        .iter()
        .filter(|spec| spec.column_type != ColumnType::Index)
        .map(|spec| spec.column_type.width_bytes())
        .sum()
}

pub(crate) fn columns(dictionaries: &mut Dictionaries) -> Result<Schema, Error> {
    let mut schema = Schema::default();
    for (kind, columns) in tables() {
        let table_name = dictionaries.string(kind.name().unwrap_or_default())?;
        for column in columns {
            schema.push(&SchemaColumn {
                table: kind.0,
                table_name,
                column: column.id,
                group: column.group,
                name: dictionaries.string(&column.name)?,
                column_type: column.column_type as u8,
                meaning: column.meaning as u8,
            });
        }
    }
    Ok(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_numbers_and_names_its_columns_once() {
        for (kind, columns) in tables() {
            let mut ids: Vec<_> = columns.iter().map(|c| c.id).collect();
            let mut names: Vec<_> = columns.iter().map(|c| c.name.clone()).collect();
            ids.sort_unstable();
            names.sort_unstable();
            ids.dedup();
            names.dedup();
            assert_eq!((ids.len(), names.len()), (columns.len(), columns.len()), "{kind}");
            assert!(ids[0] > 0, "column 0 of {kind} would read as no group");
        }
    }

    #[test]
    fn every_known_kind_but_the_end_marker_has_a_table() {
        let mut kinds: Vec<_> = tables().into_iter().map(|(kind, _)| kind).collect();
        kinds.push(BlockKind::END);
        assert_eq!(kinds, BlockKind::ALL);
    }
}
