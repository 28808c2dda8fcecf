//! The cells of a table's file.

use tracesmith_format::Value;
use tracesmith_trace::tables::{StoredColumn, is_optional};

/// A value as it is written: a number that stands for nothing becomes [`Value::Missing`], bytes become their number.
pub(super) fn cell(column: &StoredColumn, value: Value) -> Value {
    match value {
        Value::Number(0) if is_optional(column.spec.meaning) => Value::Missing,
        Value::Blob(length) => Value::Number(length as u64),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use tracesmith_format::Table;
    use tracesmith_format::tables::{Collective, Frame, Kernel, Module};
    use tracesmith_trace::tables::columns_of;

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
