//! Entry points for fuzzing. Any bytes in the cache folder must give names, or none, without harm.
//!
//! Not part of the crate's interface.

use crate::{
    cache::entry::{Entry, Form, Identity, Row, encode},
    module::{Extent, Function},
};

/// The file that the inputs are about.
fn identity() -> Identity {
    Identity {
        build_id: "0123456789abcdef".to_owned(),
        key: b"key".to_vec(),
    }
}

/// Looks addresses up in an entry, and returns how many have a function. The addresses come first in the input: a byte says
/// how many, and each has eight bytes.
pub fn cache_entry(data: &[u8]) -> usize {
    let Some((count, rest)) = data.split_first() else {
        return 0;
    };
    let mut named = 0;
    let (addresses, entry) = rest.split_at((usize::from(*count % 16) * 8).min(rest.len()));
    let addresses = addresses
        .as_chunks()
        .0
        .iter()
        .map(|bytes| u64::from_le_bytes(*bytes));
    for entry in [entry.to_vec(), mended(entry)] {
        let Some(mut opened) = Entry::open(&entry[..], &identity()) else {
            continue;
        };
        for address in addresses.clone().chain([0, u64::MAX]) {
            let functions = opened.functions(address).unwrap_or_default();
            named += usize::from(!functions.is_empty());
        }
        let _ = opened.into_rows();
    }
    named
}

/// The same with the checksum of its header set right, so that inputs get behind it.
fn mended(entry: &[u8]) -> Vec<u8> {
    let mut mended = entry.to_vec();
    let length = entry.get(12..16).and_then(|bytes| bytes.try_into().ok());
    let length = length.map_or(0, u32::from_le_bytes) as usize;
    let header = entry.get(20..).and_then(|rest| rest.get(..length));
    if let Some(header) = header {
        mended[16..20].copy_from_slice(&crc32c::crc32c(header).to_le_bytes());
    }
    mended
}

/// An input of [`cache_entry`], for the corpus.
pub fn seed(rows: u64, addresses: &[u64]) -> Vec<u8> {
    let row = |at: u64| Row {
        start: 16 * at + 16,
        size: at % 3 * 8,
        functions: vec![Function {
            name: format!("_ZN3lib{}function{at}Ev", 8 + at.to_string().len()),
            ..Function::default()
        }],
    };
    let entry = encode(
        &identity(),
        Form::Table,
        Extent::Functions,
        std::slice::from_ref(&(16..1 << 20)),
        (0..rows).map(row),
    );
    let mut input = vec![u8::try_from(addresses.len() % 16).unwrap_or(0)];
    input.extend(addresses.iter().flat_map(|address| address.to_le_bytes()));
    input.extend(entry.unwrap_or_default());
    input
}
