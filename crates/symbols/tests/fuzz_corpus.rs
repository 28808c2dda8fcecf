//! The inputs of the fuzz program, those that once found a fault among them, on every run of the tests; and entries of any
//! rows.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tracesmith_symbols::fuzz;

fn inputs() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/symbols_cache");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

#[test]
fn entries_of_the_corpus_are_read_to_their_end() {
    let inputs = inputs();
    assert!(inputs.len() >= 3);
    assert!(
        inputs.iter().any(|input| fuzz::cache_entry(input) > 0),
        "some of them have names"
    );
    for input in inputs {
        for length in 0..=input.len() {
            fuzz::cache_entry(&input[..length]);
        }
        for at in 0..input.len() {
            for change in [1, 0x80, 0xff] {
                let mut spoiled = input.clone();
                spoiled[at] ^= change;
                fuzz::cache_entry(&spoiled);
            }
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_no_entry(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(fuzz::cache_entry(&bytes), 0);
    }

    #[test]
    fn a_byte_that_is_wrong_anywhere_does_no_harm(at in any::<proptest::sample::Index>(), byte in any::<u8>()) {
        let mut seed = fuzz::seed(600, &[16, 24, 9000]);
        let at = at.index(seed.len());
        seed[at] = byte;
        fuzz::cache_entry(&seed);
    }
}
