//! The worked example: a tiny trace, every byte of it explained.

use tracesmith_format::tables::{Kernel, KernelShape};
use tracesmith_format::{
    BLOCK_HEADER_BYTES, BlockHeader, BlockKind, ClockId, ColumnSpec, FILE_HEADER_BYTES, Timestamp, Writer,
    WriterOptions, schema,
};

use crate::annotate::{Dump, take_varint};

pub(crate) fn render() -> String {
    let file = trace();
    let mut dump = Dump::new(&file);
    dump.heading("file header");
    for (length, what) in [
        (8, "magic"),
        (2, "major version"),
        (2, "minor version"),
        (4, "flags"),
        (8, "offset of the first metadata block"),
        (8, "offset of the first index block"),
        (8, "length of the finished file"),
        (16, "id of the trace"),
        (4, "reserved"),
        (4, "CRC32C of the 60 bytes before"),
    ] {
        dump.field(length, what);
    }
    assert_eq!(dump.at(), FILE_HEADER_BYTES);
    while dump.at() < file.len() {
        block(&mut dump);
    }
    dump.finish()
}

/// What the worked example shows. It has no schema, which would take most of its bytes and change with every column.
fn trace() -> Vec<u8> {
    let options = WriterOptions {
        id: *b"worked example 1",
        ..WriterOptions::default()
    };
    let mut writer = Writer::without_schema(Vec::new(), options).unwrap();
    let name = writer.string("saxpy").unwrap();
    for (start, end) in [
        (1_000_000, 1_000_300),
        (1_000_900, 1_001_150),
        (1_002_000, 1_002_280),
    ] {
        let kernel = Kernel {
            start: Timestamp(start),
            end: Timestamp(end),
            shape: KernelShape {
                name,
                grid_x: 64,
                block_x: 256,
                ..KernelShape::default()
            },
            ..Kernel::default()
        };
        writer.push(ClockId(1), &kernel).unwrap();
    }
    writer.finish().unwrap()
}

fn block(dump: &mut Dump<'_>) {
    let header = BlockHeader::from_bytes(dump.rest().first_chunk().unwrap()).unwrap();
    let kind = header.kind;
    dump.heading(&format!("block {}: {kind}", header.sequence));
    let base = match kind {
        BlockKind::END => format!("offset of the first index block: {}", header.base),
        _ => format!("base: {} rows before", header.base),
    };
    for (length, what) in [
        (4, "sync".to_owned()),
        (2, format!("kind: {kind}")),
        (1, "codec".to_owned()),
        (1, "flags".to_owned()),
        (4, format!("payload: {} bytes", header.payload_length)),
        (4, format!("unpacked: {} bytes", header.unpacked_length)),
        (8, format!("first time: {}", header.first_time)),
        (8, format!("last time: {}", header.last_time)),
        (8, base),
        (4, format!("rows: {}", header.rows)),
        (4, format!("clock: {}", header.clock.0)),
        (4, format!("sequence: {}", header.sequence)),
        (4, "CRC32C of the payload".to_owned()),
        (4, "reserved".to_owned()),
        (4, "CRC32C of the 60 bytes before".to_owned()),
    ] {
        dump.field(length, &what);
    }
    if header.payload_length == 0 {
        return;
    }
    let end = dump.at() + header.payload_length as usize;
    assert_eq!(
        header.total_length() as usize,
        BLOCK_HEADER_BYTES + end - dump.at()
    );
    payload(dump, kind);
    assert_eq!(dump.at(), end);
}

struct Column {
    name: String,
    layout: u8,
    compressed: bool,
    rows: usize,
    length: usize,
}

fn payload(dump: &mut Dump<'_>, kind: BlockKind) {
    let specs = specs_of(kind);
    let count = dump.varint(|count| format!("columns: {count}"));
    let mut columns = Vec::new();
    for _ in 0..count {
        let start = dump.rest();
        let mut rest = start;
        let id = take_varint(&mut rest);
        let group = take_varint(&mut rest);
        let [column_type, transform, layout, compression] = *rest.first_chunk().unwrap();
        rest = &rest[4..];
        let reference = (transform == 2).then(|| take_varint(&mut rest));
        let (rows, raw, stored) = (
            take_varint(&mut rest),
            take_varint(&mut rest),
            take_varint(&mut rest),
        );
        let spec = specs.iter().find(|spec| u64::from(spec.id) == id).unwrap();
        assert_eq!(spec.column_type as u8, column_type);
        assert_eq!(u64::from(spec.group), group);
        let transform = match (transform, reference) {
            (0, None) => "plain".to_owned(),
            (1, None) => "delta".to_owned(),
            (2, Some(other)) => format!("after {other}"),
            (3, None) => "xor".to_owned(),
            _ => unreachable!("no such transform"),
        };
        let layout_name = ["constant", "packed", "planes", "blob"][usize::from(layout)];
        let group = if group == 0 {
            "no group".to_owned()
        } else {
            format!("group {group}")
        };
        let compression_name = ["none", "zstd"][usize::from(compression)];
        dump.field(
            start.len() - rest.len(),
            &format!(
                "{id} {}: {group}, {:?}, {transform}, {layout_name}, {compression_name}, rows {rows}, raw {raw}, \
                 stored {stored}",
                spec.name, spec.column_type
            ),
        );
        columns.push(Column {
            name: spec.name.clone(),
            layout,
            compressed: compression != 0,
            rows: rows as usize,
            length: stored as usize,
        });
    }
    for column in &columns {
        values(dump, column);
    }
}

fn values(dump: &mut Dump<'_>, column: &Column) {
    let end = dump.at() + column.length;
    let name = &column.name;
    match column.layout {
        _ if column.compressed => dump.field(column.length, &format!("{name}: one zstd frame")),
        0 => {
            dump.varint(|value| format!("{name}: {value}"));
        }
        1 => frame(dump, name, column.rows),
        3 => {
            frame(dump, &format!("{name}, lengths"), column.rows);
            let text = String::from_utf8_lossy(&dump.rest()[..end - dump.at()]).into_owned();
            dump.field(end - dump.at(), &format!("{name}: \"{text}\""));
        }
        _ => unreachable!("planes are always compressed"),
    }
    assert_eq!(dump.at(), end);
}

/// One frame of packed numbers: the example has no column of more.
fn frame(dump: &mut Dump<'_>, name: &str, rows: usize) {
    assert!(rows <= 128);
    let (width, exceptions) = (usize::from(dump.rest()[0]), usize::from(dump.rest()[1]));
    dump.field(1, &format!("{name}: width {width}"));
    dump.field(1, &format!("exceptions: {exceptions}"));
    if exceptions > 0 {
        dump.field(exceptions, "their positions");
        for _ in 0..exceptions {
            dump.varint(|high| format!("{high} << {width}"));
        }
    }
    let packed = &dump.rest()[..(rows * width).div_ceil(8)];
    let number = |row: usize| {
        (0..width)
            .map(|k| (row * width + k, k))
            .map(|(bit, k)| u64::from(packed[bit / 8] >> (bit % 8) & 1) << k)
            .sum::<u64>()
    };
    let numbers: Vec<_> = (0..rows).map(|row| number(row).to_string()).collect();
    if !packed.is_empty() {
        dump.field(packed.len(), &numbers.join(", "));
    }
}

fn specs_of(kind: BlockKind) -> Vec<ColumnSpec> {
    let (_, specs) = schema::tables().into_iter().find(|(k, _)| *k == kind).unwrap();
    specs
}
