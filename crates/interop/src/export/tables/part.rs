//! The wanted rows of one block, whatever its table.

use tracesmith_format::{ClockId, ColumnView, Columns, Meaning, Table, Timestamp, Value};
use tracesmith_trace::Trace;

use super::column::cell;
use crate::export::ExportOptions;
use tracesmith_trace::tables::{StoredColumn as Column, has_ids};

/// The wanted rows of one block.
pub(super) struct Part<'a> {
    trace: &'a Trace,
    clock: ClockId,
    visit: VisitFn<'a>,
    /// The id before that of the first row, for a table whose rows are known by their place.
    base: Option<u64>,
    rows: usize,
    /// The wanted rows, unless all are.
    kept: Option<Vec<u32>>,
    /// Rows without a time, when only some time is wanted.
    pub(super) without_time: u64,
}

type VisitFn<'a> = Box<dyn Fn(&mut dyn FnMut(u16, ColumnView<'_>)) + 'a>;

impl<'a> Part<'a> {
    /// All rows of a block.
    pub(super) fn whole<T: Table>(
        trace: &'a Trace,
        clock: ClockId,
        base: u64,
        columns: &'a T::Columns,
    ) -> Self {
        Part {
            trace,
            clock,
            visit: Box::new(|f| columns.visit_columns(f)),
            base: has_ids::<T>().then_some(base),
            rows: columns.len(),
            kept: None,
            without_time: 0,
        }
    }

    /// Only the rows that are wanted: in the stretch of time, and on the streams where the table has any.
    pub(super) fn wanted<T: Table>(mut self, options: &ExportOptions, columns: &T::Columns) -> Self {
        if options.range.is_all() && options.streams.is_none() {
            return self;
        }
        let mut streams = None;
        if let Some(wanted) = &options.streams
            && let Some(spec) = T::Columns::specs()
                .iter()
                .find(|spec| spec.name == "place.stream")
        {
            columns.visit_columns(&mut |id, column| {
                if id == spec.id {
                    let is_wanted = |row| match column.of_row(row) {
                        Value::Number(stream) => wanted.iter().any(|id| id.0 == stream),
                        _ => false,
                    };
                    streams = Some((0..columns.len()).map(is_wanted).collect::<Vec<bool>>());
                }
            });
        }
        let mut kept = Vec::new();
        for row in 0..self.rows {
            let (start, end) = columns.times(row);
            let (start, end) = (self.on_timeline(start), self.on_timeline(end));
            let time_fits = options.wants_time(start, end);
            if !time_fits && !start.is_some() {
                self.without_time += 1;
            }
            if time_fits && streams.as_ref().is_none_or(|wanted| wanted[row]) {
                kept.push(row as u32);
            }
        }
        self.kept = Some(kept);
        self
    }

    /// Number of wanted rows.
    pub(super) fn len(&self) -> usize {
        self.kept.as_ref().map_or(self.rows, Vec::len)
    }

    /// Calls `f` with every column of the table's file, of which `columns` is the list.
    pub(super) fn for_each_column(
        &self,
        columns: &[Column],
        f: &mut dyn FnMut(usize, &Column, PartColumn<'_>),
    ) {
        let mut position = 0;
        let mut give = |id: u16, view: ColumnView<'_>| {
            let column = &columns[position];
            debug_assert_eq!(
                column.spec.id, id,
                "columns come in the order of their description"
            );
            f(
                position,
                column,
                PartColumn {
                    part: self,
                    column,
                    view,
                },
            );
            position += 1;
        };
        if let Some(base) = self.base {
            let view = ColumnView {
                values: self.rows,
                value: &|row| Value::Number(base.saturating_add(row as u64 + 1)),
                index: None,
            };
            give(0, view);
        }
        (self.visit)(&mut give);
    }

    fn on_timeline(&self, time: Timestamp) -> Timestamp {
        if self.clock == self.trace.clock_map.reference() {
            return time;
        }
        self.trace.clock_map.convert(self.clock, time).time
    }
}

/// One column of a part.
pub(super) struct PartColumn<'p> {
    part: &'p Part<'p>,
    column: &'p Column,
    view: ColumnView<'p>,
}

impl PartColumn<'_> {
    /// Makes something of every wanted row's value: of shared values once each.
    pub(super) fn map<R: Clone>(&self, make: impl Fn(Value) -> R, mut take: impl FnMut(R)) {
        match self.view.index {
            Some(index) => {
                let made: Vec<R> = (0..self.view.values).map(|at| make(self.cell(at))).collect();
                self.for_each_row(|row| take(made[index[row] as usize].clone()));
            }
            None => self.for_each_row(|row| take(make(self.cell(row)))),
        }
    }

    /// Calls `f` with every distinct value, wanted or not, and with that of every row where none are shared.
    #[cfg(feature = "parquet")]
    pub(super) fn for_each_value(&self, mut f: impl FnMut(Value)) {
        (0..self.view.values).for_each(|at| f(self.cell(at)));
    }

    fn for_each_row(&self, mut f: impl FnMut(usize)) {
        match &self.part.kept {
            Some(rows) => rows.iter().for_each(|row| f(*row as usize)),
            None => (0..self.part.rows).for_each(f),
        }
    }

    /// A value as it is written, times on the trace's timeline.
    fn cell(&self, at: usize) -> Value {
        match cell(self.column, (self.view.value)(at)) {
            Value::Number(time) if self.column.spec.meaning == Meaning::Time => {
                Value::Number(self.part.on_timeline(Timestamp(time)).0)
            }
            other => other,
        }
    }
}
