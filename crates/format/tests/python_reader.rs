//! The reader in `docs/examples/read_sbt.py`, which knows nothing but `docs/reference/format.md`, reads what we write.
//!
//! It needs a Python with the package `zstandard`: the one in the environment variable `TRACESMITH_PYTHON`, else `python3`.
//! Without one the test is skipped.

#![allow(clippy::unwrap_used, reason = "a test may stop on any error")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process;

use tracesmith_format::arbitrary::{Arbitrary, numbers};
use tracesmith_format::tables::*;
use tracesmith_format::{
    BLOCK_HEADER_BYTES, Block, BlockKind, ClockId, ColumnType, Columns, CorrelationId, DeviceId, FrameId,
    HostId, IdMap, ImageId, Meaning, Memory, ProcessId, Projection, Reader, StackId, StringId, Table,
    Timestamp, Value, Writer, WriterOptions, for_each_table,
};

const TEXTS: &[&str] = &[
    "a",
    "ünïcode ✓ 🚀",
    "\"quoted\\\"\n\t\u{1}",
    "void gemm<float, 128>(float*)",
];

/// Traces of which the reader has nothing to report.
const INTACT: &[&str] = &["whole", "plain", "empty", "fixture"];

#[test]
fn the_python_reader_sees_what_the_rust_reader_sees() {
    let Some(python) = python() else {
        return tracesmith_skip::without("python packages", "zstandard");
    };
    let trace = arbitrary_trace();
    for (name, trace) in [
        ("whole", trace.clone()),
        ("plain", plain_trace()),
        ("empty", empty_trace()),
        (
            "fixture",
            std::fs::read(repository().join("fixtures/synthetic-v1.sbt")).unwrap(),
        ),
        ("cut", trace[..trace.len() * 2 / 3].to_vec()),
        ("cut and damaged", damaged(&trace[..trace.len() * 2 / 3], 9)),
        ("trailing", [&trace[..], b"SBTB and more"].concat()),
        ("payload", damaged(&trace, BLOCK_HEADER_BYTES + 5)),
        ("header", damaged(&trace, 9)),
        ("index", damaged_at(&trace, trace.len() - 100)),
        ("file header", damaged_at(&trace, 20)),
    ] {
        let expected = rows_by_rust(&trace);
        assert_same(&expected, &rows_by_python(&python, name, &trace));
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The interpreter to use, if it has what the reader needs.
fn python() -> Option<PathBuf> {
    if let Some(python) = std::env::var_os("TRACESMITH_PYTHON") {
        return Some(python.into());
    }
    let has_zstandard = process::Command::new("python3")
        .args(["-c", "import zstandard"])
        .output()
        .is_ok_and(|output| output.status.success());
    has_zstandard.then(|| "python3".into())
}

/// One line of output: the keys and values of a row. A measured value is written by its bits.
type Row = Vec<(String, String)>;

/// Rust knows columns that a file of an older version has not, which then read as nothing; Python shows what is there.
fn assert_same(expected: &[Row], found: &[Row]) {
    for (expected, found) in expected.iter().zip(found) {
        let in_file = |key: &str| found.iter().any(|(other, _)| other == key);
        let shown = expected
            .iter()
            .filter(|(key, value)| in_file(key) || !matches!(value.as_str(), "" | "0"));
        assert_eq!(shown.cloned().collect::<Row>(), *found);
    }
    assert_eq!(expected.len(), found.len());
}

// What Rust sees.

fn rows_by_rust(trace: &[u8]) -> Vec<Row> {
    let reader = Reader::open(Memory(trace)).unwrap();
    let strings = strings(&reader);
    let mut rows = Vec::new();
    for block in reader.blocks() {
        macro_rules! read {
            ($($field:ident: $row:ident,)*) => {
                match block.header.kind {
                    Text::KIND => rows_of::<Text>(&reader, block, &strings, &mut rows),
                    Frame::KIND => rows_of::<Frame>(&reader, block, &strings, &mut rows),
                    Stack::KIND => rows_of::<Stack>(&reader, block, &strings, &mut rows),
                    SchemaColumn::KIND => rows_of::<SchemaColumn>(&reader, block, &strings, &mut rows),
                    $($row::KIND => rows_of::<$row>(&reader, block, &strings, &mut rows),)*
                    other => panic!("{other} is no table"),
                }
            };
        }
        for_each_table!(read);
    }
    rows
}

fn strings(reader: &Reader<Memory<&[u8]>>) -> HashMap<u64, String> {
    let mut strings = HashMap::from([(0, String::new())]);
    for block in reader
        .blocks()
        .iter()
        .filter(|block| block.header.kind == Text::KIND)
    {
        let texts = reader.decoder().read::<Text>(block, &Projection::all()).unwrap();
        for (text, id) in texts.text.iter().zip(block.header.base + 1..) {
            strings.insert(id, String::from_utf8(text.to_vec()).unwrap());
        }
    }
    strings
}

fn rows_of<T: Table>(
    reader: &Reader<Memory<&[u8]>>,
    block: &Block,
    strings: &HashMap<u64, String>,
    rows: &mut Vec<Row>,
) {
    let Ok(columns) = reader.decoder().read::<T>(block, &Projection::all()) else {
        return;
    };
    let specs: HashMap<_, _> = T::Columns::specs()
        .into_iter()
        .map(|spec| (spec.id, spec))
        .collect();
    for row in 0..columns.len() {
        let mut shown: Row = vec![
            ("table".into(), T::KIND.to_string()),
            ("row".into(), (block.header.base + row as u64).to_string()),
        ];
        if block.header.clock.is_some() {
            shown.push(("clock".into(), block.header.clock.0.to_string()));
        }
        columns.visit(row, &mut |id, value| {
            let spec = &specs[&id];
            let text = match value {
                Value::Number(id) if spec.meaning == Meaning::String => {
                    strings.get(&id).cloned().unwrap_or_else(|| "null".into())
                }
                Value::Number(number) | Value::Code(_, number) => number.to_string(),
                Value::Missing => "null".into(),
                Value::Signed(number) => number.to_string(),
                Value::Float(value) => float(value),
                Value::Flag(flag) => u8::from(flag).to_string(),
                Value::Blob(bytes) => bytes.to_string(),
                other => panic!("{other:?} has no text"),
            };
            let is_taken = ["table", "row", "clock"].contains(&&*spec.name);
            shown.push((format!("{}{}", spec.name, if is_taken { "_" } else { "" }), text));
        });
        rows.push(shown);
    }
}

/// All NaNs are one in JSON.
fn float(value: f64) -> String {
    if value.is_nan() {
        "NaN".into()
    } else {
        format!("{:x}", value.to_bits())
    }
}

// What Python sees.

fn rows_by_python(python: &Path, name: &str, trace: &[u8]) -> Vec<Row> {
    let script = repository().join("docs/examples/read_sbt.py");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("python_reader {name}.sbt"));
    std::fs::write(&path, trace).unwrap();
    let output = process::Command::new(python)
        .arg(script)
        .arg(&path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(said.is_empty(), INTACT.contains(&name), "{name}: {said}");
    let floats = float_columns();
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| row_from_json(line, &floats))
        .collect()
}

/// Table and name of all columns of measured values.
fn float_columns() -> Vec<(String, String)> {
    let tables = tracesmith_format::schema::tables();
    let columns = tables
        .iter()
        .flat_map(|(kind, columns)| columns.iter().map(move |column| (kind, column)));
    columns
        .filter(|(_, column)| column.column_type == ColumnType::F64)
        .map(|(kind, column)| (kind.to_string(), column.name.clone()))
        .collect()
}

/// Reads `{"key": value, …}` with texts and numbers as values: all that the reader prints.
fn row_from_json(line: &str, floats: &[(String, String)]) -> Row {
    let mut rest = line.strip_prefix('{').unwrap();
    let mut row = Row::new();
    while !rest.starts_with('}') {
        let key = take_text(&mut rest);
        rest = rest.strip_prefix(": ").unwrap();
        let is_text = rest.starts_with('"');
        let mut value = if is_text {
            take_text(&mut rest)
        } else {
            let end = rest.find([',', '}']).unwrap();
            let (number, behind) = rest.split_at(end);
            rest = behind;
            number.to_owned()
        };
        if floats
            .iter()
            .any(|(table, column)| row.first().is_some_and(|(_, name)| name == table) && *column == key)
        {
            value = float(value.parse().unwrap());
        }
        row.push((key, value));
        rest = rest.strip_prefix(", ").unwrap_or(rest);
    }
    assert_eq!(rest, "}");
    row
}

/// A JSON text in quotes. Python escapes all that is not ASCII as UTF-16.
fn take_text(rest: &mut &str) -> String {
    let mut units: Vec<u16> = Vec::new();
    let mut chars = rest.strip_prefix('"').unwrap().chars();
    loop {
        match chars.next().unwrap() {
            '"' => break,
            '\\' => match chars.next().unwrap() {
                'u' => {
                    let digits: String = chars.by_ref().take(4).collect();
                    units.push(u16::from_str_radix(&digits, 16).unwrap());
                }
                'n' => units.push(b'\n'.into()),
                't' => units.push(b'\t'.into()),
                other => units.push(u16::try_from(u32::from(other)).unwrap()),
            },
            other => units.push(u16::try_from(u32::from(other)).unwrap()),
        }
    }
    *rest = chars.as_str();
    String::from_utf16(&units).unwrap()
}

// The traces.

fn empty_trace() -> Vec<u8> {
    let writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    writer.finish().unwrap()
}

/// Rows of any content in every table, on two clocks, in many blocks.
fn arbitrary_trace() -> Vec<u8> {
    let options = WriterOptions {
        rows_per_block: 70,
        ..WriterOptions::default()
    };
    let mut writer = Writer::new(Vec::new(), options).unwrap();
    let mut next = numbers(20);
    let ids: Vec<_> = TEXTS.iter().map(|text| writer.string(text).unwrap()).collect();
    for i in 0..200 {
        let frame = Frame::arbitrary(&mut next);
        let function = ids[i % ids.len()];
        let frame = writer
            .frame(Frame {
                function,
                file: StringId::NONE,
                ..frame
            })
            .unwrap();
        writer.stack_of([frame, FrameId(1)]).unwrap();
    }
    macro_rules! push {
        ($($field:ident: $row:ident,)*) => {$(
            let mut columns = <$row as Table>::Columns::default();
            for _ in 0..150 {
                columns.push(&$row::arbitrary(&mut next));
            }
            columns.remap(&mut KnownStrings(&ids));
            for row in 0..columns.len() {
                writer.push(ClockId(1 + row as u32 % 2), &columns.row(row)).unwrap();
            }
        )*};
    }
    for_each_table!(push);
    writer.finish().unwrap()
}

/// What a program would record: long columns, which are compressed in other ways than short ones of noise.
fn plain_trace() -> Vec<u8> {
    let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), WriterOptions::default()).unwrap();
    writer.metadata("command", "python train.py").unwrap();
    let names: Vec<_> = TEXTS.iter().map(|text| writer.string(text).unwrap()).collect();
    for i in 0..3000u64 {
        let start =
            1_700_000_000_000_000_000 + i * 5_000 + i * i % 977 + if i % 300 == 0 { 40_000_000 } else { 0 };
        let shape = KernelShape {
            name: names[(i * i % 7) as usize % names.len()],
            grid_x: 1 + (i % 5) as u32,
            priority: -(i as i32 % 3),
            ..KernelShape::default()
        };
        let kernel = Kernel {
            start: Timestamp(start),
            end: Timestamp(start + 3_000 + i % 700),
            correlation: CorrelationId(i),
            shape,
            ..Kernel::default()
        };
        writer.push(ClockId(1), &kernel).unwrap();
        let counter = Counter {
            time: Timestamp(start),
            value: (i as f64 / 100.0).sin(),
            ..Counter::default()
        };
        writer.push(ClockId(2), &counter).unwrap();
    }
    writer.seal().unwrap().into_inner()
}

