//! SQLite files of other tools, opened without trust.
//!
//! A database can hold more than data: views, triggers, generated columns, trees that loop. Only real tables are read,
//! by statements of our own that name stored columns; the connection cannot write, runs nothing that the schema brings,
//! and stops when the work or the rows go beyond what a file of this size can hold. A column that is missing reads as
//! null, so that one statement serves all versions of a schema.

mod query;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags, Row};
use tempfile::NamedTempFile;
use tracesmith_format::tables::HealthCause;

use crate::error::Error;
use crate::import::{Builder, Input};
use query::quoted;
pub(super) use query::{Column, Query, Record};

/// What every SQLite file begins with.
pub(super) const MAGIC: &[u8] = b"SQLite format 3\0";

/// The longest text or row that is read.
const MAX_VALUE_BYTES: i32 = 64 << 20;
/// The longest statement that a schema may hold: the widest real table takes 5 KB.
const MAX_STATEMENT_BYTES: i32 = 1 << 20;
/// Instructions between two looks at the budget.
const INSTRUCTIONS_A_LOOK: i32 = 10_000;
/// Instructions that any file may take, and those for each of its bytes. Real exports take one to three a byte.
const INSTRUCTIONS_FREELY: u64 = 10_000_000;
const INSTRUCTIONS_A_BYTE: u64 = 32;
/// No row takes less: two bytes for its place in the page, and two for its length and number.
const LEAST_ROW_BYTES: u64 = 4;

/// An open database.
pub(super) struct Database {
    connection: Connection,
    format: &'static str,
    /// The stored columns of every real table.
    tables: BTreeMap<String, Vec<String>>,
    rows_left: Cell<u64>,
    /// Whether the file is shorter than it says.
    truncated: bool,
}

impl Database {
    /// Opens a file. What is packed, piped or in memory goes through a temporary file that has no name any more once
    /// it is open.
    pub(super) fn open(input: &mut Input, format: &'static str) -> Result<Self, Error> {
        if let Some(path) = input.plain_path() {
            let bytes = std::fs::metadata(path)
                .map_err(|source| Error::Open { source })?
                .len();
            return Self::open_path(path, &access_of(path), bytes, format);
        }
        let read = |source| Error::Read { source };
        let mut copy = NamedTempFile::new().map_err(read)?;
        let bytes = io::copy(input, &mut copy).map_err(read)?;
        // Nobody else knows the copy, so nobody changes it.
        Self::open_path(copy.path(), "immutable=1", bytes, format)
    }

    fn open_path(path: &Path, access: &str, bytes: u64, format: &'static str) -> Result<Self, Error> {
        let opened = |schema| -> rusqlite::Result<Self> {
            let connection = connect(path, access, bytes, schema)?;
            let tables = tables_of(&connection)?;
            Ok(Database {
                connection,
                format,
                tables,
                rows_left: Cell::new(bytes / LEAST_ROW_BYTES + 1),
                truncated: schema == Schema::AsFarAsThere,
            })
        };
        let database = match opened(Schema::Whole) {
            // A file without its end is refused as a whole, unless the schema is taken as far as it is there.
            Err(error) if is_damage(&error) => opened(Schema::AsFarAsThere),
            other => other,
        };
        database.map_err(|error| foreign(format, &error, "schema"))
    }

    /// The names of its tables.
    pub(super) fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.keys().map(String::as_str)
    }

    /// Whether there is such a table.
    pub(super) fn has(&self, table: &str) -> bool {
        self.tables.contains_key(table)
    }

    /// A question to a table; `None` when there is no such table.
    pub(super) fn query<'d>(&'d self, table: &str) -> Option<Query<'d>> {
        let (name, known) = self.tables.get_key_value(table)?;
        Some(Query::new(name, known))
    }

    /// Calls `each` with every row that the query finds. What cannot be read of a damaged table is noted as cut.
    pub(super) fn read<'b, 'w>(
        &self,
        query: &Query<'_>,
        builder: &mut Builder<'b, 'w>,
        mut each: impl FnMut(&Record<'_>, &mut Builder<'b, 'w>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let wrong = Cell::new(0);
        let result = self.step(&query.sql(), |row| each(&Record { row, wrong: &wrong }, builder));
        builder.doubt(
            HealthCause::OTHER,
            &format!("values of the wrong type in {}", query.table),
            wrong.get(),
        );
        self.settle(result, query.table, builder)
    }

    /// The number of rows of a table, as far as they can be counted.
    pub(super) fn count(&self, table: &str, builder: &mut Builder<'_, '_>) -> Result<u64, Error> {
        let mut count = 0;
        let sql = format!("SELECT COUNT(*) FROM {}", quoted(table));
        let result = self.step(&sql, |row| {
            count = row
                .get::<_, i64>(0)
                .map_or(0, |count| count.max(0).unsigned_abs());
            Ok(())
        });
        self.settle(result, table, builder)?;
        Ok(count)
    }

    /// The smallest integer in a column; `None` without any, and where it cannot be read.
    pub(super) fn least(&self, table: &str, column: &str) -> Option<i64> {
        let query = self.query(table).filter(|query| query.has(column))?;
        let (table, column) = (quoted(query.table), quoted(column));
        let sql = format!("SELECT MIN({column}) FROM {table} WHERE typeof({column}) = 'integer'");
        let mut least = None;
        // Damage is noted when the table is read.
        self.step(&sql, |row| {
            least = row.get::<_, Option<i64>>(0).unwrap_or_default();
            Ok(())
        })
        .ok()?;
        least
    }

    /// Notes that the file has no end.
    pub(super) fn note_truncation(&self, builder: &mut Builder<'_, '_>) {
        if self.truncated {
            builder.cut("the database is shorter than it says");
        }
    }

    fn step(&self, sql: &str, mut each: impl FnMut(&Row<'_>) -> Result<(), Error>) -> Result<(), Stop> {
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let Some(left) = self.rows_left.get().checked_sub(1) else {
                return Err(Stop::TooManyRows);
            };
            self.rows_left.set(left);
            each(row).map_err(Stop::Failed)?;
        }
        Ok(())
    }

    fn settle(
        &self,
        result: Result<(), Stop>,
        table: &str,
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        match result {
            Ok(()) => Ok(()),
            Err(Stop::Failed(error)) => Err(error),
            Err(Stop::TooManyRows) => {
                builder.cut(&format!("{table}: more rows than the file can hold"));
                Ok(())
            }
            Err(Stop::Sql(error)) if is_damage(&error) => {
                builder.cut(&format!("{table}: {}", message_of(&error)));
                Ok(())
            }
            Err(Stop::Sql(error)) => Err(foreign(self.format, &error, &format!("table {table}"))),
        }
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database")
            .field("format", &self.format)
            .field("tables", &self.tables.len())
            .finish_non_exhaustive()
    }
}

