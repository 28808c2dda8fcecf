//! The columns of a table's file: their names, and which numbers stand for nothing.

use std::collections::BTreeSet;

use tracesmith_format::{BlockKind, ColumnSpec, ColumnType, Columns, Meaning, Table, Value};

/// One column of a table's file.
pub(super) struct Column {
    /// Its name there.
    pub(super) name: String,
    /// What the format says of it.
    pub(super) spec: ColumnSpec,
}

impl Column {
    /// Whether a number stands for nothing here. Streams are numbered by the runtime, and some runtimes have a stream 0.
    pub(super) fn is_missing(&self, number: u64) -> bool {
        use Meaning::*;
        number == 0
            && matches!(
                self.spec.meaning,
                Time | String
                    | Stack
                    | Frame
                    | Image
                    | Host
                    | Process
                    | Thread
                    | Device
                    | Context
                    | Clock
                    | Correlation
                    | Graph
                    | GraphNode
                    | Module
                    | Address
            )
    }

    /// A value as it is written: what stands for nothing becomes [`Value::Missing`], bytes become their number.
    pub(super) fn cell(&self, value: Value) -> Value {
        match value {
            Value::Number(number) if self.is_missing(number) => Value::Missing,
            Value::Blob(length) => Value::Number(length as u64),
            other => other,
        }
    }
}

/// The columns of a table's file: `shape.name` becomes `name`, unless two columns would be named alike; then all of
/// them keep their group's name, as in `shape_name`. A column of bytes becomes their number and says so. Rows of a
/// dictionary get the id that others know them by.
pub(super) fn columns_of<T: Table>() -> Vec<Column> {
    let mut specs: Vec<ColumnSpec> = T::Columns::specs()
        .into_iter()
        .filter(|spec| spec.column_type != ColumnType::Index)
        .collect();
    if has_ids::<T>() {
        specs.insert(0, id_column(T::KIND));
    }
    let short = |spec: &ColumnSpec| {
        let name = spec.name.rsplit('.').next().unwrap_or(&spec.name);
        match spec.column_type {
            ColumnType::Blob => format!("{name}_bytes"),
            _ => name.to_owned(),
        }
    };
    let mut seen = BTreeSet::new();
    let twice: BTreeSet<String> = specs
        .iter()
        .map(short)
        .filter(|name| !seen.insert(name.clone()))
        .collect();
    specs
        .into_iter()
        .map(|spec| {
            let short = short(&spec);
            Column {
                name: if twice.contains(&short) {
                    spec.name.replace('.', "_")
                } else {
                    short
                },
                spec,
            }
        })
        .collect()
}

/// Whether rows of a table are known by their place in it.
pub(super) fn has_ids<T: Table>() -> bool {
    matches!(T::KIND, BlockKind::FRAMES | BlockKind::STACKS)
}

/// Column 0, which no table has.
fn id_column(kind: BlockKind) -> ColumnSpec {
    ColumnSpec {
        id: 0,
        group: 0,
        name: "id".to_owned(),
        column_type: ColumnType::U32,
        meaning: if kind == BlockKind::FRAMES {
            Meaning::Frame
        } else {
            Meaning::Stack
        },
        codes: None,
        doc: "Its id.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracesmith_format::tables::{Collective, Frame, Kernel, Module};

    fn names<T: Table>() -> Vec<String> {
        columns_of::<T>().into_iter().map(|column| column.name).collect()
    }

    #[test]
    fn names_are_short_and_unlike() {
        let kernel = names::<Kernel>();
        for name in [
            "start",
            "end",
            "name",
            "demangled",
            "grid_x",
            "device",
            "process",
            "stream",
        ] {
            assert!(kernel.iter().any(|column| column == name), "{name}");
        }
        assert!(names::<Module>().contains(&"code_bytes".to_owned()));
        assert_eq!(names::<Frame>()[0], "id");
        for table in super::super::tables() {
            let mut names: Vec<_> = table.columns.iter().map(|column| &column.name).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{}", table.name);
        }
        assert!(names::<Collective>().contains(&"communicator_name".to_owned()));
    }
}
