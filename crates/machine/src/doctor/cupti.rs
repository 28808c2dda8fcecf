//! Checks CUPTI, NVIDIA's library for tracing.
//!
//! A program that has loaded CUPTI, such as PyTorch, is recorded with that copy. This check cannot know which copy
//! that will be. It finds the copies for all other programs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tracesmith_cuda::cupti::activity::VERSION_13_4_1;
use tracesmith_cuda::cupti::search::{PATH_VARIABLE, candidates};
use tracesmith_cuda::driver::Version;

use super::driver::Driver;
use super::{Check, Surroundings};

/// Where distributions install libraries.
const SYSTEM_FOLDERS: &[&str] = &[
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
];

pub(super) fn checks(driver: &Driver, surroundings: &Surroundings<'_>) -> Vec<Check> {
    let copies = find(surroundings);
    let mut checks = vec![library(&copies)];
    // Without a driver, CUPTI 13.2 crashes when its version is queried, and 13.4 returns nothing.
    if let (Some(newest), false) = (driver.version(), copies.is_empty()) {
        let versions: Vec<_> = copies
            .iter()
            .map(|path| (path.as_path(), (surroundings.cupti_version)(path)))
            .collect();
        checks.push(version(newest, &versions));
    }
    checks
}

fn library(copies: &[PathBuf]) -> Check {
    let (name, what) = ("cupti.library", "CUPTI library");
    if copies.is_empty() {
        return Check::no(
            name,
            what,
            "not found; programs that include CUPTI, such as PyTorch, can be recorded",
            format!(
                "pip install nvidia-cuda-cupti (CUDA 13) or nvidia-cuda-cupti-cu12, or install the CUDA toolkit; for a library in another folder, set {PATH_VARIABLE}"
            ),
        );
    }
    let list: Vec<String> = copies.iter().map(|path| path.display().to_string()).collect();
    Check::ok(name, what, list.join(", "))
}

/// Whether one of the copies works with this driver.
fn version(driver: Version, copies: &[(&Path, Result<u32, String>)]) -> Check {
    let (name, what) = ("cupti.version", "CUPTI version");
    let mut found = Vec::new();
    let mut fits = false;
    for (path, version) in copies {
        let path = path.display();
        found.push(match version.as_ref().map(|number| (cuda_of(*number), *number)) {
            Ok((Some(cuda), number)) => {
                fits |= cuda.major <= driver.major;
                // Requesting latencies from these versions can hang programs.
                let lacks = if number < VERSION_13_4_1 {
                    ", no launch latencies"
                } else {
                    ""
                };
                format!("CUDA {cuda} in {path}{lacks}")
            }
            Ok((None, _)) => format!("older than CUDA 12 in {path}"),
            Err(error) => format!("{path}: {error}"),
        });
    }
    let found = found.join("; ");
    if fits {
        return Check::ok(name, what, found);
    }
    let package = if driver.major >= 13 {
        "nvidia-cuda-cupti"
    } else {
        "nvidia-cuda-cupti-cu12"
    };
    Check::no(
        name,
        what,
        format!("{found}; the driver supports CUDA 12 to {driver}"),
        format!("pip install {package}, or update the driver"),
    )
}

/// The CUDA version of a CUPTI, from the result of `cuptiGetVersion`. `None` before CUDA 12, which TraceSmith does
/// not support. <https://docs.nvidia.com/cupti/release-notes/release-notes.html>
fn cuda_of(version: u32) -> Option<Version> {
    let minor = match version {
        0..=17 => return None,
        // 12.1 has the same number.
        18 | 19 => 0,
        20..=24 => version - 18,
        25 => 7,
        26 => 8,
        27..=99 => 9,
        _ => {
            return Some(Version {
                major: version / 10_000,
                minor: version / 100 % 100,
            });
        }
    };
    Some(Version { major: 12, minor })
}

/// Every libcupti that can be used for a program without its own copy, in search order.
fn find(surroundings: &Surroundings<'_>) -> Vec<PathBuf> {
    let by_search = candidates().into_iter().filter(|path| path.is_absolute());
    let mut found: Vec<PathBuf> = by_search
        .chain(beside_python(surroundings))
        .chain(on_loader_path(surroundings))
        .filter(|path| path.exists())
        .collect();
    let mut seen = BTreeSet::new();
    found.retain(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())));
    found
}

