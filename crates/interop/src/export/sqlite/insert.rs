//! Rows on their way into a database.

use rusqlite::{Connection, Statement};

use super::schema::Table;

/// One value of a row.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cell<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(&'a str),
}

impl From<i64> for Cell<'_> {
    fn from(value: i64) -> Self {
        Cell::Integer(value)
    }
}

impl From<u32> for Cell<'_> {
    fn from(value: u32) -> Self {
        Cell::Integer(i64::from(value))
    }
}

/// By its bits: SQLite has no unsigned numbers, and addresses use all of them.
impl From<u64> for Cell<'_> {
    fn from(value: u64) -> Self {
        Cell::Integer(value as i64)
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(value: &'a str) -> Self {
        Cell::Text(value)
    }
}

/// Null for none.
impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Null, Into::into)
    }
}

/// Null for 0, which means none.
pub(super) fn unless_zero<'a>(value: u64) -> Cell<'a> {
    (value != 0).then_some(value).into()
}

/// Null for the empty text.
pub(super) fn unless_empty(text: &str) -> Cell<'_> {
    (!text.is_empty()).then_some(text).into()
}

/// A table that rows are added to. It is made with its first row, as nsys does.
pub(super) struct Insert<'c> {
    connection: &'c Connection,
    table: Table,
    statement: Option<Statement<'c>>,
}

impl<'c> Insert<'c> {
    /// For a table that appears only when it has rows.
    pub(super) fn new(connection: &'c Connection, table: Table) -> Self {
        Insert {
            connection,
            table,
            statement: None,
        }
    }

    /// For a table that is always there.
    pub(super) fn always(connection: &'c Connection, table: Table) -> rusqlite::Result<Self> {
        let mut insert = Self::new(connection, table);
        insert.make()?;
        Ok(insert)
    }

    fn make(&mut self) -> rusqlite::Result<()> {
        let Table { name, columns } = self.table;
        self.connection
            .execute_batch(&format!("CREATE TABLE {name} ({columns})"))?;
        let marks = vec!["?"; self.table.width()].join(",");
        self.statement = Some(
            self.connection
                .prepare(&format!("INSERT INTO {name} VALUES ({marks})"))?,
        );
        Ok(())
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: &[Cell<'_>]) -> rusqlite::Result<()> {
        if self.statement.is_none() {
            self.make()?;
        }
        let statement = self.statement.as_mut().expect("it was just made");
        for (index, cell) in cells.iter().enumerate() {
            match cell {
                Cell::Null => statement.raw_bind_parameter(index + 1, rusqlite::types::Null)?,
                Cell::Integer(value) => statement.raw_bind_parameter(index + 1, value)?,
                Cell::Real(value) => statement.raw_bind_parameter(index + 1, value)?,
                Cell::Text(value) => statement.raw_bind_parameter(index + 1, value)?,
            }
        }
        statement.raw_execute()?;
        Ok(())
    }
}
