//! `docs/reference/format.md` says what the code does: its tables and its worked example are made here and compared.
//!
//! `UPDATE_DOCS=1 cargo test -p tracesmith-format --test format_doc` writes them anew.

#![allow(clippy::unwrap_used, reason = "a test may stop on any error")]

mod annotate;
mod example;
mod tables;

use std::path::PathBuf;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/format.md")
}

/// The page with what stands between the two marker comments of `part` replaced.
fn with_part(page: &str, part: &str, text: &str) -> String {
    let (begin, end) = (
        format!("<!-- generated: {part} -->\n"),
        format!("<!-- end: {part} -->\n"),
    );
    let (before, rest) = page.split_once(&begin).unwrap();
    let (_, after) = rest.split_once(&end).unwrap();
    format!("{before}{begin}\n{text}\n{end}{after}")
}

#[test]
fn the_page_shows_the_tables_and_the_bytes_that_the_code_writes() {
    let page = std::fs::read_to_string(path()).unwrap();
    let now = with_part(&page, "example", &example::render());
    let now = with_part(&now, "tables", &tables::render());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path(), &now).unwrap();
        return;
    }
    let differs = page.lines().zip(now.lines()).find(|(old, new)| old != new);
    assert!(
        page == now,
        "docs/reference/format.md is not what the code does; run this test with UPDATE_DOCS=1\n{differs:#?}"
    );
}

#[test]
fn the_page_lists_every_column_type_and_meaning_in_use() {
    let page = std::fs::read_to_string(path()).unwrap();
    for (kind, columns) in tracesmith_format::schema::tables() {
        for column in columns {
            let (meaning, column_type) = (column.meaning, column.column_type);
            for row in [
                format!("\n| {} | {meaning:?} | ", meaning as u8),
                format!("\n| {} | {column_type:?} | ", column_type as u8),
            ] {
                assert!(page.contains(&row), "{row:?} of {kind} {}", column.name);
            }
        }
    }
}
