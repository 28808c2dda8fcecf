//! Every table with rows of any content, through a whole file and back.

use proptest::prelude::*;

use crate::arbitrary::{Arbitrary, numbers};
use crate::column_value::Value;
use crate::ids::ClockId;
use crate::reader::Reader;
use crate::source::Memory;
use crate::table::{Columns, Projection, Table};
use crate::tables::*;
use crate::writer::{Writable, Writer, WriterOptions};
use crate::{for_each_table, ids::Timestamp};

/// All values of a row; measured ones by their bits, so that every NaN is itself.
fn values<C: Columns>(columns: &C, row: usize) -> Vec<(u16, String)> {
    let mut values = Vec::new();
    columns.visit(row, &mut |id, value| values.push((id, text(value))));
    values
}

/// The same, by way of the columns.
fn values_of_columns<C: Columns>(columns: &C, row: usize) -> Vec<(u16, String)> {
    let mut values = Vec::new();
    columns.visit_columns(&mut |id, column| values.push((id, text(column.of_row(row)))));
    values
}

fn text(value: Value) -> String {
    match value {
        Value::Float(float) => format!("{:x}", float.to_bits()),
        other => format!("{other:?}"),
    }
}

fn survives<T: Writable + Arbitrary>(seed: u64, rows: usize, rows_per_block: u32) {
    let mut next = numbers(seed);
    let mut written = T::Columns::default();
    let mut writer = Writer::new(
        Vec::new(),
        WriterOptions {
            rows_per_block,
            ..Default::default()
        },
    )
    .unwrap();
    for _ in 0..rows {
        let row = T::arbitrary(&mut next);
        written.push(&row);
        writer.push(ClockId(3), &row).unwrap();
    }
    let reader = Reader::open(Memory(writer.finish().unwrap())).unwrap();
    assert_eq!(reader.damage(), []);
    let mut decoder = reader.decoder();
    let mut row = 0;
    for block in reader
        .blocks()
        .iter()
        .filter(|b| b.header.kind == T::KIND && b.header.clock == ClockId(3))
    {
        let read = decoder.read::<T>(block, &Projection::all()).unwrap();
        assert_eq!(block.header.base, row as u64);
        for r in 0..read.len() {
            assert_eq!(
                values(&read, r),
                values(&written, row),
                "row {row} of {}",
                T::KIND
            );
            assert_eq!(values_of_columns(&read, r), values(&read, r), "{}", T::KIND);
            let (start, end) = read.times(r);
            if start != Timestamp::NONE {
                assert!(block.header.first_time <= start.0 && block.header.last_time >= start.0.max(end.0));
            }
            row += 1;
        }
    }
    assert_eq!(row, rows);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn rows_of_any_content_survive_in_every_table(seed: u64, rows in 0..400usize, per_block in 1..300u32) {
        macro_rules! each {
            ($($field:ident: $row:ident,)*) => { $(survives::<$row>(seed, rows, per_block);)* };
        }
        for_each_table!(each);
    }
}

#[test]
fn the_same_rows_give_the_same_bytes() {
    let write = || {
        let mut next = numbers(5);
        let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
        for _ in 0..1000 {
            writer.push(ClockId(1), &Kernel::arbitrary(&mut next)).unwrap();
            let name = writer.string(&format!("string {}", next() % 50)).unwrap();
            writer
                .push(
                    ClockId(2),
                    &ApiCall {
                        stack: crate::ids::StackId(name.0),
                        ..Default::default()
                    },
                )
                .unwrap();
        }
        writer.finish().unwrap()
    };
    assert_eq!(write(), write());
}

#[test]
fn columns_can_be_read_one_by_one() {
    let mut next = numbers(11);
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    let rows: Vec<Kernel> = (0..300).map(|_| Kernel::arbitrary(&mut next)).collect();
    for row in &rows {
        writer.push(ClockId(1), row).unwrap();
    }
    let reader = Reader::open(Memory(writer.finish().unwrap())).unwrap();
    let block = reader
        .blocks()
        .iter()
        .find(|b| b.header.kind == Kernel::KIND)
        .unwrap();
    for spec in Kernels::specs() {
        let wanted = Projection::of::<Kernel>(&[&spec.name]).unwrap();
        let columns = reader.decoder().read::<Kernel>(block, &wanted).unwrap();
        assert_eq!(columns.len(), rows.len());
        assert_eq!(columns.start.is_empty(), spec.name != "start");
    }
    let wanted = Projection::of::<Kernel>(&["completed", "shape.grid_x", "place"]).unwrap();
    let columns = reader.decoder().read::<Kernel>(block, &wanted).unwrap();
    for (row, kernel) in rows.iter().enumerate() {
        assert_eq!(columns.completed[row], kernel.completed);
        assert_eq!(columns.shape.get(row).grid_x, kernel.shape.grid_x);
        assert_eq!(*columns.place.get(row), kernel.place);
    }
    assert!(Projection::of::<Kernel>(&["colour"]).is_err());
}

