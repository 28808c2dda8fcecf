//! All tables, columns and codes, as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write;

use tracesmith_format::tables::*;
use tracesmith_format::{BlockKind, Codes, ColumnSpec, Columns, Meaning, Table, for_each_table};

struct Description {
    kind: BlockKind,
    doc: &'static str,
    times: &'static [&'static str],
    columns: Vec<ColumnSpec>,
}

pub(crate) fn render() -> String {
    let tables = descriptions();
    let mut out = String::new();
    kinds(&tables, &mut out);
    for table in &tables {
        columns(table, &mut out);
    }
    codes(&tables, &mut out);
    out
}

fn descriptions() -> Vec<Description> {
    fn describe<T: Table>() -> Description {
        Description {
            kind: T::KIND,
            doc: T::DOC,
            times: T::TIMES,
            columns: T::Columns::specs(),
        }
    }
    macro_rules! list {
        ($($field:ident: $row:ident,)*) => {
            vec![
                describe::<Text>(),
                describe::<Frame>(),
                describe::<Stack>(),
                describe::<SchemaColumn>(),
                describe::<IndexEntry>(),
                $(describe::<$row>(),)*
            ]
        };
    }
    let mut tables = for_each_table!(list);
    tables.sort_by_key(|table| table.kind);
    tables
}

fn kinds(tables: &[Description], out: &mut String) {
    out.push_str("| kind | table | a row is |\n|---:|---|---|\n");
    for Description { kind, doc, .. } in tables {
        writeln!(out, "| {} | [{kind}](#table-{kind}) | {doc} |", kind.0).unwrap();
    }
    let end = BlockKind::END;
    writeln!(out, "| {} | {end} | The end marker, which has no rows. |", end.0).unwrap();
}

fn columns(table: &Description, out: &mut String) {
    let Description { kind, doc, .. } = table;
    writeln!(out, "\n### Table {kind}\n\nKind {}. {doc}", kind.0).unwrap();
    match table.times {
        [start, end] => writeln!(out, "\nTimes: `{start}`, `{end}`.").unwrap(),
        _ => out.push_str("\nTimes: none.\n"),
    }
    out.push_str("\n| column | name | type | meaning | what it is |\n|---:|---|---|---|---|\n");
    for column in &table.columns {
        let meaning = match column.codes {
            Some(codes) => format!("Code [{0}](#code-{1})", codes.name, codes.name.to_lowercase()),
            None => format!("{:?}", column.meaning),
        };
        writeln!(
            out,
            "| {} | {} | {:?} | {meaning} | {} |",
            column.id, column.name, column.column_type, column.doc
        )
        .unwrap();
    }
}

fn codes(tables: &[Description], out: &mut String) {
    out.push_str(
        "\n## Codes\n\nA value that is not listed here comes from a later version: show its number.\n",
    );
    let mut by_name: BTreeMap<&str, &Codes> = BTreeMap::new();
    for column in tables.iter().flat_map(|table| &table.columns) {
        assert_eq!(column.codes.is_some(), column.meaning == Meaning::Code);
        if let Some(codes) = column.codes {
            by_name.insert(codes.name, codes);
        }
    }
    for codes in by_name.values() {
        writeln!(out, "\n### Code {}\n\n{}", codes.name, codes.doc).unwrap();
        out.push_str("\n| value | name | what it is |\n|---:|---|---|\n");
        for (number, name, doc) in codes.values {
            writeln!(out, "| {number} | {name} | {doc} |").unwrap();
        }
    }
}
