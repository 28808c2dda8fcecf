//! What queries read: the tables of all traces, and functions that return tables.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::types::ValueRef;
use rustc_hash::{FxHashMap, FxHashSet};
use tracesmith_trace::Trace;
use tracesmith_trace::tables::{Cancel, ColumnKind, Scan, TableInfo};

use crate::cell::{Cell, Column};
use crate::error::Error;
use crate::functions::Function;
use crate::plan::{Narrowed, Operator, Plan};
use crate::rows::{Index, Order, Part, Rows, in_order, sorted};

/// An open trace and the name that queries know it by.
#[derive(Clone, Debug)]
pub(crate) struct NamedTrace {
    pub(crate) name: String,
    pub(crate) trace: Arc<Trace>,
}

/// What all tables of a database share.
pub(crate) struct Shared {
    pub(crate) traces: Vec<NamedTrace>,
    pub(crate) running: Arc<Running>,
    /// Why a table could not be read. SQLite carries only a text.
    pub(crate) failure: Mutex<Option<Error>>,
}

/// The query that runs, as far as other threads may end it.
#[derive(Default)]
pub(crate) struct Running {
    pub(crate) is_interrupted: AtomicBool,
    /// Ends the scans of this query. Each query has its own, since a cancelled one stays so.
    cancel: Mutex<Cancel>,
}

impl Running {
    /// Starts the next query.
    pub(crate) fn begin(&self) {
        *self.cancel.lock().unwrap_or_else(PoisonError::into_inner) = Cancel::default();
        self.is_interrupted.store(false, Ordering::Relaxed);
    }

