//! `tracesmith env`.

use anyhow::Context;
use serde_json::{Value, json};
use tracesmith_collect::{CuptiPreinit, Preload, environment};

use crate::args::{EnvArgs, Format};
use crate::library;
use crate::output::Output;

pub(crate) fn run(args: &EnvArgs, output: &mut Output) -> anyhow::Result<()> {
    let preload = if args.no_preload {
        Preload::No
    } else {
        Preload::Yes
    };
    let beforehand = if args.ready {
        CuptiPreinit::Ready
    } else {
        CuptiPreinit::Nothing
    };
    let variables =
        environment(&library::locate()?, preload, beforehand).context("preparing the runtime directory")?;
    let variables: Vec<(&str, String)> = variables
        .into_iter()
        .map(|(name, value)| (name, value.to_string_lossy().into_owned()))
        .collect();
    match output.format {
        Format::Table => {
            for (name, value) in variables {
                output.line(&format!("export {name}={}", quoted(&value)))?;
            }
        }
        Format::Json | Format::Csv => {
            let facts: Vec<(&str, Value)> = variables
                .iter()
                .map(|(name, value)| (*name, json!(value)))
                .collect();
            output.facts(&facts)?;
        }
    }
    Ok(())
}

/// Quotes a value for any shell.
fn quoted(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_+:,./@%".contains(c);
    if !value.is_empty() && value.chars().all(is_plain) {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', r"'\''"))
    }
}