/// The copies in the packages of the Python on `PATH`. The search is relative to the running program, and this one is
/// not Python.
fn beside_python(surroundings: &Surroundings<'_>) -> Vec<PathBuf> {
    let python = surroundings
        .variable("PATH")
        .into_iter()
        .flat_map(|path| path.split(':'))
        .map(|folder| Path::new(folder).join("python3"))
        .find_map(|python| python.canonicalize().ok());
    let Some(prefix) = python.as_deref().and_then(Path::parent).and_then(Path::parent) else {
        return Vec::new();
    };
    // An unreadable folder counts as empty.
    let mut versions: Vec<PathBuf> = fs::read_dir(prefix.join("lib"))
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"))
        .map(|entry| entry.path().join("site-packages/nvidia"))
        .collect();
    versions.sort();
    versions
        .iter()
        .flat_map(|nvidia| [nvidia.join("cu13/lib"), nvidia.join("cuda_cupti/lib")])
        .flat_map(|folder| in_folder(&folder))
        .collect()
}

/// The copy that the loader finds by name.
fn on_loader_path(surroundings: &Surroundings<'_>) -> Vec<PathBuf> {
    let named = surroundings.variable("LD_LIBRARY_PATH").unwrap_or_default();
    named
        .split(':')
        .filter(|folder| !folder.is_empty())
        .chain(SYSTEM_FOLDERS.iter().copied())
        .flat_map(|folder| in_folder(Path::new(folder)))
        .collect()
}

fn in_folder(folder: &Path) -> [PathBuf; 2] {
    ["libcupti.so.13", "libcupti.so.12"].map(|name| folder.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;

    #[test]
    fn versions_of_cupti_tell_the_cuda_they_came_with() {
        for (version, cuda) in [
            (18, "12.0"),
            (20, "12.2"),
            (24, "12.6"),
            (26, "12.8"),
            (28, "12.9"),
            (130_001, "13.0"),
            (130_400, "13.4"),
        ] {
            assert_eq!(
                cuda_of(version).map(|cuda| cuda.to_string()),
                Some(cuda.to_owned())
            );
        }
        assert_eq!(cuda_of(17), None);
    }

    #[test]
    fn a_cupti_newer_than_the_driver_does_not_fit() {
        let path = Path::new("/x/libcupti.so.13");
        let state = |driver, versions: &[Result<u32, String>]| {
            let copies: Vec<_> = versions.iter().map(|version| (path, version.clone())).collect();
            version(driver, &copies).state
        };
        let (old, new) = (Version { major: 12, minor: 8 }, Version { major: 13, minor: 0 });
        assert_eq!(state(new, &[Ok(130_400)]), State::Ok);
        assert_eq!(state(new, &[Ok(28)]), State::Ok);
        assert_eq!(state(old, &[Ok(130_001)]), State::No);
        assert_eq!(state(old, &[Ok(130_001), Ok(26)]), State::Ok);
        assert_eq!(state(new, &[Err("it crashed".to_owned())]), State::No);
    }

    #[test]
    fn what_a_cupti_is_not_asked_for_is_told() {
        let path = Path::new("/x/libcupti.so.13");
        let driver = Version { major: 13, minor: 4 };
        let found = |number| version(driver, &[(path, Ok(number))]).found;
        assert_eq!(
            found(130_400),
            "CUDA 13.4 in /x/libcupti.so.13, no launch latencies"
        );
        assert_eq!(found(130_401), "CUDA 13.4 in /x/libcupti.so.13");
    }

    #[test]
    fn libraries_are_found_beside_python_and_by_the_loader() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let pip = root.join("lib/python3.12/site-packages/nvidia/cu13/lib");
        let (bin, loader) = (root.join("bin"), root.join("loader"));
        for folder in [&pip, &bin, &loader] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(bin.join("python3"), "").unwrap();
        fs::write(pip.join("libcupti.so.13"), "").unwrap();
        fs::write(loader.join("libcupti.so.2025.1.0"), "").unwrap();
        for name in ["libcupti.so.12", "libcupti.so.13"] {
            std::os::unix::fs::symlink("libcupti.so.2025.1.0", loader.join(name)).unwrap();
        }
        let variables = [("PATH", &bin), ("LD_LIBRARY_PATH", &loader)];
        let surroundings = Surroundings {
            variables: variables
                .iter()
                .map(|(name, path)| ((*name).to_owned(), path.to_str().unwrap().to_owned()))
                .collect(),
            target_memory_bytes: 0,
            runtime_directory: Err(String::new()),
            armed: Vec::new(),
            program: None,
            cupti_version: &|_| Err(String::new()),
        };
        let mut found = find(&surroundings);
        // Ignore other copies on this machine.
        found.retain(|path| path.starts_with(&root));
        assert_eq!(
            found,
            [pip.join("libcupti.so.13"), loader.join("libcupti.so.13")],
            "one file by two names is found once"
        );
    }
}
