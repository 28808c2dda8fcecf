//! The interpreters of this machine: those on the path, those of pyenv, and those that `TRACESMITH_PYTHONS` lists,
//! separated by colons. Used by the tests and by the bench.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An interpreter.
#[derive(Clone, Debug)]
pub(crate) struct Interpreter {
    pub(crate) program: PathBuf,
    /// `3.12.1`, or `3.14.2t` without the global lock.
    pub(crate) version: String,
    pub(crate) minor: u32,
    /// Built with the global lock.
    pub(crate) is_locked: bool,
}

impl Interpreter {
    /// Whether its frames are expected to be read.
    pub(crate) fn is_known(&self) -> bool {
        let oldest = if self.is_locked { 9 } else { 14 };
        (oldest..=15).contains(&self.minor)
    }
}

/// What is known, for those who have none of it.
pub(crate) const KNOWN: &str = "no interpreter of 3.9 to 3.15";

/// All that answer, each once, in the order of their versions.
pub(crate) fn find() -> Vec<Interpreter> {
    let mut candidates: Vec<PathBuf> = Vec::new();
    if let Some(list) = env::var_os("TRACESMITH_PYTHONS") {
        candidates.extend(env::split_paths(&list));
    }
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let pyenv = env::var_os("PYENV_ROOT").map_or(home.join(".pyenv"), PathBuf::from);
    if let Ok(versions) = pyenv.join("versions").read_dir() {
        candidates.extend(
            versions
                .flatten()
                .map(|version| version.path().join("bin/python3")),
        );
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let mut names = vec!["python3".to_owned()];
    names.extend((9..=15).map(|minor| format!("python3.{minor}")));
    names.extend((13..=15).map(|minor| format!("python3.{minor}t")));
    // The shims of pyenv only start what was found above.
    for folder in env::split_paths(&path).filter(|folder| !folder.ends_with("shims")) {
        candidates.extend(names.iter().map(|name| folder.join(name)));
    }
    // By version and place: a program has many names.
    let mut found = BTreeMap::new();
    for program in candidates.iter().filter(|program| program.exists()) {
        if let Some((place, interpreter)) = ask(program) {
            found.entry((interpreter.minor, place)).or_insert(interpreter);
        }
    }
    found.into_values().collect()
}

const QUESTION: &str = "import os, sys
print(sys.implementation.name)
print('%d.%d.%d' % sys.version_info[:3] + 't' * ('t' in sys.abiflags))
print(sys.version_info[1])
print(int('t' in sys.abiflags))
print(os.path.realpath(sys.executable))";

fn ask(program: &Path) -> Option<(PathBuf, Interpreter)> {
    // What does not start, or is no Python 3, is none.
    let answer = Command::new(program)
        .args(["-I", "-S", "-c", QUESTION])
        .output()
        .ok()?;
    let answer = String::from_utf8(answer.stdout).ok()?;
    let mut lines = answer.lines();
    if lines.next()? != "cpython" {
        return None;
    }
    let interpreter = Interpreter {
        program: program.to_owned(),
        version: lines.next()?.to_owned(),
        minor: lines.next()?.parse().ok()?,
        is_locked: lines.next()? == "0",
    };
    Some((lines.next()?.into(), interpreter))
}
