//! SQLite over traces.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::{Type, Value, ValueRef};
use rusqlite::{Connection, ErrorCode};
use tracesmith_trace::Trace;
use tracesmith_trace::tables::catalog;

use crate::error::Error;
use crate::functions::FUNCTIONS;
use crate::ids;
use crate::names::FOREIGN_VIEWS;
use crate::parameters::{Parameters, without_value};
use crate::relation::{NamedTrace, Relation, Shared};
use crate::result::{RowCell, RowKind, RowTable};
use crate::table::register;

/// What a query may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time for one query.
    pub time: Option<Duration>,
    /// Memory of SQLite itself, for sorting and grouping.
    pub memory_bytes: i64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            time: None,
            memory_bytes: 4 << 30,
        }
    }
}

/// Traces that can be queried.
pub struct Database {
    connection: Connection,
    shared: Arc<Shared>,
    limits: Limits,
    /// When the query that runs must end.
    deadline: Arc<Mutex<Option<Instant>>>,
}

/// A query that is being read.
pub struct Statement<'d> {
    /// The names of its columns.
    pub columns: Vec<String>,
    /// The types that its columns have in their tables, of those that are columns of a table.
    pub declared: Vec<Option<Type>>,
    database: &'d Database,
    statement: rusqlite::Statement<'d>,
    has_values: bool,
}

/// SQLite asks after so many of its steps whether to go on.
const STEPS: i32 = 10_000;

impl Database {
    /// Opens traces under their names. With several, each table has a `trace` column.
    pub fn new(traces: Vec<(String, Arc<Trace>)>, limits: Limits) -> Result<Self, Error> {
        let connection = Connection::open_in_memory()?;
        // Sorting stays in memory, within the limit: a query writes no file. Changing this drops temporary views.
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        let shared = Arc::new(Shared {
            traces: traces
                .into_iter()
                .map(|(name, trace)| NamedTrace { name, trace })
                .collect(),
            running: Arc::default(),
            failure: Mutex::new(None),
        });
        for info in catalog() {
            register(&connection, Relation::table(&shared, info))?;
        }
        for function in FUNCTIONS {
            register(&connection, Relation::function(&shared, function))?;
        }
        ids::register(&connection, &shared)?;
        let trace = if shared.traces.len() > 1 { "trace," } else { "" };
        for view in FOREIGN_VIEWS {
            let query = view.query(trace);
            connection.execute_batch(&format!("create temp view \"{}\" as {query}", view.name))?;
        }
        connection.pragma_update(None, "hard_heap_limit", limits.memory_bytes)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.pragma_update(None, "query_only", true)?;
        let mut database = Database {
            connection,
            shared,
            limits,
            deadline: Arc::default(),
        };
        database.forbid_writing()?;
        database.watch()?;
        Ok(database)
    }

    /// A switch that ends the query that runs, from any thread. The next query runs again.
    pub fn interrupter(&self) -> impl Fn() + Send + Sync + 'static + use<> {
        let running = Arc::clone(&self.shared.running);
        move || {
            running.is_interrupted.store(true, Ordering::Relaxed);
            running.cancel().cancel();
        }
    }

    /// The time that one query may take.
    pub fn time_limit(&self) -> Option<Duration> {
        self.limits.time
    }

    /// Changes the time that one query may take.
    pub fn set_time_limit(&mut self, limit: Option<Duration>) {
        self.limits.time = limit;
    }

    /// Prepares a query. Its time starts now.
    pub fn prepare(&self, sql: &str) -> Result<Statement<'_>, Error> {
        self.shared.running.begin();
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) =
            self.limits.time.map(|time| Instant::now() + time);
        let statement = self
            .connection
            .prepare(sql)
            .map_err(|error| self.explain(error))?;
        if statement.column_count() == 0 {
            return Err(Error::Query {
                message: "the statement returns no rows".to_owned(),
            });
        }
        Ok(Statement {
            columns: statement.column_names().map(str::to_owned).collect(),
            declared: statement
                .columns()
                .map(|column| declared(column.decl_type()))
                .collect(),
            database: self,
            has_values: statement.parameter_count() == 0,
            statement,
        })
    }

    fn forbid_writing(&mut self) -> Result<(), Error> {
        self.connection
            .authorizer(Some(|context: AuthContext<'_>| match context.action {
                AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => Authorization::Allow,
                AuthAction::Function { function_name } if function_name != "load_extension" => {
                    Authorization::Allow
                }
                AuthAction::Pragma { pragma_name, .. }
                    if [
                        "table_info",
                        "table_xinfo",
                        "table_list",
                        "function_list",
                        "module_list",
                    ]
                    .contains(&pragma_name) =>
                {
                    Authorization::Allow
                }
                _ => Authorization::Deny,
            }))?;
        Ok(())
    }

    /// Ends queries whose time is up, or that were interrupted.
    fn watch(&mut self) -> Result<(), Error> {
        let (deadline, running) = (Arc::clone(&self.deadline), Arc::clone(&self.shared.running));
        self.connection.progress_handler(
            STEPS,
            Some(move || {
                let deadline = *deadline.lock().unwrap_or_else(PoisonError::into_inner);
                let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
                if is_late {
                    running.cancel().cancel();
                }
                is_late || running.is_interrupted.load(Ordering::Relaxed)
            }),
        )?;
        Ok(())
    }

    /// An error of SQLite, in the words of this crate.
    fn explain(&self, error: rusqlite::Error) -> Error {
        let failure = self
            .shared
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let is_late = || {
            let deadline = *self.deadline.lock().unwrap_or_else(PoisonError::into_inner);
            deadline.is_some_and(|deadline| Instant::now() >= deadline)
        };
        let ended = |otherwise: Error| match self.limits.time {
            _ if self.shared.running.is_interrupted.load(Ordering::Relaxed) => Error::Interrupted,
            Some(limit) if is_late() => Error::TimedOut { limit },
            _ => otherwise,
        };
        match (failure, error) {
            (Some(Error::Trace(tracesmith_trace::Error::Cancelled)), error) => ended(error.into()),
            (Some(failure), _) => failure,
            // SQLite reports a forbidden function as an error of the query's text.
            (None, rusqlite::Error::SqlInputError { msg, .. }) if msg.starts_with("not authorized") => {
                Error::NotAllowed
            }
            (None, rusqlite::Error::SqlInputError { msg, sql, offset, .. }) => Error::Query {
                message: located(&msg, &sql, offset),
            },
            (None, rusqlite::Error::SqliteFailure(code, message)) => match code.code {
                ErrorCode::OperationInterrupted => ended(Error::Interrupted),
                ErrorCode::OutOfMemory => Error::OutOfMemory {
                    limit_bytes: self.limits.memory_bytes,
                },
                ErrorCode::AuthorizationForStatementDenied | ErrorCode::ReadOnly => Error::NotAllowed,
                _ => Error::Query {
                    message: message.unwrap_or_else(|| code.to_string()),
                },
            },
            (None, other) => Error::Sqlite(other),
        }
    }
}

