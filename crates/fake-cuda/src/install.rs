//! Where the shared object is, and how it gets the names that programs look for.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What can go wrong when the fake is set up for a test.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The shared object is not beside the test.
    #[error("no shared object of the fake driver beside {}", executable.display())]
    NotBuilt {
        /// The test.
        executable: PathBuf,
    },
    /// A file could not be made or looked at.
    #[error("{what}: {source}: {}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// Why not.
        source: io::Error,
        /// With which file.
        path: PathBuf,
    },
}

/// The names of the libraries that the fake stands in for.
pub const LIBRARY_NAMES: [&str; 7] = [
    "libcuda.so.1",
    "libcudart.so.12",
    "libcudart.so.13",
    "libcupti.so.12",
    "libcupti.so.13",
    "libcupti.so",
    "libnvidia-ml.so.1",
];

/// The shared object that was built along with the running test: cargo puts it beside the test's executable.
///
/// # Errors
///
/// When there is none.
pub fn library() -> Result<PathBuf, Error> {
    let executable = std::env::current_exe().map_err(|source| Error::Io {
        what: "asking for the path of the test",
        source,
        path: PathBuf::new(),
    })?;
    let folders = executable.ancestors().skip(1).take(2);
    let mut candidates = folders.flat_map(|folder| {
        let name = "libtracesmith_fake_cuda.so";
        [folder.join(name), folder.join("deps").join(name)]
    });
    candidates
        .find(|path| path.is_file())
        .ok_or(Error::NotBuilt { executable })
}

/// Makes links to the shared object in `folder` under all names of [`LIBRARY_NAMES`]. A process that has the folder in
/// `LD_LIBRARY_PATH` loads the fake by any of them, and always the same one copy.
///
/// # Errors
///
/// When the shared object is missing or a link cannot be made.
pub fn install(folder: &Path) -> Result<(), Error> {
    let library = library()?;
    fs::create_dir_all(folder).map_err(|source| Error::Io {
        what: "making the folder",
        source,
        path: folder.to_owned(),
    })?;
    for name in LIBRARY_NAMES {
        let link = folder.join(name);
        // An older link may be there, or none.
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(&library, &link).map_err(|source| Error::Io {
            what: "linking the library",
            source,
            path: link,
        })?;
    }
    Ok(())
}
