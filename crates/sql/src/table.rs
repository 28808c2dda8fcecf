//! A relation as a virtual table of SQLite.

#![allow(
    unsafe_code,
    reason = "SQLite's interface for virtual tables: the structs begin with SQLite's own"
)]

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};
use std::marker::PhantomData;
use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::vtab::{Context, Filters, IndexInfo, Module, VTab, VTabConfig, VTabConnection, VTabCursor};
use rusqlite::{Connection, ffi};

use crate::cell::Cell;
use crate::error::Error;
use crate::plan::{Constraint, Operator, Plan};
use crate::relation::{ColumnOf, Relation, Source};
use crate::rows::Rows;

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
