//! Records of CUPTI read from any bytes.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use proptest::prelude::*;
use tracesmith_cuda::cupti::{
    abi::kind,
    activity::{self, Activity, VERSION_12_4, VERSION_12_8, VERSION_13_0, VERSION_13_1},
};

/// A record of this kind with `length` bytes that count up from 0 behind the kind.
fn record(kind: u32, length: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..length).map(|at| at as u8).collect();
    bytes[..4].copy_from_slice(&kind.to_ne_bytes());
    bytes
}

#[test]
fn a_version_reads_what_it_has_and_no_more() {
    let bytes = record(kind::CONCURRENT_KERNEL, 256);
    for (version, has_launched, has_priority) in [
        (VERSION_12_4, false, false),
        (VERSION_13_0, true, false),
        (VERSION_13_1, true, true),
    ] {
        let Some(Activity::Kernel(kernel, from_13_0, from_13_1)) = Activity::new(&bytes, version) else {
            panic!("a kernel is read");
        };
        assert_eq!(
            kernel.start(),
            u64::from_ne_bytes([16, 17, 18, 19, 20, 21, 22, 23])
        );
        assert_eq!(kernel.correlation(), u32::from_ne_bytes([92, 93, 94, 95]));
        assert_eq!(from_13_0.is_some(), has_launched);
        assert_eq!(from_13_1.is_some(), has_priority);
    }
    let bytes = record(kind::MEMCPY, 96);
    let Some(Activity::Copy(_, None)) = Activity::new(&bytes, VERSION_12_4) else {
        panic!("CUDA 12.4 counts no copies of a batch");
    };
    let Some(Activity::Copy(_, Some(batch))) = Activity::new(&bytes, VERSION_12_8) else {
        panic!("CUDA 12.8 does");
    };
    assert_eq!(
        batch.copies(),
        u64::from_ne_bytes([88, 89, 90, 91, 92, 93, 94, 95])
    );
}

#[test]
fn a_record_that_is_cut_off_is_none() {
    for (number, length) in [
        (kind::CONCURRENT_KERNEL, 208),
        (kind::MEMCPY, 88),
        (kind::MEMCPY2, 96),
        (kind::MEMSET, 88),
        (kind::DRIVER, 40),
        (kind::SYNCHRONIZATION, 40),
        (kind::MEMORY2, 120),
        (kind::DEVICE, 176),
    ] {
        let bytes = record(number, length);
        assert!(Activity::new(&bytes, VERSION_12_4).is_some(), "{number}");
        assert!(
            Activity::new(&bytes[..length - 1], VERSION_12_4).is_none(),
            "{number}"
        );
    }
}

proptest! {
    #[test]
    fn any_bytes_are_harmless(
        number in 0u32..200,
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        version in prop::sample::select(vec![18, 22, 28, 130_000, 130_401]),
    ) {
        let bytes = [&number.to_ne_bytes()[..], &bytes].concat();
        // Any outcome but a panic will do.
        let _ = Activity::new(&bytes, version);
        prop_assert!(activity::time_offsets(number).iter().all(|offset| offset % 8 == 0));
    }
}
