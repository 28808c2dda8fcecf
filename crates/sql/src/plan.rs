//! What SQLite hands down of a query: the columns it uses, conditions and the order.

use rusqlite::types::ValueRef;
use rusqlite::vtab::IndexConstraintOp;
use tracesmith_trace::tables::{ColumnKind, Condition, Scalar};

/// How SQLite wants to read a relation. It travels through SQLite as a text.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plan {
    pub(crate) constraints: Vec<Constraint>,
    /// A column of the relation, and whether the greatest comes first.
    pub(crate) order: Option<(usize, bool)>,
    pub(crate) used: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Constraint {
    pub(crate) column: usize,
    pub(crate) operator: Operator,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    Above,
    AtLeast,
    Below,
    AtMost,
    Glob,
}

/// What a constraint does to a scan.
pub(crate) enum Narrowed {
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

    pub(crate) fn of(operator: IndexConstraintOp) -> Option<Self> {
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
    pub(crate) fn condition(self, kind: ColumnKind, value: ValueRef<'_>) -> Narrowed {
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
    pub(crate) fn to_text(&self) -> String {
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

    pub(crate) fn from_text(text: &str) -> Option<Self> {
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
