//! `docs/reference/sql.md` lists what there is: its tables are made here and compared.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use tracesmith_sql::{FOREIGN_VIEWS, FUNCTIONS};
use tracesmith_trace::tables::{TableInfo, TableKind, catalog};

const BEGIN: &str = "<!-- made by crates/sql/tests/doc.rs -->\n";

fn table(info: &TableInfo, out: &mut String) {
    writeln!(out, "\n### `{}`\n\n{}\n", info.name, info.doc).unwrap();
    out.push_str("| column | type | unit | meaning |\n|---|---|---|---|\n");
    for column in &info.columns {
        let unit = column.unit.unwrap_or("");
        // The content of such a column is not in the table, only its size.
        let is_size = info.kind == TableKind::Stored && column.name.ends_with("_bytes") && unit == "bytes";
        let size = if is_size { "Only the size. Content: " } else { "" };
        writeln!(
            out,
            "| `{}` | {} | {unit} | {size}{} |",
            column.name,
            column.kind.name(),
            column.doc
        )
        .unwrap();
    }
}

fn made() -> String {
    let mut out = String::from(BEGIN);
    out.push_str("\n## Functions\n");
    for function in FUNCTIONS {
        let names: Vec<&str> = function.arguments.iter().map(|(name, _)| *name).collect();
        writeln!(
            out,
            "\n### `{}({})`\n\n{}\n",
            function.name,
            names.join(", "),
            function.doc
        )
        .unwrap();
        for (name, doc) in function.arguments {
            writeln!(out, "- `{name}`: {doc}").unwrap();
        }
        if !function.arguments.is_empty() {
            out.push('\n');
        }
        out.push_str("| column | type | meaning |\n|---|---|---|\n");
        for (name, kind, doc) in function.columns {
            writeln!(out, "| `{name}` | {} | {doc} |", kind.name()).unwrap();
        }
    }
    out.push_str("\n## Compatibility views\n\n| view | known from |\n|---|---|\n");
    for view in FOREIGN_VIEWS {
        writeln!(out, "| `{}` | {} |", view.name, view.tool).unwrap();
    }
    for (kind, title) in [(TableKind::View, "Views"), (TableKind::Stored, "Stored tables")] {
        writeln!(out, "\n## {title}").unwrap();
        for info in catalog().iter().filter(|info| info.kind == kind) {
            table(info, &mut out);
        }
    }
    out
}

#[test]
fn the_page_lists_what_there_is() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/sql.md");
    let text = fs::read_to_string(&path).unwrap();
    let (prose, listed) = text.split_at(text.find(BEGIN).unwrap());
    let made = made();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, format!("{prose}{made}")).unwrap();
    } else {
        assert!(listed == made, "run this test with UPDATE_DOCS=1");
    }
}
