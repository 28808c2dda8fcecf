//! Columns of any numbers, through every transform and layout.

use proptest::prelude::*;

use super::*;
use crate::block::{BlockHeader, BlockKind};
use crate::column_value::ColumnValue;
use crate::ids::ClockId;

/// Numbers of the shapes that columns have: anything, small steps, few values, extremes.
fn numbers() -> impl Strategy<Value = Vec<u64>> {
    let length = 1..600usize;
    prop_oneof![
        prop::collection::vec(any::<u64>(), length.clone()),
        prop::collection::vec(0..50u64, length.clone()),
        prop::collection::vec(
            prop_oneof![Just(0), Just(u64::MAX), Just(1 << 63), 0..9u64],
            length.clone()
        ),
        (any::<u64>(), prop::collection::vec(-1000..1_000_000i64, length)).prop_map(|(start, steps)| {
            steps
                .iter()
                .scan(start, |value, step| {
                    *value = value.wrapping_add_signed(*step);
                    Some(*value)
                })
                .collect()
        }),
    ]
}

fn header(rows: usize) -> BlockHeader {
    BlockHeader {
        kind: BlockKind::KERNELS,
        codec: 0,
        payload_length: 0,
        unpacked_length: 0,
        first_time: 0,
        last_time: 0,
        base: 0,
        rows: rows as u32,
        clock: ClockId::NONE,
        sequence: 0,
        payload_crc: 0,
    }
}

fn decoded<T: ColumnValue>(payload: &[u8], rows: usize, ids: &[u16]) -> Vec<Vec<T>> {
    let mut scratch = Scratch::new();
    let mut decoder = BlockDecoder::new(&header(rows), payload, &mut scratch).unwrap();
    ids.iter().map(|id| decoder.column(*id).unwrap()).collect()
}

proptest! {
    #[test]
    fn any_numbers_survive_every_transform(values in numbers()) {
        for transform in [Transform::Plain, Transform::Delta, Transform::Xor] {
            let mut encoder = BlockEncoder::new(1);
            encoder.column(7, 0, &values, transform);
            let mut payload = Vec::new();
            encoder.finish(&mut payload);
            prop_assert_eq!(&decoded::<u64>(&payload, values.len(), &[7])[0], &values);
        }
    }

    #[test]
    fn columns_relative_to_each_other_survive(values in numbers(), others in numbers()) {
        let rows = values.len().min(others.len());
        let (values, others) = (&values[..rows], &others[..rows]);
        let mut encoder = BlockEncoder::new(1);
        encoder.column(1, 0, values, Transform::Delta);
        encoder.column_after(2, others, 1, values);
        encoder.column_after(3, values, 2, others);
        let mut payload = Vec::new();
        encoder.finish(&mut payload);
        // Also when the column that others refer to is not asked for itself.
        prop_assert_eq!(decoded::<u64>(&payload, rows, &[3, 2]), [values, others]);
        prop_assert_eq!(decoded::<u64>(&payload, rows, &[1, 2, 3]), [values, others, values]);
    }

    #[test]
    fn narrow_and_signed_numbers_survive(values in numbers()) {
        let bytes: Vec<u8> = values.iter().map(|v| *v as u8).collect();
        let signed: Vec<i32> = values.iter().map(|v| *v as i32).collect();
        let measured: Vec<f64> = values.iter().map(|v| f64::from_bits(*v)).collect();
        let mut encoder = BlockEncoder::new(1);
        encoder.column(1, 0, &bytes, Transform::Plain);
        encoder.column(2, 0, &signed, Transform::Delta);
        encoder.column(3, 0, &measured, Transform::Xor);
        let mut payload = Vec::new();
        encoder.finish(&mut payload);
        prop_assert_eq!(&decoded::<u8>(&payload, values.len(), &[1])[0], &bytes);
        prop_assert_eq!(&decoded::<i32>(&payload, values.len(), &[2])[0], &signed);
        let bits: Vec<u64> = decoded::<f64>(&payload, values.len(), &[3])[0].iter().map(|v| v.to_bits()).collect();
        prop_assert_eq!(bits, values);
    }

    #[test]
    fn any_bytes_decode_to_something_or_an_error(data in prop::collection::vec(any::<u8>(), 0..300)) {
        for target in crate::fuzz::TARGETS {
            (target.run)(&data);
        }
    }
}

#[test]
fn columns_in_a_circle_are_refused() {
    let values: Vec<u64> = (0..10).map(|i| i * i).collect();
    let mut encoder = BlockEncoder::new(1);
    encoder.column_after(1, &values, 2, &[0u64; 10]);
    encoder.column_after(2, &values, 1, &[0u64; 10]);
    let mut payload = Vec::new();
    encoder.finish(&mut payload);
    let mut scratch = Scratch::new();
    let mut decoder = BlockDecoder::new(&header(10), &payload, &mut scratch).unwrap();
    assert!(decoder.column::<u64>(1).is_err());
}