#[test]
fn rows_of_two_clocks_stay_apart() {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    for time in 1..=10u64 {
        let row = Kernel {
            start: Timestamp(time),
            end: Timestamp(time),
            ..Default::default()
        };
        writer.push(ClockId(1 + (time % 2) as u32), &row).unwrap();
    }
    let reader = Reader::open(Memory(writer.finish().unwrap())).unwrap();
    let mut clocks: Vec<_> = reader
        .blocks()
        .iter()
        .filter(|b| b.header.kind == Kernel::KIND)
        .map(|b| {
            (
                b.header.clock,
                b.header.rows,
                b.header.first_time,
                b.header.last_time,
            )
        })
        .collect();
    clocks.sort_unstable();
    assert_eq!(clocks, [(ClockId(1), 5, 2, 10), (ClockId(2), 5, 1, 9)]);
}

#[test]
fn byte_strings_larger_than_a_block_are_refused_and_large_ones_split() {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    let too_large = Module {
        code: crate::blob::Blob(vec![7; 40 << 20]),
        ..Default::default()
    };
    assert!(matches!(
        writer.define(&too_large),
        Err(crate::error::Error::RowTooLarge { .. })
    ));
    for _ in 0..5 {
        writer
            .define(&Module {
                code: crate::blob::Blob(vec![7; 5 << 20]),
                ..Default::default()
            })
            .unwrap();
    }
    let reader = Reader::open(Memory(writer.finish().unwrap())).unwrap();
    let rows: Vec<_> = reader
        .blocks()
        .iter()
        .filter(|b| b.header.kind == Module::KIND)
        .map(|b| b.header.rows)
        .collect();
    assert_eq!(rows, [2, 2, 1]);
}

#[test]
fn every_block_carries_its_place_in_the_file() {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    writer.metadata("command", "true").unwrap();
    let file = writer.finish().unwrap();
    let headers = headers_of(&file);
    let sequence: Vec<_> = headers.iter().map(|header| header.sequence).collect();
    assert_eq!(sequence, [0, 1, 2, 3, 4, 5]);
    assert_eq!(headers[4].kind, crate::block::BlockKind::INDEX);

    // Also when the blocks are copied from another file.
    let reader = Reader::open(Memory(file)).unwrap();
    let mut decoder = reader.decoder();
    let mut writer = Writer::without_schema(Vec::new(), WriterOptions::default()).unwrap();
    for block in &reader.blocks()[1..] {
        writer.copy_block(block, decoder.payload(block).unwrap()).unwrap();
    }
    let headers = headers_of(&writer.finish().unwrap());
    let sequence: Vec<_> = headers.iter().map(|header| header.sequence).collect();
    assert_eq!(sequence, [0, 1, 2, 3, 4]);
}

fn headers_of(file: &[u8]) -> Vec<crate::block::BlockHeader> {
    let mut rest = &file[crate::header::FILE_HEADER_BYTES..];
    let mut headers = Vec::new();
    while let Some(bytes) = rest.first_chunk() {
        let header = crate::block::BlockHeader::from_bytes(bytes).unwrap();
        rest = &rest[header.total_length() as usize..];
        headers.push(header);
    }
    headers
}

#[test]
fn a_string_too_long_for_a_block_is_refused_and_leaves_the_others_their_ids() {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    let before = writer.string("the one before").unwrap();
    assert!(matches!(
        writer.string(&"x".repeat(40 << 20)),
        Err(crate::error::Error::RowTooLarge { .. })
    ));
    assert_eq!(writer.string("the one behind").unwrap().0, before.0 + 1);
    let reader = Reader::open(Memory(writer.finish().unwrap())).unwrap();
    let block = reader.blocks().last().unwrap();
    assert_eq!(block.header.base + 1, u64::from(before.0));
    let texts = reader.decoder().read::<Text>(block, &Projection::all()).unwrap();
    assert_eq!(
        texts.text.iter().collect::<Vec<_>>(),
        [&b"the one before"[..], b"the one behind"]
    );
}

#[test]
fn an_index_with_more_rows_than_a_block_holds_is_split() {
    let options = WriterOptions {
        rows_per_block: 1,
        ..Default::default()
    };
    let mut writer = Writer::without_schema(Vec::new(), options).unwrap();
    let rows = crate::block::MAX_BLOCK_ROWS + 10;
    for time in 1..=u64::from(rows) {
        let row = Counter {
            time: Timestamp(time),
            ..Default::default()
        };
        writer.push(ClockId(1), &row).unwrap();
    }
    let file = writer.finish().unwrap();
    let headers = headers_of(&file);
    let index: Vec<_> = headers
        .iter()
        .filter(|header| header.kind == crate::block::BlockKind::INDEX)
        .map(|header| (header.sequence, header.base, header.rows))
        .collect();
    assert_eq!(
        index,
        [(rows, 0, rows - 10), (rows + 1, u64::from(rows) - 10, 10)]
    );
    let reader = Reader::open(Memory(file)).unwrap();
    assert_eq!(reader.found(), crate::reader::BlockLookup::Index);
    assert_eq!(reader.damage(), []);
    assert_eq!(reader.blocks().len(), rows as usize);
}