/// The trace with a bit flipped in one of its event blocks, so many bytes behind its start.
fn damaged(trace: &[u8], behind: usize) -> Vec<u8> {
    let reader = Reader::open(Memory(trace)).unwrap();
    let mut kernels = reader
        .blocks()
        .iter()
        .filter(|block| block.header.kind == BlockKind::KERNELS);
    damaged_at(trace, kernels.nth(1).unwrap().offset as usize + behind)
}

fn damaged_at(trace: &[u8], at: usize) -> Vec<u8> {
    let mut trace = trace.to_vec();
    trace[at] ^= 0x10;
    trace
}

/// Makes any string's id one that the trace has, and leaves all other ids alone.
struct KnownStrings<'a>(&'a [StringId]);

impl IdMap for KnownStrings<'_> {
    fn string(&mut self, id: StringId) -> StringId {
        match id.0 as usize % (self.0.len() + 1) {
            0 => StringId::NONE,
            place => self.0[place - 1],
        }
    }
    fn stack(&mut self, id: StackId) -> StackId {
        id
    }
    fn frame(&mut self, id: FrameId) -> FrameId {
        id
    }
    fn image(&mut self, id: ImageId) -> ImageId {
        id
    }
    fn host(&mut self, id: HostId) -> HostId {
        id
    }
    fn process(&mut self, id: ProcessId) -> ProcessId {
        id
    }
    fn device(&mut self, id: DeviceId) -> DeviceId {
        id
    }
    fn clock(&mut self, id: ClockId) -> ClockId {
        id
    }
}
