//! How long it takes to name addresses of a library: without the cache, the first time with it, and the second time.
//!
//! `cargo run --release -p tracesmith-symbols --example cache_timing -- LIBRARY [ADDRESSES]`

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "the panic is shown to the user of the example"
)]

use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{env, fs};

use object::{Object, ObjectSymbol};
use tracesmith_symbols::{Cache, File, Resolver, Sources};

fn main() {
    let library = fs::canonicalize(env::args().nth(1).unwrap()).unwrap();
    let count = env::args().nth(2).map_or(2000, |count| count.parse().unwrap());
    let (file, addresses) = addresses(&library, count);
    println!("{}: {} addresses", library.display(), addresses.len());
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path().join("cache"), 1 << 30);
    let mut expected = None;
    for (what, cache) in [
        ("without a cache", None),
        ("with an empty cache", Some(&cache)),
        ("with the cache", Some(&cache)),
        ("with the cache", Some(&cache)),
    ] {
        let begun = Instant::now();
        let mut resolver = Resolver::new(Sources::default()).with_cache(cache.cloned());
        let names: Vec<_> = addresses
            .iter()
            .map(|address| resolver.functions(&file, *address))
            .collect();
        let named = names.iter().filter(|functions| !functions.is_empty()).count();
        resolver.report();
        println!(
            "{what}: {:.1} ms, {named} named",
            begun.elapsed().as_secs_f64() * 1e3
        );
        assert_eq!(
            expected.get_or_insert_with(|| names.clone()),
            &names,
            "other names"
        );
    }
    for entry in fs::read_dir(folder.path().join("cache")).unwrap() {
        println!("entry: {} bytes", entry.unwrap().metadata().unwrap().len());
    }
}

/// Addresses in functions that are spread over the file.
fn addresses(library: &Path, count: usize) -> (File, Vec<u64>) {
    let bytes = fs::read(library).unwrap();
    let parsed = object::File::parse(&*bytes).unwrap();
    let symbols = parsed.symbols().chain(parsed.dynamic_symbols());
    let functions = symbols.filter(|symbol| symbol.is_definition() && symbol.size() > 8);
    let mut places: Vec<u64> = functions
        .map(|symbol| symbol.address() + symbol.size() / 2)
        .collect();
    places.sort_unstable();
    places.dedup();
    let step = (places.len() / count).max(1);
    let build_id = parsed.build_id().unwrap().unwrap_or_default();
    let file = File {
        root: PathBuf::from("/"),
        path: library.to_owned(),
        build_id: build_id.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    (file, places.into_iter().step_by(step).collect())
}
