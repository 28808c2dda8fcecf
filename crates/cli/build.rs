//! Builds the library that goes into profiled programs, so that the one binary
//! carries it. It is no dependency: its code must not be part of this program,
//! and a dependency cannot be a shared object.
//!
//! `TRACESMITH_INJECT_LIBRARY` names a library that was built elsewhere.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

const LIBRARY: &str = "libtracesmith_inject.so";

/// What the library is made of besides the files that Cargo lists when it has built it.
const SOURCES: [&str; 3] = ["crates/inject", "Cargo.toml", "Cargo.lock"];

fn main() {
    let out = PathBuf::from(variable("OUT_DIR"));
    let root = Path::new(&variable("CARGO_MANIFEST_DIR")).join("../..");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=TRACESMITH_INJECT_LIBRARY");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
    }
    let built = match env::var_os("TRACESMITH_INJECT_LIBRARY") {
        Some(path) => PathBuf::from(path),
        None => {
            let built = build(&root, &out.join("inject"));
            follow_sources(&built.with_extension("d"));
            built
        }
    };
    let copied = fs::copy(&built, out.join(LIBRARY));
    assert!(copied.is_ok(), "copying {}: {copied:?}", built.display());
}

/// A change of any of its files makes another library: Cargo lists them beside it, behind a colon, with spaces escaped.
fn follow_sources(list: &Path) {
    let text = fs::read_to_string(list).unwrap_or_else(|error| panic!("{}: {error}", list.display()));
    let (_, files) = text.split_once(": ").unwrap_or_default();
    assert!(!files.is_empty(), "{} lists nothing", list.display());
    for file in files.trim_end().replace("\\ ", "\0").split(' ') {
        println!("cargo::rerun-if-changed={}", file.replace('\0', " "));
    }
}

fn build(root: &Path, target: &Path) -> PathBuf {
    let mut cargo = Command::new(variable("CARGO"));
    cargo
        .current_dir(root)
        .args(["build", "--release", "--package", "tracesmith-inject"])
        // A source distribution of the Python package leaves crates out, so cargo has to change its lock file.
        .args(root.join(".git").exists().then_some("--locked"))
        .arg("--target-dir")
        .arg(target)
        // Those of the outer build: a linter in place of the compiler, for one.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTFLAGS");
    let (host, wanted) = (variable("HOST"), variable("TARGET"));
    let mut folder = target.to_owned();
    if host != wanted {
        cargo.args(["--target", &wanted]);
        folder.push(&wanted);
    }
    let status = cargo.status();
    assert!(
        status.as_ref().is_ok_and(|status| status.success()),
        "building tracesmith-inject: {status:?}"
    );
    folder.join("release").join(LIBRARY)
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|error| panic!("{name}: {error}"))
}
