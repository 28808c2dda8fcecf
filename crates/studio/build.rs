//! Lists the files of the pages, so that the program carries them: path, type and bytes of each.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// File types that are served to browsers. Type declarations and notes are not.
const TYPES: &[(&str, &str)] = &[
    ("html", "text/html; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
];

fn main() {
    let folder = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("ui");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    find(&folder, &mut files);
    files.sort();
    let mut text = String::from("&[\n");
    for file in files {
        let end = file.extension().and_then(|end| end.to_str()).unwrap_or_default();
        let Some((_, content_type)) = TYPES.iter().find(|(known, _)| *known == end) else {
            continue;
        };
        let path = file.strip_prefix(&folder).unwrap_or(&file).display().to_string();
        let place = file.display().to_string();
        writeln!(
            text,
            "    Asset {{ path: {path:?}, content_type: {content_type:?}, bytes: include_bytes!({place:?}) }},"
        )
        .expect("a text can be written to");
    }
    text.push_str("]\n");
    let out = PathBuf::from(variable("OUT_DIR")).join("assets.rs");
    let written = fs::write(&out, text);
    assert!(written.is_ok(), "writing {}: {written:?}", out.display());
}

/// All files below a folder.
fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        // Tests of the pages are no part of them.
        let is_test = path.file_name().is_some_and(|name| name == "test");
        match path.is_dir() {
            true if is_test => {}
            true => find(&path, files),
            false => files.push(path),
        }
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|error| panic!("{name}: {error}"))
}
