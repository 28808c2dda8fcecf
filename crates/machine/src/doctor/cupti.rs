//! CUPTI: the library through which the driver tells what it does.
//!
//! A program that has one in it already, as PyTorch does, is recorded through
//! that one; which it will be cannot be known here. What can be known is what
//! other programs would be recorded through.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tracesmith_cuda::driver::Version;

use super::driver::Driver;
use super::{Check, Surroundings};

/// The variable that names a libcupti, or the folder of one.
const PATH_VARIABLE: &str = "TRACESMITH_CUPTI_PATH";

/// Where distributions put libraries.
const SYSTEM_FOLDERS: &[&str] = &[
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
];

pub(super) fn checks(driver: &Driver, surroundings: &Surroundings<'_>) -> Vec<Check> {
    let copies = find(surroundings);
    let mut checks = vec![library(&copies)];
    // Without a driver CUPTI 13.2 crashes when asked for its version, and 13.4 answers nothing.
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
            "none here; programs that bring their own, as PyTorch does, can be recorded",
            format!(
                "pip install nvidia-cuda-cupti (CUDA 13) or nvidia-cuda-cupti-cu12, or install the CUDA toolkit; one elsewhere is named by {PATH_VARIABLE}"
            ),
        );
    }
    let list: Vec<String> = copies.iter().map(|path| path.display().to_string()).collect();
    Check::ok(name, what, list.join(", "))
}

