//! SQL over traces.
//!
//! A [`Database`] is SQLite in memory, with a read-only virtual table for each table and view of the trace crate's
//! catalog. Rows are never copied into SQLite: it reads the columns of a scan, and hands down which columns, times and
//! names a query needs. Queries cannot write, cannot open files, and end when their time is up.

mod cell;
mod complete;
mod database;
mod error;
mod functions;
mod ids;
mod names;
mod parameters;
mod plan;
mod relation;
mod result;
mod rows;
mod schema;
mod table;
mod text;

pub use complete::Completions;
pub use database::{Database, Limits, Statement};
pub use error::Error;
pub use functions::FUNCTIONS;
pub use names::{FOREIGN_VIEWS, ForeignView};
pub use parameters::Parameters;
pub use result::RowTable;
pub use rusqlite::types::{Type, Value, ValueRef};
pub use schema::{Named, NamedColumn, NamedKind};
pub use text::statements;
