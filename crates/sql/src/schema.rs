//! What can be queried, for people who look for it.

use tracesmith_trace::tables::{ColumnInfo, TableKind, catalog};

use crate::database::Database;
use crate::error::Error;
use crate::functions::FUNCTIONS;
use crate::names::FOREIGN_VIEWS;
use crate::relation::second_names;

/// A table, view or function of a database.
#[derive(Clone, Debug)]
pub struct Named {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: NamedKind,
    /// What its rows are.
    pub doc: String,
    /// Its columns.
    pub columns: Vec<NamedColumn>,
    /// Arguments of a function, and what each means.
    pub arguments: &'static [(&'static str, &'static str)],
}

/// What a name in a query can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedKind {
    /// Rows that a trace stores.
    Table,
    /// Rows that are computed.
    View,
    /// Rows that depend on arguments.
    Function,
    /// A view with the name and columns of another tool's table.
    Foreign,
}

impl NamedKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::View => "view",
            Self::Function => "function",
            Self::Foreign => "other tool",
        }
    }
}

/// A column that queries can name.
#[derive(Clone, Debug)]
pub struct NamedColumn {
    /// Its name.
    pub name: String,
    /// The type of its values; empty if it is not known.
    pub kind: &'static str,
    /// The unit of its values; empty without one.
    pub unit: &'static str,
    /// What it means; empty if it is not known.
    pub doc: &'static str,
}

impl Database {
    /// Everything that can be queried, in the order of docs/reference/sql.md.
    pub fn names(&self) -> Result<Vec<Named>, Error> {
        let mut names = Vec::new();
        for function in FUNCTIONS {
            let columns = function.columns.iter().map(|(name, kind, doc)| NamedColumn {
                name: (*name).to_owned(),
                kind: kind.name(),
                unit: "",
                doc,
            });
            names.push(Named {
                name: function.name,
                kind: NamedKind::Function,
                doc: function.doc.to_owned(),
                columns: columns.collect(),
                arguments: function.arguments,
            });
        }
        for view in FOREIGN_VIEWS {
            let statement = self.prepare(&format!("select * from \"{}\" limit 0", view.name))?;
            let columns = statement.columns.iter().map(|name| NamedColumn {
                name: name.clone(),
                kind: "",
                unit: "",
                doc: "",
            });
            names.push(Named {
                name: view.name,
                kind: NamedKind::Foreign,
                doc: format!("Known from {}.", view.tool),
                columns: columns.collect(),
                arguments: &[],
            });
        }
        for wanted in [TableKind::View, TableKind::Stored] {
            for info in catalog().iter().filter(|info| info.kind == wanted) {
                let column = |name: &str, column: &ColumnInfo| NamedColumn {
                    name: name.to_owned(),
                    kind: column.kind.name(),
                    unit: column.unit.unwrap_or(""),
                    doc: column.doc,
                };
                let columns = info.columns.iter().map(|info| column(&info.name, info));
                let hidden = second_names(info).map(|(name, at)| column(name, &info.columns[at]));
                names.push(Named {
                    name: info.name,
                    kind: match wanted {
                        TableKind::View => NamedKind::View,
                        TableKind::Stored => NamedKind::Table,
                    },
                    doc: info.doc.to_owned(),
                    columns: columns.chain(hidden).collect(),
                    arguments: &[],
                });
            }
        }
        Ok(names)
    }
}
