//! Stored tables, by name.

use std::any::Any;
use std::sync::LazyLock;

use tracesmith_format::tables::*;
use tracesmith_format::{
    Block, BlockKind, ColumnBuffer, ColumnValues, Columns, Decoder, Error, Projection, Table, for_each_table,
};

use super::catalog::{ColumnInfo, ID_COLUMN, StoredColumn, TableInfo, TableKind, columns_of, has_ids};
use super::derived::Derived;
use crate::model::native::AnySource;
use crate::model::trace::Trace;

/// A stored table.
pub(super) struct Stored {
    pub(super) name: &'static str,
    pub(super) doc: &'static str,
    pub(super) kind: BlockKind,
    pub(super) columns: Vec<StoredColumn>,
    /// The positions of start and end, in a table of events that has both.
    pub(super) times: Option<(usize, usize)>,
    /// Columns that follow the stored ones.
    pub(super) derived: Vec<Derived>,
    pub(super) read: ReadFn,
    pub(super) current: CurrentFn,
}

/// Columns by their numbers, and how many rows they have.
pub(super) struct Rows {
    pub(super) count: usize,
    pub(super) columns: Vec<(u16, ColumnBuffer)>,
}

type ReadFn = fn(&mut Decoder<'_, AnySource>, &Block, &Projection) -> Result<Rows, Error>;
/// The rows of a table in which a later row replaces an earlier one of the same thing; `None` for other tables.
type CurrentFn = fn(&Trace, &Projection) -> Option<Rows>;

/// All stored tables but those of the file itself: what rows are pushed to, and the dictionaries of code.
pub(super) static STORED: LazyLock<Vec<Stored>> = LazyLock::new(|| {
    macro_rules! list {
        ($($field:ident: $row:ident,)*) => {
            vec![$(Stored::of::<$row>(),)* Stored::of::<Frame>(), Stored::of::<Stack>()]
        };
    }
    for_each_table!(list)
});

impl Stored {
    fn of<T: Table>() -> Self {
        let columns = columns_of::<T>();
        let position = |name: &str| columns.iter().position(|column| column.spec.name == name);
        let times = match T::TIMES {
            [start, end] if start != end && T::KIND.is_events() => position(start).zip(position(end)),
            _ => None,
        };
        // A table may have a duration of its own.
        let times = times.filter(|_| columns.iter().all(|column| column.name != "duration"));
        Stored {
            name: T::KIND.name().expect("every table of ours has a name"),
            doc: T::DOC,
            kind: T::KIND,
            derived: Derived::of(&columns, times),
            columns,
            times,
            read: read::<T>,
            current: current::<T>,
        }
    }

    pub(super) fn info(&self) -> TableInfo {
        let mut columns: Vec<ColumnInfo> = self.columns.iter().map(StoredColumn::info).collect();
        columns.extend(self.derived.iter().map(|derived| derived.info()));
        TableInfo {
            name: self.name,
            kind: TableKind::Stored,
            doc: self.doc,
            columns,
        }
    }
}

fn read<T: Table>(
    decoder: &mut Decoder<'_, AnySource>,
    block: &Block,
    wanted: &Projection,
) -> Result<Rows, Error> {
    let columns = decoder.read::<T>(block, wanted)?;
    let mut rows = rows_of::<T>(columns, wanted);
    if has_ids::<T>() {
        let first = block.header.base + 1;
        let ids = (first..).take(rows.count).map(|id| id as u32).collect();
        let values = ColumnValues::U32(ids);
        rows.columns
            .push((ID_COLUMN, ColumnBuffer { values, index: None }));
    }
    Ok(rows)
}

fn rows_of<T: Table>(columns: T::Columns, wanted: &Projection) -> Rows {
    let mut rows = Rows {
        count: columns.len(),
        columns: Vec::new(),
    };
    columns.into_buffers(wanted, &mut |id, column| rows.columns.push((id, column)));
    rows
}

fn current<T: Table>(trace: &Trace, wanted: &Projection) -> Option<Rows> {
    let facts;
    let rows: &dyn Any = match T::KIND {
        BlockKind::METADATA => {
            facts = trace.latest_rows(|fact: &Metadata| fact.key);
            &facts
        }
        BlockKind::HOSTS => &trace.hosts,
        BlockKind::PROCESSES => &trace.processes,
        BlockKind::THREADS => &trace.threads,
        BlockKind::DEVICES => &trace.devices,
        BlockKind::CONTEXTS => &trace.contexts,
        BlockKind::STREAMS => &trace.streams,
        BlockKind::CLOCKS => &trace.clocks,
        _ => return None,
    };
    let mut columns = T::Columns::default();
    for row in rows.downcast_ref::<Vec<T>>()? {
        columns.push(row);
    }
    Some(rows_of::<T>(columns, wanted))
}
