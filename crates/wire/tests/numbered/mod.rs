//! Records that can tell on their own whether they arrived whole: a number, as
//! many bytes as the number says, and a checksum over both.

use std::num::NonZeroU16;

use tracesmith_wire::{Kind, Record, Tag};

const MAX_FILL: u64 = 200;

/// Writes record `number` into `payload`.
pub(crate) fn write(number: u64, payload: &mut Vec<u8>) {
    payload.clear();
    payload.extend_from_slice(&number.to_le_bytes());
    let mut state = mix(number);
    for _ in 0..state % MAX_FILL {
        state = mix(state);
        payload.push(state as u8);
    }
    let sum = checksum(payload);
    payload.extend_from_slice(&sum.to_le_bytes());
}

/// The tag of record `number`.
pub(crate) fn tag(number: u64) -> Tag {
    let kind = NonZeroU16::new(number as u16 | 1).expect("the lowest bit is set");
    Tag {
        kind: Kind::new(kind),
        flags: (number >> 3) as u16,
    }
}

/// The number of a record, which must be whole.
#[track_caller]
pub(crate) fn check(record: Record<'_>) -> u64 {
    let number = u64::from_le_bytes(*record.payload.first_chunk().expect("a number"));
    let (body, sum) = record.payload.split_last_chunk().expect("a checksum");
    assert_eq!(
        body.len() as u64,
        8 + mix(number) % MAX_FILL,
        "length of record {number}"
    );
    assert_eq!(
        u64::from_le_bytes(*sum),
        checksum(body),
        "checksum of record {number}"
    );
    assert_eq!(record.tag, tag(number), "tag of record {number}");
    number
}

/// A step of splitmix64: a different number for each number.
fn mix(number: u64) -> u64 {
    let mut state = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
