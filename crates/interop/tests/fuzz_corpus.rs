//! Replays the corpus of every importer's fuzz target, so that what a fuzzer once found stays found on every machine.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]

use std::fs;
use std::path::{Path, PathBuf};

use tracesmith_interop::fuzz::import_any;
use tracesmith_interop::import::IMPORTERS;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

#[test]
fn every_input_of_every_corpus_is_harmless() {
    for importer in IMPORTERS {
        let folder = fuzz().join(format!("corpus/import_{}", importer.name));
        let mut inputs = 0;
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            import_any(importer.name, &fs::read(entry.unwrap().path()).unwrap());
            inputs += 1;
        }
        assert!(inputs > 0, "{} is empty", folder.display());
    }
}

#[test]
fn every_importer_has_a_fuzz_program() {
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    for importer in IMPORTERS {
        let name = format!("import_{}", importer.name);
        assert!(
            manifest.contains(&format!("name = \"{name}\"")),
            "{name} is not in fuzz/Cargo.toml"
        );
        assert!(
            fuzz().join(format!("programs/{name}.rs")).exists(),
            "{name}.rs is missing"
        );
    }
}