/// The type of a declaration of this crate's tables.
fn declared(declaration: Option<&str>) -> Option<Type> {
    match declaration? {
        "TEXT" => Some(Type::Text),
        "REAL" => Some(Type::Real),
        "INTEGER" => Some(Type::Integer),
        _ => None,
    }
}

/// The message with the line and column in the query, and the line itself.
fn located(message: &str, sql: &str, offset: i32) -> String {
    let Some(offset) = usize::try_from(offset)
        .ok()
        .filter(|offset| sql.is_char_boundary(*offset))
    else {
        return message.to_owned();
    };
    let before = &sql[..offset];
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap_or("").chars().count();
    let text = sql.lines().nth(line).unwrap_or("");
    format!(
        "{message}, at line {}, column {}\n  {text}\n  {}^",
        line + 1,
        column + 1,
        " ".repeat(column)
    )
}

impl Statement<'_> {
    /// Gives the parameters of the query their values.
    pub fn bind(&mut self, parameters: Parameters) -> Result<(), Error> {
        parameters.bind(self)?;
        self.has_values = true;
        Ok(())
    }

    /// The names of the parameters, without the character before a name. `?` has none.
    pub(crate) fn parameters(&self) -> Vec<Option<String>> {
        let name = |index| self.statement.parameter_name(index);
        (1..=self.statement.parameter_count())
            .map(|index| name(index).and_then(|name| Some(name.get(1..)?.to_owned())))
            .collect()
    }

    /// Gives a parameter its value. The first one is number 1.
    pub(crate) fn bind_value(&mut self, number: usize, value: Value) -> Result<(), Error> {
        let bound = self.statement.raw_bind_parameter(number, value);
        bound.map_err(|error| self.database.explain(error))
    }

    /// Reads all rows. Columns get their types from their values.
    pub fn into_rows(mut self) -> Result<RowTable, Error> {
        let names = self.columns.iter().cloned();
        let kinds = self.declared.iter().map(|declared| RowKind::of(*declared));
        let mut rows = RowTable::new(names.zip(kinds));
        self.for_each(|row| {
            rows.push(row.iter().map(|value| RowCell::from(*value)));
            true
        })?;
        Ok(rows)
    }

    /// Calls `f` with every row, until it returns false.
    pub fn for_each(&mut self, mut f: impl FnMut(&[ValueRef<'_>]) -> bool) -> Result<(), Error> {
        let count = self.columns.len();
        let database = self.database;
        if !self.has_values {
            let first = self.parameters().into_iter().next().flatten();
            let words = without_value(0, first);
            return Err(Error::Query {
                message: format!(
                    "{words}; write the value into the query, or pass params to sql() in Python"
                ),
            });
        }
        let mut rows = self.statement.raw_query();
        loop {
            let Some(row) = rows.next().map_err(|error| database.explain(error))? else {
                return Ok(());
            };
            let values = (0..count).map(|column| row.get_ref(column));
            let values: Vec<ValueRef<'_>> = values
                .collect::<Result<_, _>>()
                .map_err(|error| database.explain(error))?;
            if !f(&values) {
                return Ok(());
            }
        }
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database")
            .field("traces", &self.shared.traces)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Statement<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Statement")
            .field("columns", &self.columns)
            .finish_non_exhaustive()
    }
}
