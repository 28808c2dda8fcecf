//! One column of an event's own table, for exporters that see all events alike but need a kind or a weight.

use tracesmith_format::{Columns, Table, Value};
use tracesmith_trace::Found;

/// A column of a table.
pub(super) struct RowValue(Option<u16>);

impl RowValue {
    /// The column with this name, such as `shape.kind`.
    pub(super) fn of<T: Table>(name: &str) -> Self {
        let specs = T::Columns::specs();
        RowValue(specs.iter().find(|spec| spec.name == name).map(|spec| spec.id))
    }

    /// The number or code in it, of a row of the same table.
    pub(super) fn number(&self, found: &Found<'_>) -> Option<u64> {
        let mut answer = None;
        found.columns.visit_row(found.row, &mut |id, value| {
            if Some(id) == self.0
                && let Value::Number(number) | Value::Code(_, number) = value
            {
                answer = Some(number);
            }
        });
        answer
    }
}
