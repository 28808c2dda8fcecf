//! A table or function as a virtual table of SQLite.

#![allow(
    unsafe_code,
    reason = "SQLite's interface for virtual tables: the structs begin with SQLite's own"
)]

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::types::ValueRef;
use rusqlite::vtab::{
    Context, Filters, IndexConstraintOp, IndexInfo, Module, VTab, VTabConfig, VTabConnection, VTabCursor,
};
use rusqlite::{Connection, ffi};
use rustc_hash::{FxHashMap, FxHashSet};
use tracesmith_trace::Trace;
use tracesmith_trace::tables::{Cancel, ColumnKind, Condition, Scalar, Scan, TableInfo};

use crate::cell::Cell;
use crate::error::Error;
use crate::functions::Function;
use crate::rows::{Index, Order, Part, Rows, sorted};

/// An open trace and the name that queries know it by.
#[derive(Clone, Debug)]
pub(crate) struct NamedTrace {
    pub(crate) name: String,
    pub(crate) trace: Arc<Trace>,
}

/// What all tables of a database share.
pub(crate) struct Shared {
    pub(crate) traces: Vec<NamedTrace>,
    pub(crate) cancel: Cancel,
    /// Why a table could not be read. SQLite carries only a text.
    pub(crate) failure: Mutex<Option<Error>>,
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
    of: ColumnOf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnOf {
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
        // Perfetto's names for the same.
        for (known_as, name) in [("ts", "start"), ("dur", "duration")] {
            if let Some(at) = info.position(name)
                && info.position(known_as).is_none()
            {
                columns.push(RelationColumn {
                    name: known_as.to_owned(),
                    kind: Some(info.columns[at].kind),
                    is_hidden: true,
                    of: ColumnOf::Column(at),
                });
            }
        }
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

    fn declaration(&self) -> String {
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
    fn row_estimate(&self) -> u64 {
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
    fn open(&self, plan: &Plan, values: &[ValueRef<'_>]) -> Result<Rows, Error> {
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
            if self.shared.cancel.is_cancelled() {
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
            cancel: self.shared.cancel.clone(),
            ..Scan::columns(positions.iter().map(|at| info.columns[*at].name.clone()))
        }
    }

    /// Keeps an error for who asked, and gives SQLite its text.
    fn fail(&self, error: Error) -> rusqlite::Error {
        let text = error.to_string();
        *self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        rusqlite::Error::ModuleError(text)
    }
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

/// How SQLite wants to read a relation. It travels through SQLite as a text.
#[derive(Debug, Default, PartialEq)]
struct Plan {
    constraints: Vec<Constraint>,
    /// A column of the relation, and whether the greatest comes first.
    order: Option<(usize, bool)>,
    used: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Constraint {
    column: usize,
    operator: Operator,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    Above,
    AtLeast,
    Below,
    AtMost,
    Glob,
}

/// What a constraint does to a scan.
enum Narrowed {
    By(Condition),
    /// No row meets it.
    Never,
    /// The scan cannot check it; SQLite does.
    Not,
}

impl Operator {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Equal, "="),
        (Self::Above, ">"),
        (Self::AtLeast, "]"),
        (Self::Below, "<"),
        (Self::AtMost, "["),
        (Self::Glob, "*"),
    ];

    fn of(operator: IndexConstraintOp) -> Option<Self> {
        use IndexConstraintOp::*;
        Some(match operator {
            SQLITE_INDEX_CONSTRAINT_EQ => Self::Equal,
            SQLITE_INDEX_CONSTRAINT_GT => Self::Above,
            SQLITE_INDEX_CONSTRAINT_GE => Self::AtLeast,
            SQLITE_INDEX_CONSTRAINT_LT => Self::Below,
            SQLITE_INDEX_CONSTRAINT_LE => Self::AtMost,
            SQLITE_INDEX_CONSTRAINT_GLOB => Self::Glob,
            _ => return None,
        })
    }
}

impl Constraint {
    /// What a scan checks for a value. Where SQLite's rules for values of other types differ, SQLite checks alone.
    fn condition(self, kind: ColumnKind, value: ValueRef<'_>) -> Narrowed {
        let scalar = match (kind, value) {
            // Nothing compares with null.
            (_, ValueRef::Null) => return Narrowed::Never,
            (ColumnKind::Text, ValueRef::Text(text)) => match std::str::from_utf8(text) {
                Ok(text) => Scalar::Text(text.to_owned()),
                Err(_) => return Narrowed::Not,
            },
            (ColumnKind::Text, _) => return Narrowed::Not,
            // Larger ones have wrapped around, and compare as what they became.
            (ColumnKind::U64, ValueRef::Integer(number)) if number < 0 => return Narrowed::Not,
            (_, ValueRef::Integer(number)) => Scalar::Integer(number),
            (_, ValueRef::Real(number)) => Scalar::Float(number),
            _ => return Narrowed::Not,
        };
        let is_wide = kind == ColumnKind::U64;
        Narrowed::By(match (self.operator, scalar) {
            (Operator::Equal, scalar) => Condition::Is(scalar),
            // A value that wrapped around is negative to SQLite: it is left to SQLite.
            (Operator::Below | Operator::AtMost, _) if is_wide => {
                return Narrowed::below(self.operator, value);
            }
            (Operator::Above, scalar) => Condition::Above(scalar),
            (Operator::AtLeast, scalar) => Condition::AtLeast(scalar),
            (Operator::Below, scalar) => Condition::Below(scalar),
            (Operator::AtMost, scalar) => Condition::AtMost(scalar),
            // SQLite's sets of characters are its own.
            (Operator::Glob, Scalar::Text(pattern)) if !pattern.contains('[') => Condition::Like(pattern),
            (Operator::Glob, _) => return Narrowed::Not,
        })
    }
}

impl Narrowed {
    fn below(operator: Operator, value: ValueRef<'_>) -> Self {
        match (operator, value) {
            (Operator::Below, ValueRef::Integer(number)) => {
                Self::By(Condition::Below(Scalar::Integer(number)))
            }
            (Operator::AtMost, ValueRef::Integer(number)) => {
                Self::By(Condition::AtMost(Scalar::Integer(number)))
            }
            _ => Self::Not,
        }
    }
}

impl Plan {
    fn to_text(&self) -> String {
        use std::fmt::Write;
        let mut text = format!("{:x}", self.used);
        if let Some((column, is_descending)) = self.order {
            // Writing to a string cannot fail.
            let _ = write!(text, " {}{column}", if is_descending { 'd' } else { 'a' });
        } else {
            text.push_str(" -");
        }
        for constraint in &self.constraints {
            let operators = Operator::ALL.iter();
            let sign = operators
                .clone()
                .find(|(operator, _)| *operator == constraint.operator);
            let _ = write!(
                text,
                " {}{}",
                sign.map_or("", |(_, sign)| sign),
                constraint.column
            );
        }
        text
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let used = u64::from_str_radix(words.next()?, 16).ok()?;
        let order = match words.next()? {
            "-" => None,
            word => Some((word.get(1..)?.parse().ok()?, word.starts_with('d'))),
        };
        let constraints = words
            .map(|word| {
                let (operator, _) = Operator::ALL.iter().find(|(_, sign)| word.starts_with(sign))?;
                Some(Constraint {
                    column: word.get(1..)?.parse().ok()?,
                    operator: *operator,
                })
            })
            .collect::<Option<Vec<_>>>()?;
        Some(Plan {
            constraints,
            order,
            used,
        })
    }
}

/// Makes a relation known to SQLite.
pub(crate) fn register(connection: &Connection, relation: Relation) -> Result<(), Error> {
    const MODULE: Module<'static, RelationTab> = Module::eponymous_only_module();
    let name = relation.name;
    connection.create_module(name, &MODULE, Some(Arc::new(relation)))?;
    Ok(())
}

#[repr(C)]
struct RelationTab {
    /// Must be first.
    base: ffi::sqlite3_vtab,
    relation: Arc<Relation>,
}

// SAFETY: the struct is laid out as in C and begins with SQLite's own.
unsafe impl<'vtab> VTab<'vtab> for RelationTab {
    type Aux = Arc<Relation>;
    type Cursor = RelationCursor<'vtab>;

    fn connect(
        connection: &mut VTabConnection,
        aux: Option<&Self::Aux>,
        _: &[u8],
        _: &[u8],
        _: &[u8],
        _: &[&[u8]],
    ) -> rusqlite::Result<(Cow<'static, CStr>, Self)> {
        let relation = aux.ok_or_else(|| rusqlite::Error::ModuleError("no table".to_owned()))?;
        // It only reads: views may use it.
        connection.config(VTabConfig::Innocuous)?;
        let declaration = CString::new(relation.declaration())?;
        Ok((
            Cow::Owned(declaration),
            RelationTab {
                base: ffi::sqlite3_vtab::default(),
                relation: Arc::clone(relation),
            },
        ))
    }

    fn best_index(&self, info: &mut IndexInfo) -> rusqlite::Result<bool> {
        let relation = &self.relation;
        let mut plan = Plan {
            used: info.col_used(),
            ..Plan::default()
        };
        let mut chosen = Vec::new();
        for (number, constraint) in info.constraints().enumerate() {
            let Ok(column) = usize::try_from(constraint.column()) else {
                continue; // the row's number
            };
            let of = relation.columns[column].of;
            let operator = Operator::of(constraint.operator());
            if let ColumnOf::Argument(_) = of {
                // A function cannot run without its arguments.
                if !constraint.is_usable() {
                    return Ok(false);
                }
                if operator == Some(Operator::Equal) {
                    chosen.push((
                        number,
                        Constraint {
                            column,
                            operator: Operator::Equal,
                        },
                    ));
                }
                continue;
            }
            if let (true, Some(operator), Source::Table(_)) =
                (constraint.is_usable(), operator, &relation.source)
                && (of != ColumnOf::Trace || operator == Operator::Equal)
            {
                chosen.push((number, Constraint { column, operator }));
            }
        }
        // A list of values would open the table once for each; SQLite checks it against one scan instead.
        chosen.retain(|(number, constraint)| {
            matches!(relation.columns[constraint.column].of, ColumnOf::Argument(_))
                || !info.is_in_constraint(*number).unwrap_or(true)
        });
        // Other collations than by bytes are SQLite's own.
        chosen.retain(|(number, _)| {
            info.collation(*number)
                .is_ok_and(|collation| collation == "BINARY")
        });
        let mut rows = relation.row_estimate() as f64;
        for (at, (number, constraint)) in chosen.iter().enumerate() {
            let mut usage = info.constraint_usage(*number);
            usage.set_argv_index(at as c_int + 1);
            let is_argument = matches!(relation.columns[constraint.column].of, ColumnOf::Argument(_));
            usage.set_omit(is_argument);
            rows /= match constraint.operator {
                Operator::Equal => 1_000.0,
                _ => 4.0,
            };
            plan.constraints.push(*constraint);
        }
        let is_look_up = matches!(
            plan.constraints[..],
            [Constraint {
                operator: Operator::Equal,
                ..
            }]
        );
        if info.num_of_order_by() == 1
            && let Some(order) = info.order_bys().next()
            && let Ok(column) = usize::try_from(order.column())
            && let (Source::Table(_), ColumnOf::Column(_)) = (&relation.source, relation.columns[column].of)
        {
            plan.order = Some((column, order.is_order_by_desc()));
        }
        if let Some((column, _)) = plan.order {
            plan.used |= 1 << column.min(63);
            info.set_order_by_consumed(true);
        }
        let scanned = relation.row_estimate() as f64;
        info.set_estimated_cost(if is_look_up { rows + 10.0 } else { scanned + rows });
        info.set_estimated_rows((rows as i64).max(1));
        info.set_idx_str(&plan.to_text());
        Ok(true)
    }

    fn open(&'vtab mut self) -> rusqlite::Result<RelationCursor<'vtab>> {
        Ok(RelationCursor {
            base: ffi::sqlite3_vtab_cursor::default(),
            relation: Arc::clone(&self.relation),
            rows: None,
            number: 0,
            arguments: Vec::new(),
            table: PhantomData,
        })
    }
}

#[repr(C)]
struct RelationCursor<'vtab> {
    /// Must be first.
    base: ffi::sqlite3_vtab_cursor,
    relation: Arc<Relation>,
    rows: Option<Rows>,
    number: i64,
    /// Columns of arguments, and what was passed.
    arguments: Vec<(usize, rusqlite::types::Value)>,
    table: PhantomData<&'vtab RelationTab>,
}

// SAFETY: the struct is laid out as in C and begins with SQLite's own.
unsafe impl VTabCursor for RelationCursor<'_> {
    fn filter(&mut self, _: c_int, plan: Option<&str>, arguments: &Filters<'_>) -> rusqlite::Result<()> {
        let plan = plan
            .and_then(Plan::from_text)
            .ok_or_else(|| rusqlite::Error::ModuleError("a plan that is none".to_owned()))?;
        let values: Vec<ValueRef<'_>> = arguments.iter().collect();
        let passed = plan.constraints.iter().zip(&values);
        self.arguments = passed
            .filter(|(constraint, _)| {
                matches!(self.relation.columns[constraint.column].of, ColumnOf::Argument(_))
            })
            .filter_map(|(constraint, value)| Some((constraint.column, (*value).try_into().ok()?)))
            .collect();
        let rows = self.relation.open(&plan, &values);
        self.rows = Some(rows.map_err(|error| self.relation.fail(error))?);
        self.number = 0;
        Ok(())
    }

    fn next(&mut self) -> rusqlite::Result<()> {
        self.number += 1;
        match &mut self.rows {
            Some(rows) => rows.next().map_err(|error| self.relation.fail(error)),
            None => Ok(()),
        }
    }

    fn eof(&self) -> bool {
        self.rows.as_ref().is_none_or(Rows::is_at_end)
    }

    fn column(&self, context: &mut Context, number: c_int) -> rusqlite::Result<()> {
        let column_number = usize::try_from(number).unwrap_or(usize::MAX);
        let column = self.relation.columns.get(column_number);
        let current = self.rows.as_ref().and_then(Rows::current);
        let (Some(column), Some((part, row))) = (column, current) else {
            return Ok(());
        };
        match column.of {
            ColumnOf::Trace => context.set_result(self.relation.shared.traces[part.trace].name.as_str()),
            // SQLite may compare it with what it gave.
            ColumnOf::Argument(_) => match self.arguments.iter().find(|(number, _)| *number == column_number)
            {
                Some((_, value)) => context.set_result(value),
                None => Ok(()),
            },
            ColumnOf::Column(at) => match part.columns[at].cell(row) {
                Cell::Null => Ok(()),
                Cell::Integer(number) => context.set_result(number),
                Cell::Real(number) => context.set_result(number),
                Cell::Text(text) => context.set_result(text),
            },
        }
    }

    fn rowid(&self) -> rusqlite::Result<i64> {
        Ok(self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_comes_back_as_it_was() {
        for plan in [
            Plan::default(),
            Plan {
                used: u64::MAX,
                order: Some((12, true)),
                constraints: Operator::ALL
                    .iter()
                    .enumerate()
                    .map(|(column, (operator, _))| Constraint {
                        column,
                        operator: *operator,
                    })
                    .collect(),
            },
        ] {
            assert_eq!(Plan::from_text(&plan.to_text()), Some(plan));
        }
        assert_eq!(Plan::from_text("no plan"), None);
    }
}
