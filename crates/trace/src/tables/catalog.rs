//! All tables and views, with their columns.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use arrow_schema::{DataType, Field, Schema};
use tracesmith_format::{BlockKind, ColumnSpec, ColumnType, Columns, Meaning, Table};

use super::stored::{STORED, Stored};
use super::views::VIEWS;

/// A table or a view.
#[derive(Clone, Debug)]
pub struct TableInfo {
    /// Its name.
    pub name: &'static str,
    /// Whether it is stored or computed.
    pub kind: TableKind,
    /// What a row is.
    pub doc: &'static str,
    /// Its columns.
    pub columns: Vec<ColumnInfo>,
}

/// Where the rows of a table come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// The file.
    Stored,
    /// Computed from stored tables.
    View,
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct ColumnInfo {
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub kind: ColumnKind,
    /// The unit of its values.
    pub unit: Option<&'static str>,
    /// What it is.
    pub doc: &'static str,
}

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is named after its type")]
pub enum ColumnKind {
    U8,
    U16,
    U32,
    U64,
    I32,
    I64,
    F64,
    Bool,
    /// A dictionary of texts.
    Text,
}

impl ColumnKind {
    /// The Arrow type.
    pub fn data_type(self) -> DataType {
        match self {
            Self::U8 => DataType::UInt8,
            Self::U16 => DataType::UInt16,
            Self::U32 => DataType::UInt32,
            Self::U64 => DataType::UInt64,
            Self::I32 => DataType::Int32,
            Self::I64 => DataType::Int64,
            Self::F64 => DataType::Float64,
            Self::Bool => DataType::Boolean,
            Self::Text => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        }
    }

    /// A short name for documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F64 => "f64",
            Self::Bool => "bool",
            Self::Text => "text",
        }
    }
}

impl TableInfo {
    /// The position of a column.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The Arrow schema of some columns, by their positions.
    pub(super) fn schema(&self, positions: &[usize]) -> Schema {
        let field = |position: &usize| {
            let column = &self.columns[*position];
            let mut facts = HashMap::from([("doc".to_owned(), column.doc.to_owned())]);
            facts.extend(column.unit.map(|unit| ("unit".to_owned(), unit.to_owned())));
            Field::new(&column.name, column.kind.data_type(), true).with_metadata(facts)
        };
        Schema::new(positions.iter().map(field).collect::<Vec<_>>())
    }
}

/// All tables that rows can be read from: the stored ones in the order of the format, then the views.
pub fn catalog() -> &'static [TableInfo] {
    static CATALOG: LazyLock<Vec<TableInfo>> = LazyLock::new(|| {
        let stored = STORED.iter().map(Stored::info);
        stored.chain(VIEWS.iter().map(|view| view.info())).collect()
    });
    &CATALOG
}

/// A column of a stored table, and how it is stored.
#[derive(Clone, Debug)]
pub struct StoredColumn {
    /// Its name in the catalog.
    pub name: String,
    /// How it is stored.
    pub spec: ColumnSpec,
}

impl StoredColumn {
    pub(super) fn info(&self) -> ColumnInfo {
        ColumnInfo {
            name: self.name.clone(),
            kind: kind_of(&self.spec),
            unit: match self.spec.meaning {
                Meaning::Time => Some("ns"),
                Meaning::Bytes => Some("bytes"),
                _ if self.spec.column_type == ColumnType::Blob => Some("bytes"),
                _ => None,
            },
            doc: self.spec.doc,
        }
    }
}

fn kind_of(spec: &ColumnSpec) -> ColumnKind {
    if matches!(spec.meaning, Meaning::String | Meaning::Code) {
        return ColumnKind::Text;
    }
    match spec.column_type {
        ColumnType::U8 => ColumnKind::U8,
        ColumnType::U16 => ColumnKind::U16,
        ColumnType::U32 | ColumnType::Index => ColumnKind::U32,
        ColumnType::U64 | ColumnType::Blob => ColumnKind::U64,
        ColumnType::I32 => ColumnKind::I32,
        ColumnType::I64 => ColumnKind::I64,
        ColumnType::F64 => ColumnKind::F64,
        ColumnType::Bool => ColumnKind::Bool,
    }
}

/// The columns of a stored table. `shape.name` becomes `name`; if two columns would then have the same name, they keep the
/// name of their group, as in `shape_name`. A column of bytes becomes their number, such as `code_bytes`. A table whose
/// rows others refer to by their position gets an `id`.
pub fn columns_of<T: Table>() -> Vec<StoredColumn> {
    let mut specs: Vec<ColumnSpec> = T::Columns::specs()
        .into_iter()
        .filter(|spec| spec.column_type != ColumnType::Index)
        .collect();
    if has_ids::<T>() {
        specs.insert(0, id_column(T::KIND));
    }
    let short = |spec: &ColumnSpec| {
        let name = spec.name.rsplit('.').next().unwrap_or(&spec.name);
        match spec.column_type {
            ColumnType::Blob => format!("{name}_bytes"),
            _ => name.to_owned(),
        }
    };
    let mut seen = BTreeSet::new();
    let twice: BTreeSet<String> = specs
        .iter()
        .map(short)
        .filter(|name| !seen.insert(name.clone()))
        .collect();
    let name = |spec: &ColumnSpec| match short(spec) {
        short if twice.contains(&short) => spec.name.replace('.', "_"),
        short => short,
    };
    specs
        .into_iter()
        .map(|spec| StoredColumn {
            name: name(&spec),
            spec,
        })
        .collect()
}

/// Whether rows of a table are referred to by their position in it.
pub fn has_ids<T: Table>() -> bool {
    matches!(T::KIND, BlockKind::FRAMES | BlockKind::STACKS)
}

/// The number of the `id` column, which no table stores.
pub(super) const ID_COLUMN: u16 = 0;

fn id_column(kind: BlockKind) -> ColumnSpec {
    ColumnSpec {
        id: ID_COLUMN,
        group: 0,
        name: "id".to_owned(),
        column_type: ColumnType::U32,
        meaning: if kind == BlockKind::FRAMES {
            Meaning::Frame
        } else {
            Meaning::Stack
        },
        codes: None,
        doc: "Its id.",
    }
}