#[test]
fn a_value_too_wide_for_its_column_is_refused() {
    let mut encoder = BlockEncoder::new(1);
    encoder.column(1, 0, &[1u64, 256, 3], Transform::Plain);
    let mut payload = Vec::new();
    encoder.finish(&mut payload);
    let mut scratch = Scratch::new();
    let mut decoder = BlockDecoder::new(&header(3), &payload, &mut scratch).unwrap();
    assert!(decoder.column::<u8>(1).is_err());
    assert_eq!(decoder.column::<u16>(1), Ok(vec![1, 256, 3]));
}

#[test]
fn a_column_that_claims_a_terabyte_takes_no_memory() {
    // One column: id 1, no group, u64, plain, planes, zstd, 3 rows, 2^40 bytes unpacked, 0 stored.
    let mut payload = vec![1, 1, 0, 4, 0, 2, 1, 3];
    crate::varint::put(&mut payload, 1 << 31);
    payload.push(0);
    let mut scratch = Scratch::new();
    let mut decoder = BlockDecoder::new(&header(3), &payload, &mut scratch).unwrap();
    assert!(decoder.column::<u64>(1).is_err());
    for length in [1 << 40, 1 << 63, u64::MAX] {
        let mut payload = vec![1, 1, 0, 4, 0, 2, 1, 3];
        crate::varint::put(&mut payload, length);
        payload.push(0);
        assert!(BlockDecoder::new(&header(3), &payload, &mut scratch).is_err());
    }
}

#[test]
fn a_column_refers_only_to_one_of_as_many_rows() {
    // A member of a group of three values, and a column of ten rows: both refer to column 7.
    let (member, column): (Vec<u64>, Vec<u64>) = ((0..3).collect(), (0..10).map(|i| i * i).collect());
    let encoded = |reference: Option<&[u64]>| {
        let mut encoder = BlockEncoder::new(1);
        encoder.column_after(1, &member, 7, &[5u64; 3]);
        encoder.column_after(2, &column, 7, &[5u64; 10]);
        if let Some(values) = reference {
            encoder.column(7, 0, values, Transform::Plain);
        }
        let mut payload = Vec::new();
        encoder.finish(&mut payload);
        payload
    };
    let mut scratch = Scratch::new();
    let payload = encoded(Some(&[5; 10]));
    let mut decoder = BlockDecoder::new(&header(10), &payload, &mut scratch).unwrap();
    assert_eq!(decoder.column::<u64>(2), Ok(column.clone()));
    assert!(decoder.column_of::<u64>(1, 0, 3).is_err());

    // One that is left out is all zeros, for as many rows as each of them has.
    let payload = encoded(None);
    let mut decoder = BlockDecoder::new(&header(10), &payload, &mut scratch).unwrap();
    let less_five = |values: &[u64]| values.iter().map(|v| v.wrapping_sub(5)).collect::<Vec<_>>();
    assert_eq!(decoder.column_of::<u64>(1, 0, 3), Ok(less_five(&member)));
    assert_eq!(decoder.column::<u64>(2), Ok(less_five(&column)));
}

#[test]
fn a_block_may_not_make_its_reader_keep_any_number_of_columns() {
    let encoded = |references: u16| {
        let mut encoder = BlockEncoder::new(1);
        for id in 1..=references {
            encoder.column_after(id, &[1u64, 2, 4], 100 + id, &[0u64; 3]);
        }
        let mut payload = Vec::new();
        encoder.finish(&mut payload);
        payload
    };
    let mut scratch = Scratch::new();
    assert!(BlockDecoder::new(&header(3), &encoded(15), &mut scratch).is_ok());
    assert_eq!(
        BlockDecoder::new(&header(3), &encoded(200), &mut scratch).err(),
        Some(crate::error::Problem::Directory)
    );
}

/// The first block is a program's start, which is noise; the second is its loop.
#[test]
fn a_column_that_begins_to_repeat_is_laid_out_anew() {
    let mut state = 1u64;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 55
    };
    let noise: Vec<u64> = (0..4000).map(|_| random()).collect();
    let period: Vec<u64> = (0..335).map(|row| noise[row]).collect();
    let repeating: Vec<u64> = period.iter().copied().cycle().take(4000).collect();
    let mut encoder = BlockEncoder::new(1);
    let mut sizes = Vec::new();
    for values in [&noise, &repeating] {
        encoder.begin_block(BlockKind::KERNELS);
        encoder.column(7, 0, values, Transform::Plain);
        let mut payload = Vec::new();
        encoder.finish(&mut payload);
        assert_eq!(&decoded::<u64>(&payload, values.len(), &[7])[0], values);
        sizes.push(payload.len());
    }
    assert!(sizes[0] > 4000, "nine bits for each of 4,000 rows: {sizes:?}");
    assert!(sizes[1] < 1000, "little more than one period: {sizes:?}");
}