    pub(crate) fn cancel(&self) -> Cancel {
        self.cancel.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A relation that queries can read.
pub(crate) struct Relation {
    pub(crate) shared: Arc<Shared>,
    pub(crate) name: &'static str,
    pub(crate) columns: Vec<RelationColumn>,
    pub(crate) source: Source,
    /// Indexes for joins, and columns that were looked up once.
    indexes: Mutex<FxHashMap<(usize, u64), Arc<Indexed>>>,
    looked_up: Mutex<FxHashSet<(usize, u64)>>,
}

struct Indexed {
    parts: Arc<Vec<Part>>,
    index: Arc<Index>,
}

pub(crate) enum Source {
    Table(&'static TableInfo),
    Function(&'static Function),
}

/// A column of a relation.
#[derive(Clone, Debug)]
pub(crate) struct RelationColumn {
    pub(crate) name: String,
    pub(crate) kind: Option<ColumnKind>,
    pub(crate) is_hidden: bool,
    /// What it is in the table or function.
    pub(crate) of: ColumnOf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnOf {
    /// The name of the trace.
    Trace,
    /// A column of the table, by its position.
    Column(usize),
    /// An argument of the function.
    Argument(usize),
}

impl Relation {
    pub(crate) fn table(shared: &Arc<Shared>, info: &'static TableInfo) -> Self {
        let mut columns = Vec::new();
        columns.extend(
            info.columns
                .iter()
                .enumerate()
                .map(|(at, column)| RelationColumn {
                    name: column.name.clone(),
                    kind: Some(column.kind),
                    is_hidden: false,
                    of: ColumnOf::Column(at),
                }),
        );
        columns.extend(second_names(info).map(|(name, at)| RelationColumn {
            name: name.to_owned(),
            kind: Some(info.columns[at].kind),
            is_hidden: true,
            of: ColumnOf::Column(at),
        }));
        Self::new(shared, info.name, columns, Source::Table(info))
    }

    pub(crate) fn function(shared: &Arc<Shared>, function: &'static Function) -> Self {
        let mut columns = Vec::new();
        columns.extend(
            function
                .columns
                .iter()
                .enumerate()
                .map(|(at, column)| RelationColumn {
                    name: column.0.to_owned(),
                    kind: Some(column.1),
                    is_hidden: false,
                    of: ColumnOf::Column(at),
                }),
        );
        columns.extend(
            function
                .arguments
                .iter()
                .enumerate()
                .map(|(at, (name, _))| RelationColumn {
                    name: (*name).to_owned(),
                    kind: None,
                    is_hidden: true,
                    of: ColumnOf::Argument(at),
                }),
        );
        Self::new(shared, function.name, columns, Source::Function(function))
    }

    fn new(shared: &Arc<Shared>, name: &'static str, columns: Vec<RelationColumn>, source: Source) -> Self {
        Relation {
            shared: Arc::clone(shared),
            name,
            columns: with_trace(shared, columns),
            source,
            indexes: Mutex::default(),
            looked_up: Mutex::default(),
        }
    }

    fn width(&self) -> usize {
        match self.source {
            Source::Table(info) => info.columns.len(),
            Source::Function(function) => function.columns.len(),
        }
    }

    pub(crate) fn declaration(&self) -> String {
        let columns: Vec<String> = self
            .columns
            .iter()
            .map(|column| {
                let kind = match column.kind {
                    Some(ColumnKind::Text) => " TEXT",
                    Some(ColumnKind::F64) => " REAL",
                    Some(_) => " INTEGER",
                    None if column.of == ColumnOf::Trace => " TEXT",
                    None => "",
                };
                let hidden = if column.is_hidden { " HIDDEN" } else { "" };
                format!("\"{}\"{kind}{hidden}", column.name)
            })
            .collect();
        format!("CREATE TABLE x({})", columns.join(", "))
    }

    /// Rows that a scan of it may have.
    pub(crate) fn row_estimate(&self) -> u64 {
        match self.source {
            Source::Table(info) => self
                .shared
                .traces
                .iter()
                .filter_map(|named| named.trace.table(info.name).ok())
                .map(|table| table.row_limit().unwrap_or(10_000))
                .sum(),
            Source::Function(_) => 1_000,
        }
    }

    /// The rows that a plan wants, with the values of its constraints.
    pub(crate) fn open(&self, plan: &Plan, values: &[ValueRef<'_>]) -> Result<Rows, Error> {
        match self.source {
            Source::Function(function) => self.open_function(function, plan, values),
            Source::Table(info) => self.open_table(info, plan, values),
        }
    }

    fn open_function(
        &self,
        function: &'static Function,
        plan: &Plan,
        values: &[ValueRef<'_>],
    ) -> Result<Rows, Error> {
        let mut arguments = vec![rusqlite::types::Value::Null; function.arguments.len()];
        for (constraint, value) in plan.constraints.iter().zip(values) {
            if let ColumnOf::Argument(at) = self.columns[constraint.column].of {
                arguments[at] = (*value).try_into().map_err(|_| Error::Query {
                    message: format!("{}: an argument is not valid text", function.name),
                })?;
            }
        }
        let positions: Vec<usize> = (0..function.columns.len()).collect();
        let mut parts = Vec::new();
        for (at, named) in self.shared.traces.iter().enumerate() {
            if self.shared.running.cancel().is_cancelled() {
                return Err(tracesmith_trace::Error::Cancelled.into());
            }
            let batch = (function.make)(&named.trace, &arguments)?;
            parts.push(Part::new(at, &batch, &positions, self.width()));
        }
        let order = parts
            .iter()
            .zip(0..)
            .flat_map(|(part, at)| (0..part.rows as u32).map(move |row| (at, row)));
        let order = order.collect();
        Ok(Rows::listed(Arc::new(parts), Order::Sorted(order)))
    }

    fn open_table(
        &self,
        info: &'static TableInfo,
        plan: &Plan,
        values: &[ValueRef<'_>],
    ) -> Result<Rows, Error> {
        if let Some(rows) = self.look_up(info, plan, values)? {
            return Ok(rows);
        }
        let mut scan = self.scan_of(info, plan.used);
        let mut traces: Vec<usize> = (0..self.shared.traces.len()).collect();
        for (constraint, value) in plan.constraints.iter().zip(values) {
            match self.columns[constraint.column].of {
                ColumnOf::Trace => {
                    let wanted = value.as_str_or_null().ok().flatten();
                    traces.retain(|at| Some(self.shared.traces[*at].name.as_str()) == wanted);
                }
                ColumnOf::Column(at) => match constraint.condition(info.columns[at].kind, *value) {
                    Narrowed::By(condition) => scan = scan.with(info.columns[at].name.clone(), condition),
                    Narrowed::Never => traces.clear(),
                    Narrowed::Not => {}
                },
                ColumnOf::Argument(_) => {}
            }
        }
        let positions: Arc<[usize]> = self.positions_of(info, plan.used).into();
        match plan.order {
            Some((column, is_descending)) => {
                let parts = self.read(info, &scan, &traces, &positions)?;
                let ColumnOf::Column(at) = self.columns[column].of else {
                    return Err(Error::Query {
                        message: "an order that no column has".to_owned(),
                    });
                };
                let order = sorted(&parts, at, is_descending);
                let is_one_trace = self.shared.traces.len() == 1;
                if is_one_trace && (0..self.width()).all(|column| Column::is_shared(&parts, column)) {
                    let parts = in_order(&parts, &order);
                    return Ok(Rows::whole(Arc::new(parts)));
                }
                Ok(Rows::listed(Arc::new(parts), Order::Sorted(order)))
            }
            None => {
                let scans = traces
                    .into_iter()
                    .map(|at| Ok((at, self.shared.traces[at].trace.table(info.name)?.scan(&scan)?)))
                    .collect::<Result<Vec<_>, Error>>()?;
                Rows::stream(scans, positions, self.width())
            }
        }
    }

    /// Rows with one value of a column, by an index. The first such look is a scan: a second one is a join.
    fn look_up(
        &self,
        info: &'static TableInfo,
        plan: &Plan,
        values: &[ValueRef<'_>],
    ) -> Result<Option<Rows>, Error> {
        let ([constraint], [value], None) = (&plan.constraints[..], values, plan.order) else {
            return Ok(None);
        };
        let ColumnOf::Column(at) = self.columns[constraint.column].of else {
            return Ok(None);
        };
        if constraint.operator != Operator::Equal {
            return Ok(None);
        }
        let key = (at, plan.used);
        let is_first = self
            .looked_up
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key);
        if is_first {
            return Ok(None);
        }
        let cell = match value {
            ValueRef::Integer(number) => Cell::Integer(*number),
            ValueRef::Text(text) => match std::str::from_utf8(text) {
                Ok(text) => Cell::Text(text),
                Err(_) => return Ok(None),
            },
            ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => return Ok(None),
        };
        let known = self
            .indexes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
            .cloned();
        let indexed = match known {
            Some(indexed) => indexed,
            None => {
                let mut positions = self.positions_of(info, plan.used);
                if !positions.contains(&at) {
                    positions.push(at);
                }
                let scan = self.scan_at(info, &positions);
                let traces: Vec<usize> = (0..self.shared.traces.len()).collect();
                let parts = self.read(info, &scan, &traces, &positions)?;
                let index = Arc::new(Index::new(&parts, at));
                let indexed = Arc::new(Indexed {
                    parts: Arc::new(parts),
                    index,
                });
                let mut indexes = self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
                indexes.insert(key, Arc::clone(&indexed));
                indexed
            }
        };
        let range = indexed.index.find(cell);
        let order = Order::Indexed(Arc::clone(&indexed.index), range);
        Ok(Some(Rows::listed(Arc::clone(&indexed.parts), order)))
    }

    fn read(
        &self,
        info: &'static TableInfo,
        scan: &Scan,
        traces: &[usize],
        positions: &[usize],
    ) -> Result<Vec<Part>, Error> {
        let mut parts = Vec::new();
        for at in traces {
            let batches = self.shared.traces[*at].trace.table(info.name)?.read(scan)?;
            let part = |batch| Part::new(*at, batch, positions, self.width());
            parts.extend(batches.iter().map(part));
        }
        Ok(parts)
    }

    /// The table's columns that a query uses, by SQLite's mask: the last bit stands for all columns from the 64th on.
    fn positions_of(&self, info: &'static TableInfo, used: u64) -> Vec<usize> {
        let is_used = |number: usize| used & (1 << number.min(63)) != 0;
        let columns = self.columns.iter().enumerate();
        let mut positions: Vec<usize> = columns
            .filter(|(number, _)| is_used(*number))
            .filter_map(|(_, column)| match column.of {
                ColumnOf::Column(at) => Some(at),
                _ => None,
            })
            .collect();
        positions.sort_unstable();
        positions.dedup();
        // A scan without columns has no rows to count.
        if positions.is_empty() && !info.columns.is_empty() {
            positions.push(0);
        }
        positions
    }

    fn scan_of(&self, info: &'static TableInfo, used: u64) -> Scan {
        self.scan_at(info, &self.positions_of(info, used))
    }

    fn scan_at(&self, info: &'static TableInfo, positions: &[usize]) -> Scan {
        Scan {
            cancel: self.shared.running.cancel(),
            ..Scan::columns(positions.iter().map(|at| info.columns[*at].name.clone()))
        }
    }

    /// Keeps an error for who asked, and gives SQLite its text.
    pub(crate) fn fail(&self, error: Error) -> rusqlite::Error {
        let text = error.to_string();
        *self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        rusqlite::Error::ModuleError(text)
    }
}

/// Perfetto's names of a table's columns, with the columns' positions. `select *` leaves them out.
pub(crate) fn second_names(info: &TableInfo) -> impl Iterator<Item = (&'static str, usize)> {
    let names = [("ts", "start"), ("dur", "duration")].into_iter();
    names
        .filter(|(second, _)| info.position(second).is_none())
        .filter_map(|(second, name)| Some((second, info.position(name)?)))
}

/// Adds the column with the trace's name: the first one of several traces, and else a hidden one after the arguments, to
/// which SQLite binds what is passed to a function.
fn with_trace(shared: &Shared, mut columns: Vec<RelationColumn>) -> Vec<RelationColumn> {
    let is_hidden = shared.traces.len() < 2;
    let column = RelationColumn {
        name: "trace".to_owned(),
        kind: None,
        is_hidden,
        of: ColumnOf::Trace,
    };
    let place = if is_hidden { columns.len() } else { 0 };
    columns.insert(place, column);
    columns
}
