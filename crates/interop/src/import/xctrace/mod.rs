//! Tables that `xcrun xctrace export` writes out of Instruments' recordings, as XML.
//!
//! The table of what the GPU did (`metal-gpu-intervals`) is the one that matters; others are read where the model has a
//! place for them. Columns are found by name, since their order and number change from one Xcode to the next.

mod document;
mod reader;
mod row;
mod rows;
mod tables;
#[cfg(test)]
mod tests;

use tracesmith_format::tables::HealthCause;

use crate::error::Error;
use crate::import::{Builder, ImportOptions, Importer, Input};
use document::ValueId;
use reader::{Export, Item, Schema};
use row::Row;
use rows::Rows;
use tables::target_of;
pub use tables::xctrace_tables;

pub(super) const IMPORTER: Importer = Importer {
    name: "xctrace",
    title: "xctrace export",
    sniff,
    read,
};

/// Rows that may wait for values which come later.
const MAX_EARLY_ROWS: usize = 1 << 20;

/// The outermost element tells, behind declarations and comments. Tables of contents are known too, to be refused.
fn sniff(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&head[..head.len().min(4096)]);
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    while rest.starts_with("<?") || rest.starts_with("<!") {
        let Some((_, behind)) = rest.split_once('>') else {
            return false;
        };
        rest = behind.trim_start();
    }
    rest.starts_with("<trace-query-result") || rest.starts_with("<trace-toc")
}

fn read(input: &mut Input, _: &ImportOptions, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let mut export = Export::new(input);
    let mut rows = Rows::new(builder)?;
    let mut schemas: Vec<Schema> = Vec::new();
    let mut early: Vec<(usize, Vec<Option<ValueId>>)> = Vec::new();
    let mut elements = 0_u64;
    while let Some(item) = export.next()? {
        elements += 1;
        match item {
            Item::Schema(schema) => schemas.push(schema),
            // A node without a schema continues the table before it.
            Item::Row(_) | Item::EarlyRow(_) if schemas.is_empty() => {
                builder.skip("rows before any table's columns", 1);
            }
            Item::Row(values) => write(&export, &schemas[schemas.len() - 1], &values, &mut rows, builder)?,
            Item::EarlyRow(values) if early.len() < MAX_EARLY_ROWS => {
                early.push((schemas.len() - 1, values));
            }
            Item::EarlyRow(_) => builder.skip("rows that refer to what comes later", 1),
            Item::Contents => return Err(contents()),
            Item::Cut => {
                builder.cut("the file ends in its middle");
                break;
            }
        }
    }
    if elements == 0 {
        builder.doubt(HealthCause::OTHER, "an export without tables", 1);
    }
    for (schema, values) in early {
        let missing = values
            .iter()
            .flatten()
            .filter(|value| !export.document.is_complete(**value));
        let missing = missing.count() as u64;
        builder.doubt(
            HealthCause::DAMAGED,
            "references to values that the file does not have",
            missing,
        );
        write(&export, &schemas[schema], &values, &mut rows, builder)?;
    }
    builder.doubt(
        HealthCause::OTHER,
        "values whose number was given out twice",
        export.repeated,
    );
    builder.skip("elements nested too deeply", export.too_deep);
    Ok(())
}

fn write(
    export: &Export<&mut Input>,
    schema: &Schema,
    values: &[Option<ValueId>],
    rows: &mut Rows,
    builder: &mut Builder<'_, '_>,
) -> Result<(), Error> {
    let Some(target) = target_of(&schema.name) else {
        builder.skip(&format!("rows of the table {}", schema.name), 1);
        return Ok(());
    };
    let row = Row {
        document: &export.document,
        schema,
        values,
        host: rows.host,
    };
    rows.write(target, &row, builder)
}

fn contents() -> Error {
    Error::Foreign {
        format: "xctrace",
        problem:
            "a table of contents, which has no data; export a table with: xcrun xctrace export --input TRACE \
                  --xpath '/trace-toc/run[@number=\"1\"]/data/table[@schema=\"metal-gpu-intervals\"]'"
                .to_owned(),
        position: "<trace-toc>".to_owned(),
    }
}
