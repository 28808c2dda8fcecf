//! Writes the first inputs of the fuzz corpus: entries of the cache.
//!
//! `cargo run -p tracesmith-symbols --example symbols_fuzz_seeds -- fuzz/corpus`

#![allow(clippy::unwrap_used, reason = "the panic is shown to the user of the example")]

use std::path::PathBuf;
use std::{env, fs};

use tracesmith_symbols::fuzz;

fn main() {
    let corpus = PathBuf::from(env::args().nth(1).unwrap()).join("symbols_cache");
    fs::create_dir_all(&corpus).unwrap();
    for (name, rows) in [("empty", 0), ("few", 3), ("one_block", 40), ("two_blocks", 520)] {
        let addresses = [0, 15, 16, 33, 16 * rows, 16 * rows + 100];
        fs::write(corpus.join(name), fuzz::seed(rows, &addresses)).unwrap();
    }
}