/// Whether one of them can serve this driver.
fn version(driver: Version, copies: &[(&Path, Result<u32, String>)]) -> Check {
    let (name, what) = ("cupti.version", "CUPTI version");
    let mut found = Vec::new();
    let mut fits = false;
    for (path, version) in copies {
        let cuda = version.as_ref().map(|number| cuda_of(*number));
        found.push(match cuda {
            Ok(Some(cuda)) => {
                fits |= cuda.major <= driver.major;
                format!("CUDA {cuda}'s in {}", path.display())
            }
            Ok(None) => format!("one of before CUDA 12 in {}", path.display()),
            Err(error) => format!("{}: {error}", path.display()),
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
        format!("{found}; the driver serves CUDA 12 to {driver}"),
        format!("pip install {package}, or update the driver"),
    )
}

/// The CUDA that a CUPTI came with, by what `cuptiGetVersion` gives; none for
/// those before CUDA 12, whose records we do not read.
/// <https://docs.nvidia.com/cupti/release-notes/release-notes.html>
fn cuda_of(version: u32) -> Option<Version> {
    let minor = match version {
        0..=17 => return None,
        // Also 12.1's.
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

/// Every libcupti that a program without one of its own might be recorded
/// through, the first to be tried first.
fn find(surroundings: &Surroundings<'_>) -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    folders(surroundings)
        .iter()
        .flat_map(|folder| copies_in(folder))
        .filter(|path| {
            let real = path.canonicalize().unwrap_or_else(|_| path.clone());
            seen.insert(real)
        })
        .collect()
}

fn folders(surroundings: &Surroundings<'_>) -> Vec<PathBuf> {
    let variable = |name| surroundings.variable(name).map(PathBuf::from);
    let mut folders: Vec<PathBuf> = variable(PATH_VARIABLE).into_iter().collect();
    let mut toolkits: Vec<PathBuf> = [variable("CUDA_HOME"), variable("CUDA_PATH")]
        .into_iter()
        .flatten()
        .collect();
    toolkits.push(PathBuf::from("/usr/local/cuda"));
    let mut versions: Vec<PathBuf> = entries(Path::new("/usr/local"))
        .filter(|path| begins_with(path, "cuda-"))
        .collect();
    versions.sort_by(|a, b| b.cmp(a));
    toolkits.append(&mut versions);
    for toolkit in toolkits {
        folders.push(toolkit.join("lib64"));
        folders.push(toolkit.join("extras/CUPTI/lib64"));
    }
    for packages in python_packages(surroundings) {
        folders.push(packages.join("nvidia/cu13/lib"));
        folders.push(packages.join("nvidia/cuda_cupti/lib"));
    }
    if let Some(path) = surroundings.variable("LD_LIBRARY_PATH") {
        folders.extend(
            path.split(':')
                .filter(|folder| !folder.is_empty())
                .map(PathBuf::from),
        );
    }
    folders.extend(SYSTEM_FOLDERS.iter().map(PathBuf::from));
    folders
}

/// Where pip puts packages: the active environment's, the user's and that of
/// the Python on the path.
fn python_packages(surroundings: &Surroundings<'_>) -> Vec<PathBuf> {
    let variable = |name| surroundings.variable(name).map(PathBuf::from);
    let python = surroundings
        .variable("PATH")
        .into_iter()
        .flat_map(|path| path.split(':'))
        .map(|folder| Path::new(folder).join("python3"))
        .find(|python| python.exists())
        .and_then(|python| Some(python.parent()?.parent()?.to_owned()));
    let prefixes = [
        variable("VIRTUAL_ENV"),
        variable("CONDA_PREFIX"),
        python,
        variable("HOME").map(|home| home.join(".local")),
    ];
    let mut packages: Vec<PathBuf> = prefixes
        .into_iter()
        .flatten()
        .flat_map(|prefix| {
            let mut pythons: Vec<PathBuf> = entries(&prefix.join("lib"))
                .filter(|path| begins_with(path, "python3"))
                .collect();
            pythons.sort();
            pythons
        })
        .flat_map(|python| [python.join("site-packages"), python.join("dist-packages")])
        .collect();
    packages.dedup();
    packages
}

/// The libraries of a folder, newest name first; or the file itself.
fn copies_in(folder: &Path) -> Vec<PathBuf> {
    if folder.is_file() {
        return vec![folder.to_owned()];
    }
    let mut copies: Vec<PathBuf> = entries(folder)
        .filter(|path| begins_with(path, "libcupti.so."))
        .collect();
    copies.sort_by_key(|path| std::cmp::Reverse(soname_of(path)));
    copies
}

/// 13 of `libcupti.so.13`. The file that such a name points to has a year
/// there (`libcupti.so.2025.3.1`) and comes last.
fn soname_of(path: &Path) -> u32 {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let number = name
        .strip_prefix("libcupti.so.")
        .and_then(|rest| rest.split('.').next()?.parse().ok());
    number.filter(|number| *number < 1000).unwrap_or(0)
}

fn begins_with(path: &Path, prefix: &str) -> bool {
    path.file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with(prefix))
}

/// A folder that cannot be read holds nothing for us.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
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
    fn libraries_are_found_where_toolkits_and_pip_put_them() {
        let root = tempfile::tempdir().unwrap();
        let pip = root
            .path()
            .join("venv/lib/python3.12/site-packages/nvidia/cu13/lib");
        let toolkit = root.path().join("toolkit/extras/CUPTI/lib64");
        for folder in [&pip, &toolkit] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(pip.join("libcupti.so.13"), "").unwrap();
        fs::write(toolkit.join("libcupti.so.2025.1.0"), "").unwrap();
        std::os::unix::fs::symlink("libcupti.so.2025.1.0", toolkit.join("libcupti.so.12")).unwrap();
        let named = root.path().join("mine.so");
        fs::write(&named, "").unwrap();
        let variables = [
            ("VIRTUAL_ENV", root.path().join("venv")),
            ("CUDA_HOME", root.path().join("toolkit")),
            (PATH_VARIABLE, named.clone()),
        ];
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
        // Whatever else this machine has.
        found.retain(|path| path.starts_with(root.path()));
        assert_eq!(
            found,
            [named, toolkit.join("libcupti.so.12"), pip.join("libcupti.so.13")]
        );
    }
}
