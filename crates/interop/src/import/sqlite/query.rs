//! Questions to tables of a database, and the rows that they find.

use std::borrow::Cow;
use std::cell::Cell;

use rusqlite::Row;
use rusqlite::types::ValueRef;

/// What is wanted of a table.
pub(in crate::import) struct Query<'d> {
    pub(super) table: &'d str,
    known: &'d [String],
    selected: Vec<String>,
    join: Option<Join<'d>>,
    condition: String,
}

/// A second table whose row is looked up for each row of the first.
struct Join<'d> {
    table: &'d str,
    known: &'d [String],
    condition: String,
}

/// A column of a query.
#[derive(Clone, Copy, Debug)]
pub(in crate::import) struct Column(usize);

impl<'d> Query<'d> {
    /// A question to a table with these columns.
    pub(super) fn new(table: &'d str, known: &'d [String]) -> Self {
        Query {
            table,
            known,
            selected: Vec::new(),
            join: None,
            condition: String::new(),
        }
    }

    /// Asks for a column too. One that the table does not have is null in every row.
    pub(in crate::import) fn column(&mut self, name: &str) -> Column {
        self.select(reference(self.known, "own", name))
    }

    /// Looks up a row of `other`, of the same database, by what both columns hold. Without such a row, or when a column
    /// is missing, all columns of the other table are null.
    pub(in crate::import) fn look_up(
        &mut self,
        other: Option<Query<'d>>,
        own_column: &str,
        other_column: &str,
    ) {
        let Some(other) = other.filter(|other| other.has(other_column) && self.has(own_column)) else {
            return;
        };
        self.join = Some(Join {
            table: other.table,
            known: other.known,
            condition: format!("other.{} = own.{}", quoted(other_column), quoted(own_column)),
        });
    }

    /// Asks for a column of the other table.
    pub(in crate::import) fn other_column(&mut self, name: &str) -> Column {
        let known = self.join.as_ref().map_or(&[][..], |join| join.known);
        self.select(reference(known, "other", name))
    }

    /// Asks for a text within a column of the other table that holds JSON.
    pub(in crate::import) fn other_json_text(&mut self, name: &str, key: &str) -> Column {
        let known = self.join.as_ref().map_or(&[][..], |join| join.known);
        let json = reference(known, "other", name);
        self.select(format!(
            "CASE WHEN json_valid({json}) THEN json_extract({json}, '$.{key}') END"
        ))
    }

    fn select(&mut self, expression: String) -> Column {
        self.selected.push(expression);
        Column(self.selected.len() - 1)
    }

    /// Whether the table has such a column.
    pub(in crate::import) fn has(&self, name: &str) -> bool {
        self.known.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Only rows whose `column` is one of these.
    pub(in crate::import) fn only(&mut self, column: &str, values: &[i64]) {
        let values: Vec<String> = values.iter().map(i64::to_string).collect();
        self.condition = format!(" WHERE own.{} IN ({})", quoted(column), values.join(","));
    }

    /// Rows in the order of these columns, all of which the table has.
    pub(in crate::import) fn ordered(&mut self, columns: &[&str]) {
        let columns: Vec<String> = columns
            .iter()
            .map(|column| format!("own.{}", quoted(column)))
            .collect();
        self.condition.push_str(" ORDER BY ");
        self.condition.push_str(&columns.join(", "));
    }

    pub(super) fn sql(&self) -> String {
        let join = self.join.as_ref().map_or_else(String::new, |join| {
            format!(" LEFT JOIN {} AS other ON {}", quoted(join.table), join.condition)
        });
        format!(
            "SELECT {} FROM {} AS own{join}{}",
            self.selected.join(", "),
            quoted(self.table),
            self.condition
        )
    }
}

/// A column as a statement names it; null for one that is not known.
fn reference(known: &[String], table: &str, name: &str) -> String {
    let known = known.iter().find(|known| known.eq_ignore_ascii_case(name));
    known.map_or_else(|| "NULL".to_owned(), |known| format!("{table}.{}", quoted(known)))
}

/// A row that was found.
pub(in crate::import) struct Record<'r> {
    pub(super) row: &'r Row<'r>,
    /// Values that had another type than was asked for.
    pub(super) wrong: &'r Cell<u64>,
}

impl<'r> Record<'r> {
    /// An integer; `None` for null, and for what is none, which is counted.
    #[inline]
    pub(in crate::import) fn integer(&self, column: Column) -> Option<i64> {
        match self.value(column) {
            ValueRef::Integer(value) => Some(value),
            ValueRef::Null => None,
            // Beyond this a double does not hold every integer.
            ValueRef::Real(value) if value.fract() == 0.0 && value.abs() <= (1u64 << 53) as f64 => {
                Some(value as i64)
            }
            _ => self.wrong(),
        }
    }

