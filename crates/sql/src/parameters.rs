//! Values for the parameters of a query: `?` by position, `:name`, `@name` and `$name` by name.

use rusqlite::types::Value;

use crate::database::Statement;
use crate::error::Error;

/// Values for the parameters of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameters {
    /// In the order of the parameters.
    Positional(Vec<Value>),
    /// By name, without the `:`, `@` or `$` before it.
    Named(Vec<(String, Value)>),
}

impl Parameters {
    /// Gives each parameter of a statement its value.
    ///
    /// # Errors
    ///
    /// If a parameter has no value, or a value no parameter.
    pub(crate) fn bind(self, statement: &mut Statement<'_>) -> Result<(), Error> {
        let wanted = statement.parameters();
        match self {
            Parameters::Positional(values) => {
                if values.len() != wanted.len() {
                    return Err(Error::Query {
                        message: format!(
                            "the query has {} parameters, and {} values are given",
                            wanted.len(),
                            values.len()
                        ),
                    });
                }
                for (index, value) in values.into_iter().enumerate() {
                    statement.bind_value(index + 1, value)?;
                }
            }
            Parameters::Named(values) => {
                if let Some((name, _)) = values
                    .iter()
                    .find(|(name, _)| !wanted.contains(&Some(name.clone())))
                {
                    return Err(Error::Query {
                        message: format!("the query has no parameter '{name}'"),
                    });
                }
                for (index, name) in wanted.into_iter().enumerate() {
                    let found = values.iter().find(|(given, _)| Some(given) == name.as_ref());
                    let Some((_, value)) = found else {
                        return Err(Error::Query {
                            message: without_value(index, name),
                        });
                    };
                    statement.bind_value(index + 1, value.clone())?;
                }
            }
        }
        Ok(())
    }
}

/// What is wrong with a parameter, by its position from 0 and its name.
pub(crate) fn without_value(index: usize, name: Option<String>) -> String {
    let shown = name.map_or_else(|| format!("number {}", index + 1), |name| format!("'{name}'"));
    format!("the parameter {shown} of the query has no value")
}