/// Why reading stopped.
enum Stop {
    Sql(rusqlite::Error),
    TooManyRows,
    Failed(Error),
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Stop::Sql(error)
    }
}

/// How much of a schema is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Schema {
    Whole,
    AsFarAsThere,
}

/// How a file of somebody else is opened. A file that may be written just now is locked while we read. One in WAL mode
/// whose log is gone is whole, and SQLite would want to make a new log beside it: that one is taken as unchanging.
fn access_of(path: &Path) -> String {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    if is_wal(path) && !PathBuf::from(log).exists() {
        "immutable=1".to_owned()
    } else {
        "mode=ro".to_owned()
    }
}

/// Whether the header says that the file is read through a log.
fn is_wal(path: &Path) -> bool {
    let mut header = [0; 20];
    std::fs::File::open(path)
        .and_then(|mut file| io::Read::read_exact(&mut file, &mut header))
        .is_ok_and(|()| header[19] == 2)
}

fn connect(path: &Path, access: &str, bytes: u64, schema: Schema) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut connection = Connection::open_with_flags(uri_of(&path, access), flags)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)?;
    connection.set_limit(Limit::SQLITE_LIMIT_SQL_LENGTH, MAX_STATEMENT_BYTES)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    let budget = INSTRUCTIONS_FREELY.saturating_add(bytes.saturating_mul(INSTRUCTIONS_A_BYTE));
    let mut looks = budget / INSTRUCTIONS_A_LOOK.unsigned_abs() as u64;
    connection.progress_handler(
        INSTRUCTIONS_A_LOOK,
        Some(move || {
            looks = looks.saturating_sub(1);
            looks == 0
        }),
    )?;
    for (pragma, value) in [
        ("trusted_schema", "OFF"),
        ("cell_size_check", "ON"),
        ("query_only", "ON"),
        ("mmap_size", "0"),
        ("temp_store", "FILE"),
    ] {
        connection.pragma_update(None, pragma, value)?;
    }
    if schema == Schema::AsFarAsThere {
        connection.pragma_update(None, "writable_schema", "ON")?;
    }
    Ok(connection)
}

/// A path as SQLite wants it, with everything escaped that has a meaning there.
fn uri_of(path: &Path, access: &str) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => uri.push(*byte as char),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("{uri}?{access}")
}

/// The real tables with their stored columns. A view has no root page, neither has a virtual table; generated columns
/// are not listed.
fn tables_of(connection: &Connection) -> rusqlite::Result<BTreeMap<String, Vec<String>>> {
    let mut tables = BTreeMap::new();
    let mut names =
        connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")?;
    let mut columns = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
    let mut rows = names.query([])?;
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        let list = columns
            .query_map([&name], |row| row.get(0))?
            .collect::<rusqlite::Result<Vec<String>>>()?;
        if !list.is_empty() {
            tables.insert(name, list);
        }
    }
    Ok(tables)
}

/// Whether the file is to blame, and other parts of it may still be good.
fn is_damage(error: &rusqlite::Error) -> bool {
    match error {
        rusqlite::Error::SqliteFailure(failure, _) => {
            matches!(
                failure.code,
                ErrorCode::DatabaseCorrupt
                    | ErrorCode::NotADatabase
                    | ErrorCode::OperationInterrupted
                    | ErrorCode::TooBig
            ) || failure.extended_code == rusqlite::ffi::SQLITE_IOERR_SHORT_READ
        }
        rusqlite::Error::SqlInputError { .. }
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::Utf8Error(..) => true,
        _ => false,
    }
}

fn message_of(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(failure, _) if failure.code == ErrorCode::OperationInterrupted => {
            "reading it takes more work than a file of this size should".to_owned()
        }
        rusqlite::Error::SqliteFailure(failure, _) if failure.code == ErrorCode::DatabaseBusy => {
            "another program is writing it".to_owned()
        }
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    }
}

fn foreign(format: &'static str, error: &rusqlite::Error, position: &str) -> Error {
    Error::Foreign {
        format,
        problem: message_of(error),
        position: position.to_owned(),
    }
}