    /// A number.
    pub(in crate::import) fn number(&self, column: Column) -> Option<f64> {
        match self.value(column) {
            ValueRef::Real(value) => Some(value),
            ValueRef::Integer(value) => Some(value as f64),
            ValueRef::Null => None,
            _ => self.wrong(),
        }
    }

    /// A text.
    pub(in crate::import) fn text(&self, column: Column) -> Option<Cow<'r, str>> {
        match self.value(column) {
            ValueRef::Text(bytes) => Some(String::from_utf8_lossy(bytes)),
            ValueRef::Null => None,
            _ => self.wrong(),
        }
    }

    /// Whatever is there, as text: for facts whose type differs between versions.
    pub(in crate::import) fn any_text(&self, column: Column) -> Option<String> {
        match self.value(column) {
            ValueRef::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            ValueRef::Integer(value) => Some(value.to_string()),
            ValueRef::Real(value) => Some(value.to_string()),
            ValueRef::Null => None,
            ValueRef::Blob(_) => self.wrong(),
        }
    }

    #[inline]
    fn value(&self, column: Column) -> ValueRef<'r> {
        self.row.get_ref(column.0).unwrap_or(ValueRef::Null)
    }

    fn wrong<T>(&self) -> Option<T> {
        self.wrong.set(self.wrong.get() + 1);
        None
    }
}

/// A name as statements have it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may stop on any error")]
mod tests {
    use proptest::prelude::*;
    use rusqlite::Connection;
    use rusqlite::types::Value;

    use super::*;

    /// What is read of a value, and how many of the readings found another type than they asked for.
    #[derive(Debug, PartialEq)]
    struct Readings {
        integer: Option<i64>,
        number: Option<f64>,
        text: Option<String>,
        any_text: Option<String>,
        wrong: u64,
    }

    fn readings(value: &Value) -> Readings {
        let connection = Connection::open_in_memory().unwrap();
        let read = |row: &Row<'_>| {
            let wrong = Cell::new(0);
            let record = Record { row, wrong: &wrong };
            let column = Column(0);
            Ok(Readings {
                integer: record.integer(column),
                number: record.number(column),
                text: record.text(column).map(Cow::into_owned),
                any_text: record.any_text(column),
                wrong: wrong.get(),
            })
        };
        connection.query_row("SELECT ?1", [value], read).unwrap()
    }

    proptest! {
        #[test]
        fn an_integer_is_exact_and_no_text(value: i64) {
            let expected = Readings {
                integer: Some(value),
                number: Some(value as f64),
                text: None,
                any_text: Some(value.to_string()),
                wrong: 1,
            };
            prop_assert_eq!(readings(&Value::Integer(value)), expected);
        }

        #[test]
        fn a_real_is_an_integer_only_where_it_holds_one_exactly(
            value in prop_oneof![
                any::<f64>().prop_filter("stored as null", |value| !value.is_nan()),
                any::<i32>().prop_map(f64::from),
                Just((1u64 << 53) as f64),
                Just(-((1u64 << 53) as f64)),
                Just((1u64 << 53) as f64 * 2.0),
            ],
        ) {
            let found = readings(&Value::Real(value));
            let is_exact = value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0;
            prop_assert_eq!(found.integer.map(|integer| integer as f64), is_exact.then_some(value));
            prop_assert_eq!(found.number, Some(value));
            prop_assert_eq!(found.text, None);
            prop_assert_eq!(found.any_text.unwrap().parse::<f64>().unwrap(), value);
            prop_assert_eq!(found.wrong, if is_exact { 1 } else { 2 });
        }

        #[test]
        fn a_text_is_no_number_whatever_it_says(value in prop_oneof![".*", "-?[0-9]{1,20}"]) {
            let expected = Readings {
                integer: None,
                number: None,
                text: Some(value.clone()),
                any_text: Some(value.clone()),
                wrong: 2,
            };
            prop_assert_eq!(readings(&Value::Text(value)), expected);
        }

        #[test]
        fn bytes_are_nothing_that_is_asked_for(value: Vec<u8>) {
            let expected = Readings {
                integer: None,
                number: None,
                text: None,
                any_text: None,
                wrong: 4,
            };
            prop_assert_eq!(readings(&Value::Blob(value)), expected);
        }

        /// Names come from the file: whatever they hold, they stay one name.
        #[test]
        fn a_quoted_name_is_the_name(name in "[^\0]{1,40}") {
            let connection = Connection::open_in_memory().unwrap();
            let statement = connection.prepare(&format!("SELECT 1 AS {}", quoted(&name))).unwrap();
            prop_assert_eq!(statement.column_name(0).unwrap(), name);
        }
    }

    #[test]
    fn null_is_nothing_and_not_wrong() {
        let found = readings(&Value::Null);
        assert_eq!((found.integer, found.number, found.wrong), (None, None, 0));
        assert_eq!((found.text, found.any_text), (None, None));
    }
}
